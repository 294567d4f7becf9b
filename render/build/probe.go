package build

import (
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// maxProbes bounds the builds that one question may cost.
const maxProbes = 48

// probe finds what set a scalar that no mark accounts for, by changing one thing
// at a time and looking whether the field follows.
func (r *Result) probe(f located) (diag.Position, bool) {
	if at, ok := r.generator(f); ok {
		return at, true
	}
	marked := r.markedScalar(f)
	moved := marked != nil && len(marked.leaves) > 0 && marked.rest == f.node.Value
	if marked != nil && !moved {
		// The marks changed how the build went, as in a name that no longer
		// matched what refers to it.
		for _, l := range marked.leaves {
			if r.follows(f, &marker{only: func(n *yaml.Node, _ []step) bool { return n == l.node }}) {
				return l.position(0, false)
			}
		}
	}
	probes := 0
	for _, k := range r.knobs(f) {
		if probes++; probes > maxProbes {
			return diag.Position{}, false
		}
		if r.follows(f, k.marker) {
			return k.at, true
		}
	}
	if moved {
		// A JSON patch copied or moved it from elsewhere.
		return marked.leaves[len(marked.leaves)-1].position(0, false)
	}
	return r.probeByKey(f)
}

type markedScalar struct {
	rest   string
	leaves []*leaf
}

// markedScalar is the field in the marked build, if it bears marks.
func (r *Result) markedScalar(f located) *markedScalar {
	t := r.trace()
	n := t.objects[f.object].node
	if n == nil {
		return nil
	}
	if n = at(n, f.path); n == nil || n.Kind != yaml.ScalarNode {
		return nil
	}
	rest, ids := unmark(n.Value)
	s := &markedScalar{rest: rest}
	for _, id := range ids {
		if l := t.leaf(id); l != nil {
			s.leaves = append(s.leaves, l)
		}
	}
	if len(s.leaves) == 0 {
		return nil
	}
	return s
}

// follows reports whether a field changes, marks aside only where they are the
// change, when the build is changed as the marker says.
func (r *Result) follows(f located, m *marker) bool {
	if m.only == nil {
		m.only = func(*yaml.Node, []step) bool { return false }
	}
	t := r.traceWith(m)
	n := t.objects[f.object].node
	if n == nil {
		return false
	}
	n = at(n, f.path)
	return n == nil || n.Value != f.node.Value
}

// probeByKey marks only the scalars at the field's own key, for a build that
// fails or goes another way when everything is marked.
func (r *Result) probeByKey(f located) (diag.Position, bool) {
	if len(f.path) == 0 {
		return diag.Position{}, false
	}
	key := lastKey(f.path)
	t := r.traceWith(&marker{only: func(_ *yaml.Node, steps []step) bool {
		for i := len(steps) - 1; i >= 0; i-- {
			if _, item := index(steps[i].elem); !item {
				return steps[i].elem == key
			}
		}
		return false
	}})
	n := t.objects[f.object].node
	if n == nil {
		return diag.Position{}, false
	}
	if n = at(n, f.path); n == nil || n.Kind != yaml.ScalarNode {
		return diag.Position{}, false
	}
	if l := t.credited(f.node, n, f.path); l != nil {
		return l.position(0, false)
	}
	return diag.Position{}, false
}

func lastKey(p intent.Path) string {
	for i := len(p) - 1; i >= 0; i-- {
		if _, item := index(p[i]); !item {
			return p[i]
		}
	}
	return ""
}

// knob is something of a kustomization that can be changed to see what follows.
type knob struct {
	at     diag.Position
	marker *marker
}

// knobs lists what could have set a field, what kustomize applies last first.
func (r *Result) knobs(f located) []knob {
	var out []knob
	key, value := lastKey(f.path), f.node.Value
	isName, isNamespace := key == "name", key == "namespace"
	for i := len(r.plan.kusts) - 1; i >= 0; i-- {
		k := r.plan.kusts[i]
		alter := func(n *yaml.Node, text string) {
			out = append(out, knob{k.at(n), &marker{alter: map[*yaml.Node]string{n: text}}})
		}
		list := entries(k.doc, "replacements")
		for j := len(list) - 1; j >= 0; j-- {
			out = append(out, knob{k.at(list[j]), &marker{drop: list[j]}})
		}
		for _, e := range append(entries(k.doc, "images"), entries(k.doc, "imageTags")...) {
			for _, name := range []string{"digest", "newTag", "newName"} {
				if _, v := foldedField(e, name); v != nil && strings.Contains(value, v.Value) {
					alter(v, v.Value+"z")
				}
			}
		}
		for _, e := range entries(k.doc, "replicas") {
			if _, v := foldedField(e, "count"); v != nil && v.Value == value {
				alter(v, "1"+v.Value)
			}
		}
		for _, set := range pairSets(k.doc) {
			if _, v := field(set, key); v != nil && v.Value == value {
				alter(v, v.Value+"z")
			}
		}
		if _, v := foldedField(k.doc, "nameSuffix"); v != nil && isName && strings.Contains(value, v.Value) {
			alter(v, v.Value+"z")
		}
		if _, v := foldedField(k.doc, "namePrefix"); v != nil && isName && strings.Contains(value, v.Value) {
			alter(v, "z"+v.Value)
		}
		if _, v := foldedField(k.doc, "namespace"); v != nil && isNamespace && v.Value == value {
			alter(v, v.Value+"z")
		}
	}
	return out
}

// pairSets are the mappings of labels and annotations that a kustomization adds.
func pairSets(doc *yaml.Node) []*yaml.Node {
	var sets []*yaml.Node
	for _, name := range []string{"commonAnnotations", "commonLabels"} {
		if _, v := foldedField(doc, name); v != nil {
			sets = append(sets, v)
		}
	}
	for _, e := range entries(doc, "labels") {
		if _, v := foldedField(e, "pairs"); v != nil {
			sets = append(sets, v)
		}
	}
	return sets
}

// generator finds the entry, or the file, that a field of a generated ConfigMap
// or Secret came from. A name that several entries share is not told.
func (r *Result) generator(f located) (diag.Position, bool) {
	if r.trace().objects[f.object].doc >= 0 {
		return diag.Position{}, false
	}
	list := map[string]string{"ConfigMap": "configMapGenerator", "Secret": "secretGenerator"}[text(r.raw[f.object], "kind")]
	name := text(r.raw[f.object], "metadata", "name")
	var found []diag.Position
	for _, k := range r.plan.kusts {
		for _, e := range entries(k.doc, list) {
			_, n := foldedField(e, "name")
			if n == nil || n.Value == "" || !strings.Contains(name, n.Value) {
				continue
			}
			if len(f.path) == 2 && f.path[0] == "data" {
				found = append(found, generatedFrom(k, e, f.path[1])...)
			}
		}
	}
	if len(found) != 1 {
		return diag.Position{}, false
	}
	return found[0], true
}

// generatedFrom is where an entry of a generator gives the value of a data key.
func generatedFrom(k *kust, entry *yaml.Node, key string) []diag.Position {
	var found []diag.Position
	for _, l := range entries(entry, "literals") {
		if strings.HasPrefix(l.Value, key+"=") {
			found = append(found, k.at(l))
		}
	}
	for _, l := range entries(entry, "files") {
		name, _, named := strings.Cut(l.Value, "=")
		if !named {
			name = l.Value[strings.LastIndexByte(l.Value, '/')+1:]
		}
		if name == key {
			found = append(found, k.at(l))
		}
	}
	return found
}
