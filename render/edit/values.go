package edit

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render/intent"
)

// normal returns a value in the form that YAML decoding produces. ok is false for values that YAML cannot
// express, and for strings that are not printable.
func normal(v any) (out any, ok bool) {
	text, err := yaml.Marshal(v)
	if err != nil || yaml.Unmarshal(text, &out) != nil {
		return nil, false
	}
	return out, printable(out)
}

// printable reports whether all texts of a value, keys included, are valid UTF-8 with only printable
// characters.
func printable(v any) bool {
	switch at := v.(type) {
	case string:
		return utf8.ValidString(at) && !strings.ContainsFunc(at, func(r rune) bool { return !unicode.IsPrint(r) })
	case []any:
		return !slices.ContainsFunc(at, func(x any) bool { return !printable(x) })
	case map[string]any:
		for k, x := range at {
			if !printable(k) || !printable(x) {
				return false
			}
		}
	}
	return true
}

// single reports whether a value fits on one line without brackets.
func single(v any) bool {
	switch v.(type) {
	case nil, []any, map[string]any:
		return false
	}
	return true
}

// flow returns a value on one line. A list or a mapping is written as JSON, which is valid YAML.
func flow(v any) string {
	if text, is := v.(string); is {
		return scalar(text)
	}
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "null" // it was decoded from YAML with string keys; a wrong result would fail the proof
	}
	return strings.TrimSpace(out.String())
}

// nested returns the lines of nested mappings with a value in the innermost.
func nested(keys intent.Path, value any, indent int) (lines []string) {
	for i, key := range keys {
		before := strings.Repeat(" ", indent+2*i)
		line := before + scalar(key) + ":"
		if i < len(keys)-1 {
			lines = append(lines, line)
			continue
		}
		if single(value) || value == nil {
			lines = append(lines, line+" "+flow(value))
			continue
		}
		var out bytes.Buffer
		e := yaml.NewEncoder(&out)
		e.SetIndent(2)
		if err := e.Encode(map[string]any{key: value}); err != nil {
			return append(lines, line+" null") // as in flow
		}
		for text := range strings.Lines(out.String()) {
			lines = append(lines, before+strings.TrimSuffix(text, "\n"))
		}
	}
	return lines
}

// mapEntry is an entry of a mapping.
type mapEntry struct{ in, key, value *yaml.Node }

// exchange replaces the value of an entry, in braces or in block style. It returns false if it cannot find
// the value in the text.
func exchange(content []byte, at mapEntry, value any) ([]byte, bool) {
	if at.in.Style&yaml.FlowStyle != 0 {
		from, to, ok := flowSpan(content, at.value)
		if !ok {
			return nil, false
		}
		return slices.Concat(content[:from], []byte(flow(value)), content[to:]), true
	}
	lines := newLines(content)
	from, to := at.key.Line-1, lines.end(at.key.Line, at.key.Column)
	before, ok := offset(content, at.key.Line, at.key.Column)
	start, _ := offset(content, at.key.Line, 1)
	if !ok || from >= len(lines.text) {
		return nil, false
	}
	now := nested(intent.Path{at.key.Value}, value, at.key.Column-1)
	now[0] = string(content[start:before]) + strings.TrimLeft(now[0], " ") // after a dash, if there is one
	lines.text = slices.Delete(lines.text, from, to)
	return lines.insert(from, now), true
}

// takeOut removes the last entry on a path, and mappings that would become empty.
func takeOut(content []byte, way []mapEntry) ([]byte, bool) {
	n := len(way) - 1
	for n > 0 && len(way[n].in.Content) == 2 {
		n--
	}
	at := way[n]
	if at.in.Style&yaml.FlowStyle != 0 {
		from, ok := offset(content, at.key.Line, at.key.Column)
		_, to, is := flowSpan(content, at.value)
		if !ok || !is {
			return nil, false
		}
		rest := bytes.TrimLeft(content[to:], " ")
		if bytes.HasPrefix(rest, []byte(",")) {
			rest = bytes.TrimLeft(rest[1:], " ")
			return slices.Concat(content[:from], rest), true
		}
		return slices.Concat(bytes.TrimSuffix(bytes.TrimRight(content[:from], " "), []byte(",")), rest), true
	}
	lines := newLines(content)
	from, to := at.key.Line-1, lines.end(at.key.Line, at.key.Column)
	if from >= len(lines.text) || strings.TrimSpace(lines.text[from][:min(at.key.Column-1, len(lines.text[from]))]) != "" {
		return nil, false // the entry follows a dash
	}
	lines.text = slices.Delete(lines.text, from, to)
	return lines.bytes(), true
}

// flowSpan returns the byte range of a value in a mapping in braces.
func flowSpan(content []byte, n *yaml.Node) (from, to int, ok bool) {
	from, ok = offset(content, n.Line, n.Column)
	if !ok || from >= len(content) {
		return 0, 0, false
	}
	depth, quote := 0, byte(0)
	for to = from; to < len(content); to++ {
		c := content[to]
		switch {
		case quote != 0:
			if c == '\\' && quote == '"' {
				to++
			} else if c == quote {
				quote = 0
			}
		case c == '"' || c == '\'' && (to == from || bytes.IndexByte([]byte(" ,[{:"), content[to-1]) >= 0):
			quote = c
		case c == '[' || c == '{':
			depth++
		case (c == ']' || c == '}' || c == ',') && depth == 0:
			return from, from + len(bytes.TrimRight(content[from:to], " \r\n")), true
		case c == ']' || c == '}':
			depth--
		}
	}
	return 0, 0, false
}
