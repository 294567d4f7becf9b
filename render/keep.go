package render

import (
	"context"
	"hash/maphash"
	"sync"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/kust/reads"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/secret"
	"github.com/weir-gitops/weir/render/tree"
)

// Kept holds the parts of a render that weir keeps for as long as the render holds: the
// wanted state, and the means to check that it is still wanted. It holds no objects,
// files or trees. Its members are those of Result, and must not be changed.
type Kept struct {
	Set               intent.Set
	Diags             diag.List
	Reads             reads.Set
	Hidden            *secret.Set
	Secretless, Retry bool

	// open says that the render read no secret and has no fault: it may be written to disk.
	open bool
	// proof identifies the fields of a later build that are those of this one.
	proof kust.Proof

	mu sync.Mutex
	// known holds the origins that callers requested last; the zero position is unknown.
	known map[questionID]answer
	turn  uint64
}

// answer is an origin, and when it was last asked for.
type answer struct {
	diag.Position
	turn uint64
}

// Keep takes from a render what is worth keeping. It is shared with what s holds.
// Where that is more than s may hold, what the render read is kept alone, which has
// the FullError.
func (r *Result) Keep(s *Shared) (*Kept, error) {
	return keep(s, &Kept{Set: r.Set, Diags: r.Diags, Reads: r.Reads, Hidden: r.Hidden, Secretless: r.Secretless, Retry: r.Retry, open: r.open, proof: r.built.Proof(kinds.Reads)})
}

// keep is a render that shares what it holds with what s holds.
func keep(s *Shared, of *Kept) (*Kept, error) {
	defer s.lock()()
	k := &Kept{Hidden: s.set(of.Hidden), Secretless: of.Secretless, Retry: of.Retry, open: of.open, proof: of.proof}
	all := func() {
		k.Set, k.Diags, k.Reads = share(s, of.Set), share(s, of.Diags), of.Reads.With(s.text)
	}
	err := s.attempt(all)
	if err != nil && s.live != nil {
		if held := s.live(); held != nil {
			s.sweep(held)
			err = s.attempt(all)
		}
	}
	if err != nil {
		return &Kept{Reads: of.Reads, Retry: of.Retry}, err
	}
	return k, nil
}

// Alone returns what Keep keeps of a render that itself stays in memory for as long: nothing is
// copied, and the render answers for origins.
func (r *Result) Alone() *Kept {
	return &Kept{Set: r.Set, Diags: r.Diags, Reads: r.Reads, Hidden: r.Hidden, Secretless: r.Secretless, Retry: r.Retry}
}

// mostKnown bounds the origins that are remembered. A steady pass asks for the same few; a plan
// that changes everything asks for them all, once.
const mostKnown = 500

// Origins returns the places that set fields of the render, with an unknown position if it cannot
// find one. It builds path once more, from a tree that must contain what the render read, with the
// options that it was made with. It needs no build if all questions were asked before: by this
// call, the last one, or the one before that. If the context has no build to spare, the places that
// are not remembered stay unknown. It is safe for concurrent use.
func (k *Kept) Origins(ctx context.Context, t tree.Tree, path string, o Options, asked []intent.Question) []diag.Position {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.turn++
	out := make([]diag.Position, len(asked))
	var unknown []int
	for i, q := range asked {
		id := idOf(q)
		a, known := k.known[id]
		if out[i] = a.Position; !known {
			unknown = append(unknown, i)
			continue
		}
		k.known[id] = answer{a.Position, k.turn}
	}
	if len(unknown) > 0 && intent.Spare(ctx) {
		_ = inTurn(ctx, o.For, func(ctx context.Context, small bool, grow func() bool) error { // what stays unknown is asked again
			return k.find(ctx, t, path, o.build(small, grow), asked, unknown, out)
		})
	}
	for id, a := range k.known {
		if a.turn+1 < k.turn {
			delete(k.known, id)
		}
	}
	if len(k.known) == 0 {
		k.known = nil
	}
	return out
}

// find answers questions with one build, or with two where the first is not sure of an
// answer.
func (k *Kept) find(ctx context.Context, t tree.Tree, path string, o kust.Options, asked []intent.Question, unknown []int, out []diag.Position) error {
	o.Proof = k.proof
	built, err := kust.Build(ctx, t, path, o)
	if err != nil {
		return err
	}
	for _, i := range unknown {
		at, sure := known(built, asked[i])
		if !sure {
			built.Settle()
			at = origin(built, asked[i])
		}
		out[i] = at
		if len(k.known) < mostKnown {
			if k.known == nil {
				k.known = map[questionID]answer{}
			}
			k.known[idOf(asked[i])] = answer{at, k.turn}
		}
	}
	return nil
}

// known is origin, as far as a build that has a proof is sure of it.
func known(built *kust.Result, q intent.Question) (diag.Position, bool) {
	for _, p := range q.Paths {
		if at, ok, sure := built.Known(q.Object, p); ok || !sure {
			return at, sure
		}
	}
	return diag.Position{}, true
}

// origin is the first of a question's origins that is known.
func origin(built *kust.Result, q intent.Question) diag.Position {
	for _, p := range q.Paths {
		if at, ok := built.Origin(q.Object, p); ok {
			return at
		}
	}
	return diag.Position{}
}

// Origins is Kept's of a render that is still there as a whole.
func (r *Result) Origins(_ context.Context, asked []intent.Question) []diag.Position {
	out := make([]diag.Position, len(asked))
	for i, q := range asked {
		out[i] = origin(r.built, q)
	}
	return out
}

// questionID stands for a question, in this process.
type questionID [2]uint64

// seeds are two, as the hash is: what is not the same question has the same hash once in
// 2^128.
var seeds = [...]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

func idOf(q intent.Question) (id questionID) {
	for i := range id {
		var h maphash.Hash
		h.SetSeed(seeds[i])
		for _, text := range [...]string{q.Object.APIVersion, q.Object.Kind, q.Object.Namespace, q.Object.Name} {
			maphash.WriteComparable(&h, text)
		}
		for _, p := range q.Paths {
			maphash.WriteComparable(&h, len(p))
			for _, part := range p {
				maphash.WriteComparable(&h, part)
			}
		}
		id[i] = h.Sum64()
	}
	return id
}
