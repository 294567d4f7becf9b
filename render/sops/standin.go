package sops

import (
	"bytes"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// Sealed is a decrypted value that is secret.
type Sealed struct {
	// Ciphertext is the encrypted value in the file. SOPS makes a different one every time it encrypts a
	// value.
	Ciphertext string
	// Value is the plain text in the decrypted file, and Tag its YAML type.
	Value, Tag string
	// Line is its line in the file.
	Line int
	// Literal is its YAML syntax in a YAML file, and empty for other files.
	Literal string
}

// StandIns returns Content with stand-ins in place of the secret values. standIn returns the stand-in of a
// value. The result is nil if nothing was decrypted.
func (f *File) StandIns(standIn func(Sealed) string) ([]byte, error) {
	if f.doc == nil {
		return nil, nil
	}
	return f.doc.standIns(standIn, func(sealed string) (string, bool) {
		text, ok := f.comments[sealed]
		if ok {
			text = standIn(Sealed{Ciphertext: sealed, Value: text, Tag: "!!str"})
		}
		return text, ok
	})
}

// standIns returns the document with stand-ins for its decrypted values and comments. Values that
// decryption left open, such as names of objects, are written as they are.
func (d *yamlDocument) standIns(standIn func(Sealed) string, comment func(string) (string, bool)) ([]byte, error) {
	c := *d
	c.edits = make(map[*yaml.Node]any, len(d.edits))
	for n, v := range d.edits {
		if c.edits[n] = v; d.open[n] {
			continue
		}
		if text, isRemark := v.(remark); isRemark {
			c.edits[n] = remark(standIn(Sealed{Ciphertext: n.Value, Value: strings.ReplaceAll(string(text), "\n", " "), Tag: "!!str", Line: n.Line}))
			continue
		}
		text, err := literalOf(v)
		if err != nil {
			return nil, &lineError{n.Line, err.Error()}
		}
		s := Sealed{Ciphertext: n.Value, Value: text, Tag: tagOf(v), Line: n.Line, Literal: text}
		if plain, ok := v.(string); ok {
			s.Value = plain
		}
		c.edits[n] = standIn(s)
	}
	return c.write(comment)
}

// tagOf returns the YAML type of a decrypted value.
func tagOf(v any) string {
	switch v.(type) {
	case int:
		return "!!int"
	case float64:
		return "!!float"
	case bool:
		return "!!bool"
	case time.Time:
		return "!!timestamp"
	}
	return "!!str"
}

func (b *binaryDocument) standIns(standIn func(Sealed) string, _ func(string) (string, bool)) ([]byte, error) {
	return []byte(standIn(Sealed{Ciphertext: b.docs[0].Content[1].Value, Value: b.content, Tag: "!!str", Line: 1})), nil
}

// standIns is plain with stand-ins for the decrypted values.
func (d *dotenvDocument) standIns(standIn func(Sealed) string, comment func(string) (string, bool)) ([]byte, error) {
	var out bytes.Buffer
	for _, l := range d.lines {
		switch {
		case l.key != "":
			text, err := textOf(l.value)
			if err != nil {
				return nil, &lineError{l.line, err.Error()}
			}
			if l.sealed != "" {
				text = standIn(Sealed{Ciphertext: l.sealed, Value: strings.ReplaceAll(text, "\n", `\n`), Tag: "!!str", Line: l.line})
			}
			out.WriteString(l.key + "=" + strings.ReplaceAll(text, "\n", `\n`))
		case strings.HasPrefix(l.comment, "#"+marker):
			if text, ok := comment(l.comment[1:]); ok {
				out.WriteString("#" + text)
			}
		default:
			out.WriteString(l.comment)
		}
		out.WriteByte('\n')
	}
	return append(bytes.TrimRight(out.Bytes(), "\n"), '\n'), nil
}
