package kust

import (
	"path"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// maxProbes bounds the builds that one question may cost.
const maxProbes = 48

// setter describes what set a field, or last changed it.
type setter struct {
	at  diag.Position // the value
	how How
	by  diag.Position // what brings it in, where that is not at the same place
	cut []*yaml.Node  // parts to leave out to restore the earlier value of the field
	// value is the text at that place, if it is a scalar of an object or a patch.
	value string
}

func (l *leaf) setter() setter {
	at, _ := l.position(0, false)
	s := setter{at: at, how: l.from.how, value: l.node.Value}
	if l.from.entry != nil && l.location.scalar == nil {
		s.by = l.from.kust.at(l.from.entry)
	}
	switch {
	case l.own, len(l.steps) == 0:
		s.cut = []*yaml.Node{l.node}
	case l.from.op != nil:
		s.cut = []*yaml.Node{l.from.op}
	default:
		s.cut = []*yaml.Node{l.node}
		for i := len(l.steps) - 1; i > 0 && l.from.whole; i-- {
			if _, item := index(l.steps[i].elem); item {
				s.cut = []*yaml.Node{l.steps[i-1].val}
			}
		}
	}
	return s
}

// probe finds what set a scalar that no mark accounts for, by changing one thing
// at a time and looking whether the field follows.
func (o *Origins) probe(f located) (setter, bool) {
	if s, ok := o.renamed(f); ok {
		return s, true
	}
	if s, ok := o.generator(f); ok {
		return s, true
	}
	marked := o.markedScalar(f)
	moved := marked != nil && len(marked.leaves) > 0 && marked.rest == f.node.Value
	if marked != nil && !moved {
		// The marks changed how the build went, as in a name that no longer
		// matched what refers to it.
		if l := o.followed(f, marked.leaves); l != nil {
			return l.setter(), true
		}
	}
	if s, ok, spent := o.turn(f); ok || spent {
		if ok && s.how == Replacement && moved {
			// A value that a replacement puts in stands at its source.
			if l := o.followed(f, marked.leaves); l != nil {
				s.at, s.by = l.setter().at, s.at
			}
		}
		return s, ok
	}
	if moved {
		// A JSON patch copied or moved it from elsewhere.
		return marked.leaves[len(marked.leaves)-1].setter(), true
	}
	return o.probeByKey(f)
}

// followed is the last of some leaves that a field changes with.
func (o *Origins) followed(f located, leaves []*leaf) *leaf {
	for i := len(leaves) - 1; i >= 0; i-- {
		l := leaves[i]
		if o.follows(f, &marker{typed: true, only: func(n *yaml.Node, _ []step) bool { return n == l.node }}) {
			return l
		}
	}
	return nil
}

// turn changes what the kustomizations' own fields say, one after the other,
// until the field follows. spent says that there were too many of them.
func (o *Origins) turn(f located) (s setter, ok, spent bool) {
	probes := 0
	for _, k := range o.candidates(f) {
		if probes++; probes > maxProbes {
			return setter{}, false, true
		}
		e := o.effectOf(k.changed, k.marker)
		if e.moves(f) {
			return k.setter, true, false
		}
		if cut := o.outerPatches(k); len(cut) > 0 && e.lost[f.object] {
			// Patches further out do not find the object under another name.
			probes++
			s := o.withoutOnce(k.changed, cut)
			if s == nil {
				continue
			}
			if g, ok := s.same(o, f); ok && g.node != nil && g.node.Value == f.node.Value && s.effectOf(k.changed, k.marker).moves(g) {
				k.cut = append(k.cut, cut...)
				return k.setter, true, false
			}
		}
	}
	return setter{}, false, false
}

// outerPatches are the entries of patches and replacements of the kustomizations
// that are applied after the one in which a candidate renames objects.
func (o *Origins) outerPatches(k candidate) []*yaml.Node {
	if k.how != NamePrefix && k.how != NameSuffix && k.how != Namespace {
		return nil
	}
	var cut []*yaml.Node
	after := false
	for _, outer := range o.plan.kusts {
		if after {
			for _, p := range outer.patches {
				cut = append(cut, p.entry)
			}
			cut = append(cut, entries(outer.doc, "replacements")...)
		}
		after = after || outer.file == k.at.File
	}
	return cut
}

type markedScalar struct {
	rest   string
	leaves []*leaf
}

// markedScalar is the field in the marked build, if it bears marks.
func (o *Origins) markedScalar(f located) *markedScalar {
	t := o.traceAt(f.object)
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
func (o *Origins) follows(f located, m *marker) bool {
	t := o.traceWith(m)
	n := t.objects[f.object].node
	if n == nil {
		return false
	}
	n = at(n, f.path)
	return n == nil || n.Value != f.node.Value
}

// probeByKey marks only the scalars at the field's own key, for a build that
// fails or goes another way when everything is marked.
func (o *Origins) probeByKey(f located) (setter, bool) {
	if len(f.path) == 0 {
		return setter{}, false
	}
	key := lastKey(f.path)
	e := o.effectOf(changed{key: key}, &marker{only: func(_ *yaml.Node, steps []step) bool {
		for i := len(steps) - 1; i >= 0; i-- {
			if _, item := index(steps[i].elem); !item {
				return steps[i].elem == key
			}
		}
		return false
	}})
	if l := e.leaves[fieldID(f.object, f.path)]; l != nil {
		return l.setter(), true
	}
	return setter{}, false
}

func lastKey(p intent.Path) string {
	for i := len(p) - 1; i >= 0; i-- {
		if _, item := index(p[i]); !item {
			return p[i]
		}
	}
	return ""
}

// candidate is a part of a kustomization that may have set a field. weir changes it in a
// build of its own and looks whether the field follows.
type candidate struct {
	setter
	changed changed
	marker  *marker
}

// candidates lists what could have set a field, in the reverse order of kustomize.
func (o *Origins) candidates(f located) []candidate {
	var out []candidate
	key, value := lastKey(f.path), f.node.Value
	for i := len(o.plan.kusts) - 1; i >= 0; i-- {
		k := o.plan.kusts[i]
		none := func(*yaml.Node, []step) bool { return false }
		add := func(how How, n *yaml.Node, text string, m *marker) {
			m.only = none
			out = append(out, candidate{setter{at: k.at(n), how: how, cut: []*yaml.Node{n}}, changed{at: n, text: text}, m})
		}
		alter := func(how How, n *yaml.Node, text string) {
			add(how, n, text, &marker{alter: map[*yaml.Node]string{n: text}})
		}
		list := entries(k.doc, "replacements")
		for j := len(list) - 1; j >= 0; j-- {
			add(Replacement, list[j], "", &marker{cut: list[j : j+1 : j+1]})
		}
		for _, e := range append(entries(k.doc, "images"), entries(k.doc, "imageTags")...) {
			for _, name := range []string{"digest", "newTag", "newName"} {
				if _, v := foldedField(e, name); v != nil && strings.Contains(value, v.Value) {
					alter(Image, v, v.Value+"z")
				}
			}
		}
		for _, e := range entries(k.doc, "replicas") {
			if _, v := foldedField(e, "count"); v != nil && v.Value == value {
				alter(Replicas, v, "1"+v.Value)
				out[len(out)-1].cut = []*yaml.Node{e}
			}
		}
		for _, set := range pairFields(k.doc) {
			if _, v := field(set.pairs, key); v != nil && v.Value == value {
				alter(set.how, v, v.Value+"z")
			}
		}
		nameChanges(k, key, value, alter)
	}
	return out
}

// nameChanges passes to alter the fields of a kustomization that may have made a name or namespace.
func nameChanges(k *kust, key, value string, alter func(how How, n *yaml.Node, text string)) {
	switch key {
	case "name":
		if _, v := foldedField(k.doc, "nameSuffix"); v != nil && strings.Contains(value, v.Value) {
			alter(NameSuffix, v, v.Value+"z")
		}
		if _, v := foldedField(k.doc, "namePrefix"); v != nil && strings.Contains(value, v.Value) {
			alter(NamePrefix, v, "z"+v.Value)
		}
	case "namespace":
		if _, v := foldedField(k.doc, "namespace"); v != nil && v.Value == value {
			alter(Namespace, v, v.Value+"z")
		}
	}
}

// pairSet is a mapping of labels or annotations that a kustomization adds.
type pairSet struct {
	how   How
	pairs *yaml.Node
}

func pairFields(doc *yaml.Node) []pairSet {
	var sets []pairSet
	add := func(how How, n *yaml.Node, name string) {
		if _, v := foldedField(n, name); v != nil {
			sets = append(sets, pairSet{how, v})
		}
	}
	add(Annotation, doc, "commonAnnotations")
	add(Label, doc, "commonLabels")
	for _, e := range entries(doc, "labels") {
		add(Label, e, "pairs")
	}
	return sets
}

// generator finds the entry, or the file, that a field of a generated ConfigMap
// or Secret came from. It does not answer for a name that several entries share.
func (o *Origins) generator(f located) (setter, bool) {
	if _, ok := o.documentOf(f.object); ok {
		return setter{}, false
	}
	list := map[string]string{"ConfigMap": "configMapGenerator", "Secret": "secretGenerator"}[text(o.raw[f.object], "kind")]
	name := text(o.raw[f.object], "metadata", "name")
	var found []setter
	for _, k := range o.plan.kusts {
		for _, e := range entries(k.doc, list) {
			_, n := foldedField(e, "name")
			if n == nil || n.Value == "" || !strings.Contains(name, n.Value) {
				continue
			}
			if len(f.path) == 2 && f.path[0] == "data" {
				found = append(found, o.generatedFrom(k, e, f.path[1])...)
			}
		}
	}
	if len(found) != 1 {
		return setter{}, false
	}
	return found[0], true
}

// generatedFrom returns the places at which an entry of a generator gives the value of a data key:
// a literal, a line of a file of variables, or a file's beginning.
func (o *Origins) generatedFrom(k *kust, entry *yaml.Node, key string) []setter {
	var found []setter
	note := func(at, by diag.Position, n *yaml.Node) {
		found = append(found, setter{at: at, how: Generator, by: by, cut: []*yaml.Node{n}})
	}
	for _, l := range entries(entry, "literals") {
		if strings.HasPrefix(l.Value, key+"=") {
			note(k.at(l), diag.Position{}, l)
		}
	}
	for _, l := range entries(entry, "files") {
		name, file, named := strings.Cut(l.Value, "=")
		if !named {
			name, file = path.Base(l.Value), l.Value
		}
		if name == key {
			note(diag.Position{File: path.Join(k.dir, file), Line: 1, Column: 1}, k.at(l), l)
		}
	}
	envs := entries(entry, "envs")
	if _, v := foldedField(entry, "env"); v != nil {
		envs = append(envs[:len(envs):len(envs)], v)
	}
	for _, l := range envs {
		file := o.plan.files[path.Join(k.dir, l.Value)]
		if file == nil {
			continue
		}
		for n, line := range strings.Split(string(file.content), "\n") {
			if strings.HasPrefix(strings.TrimLeft(line, " \t"), key+"=") {
				note(diag.Position{File: file.path, Line: n + 1, Column: 1}, k.at(l), l)
			}
		}
	}
	return found
}
