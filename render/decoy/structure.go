package decoy

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// base64 is the decoy of a text in base64, and what looks like it.
func (m *Maker) base64(text string, depth int) (string, bool) {
	if len(text)%4 != 0 {
		return "", false
	}
	plain, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || bytes.ContainsAny([]byte(text), "\r\n") {
		return "", false
	}
	if readable(plain) {
		return base64.StdEncoding.EncodeToString([]byte(m.text(string(plain), depth))), true
	}
	if len(text) < leastEncoded && strings.Trim(text, "=") == text {
		return "", false // a word
	}
	return base64.StdEncoding.EncodeToString(opaqueBytes(plain)), true
}

// leastEncoded is the length from which on letters that decode to no text are taken
// for base64.
const leastEncoded = 16

// opaqueBytes are other bytes, no readable text like the ones before.
func opaqueBytes(plain []byte) []byte {
	s := newSource(string(plain))
	out := make([]byte, len(plain))
	for i, c := range plain {
		// Another one in each part that a character of base64 holds, as for choices.
		for out[i] = c; (out[i]^c)&3 == 0 || (out[i]^c)>>6 == 0; {
			out[i] = byte(s.IntN(256))
		}
	}
	return out
}

func readable(plain []byte) bool {
	if len(plain) == 0 || !utf8.Valid(plain) {
		return false
	}
	return bytes.IndexFunc(plain, func(r rune) bool { return unicode.IsControl(r) && r != '\n' && r != '\r' && r != '\t' }) < 0
}

// largest is the size from which on a text is not parsed: lines are enough.
const largest = 256 << 10

// json is the decoy of an object or an array in JSON, with its white space.
func (m *Maker) json(text string, depth int) (string, bool) {
	trimmed := strings.TrimSpace(text)
	if len(trimmed) < 2 || len(text) > largest || trimmed[0] != '{' && trimmed[0] != '[' || !json.Valid([]byte(text)) {
		return "", false
	}
	var out strings.Builder
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	type level struct {
		names *names // nil in an array
		value bool   // a name was read
	}
	var levels []level
	at := 0
	for {
		token, err := dec.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", false
		}
		end := int(dec.InputOffset())
		top := len(levels) - 1
		isName := top >= 0 && levels[top].names != nil && !levels[top].value
		literal := ""
		switch t := token.(type) {
		case json.Delim:
			isName = false
			switch t {
			case '{':
				levels = append(levels, level{names: m.names()})
			case '[':
				levels = append(levels, level{})
			default:
				levels = levels[:top]
				top = len(levels) - 1
			}
			literal = t.String()
			if t == '{' || t == '[' {
				top = -1 // the value is not whole yet
			}
		case string:
			if isName {
				literal = quoted(levels[top].names.of(t))
			} else {
				literal = quoted(m.text(t, depth))
			}
		case json.Number:
			literal = otherDigits(t.String())
		case bool:
			literal = map[bool]string{true: "false", false: "true"}[t]
		case nil:
			literal = "null"
		}
		// Between this token and the one before stand white space, commas and colons.
		start := at + strings.IndexFunc(text[at:end], func(r rune) bool { return !strings.ContainsRune(" \t\r\n,:", r) })
		out.WriteString(text[at:start] + literal)
		at = end
		if top >= 0 && levels[top].names != nil {
			levels[top].value = isName
		}
	}
	out.WriteString(text[at:])
	return out.String(), true
}

func quoted(text string) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if enc.Encode(text) != nil {
		return `""`
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// maybeYAML matches text that could be a mapping or a sequence. A text of one line is
// more often a password with a colon than a mapping without a value.
var maybeYAML = regexp.MustCompile(`^\s*[\[{]|^\s*[^\s:]+:[ \t]+\S|[:?-]([ \t].*)?\n|\n.*[:?-]([ \t\n]|$)`)

// yaml is the decoy of mappings and sequences in YAML.
func (m *Maker) yaml(text string, depth int) (string, bool) {
	if len(text) > largest || !maybeYAML.MatchString(text) {
		return "", false
	}
	var docs []*yaml.Node
	dec := yaml.NewDecoder(strings.NewReader(text))
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil || len(doc.Content) != 1 || doc.Content[0].Kind == yaml.ScalarNode || len(docs) > 100 {
			return "", false
		}
		docs = append(docs, &doc)
	}
	if len(docs) == 0 {
		return "", false
	}
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	for _, doc := range docs {
		m.node(doc, depth)
		if enc.Encode(doc) != nil {
			return "", false
		}
	}
	if enc.Close() != nil {
		return "", false
	}
	return strings.TrimRight(out.String(), "\n") + text[len(strings.TrimRight(text, "\n")):], true
}

func (m *Maker) node(n *yaml.Node, depth int) {
	for _, comment := range []*string{&n.HeadComment, &n.LineComment, &n.FootComment} {
		if *comment != "" {
			*comment = m.lines(*comment, depth)
		}
	}
	if n.Anchor != "" {
		n.Anchor = m.name(n.Anchor, 0)
	}
	switch n.Kind {
	case yaml.AliasNode:
		n.Value = m.name(n.Value, 0)
		return
	case yaml.ScalarNode:
		switch n.ShortTag() {
		case "!!null":
		case "!!timestamp":
			n.Value = otherDigits(n.Value)
		default:
			n.Value = m.text(n.Value, depth)
		}
	}
	names := m.names()
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && c.Kind == yaml.ScalarNode {
			if c.Tag != "!!merge" {
				c.Value = names.of(c.Value)
			}
			continue
		}
		m.node(c, depth)
	}
}
