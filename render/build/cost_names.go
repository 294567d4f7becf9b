package build

import (
	"strings"

	"go.yaml.in/yaml/v3"
)

// reference is a field of a kind that holds the name of another object.
type reference struct {
	kind  string // "" for all
	steps []string
}

// nameFields counts the fields below n that may hold the name of another object
// by kustomize's own configuration, aliases expanded.
func nameFields(n *yaml.Node, known map[*yaml.Node]int) int {
	if c, ok := known[n]; ok {
		return c
	}
	count := 0
	if n.Kind == yaml.AliasNode {
		count = nameFields(n.Alias, known)
	}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			if key := deref(c).Value; key == "name" || strings.HasSuffix(key, "Name") {
				count++
			}
			continue
		}
		count = plus(count, nameFields(c, known))
	}
	if n.Anchor != "" {
		known[n] = count
	}
	return count
}

// named counts the fields of the objects below k that configurations say hold
// names.
func named(k *kust, refs []reference, known map[*kust]int) int {
	if c, ok := known[k]; ok {
		return c
	}
	count := 0
	for _, f := range k.objects {
		for _, doc := range f.docs {
			kind := text(doc, "kind")
			for _, r := range refs {
				if r.kind == "" || r.kind == kind {
					count = plus(count, found(doc, r.steps))
				}
			}
		}
	}
	for _, c := range k.children {
		count = plus(count, named(c, refs, known))
	}
	known[k] = count
	return count
}

// found counts the fields at a path, through the elements of lists.
func found(n *yaml.Node, steps []string) int {
	n = deref(n)
	if n == nil || len(steps) == 0 {
		return 1
	}
	if n.Kind == yaml.SequenceNode {
		count := 0
		for _, c := range n.Content {
			count = plus(count, found(c, steps))
		}
		return count
	}
	if _, v := field(n, steps[0]); v != nil {
		return found(v, steps[1:])
	}
	return 0
}

// references are the fields that a configuration's nameReference lists.
func references(docs []*yaml.Node) []reference {
	var out []reference
	for _, doc := range docs {
		for _, entry := range entries(doc, "nameReference") {
			for _, spec := range entries(entry, "fieldSpecs") {
				if p := folded(spec, "path"); p != "" {
					out = append(out, reference{kind: folded(spec, "kind"), steps: strings.Split(strings.ReplaceAll(p, "[]", ""), "/")})
				}
			}
		}
	}
	return out
}
