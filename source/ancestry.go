package source

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/git"
	"github.com/weir-gitops/weir/source/snapshot"
)

const (
	// shortest is the minimum number of digits of a short name: Git's own default.
	shortest = 7
	// maxStandings bounds the cached standings. Each takes about 100 bytes.
	maxStandings = 10_000
)

// Standings returns the relation of each of others to the heads. others may be short names. The first head is
// the followed commit, and all other heads were followed before. Standings sends no request to a server. It
// ignores heads that are no longer in the repository.
func (g *Git) Standings(ctx context.Context, heads, others []string) (map[string]snapshot.Standing, error) {
	out := make(map[string]snapshot.Standing, len(others))
	var left []string
	key := strings.Join(heads, " ")
	g.mu.Lock()
	if g.standingTo != key || len(g.standings) >= maxStandings {
		g.standings, g.standingTo = map[string]snapshot.Standing{}, key
	}
	for _, o := range others {
		if s, known := g.standings[o]; known {
			out[o] = s
		} else {
			left = append(left, o)
		}
	}
	g.mu.Unlock()
	if len(left) == 0 {
		return out, nil
	}
	r := g.backend.pulled()
	r.db.Steady.RLock()
	defer r.db.Steady.RUnlock()
	found, err := r.standings(ctx, heads, left)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, fmt.Errorf("read source %s: %w", g.cfg.Name, ctx.Err())
	case err != nil:
		return nil, fault.Unavailable(g.cfg.Name, err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for o, s := range found {
		out[o] = s
		if s != snapshot.Unknown && g.standingTo == key { // the next fetch may bring an unknown one
			g.standings[o] = s
		}
	}
	return out, nil
}

// standings returns the relation of each of others, by full or short name, to the heads, like Standings.
// heads[0] must be in the repository. Other missing heads are ignored.
func (r repository) standings(ctx context.Context, heads, others []string) (map[string]snapshot.Standing, error) {
	var from []plumbing.Hash
	for i, name := range heads {
		h := plumbing.NewHash(name)
		have, err := r.db.Has(h)
		switch {
		case err != nil:
			return nil, err
		case have:
			from = append(from, h)
		case i == 0:
			return nil, fault.New(fault.MissingRef, "commit %s is not here", fault.Plain(name))
		}
	}
	out := make(map[string]snapshot.Standing, len(others))
	// The commits that match a name; usually one.
	meant, sought, fresh := map[string][]plumbing.Hash{}, map[plumbing.Hash]bool{}, !r.db.Loose
	for _, o := range others {
		hashes, err := r.commits(o)
		if err == nil && len(hashes) == 0 && !fresh { // another user's repository, whose owner may have repacked it
			if err = r.db.Refresh(); err == nil {
				hashes, err = r.commits(o)
			}
			fresh = true
		}
		if err != nil {
			return nil, err
		}
		meant[o] = hashes
		for _, h := range hashes {
			sought[h] = true
		}
	}
	behind, err := r.history.Reached(ctx, from, sought)
	if err != nil {
		return nil, err
	}
	for o, hashes := range meant {
		if out[o], err = r.standing(ctx, from[0], hashes, behind); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// standing returns the relation to head of the commits that match a name. If several commits match, Behind
// has priority, and then Ahead.
func (r repository) standing(ctx context.Context, head plumbing.Hash, hashes []plumbing.Hash, behind map[plumbing.Hash]bool) (snapshot.Standing, error) {
	out := snapshot.Unknown
	for _, h := range hashes {
		if behind[h] {
			return snapshot.Behind, nil
		}
		ahead, err := r.descends(ctx, h, head)
		if err != nil {
			return "", err
		}
		if ahead {
			out = snapshot.Ahead
		} else if out == snapshot.Unknown {
			out = snapshot.Aside
		}
	}
	return out, nil
}

// commits returns the local commits with a full or short name.
func (r repository) commits(name string) ([]plumbing.Hash, error) {
	var all []plumbing.Hash
	if git.IsHash(name) {
		h := plumbing.NewHash(name)
		if have, err := r.db.Has(h); err != nil || !have {
			return nil, err
		}
		all = append(all, h)
	} else if len(name) >= shortest && len(name) < 40 && strings.Trim(name, "0123456789abcdef") == "" {
		var err error
		if all, err = r.db.Named(name); err != nil {
			return nil, err
		}
	}
	var out []plumbing.Hash
	for _, h := range all {
		_, err := r.history.Commit(h)
		var oe *fault.ObjectError
		switch {
		case errors.As(err, &oe) && oe.WrongType:
		case err != nil:
			return nil, err
		default:
			out = append(out, h)
		}
	}
	return out, nil
}

// Lost returns the commit from and its ancestors, except for the commits that to also has: the commits that a
// branch loses by a reset from one to the other. The newest come first. It sends no request to a server. If
// from is no longer in the repository, it returns the commits that were there before the mirror was
// recreated.
func (g *Git) Lost(ctx context.Context, from, to string) ([]string, error) {
	if !git.IsHash(from) || !git.IsHash(to) {
		return nil, fault.Unavailable(g.cfg.Name, fault.New(fault.MissingRef, "%q and %q: want full object names", fault.Plain(from), fault.Plain(to)))
	}
	r := g.backend.pulled()
	r.db.Steady.RLock()
	defer r.db.Steady.RUnlock()
	hash := plumbing.NewHash(from)
	have, err := r.db.Has(hash)
	lost := r.before()
	if err == nil && have {
		lost, err = r.history.Lost(ctx, hash, plumbing.NewHash(to))
	}
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("read source %s: %w", g.cfg.Name, ctx.Err())
	}
	if err != nil {
		return nil, fault.Unavailable(g.cfg.Name, err)
	}
	var names []string
	for _, h := range lost {
		names = append(names, h.String())
	}
	return names, nil
}

// before returns the names of the commits that were in the mirror before it was recreated.
func (r repository) before() (out []plumbing.Hash) {
	data, err := os.ReadFile(r.beforeFile)
	if err != nil {
		return nil // no mirror was recreated, or the file is unreadable; pools may then stop without need
	}
	for _, name := range strings.Fields(string(data)) {
		if git.IsHash(name) {
			out = append(out, plumbing.NewHash(name))
		}
	}
	return out
}

// Descends reports whether a commit equals another one or descends from it. It sends no request to a server,
// because the ancestors of a local commit are local too.
func (g *Git) Descends(ctx context.Context, revision, from string) (bool, error) {
	if !git.IsHash(revision) || !git.IsHash(from) {
		return false, fault.Unavailable(g.cfg.Name, fault.New(fault.MissingRef, "%q and %q: want full object names", fault.Plain(revision), fault.Plain(from)))
	}
	r := g.backend.pulled()
	r.db.Steady.RLock()
	defer r.db.Steady.RUnlock()
	ok, err := r.descends(ctx, plumbing.NewHash(revision), plumbing.NewHash(from))
	if err != nil && ctx.Err() != nil {
		return false, fmt.Errorf("read source %s: %w", g.cfg.Name, ctx.Err())
	}
	if err != nil {
		return false, fault.Unavailable(g.cfg.Name, err)
	}
	return ok, nil
}

func (r repository) descends(ctx context.Context, revision, from plumbing.Hash) (bool, error) {
	for _, h := range []plumbing.Hash{revision, from} {
		if have, err := r.db.Has(h); err != nil || !have {
			return false, err
		}
	}
	bases, _, err := r.history.MergeBases(ctx, revision, from)
	return slices.Contains(bases, from), err
}
