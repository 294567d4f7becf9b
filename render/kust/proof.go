package kust

import (
	"context"
	"hash/maphash"
	"slices"
	"sync"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// Proof reports whether a build contains an object, long after the build is gone: a mark counts
// only if the marked field without its marks equals that of the plain build. It contains a hash
// over each object, is sorted, and is valid for this process alone. It reveals no secret.
type Proof []uint64

var proofSeed = maphash.MakeSeed()

// Proof returns the proof of the objects for which of is true.
func (r *Result) Proof(of func(intent.ObjectRef) bool) Proof {
	var out Proof
	for i, n := range r.raw {
		if i < len(r.objects) && of(r.objects[i].Ref) {
			out = append(out, hashOf(n))
		}
	}
	slices.Sort(out)
	return slices.Clip(out)
}

func (p Proof) has(n *yaml.Node) bool {
	_, found := slices.BinarySearch(p, hashOf(n))
	return found
}

// hashOf is a hash over the keys and values of a node, without their styles.
func hashOf(n *yaml.Node) uint64 {
	var h maphash.Hash
	h.SetSeed(proofSeed)
	var add func(n *yaml.Node)
	add = func(n *yaml.Node) {
		n = deref(n)
		maphash.WriteComparable(&h, [3]int{int(n.Kind), len(n.Value), len(n.Content)})
		_, _ = h.WriteString(n.Value)
		for _, c := range n.Content {
			add(c)
		}
	}
	add(n)
	return h.Sum64()
}

// runMarked runs the marked build in place of the plain one, and returns it without its marks. It
// returns nothing without a proof of the plain build, or if it fails.
func (r *Result) runMarked(ctx context.Context, p *plan, proof Proof) ([]*yaml.Node, *diag.Diagnostic) {
	if len(proof) == 0 {
		return nil, nil
	}
	m := &marker{plan: p}
	fed, ok := m.markAll()
	if !ok {
		return nil, nil
	}
	marked, fault := p.run(ctx, fed)
	if marked == nil {
		return nil, fault
	}
	raw := make([]*yaml.Node, len(marked))
	for i, n := range marked {
		raw[i] = unmarked(n)
	}
	r.proof = proof
	r.tracing.Do(func() {
		r.traced = traceOf(m, raw, marked)
		r.marked = marked
	})
	return raw, nil
}

func traceOf(m *marker, raw, marked []*yaml.Node) *trace {
	t := &trace{objects: make([]traced, len(raw)), leaves: m.leaves, docs: m.docs}
	for i := range t.objects {
		t.objects[i].doc = -1
	}
	t.match(raw, marked)
	return t
}

// Settle runs the plain build too, so that Origin can answer what Known was not sure of.
// Where that fails, nothing has an origin. It is not safe for concurrent use.
func (r *Result) Settle() {
	if r.proof == nil {
		return
	}
	marked, was := r.marked, r.traced
	r.proof, r.marked, r.byRef, r.indexing = nil, nil, nil, sync.Once{}
	r.effects, r.pruned, r.byName, r.naming = nil, nil, nil, sync.Once{}
	r.raw, r.objects, r.Objects = nil, nil, nil
	if r.plan == nil {
		return
	}
	if r.raw = r.plan.again(nil, r.limits.Duration); r.raw == nil {
		return
	}
	r.traced = traceOf(&marker{leaves: was.leaves, docs: was.docs}, r.raw, marked)
	r.objects, _, _ = substituteAll(r.raw, Options{Vars: r.vars}, r.styleOf)
	r.Objects = r.objects
}

// unmarked is a copy of a marked object without marks.
func unmarked(n *yaml.Node) *yaml.Node {
	c := copyNode(n)
	var strip func(n *yaml.Node)
	strip = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode {
			n.Value, _ = unmark(n.Value)
		}
		for _, child := range n.Content {
			strip(child)
		}
	}
	strip(c)
	if _, meta := field(c, "metadata"); meta != nil {
		if _, annotations := field(meta, "annotations"); annotations != nil {
			if removeField(annotations, docKey); len(annotations.Content) == 0 {
				removeField(meta, "annotations")
			}
		}
	}
	return c
}

// Known is Origin of a build with a Proof. sure is false where only a plain build can
// answer.
func (o *Origins) Known(ref intent.ObjectRef, p intent.Path) (at diag.Position, ok, sure bool) {
	if o.proof == nil {
		at, ok = o.Origin(ref, p)
		return at, ok, true
	}
	f, found := o.locate(ref, p)
	if !found || !o.proof.has(o.raw[f.object]) {
		return diag.Position{}, false, false
	}
	if f.missing > 0 {
		return diag.Position{}, false, true
	}
	l, up, ok := o.leafOf(f)
	if !ok { // a probe may know
		return diag.Position{}, false, f.node.Kind != yaml.ScalarNode
	}
	at, ok = l.position(up, false)
	return at, ok, true
}
