// Package output writes the objects of a build as YAML, exactly as "kubectl kustomize" does.
package output

import (
	"bytes"
	"strings"

	yamlv2 "go.yaml.in/yaml/v2"
	"go.yaml.in/yaml/v3"
	kyaml "sigs.k8s.io/kustomize/kyaml/yaml"
	k8syaml "sigs.k8s.io/yaml"
)

// YAML returns objects as YAML documents with sorted keys. kustomize converts each object to JSON and back.
// JSON has no infinite numbers, so an object that contains one is written from its node.
func YAML(nodes []*yaml.Node) []byte {
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
		doc, err := convert(n)
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

// convert writes one object with kustomize's own code, which writes YAML, parses it, writes JSON, parses that
// as YAML, and writes YAML.
func convert(n *yaml.Node) ([]byte, error) {
	js, err := kyaml.NewRNode(n).MarshalJSON()
	if err != nil {
		return nil, err
	}
	return k8syaml.JSONToYAML(js)
}

// printer writes most objects without these conversions. It converts each distinct scalar once and caches the
// result. It supports objects of plain mappings, lists and single-line scalars. All other objects need
// convert.
type printer map[scalarForm]any

// scalarForm has all properties of a scalar that affect its printed form.
type scalarForm struct {
	tag, value string
	style      yaml.Style
}

// value returns the value that results from kustomize's conversions of a node. ok is false if the node needs
// convert. flow is true if the node is in a list or mapping on one line.
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

// mapping is like value, for a mapping.
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

// list is like value, for a list.
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

// scalar is like value, for a scalar. Texts with several lines, or with space at their ends, need convert
// because their form depends on the depth.
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
		{Kind: yaml.ScalarNode, Tag: "!!str", Value: key}, {Kind: yaml.ScalarNode, Tag: n.Tag, Value: n.Value, Style: n.Style}}}).MarshalJSON()
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

// unprintable marks a scalar that needs convert.
var unprintable any = new(byte)
