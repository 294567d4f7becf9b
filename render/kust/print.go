package kust

import (
	"bytes"
	"strings"

	yamlv2 "go.yaml.in/yaml/v2"
	"go.yaml.in/yaml/v3"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	k8syaml "sigs.k8s.io/yaml"
)

// printObjects prints as kustomize does: by way of JSON, with sorted keys. It prints an
// infinite number, which JSON cannot hold, from its node.
func printObjects(nodes []*yaml.Node) []byte {
	var out bytes.Buffer
	p := printer{}
	for i, n := range nodes {
		if i > 0 {
			out.WriteString("---\n")
		}
		if v, ok := p.value(n, false); ok {
			if doc, err := yamlv2.Marshal(v); err == nil {
				out.Write(doc)
				continue
			}
		}
		doc, err := printWhole(n)
		if err != nil {
			text, err := kyaml.NewRNode(n).String()
			if err != nil {
				text = "# not printable: " + err.Error() + "\n"
			}
			doc = []byte(text)
		}
		out.Write(doc)
	}
	return out.Bytes()
}

// printWhole prints one object with kustomize's own code, which writes it as YAML, reads
// that, writes JSON, reads that as YAML and writes YAML.
func printWhole(n *yaml.Node) ([]byte, error) {
	js, err := kyaml.NewRNode(n).MarshalJSON()
	if err != nil {
		return nil, err
	}
	return k8syaml.JSONToYAML(js)
}

// printer spares most objects of a build these ways: what becomes of a scalar on them is
// found out once for each that is written differently. What is not made of plain mappings,
// lists and scalars of one line has to go them.
type printer map[scalarForm]any

// scalarForm holds every property of a scalar that decides its printed form.
type scalarForm struct {
	tag, value string
	style      yaml.Style
}

// value returns what kustomize's code would finally write for a node; ok is false if only kustomize
// can decide that. flow says that the node is in a list or mapping of one line.
func (p printer) value(n *yaml.Node, flow bool) (v any, ok bool) {
	flow = flow || n.Style&yaml.FlowStyle != 0
	if n.Anchor != "" || flow && (n.HeadComment != "" || n.LineComment != "" || n.FootComment != "") {
		return nil, false
	}
	switch n.Kind {
	case yaml.MappingNode:
		return p.mapping(n, flow)
	case yaml.SequenceNode:
		return p.list(n, flow)
	case yaml.ScalarNode:
		return p.scalar(n)
	}
	return nil, false
}

// mapping is value for a mapping.
func (p printer) mapping(n *yaml.Node, flow bool) (v any, ok bool) {
	if n.Tag != "" && n.Tag != "!!map" {
		return nil, false
	}
	m := make(map[string]any, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content); i += 2 {
		k := n.Content[i]
		_, twice := m[k.Value]
		name, ok := p.value(k, flow)
		if name != k.Value || !ok || twice || k.Value == "<<" {
			return nil, false
		}
		if m[k.Value], ok = p.value(n.Content[i+1], flow); !ok {
			return nil, false
		}
	}
	return m, true
}

// list is value for a list.
func (p printer) list(n *yaml.Node, flow bool) (v any, ok bool) {
	if n.Tag != "" && n.Tag != "!!seq" {
		return nil, false
	}
	list := make([]any, len(n.Content))
	for i, c := range n.Content {
		if list[i], ok = p.value(c, flow); !ok {
			return nil, false
		}
	}
	return list, true
}

// scalar is value for a scalar. Texts of several lines, or with space at their ends, are
// written differently at different depths.
func (p printer) scalar(n *yaml.Node) (v any, ok bool) {
	if strings.ContainsAny(n.Value, "\n\r\t") || strings.TrimSpace(n.Value) != n.Value || n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0 {
		return nil, false
	}
	form := scalarForm{n.Tag, n.Value, n.Style}
	if v, ok = p[form]; ok {
		return v, v != unprintable
	}
	p[form] = unprintable
	const key = "k"
	js, err := kyaml.NewRNode(&yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{
		scalar(key), {Kind: yaml.ScalarNode, Tag: n.Tag, Value: n.Value, Style: n.Style}}}).MarshalJSON()
	var m map[string]any
	if err != nil || yamlv2.Unmarshal(js, &m) != nil {
		return nil, false
	}
	switch v := m[key].(type) {
	case nil, string, bool, int, int64, uint64, float64:
		p[form] = v
		return v, true
	}
	return nil, false
}

// unprintable marks a scalar that only kustomize can print.
var unprintable any = new(byte)
