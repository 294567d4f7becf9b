package kust

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// kustomization marks a kustomization's patches, labels, annotations and images.
func (m *marker) kustomization(k *kust) error {
	if k.virtual {
		return nil
	}
	c := copyInto(k.doc, map[*yaml.Node]*yaml.Node{})
	pairs := pairUp(k.doc, c)
	gone := map[*yaml.Node]bool{}
	for _, n := range m.cut {
		gone[pairs[n]] = true
	}
	delete(gone, nil)
	for _, p := range k.patches {
		docs := make([]*yaml.Node, len(p.docs))
		if p.inline == nil {
			if _, done := m.fed[p.file.path]; done || p.file.data {
				continue
			}
		}
		left := 0
		for i, doc := range p.docs {
			docs[i] = copyNode(doc)
			m.patch(p.location(k), doc, docs[i], source{kust: k, entry: p.entry})
			prune(docs[i], copiesOf(m.cut, doc, docs[i]))
			left += len(docs[i].Content)
		}
		if left == 0 {
			gone[pairs[p.entry]] = true // kustomize refuses empty patches
			continue
		}
		out, err := encodeDocuments(docs)
		if err != nil {
			return err
		}
		if p.inline == nil {
			m.fed[p.file.path] = out
			continue
		}
		target := pairs[p.inline]
		target.Value, target.Style = string(out), yaml.LiteralStyle
	}
	m.transformers(k, pairs)
	for n, value := range m.alter {
		if c := pairs[n]; c != nil {
			c.Value = value
		}
	}
	prune(c, gone)
	if _, v := foldedField(c, "generatorOptions"); len(gone) > 0 && v == nil {
		// kustomize refuses a kustomization without any field.
		c.Content = append(c.Content, scalar("generatorOptions"), &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"})
	}
	out, err := encodeKustomization(c)
	m.fed[k.file] = out
	return err
}

// copiesOf returns the copies of the nodes that are below orig.
func copiesOf(nodes []*yaml.Node, orig, c *yaml.Node) map[*yaml.Node]bool {
	if len(nodes) == 0 {
		return nil
	}
	pairs, out := pairUp(orig, c), map[*yaml.Node]bool{}
	for _, n := range nodes {
		if p := pairs[n]; p != nil {
			out[p] = true
		}
	}
	return out
}

// prune removes nodes from the mappings and sequences below n.
func prune(n *yaml.Node, gone map[*yaml.Node]bool) {
	if len(gone) == 0 {
		return
	}
	width := 1
	if n.Kind == yaml.MappingNode {
		width = 2
	}
	kept := make([]*yaml.Node, 0, len(n.Content))
	for i := 0; i+width <= len(n.Content); i += width {
		if v := n.Content[i+width-1]; !gone[v] {
			prune(v, gone)
			kept = append(kept, n.Content[i:i+width]...)
		}
	}
	if len(kept) < len(n.Content) {
		n.Content = kept
	}
}

// pairUp maps each node of a tree to its copy.
func pairUp(orig, c *yaml.Node) map[*yaml.Node]*yaml.Node {
	pairs := map[*yaml.Node]*yaml.Node{}
	var walk func(a, b *yaml.Node)
	walk = func(a, b *yaml.Node) {
		pairs[a] = b
		for i := range a.Content {
			walk(a.Content[i], b.Content[i])
		}
	}
	walk(orig, c)
	return pairs
}

// transformers marks the values that a kustomization's own fields set in objects: labels, annotations,
// literals of ConfigMaps and images. pairs maps the nodes of the kustomization to their copies.
func (m *marker) transformers(k *kust, pairs map[*yaml.Node]*yaml.Node) {
	values := func(how How, set *yaml.Node) {
		if set = deref(set); set == nil || set.Kind != yaml.MappingNode || m.selects {
			return
		}
		for i := 1; i < len(set.Content); i += 2 {
			m.own(k, how, set.Content[i], pairs)
		}
	}
	_, labels := foldedField(k.doc, "commonLabels")
	values(Label, labels)
	_, annotations := foldedField(k.doc, "commonAnnotations")
	values(Annotation, annotations)
	for _, entry := range entries(k.doc, "labels") {
		_, set := foldedField(entry, "pairs")
		values(Label, set)
	}
	for _, entry := range entries(k.doc, "configMapGenerator") {
		for _, l := range entries(entry, "literals") {
			// kustomize removes quotes around a value only if the value ends with one.
			if _, value, ok := strings.Cut(l.Value, "="); ok && !strings.HasPrefix(value, "'") && !strings.HasPrefix(value, "\"") {
				m.own(k, Generator, l, pairs)
			}
		}
	}
	for _, list := range []string{"images", "imageTags"} {
		for _, entry := range entries(k.doc, list) {
			for _, name := range []string{"newName", "newTag"} {
				if _, v := foldedField(entry, name); v != nil {
					m.own(k, Image, v, pairs)
				}
			}
		}
	}
}

func (m *marker) own(k *kust, how How, n *yaml.Node, pairs map[*yaml.Node]*yaml.Node) {
	c := pairs[n]
	if n.Kind != yaml.ScalarNode || c == nil || isNull(n) {
		return
	}
	m.mark(c, leaf{location: location{file: k.file, source: k.content}, node: n, own: true, from: source{how: how, kust: k}})
}

func entries(doc *yaml.Node, name string) []*yaml.Node {
	_, list := foldedField(doc, name)
	if list == nil || list.Kind != yaml.SequenceNode {
		return nil
	}
	return list.Content
}
