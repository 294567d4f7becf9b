package kust

import (
	"strings"
	"sync"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// finder finds the places that set the fields of a raw build. It uses marked builds, and probes for fields
// without a mark.
type finder struct {
	tracer
	effects effects

	probing sync.Mutex
	probed  map[string]diag.Position // results of probes by fieldID, including unknown ones

	pruning sync.Mutex
	pruned  map[changed]*finder // builds without the nodes that hide a change; nil if a build fails

	naming sync.Once
	byName map[string]int // the first object of each identity
}

func newFinder(raw []*yaml.Node, builds *rebuilder) *finder {
	f := &finder{tracer: tracer{raw: raw, builds: builds, batches: map[int]*trace{}}, probed: map[string]diag.Position{}, pruned: map[changed]*finder{}}
	f.effects = effects{traces: &f.tracer, results: map[changed]*effect{}}
	return f
}

// position returns the place that set a field. With key, it returns the place of the field's key.
func (f *finder) position(at located, key bool) (diag.Position, bool) {
	if l, up, ok := f.leafOf(at); ok {
		return l.position(up, key)
	}
	if at.node.Kind != yaml.ScalarNode {
		return diag.Position{}, false
	}
	id := fieldID(at.object, at.path)
	f.probing.Lock()
	defer f.probing.Unlock()
	if known, ok := f.probed[id]; ok {
		return known, known.Known()
	}
	s, ok := probe{f, at}.run()
	f.probed[id] = s.at
	return s.at, ok
}

// leafOf returns the leaf of a field. For a mapping or a sequence it returns the leaf of a scalar below it,
// and the scalar's depth below the field.
func (f *finder) leafOf(field located) (l *leaf, up int, ok bool) {
	if d, ok := f.documentOf(field.object); ok {
		if l, ok := documentLeaf(field, d); ok {
			return l, 0, true
		}
	}
	if l, up, ok, sure := f.directLeaf(field); sure {
		return l, up, ok
	}
	t := f.at(field.object)
	made := t.objects[field.object]
	if made.node == nil {
		return nil, 0, false
	}
	marked := at(made.node, field.path)
	if marked == nil {
		return nil, 0, false
	}
	s := search{trace: t}
	if field.node.Kind != yaml.ScalarNode && made.doc >= 0 {
		// Prefer a scalar of the object itself to additions of patches.
		s.within = t.docs[made.doc].location.file
		if l, up, ok := s.find(field.node, marked, field.path, 0); ok {
			return l, up, true
		}
		s.within = ""
	}
	return s.find(field.node, marked, field.path, 0)
}

// search looks for scalars that have a leaf.
type search struct {
	trace  *trace
	within string // the file of the leaf; any if empty
}

// find returns the leaf of the first scalar at or below a node that has one, and the scalar's depth below the
// node.
func (s *search) find(raw, marked *yaml.Node, p intent.Path, down int) (*leaf, int, bool) {
	raw, marked = deref(raw), deref(marked)
	if raw.Kind != marked.Kind {
		return nil, 0, false
	}
	if raw.Kind == yaml.ScalarNode {
		l := s.trace.credited(raw, marked, p)
		ok := l != nil && (down == 0 || !l.own) && (s.within == "" || l.location.file == s.within && l.location.scalar == nil)
		return l, down, ok
	}
	for i, c := range raw.Content {
		elem := intent.Index(i)
		if raw.Kind == yaml.MappingNode {
			if i%2 == 0 {
				continue
			}
			elem = raw.Content[i-1].Value
		}
		m := child(marked, elem)
		if m == nil {
			continue
		}
		if l, n, ok := s.find(c, m, p.Join(elem), down+1); ok {
			return l, n, true
		}
	}
	return nil, 0, false
}

// documentLeaf returns the leaf of a field of an object's identity, which has no mark. The field comes from
// the object's document if it is unchanged there.
func documentLeaf(f located, d sourceDoc) (*leaf, bool) {
	if f.node == nil || f.node.Kind != yaml.ScalarNode {
		return nil, false
	}
	switch strings.Join(f.path, "\x00") {
	case "apiVersion", "kind", "metadata\x00name", "metadata\x00namespace":
	default:
		return nil, false
	}
	l := &leaf{location: d.location, node: d.node, from: source{how: Base}}
	for _, elem := range f.path {
		key, val := field(l.node, elem)
		if val == nil {
			return nil, false
		}
		l.node = val
		l.steps = append(l.steps, step{elem: elem, key: key, val: val})
	}
	return l, l.node.Value == f.node.Value
}

// setterOf returns the last setter of a field's value. It first compares the place where the value is
// written, and builds again with changes only if that does not explain the value. ok is false if no setter
// is found.
func (f *finder) setterOf(field located) (setter, bool) {
	l, up, ok := f.leafOf(field)
	ok = ok && up == 0 && (l.from.how != Generator || !f.hasDocument(field.object))
	if ok && (l.own || l.node.Value == field.node.Value) {
		return l.setter(), true
	}
	// The written value differs from the final value, so something changed it.
	p := probe{f, field}
	if s, changed, _ := p.change(); changed {
		if m := p.markedScalar(); s.how == Replacement && m != nil {
			if source := p.followed(m.leaves); source != nil {
				s.at, s.by = source.setter().at, s.at
			}
		}
		return s, true
	}
	if ok {
		return l.setter(), true
	}
	return p.run()
}

// without returns the finder of the build that also leaves out the given nodes, or nil if that build fails.
func (f *finder) without(cut []*yaml.Node) *finder {
	builds := f.builds.without(cut)
	none := func(*yaml.Node, []step) bool { return false }
	raw := builds.run(&marker{only: none})
	if raw == nil {
		return nil
	}
	return newFinder(raw, builds)
}

// withoutOnce is like without, for the nodes that hide the result of a change. It builds once for each
// change.
func (f *finder) withoutOnce(c changed, cut []*yaml.Node) *finder {
	f.pruning.Lock()
	defer f.pruning.Unlock()
	s, done := f.pruned[c]
	if !done {
		s = f.without(cut)
		f.pruned[c] = s
	}
	return s
}

// same returns the field of this build that corresponds to a field of another build. The node is nil if the
// field is missing. ok is false if the object is unknown.
func (f *finder) same(other *finder, field located) (located, bool) {
	was := other.raw[field.object]
	f.naming.Do(func() {
		f.byName = make(map[string]int, len(f.raw))
		for i := len(f.raw) - 1; i >= 0; i-- {
			f.byName[identity(f.raw[i])] = i
		}
	})
	i, found := f.byName[identity(was)]
	if !found {
		// Its name came from a part that is left out. Only names change the order of objects.
		if len(f.raw) != len(other.raw) || text(f.raw[field.object], "kind") != text(was, "kind") {
			return located{}, false
		}
		i = field.object
	}
	out := located{object: i, path: field.path, node: at(f.raw[i], field.path)}
	if out.node != nil && out.node.Kind != yaml.ScalarNode {
		return located{}, false
	}
	return out, true
}

// styleOf returns a function that returns the style of a scalar of object i in its source. Merges preserve
// styles, but annotations, JSON patches and replacements lose them. So the function searches the source.
func (f *finder) styleOf(i int) func(n *yaml.Node, p intent.Path) yaml.Style {
	return func(n *yaml.Node, p intent.Path) yaml.Style {
		// kustomize rewrites the annotations of every object, and labels if it adds some.
		rewritten := len(p) > 1 && p[0] == "metadata" && (p[1] == "annotations" || p[1] == "labels")
		if n.Style&quotedOrBlock != 0 || !rewritten && !f.builds.plan.losesStyle() {
			return n.Style
		}
		if l, up, ok := f.leafOf(located{object: i, path: p, node: at(f.raw[i], p)}); ok && up == 0 {
			return l.node.Style
		}
		return n.Style
	}
}

// losesStyle reports whether a build of the plan may lose the styles of scalars.
func (p *buildSpec) losesStyle() bool {
	for _, k := range p.kusts {
		if len(k.spec.Replacements)+len(k.spec.Transformers) > 0 {
			return true
		}
		for _, patch := range k.patches {
			for _, doc := range patch.docs {
				if doc.Kind == yaml.SequenceNode {
					return true
				}
			}
		}
	}
	return false
}
