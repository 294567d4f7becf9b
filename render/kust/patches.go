package kust

import (
	"bytes"
	"errors"
	"io"
	"path"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render/lazyregexp"
)

// patches finds the members that each patch of a kustomization applies to.
func (c *cutter) patches(s *split, own []int) bool {
	_, list := field(s.doc, "patches")
	if list == nil || len(list.Content) == 0 {
		return true
	}
	byName := map[string][]int{}
	for _, i := range own {
		for _, name := range c.parts.members[i].names {
			byName[name] = append(byName[name], i)
		}
	}
	for _, e := range list.Content {
		t, docs, ok := c.patch(s, e)
		if !ok {
			return false
		}
		_, target := field(e, "target")
		switch name := text(target, "name"); {
		case target == nil:
			for _, doc := range docs {
				found := membersOfKind(c.parts.members, byName[text(doc, "metadata", "name")], text(doc, "kind"))
				if len(found) != 1 {
					return false
				}
				t.members = append(t.members, found[0])
			}
			if len(t.members) == 0 {
				return false
			}
			c.spans = append(c.spans, [2]int{slices.Min(t.members), slices.Max(t.members)})
		case literal.MatchString(name):
			t.members = byName[name]
			if kind := text(target, "kind"); literal.MatchString(kind) {
				t.members = membersOfKind(c.parts.members, t.members, kind)
			}
			t.any = len(t.members) == 0 // kustomize reads the patch in any case
		default:
			t.any = true
		}
		for _, i := range t.members {
			c.parts.members[i].patched = true
		}
		if kind := text(target, "kind"); t.any {
			for _, i := range own {
				if l := c.parts.members[i]; l.kind == kind || !literal.MatchString(kind) {
					l.patched = true
				}
			}
		}
		s.patches = append(s.patches, t)
		c.patched = append(c.patched, patched{docs, t})
	}
	return true
}

// literal matches regular expressions that match only themselves.
var literal = lazyregexp.New(`^[A-Za-z0-9-]+$`)

// membersOfKind returns the members of a kind.
func membersOfKind(members []*member, among []int, kind string) (out []int) {
	for _, i := range among {
		if members[i].kind == kind {
			out = append(out, i)
		}
	}
	return out
}

// patch reads an entry of patches, which must neither rename nor remove objects.
func (c *cutter) patch(s *split, e *yaml.Node) (t tie, docs []*yaml.Node, ok bool) {
	if e.Kind != yaml.MappingNode {
		return t, nil, false
	}
	for i := 0; i+1 < len(e.Content); i += 2 {
		if !slices.Contains([]string{"path", "patch", "target"}, e.Content[i].Value) {
			return t, nil, false
		}
	}
	var content []byte
	if ref := text(e, "path"); ref != "" {
		at, _, err := c.plan.view.resolve(path.Join(s.dir, ref))
		if err != nil {
			return t, nil, false
		}
		t.file, content = at, c.contents[at]
	} else {
		content = []byte(text(e, "patch"))
	}
	if bytes.Contains(content, []byte("$patch")) {
		return t, nil, false
	}
	for dec := yaml.NewDecoder(bytes.NewReader(content)); ; {
		var doc yaml.Node
		if err := dec.Decode(&doc); errors.Is(err, io.EOF) {
			return t, docs, true
		} else if err != nil || len(doc.Content) != 1 {
			return t, nil, false
		}
		if isNull(doc.Content[0]) {
			continue
		}
		if doc.Content[0].Kind == yaml.SequenceNode && slices.ContainsFunc(doc.Content[0].Content, renames) {
			return t, nil, false
		}
		docs = append(docs, doc.Content[0])
	}
}

// renames reports whether an operation may change the name of an object.
func renames(op *yaml.Node) bool {
	for _, name := range []string{"path", "from"} {
		at := text(op, name)
		if name == "path" && strings.Count(at, "/") < 2 && !strings.HasPrefix(at, "/spec") && !strings.HasPrefix(at, "/data") {
			return true
		}
		if strings.HasPrefix(at, "/metadata/name") || strings.Contains(at, "~") && !strings.HasPrefix(at, "/spec/") && !strings.HasPrefix(at, "/metadata/annotations/") && !strings.HasPrefix(at, "/metadata/labels/") {
			return true
		}
	}
	return false
}

// eachValue calls f for the scalars of a node that are not keys.
func eachValue(n *yaml.Node, f func(string)) {
	n = deref(n)
	if n.Kind == yaml.ScalarNode {
		f(n.Value)
	}
	for i, child := range n.Content {
		if n.Kind != yaml.MappingNode || i%2 == 1 {
			eachValue(child, f)
		}
	}
}

// chains groups n members that share a name, directly or through other members. Element i
// is the group of member i, including i. When kustomize renames an object, references to it
// get the new name. If another object had that name before, kustomize may rename these
// references again, so a batch needs the whole group.
func chains(n int, byName map[string][]int) [][]int {
	parent := make([]int, n)
	for i := range parent {
		parent[i] = i
	}
	root := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}
	for _, of := range byName {
		for _, i := range of[1:] {
			parent[root(i)] = root(of[0])
		}
	}
	out := make([][]int, n)
	for i := range n {
		out[root(i)] = append(out[root(i)], i)
	}
	for i := range n {
		out[i] = out[root(i)]
	}
	return out
}
