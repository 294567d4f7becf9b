package pulls

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/source/snapshot"
)

// remembered is the maximum number of commits whose plans are in memory.
const remembered = 64

// commits contains the commits that the source followed, with their plans.
type commits struct {
	records

	mu sync.Mutex // guards the fields below
	// known contains the commits by revision, and order their revisions, the oldest first. Commits that
	// were dropped from known are still in the state directory. begun says that this process has followed a
	// commit, even if the source was already there.
	known   map[string]*commit
	order   []string
	evicted []int64
	begun   bool
}

// commit contains the data about a commit that the source reached.
type commit struct {
	keptCommit
	// number orders commits as the source reached them. seen is the time at which this process reached this
	// one.
	number int64
	seen   time.Time
	// unsure says that an earlier process may have applied part of the commit.
	unsure bool
	// awaited are the touched targets that have not been planned yet.
	awaited map[string]bool
	// unsaved says that the state directory does not have all of the data.
	unsaved bool
}

// keptCommit is a commit in the state directory.
type keptCommit struct {
	Revision string `json:"revision"`
	Parent   string `json:"parent,omitempty"`
	// Tree is the hash of its tree, and Before the previous commit of the source. They are "" if unknown.
	Tree   string `json:"tree,omitempty"`
	Before string `json:"before,omitempty"`
	// Touched lists the targets that the commit changes. Followed says that this list is complete. Began
	// says that weir started at the commit, so that Touched contains all targets.
	Followed bool     `json:"followed,omitempty"`
	Began    bool     `json:"began,omitempty"`
	Touched  []string `json:"touched,omitempty"`
	// Plans contains the first plan of each target at the commit. Reviewed contains, by target, the digests
	// that the merged pull requests showed.
	Plans    map[string]applied  `json:"plans,omitempty"`
	Reviewed map[string][]string `json:"reviewed,omitempty"`
}

var keptCommits = state.Bucket[keptCommit]{Name: "pull-commits"}

// applied is the first plan of a target at a commit. A plan with an error has no digest.
type applied struct {
	Digest  string       `json:"digest,omitempty"`
	Empty   bool         `json:"empty,omitempty"`
	Summary plan.Summary `json:"summary,omitzero"`
	Holding plan.Holding `json:"holding,omitzero"`
	Fault   string       `json:"fault,omitempty"`
	// With is the later commit that the plan also contains, "" for none. Unsure says that part of the plan
	// may have been applied before.
	With   string `json:"with,omitempty"`
	Unsure bool   `json:"unsure,omitempty"`
}

// add records the plan of a pass, and reports whether it did. It ignores a plan that failed for a reason
// outside of the commit, because a later pass can plan the target.
func (c *commit) add(r *plan.Report) bool {
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
	if r.Revision != c.Revision {
		a.With = r.Revision
	}
	if old, known := c.Plans[r.Target]; known && (old.Fault == "" || a.Fault != "") {
		return false
	}
	c.Plans[r.Target], c.unsaved = a, true
	delete(c.awaited, r.Target)
	return true
}

// follow sets the targets that the commit changes. It never adds a target later, because a new process and
// a reloaded configuration report all targets as changed.
func (c *commit) follow(touched []string) {
	if c.Followed {
		still := make(map[string]bool, len(c.Touched))
		for _, target := range c.Touched {
			still[target] = true
		}
		touched = slices.DeleteFunc(slices.Clone(touched), func(target string) bool { return !still[target] })
		if slices.Equal(c.Touched, touched) {
			return
		}
	}
	c.Touched, c.Followed, c.unsaved = touched, true, true
	c.await()
}

// await sets awaited to the touched targets that have no plan yet.
func (c *commit) await() {
	c.awaited = map[string]bool{}
	for _, target := range c.Touched {
		if _, known := c.Plans[target]; !known {
			c.awaited[target] = true
		}
	}
}

// missing returns the touched targets that have no report yet.
func (c *commit) missing() []string { return slices.Sorted(maps.Keys(c.awaited)) }

// complete reports whether the plans of all changed targets are recorded. Targets are reported one after
// another, so the first reports do not include all of them.
func (c *commit) complete() bool { return c.Followed && len(c.awaited) == 0 }

// recordPlan records the plan of a pass for its commit, and for earlier commits whose plan of the target is
// missing. It reports whether it recorded anything.
func (l *commits) recordPlan(r *plan.Report) (news bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Revision == "" {
		return false
	}
	at := l.known[r.Revision]
	if r.Touched && at == nil {
		at = l.commit(r.Revision)
	}
	if at == nil {
		return false
	}
	if r.Touched && (!at.Followed || slices.Contains(at.Touched, r.Target)) {
		news = at.add(r)
	}
	for _, c := range l.known {
		if c.number < at.number && c.awaited[r.Target] {
			news = c.add(r) || news
		}
	}
	return news
}

// commit returns the entry of a revision, and adds it if it is missing. The caller holds mu.
func (l *commits) commit(revision string) *commit {
	c := l.known[revision]
	if c == nil {
		c = &commit{keptCommit: keptCommit{Revision: revision, Plans: map[string]applied{}}, number: 1, seen: l.Now(), unsaved: true}
		if n := len(l.order); n > 0 {
			last := l.known[l.order[n-1]]
			c.number, c.Before = last.number+1, last.Revision
		}
		c.unsure = c.Before == ""
		l.known[revision] = c
		if l.order = append(l.order, revision); len(l.order) > remembered {
			l.evicted = append(l.evicted, l.known[l.order[0]].number)
			delete(l.known, l.order[0])
			l.order = l.order[1:]
		}
	}
	return c
}

// follow records the current commit of the source, and reports whether the commit is new.
func (l *commits) follow(base *fleet.Base) (fresh bool) {
	now := base.View(l.Source).Snapshot
	if now.Revision == "" {
		return false
	}
	tree := treeOf(now)
	l.mu.Lock()
	defer l.mu.Unlock()
	known := l.known[now.Revision]
	c := l.commit(now.Revision)
	c.Parent, c.Tree, c.Began, l.begun = now.Parent, tree, c.Began || !c.Followed && !l.begun, true
	c.follow(base.Touched(l.Source))
	return known == nil
}

// treeOf returns the hash of a commit's tree, or "" if it cannot be read.
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

// at returns a copy of the entry of a revision.
func (l *commits) at(revision string) (c commit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known := l.known[revision]; known != nil {
		c = known.clone()
	}
	return c
}

func (c commit) clone() commit {
	c.Plans, c.awaited, c.Reviewed = maps.Clone(c.Plans), maps.Clone(c.awaited), maps.Clone(c.Reviewed)
	return c
}

// bringing returns the first commit of the source that contains another commit, or "" if the source has not
// reached such a commit. The source may reach several commits at once.
func (l *commits) bringing(ctx context.Context, what string) (found string, err error) {
	const most = 8 // the maximum number of commits to check after main was moved away again
	l.mu.Lock()
	known, order := l.known[what] != nil, slices.Clone(l.order)
	l.mu.Unlock()
	if known || what == "" {
		return what, nil
	}
	for i, revision := range slices.Backward(order) {
		in, err := l.Git.Descends(ctx, revision, what)
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

// save writes the changed entries, so that a later process can compare merges that this process has
// applied.
func (l *commits) save() {
	l.mu.Lock()
	kept, evicted := map[int64]keptCommit{}, l.evicted
	l.evicted = nil
	for _, c := range l.known {
		if c.unsaved {
			kept[c.number] = c.clone().keptCommit
			c.unsaved = false
		}
	}
	l.mu.Unlock()
	if len(kept)+len(evicted) == 0 {
		return
	}
	l.write(func(tx *state.Tx) error {
		for number, c := range kept {
			if err := keptCommits.Put(tx, l.key(number), c); err != nil {
				return err
			}
		}
		for _, number := range evicted {
			if err := keptCommits.Delete(tx, l.key(number)); err != nil {
				return err
			}
		}
		return nil
	})
}

// read reads the entries of an earlier process. That process may have applied part of changes whose plans
// it did not record.
func (l *commits) read() error {
	return l.DB.View(func(tx *state.Tx) error {
		l.known, l.order = map[string]*commit{}, nil
		return each(tx, l.records, keptCommits, func(key string, k keptCommit) error {
			c := &commit{keptCommit: k, seen: l.Now(), unsure: true}
			if _, err := fmt.Sscanf(key[len(l.Source)+1:], "%d", &c.number); err != nil {
				return fmt.Errorf("read state: commit %q: %w", key, err)
			}
			if c.Plans == nil {
				c.Plans = map[string]applied{}
			}
			c.await()
			l.known[c.Revision], l.order = c, append(l.order, c.Revision)
			return nil
		})
	})
}

// reviewedAt records the plans of a pull request for the commit that merged it, before the pull request
// itself is forgotten.
func (l *commits) reviewedAt(revision string, r reviewed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.known[revision]
	if c == nil || len(r.Digests) == 0 {
		return
	}
	if c.Reviewed == nil {
		c.Reviewed = map[string][]string{}
	}
	for target, digest := range r.Digests {
		if !slices.Contains(c.Reviewed[target], digest) {
			c.Reviewed[target] = append(c.Reviewed[target], digest)
			c.unsaved = true
		}
	}
}

// reportedBy returns the time by which the forge should have reported the pull request that a commit
// merged.
func (l *commits) reportedBy(revision string) time.Time { return l.at(revision).seen.Add(reporting) }
