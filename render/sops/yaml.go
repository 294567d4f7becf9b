package sops

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// member is the key of the metadata.
const member = "sops"

// yamlDocument is a YAML or JSON file. Values are replaced in the text, not in a rewritten tree. So every
// line keeps its number, and findings about a decrypted file have the line numbers that the author sees.
type yamlDocument struct {
	text  []byte
	lines []int // the offsets of the lines
	json  bool
	docs  []*yaml.Node // the mappings, without the metadata
	cuts  []cut        // the parts to remove
	meta  *metadata
	edits map[*yaml.Node]any
	open  map[*yaml.Node]bool // the nodes that are not secret
}

// cut is a range of the text to leave out.
type cut struct{ from, to int }

// Limits of a document, in addition to the limit of the file's size.
const (
	maxDepth = 100
	maxNodes = 200_000
	// maxMetadata bounds the nodes of the metadata, because the YAML library's time grows with the square of
	// the number of keys in a mapping.
	maxMetadata = 5_000
)

// loadYAML parses an encrypted YAML or JSON file. The error is errPlain if the file is no valid YAML, or
// has no metadata of SOPS.
func loadYAML(text []byte) (*yamlDocument, error) {
	d := &yamlDocument{text: text, json: bytes.HasPrefix(bytes.TrimSpace(text), []byte("{")), edits: map[*yaml.Node]any{}, open: map[*yaml.Node]bool{}}
	d.lines = []int{0}
	for i, c := range text {
		if c == '\n' {
			d.lines = append(d.lines, i+1)
		}
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, errPlain // the build reports its fault
		}
		root := doc.Content[0]
		if root.Kind != yaml.MappingNode {
			continue
		}
		d.docs = append(d.docs, root)
		for i := 0; i+1 < len(root.Content); i += 2 {
			if key, value := root.Content[i], root.Content[i+1]; key.Value == member && value.Kind == yaml.MappingNode {
				if err := d.takeMetadata(root, i); err != nil {
					return nil, err
				}
				break
			}
		}
	}
	if d.meta == nil {
		return nil, errPlain
	}
	return d, nil
}

// takeMetadata removes the metadata from a mapping.
func (d *yamlDocument) takeMetadata(root *yaml.Node, i int) error {
	key, value := root.Content[i], root.Content[i+1]
	if d.meta == nil {
		if n, depth := size(value, 0); n > maxMetadata || depth > maxDepth {
			return &lineError{key.Line, "the metadata is too large"}
		}
		var raw map[string]any
		if err := value.Decode(&raw); err != nil {
			return &lineError{key.Line, "the metadata is not a mapping of texts"}
		}
		if str(raw["mac"]) == "" {
			return errPlain // another member with this name
		}
		m, err := readMetadata(raw)
		if err != nil {
			return &lineError{key.Line, err.Error()}
		}
		m.line, m.macLine = key.Line, key.Line
		for j := 0; j+1 < len(value.Content); j += 2 {
			if value.Content[j].Value == "mac" {
				m.macLine = value.Content[j].Line
			}
		}
		d.meta = m
	}
	c, err := d.metadataExtent(root, i)
	if err != nil {
		return err
	}
	d.cuts = append(d.cuts, c)
	root.Content = append(root.Content[:i:i], root.Content[i+2:]...)
	return nil
}

// size returns the number of nodes and levels without following aliases.
func size(n *yaml.Node, level int) (nodes, depth int) {
	nodes, depth = 1, level+1
	if level > maxDepth {
		return nodes, depth
	}
	for _, c := range n.Content {
		m, deep := size(c, level+1)
		nodes, depth = nodes+m, max(depth, deep)
	}
	return nodes, depth
}

// documentEnd returns the position of the line that ends a document in a text, or -1.
func documentEnd(text []byte) int {
	at := 0
	for line := range bytes.Lines(text) {
		if bytes.HasPrefix(line, []byte("---")) || bytes.HasPrefix(line, []byte("...")) {
			if len(line) == 3 || bytes.IndexByte([]byte(" \t\r\n"), line[3]) >= 0 {
				return at
			}
		}
		at += len(line)
	}
	return -1
}

// metadataExtent returns the range of the text of the metadata, whose key is root.Content[i]. In a mapping in
// braces, it searches for the member sops.
func (d *yamlDocument) metadataExtent(root *yaml.Node, i int) (cut, error) {
	if root.Style&yaml.FlowStyle != 0 {
		return jsonExtent(d.text)
	}
	from := d.offset(root.Content[i].Line, 1)
	to := len(d.text)
	if i+2 < len(root.Content) {
		to = d.offset(root.Content[i+2].Line, 1)
	}
	if end := documentEnd(d.text[from:to]); end >= 0 {
		to = from + end
	}
	return cut{from, to}, nil
}

// jsonExtent returns the range of the member sops in a JSON object, including one comma.
func jsonExtent(text []byte) (cut, error) {
	dec := json.NewDecoder(bytes.NewReader(text))
	odd := errors.New("a mapping in braces must be JSON")
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return cut{}, odd
	}
	for dec.More() {
		before := int(dec.InputOffset())
		key, err := dec.Token()
		if err != nil {
			return cut{}, odd
		}
		var skipped json.RawMessage
		if err := dec.Decode(&skipped); err != nil {
			return cut{}, odd
		}
		if key != member {
			continue
		}
		c := cut{before, int(dec.InputOffset())}
		if rest := bytes.TrimLeft(text[before:], " \t\r\n"); len(rest) > 0 && rest[0] != ',' {
			// It is the first member, so the comma after it must be removed.
			after := text[c.to:]
			if next := bytes.TrimLeft(after, " \t\r\n"); len(next) > 0 && next[0] == ',' {
				c.to += len(after) - len(next) + 1
			}
		}
		return c, nil
	}
	return cut{}, odd
}

// offset returns the offset of a line and column. Both start at 1, and columns count characters.
func (d *yamlDocument) offset(line, column int) int {
	if line < 1 || line > len(d.lines) {
		return len(d.text)
	}
	at := d.lines[line-1]
	for ; column > 1 && at < len(d.text); column-- {
		_, n := utf8.DecodeRune(d.text[at:])
		at += n
	}
	return at
}

func (d *yamlDocument) metadata() *metadata { return d.meta }

func (d *yamlDocument) walk(visit func(path []string, v *value) error) error {
	nodes := 0
	for _, root := range d.docs {
		object := text(root, "apiVersion") != "" && text(root, "kind") != ""
		w := walker{document: d, visit: visit, object: object, nodes: &nodes}
		if err := w.node(root, nil, 0); err != nil {
			return err
		}
	}
	return nil
}

type walker struct {
	document *yamlDocument
	visit    func(path []string, v *value) error
	object   bool // the document is a Kubernetes object
	nodes    *int
}

// node visits the values below a node, in the order of the MAC. List items have the path of their list.
// Aliases are followed, and the number of nodes is bounded.
func (w *walker) node(n *yaml.Node, path []string, depth int) error {
	if *w.nodes++; *w.nodes > maxNodes || depth > maxDepth {
		return &lineError{n.Line, "the document is too large or too deep"}
	}
	switch n.Kind {
	case yaml.AliasNode:
		return w.node(n.Alias, path, depth+1)
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if err := w.node(n.Content[i+1], append(path[:len(path):len(path)], n.Content[i].Value), depth+1); err != nil {
				return err
			}
		}
	case yaml.SequenceNode:
		for _, c := range n.Content {
			if err := w.node(c, path, depth+1); err != nil {
				return err
			}
		}
	case yaml.ScalarNode:
		return w.scalar(n, path)
	}
	return nil
}

// scalar visits one value, and records the change if visit changes it.
func (w *walker) scalar(n *yaml.Node, path []string) error {
	var before any
	if err := n.Decode(&before); err != nil {
		return &lineError{n.Line, "a value cannot be read"}
	}
	if before == nil {
		return nil // null is neither encrypted nor signed
	}
	v := &value{typed: before, line: n.Line, open: w.object && identity(path)}
	if err := w.visit(path, v); err != nil {
		return err
	}
	if v.typed != before {
		w.document.edits[n], w.document.open[n] = v.typed, v.open
	}
	return nil
}

// identity reports whether a path is an identifying field of a Kubernetes object. SOPS encrypts these fields
// too unless its rules exclude them, but they are not secret.
func identity(path []string) bool {
	switch path[0] {
	case "apiVersion", "kind", "metadata", "type", "immutable":
		return true
	}
	return false
}

func text(m *yaml.Node, name string) string {
	for i := 0; i+1 < len(m.Content); i += 2 {
		if m.Content[i].Value == name {
			return m.Content[i+1].Value
		}
	}
	return ""
}
