package kust

import (
	"bytes"
	"strings"

	"go.yaml.in/yaml/v3"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"

	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// If the kustomizations only list resources, kustomize returns objects of Cluster API unchanged, except for
// annotations, which it rewrites. Then weir uses the documents that it parsed for the walk, if kustomize
// cannot read them differently. kustomize still builds the first batch of each file. So kustomize decides
// whether kustomizations and files are valid, and in which order objects appear.

// plain reports whether all kustomizations only list resources.
func (c *parts) plain() bool {
	for _, s := range c.splits {
		if doesMore(s.doc) {
			return false
		}
	}
	return true
}

// read fills in the batches whose objects kustomize would return as they were read. It never fills in the
// first batch.
func (r *batchRun) read(built [][]*yaml.Node) {
	for i, b := range r.parts.batches {
		if nodes := r.asRead(b); nodes != nil {
			built[i] = nodes
		}
	}
}

// asRead returns the objects of a batch if kustomize would return them as they were read. It returns nil if
// that is uncertain.
func (r *batchRun) asRead(b batch) []*yaml.Node {
	members, first := r.parts.members[b.from:b.to], false
	for _, l := range members {
		first = first || !r.begun[l.file]
		r.begun[l.file] = true
	}
	if first {
		return nil
	}
	out := make([]*yaml.Node, len(members))
	for i, l := range members {
		f := r.files[l.file]
		text, ok := r.document(l)
		if f == nil || !ok {
			return nil
		}
		if out[i] = asRead(f.docs[l.doc], text); out[i] == nil {
			return nil
		}
	}
	return out
}

// asRead returns kustomize's output for a document with the given text if nothing changes it. It returns nil
// if that is uncertain.
func asRead(doc *yaml.Node, text []byte) *yaml.Node {
	if !kinds.Reads(refOf(doc)) || !strings.HasSuffix(refOf(doc).Group(), ".x-k8s.io") {
		return nil
	}
	commented := bytes.IndexByte(text, '#') >= 0
	if commented { // the text decides to which node a comment belongs
		var own yaml.Node
		if yaml.Unmarshal(text, &own) != nil || len(own.Content) != 1 {
			return nil
		}
		doc = own.Content[0]
	}
	n := copyPlain(doc, commented)
	if n == nil {
		return nil
	}
	_, annotations := field(doc, "metadata")
	if _, annotations = field(annotations, "annotations"); annotations != nil {
		if annotations.Kind != yaml.MappingNode || len(annotations.Content) > 2*maxAnnotations {
			return nil
		}
		for i, a := range annotations.Content {
			switch {
			case a.Kind != yaml.ScalarNode, i%2 == 0 && strings.Contains(a.Value, "config.k"):
				return nil // some annotations belong to kustomize: config.kubernetes.io, kustomize.config.k8s.io
			case i%2 == 1 && strings.ContainsAny(a.Value, "*[{"):
				return nil // kustomize parses it as YAML, and would expand aliases
			}
		}
	}
	rn := kyaml.NewRNode(n)
	if rn.SetAnnotations(rn.GetAnnotations()) != nil {
		return nil
	}
	return n
}

// maxAnnotations bounds the annotations that are rewritten here, because the time grows with the square of
// their number.
const maxAnnotations = 30

// copyPlain returns a copy of a node without its place and anchors, like a node from a worker. It returns nil
// if kustomize may change the node when it reads it: aliases, merges, nulls, tags.
func copyPlain(n *yaml.Node, commented bool) *yaml.Node {
	c := yaml.Node{Kind: n.Kind, Style: n.Style, Tag: n.Tag, Value: n.Value}
	if commented {
		c.HeadComment, c.LineComment, c.FootComment = n.HeadComment, n.LineComment, n.FootComment
	}
	switch n.Tag {
	case "!!str", "!!int", "!!bool", "!!float", "!!map", "!!seq":
	default:
		return nil
	}
	if n.Style&yaml.TaggedStyle != 0 {
		return nil
	}
	if len(n.Content) > 0 {
		c.Content = make([]*yaml.Node, len(n.Content))
	}
	for i, child := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && child.Tag != "!!str" {
			return nil
		}
		if c.Content[i] = copyPlain(child, commented); c.Content[i] == nil {
			return nil
		}
	}
	return &c
}

// separator matches a line that separates documents for kustomize. As in kustomize, it does not match the
// second of two consecutive such lines.
var separator = lazyregexp.New(`\n---.*\n`)

// otherBreaks matches line breaks of YAML that kustomize ignores when it splits a file into documents.
var otherBreaks = lazyregexp.New(`\r[^\n]|\r$|[\x{85}\x{2028}\x{2029}]`)

// documents returns the non-empty documents of a file, split like kustomize does. It returns nil if lines are
// not enough to split the file.
func documents(content []byte) [][]byte {
	if otherBreaks.Match(content) {
		return nil
	}
	var out [][]byte
	add := func(text []byte) (known bool) {
		holds := false
		for line := range bytes.Lines(text) {
			if bytes.HasPrefix(line, []byte("...")) || bytes.HasPrefix(line, []byte("%")) {
				return false
			}
			line = bytes.TrimSpace(bytes.TrimPrefix(line, []byte("---")))
			holds = holds || len(line) > 0 && line[0] != '#'
		}
		if holds {
			out = append(out, text)
		}
		return true
	}
	from := 0
	for _, at := range separator.FindAllIndex(content, -1) {
		if rest := bytes.TrimSpace(content[at[0]+4 : at[1]]); len(rest) > 0 && rest[0] != '#' || !add(content[from:at[0]+1]) {
			return nil // kustomize refuses everything but a comment there
		}
		from = at[1]
	}
	if !add(content[from:]) {
		return nil
	}
	return out
}
