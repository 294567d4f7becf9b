package source

import (
	"context"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/git"
	"github.com/weir-gitops/weir/source/snapshot"
)

// FirstParents are the commits before a revision along the first parents, the nearest
// first, n at most. It asks no server, and ends where the history that is here does.
func (g *Git) FirstParents(ctx context.Context, revision string, n int) ([]string, error) {
	if !git.IsHash(revision) {
		return nil, fault.Unavailable(g.cfg.Name, fault.New(fault.MissingRef, "%q is not a full object name of 40 lower-case hex digits", fault.Plain(revision)))
	}
	r := g.backend.pulled()
	r.db.Steady.RLock()
	defer r.db.Steady.RUnlock()
	var out []string
	for h := plumbing.NewHash(revision); ; {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("read source %s: %w", g.cfg.Name, err)
		}
		// Asked before it is read: where the server has a part of the history only, a
		// commit that is missing is no damage.
		have, err := r.db.Has(h)
		if err != nil {
			return nil, fault.Unavailable(g.cfg.Name, err)
		}
		if !have {
			return out[:max(0, len(out)-1)], nil
		}
		c, err := r.history.Commit(h)
		if err != nil {
			return nil, fault.Unavailable(g.cfg.Name, err)
		}
		if len(c.Parents) == 0 || len(out) == n {
			return out, nil
		}
		h = c.Parents[0]
		out = append(out, h.String())
	}
}

// Earlier gives the snapshot of a commit that is already here, as if it were followed: it
// fails unless the commit itself is signed as the source's commits have to be. A tag
// vouches only for the commit that it led to.
func (g *Git) Earlier(ctx context.Context, revision string) (snapshot.Snapshot, error) {
	s, err := g.At(ctx, revision)
	if err != nil {
		return snapshot.Snapshot{}, err
	}
	r := g.backend.pulled()
	r.db.Steady.RLock()
	defer r.db.Steady.RUnlock()
	if err := r.attest(g.cfg.Verify, candidate{hash: plumbing.NewHash(revision)}, false, &s); err != nil {
		return snapshot.Snapshot{}, fault.Unavailable(g.cfg.Name, err)
	}
	return s, nil
}
