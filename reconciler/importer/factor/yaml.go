package factor

import (
	"bytes"
	"cmp"
	"maps"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// encode writes documents as YAML.
func encode(docs ...*yaml.Node) []byte {
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	for _, d := range docs {
		if err := e.Encode(d); err != nil {
			panic("factor: " + err.Error()) // nodes of document can be written
		}
	}
	return out.Bytes()
}

// text returns a value as the text of a patch. kustomize trims the text, so it must not end in a multi-line
// string, whose last line break would be lost.
func text(v any) string {
	n := document(v)
	quoted(n)
	for i, item := range n.Content {
		switch {
		case n.Kind == yaml.SequenceNode:
			folded(item, 2)
		case i%2 == 1:
			folded(item, len(n.Content[i-1].Value)+2)
		}
	}
	return strings.TrimSuffix(string(encode(n)), "\n")
}

// folded writes short maps and lists on one line, to keep patches compact. It returns the resulting length,
// including the text before it on the line.
func folded(n *yaml.Node, before int) int {
	const longest = 104
	sum := before
	for i, item := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			sum += len(item.Value) + 2
			continue
		}
		sum += folded(item, 2)
	}
	if n.Kind == yaml.ScalarNode {
		return sum + len(n.Value) + 2
	}
	if sum <= longest {
		n.Style |= yaml.FlowStyle
	}
	return sum
}

func quoted(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && strings.Contains(n.Value, "\n") {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, item := range n.Content {
		quoted(item)
	}
}

// document returns a value in the usual order of keys: keys that distinguish objects come first.
func document(v any) *yaml.Node {
	switch v := v.(type) {
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
		for _, k := range slices.SortedFunc(maps.Keys(v), func(a, b string) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), strings.Compare(a, b)) }) {
			key, value := document(k), document(v[k])
			if k == "patch" && value.Tag == "!!str" {
				value.Style = yaml.LiteralStyle
			}
			if k == "target" || k == "fieldSpecs" {
				flow(value)
			}
			n.Content = append(n.Content, key, value)
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
		for _, item := range v {
			n.Content = append(n.Content, document(item))
		}
		return n
	case *yaml.Node:
		return v
	}
	n := &yaml.Node{}
	if err := n.Encode(v); err != nil {
		panic("factor: " + err.Error()) // scalars can be encoded
	}
	return n
}

// inline returns a list with one item, on one line.
func inline(item string) *yaml.Node {
	n := document([]any{item})
	n.Style = yaml.FlowStyle
	return n
}

// flow writes each map on one line.
func flow(n *yaml.Node) {
	if n.Kind == yaml.MappingNode {
		n.Style = yaml.FlowStyle
	}
	for _, item := range n.Content {
		if n.Kind == yaml.SequenceNode {
			flow(item)
		}
	}
}

// rank returns the position of a key. Unknown keys come last, in alphabetical order.
func rank(key string) int {
	if i := slices.Index([]string{"apiVersion", "kind", "metadata", "name", "namespace", "labels", "annotations", "resources", "namePrefix", "nameSuffix", "target", "op", "group", "path", "key", "id", "minSize", "maxSize", "type"}, key); i >= 0 {
		return i
	}
	return 100
}
