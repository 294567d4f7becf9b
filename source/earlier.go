package source

import (
	"context"
	"fmt"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/git"
	"github.com/weir-gitops/weir/source/snapshot"
)

// FirstParents returns up to n ancestors of a revision along the first parents, the nearest first. It sends
// no request to a server, and ends where the local history ends.
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
		// Checked before the read: if the server has only a part of the history, a missing commit is not
		// damage.
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

// Earlier returns the snapshot of a local commit, like a followed commit. It fails unless the commit itself
// is signed as the source requires. A signed tag covers only its own commit.
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
