package kust

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode/utf8"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust/variables"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/sops"
	"github.com/weir-gitops/weir/render/standin"
	"github.com/weir-gitops/weir/render/tree"
	"go.yaml.in/yaml/v3"
)

// Origins finds the file and line that set a field of a build. Reviews use it, and
// so does each diagnostic about an object. Code of our own finds it: kustomize's originAnnotations
// name the file of an object, and its transformerAnnotations what changed it, but no field and no
// line.
//
// The terms: a leaf is a scalar of a source, with its path there; a source is a file of objects, a
// patch, or a field of a kustomization; the raw build is kustomize's output before variables are
// substituted. A question names a field of the substituted object, and locate finds it in the raw
// build, where a key may still hold a variable.
//
// A question goes through these steps until one can answer:
//
//  1. The marked build (trace.go, marker.go). The build runs a second time, with a mark
//     at the end of every scalar of every object and patch that could flow into an
//     object. Marks survive merges, JSON patches, replacements and copies, because for
//     kustomize they are part of the values. The marks in the output name the leaves
//     that the fields came from. An annotation names the document of each object.
//  2. Fields that decide how a build proceeds (names, kinds, selectors, merge keys) bear no
//     mark: a mark would change the build. An object's own apiVersion, kind, name and
//     namespace come from its document if they are unchanged there.
//  3. A mapping or a sequence has the place of the first scalar below it that a leaf
//     accounts for: the key that is as many elements above in the source.
//  4. Probes (probe.go), for a scalar that no mark accounts for. One thing is changed
//     (an entry of images, a prefix, a replacement) and the build runs once more: what
//     the field follows has set it. The field of a generated object leads to its
//     generator's entry. If marks on all scalars change the course of a build, the last
//     probe marks only the scalars at the field's own key.
//
// The rules, each so that a wrong line is never shown (no line is better):
//
//   - A mark counts only if the marked field, without its marks, is the field of the
//     raw build, and if the leaf's path in its source leads to the field's.
//   - If a file holds text like a mark, or the marked build fails, no mark counts.
//   - A name that several entries of generators share has no origin.
//   - Origins cost nothing until the first question. The marked build runs once, and the
//     answers of probes are kept. For the long term only the Proof of a build is kept
//     (proof.go): with it the marked build alone can answer, later.
//   - A question runs maxProbes builds at most, and all questions of a result together
//     take no longer than one build may.
//
// Chain goes further down: it leaves out what set the field last, builds again, and asks the same
// question about that build, until it reaches the base. This build has Origins of its own
// (without), whose cuts say what is left out.
//
// Origins stay in this package: they walk, feed and run the same plan as the build, and the
// diagnostics of the substitution need them while the build is still under way.
type Origins struct {
	objects []kinds.Object // with variables substituted, and with stand-ins for secrets
	raw     []*yaml.Node   // before substitution, parallel to objects
	vars    map[string]string

	// The inputs from which the plan is made again.
	tree      tree.Tree
	path      string
	limits    Limits
	small     bool
	decrypter *sops.Decrypter
	texts     *standin.Set
	plan      *plan

	indexing sync.Once
	byRef    map[intent.ObjectRef]int
	names    map[string][]string // of each kind's objects, two at most
	tracing  sync.Once
	traced   *trace
	direct   direct
	spent    atomic.Int64 // nanoseconds of builds for origins
	probing  sync.Mutex
	probed   map[string]diag.Position // by object and path; unknown ones too
	changing sync.Mutex
	effects  map[changed]*effect  // results of changed builds
	pruned   map[changed]*Origins // builds without what hides a change; nil those that fail
	naming   sync.Once
	byName   map[string]int // objects of the raw build by their identity, the first of each
	cuts     []*yaml.Node   // parts that are left out to see what was below
	// proof is not nil if raw is the marked build without its marks, which are in marked.
	proof  Proof
	marked []*yaml.Node
}

// Origin returns the place that set the field at p of an object: for a scalar
// the value in the base, the patch, the kustomization's field or the generator's
// entry that it came from, for a mapping or a sequence its key there. ok is
// false if the field does not exist, or if the place is not known for sure.
//
// The first call for a result builds it once more, and a few fields cost more
// builds; answers are kept. Origin is safe for concurrent use.
func (o *Origins) Origin(ref intent.ObjectRef, p intent.Path) (diag.Position, bool) {
	f, ok := o.locate(ref, p)
	if !ok || f.missing > 0 {
		return diag.Position{}, false
	}
	return o.position(f, false)
}

// KeyOrigin is Origin for a diagnostic about the key itself, such as an unknown
// field: the place of the key, or of the item of a sequence.
func (o *Origins) KeyOrigin(ref intent.ObjectRef, p intent.Path) (diag.Position, bool) {
	f, ok := o.locate(ref, p)
	if !ok || f.missing > 0 {
		return diag.Position{}, false
	}
	return o.position(f, true)
}

// Near is Origin for the field at p or, if it is missing or its place is unknown, the
// nearest field above it, and in the end the object's first line.
func (o *Origins) Near(ref intent.ObjectRef, p intent.Path) (diag.Position, bool) {
	f, ok := o.locate(ref, p)
	if !ok {
		return diag.Position{}, false
	}
	for n := len(p) - f.missing; n > 0; n-- {
		if f, ok = o.locate(ref, p[:n]); ok {
			if at, ok := o.position(f, n < len(p)); ok {
				return at, true
			}
		}
	}
	if d, ok := o.documentOf(f.object); ok {
		return d.location.node(d.node), true
	}
	return diag.Position{}, false
}

// Renamed returns the name in the build of an object of a kind that the files
// name oldName, if a prefix, a suffix or a hash gave it another. A reference
// that still holds oldName was left dangling by the renaming. If the object is
// used several times, the first of the build decides.
func (o *Origins) Renamed(kind, oldName string) (newName string, ok bool) {
	// Most often the object is in no file at all: that needs no build.
	o.index()
	if !slices.ContainsFunc(o.names[kind], func(name string) bool { return name != oldName }) {
		return "", false
	}
	t := o.trace()
	for i, made := range t.objects {
		if made.doc < 0 || i >= len(o.objects) || o.objects[i].Ref.Kind != kind {
			continue
		}
		was, _ := variables.Substitute(text(t.docs[made.doc].node, "metadata", "name"), o.vars)
		if now := o.objects[i].Ref.Name; was == oldName && now != oldName {
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
func (o *Origins) index() map[intent.ObjectRef]int {
	o.indexing.Do(func() {
		o.byRef, o.names = make(map[intent.ObjectRef]int, len(o.objects)), map[string][]string{}
		for i := len(o.objects) - 1; i >= 0; i-- {
			ref := o.objects[i].Ref
			o.byRef[ref] = i
			if names := o.names[ref.Kind]; len(names) < 2 && !slices.Contains(names, ref.Name) {
				o.names[ref.Kind] = append(names, ref.Name)
			}
		}
	})
	return o.byRef
}

// locate turns a path of the substituted object into one of the raw object.
func (o *Origins) locate(ref intent.ObjectRef, p intent.Path) (located, bool) {
	i, ok := o.index()[ref]
	if !ok || i >= len(o.raw) { // a build that failed keeps none
		return located{}, false
	}
	f := located{object: i, path: make(intent.Path, 0, len(p)), node: o.raw[i]}
	done := o.objects[i].Node
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

// position returns the index in a node's content of the value for a path element.
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
func (o *Origins) position(f located, key bool) (diag.Position, bool) {
	if l, up, ok := o.leafOf(f); ok {
		return l.position(up, key)
	}
	if f.node.Kind != yaml.ScalarNode {
		return diag.Position{}, false
	}
	id := fieldID(f.object, f.path)
	o.probing.Lock()
	defer o.probing.Unlock()
	if at, ok := o.probed[id]; ok {
		return at, at.Known()
	}
	if o.probed == nil {
		o.probed = map[string]diag.Position{}
	}
	s, ok := o.probe(f)
	o.probed[id] = s.at
	return s.at, ok
}

// leafOf returns the leaf that the field at f came from or, for a mapping or a
// sequence, that a scalar below it came from, and how many elements below.
func (o *Origins) leafOf(f located) (l *leaf, up int, ok bool) {
	if d, ok := o.documentOf(f.object); ok {
		if l, ok := documentLeaf(f, d); ok {
			return l, 0, true
		}
	}
	if l, up, ok, sure := o.directLeaf(f); sure {
		return l, up, ok
	}
	t := o.traceAt(f.object)
	made := t.objects[f.object]
	if made.node == nil {
		return nil, 0, false
	}
	marked := at(made.node, f.path)
	if marked == nil {
		return nil, 0, false
	}
	s := search{trace: t}
	if f.node.Kind != yaml.ScalarNode && made.doc >= 0 {
		// The rest of a mapping of the object itself comes before the additions of
		// patches.
		s.within = t.docs[made.doc].location.file
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
	within string // the file of the leaf; any if empty
}

// find returns the leaf of the first scalar at or below a node.
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

// documentLeaf accounts for unmarked fields, which are the object's identity: they came from the
// object's own document if they are unchanged there.
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

// styleOf returns how the scalar at a path of object i was written. Merges keep
// a scalar's style, but annotations, JSON patches and replacements lose it for
// the object they touch, and then the source is asked.
func (o *Origins) styleOf(i int) func(n *yaml.Node, p intent.Path) yaml.Style {
	return func(n *yaml.Node, p intent.Path) yaml.Style {
		// kustomize rewrites the annotations of every object, and labels if it adds some.
		rewritten := len(p) > 1 && p[0] == "metadata" && (p[1] == "annotations" || p[1] == "labels")
		if n.Style&quotedOrBlock != 0 || !rewritten && !o.plan.losesStyle() {
			return n.Style
		}
		if l, up, ok := o.leafOf(located{object: i, path: p, node: at(o.raw[i], p)}); ok && up == 0 {
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
func (o *Origins) within(ref intent.ObjectRef, p intent.Path, offset int) diag.Position {
	f, ok := o.locate(ref, p)
	if !ok || f.node == nil {
		near, _ := o.Near(ref, p)
		return near
	}
	l, up, ok := o.leafOf(f)
	if !ok || up != 0 || l.location.scalar != nil || l.node.Style&yaml.LiteralStyle == 0 || offset > len(f.node.Value) {
		near, _ := o.Near(ref, p)
		return near
	}
	before := f.node.Value[:offset]
	line := strings.Count(before, "\n") + 1
	column := utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:]) + 1
	return location{file: l.location.file, scalar: l.node, source: l.location.source}.at(line, column)
}
