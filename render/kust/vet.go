package kust

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/strict"
	"go.yaml.in/yaml/v3"
)

// location is the place of a YAML text: a file, or a scalar in a file.
type location struct {
	file string
	// scalar contains the text if it is an inline patch. It is nil for a whole file.
	scalar *yaml.Node
	// source is the file's content. It serves to determine the indentation of a block scalar.
	source []byte
}

// at converts a line and column of the text to a position in the file.
func (p location) at(line, column int) diag.Position {
	if p.scalar == nil {
		return diag.Position{File: p.file, Line: line, Column: column}
	}
	return scalarPosition(p, line, column)
}

func (p location) node(n *yaml.Node) diag.Position { return p.at(n.Line, n.Column) }

// scalarPosition converts a line and column in the text of a scalar to a position in the file. It is exact
// for a literal block. Other styles fold or escape lines, so it returns the position of the scalar.
func scalarPosition(p location, line, column int) diag.Position {
	own := diag.Position{File: p.file, Line: p.scalar.Line, Column: p.scalar.Column}
	if p.scalar.Style&yaml.LiteralStyle == 0 || line < 1 {
		return own
	}
	text := strings.Split(p.scalar.Value, "\n")
	source := strings.Split(string(p.source), "\n")
	at := p.scalar.Line + line // the text starts on the line after the indicator
	if line > len(text) || at > len(source) {
		return own
	}
	indent := len(strings.TrimRight(source[at-1], "\r")) - len(text[line-1])
	if indent < 0 || column < 1 {
		return diag.Position{File: p.file, Line: at}
	}
	return diag.Position{File: p.file, Line: at, Column: indent + column}
}

// splitAmbiguity matches a line that separates documents for kustomize but not for YAML. weir and
// kustomize would see different documents.
var splitAmbiguity = lazyregexp.New(`\n---#`)

// parse parses all documents of a YAML text. It refuses everything that is not safe for kustomize: syntax
// errors, aliases that refer to themselves or expand too much, deep nesting, duplicate keys. It returns the
// root nodes of documents that can be checked further. ok is true if it added no diagnostic.
func (r *reader) parse(text []byte, p location) (docs []*yaml.Node, ok bool) {
	before := len(r.diags)
	if loc := splitAmbiguity.FindIndex(text); loc != nil {
		line := bytes.Count(text[:loc[0]+1], []byte("\n")) + 1
		r.add("yaml-syntax", p.at(line, 1), "a document separator is not followed by a space",
			"Write \"---\" alone on its line, or with a space before the comment.")
		return nil, false
	}
	if line, column, summary := strict.Undecodable(text); line > 0 {
		r.add("yaml-syntax", p.at(line, column), summary, strict.UndecodableHint)
		return nil, false
	}
	if line := oversized(text, r.view.lim.DocumentBytes); line > 0 {
		r.report(tooLarge(p.at(line, 1), fmt.Sprintf("the document has more than %d bytes", r.view.lim.DocumentBytes)))
		return nil, false
	}
	dec := yaml.NewDecoder(bytes.NewReader(text))
	for {
		if r.tooMany(r.nodes) {
			r.overfull(p.file)
			return nil, false
		}
		var doc yaml.Node
		err := dec.Decode(&doc)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			line, msg := strict.SyntaxError(err, text)
			r.add("yaml-syntax", p.at(line, 0), "not valid YAML: "+msg, syntaxHint(text, line))
			return nil, false
		}
		r.nodes += nodesPerDocument
		if len(doc.Content) != 1 || isNull(doc.Content[0]) {
			continue
		}
		if r.vet(doc.Content[0], p) {
			docs = append(docs, doc.Content[0])
		}
		if len(r.diags) > before+maxFaultsPerFile {
			break
		}
	}
	return docs, len(r.diags) == before
}

// oversized returns the line of the first document with more bytes than limit, or 0. The size matters because
// a document is parsed completely before its nodes are counted.
func oversized(text []byte, limit int64) int {
	if int64(len(text)) <= limit {
		return 0
	}
	line, began := 1, 1
	size := int64(0)
	for l := range bytes.Lines(text) {
		if rest, ok := bytes.CutPrefix(l, []byte("---")); ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0) {
			began, size = line, 0
		}
		if size += int64(len(l)); size > limit {
			return began
		}
		line++
	}
	return 0
}

// nodesPerDocument is the overhead of a document, in nodes.
const nodesPerDocument = 8

// maxFaultsPerFile bounds the findings about one file, so that a hostile file cannot fill a report.
const maxFaultsPerFile = 20

func syntaxHint(text []byte, line int) string {
	lines := strings.Split(string(text), "\n")
	for i := max(line-2, 0); i < min(line, len(lines)); i++ {
		if flowVariable.MatchString(lines[i]) {
			return "Inside { } or [ ] a variable must be quoted: {a: \"${N}\"}."
		}
		if strings.HasPrefix(strings.TrimLeft(lines[i], " "), "\t") {
			return "Indent with spaces; YAML allows no tabs."
		}
	}
	return ""
}

var flowVariable = lazyregexp.New(`[{\[].*[^"'$]\$\{`)

// vet walks one document once, without expanding its aliases. It reports whether size and aliases are within
// the limits.
func (r *reader) vet(root *yaml.Node, p location) bool {
	s := &vetting{r: r, p: p, anchored: map[*yaml.Node]extent{}}
	whole := s.visit(root, 1)
	r.nodes += s.plain
	if s.stopped {
		return false
	}
	if whole.size-s.plain > r.view.lim.AliasNodes {
		r.add("yaml-alias", p.node(root),
			fmt.Sprintf("the aliases of this document stand for more than %d nodes", r.view.lim.AliasNodes),
			"Write out what the aliases repeat, or split the file.")
		return false
	}
	return true
}

// vetting is the walk over one document.
type vetting struct {
	r        *reader
	p        location
	anchored map[*yaml.Node]extent // nodes that aliases can refer to
	plain    int                   // nodes without aliases expanded
	faults   int
	stopped  bool
}

// extent is the size of a node with its aliases expanded.
type extent struct {
	size   int // nodes, capped
	height int
	ended  bool // false while the walk is below the node
}

// sizeCap ends sums well before they overflow.
const sizeCap = 1 << 40

// visit checks a node and the nodes below it: their number, their depth, also with aliases expanded, their
// keys, and that no alias contains itself. It returns the extent of the node. After a fault that stops the
// walk, the extent is empty.
func (s *vetting) visit(n *yaml.Node, level int) extent {
	if s.stopped {
		return extent{}
	}
	if s.plain++; s.r.tooMany(s.r.nodes + s.plain) {
		s.stopped = true
		s.r.overfull(s.p.file)
		return extent{}
	}
	if level > s.r.view.lim.Depth {
		s.tooDeep(n)
		return extent{}
	}
	if n.Anchor != "" {
		s.anchored[n] = extent{}
	}
	e := extent{size: 1, height: 1, ended: true}
	if n.Kind == yaml.AliasNode {
		target := s.anchored[n.Alias]
		if !target.ended {
			s.stop("yaml-alias", n, "the alias *"+n.Value+" refers to the node that contains it",
				"Write out what the alias should stand for.")
			return extent{}
		}
		e.size, e.height = e.size+target.size, target.height
	}
	if n.Kind == yaml.MappingNode {
		s.keys(n)
	}
	for _, c := range n.Content {
		child := s.visit(c, level+1)
		if s.stopped {
			return extent{}
		}
		e.size = min(e.size+child.size, sizeCap)
		e.height = max(e.height, child.height+1)
	}
	if level+e.height-1 > s.r.view.lim.Depth {
		s.tooDeep(n)
		return extent{}
	}
	if n.Anchor != "" {
		s.anchored[n] = e
	}
	return e
}

func (s *vetting) tooDeep(n *yaml.Node) {
	s.stop("too-large", n, fmt.Sprintf("nested deeper than %d levels", s.r.view.lim.Depth),
		"Make the document flatter.")
}

func (s *vetting) stop(code string, n *yaml.Node, summary, detail string) {
	s.stopped = true
	s.r.add(code, s.p.node(n), summary, detail)
}

// keys refuses keys that are not scalars, and duplicate keys. kustomize would silently keep only one of the
// duplicates.
func (s *vetting) keys(m *yaml.Node) {
	if keys := len(m.Content) / 2; s.r.crowd.adds(keys) {
		s.stopped = true
		s.plain += len(m.Content) // parsing already processed all of them
		s.r.report(crowded(s.p.node(m), keys))
		return
	}
	first := make(map[string]*yaml.Node, len(m.Content)/2)
	for i := 0; i+1 < len(m.Content) && s.faults <= maxFaultsPerFile; i += 2 {
		k := m.Content[i]
		if k.Kind == yaml.AliasNode {
			k = k.Alias
		}
		if k.Kind != yaml.ScalarNode {
			s.faults++
			s.r.add("yaml-syntax", s.p.node(m.Content[i]), "a key is not a scalar", "Keys must be plain text.")
			continue
		}
		if prev, ok := first[k.Value]; ok {
			d := faultAt("duplicate-key", s.p.node(m.Content[i]), fmt.Sprintf("key %q is given twice", k.Value),
				"Keep one of the two; only one would count.")
			d.Related = []diag.Related{{Position: s.p.node(prev), Message: "first given here"}}
			s.faults++
			s.r.report(d)
			continue
		}
		first[k.Value] = m.Content[i]
	}
}

// checkObjects refuses the documents of a file that are not Kubernetes objects.
func (r *reader) checkObjects(f *file) {
	before := len(r.diags)
	for _, doc := range f.docs {
		if len(r.diags) > before+maxFaultsPerFile {
			return
		}
		at := diag.Position{File: f.path, Line: doc.Line, Column: doc.Column}
		if doc.Kind != yaml.MappingNode {
			r.add("not-an-object", at, "the document is not a Kubernetes object", "An object is a mapping with apiVersion, kind and metadata.name.")
			continue
		}
		var lacks []string
		for _, want := range [][]string{{"apiVersion"}, {"kind"}, {"metadata", "name"}} {
			if text(doc, want...) == "" {
				lacks = append(lacks, strings.Join(want, "."))
			}
		}
		if _, items := field(doc, "items"); items != nil && strings.HasSuffix(text(doc, "kind"), "List") {
			continue
		}
		if len(lacks) > 0 {
			r.add("not-an-object", at, "the object is missing "+strings.Join(lacks, " and "), "Every object needs apiVersion, kind and metadata.name.")
		}
	}
}

func isNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// deref returns the node that an alias refers to, or n itself.
func deref(n *yaml.Node) *yaml.Node {
	if n != nil && n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// field returns the key and value nodes of a mapping's field, or nils.
func field(m *yaml.Node, name string) (key, value *yaml.Node) {
	m = deref(m)
	if m == nil || m.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		if deref(m.Content[i]).Value == name {
			return m.Content[i], deref(m.Content[i+1])
		}
	}
	return nil, nil
}

// foldedField is like field, with kustomize's rules for its own files: a key matches in any case. If several
// spellings occur, the decoder uses the one that sorts last.
func foldedField(m *yaml.Node, name string) (key, value *yaml.Node) {
	m = deref(m)
	if m == nil || m.Kind != yaml.MappingNode {
		return nil, nil
	}
	for i := 0; i+1 < len(m.Content); i += 2 {
		k := deref(m.Content[i])
		if strings.EqualFold(k.Value, name) && (key == nil || k.Value > deref(key).Value) {
			key, value = m.Content[i], deref(m.Content[i+1])
		}
	}
	return key, value
}

// text returns the value of a scalar field of a mapping, or "".
func text(m *yaml.Node, names ...string) string {
	for _, name := range names {
		_, v := field(m, name)
		if m = v; v == nil {
			return ""
		}
	}
	if m.Kind != yaml.ScalarNode {
		return ""
	}
	return m.Value
}
