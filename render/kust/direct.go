package kust

import (
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// In a build in batches, weir knows the document of each object, and everything that may have changed the
// object (parts.go). So most questions need no marked build, and the others only the marked build of one
// batch.

// memberIndex maps the members of a build in batches to the objects of the raw build. It is empty for other
// builds.
type memberIndex struct {
	// member has the member index of each object in the raw build.
	member map[*yaml.Node]int
	// object has the index in the raw build of each member's object.
	object []int
}

func newMemberIndex(b built) (m memberIndex) {
	if len(b.members) == 0 {
		return m
	}
	m = memberIndex{member: make(map[*yaml.Node]int, len(b.members)), object: make([]int, len(b.members))}
	for i, n := range b.members {
		m.member[n] = i
	}
	for i, n := range b.nodes {
		m.object[m.member[n]] = i
	}
	return m
}

// directLeaf is like leafOf without a build. It answers for a field below spec that is unchanged in its
// object's document, if nothing else can have set it: no patch applies to the object. In objects of Cluster
// API, labels, annotations, namespaces and prefixes do not change such fields. An unchanged reference to
// another object also comes from the document. sure is false if only a build can answer.
func (f *finder) directLeaf(field located) (l *leaf, up int, ok, sure bool) {
	_, made, known := f.memberOf(field.object)
	switch {
	case !known || made.patched || len(field.path) == 0 || field.node == nil:
		return nil, 0, false, false
	case named(field.path):
		return nil, 0, false, true // no mark shows the cause of a rename
	case field.path[0] != "spec":
		return nil, 0, false, false
	}
	ref := intent.ObjectRef{APIVersion: text(f.raw[field.object], "apiVersion")}
	if p := f.builds.plan.apart.parts; p.wide || !strings.HasSuffix(ref.Group(), ".x-k8s.io") {
		return nil, 0, false, false
	}
	d, _ := f.documentOf(field.object)
	s := directSearch{doc: d, steps: make([]step, 0, len(field.path)+4)}
	n := d.node
	for _, elem := range field.path {
		if n = s.down(n, elem); n == nil {
			return nil, 0, false, false
		}
	}
	if field.node.Kind == yaml.ScalarNode && isNull(field.node) {
		return nil, 0, false, false // no mark, but a probe may find its origin
	}
	l, up = s.find(field.node, n, 0)
	return l, up, l != nil, !s.unsure
}

// named reports whether a path is the path of an object's name or namespace.
func named(p intent.Path) bool {
	return len(p) == 2 && p[0] == "metadata" && (p[1] == "name" || p[1] == "namespace")
}

// directSearch walks a field of the raw build and of a document together.
type directSearch struct {
	doc    sourceDoc
	steps  []step
	unsure bool
}

// down returns the child of a document's node and adds it to the steps. It returns nil if kustomize may have
// changed the child.
func (s *directSearch) down(n *yaml.Node, elem string) *yaml.Node {
	var key, val *yaml.Node
	switch {
	case n.Anchor != "" || isDirective(elem):
	case n.Kind == yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			switch k := n.Content[i]; {
			case k.Kind != yaml.ScalarNode || k.Value == "<<":
				return nil
			case k.Value == elem:
				key, val = k, n.Content[i+1]
			}
		}
	case n.Kind == yaml.SequenceNode:
		if i, ok := index(elem); ok && i < len(n.Content) {
			val = n.Content[i]
		}
	}
	if val == nil || val.Kind == yaml.AliasNode || val.Anchor != "" {
		return nil
	}
	s.steps = append(s.steps, step{elem: elem, key: key, val: val})
	return val
}

// find returns the first scalar at or below a node, and its depth below the node.
func (s *directSearch) find(raw, n *yaml.Node, below int) (*leaf, int) {
	raw = deref(raw)
	switch {
	case raw.Kind != n.Kind, raw.Kind == yaml.ScalarNode && raw.Value != n.Value:
		s.unsure = true
		return nil, 0
	case raw.Kind == yaml.ScalarNode:
		if isNull(n) {
			return nil, 0
		}
		return &leaf{location: s.doc.location, node: n, steps: append([]step(nil), s.steps...), from: source{how: Base}}, below
	}
	for i, c := range raw.Content {
		elem := intent.Index(i)
		if raw.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			elem = raw.Content[i-1].Value
		}
		v := s.down(n, elem)
		if v == nil {
			s.unsure = true
			return nil, 0
		}
		if l, up := s.find(c, v, below+1); l != nil || s.unsure {
			return l, up
		}
		s.steps = s.steps[:len(s.steps)-1]
	}
	return nil, 0
}
