package kust

import (
	"context"
	"hash/maphash"
	"slices"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"go.yaml.in/yaml/v3"
)

// Proof shows whether a build contained an object, long after the build's data were dropped. Origins needs
// that, because a mark counts only if the marked field without its marks equals the field of the plain build.
// A Proof has a sorted hash for each object, is valid only in this process, and reveals no secret.
type Proof []uint64

var proofSeed = maphash.MakeSeed()

// Proof returns the proof of the objects for which of returns true.
func (r *Result) Proof(of func(intent.ObjectRef) bool) Proof {
	var out Proof
	for i, n := range r.find.raw {
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

// hashOf returns a hash of the keys and values of a node, without their styles.
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

// markedBuild is a marked build that ran in place of the plain one.
type markedBuild struct {
	raw    []*yaml.Node // without the marks
	marked []*yaml.Node
	trace  *trace
}

// runMarked runs the marked build in place of the plain one. It returns nil if there is no proof of the plain
// build, or if the build fails.
func runMarked(ctx context.Context, p *buildSpec, proof Proof) (*markedBuild, *diag.Diagnostic) {
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
	return &markedBuild{raw: raw, marked: marked, trace: traceOf(m, raw, marked)}, nil
}

// RunPlain runs the build without marks for a result that was built with Options.Proof. It replaces Objects and
// the finder of the result, so that Origin can answer if Known is unsure. If this build fails, Objects is nil
// and no field has an origin. RunPlain is not safe for concurrent use.
func (r *Result) RunPlain() {
	if r.proof == nil {
		return
	}
	marked, was := r.marked, r.find.all()
	r.proof, r.marked = nil, nil
	limit := r.find.builds.limit
	r.locator, r.find, r.Objects = locator{}, newFinder(nil, &rebuilder{}), nil
	if r.plan == nil {
		return
	}
	raw := r.plan.again(nil, limit)
	if raw == nil {
		return
	}
	r.find = newFinder(raw, &rebuilder{plan: r.plan, limit: limit})
	r.find.setWhole(traceOf(&marker{leaves: was.leaves, docs: was.docs}, raw, marked))
	objects, _, _ := substituteAll(raw, Options{Vars: r.vars}, r.find.styleOf)
	r.locator, r.Objects = locator{objects: objects, raw: raw}, objects
}

// unmarked returns a copy of a marked object without its marks.
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

// Known is like Origin for a build with a Proof. sure is false if only a plain build can answer.
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
	l, up, ok := o.find.leafOf(f)
	if !ok { // a probe may find it
		return diag.Position{}, false, f.node.Kind != yaml.ScalarNode
	}
	at, ok = l.position(up, false)
	return at, ok, true
}
