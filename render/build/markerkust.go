package build

import (
	"go.yaml.in/yaml/v3"
)

// kustomization marks a kustomization's patches, labels, annotations and images.
func (m *marker) kustomization(k *kust) error {
	if k.virtual {
		return nil
	}
	c := copyInto(k.doc, map[*yaml.Node]*yaml.Node{})
	pairs := pairUp(k.doc, c)
	for _, p := range k.patches {
		docs := make([]*yaml.Node, len(p.docs))
		if p.inline == nil {
			if _, done := m.fed[p.file.path]; done || p.file.data {
				continue
			}
		}
		for i, doc := range p.docs {
			docs[i] = copyNode(doc)
			m.patch(p.place(k), doc, docs[i])
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
	m.change(pairs)
	out, err := encodeKustomization(c)
	m.fed[k.file] = out
	return err
}

// change applies alter and drop to a kustomization.
func (m *marker) change(pairs map[*yaml.Node]*yaml.Node) {
	for n, value := range m.alter {
		if c := pairs[n]; c != nil {
			c.Value = value
		}
	}
	if m.drop == nil || pairs[m.drop] == nil {
		return
	}
	for list, c := range pairs {
		for i, entry := range list.Content {
			if entry == m.drop && list.Kind == yaml.SequenceNode {
				c.Content = append(c.Content[:i:i], c.Content[i+1:]...)
				return
			}
		}
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

// transformers marks the values that a kustomization's own fields set.
func (m *marker) transformers(k *kust, pairs map[*yaml.Node]*yaml.Node) {
	values := func(set *yaml.Node) {
		if set = deref(set); set == nil || set.Kind != yaml.MappingNode || m.selects {
			return
		}
		for i := 1; i < len(set.Content); i += 2 {
			m.own(k, set.Content[i], pairs)
		}
	}
	_, labels := foldedField(k.doc, "commonLabels")
	values(labels)
	_, annotations := foldedField(k.doc, "commonAnnotations")
	values(annotations)
	for _, entry := range entries(k.doc, "labels") {
		_, set := foldedField(entry, "pairs")
		values(set)
	}
	for _, list := range []string{"images", "imageTags"} {
		for _, entry := range entries(k.doc, list) {
			for _, name := range []string{"newName", "newTag"} {
				if _, v := foldedField(entry, name); v != nil {
					m.own(k, v, pairs)
				}
			}
		}
	}
}

func (m *marker) own(k *kust, n *yaml.Node, pairs map[*yaml.Node]*yaml.Node) {
	c := pairs[n]
	if n.Kind != yaml.ScalarNode || c == nil || isNull(n) {
		return
	}
	m.mark(c, leaf{place: place{file: k.file, source: k.content}, node: n, own: true})
}

func entries(doc *yaml.Node, name string) []*yaml.Node {
	_, list := foldedField(doc, name)
	if list == nil || list.Kind != yaml.SequenceNode {
		return nil
	}
	return list.Content
}
