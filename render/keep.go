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

// Kept is the part of a render that weir keeps while the render is valid: the desired state, and the values
// to check that it is still current. It has no objects, files or trees. Its members are the same as in Result
// and must not be changed.
type Kept struct {
	Set               intent.Set
	Diags             diag.List
	Reads             reads.Set
	Hidden            *secret.Set
	Secretless, Retry bool

	// open is true if the render read no secret and may be retried by no later render. It may then be written
	// to disk.
	open bool
	// proof identifies the fields of a later build that are equal in this build.
	proof kust.Proof

	mu sync.Mutex
	// known caches the most recently requested origins. A zero position means unknown.
	known map[questionID]answer
	turn  uint64
}

// answer is an origin and the turn of its last request.
type answer struct {
	diag.Position
	turn uint64
}

// Keep returns the part of a render that is worth keeping. It shares memory with the renders in s. If s has
// no room for it, Keep returns a FullError and a Kept that has only the reads.
func (r *Result) Keep(s *Shared) (*Kept, error) {
	return sharedCopy(s, &Kept{Set: r.Set, Diags: r.Diags, Reads: r.Reads, Hidden: r.Hidden, Secretless: r.Secretless, Retry: r.Retry, open: r.open, proof: r.built.Proof(kinds.Reads)})
}

// sharedCopy returns a copy of a render that shares equal values with s. If s has no room, it first removes
// the values of renders that are no longer kept. If there is still no room, the result has only what the
// build read, and the error is not nil.
func sharedCopy(s *Shared, of *Kept) (*Kept, error) {
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

// Alone is like Keep for a render that stays in memory anyway. It copies nothing, and the render itself
// answers questions about origins.
func (r *Result) Alone() *Kept {
	return &Kept{Set: r.Set, Diags: r.Diags, Reads: r.Reads, Hidden: r.Hidden, Secretless: r.Secretless, Retry: r.Retry}
}

// mostKnown bounds the cached origins. A pass without changes asks for the same few origins, and a plan that
// changes everything asks for all of them once.
const mostKnown = 500

// Origins returns the places that set fields of the render. A place is the zero position if Origins cannot
// find it. Origins builds path again, with the options of the render, from a tree that must contain
// everything that the render read. It needs no build if all questions were asked in this call or in the last
// two. If Sparing's limit of builds in ctx is reached, places that are not cached stay unknown. It is safe
// for concurrent use.
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
		_ = inTurn(ctx, o.For, func(ctx context.Context, small bool, grow func() bool) error { // a later call asks again for unknown places
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

// find answers questions with one build, or with two if the first one is unsure of an answer.
func (k *Kept) find(ctx context.Context, t tree.Tree, path string, o kust.Options, asked []intent.Question, unknown []int, out []diag.Position) error {
	o.Proof = k.proof
	built, err := kust.Build(ctx, t, path, o)
	if err != nil {
		return err
	}
	for _, i := range unknown {
		at, sure := known(built, asked[i])
		if !sure {
			built.RunPlain()
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

// known returns the origin if a build with a proof is sure of it.
func known(built *kust.Result, q intent.Question) (diag.Position, bool) {
	for _, p := range q.Paths {
		if at, ok, sure := built.Known(q.Object, p); ok || !sure {
			return at, sure
		}
	}
	return diag.Position{}, true
}

// origin returns the first known origin of a question.
func origin(built *kust.Result, q intent.Question) diag.Position {
	for _, p := range q.Paths {
		if at, ok := built.Origin(q.Object, p); ok {
			return at
		}
	}
	return diag.Position{}
}

// Origins is like Kept.Origins, for a render that is still complete in memory.
func (r *Result) Origins(_ context.Context, asked []intent.Question) []diag.Position {
	out := make([]diag.Position, len(asked))
	for i, q := range asked {
		out[i] = origin(r.built, q)
	}
	return out
}

// questionID identifies a question within this process.
type questionID [2]uint64

// seeds are two 64-bit seeds. Different questions have the same ID with a probability of 2^-128.
var seeds = [...]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()}

// idOf returns the ID of a question: two hashes of its object and paths.
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
