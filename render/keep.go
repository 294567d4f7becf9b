package render

import (
	"context"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/secret"
	"github.com/weir-gitops/weir/render/tree"
)

// Kept holds the parts of a render that weir keeps for as long as the render holds: the
// wanted state, and the means to check that it is still wanted. It holds no objects,
// files or trees. Its members are those of Result, and must not be changed.
type Kept struct {
	Set               intent.Set
	Diags             diag.List
	Reads             kust.ReadSet
	Hidden            *secret.Set
	Secretless, Retry bool

	mu sync.Mutex
	// known are the origins that callers asked for; the zero position is unknown.
	known map[string]diag.Position
}

// Keep takes from a render what is worth keeping. It is shared with what s holds.
// Where that is more than s may hold, what the render read is kept alone, which has
// the FullError.
func (r *Result) Keep(s *Shared) (*Kept, error) {
	defer s.lock()()
	k := &Kept{Hidden: s.set(r.Hidden), Secretless: r.Secretless, Retry: r.Retry}
	all := func() {
		k.Set, k.Diags, k.Reads = share(s, r.Set), share(s, r.Diags), r.Reads.With(s.text)
	}
	err := s.attempt(all)
	if err != nil && s.live != nil {
		if held := s.live(); held != nil {
			s.sweep(held)
			err = s.attempt(all)
		}
	}
	if err != nil {
		return &Kept{Reads: r.Reads, Retry: r.Retry}, err
	}
	return k, nil
}

// mostKnown is how many origins are remembered. A steady pass asks for the same few;
// who plans the change of everything asks for them all, once.
const mostKnown = 500

// Origins says where fields of the render were set, with an unknown position where it
// cannot find out. It builds path once more, from a tree that must hold what the render
// read, with the options that it was made with, unless everything was asked before. It
// is safe for concurrent use.
func (k *Kept) Origins(ctx context.Context, t tree.Tree, path string, o Options, asked []intent.Question) []diag.Position {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make([]diag.Position, len(asked))
	var unknown []int
	for i, q := range asked {
		at, known := k.known[questionID(q)]
		if out[i] = at; !known {
			unknown = append(unknown, i)
		}
	}
	if len(unknown) == 0 {
		return out
	}
	_ = inTurn(ctx, o.Patient, func(small bool) error { // what stays unknown is asked again
		built, err := kust.Build(ctx, t, path, o.build(small))
		if err != nil {
			return err
		}
		for _, i := range unknown {
			out[i] = origin(built, asked[i])
			k.remember(questionID(asked[i]), out[i])
		}
		return nil
	})
	return out
}

func (k *Kept) remember(id string, at diag.Position) {
	if len(k.known) >= mostKnown {
		return
	}
	if k.known == nil {
		k.known = map[string]diag.Position{}
	}
	k.known[id] = at
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

func questionID(q intent.Question) string {
	var b strings.Builder
	b.WriteString(q.Object.APIVersion + " " + q.Object.String())
	for _, p := range q.Paths {
		b.WriteString(" " + p.String())
	}
	return b.String()
}
