package kust

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// trace is the outcome of a marked build.
type trace struct {
	leaves []leaf
	docs   []sourceDoc
	// objects are the marked objects, parallel to the raw ones; a nil node means that
	// no origin is known.
	objects []traced
}

type traced struct {
	node *yaml.Node
	doc  int // index into docs, or -1 for a generated object
}

// sourceDoc is an object as a file of resources holds it.
type sourceDoc struct {
	location location
	node     *yaml.Node
}

// leaf is a scalar of a source.
type leaf struct {
	location location
	node     *yaml.Node
	steps    []step // from the object's root down to the scalar
	// own marks a field of a kustomization, such as a label's value, that lands
	// at many paths.
	own  bool
	from source
}

// source is the kind of text that contains a scalar.
type source struct {
	how   How
	kust  *kust      // the kustomization that brings the text in; nil for a file of objects
	entry *yaml.Node // its entry there
	op    *yaml.Node // the operation of a JSON patch
	whole bool       // a merge replaces a list as a whole
}

// step is one element of a path with the nodes it consists of in the source.
type step struct {
	elem string
	key  *yaml.Node // nil for an item of a sequence
	val  *yaml.Node
	// pointer is set for a token of a JSON pointer: a number in it may be an
	// index or a key.
	pointer bool
}

const (
	markStart = ".wEiR0"
	markEnd   = "0RiEw."
	docKey    = "weir-origin-document"
)

func mark(id int) string { return markStart + strconv.Itoa(id) + markEnd }

// unmark returns a text without its marks, and the marks.
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

// trace runs the marked build, once.
func (o *Origins) trace() *trace {
	o.tracing.Do(func() {
		if o.plan == nil && len(o.objects) > 0 {
			o.plan = o.replan()
		}
		o.traced = o.traceWith(&marker{})
	})
	return o.traced
}

// replan walks the path of the build again; nil if that cannot be done.
func (o *Origins) replan() *plan {
	ctx, cancel := context.WithTimeoutCause(context.Background(), o.limits.Duration, errTooSlow)
	defer cancel()
	v := newView(ctx, o.tree, o.limits)
	v.decryption.by, v.small = o.decrypter, o.small
	w := newWalker(v)
	p := w.walk(o.path)
	if w.view.failure() != nil || w.diags.HasErrors() {
		return nil
	}
	return p
}

// traceWith runs a build that is marked, or changed, in a given way. If that
// fails, the trace knows no object.
func (o *Origins) traceWith(m *marker) *trace {
	nodes := o.build(m)
	if nodes == nil {
		m.leaves, m.docs = nil, nil
	}
	return traceOf(m, o.raw, nodes)
}

// build runs the plan as a marker says; nil if that fails.
func (o *Origins) build(m *marker) []*yaml.Node {
	if o.plan == nil {
		return nil
	}
	m.plan = o.plan
	m.cut = append(slices.Clip(m.cut), o.cuts...)
	fed, ok := m.markAll()
	if !ok {
		return nil
	}
	// All origins of a result together may take as long as a build may.
	left := o.limits.Duration - time.Duration(o.spent.Load())
	if left <= 0 {
		return nil
	}
	start := time.Now()
	nodes := o.plan.again(fed, left)
	o.spent.Add(int64(time.Since(start)))
	return nodes
}

// again runs the plan for an origin, with counters of its own. It returns nil if the
// build fails.
func (p *plan) again(fed map[string][]byte, limit time.Duration) []*yaml.Node {
	ctx, cancel := context.WithTimeoutCause(context.Background(), limit, errTooSlow)
	defer cancel()
	fork := *p
	fork.view = p.view.fork(ctx)
	nodes, fault := fork.run(ctx, fed)
	if fault != nil {
		return nil
	}
	return nodes
}

// match finds the marked object of each raw one: by its identity or, if that
// changed, by its place in the output.
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
		t.objects[i].node = m
		if m != nil {
			if doc, err := strconv.Atoi(text(m, "metadata", "annotations", docKey)); err == nil && doc < len(t.docs) {
				t.objects[i].doc = doc
			}
		}
	}
}

func identity(n *yaml.Node) string {
	return strings.Join([]string{text(n, "apiVersion"), text(n, "kind"), text(n, "metadata", "namespace"), text(n, "metadata", "name")}, "\x00")
}

// at walks a path down a node tree; nil if it does not exist.
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

// position is the place of the leaf, or of the element a number of steps above.
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

// leads reports whether the leaf's own path ends as p does, so that the field
// at p, or a field below it, is what the leaf says.
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
