package userdata

import (
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// scalar returns a value as a plain YAML scalar if it parses to the same string, and in double quotes
// otherwise. Words such as true stay plain, because users write them for cloud-init modules that need a
// boolean.
func scalar(v string) string {
	if isPlain(v, "k: "+v) {
		return v
	}
	return quoted(v)
}

// mapKey is like scalar, for a mapping key.
func mapKey(v string) string {
	var doc yaml.Node
	if oneLine(v) && yaml.Unmarshal([]byte(v+": x"), &doc) == nil {
		if m := content(&doc); m != nil && m.Kind == yaml.MappingNode && len(m.Content) == 2 && m.Content[0].Value == v && m.Content[0].Style == 0 && m.Content[0].ShortTag() == "!!str" {
			return v
		}
	}
	return quoted(v)
}

// isPlain reports whether text, a mapping with v as its only value, parses to v.
func isPlain(v, text string) bool {
	var doc yaml.Node
	if !oneLine(v) || yaml.Unmarshal([]byte(text), &doc) != nil {
		return false
	}
	m := content(&doc)
	if m == nil || m.Kind != yaml.MappingNode || len(m.Content) != 2 {
		return false
	}
	s := m.Content[1]
	return s.Kind == yaml.ScalarNode && s.Style == 0 && s.Value == v && s.Anchor == "" && s.LineComment == "" && s.ShortTag() != "!!null"
}

// isText reports whether a plain scalar v is a string in both YAML 1.1 and 1.2, and not a number, a boolean
// or a time. It returns false for most values that start with a digit, sign or dot, because version 1.1 has
// numbers such as 1_000, 0o17 and 1:30.
func isText(v string) bool {
	var doc yaml.Node
	if v == "" || strings.ContainsRune("0123456789+-.", rune(v[0])) && !strings.ContainsAny(v, " /") {
		return false
	}
	if slices.Contains([]string{"y", "n", "yes", "no", "on", "off"}, strings.ToLower(v)) || yaml.Unmarshal([]byte(v), &doc) != nil {
		return false
	}
	s := content(&doc)
	return s != nil && s.ShortTag() == "!!str"
}

func content(doc *yaml.Node) *yaml.Node {
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil
	}
	return doc.Content[0]
}

func oneLine(v string) bool { return v != "" && !strings.ContainsAny(v, "\n\r\x00\u0085\u2028\u2029") }

// quoted returns text in double quotes. All escapes of Go are also valid in YAML.
func quoted(v string) string { return strconv.Quote(v) }

func singleQuoted(v string) string {
	if strings.ContainsAny(v, "'\n\r") || !printable(v) {
		return quoted(v)
	}
	return "'" + v + "'"
}

// fitsBlock reports whether a literal block preserves text, except for one line feed at its end.
func fitsBlock(text string) bool {
	if text != "" && strings.ContainsRune(" \t\n", rune(text[0])) {
		return false // the indentation would be ambiguous
	}
	last := text[strings.LastIndex(text, "\n")+1:]
	if strings.HasSuffix(text, "\n\n") || (text != "" && last != "" && strings.TrimSpace(last) == "") {
		return false // blank lines at the end would be lost
	}
	return printable(text)
}

func printable(text string) bool {
	if !utf8.ValidString(text) {
		return false
	}
	return !strings.ContainsFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' && !unicode.IsPrint(r) || r == '\u0085' || r == '\u2028' || r == '\u2029' || r == '\ufeff'
	})
}
