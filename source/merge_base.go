package source

import (
	"container/heap"
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/go-git/go-git/v5/plumbing"
	"github.com/go-git/go-git/v5/plumbing/object"
)

const (
	// maxWalk bounds the commits that one search for merge bases looks at.
	maxWalk = 300_000
	// maxCommits bounds the commits and parents that a history remembers, about 200
	// bytes each.
	maxCommits = 100_000
	// maxMergeBases bounds the merge bases that are tried.
	maxMergeBases = 8
)

// node is what merging needs to know of a commit.
type node struct {
	tree    plumbing.Hash
	parents []plumbing.Hash
	// when is the committer's time in seconds. Nothing may rest on its being right.
	when int64
}

// history reads commits and remembers them. They never change.
type history struct {
	db *objectDB

	mu    sync.Mutex
	known map[plumbing.Hash]node
	held  int // commits and their parents
}

func newHistory(db *objectDB) *history {
	return &history{db: db, known: map[plumbing.Hash]node{}}
}

func (h *history) commit(name plumbing.Hash) (node, error) {
	h.mu.Lock()
	n, ok := h.known[name]
	h.mu.Unlock()
	if ok {
		return n, nil
	}
	data, err := h.db.meta(plumbing.CommitObject, name)
	if err != nil {
		return node{}, err
	}
	c := &object.Commit{}
	if err := c.Decode(encoded(plumbing.CommitObject, data)); err != nil {
		return node{}, faultf(Unsupported, "decode commit %s: %v", name, err)
	}
	n = node{tree: c.TreeHash, parents: c.ParentHashes, when: c.Committer.When.Unix()}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held += 1 + len(n.parents); h.held > maxCommits {
		clear(h.known)
		h.held = 1 + len(n.parents)
	}
	h.known[name] = n
	return n, nil
}

// reach says from where a commit is reached.
type reach uint8

const (
	fromBase reach = 1 << iota
	fromHead
	// below says that a common commit reaches it: it is no merge base.
	below
	both = fromBase | fromHead
)

// walk paints commits by where they are reached from, the youngest first. The
// order is for speed alone: a commit that turns out to be reached from somewhere
// else as well is painted again.
type walk struct {
	h      *history
	paint  map[plumbing.Hash]reach
	queue  commitQueue
	queued map[plumbing.Hash]bool
	// live counts what is queued and not below a common commit.
	live int
}

func (w *walk) add(name plumbing.Hash, r reach) error {
	was := w.paint[name]
	now := was | r
	if now == was {
		return nil
	}
	if was == 0 && len(w.paint) >= maxWalk {
		return faultf(Unsupported, "more than %d commits lie between the branch and the one that is followed; update the branch", maxWalk)
	}
	w.paint[name] = now
	switch {
	case !w.queued[name]:
		n, err := w.h.commit(name)
		if err != nil {
			return err
		}
		heap.Push(&w.queue, queuedCommit{name, n})
		w.queued[name] = true
		if now&below == 0 {
			w.live++
		}
	case was&below == 0 && now&below != 0:
		w.live--
	}
	return nil
}

func (w *walk) pop() (queuedCommit, reach) {
	c := heap.Pop(&w.queue).(queuedCommit)
	delete(w.queued, c.name)
	r := w.paint[c.name]
	if r&below == 0 {
		w.live--
	}
	return c, r
}

// mergeBases gives the commits that base and head have in common and that no
// other common commit reaches, the youngest first, and how many commits of base
// head does not have.
func (h *history) mergeBases(ctx context.Context, base, head plumbing.Hash) ([]plumbing.Hash, int, error) {
	w := &walk{h: h, paint: map[plumbing.Hash]reach{}, queued: map[plumbing.Hash]bool{}}
	if err := w.add(base, fromBase); err != nil {
		return nil, 0, fmt.Errorf("find merge base: %w", err)
	}
	if err := w.add(head, fromHead); err != nil {
		return nil, 0, fmt.Errorf("find merge base: %w", err)
	}
	var common []plumbing.Hash
	for w.live > 0 {
		if err := ctx.Err(); err != nil {
			return nil, 0, err
		}
		c, r := w.pop()
		if r&both == both {
			if r&below == 0 {
				common = append(common, c.name)
			}
			r |= below
		}
		for _, p := range c.parents {
			if err := w.add(p, r); err != nil {
				return nil, 0, fmt.Errorf("find merge base: %w", err)
			}
		}
	}
	behind := 0
	for _, r := range w.paint {
		if r == fromBase {
			behind++
		}
	}
	common = slices.DeleteFunc(common, func(c plumbing.Hash) bool { return w.paint[c]&below != 0 })
	common, err := h.independent(ctx, common)
	return common, min(behind, MaxBehind), err
}

// independent drops those commits that another of them reaches. The walk above
// stops before it has painted all that is below common commits, so that where
// clocks lie some of them are left.
func (h *history) independent(ctx context.Context, commits []plumbing.Hash) ([]plumbing.Hash, error) {
	if len(commits) < 2 {
		return commits, nil
	}
	seen := map[plumbing.Hash]bool{}
	when := map[plumbing.Hash]int64{}
	var queue []plumbing.Hash
	for _, c := range commits {
		n, err := h.commit(c)
		if err != nil {
			return nil, fmt.Errorf("find merge base: %w", err)
		}
		when[c] = n.when
		queue = append(queue, n.parents...)
	}
	for len(queue) > 0 {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if seen[c] {
			continue
		}
		if len(seen) >= maxWalk {
			return nil, faultf(Unsupported, "the branches meet in several commits with more than %d commits behind them; update the branch", maxWalk)
		}
		seen[c] = true
		n, err := h.commit(c)
		if err != nil {
			return nil, fmt.Errorf("find merge base: %w", err)
		}
		queue = append(queue, n.parents...)
	}
	commits = slices.DeleteFunc(commits, func(c plumbing.Hash) bool { return seen[c] })
	slices.SortFunc(commits, func(a, b plumbing.Hash) int {
		if when[a] != when[b] {
			return int(min(max(when[b]-when[a], -1), 1))
		}
		return slices.Compare(a[:], b[:])
	})
	return commits, nil
}

// reached are those of the sought commits that are heads, or that heads descend from.
// The youngest are looked at first, so that a few old ones cost no more than the way
// to them; where committers' clocks lie, one that is left is sought by itself.
func (h *history) reached(ctx context.Context, heads []plumbing.Hash, sought map[plumbing.Hash]bool) (map[plumbing.Hash]bool, error) {
	found, oldest := map[plumbing.Hash]bool{}, int64(0)
	for s := range sought {
		n, err := h.commit(s)
		if err != nil {
			return nil, err
		}
		if oldest == 0 || n.when < oldest {
			oldest = n.when
		}
	}
	var queue commitQueue
	seen := map[plumbing.Hash]bool{}
	add := func(name plumbing.Hash) error {
		if seen[name] {
			return nil
		}
		if len(seen) >= maxWalk {
			return faultf(Unsupported, "more than %d commits lie between those that are compared", maxWalk)
		}
		n, err := h.commit(name)
		if err != nil {
			return err
		}
		seen[name] = true
		heap.Push(&queue, queuedCommit{name, n})
		return nil
	}
	for _, head := range heads {
		if err := add(head); err != nil {
			return nil, err
		}
	}
	for len(queue) > 0 && len(found) < len(sought) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c := heap.Pop(&queue).(queuedCommit)
		if sought[c.name] {
			found[c.name] = true
		}
		if c.when < oldest {
			break
		}
		for _, p := range c.parents {
			if err := add(p); err != nil {
				return nil, err
			}
		}
	}
	for s := range sought {
		for _, head := range heads {
			if found[s] {
				break
			}
			bases, _, err := h.mergeBases(ctx, head, s)
			if err != nil {
				return nil, err
			}
			found[s] = slices.Contains(bases, s)
		}
	}
	return found, nil
}

type queuedCommit struct {
	name plumbing.Hash
	node
}

// commitQueue is a heap, the youngest commit on top.
type commitQueue []queuedCommit

func (q commitQueue) Len() int           { return len(q) }
func (q commitQueue) Less(i, j int) bool { return q[i].when > q[j].when }
func (q commitQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *commitQueue) Push(x any)        { *q = append(*q, x.(queuedCommit)) }
func (q *commitQueue) Pop() any {
	old := *q
	c := old[len(old)-1]
	*q = old[:len(old)-1]
	return c
}
