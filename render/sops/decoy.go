package sops

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// literal is a value as it is written.
type literal string

// decoyOf is another value for a decrypted one, of its type.
func decoyOf(v any, other func(text string) string) any {
	switch v := v.(type) {
	case string:
		return other(v)
	case bool:
		return !v
	case int:
		return otherNumber(strconv.Itoa(v), other, "1", "2")
	case float64:
		text, _ := literalOf(v)
		return otherNumber(text, other, "0.5", "1.5")
	case time.Time:
		return other(v.Format(time.RFC3339Nano))
	case remark:
		return remark(other(string(v)))
	}
	return v
}

// otherNumber is another number, or one of two where other makes none.
func otherNumber(text string, other func(text string) string, one, two string) literal {
	if made := other(text); json.Valid([]byte(made)) && strings.Trim(made, "0123456789.eE+-") == "" {
		return literal(made)
	}
	if text == one {
		return literal(two)
	}
	return literal(one)
}

func (d *yamlDocument) decoy(other func(text string) string) ([]byte, error) {
	c := *d
	c.edits = make(map[*yaml.Node]any, len(d.edits))
	for n, v := range d.edits {
		if c.edits[n] = v; !d.open[n] {
			c.edits[n] = decoyOf(v, other)
		}
	}
	return c.write(func(string) (string, bool) { return "", false })
}

func (b *binaryDocument) decoy(other func(text string) string) ([]byte, error) {
	return []byte(other(b.content)), nil
}

func (d *dotenvDocument) decoy(other func(text string) string) ([]byte, error) {
	var out bytes.Buffer
	for _, l := range d.lines {
		if l.key != "" {
			if l.sealed {
				l.value = decoyOf(l.value, other)
			}
			text, err := textOf(l.value)
			if number, ok := l.value.(literal); ok {
				text, err = string(number), nil
			}
			if err != nil {
				return nil, &lineError{l.line, err.Error()}
			}
			out.WriteString(l.key + "=" + strings.ReplaceAll(text, "\n", `\n`))
		} else if !strings.HasPrefix(l.comment, "#"+marker) {
			out.WriteString(l.comment)
		}
		out.WriteByte('\n')
	}
	return append(bytes.TrimRight(out.Bytes(), "\n"), '\n'), nil
}
