package source

import (
	"context"
	"fmt"
	"slices"

	"github.com/go-git/go-git/v5/plumbing"
)

// Descends reports whether a commit is another one, or descends from it. Nobody is
// asked: a commit that is not here is none that one which is here descends from.
func (g *Git) Descends(ctx context.Context, revision, from string) (bool, error) {
	if !isHash(revision) || !isHash(from) {
		return false, unavailable(g.cfg.Name, faultf(MissingRef, "%q and %q: want full object names", plain(revision), plain(from)))
	}
	r := g.backend.pulled()
	r.db.steady.RLock()
	defer r.db.steady.RUnlock()
	ok, err := r.descends(ctx, plumbing.NewHash(revision), plumbing.NewHash(from))
	if err != nil && ctx.Err() != nil {
		return false, fmt.Errorf("read source %s: %w", g.cfg.Name, ctx.Err())
	}
	if err != nil {
		return false, unavailable(g.cfg.Name, err)
	}
	return ok, nil
}

func (r repository) descends(ctx context.Context, revision, from plumbing.Hash) (bool, error) {
	for _, h := range []plumbing.Hash{revision, from} {
		if have, err := r.db.has(h); err != nil || !have {
			return false, err
		}
	}
	bases, _, err := r.history.mergeBases(ctx, revision, from)
	return slices.Contains(bases, from), err
}
