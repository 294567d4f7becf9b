package kust

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// Where a field comes from is found by code of our own: kustomize's originAnnotations
// name the file of an object, and its transformerAnnotations what changed it, but no
// field and no line. A review asks which line of which patch sets a size.

// Origin returns the place that set the field at p of an object: for a scalar
// the value in the base, the patch, the kustomization's field or the generator's
// entry that it came from, for a mapping or a sequence its key there. ok is
// false if the field does not exist, or if the place is not known for sure.
//
// The first call for a result builds it once more, and a few fields cost more
// builds; answers are kept. Origin is safe for concurrent use.
func (r *Result) Origin(ref intent.ObjectRef, p intent.Path) (diag.Position, bool) {
	f, ok := r.locate(ref, p)
	if !ok || f.missing > 0 {
		return diag.Position{}, false
	}
	return r.position(f, false)
}

// KeyOrigin is Origin for a diagnostic about the key itself, such as an unknown
// field: the place of the key, or of the item of a sequence.
func (r *Result) KeyOrigin(ref intent.ObjectRef, p intent.Path) (diag.Position, bool) {
	f, ok := r.locate(ref, p)
	if !ok || f.missing > 0 {
		return diag.Position{}, false
	}
	return r.position(f, true)
}

// Near is Origin for the field at p or, if it is missing or its place is unknown, the
// nearest field above it, and in the end the object's first line.
func (r *Result) Near(ref intent.ObjectRef, p intent.Path) (diag.Position, bool) {
	f, ok := r.locate(ref, p)
	if !ok {
		return diag.Position{}, false
	}
	for n := len(p) - f.missing; n > 0; n-- {
		if f, ok = r.locate(ref, p[:n]); ok {
			if at, ok := r.position(f, n < len(p)); ok {
				return at, true
			}
		}
	}
	if doc := r.trace().objects[f.object].doc; doc >= 0 {
		d := r.trace().docs[doc]
		return d.place.node(d.node), true
	}
	return diag.Position{}, false
}

// Renamed returns the name in the build of an object of a kind that the files
// name oldName, if a prefix, a suffix or a hash gave it another. A reference
// that still holds oldName was left dangling by the renaming. If the object is
// used several times, the first of the build decides.
func (r *Result) Renamed(kind, oldName string) (newName string, ok bool) {
	t := r.trace()
	for i, o := range t.objects {
		if o.doc < 0 || i >= len(r.Objects) || r.Objects[i].Ref.Kind != kind {
			continue
		}
		was, _ := substitute(text(t.docs[o.doc].node, "metadata", "name"), r.vars)
		if now := r.Objects[i].Ref.Name; was == oldName && now != oldName {
			return now, true
		}
	}
	return "", false
}

// located is a field of the raw build.
type located struct {
	object  int
	path    intent.Path // in the raw build, where keys may hold variables
	node    *yaml.Node  // nil if elements are missing
	missing int         // how many elements at the end of the path do not exist
}

// index finds objects by their identity.
func (r *Result) index() map[intent.ObjectRef]int {
	r.indexing.Do(func() {
		r.byRef = make(map[intent.ObjectRef]int, len(r.Objects))
		for i := len(r.Objects) - 1; i >= 0; i-- {
			r.byRef[r.Objects[i].Ref] = i
		}
	})
	return r.byRef
}

// locate turns a path of the substituted object into one of the raw object.
func (r *Result) locate(ref intent.ObjectRef, p intent.Path) (located, bool) {
	i, ok := r.index()[ref]
	if !ok {
		return located{}, false
	}
	f := located{object: i, path: make(intent.Path, 0, len(p)), node: r.raw[i]}
	done := r.Objects[i].Node
	for n, elem := range p {
		at := position(done, elem)
		if at < 0 {
			f.node, f.missing = nil, len(p)-n
			return f, true
		}
		if done.Kind == yaml.MappingNode {
			elem = f.node.Content[at-1].Value
		}
		f.path = append(f.path, elem)
		done, f.node = deref(done.Content[at]), deref(f.node.Content[at])
	}
	return f, true
}

// position is where in a node's content the value for a path element stands.
func position(n *yaml.Node, elem string) int {
	switch n.Kind {
	case yaml.MappingNode:
		for i := 0; i+1 < len(n.Content); i += 2 {
			if n.Content[i].Value == elem {
				return i + 1
			}
		}
	case yaml.SequenceNode:
		if i, ok := index(elem); ok && i < len(n.Content) {
			return i
		}
	}
	return -1
}

// position answers for a field of the raw build.
func (r *Result) position(f located, key bool) (diag.Position, bool) {
	if l, up, ok := r.leafOf(f); ok {
		return l.position(up, key)
	}
	if f.node.Kind != yaml.ScalarNode {
		return diag.Position{}, false
	}
	id := strconv.Itoa(f.object) + f.path.String()
	r.probing.Lock()
	defer r.probing.Unlock()
	if at, ok := r.probed[id]; ok {
		return at, at.Known()
	}
	if r.probed == nil {
		r.probed = map[string]diag.Position{}
	}
	s, ok := r.probe(f)
	r.probed[id] = s.at
	return s.at, ok
}

// leafOf returns the leaf that the field at f came from or, for a mapping or a
// sequence, that a scalar below it came from, and how many elements below.
func (r *Result) leafOf(f located) (l *leaf, up int, ok bool) {
	t := r.trace()
	o := t.objects[f.object]
	if l, ok := r.documentLeaf(f, o); ok {
		return l, 0, true
	}
	if o.node == nil {
		return nil, 0, false
	}
	marked := at(o.node, f.path)
	if marked == nil {
		return nil, 0, false
	}
	s := search{trace: t}
	if f.node.Kind != yaml.ScalarNode && o.doc >= 0 {
		// The rest of a mapping of the object itself comes before the additions of
		// patches.
		s.within = t.docs[o.doc].place.file
		if l, up, ok := s.find(f.node, marked, f.path, 0); ok {
			return l, up, true
		}
		s.within = ""
	}
	return s.find(f.node, marked, f.path, 0)
}

// search looks for scalars that a leaf accounts for.
type search struct {
	trace  *trace
	within string // the file that the leaf must stand in; any if empty
}

// find returns the leaf of the first scalar at or below a node.
func (s *search) find(raw, marked *yaml.Node, p intent.Path, down int) (*leaf, int, bool) {
	raw, marked = deref(raw), deref(marked)
	if raw.Kind != marked.Kind {
		return nil, 0, false
	}
	if raw.Kind == yaml.ScalarNode {
		l := s.trace.credited(raw, marked, p)
		ok := l != nil && (down == 0 || !l.own) && (s.within == "" || l.place.file == s.within && l.place.scalar == nil)
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

// credited returns the leaf that a scalar came from, if its marks are proof: the
// rest of the marked scalar is the real one, and the leaf stands at such a path.
// Where several left marks, the kustomization's own field came last.
func (t *trace) credited(raw, marked *yaml.Node, p intent.Path) *leaf {
	rest, ids := unmark(marked.Value)
	if rest != raw.Value {
		return nil
	}
	var found *leaf
	for _, id := range ids {
		if l := t.leaf(id); l != nil && (found == nil || l.own || !found.own) && l.leads(p) {
			found = l
		}
	}
	return found
}

func (t *trace) leaf(id int) *leaf {
	if id >= 0 && id < len(t.leaves) {
		return &t.leaves[id]
	}
	return nil
}

// documentLeaf accounts for what is not marked since it is the object's
// identity: it came from the object's own document if it still reads as there.
func (r *Result) documentLeaf(f located, o traced) (*leaf, bool) {
	if o.doc < 0 || f.node == nil || f.node.Kind != yaml.ScalarNode {
		return nil, false
	}
	switch strings.Join(f.path, "\x00") {
	case "apiVersion", "kind", "metadata\x00name", "metadata\x00namespace":
	default:
		return nil, false
	}
	d := r.trace().docs[o.doc]
	l := &leaf{place: d.place, node: d.node, from: source{how: Base}}
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

// position is the place of the leaf, or of the element a number of steps above.
func (l *leaf) position(up int, key bool) (diag.Position, bool) {
	if len(l.steps) == 0 {
		return l.place.node(l.node), true
	}
	i := len(l.steps) - 1 - up
	if i < 0 {
		return diag.Position{}, false
	}
	s := l.steps[i]
	if s.key != nil && (key || up > 0) {
		return l.place.node(s.key), true
	}
	return l.place.node(s.val), true
}

// styleOf returns how the scalar at a path of object i was written. Merges keep
// a scalar's style, but annotations, JSON patches and replacements lose it for
// the object they touch, and then the source is asked.
func (r *Result) styleOf(i int) func(n *yaml.Node, p intent.Path) yaml.Style {
	return func(n *yaml.Node, p intent.Path) yaml.Style {
		// kustomize writes annotations anew for each object, and labels where it adds some.
		rewritten := len(p) > 1 && p[0] == "metadata" && (p[1] == "annotations" || p[1] == "labels")
		if n.Style&quotedOrBlock != 0 || !rewritten && !r.plan.losesStyle() {
			return n.Style
		}
		if l, up, ok := r.leafOf(located{object: i, path: p, node: at(r.raw[i], p)}); ok && up == 0 {
			return l.node.Style
		}
		return n.Style
	}
}

func (p *plan) losesStyle() bool {
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

// within is the place of a byte of the scalar at p: its line, if the scalar is a
// literal block, and else the place of the scalar.
func (r *Result) within(ref intent.ObjectRef, p intent.Path, offset int) diag.Position {
	f, ok := r.locate(ref, p)
	if !ok || f.node == nil {
		near, _ := r.Near(ref, p)
		return near
	}
	l, up, ok := r.leafOf(f)
	if !ok || up != 0 || l.place.scalar != nil || l.node.Style&yaml.LiteralStyle == 0 || offset > len(f.node.Value) {
		near, _ := r.Near(ref, p)
		return near
	}
	before := f.node.Value[:offset]
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return place{file: l.place.file, scalar: l.node, source: l.place.source}.at(line, column)
}
