package pulls

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/snapshot"
)

// remembered bounds the commits of which it is known what was planned.
const remembered = 64

// commit is what is known of a commit that the source came to.
type commit struct {
	// tree is the name of its tree.
	revision, parent, tree string
	// number orders commits as the source came to them, before is the one before it, ""
	// where none is known.
	number int64
	before string
	// seen is when this process came to it.
	seen time.Time
	// unsure says that a process before this one may have applied a part of it.
	unsure bool
	// touched are the targets that it changes; followed says that they are known. A
	// process that began with the commit takes all for changed.
	// awaited are those that were not planned yet.
	touched  []string
	followed bool
	began    bool
	awaited  map[string]bool
	// plans are the first ones, by target.
	plans map[string]applied
	// reviewed has the plans that settled pull requests showed, by target.
	reviewed map[string][]string
	// unsaved says that the state directory knows less.
	unsaved bool
}

// applied is the first plan of a target at a commit. One with a fault has none.
type applied struct {
	Digest  string       `json:"digest,omitempty"`
	Empty   bool         `json:"empty,omitempty"`
	Summary plan.Summary `json:"summary,omitzero"`
	Holding plan.Holding `json:"holding,omitzero"`
	Fault   string       `json:"fault,omitempty"`
	// With is the later commit that it was planned with, "" for none; Unsure says that
	// a part of it may have been applied before.
	With   string `json:"with,omitempty"`
	Unsure bool   `json:"unsure,omitempty"`
}

// take takes in what a pass found, and reports whether that is news. What fails
// outside of the commit is waited for.
func (c *commit) take(r *plan.Report) bool {
	a := applied{Unsure: c.unsure}
	switch {
	case r.Plan != nil && r.Plan.Waits():
		return false
	case r.Plan != nil:
		a.Digest, a.Empty, a.Summary, a.Holding = r.Plan.Digest(), r.Plan.Empty(), r.Plan.Summary, r.Plan.Holding()
	case r.Err == nil && r.Diagnostics.HasErrors():
		a.Fault = firstFault(r)
	default:
		return false
	}
	if r.Revision != c.revision {
		a.With = r.Revision
	}
	if old, known := c.plans[r.Target]; known && (old.Fault == "" || a.Fault != "") {
		return false
	}
	c.plans[r.Target], c.unsaved = a, true
	delete(c.awaited, r.Target)
	return true
}

// follow notes which targets the commit changes. What a commit was found to leave alone
// stays so: a process, and a configuration that is read anew, begin with all targets.
func (c *commit) follow(touched []string) {
	if c.followed {
		touched = slices.DeleteFunc(slices.Clone(touched), func(target string) bool { return !slices.Contains(c.touched, target) })
		if slices.Equal(c.touched, touched) {
			return
		}
	}
	c.touched, c.followed, c.awaited, c.unsaved = touched, true, map[string]bool{}, true
	for _, target := range touched {
		if _, known := c.plans[target]; !known {
			c.awaited[target] = true
		}
	}
}

// missing are the touched targets of which nothing was reported yet.
func (c *commit) missing() []string { return slices.Sorted(maps.Keys(c.awaited)) }

// complete reports whether all is known that the commit changes. Targets are
// reported one after the other: what has come says nothing of the rest.
func (c *commit) complete() bool { return c.followed && len(c.awaited) == 0 }

// note takes in what a pass found of the commit that it was of, and of those before it
// that the target was not planned at. mu is held.
func (w *Watcher) note(r *plan.Report) (news bool) {
	if r.Revision == "" {
		return false
	}
	at := w.commits[r.Revision]
	if r.Touched && at == nil {
		at = w.commit(r.Revision)
	}
	if at == nil {
		return false
	}
	if r.Touched && (!at.followed || slices.Contains(at.touched, r.Target)) {
		news = at.take(r)
	}
	for _, c := range w.commits {
		if c.number < at.number && c.awaited[r.Target] {
			news = c.take(r) || news
		}
	}
	return news
}

// commit is the entry of a revision; mu is held.
func (w *Watcher) commit(revision string) *commit {
	c := w.commits[revision]
	if c == nil {
		c = &commit{revision: revision, number: 1, seen: w.o.Now(), plans: map[string]applied{}, unsaved: true}
		if n := len(w.order); n > 0 {
			last := w.commits[w.order[n-1]]
			c.number, c.before = last.number+1, last.revision
		}
		c.unsure = c.before == ""
		w.commits[revision] = c
		if w.order = append(w.order, revision); len(w.order) > remembered {
			w.evicted = append(w.evicted, w.commits[w.order[0]].number)
			delete(w.commits, w.order[0])
			w.order = w.order[1:]
		}
	}
	return c
}

// follow notes what the source's commit changes, and reports whether it is a new one.
func (w *Watcher) follow(base *fleet.Base) (fresh bool) {
	now := base.View(w.o.Source).Snapshot
	if now.Revision == "" {
		return false
	}
	tree := treeOf(now)
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.commits[now.Revision]
	c := w.commit(now.Revision)
	c.parent, c.tree, c.began, w.begun = now.Parent, tree, c.began || !c.followed && !w.begun, true
	c.follow(base.Touched(w.o.Source))
	return known == nil
}

// treeOf is the name of a commit's tree, "" where it cannot be read.
func treeOf(s snapshot.Snapshot) string {
	if s.Tree == nil {
		return ""
	}
	root, err := s.Tree.Lookup(".")
	if err != nil {
		return ""
	}
	return root.Hash
}

// gives reports whether merging a pull request with a commit gives exactly a tree:
// however it was merged, nothing else came with it.
func (w *Watcher) gives(ctx context.Context, k *work, upon, tree string) bool {
	if upon == "" || tree == "" || k.Seen == "" {
		return false
	}
	m, err := w.bring(ctx, source.PullRef{Head: w.o.Forge.HeadRef(k.Number), HeadSHA: k.Seen, Base: upon})
	return err == nil && treeOf(m.Snapshot) == tree
}

// at is what is known of a commit.
func (w *Watcher) at(revision string) (c commit) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if known := w.commits[revision]; known != nil {
		c = *known
		c.plans, c.awaited, c.reviewed = maps.Clone(c.plans), maps.Clone(c.awaited), maps.Clone(c.reviewed)
	}
	return c
}

// bringing is the first commit that the source came to with another one in it, "" where
// it did not come to one yet: it may have come to several at once.
func (w *Watcher) bringing(ctx context.Context, what string) (found string, err error) {
	const most = 8 // that are asked about where main was moved away from it again
	w.mu.Lock()
	known, order := w.commits[what] != nil, slices.Clone(w.order)
	w.mu.Unlock()
	if known || what == "" {
		return what, nil
	}
	for i, revision := range slices.Backward(order) {
		in, err := w.o.Git.Descends(ctx, revision, what)
		switch {
		case err != nil:
			return "", err
		case in:
			found = revision
		case found != "" || len(order)-i >= most:
			return found, nil
		}
	}
	return found, nil
}

// keptCommit is what the state directory has of a commit.
type keptCommit struct {
	Revision string              `json:"revision"`
	Parent   string              `json:"parent,omitempty"`
	Tree     string              `json:"tree,omitempty"`
	Before   string              `json:"before,omitempty"`
	Followed bool                `json:"followed,omitempty"`
	Began    bool                `json:"began,omitempty"`
	Touched  []string            `json:"touched,omitempty"`
	Plans    map[string]applied  `json:"plans,omitempty"`
	Reviewed map[string][]string `json:"reviewed,omitempty"`
}

var keptCommits = state.Bucket[keptCommit]{Name: "pull-commits"}

// keepCommits writes what is known of commits, so that a merge can be compared whose
// report this process does not live to hear.
func (w *Watcher) keepCommits() {
	w.mu.Lock()
	kept, evicted := map[int64]keptCommit{}, w.evicted
	w.evicted = nil
	for _, c := range w.commits {
		if c.unsaved {
			kept[c.number] = keptCommit{c.revision, c.parent, c.tree, c.before, c.followed, c.began, c.touched, maps.Clone(c.plans), maps.Clone(c.reviewed)}
			c.unsaved = false
		}
	}
	w.mu.Unlock()
	if len(kept)+len(evicted) == 0 {
		return
	}
	err := w.o.DB.Update(func(tx *state.Tx) error {
		for number, c := range kept {
			if err := keptCommits.Put(tx, w.key(number), c); err != nil {
				return err
			}
		}
		for _, number := range evicted {
			if err := keptCommits.Delete(tx, w.key(number)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		w.log.Error("state cannot be written", "error", err)
	}
}

// recall reads what an earlier process knew of commits. Of what it did not see the
// plans of, it may have applied a part.
func (w *Watcher) recall() error {
	return w.o.DB.View(func(tx *state.Tx) error {
		return keptCommits.ForEach(tx, w.key(0), func(key string, k keptCommit) error {
			if !w.owns(key) {
				return state.ErrStop
			}
			c := &commit{revision: k.Revision, parent: k.Parent, tree: k.Tree, before: k.Before, seen: w.o.Now(), began: k.Began, unsure: true, plans: k.Plans, reviewed: k.Reviewed}
			if _, err := fmt.Sscanf(key[len(w.o.Source)+1:], "%d", &c.number); err != nil {
				return fmt.Errorf("read state: commit %q: %w", key, err)
			}
			if c.plans == nil {
				c.plans = map[string]applied{}
			}
			if k.Followed {
				c.follow(k.Touched)
			}
			c.unsaved = false
			w.commits[c.revision], w.order = c, append(w.order, c.revision)
			return nil
		})
	})
}
