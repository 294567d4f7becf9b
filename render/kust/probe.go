package kust

import (
	"path"
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// maxProbes bounds the builds for one question.
const maxProbes = 48

// setter is the origin of a field's value, or its last change.
type setter struct {
	at  diag.Position // the value
	how How
	by  diag.Position // the entry that applies the value, if it is at another place
	cut []*yaml.Node  // the parts to leave out to get the field's earlier value
	// value is the text at that place, if it is a scalar of an object or a patch.
	value string
}

// setter returns the leaf as a setter, with its position and the nodes to cut for a build without it.
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

// probe finds the setter of a scalar that has no mark. It changes one thing at a time, builds again, and
// checks whether the field changes too.
type probe struct {
	*finder
	field located
}

// run tries everything that can have set the field: a new name, a generator, a transformer, a patch that
// moved the value, and a key. ok is false if none of them did, or if the time for builds is spent.
func (p probe) run() (setter, bool) {
	if s, ok := p.renamed(); ok {
		return s, true
	}
	if s, ok := p.generator(); ok {
		return s, true
	}
	marked := p.markedScalar()
	moved := marked != nil && len(marked.leaves) > 0 && marked.rest == p.field.node.Value
	if marked != nil && !moved {
		// The marks changed how the build proceeded. For example, a reference no longer matched a name.
		if l := p.followed(marked.leaves); l != nil {
			return l.setter(), true
		}
	}
	if s, ok, spent := p.change(); ok || spent {
		if ok && s.how == Replacement && moved {
			// The place of a replacement's value is its source.
			if l := p.followed(marked.leaves); l != nil {
				s.at, s.by = l.setter().at, s.at
			}
		}
		return s, ok
	}
	if moved {
		// A JSON patch copied or moved it.
		return marked.leaves[len(marked.leaves)-1].setter(), true
	}
	return p.byKey()
}

// followed returns the last of the leaves that the field depends on.
func (p probe) followed(leaves []*leaf) *leaf {
	for i := len(leaves) - 1; i >= 0; i-- {
		l := leaves[i]
		if p.follows(&marker{typed: true, only: func(n *yaml.Node, _ []step) bool { return n == l.node }}) {
			return l
		}
	}
	return nil
}

// change changes the kustomizations' own fields one by one until the field changes. spent is true if there
// are too many of them.
func (p probe) change() (s setter, ok, spent bool) {
	probes := 0
	for _, k := range p.candidates() {
		if probes++; probes > maxProbes {
			return setter{}, false, true
		}
		e := p.effects.effectOf(k.changed, k.marker)
		if e.moves(p.field) {
			return k.setter, true, false
		}
		if cut := p.outerPatches(k); len(cut) > 0 && e.lost[p.field.object] {
			// Patches of outer kustomizations do not match the object under its other name.
			probes++
			s := p.withoutOnce(k.changed, cut)
			if s == nil {
				continue
			}
			if g, ok := s.same(p.finder, p.field); ok && g.node != nil && g.node.Value == p.field.node.Value && s.effects.effectOf(k.changed, k.marker).moves(g) {
				k.cut = append(k.cut, cut...)
				return k.setter, true, false
			}
		}
	}
	return setter{}, false, false
}

// renamed returns the only prefix, suffix or namespace that changed the name of an object. It answers only
// for builds in batches, in which no patch changes names.
func (p probe) renamed() (setter, bool) {
	_, made, known := p.memberOf(p.field.object)
	if !known || !named(p.field.path) {
		return setter{}, false
	}
	was, now := text(p.builds.plan.files[made.file].docs[made.doc], p.field.path...), p.field.node.Value
	list := p.candidates()
	if was == now || len(list) != 1 {
		return setter{}, false
	}
	switch by := list[0]; by.how {
	case NamePrefix:
		return by.setter, now == by.changed.at.Value+was
	case NameSuffix:
		return by.setter, now == was+by.changed.at.Value
	case Namespace:
		return by.setter, now == by.changed.at.Value
	}
	return setter{}, false
}

// outerPatches returns the entries of patches and replacements in kustomizations that kustomize applies after
// the one in which a candidate renames objects.
func (p probe) outerPatches(k candidate) []*yaml.Node {
	if k.how != NamePrefix && k.how != NameSuffix && k.how != Namespace {
		return nil
	}
	var cut []*yaml.Node
	after := false
	for _, outer := range p.builds.plan.kusts {
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

// markedScalar is a scalar of the marked build: its text without marks, and the leaves of its marks.
type markedScalar struct {
	rest   string
	leaves []*leaf
}

// markedScalar returns the field in the marked build, or nil if it has no marks.
func (p probe) markedScalar() *markedScalar {
	t := p.at(p.field.object)
	n := t.objects[p.field.object].node
	if n == nil {
		return nil
	}
	if n = at(n, p.field.path); n == nil || n.Kind != yaml.ScalarNode {
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

// follows reports whether the field differs in a build that m changes. A mark in the field is a difference.
func (p probe) follows(m *marker) bool {
	t := p.with(m)
	n := t.objects[p.field.object].node
	if n == nil {
		return false
	}
	n = at(n, p.field.path)
	return n == nil || n.Value != p.field.node.Value
}

// byKey marks only the scalars at the field's own key. It helps if the build with all marks fails or proceeds
// differently.
func (p probe) byKey() (setter, bool) {
	if len(p.field.path) == 0 {
		return setter{}, false
	}
	key := lastKey(p.field.path)
	e := p.effects.effectOf(changed{key: key}, &marker{only: func(_ *yaml.Node, steps []step) bool {
		for i := len(steps) - 1; i >= 0; i-- {
			if _, item := index(steps[i].elem); !item {
				return steps[i].elem == key
			}
		}
		return false
	}})
	if l := e.leaves[fieldID(p.field.object, p.field.path)]; l != nil {
		return l.setter(), true
	}
	return setter{}, false
}

// lastKey returns the last element of a path that is not an index.
func lastKey(p intent.Path) string {
	for i := len(p) - 1; i >= 0; i-- {
		if _, item := index(p[i]); !item {
			return p[i]
		}
	}
	return ""
}

// candidate is a part of a kustomization that may have set a field, and the change that tests this.
type candidate struct {
	setter
	changed changed
	marker  *marker
}

// candidates returns everything that may have set the field, in the reverse of kustomize's order.
func (p probe) candidates() []candidate {
	var out []candidate
	key, value := lastKey(p.field.path), p.field.node.Value
	for i := len(p.builds.plan.kusts) - 1; i >= 0; i-- {
		k := p.builds.plan.kusts[i]
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

// nameChanges calls alter for the fields of a kustomization that may have produced a name or namespace.
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

// pairFields returns the labels and annotations that a kustomization adds.
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

// generator finds the generator's entry or file for a field of a ConfigMap or Secret. It does not answer for
// a name that several entries share.
func (p probe) generator() (setter, bool) {
	if _, ok := p.documentOf(p.field.object); ok {
		return setter{}, false
	}
	list := map[string]string{"ConfigMap": "configMapGenerator", "Secret": "secretGenerator"}[text(p.raw[p.field.object], "kind")]
	name := text(p.raw[p.field.object], "metadata", "name")
	var found []setter
	for _, k := range p.builds.plan.kusts {
		for _, e := range entries(k.doc, list) {
			_, n := foldedField(e, "name")
			if n == nil || n.Value == "" || !strings.Contains(name, n.Value) {
				continue
			}
			if len(p.field.path) == 2 && p.field.path[0] == "data" {
				found = append(found, p.generatedFrom(k, e, p.field.path[1])...)
			}
		}
	}
	if len(found) != 1 {
		return setter{}, false
	}
	return found[0], true
}

// generatedFrom returns the places at which a generator's entry sets the value of a data key: a literal, a
// line of a file of variables, or the start of a file.
func (p probe) generatedFrom(k *kust, entry *yaml.Node, key string) []setter {
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
		file := p.builds.plan.files[path.Join(k.dir, l.Value)]
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
