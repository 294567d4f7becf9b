package kust

import (
	"bytes"
	"strconv"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// tracer runs the marked builds of a raw build, and caches their traces.
type tracer struct {
	raw     []*yaml.Node
	builds  *rebuilder
	members memberIndex

	tracing sync.Once
	whole   *trace
	mu      sync.Mutex
	batches map[int]*trace // by the index of the batch; nil if the build fails
}

// setWhole stores the trace of a marked build that has already run.
func (t *tracer) setWhole(known *trace) { t.tracing.Do(func() { t.whole = known }) }

// all returns the trace of the whole build. It builds once.
func (t *tracer) all() *trace {
	t.tracing.Do(func() { t.whole = t.with(&marker{}) })
	return t.whole
}

// with returns the trace of a build that is marked or changed by m. If that build fails, the trace has no
// objects.
func (t *tracer) with(m *marker) *trace {
	nodes := t.builds.run(m)
	if nodes == nil {
		m.leaves, m.docs = nil, nil
	}
	return traceOf(m, t.raw, nodes)
}

// at returns a trace that has everything about an object: the trace of its batch if the build has batches,
// and otherwise the trace of the whole build.
func (t *tracer) at(object int) *trace {
	i, _, ok := t.memberOf(object)
	if !ok {
		return t.all()
	}
	parts := t.builds.plan.apart.parts
	at := 0
	for parts.batches[at].to <= i {
		at++
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	known, done := t.batches[at]
	if !done {
		known = t.batch(parts, parts.batches[at])
		t.batches[at] = known
	}
	if known == nil {
		return t.all()
	}
	return known
}

// batch returns the trace of the marked build of a batch, or nil if that build fails.
func (t *tracer) batch(parts *parts, b batch) *trace {
	m := &marker{needed: map[*yaml.Node]bool{}}
	for _, i := range append(numbers(b.from, b.to), b.others...) {
		l := parts.members[i]
		m.needed[t.builds.plan.files[l.file].docs[l.doc]] = true
	}
	marked := t.builds.runBatch(m, parts, b)
	if marked == nil {
		return nil
	}
	out := newTrace(m, len(t.raw))
	for i, n := range marked {
		out.set(t.members.object[b.from+i], n)
	}
	return out
}

// memberOf returns the member of an object. ok is false if the build was not in batches.
func (t *tracer) memberOf(object int) (i int, l *member, ok bool) {
	if i, ok = t.members.member[t.raw[object]]; !ok {
		return 0, nil, false
	}
	return i, t.builds.plan.apart.parts.members[i], true
}

// documentOf returns the document of an object. If a patch may have changed the object, it runs a marked
// build.
func (t *tracer) documentOf(object int) (sourceDoc, bool) {
	if _, l, ok := t.memberOf(object); ok && !l.patched {
		f := t.builds.plan.files[l.file]
		return sourceDoc{location: location{file: f.path, source: f.content}, node: f.docs[l.doc]}, true
	}
	known := t.at(object)
	if doc := known.objects[object].doc; doc >= 0 {
		return known.docs[doc], true
	}
	return sourceDoc{}, false
}

// hasDocument reports whether an object comes from a document rather than a generator.
func (t *tracer) hasDocument(object int) bool {
	_, ok := t.documentOf(object)
	return ok
}

// trace is the result of a marked build.
type trace struct {
	leaves []leaf
	docs   []sourceDoc
	// objects are the marked objects, parallel to the raw ones. If a node is nil, no origin is known.
	objects []traced
}

// traced is one object of a marked build.
type traced struct {
	node *yaml.Node
	doc  int // index into docs, or -1 for a generated object
}

// sourceDoc is an object of a resource file, before kustomize changes it.
type sourceDoc struct {
	location location
	node     *yaml.Node
}

// leaf is a scalar of a source.
type leaf struct {
	location location
	node     *yaml.Node
	steps    []step // from the object's root down to the scalar
	// own is true if the scalar is a field of a kustomization, such as the value of a label. Its value can
	// appear at many paths.
	own  bool
	from source
}

// source describes the text that contains a scalar.
type source struct {
	how   How
	kust  *kust      // the kustomization that names the text; nil for a file of objects
	entry *yaml.Node // its entry there
	op    *yaml.Node // the operation of a JSON patch
	whole bool       // a merge replaces lists as a whole
}

// step is one element of a path, with its nodes in the source.
type step struct {
	elem string
	key  *yaml.Node // nil for an item of a sequence
	val  *yaml.Node
	// pointer is true for a token of a JSON pointer. A number in it may be an index or a key.
	pointer bool
}

// A mark is markStart, the index of a leaf and markEnd. docKey is the annotation with the index of the
// document of an object.
const (
	markStart = ".wEiR0"
	markEnd   = "0RiEw."
	docKey    = "weir-origin-document"
)

func mark(id int) string { return markStart + strconv.Itoa(id) + markEnd }

// unmark returns a text without its marks, and the indexes of the marks.
func unmark(s string) (string, []int) {
	var ids []int
	var b strings.Builder
	for {
		before, after, found := strings.Cut(s, markStart)
		b.WriteString(before)
		if !found {
			return b.String(), ids
		}
		number, rest, ended := strings.Cut(after, markEnd)
		id, err := strconv.Atoi(number)
		if !ended || err != nil {
			b.WriteString(markStart)
			s = after
			continue
		}
		ids = append(ids, id)
		s = rest
	}
}

// newTrace returns a trace for the given number of objects, all unknown.
func newTrace(m *marker, objects int) *trace {
	t := &trace{objects: make([]traced, objects), leaves: m.leaves, docs: m.docs}
	for i := range t.objects {
		t.objects[i].doc = -1
	}
	return t
}

// traceOf returns the trace of a marked build of raw objects.
func traceOf(m *marker, raw, marked []*yaml.Node) *trace {
	t := newTrace(m, len(raw))
	t.match(raw, marked)
	return t
}

// match finds the marked object of each raw object by its identity or, if that changed, by its position in
// the output.
func (t *trace) match(raw, marked []*yaml.Node) {
	byID := make(map[string]*yaml.Node, len(marked))
	for _, n := range marked {
		byID[identity(n)] = n
	}
	for i, n := range raw {
		m := byID[identity(n)]
		if m == nil && len(raw) == len(marked) && text(marked[i], "kind") == text(n, "kind") {
			m = marked[i]
		}
		if m != nil {
			t.set(i, m)
		}
	}
}

// set stores the marked object for the raw object at an index, and its document.
func (t *trace) set(i int, marked *yaml.Node) {
	t.objects[i].node = marked
	if doc, err := strconv.Atoi(text(marked, "metadata", "annotations", docKey)); err == nil && doc < len(t.docs) {
		t.objects[i].doc = doc
	}
}

func identity(n *yaml.Node) string {
	return strings.Join([]string{text(n, "apiVersion"), text(n, "kind"), text(n, "metadata", "namespace"), text(n, "metadata", "name")}, "\x00")
}

// at returns the node at a path, or nil.
func at(n *yaml.Node, p intent.Path) *yaml.Node {
	for _, elem := range p {
		if n = deref(n); n == nil {
			return nil
		}
		n = child(n, elem)
	}
	return deref(n)
}

func child(n *yaml.Node, elem string) *yaml.Node {
	switch n.Kind {
	case yaml.MappingNode:
		_, v := field(n, elem)
		return v
	case yaml.SequenceNode:
		if i, ok := index(elem); ok && i < len(n.Content) {
			return n.Content[i]
		}
	}
	return nil
}

func index(elem string) (int, bool) {
	inner, ok := strings.CutPrefix(elem, "[")
	if !ok {
		return 0, false
	}
	i, err := strconv.Atoi(strings.TrimSuffix(inner, "]"))
	return i, err == nil && i >= 0
}

// credited returns the leaf of a scalar if its marks prove it: the marked scalar without its marks equals the
// real one, and the path of the leaf leads to the path of the scalar. If several leaves left marks, the
// kustomization's own field was the last.
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

// position returns the place of the leaf, or of the element up levels above it.
func (l *leaf) position(up int, key bool) (diag.Position, bool) {
	if len(l.steps) == 0 {
		return l.location.node(l.node), true
	}
	i := len(l.steps) - 1 - up
	if i < 0 {
		return diag.Position{}, false
	}
	s := l.steps[i]
	if s.key != nil && (key || up > 0) {
		return l.location.node(s.key), true
	}
	return l.location.node(s.val), true
}

// leads reports whether the leaf's path in its source is compatible with p, so that the leaf can be the field
// at p.
func (l *leaf) leads(p intent.Path) bool {
	if l.own {
		return true
	}
	if len(l.steps) != len(p) {
		return false
	}
	for i, s := range l.steps {
		_, isIndex := index(p[i])
		_, wasIndex := index(s.elem)
		switch {
		case s.elem == p[i], isIndex && wasIndex:
		case s.pointer && isIndex && (s.elem == "-" || isDigits(s.elem)):
		default:
			return false
		}
	}
	return true
}

func isDigits(s string) bool {
	_, err := strconv.ParseUint(s, 10, 32)
	return err == nil
}

func encodeDocuments(docs []*yaml.Node) ([]byte, error) {
	var b bytes.Buffer
	for i, d := range docs {
		if i > 0 {
			b.WriteString("---\n")
		}
		out, err := yaml.Marshal(d)
		if err != nil {
			return nil, err
		}
		b.Write(out)
	}
	return b.Bytes(), nil
}
