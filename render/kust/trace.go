package kust

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// How the line that set a field is found: the build is run a second time, with
// a mark at the end of every scalar of every object and patch that could flow
// into an object. Marks survive merges, JSON patches, replacements and copies,
// because for kustomize they are part of the values. The marks in the output
// then name the scalars that the fields came from. Scalars that decide how a build goes
// (names, kinds, selectors, merge keys) stay unmarked.
//
// A mark is trusted only if the marked field, without its marks, is the field of the
// real build. Where it is not, a single scalar is changed and the build is run once
// more to see whether the field follows (probe.go).

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
	place place
	node  *yaml.Node
}

// leaf is a scalar of a source.
type leaf struct {
	place place
	node  *yaml.Node
	steps []step // from the object's root down to the scalar
	// own marks a field of a kustomization, such as a label's value, that lands
	// at many paths.
	own  bool
	from source
}

// source is the kind of text that a scalar stands in.
type source struct {
	how   How
	kust  *kust      // the kustomization that brings the text in; nil for a file of objects
	entry *yaml.Node // its entry there
	op    *yaml.Node // the operation of a JSON patch
	whole bool       // a merge takes over a list as a whole
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
func (r *Result) trace() *trace {
	r.tracing.Do(func() {
		if r.plan == nil && len(r.Objects) > 0 {
			r.plan = r.replan()
		}
		r.traced = r.traceWith(&marker{})
	})
	return r.traced
}

// replan walks the path of the build again; nil if that cannot be done.
func (r *Result) replan() *plan {
	ctx, cancel := context.WithTimeoutCause(context.Background(), r.limits.Duration, errTooSlow)
	defer cancel()
	v := newView(ctx, r.tree, r.limits)
	v.decryption.by, v.small = r.decrypter, r.small
	w := newWalker(v)
	p := w.walk(r.path)
	if w.view.failure() != nil || w.diags.HasErrors() {
		return nil
	}
	return p
}

// traceWith runs a build that is marked, or changed, in a given way. If that
// fails, the trace knows no object.
func (r *Result) traceWith(m *marker) *trace {
	t := &trace{objects: make([]traced, len(r.raw))}
	for i := range t.objects {
		t.objects[i].doc = -1
	}
	if nodes := r.build(m); nodes != nil {
		t.leaves, t.docs = m.leaves, m.docs
		t.match(r.raw, nodes)
	}
	return t
}

// build runs the plan as a marker says; nil if that fails.
func (r *Result) build(m *marker) []*yaml.Node {
	if r.plan == nil {
		return nil
	}
	m.plan = r.plan
	m.cut = append(slices.Clip(m.cut), r.cuts...)
	fed, ok := m.markAll()
	if !ok {
		return nil
	}
	// All origins of a result together may take as long as a build may.
	left := r.limits.Duration - time.Duration(r.spent.Load())
	if left <= 0 {
		return nil
	}
	start := time.Now()
	nodes := r.plan.again(fed, left)
	r.spent.Add(int64(time.Since(start)))
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
