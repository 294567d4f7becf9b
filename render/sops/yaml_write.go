package sops

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render/lazyregexp"
)

// Patterns of encrypted values and comments in a text.
var (
	sealedText   = lazyregexp.New(`^"?ENC\[AES256_GCM,[A-Za-z0-9+/=:,]*,type:[a-z]+\]"?`)
	sealedRemark = lazyregexp.New(`#(ENC\[AES256_GCM,[A-Za-z0-9+/=:,]*,type:comment\])`)
)

// plain replaces the encrypted values in the text and removes the metadata.
func (d *yamlDocument) plain(comment func(string) (string, bool)) ([]byte, error) {
	text, err := d.write(comment)
	if err != nil {
		return nil, err
	}
	return text, d.same(text)
}

// write is like plain, without the check of its result.
func (d *yamlDocument) write(comment func(string) (string, bool)) ([]byte, error) {
	var edits []edit
	for _, c := range d.cuts {
		lines := 0
		if c.to < len(d.text) && !d.json {
			lines = bytes.Count(d.text[c.from:c.to], []byte("\n")) // the following lines keep their numbers
		}
		edits = append(edits, edit{c, strings.Repeat("\n", lines)})
	}
	for n, v := range d.edits {
		literal, err := literalOf(v)
		if err != nil {
			return nil, &lineError{n.Line, err.Error()}
		}
		from := d.offset(n.Line, n.Column)
		old := sealedText.Find(d.text[from:])
		if old == nil {
			return nil, &lineError{n.Line, "an encrypted value is not on one line"}
		}
		to := from + len(old)
		if _, isRemark := v.(remark); isRemark {
			// A comment in a list is encrypted as an item of it.
			from = bytes.LastIndexAny(d.text[:from], "-\n")
			if from < 0 || d.text[from] != '-' {
				return nil, &lineError{n.Line, "an encrypted comment is not an item of a list"}
			}
		}
		edits = append(edits, edit{cut{from, to}, literal})
	}
	for _, m := range sealedRemark.FindAllSubmatchIndex(d.text, -1) {
		c := cut{m[0], m[1]}
		if d.inMetadata(c) {
			continue
		}
		text, ok := comment(string(d.text[m[2]:m[3]]))
		if ok {
			text = "#" + text
		}
		edits = append(edits, edit{c, text})
	}
	return edited(d.text, edits)
}

// inMetadata reports whether a range is in the metadata, which is removed.
func (d *yamlDocument) inMetadata(c cut) bool {
	return slices.ContainsFunc(d.cuts, func(other cut) bool { return c.from >= other.from && c.from < other.to })
}

// edit replaces a range of a text.
type edit struct {
	cut
	text string
}

// edited returns a text with the edits applied.
func edited(text []byte, edits []edit) ([]byte, error) {
	sortBy(edits, func(e edit) int { return e.from })
	var out bytes.Buffer
	at := 0
	for _, e := range edits {
		if e.from < at {
			return nil, errors.New("encrypted values overlap")
		}
		out.Write(text[at:e.from])
		out.WriteString(e.text)
		at = e.to
	}
	out.Write(text[at:])
	return out.Bytes(), nil
}

// same checks that the resulting text decodes to the decrypted values.
func (d *yamlDocument) same(result []byte) error {
	dec := yaml.NewDecoder(bytes.NewReader(result))
	for _, want := range d.docs {
		var doc yaml.Node
		for {
			if err := dec.Decode(&doc); err != nil {
				return errors.New("it would be no valid YAML")
			}
			if doc.Content[0].Kind == yaml.MappingNode || len(want.Content) == 0 {
				break
			}
			doc = yaml.Node{}
		}
		if len(want.Content) > 0 && !d.equal(want, doc.Content[0]) {
			return errors.New("it would say something else")
		}
	}
	return nil
}

func (d *yamlDocument) equal(want, got *yaml.Node) bool {
	if v, edited := d.edits[want]; edited {
		var have any
		return got.Kind == yaml.ScalarNode && got.Decode(&have) == nil && equalValues(v, have)
	}
	content := slices.DeleteFunc(slices.Clone(want.Content), func(n *yaml.Node) bool {
		_, isRemark := d.edits[n].(remark)
		return isRemark
	})
	if len(content) == 0 && len(want.Content) > 0 {
		return got.Kind == yaml.ScalarNode && got.ShortTag() == "!!null" // the list contains only comments
	}
	return want.Kind == got.Kind && want.Value == got.Value && slices.EqualFunc(content, got.Content, d.equal)
}

// equalValues compares decoded YAML values. Times are equal if they are the same moment, and an integer
// equals the float of the same value.
func equalValues(a, b any) bool {
	if t, ok := a.(time.Time); ok {
		u, ok := b.(time.Time)
		return ok && t.Equal(u)
	}
	if f, ok := a.(float64); ok {
		switch b := b.(type) {
		case int:
			return float64(b) == f
		case float64:
			return b == f
		}
	}
	return a == b
}

// literalOf returns a value in a syntax with the same meaning in YAML and JSON.
func literalOf(v any) (string, error) {
	switch v := v.(type) {
	case string:
		if !utf8.ValidString(v) {
			return "", errors.New("a decrypted value is not UTF-8; encrypt such a file as binary")
		}
		var b bytes.Buffer
		enc := json.NewEncoder(&b)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			return "", errors.New("a decrypted value cannot be written")
		}
		var out strings.Builder
		for _, r := range strings.TrimSuffix(b.String(), "\n") {
			// JSON does not escape these, and YAML does not accept them.
			if r == 0x7f || r >= 0x80 && r < 0xa0 || r == 0xfeff || r == 0xfffe || r == 0xffff {
				fmt.Fprintf(&out, `\u%04x`, r)
				continue
			}
			out.WriteRune(r)
		}
		return out.String(), nil
	case int:
		return strconv.Itoa(v), nil
	case float64:
		text := strconv.FormatFloat(v, 'g', -1, 64)
		if !strings.ContainsAny(text, ".eIN") {
			text += ".0"
		}
		return text, nil
	case bool:
		return strconv.FormatBool(v), nil
	case time.Time:
		return v.Format(time.RFC3339Nano), nil
	case remark:
		return "#" + strings.ReplaceAll(string(v), "\n", " "), nil
	}
	return "", fmt.Errorf("a decrypted value has the type %T", v)
}
