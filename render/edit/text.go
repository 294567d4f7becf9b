package edit

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render/intent"
)

// documents returns the root nodes of a file's documents, or nil if it is not YAML.
func documents(content []byte) (out []*yaml.Node) {
	d := yaml.NewDecoder(bytes.NewReader(content))
	for {
		var n yaml.Node
		switch err := d.Decode(&n); {
		case errors.Is(err, io.EOF):
			return out
		case err != nil:
			return nil
		case len(n.Content) == 1:
			out = append(out, n.Content[0])
		}
	}
}

// nodeAt returns the value at keys of nested mappings.
func nodeAt(n *yaml.Node, keys ...string) *yaml.Node {
	for _, key := range keys {
		if _, n = entry(n, key); n == nil {
			return nil
		}
	}
	return n
}

// entry returns the key and value nodes of a mapping's key.
func entry(n *yaml.Node, key string) (k, v *yaml.Node) {
	if n == nil || n.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i], n.Content[i+1]
		}
	}
	return nil, nil
}

// scalar returns a string as a YAML scalar on one line.
func scalar(text string) string {
	out, err := yaml.Marshal(text)
	if line := strings.TrimSuffix(string(out), "\n"); err == nil && !strings.Contains(line, "\n") {
		return line
	}
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(text) + `"`
}

// offset returns the byte offset of a line and a column, which counts characters.
func offset(content []byte, line, column int) (int, bool) {
	at := 0
	for range line - 1 {
		n := bytes.IndexByte(content[at:], '\n')
		if n < 0 {
			return 0, false
		}
		at += n + 1
	}
	for range column - 1 {
		_, n := utf8.DecodeRune(content[at:])
		if n == 0 || content[at] == '\n' {
			return 0, false
		}
		at += n
	}
	return at, true
}

// replace replaces a scalar on one line with another value. It keeps the quotes.
func replace(content []byte, line, column int, had string, value any) ([]byte, bool) {
	at, ok := offset(content, line, column)
	if !ok || at >= len(content) {
		return nil, false
	}
	rest, _, _ := bytes.Cut(content[at:], []byte("\n"))
	length, now := 0, flow(value)
	switch quote := rest[:min(1, len(rest))]; string(quote) {
	case `"`, "'":
		end := bytes.IndexByte(rest[1:], quote[0])
		if end < 0 || bytes.ContainsRune(rest[1:1+end], '\\') || bytes.HasPrefix(rest[2+end:], quote) {
			return nil, false
		}
		length = end + 2
		if text, is := value.(string); is && plainValue.MatchString(text) {
			at, length, now = at+1, end, text
		}
	default:
		after, is := bytes.CutPrefix(rest, []byte(had))
		if had == "" || !is || len(after) > 0 && !strings.ContainsRune(" \t\r,]}", rune(after[0])) {
			return nil, false
		}
		length = len(had)
	}
	return slices.Concat(content[:at], []byte(now), content[at+length:]), true
}

// insert sets a field of a document in a file. It replaces the existing value, or adds it below the existing
// part of the path. Nil removes the field. If the field is missing, nil adds it as null, which means the same
// in a patch.
func insert(content []byte, its func(doc *yaml.Node) bool, field intent.Path, value any) ([]byte, bool) {
	docs := documents(content)
	i := slices.IndexFunc(docs, its)
	if i < 0 {
		return nil, false
	}
	var key *yaml.Node // of n
	n := docs[i]
	var way []mapEntry
	for len(field) > 0 {
		k, v := entry(n, field[0])
		if v == nil {
			break
		}
		way = append(way, mapEntry{n, k, v})
		if key, n, field = k, v, field[1:]; n.Kind != yaml.MappingNode {
			break
		}
	}
	if len(field) == 0 && value == nil {
		return takeOut(content, way)
	} else if len(field) == 0 {
		return exchange(content, way[len(way)-1], value)
	}
	return addBelow(content, n, key, field, value)
}

// addBelow adds the missing part of a path below the existing node n. key is the key of n, or nil if n is the
// document.
func addBelow(content []byte, n, key *yaml.Node, field intent.Path, value any) ([]byte, bool) {
	lines := newLines(content)
	empty := n.Kind == yaml.ScalarNode && n.Tag == "!!null" && n.Value == ""
	switch {
	case n.Kind != yaml.MappingNode && !empty, slices.ContainsFunc(field, func(elem string) bool { _, is := index(elem); return is }):
		return nil, false
	case empty:
		return lines.insert(key.Line, nested(field, value, key.Column+1)), true
	case n.Style&yaml.FlowStyle != 0:
		at, ok := offset(content, n.Line, n.Column)
		if !ok || at >= len(content) || content[at] != '{' {
			return nil, false
		}
		text := ""
		for _, elem := range field {
			text += "{" + scalar(elem) + ": "
		}
		text = text[1:] + flow(value) + strings.Repeat("}", len(field)-1)
		if len(n.Content) > 0 {
			text += ", "
		}
		return slices.Concat(content[:at+1], []byte(text), content[at+1:]), true
	case len(n.Content) == 0:
		return nil, false
	case key == nil: // after the metadata, or at the end
		last := n.Content[len(n.Content)-2]
		if meta, _ := entry(n, "metadata"); meta != nil {
			last = meta
		}
		return lines.insert(lines.end(last.Line, last.Column), nested(field, value, n.Content[0].Column-1)), true
	case n.Content[0].Line <= key.Line:
		return nil, false
	}
	return lines.insert(key.Line, nested(field, value, n.Content[0].Column-1)), true
}

// insertInScalar is like insert, for a document that is the text of a literal block.
func insertInScalar(content []byte, n *yaml.Node, its func(doc *yaml.Node) bool, field intent.Path, value any) ([]byte, bool) {
	if n.Style&yaml.LiteralStyle == 0 || n.Value == "" {
		return nil, false
	}
	lines := newLines(content)
	first, _, _ := strings.Cut(strings.TrimLeft(n.Value, "\n"), "\n")
	at := n.Line // index of the block's first line, from 0
	for at < len(lines.text) && strings.TrimSpace(lines.text[at]) == "" {
		at++
	}
	if at >= len(lines.text) || !strings.HasSuffix(lines.text[at], first) {
		return nil, false
	}
	indent := strings.TrimSuffix(lines.text[at], first)
	if strings.Trim(indent, " ") != "" {
		return nil, false
	}
	end := at
	for end < len(lines.text) && (strings.HasPrefix(lines.text[end], indent) || strings.TrimSpace(lines.text[end]) == "") {
		end++
	}
	var block []string
	for _, line := range lines.text[at:end] {
		block = append(block, strings.TrimPrefix(line, indent))
	}
	was := strings.Join(block, "\n")
	now, ok := insert([]byte(was), its, field, value)
	if !ok {
		return nil, false
	}
	block = strings.Split(string(now), "\n")
	for i, line := range block {
		if strings.TrimSpace(line) != "" {
			block[i] = indent + line
		}
	}
	lines.text = slices.Concat(lines.text[:at], block, lines.text[end:])
	return lines.bytes(), true
}

// addPatch adds an entry at the end of a kustomization's patches.
func addPatch(content []byte, doc *yaml.Node, item []string) ([]byte, bool) {
	lines := newLines(content)
	key, list := entry(doc, "patches")
	if key == nil {
		if len(doc.Content) == 0 {
			return nil, false
		}
		last := doc.Content[len(doc.Content)-2]
		return lines.insert(lines.end(last.Line, last.Column), append([]string{"patches:"}, item...)), true
	}
	indent := ""
	switch {
	case list.Kind != yaml.SequenceNode:
		return nil, false
	case list.Style&yaml.FlowStyle != 0:
		at, ok := offset(content, list.Line, list.Column)
		if !ok || len(list.Content) > 0 || !bytes.HasPrefix(content[at:], []byte("[]")) {
			return nil, false
		}
		lines = newLines(slices.Concat(bytes.TrimRight(content[:at], " "), content[at+2:]))
	default:
		indent = strings.Repeat(" ", list.Column-1)
	}
	for i, line := range item {
		item[i] = indent + line
	}
	return lines.insert(lines.end(key.Line, key.Column), item), true
}

// textLines has the lines of a file, without line ends.
type textLines struct {
	text []string
	crlf bool // lines end with CR LF
}

func newLines(content []byte) *textLines {
	l := &textLines{text: strings.Split(string(content), "\n")}
	l.crlf = len(l.text) > 1 && strings.HasSuffix(l.text[0], "\r")
	return l
}

func (l *textLines) bytes() []byte { return []byte(strings.Join(l.text, "\n")) }

// insert inserts lines after the given number of lines.
func (l *textLines) insert(after int, add []string) []byte {
	add = slices.Clone(add)
	if l.crlf {
		for i := range add {
			add[i] += "\r"
		}
	}
	if after >= len(l.text) { // the last line has no line end
		add = append(add, "")
	}
	l.text = slices.Insert(l.text, min(after, len(l.text)), add...)
	return l.bytes()
}

// end returns the last line of the value of a key at a line and a column of a block.
func (l *textLines) end(line, column int) int {
	last := line
	for i := line; i < len(l.text); i++ {
		text := strings.TrimRight(l.text[i], " \t\r")
		body := strings.TrimLeft(text, " ")
		deep := len(text) - len(body)
		switch {
		case body == "", deep < column && body[0] == '#':
		case deep >= column, deep == column-1 && (body == "-" || strings.HasPrefix(body, "- ")):
			last = i + 1
		default:
			return last
		}
	}
	return last
}
