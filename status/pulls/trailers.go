package pulls

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/status/wording"
)

// A trailer that removes the limit of deletions is a line in a commit message. The message of a merge comes
// from the forge or from the user who merged, so no reviewer of the pull request has seen it. On a commit
// that merges a pull request, the trailer therefore permits only the deletions that the plan on the pull
// request showed as permitted by the trailer of its head commit. On any other commit, it permits everything
// that it names. Only the forge knows whether a commit merges a pull request, and possibly a moment later
// than Git has the commit.

const (
	// late is the time since weir first saw a commit, before which it does not rely on a forge that reports
	// no merge for it.
	late = 10 * time.Second
	// asking is the time between two requests about a commit.
	asking = 5 * time.Second
	// merging is the maximum time between the last change of a pull request and the commit that merges it.
	// Their clocks differ.
	merging = 24 * time.Hour
)

// ruling is the decision about a followed commit with a trailer, or about a commit for which plans of
// several pull requests showed different images. It is stored as long as the commit is followed, because
// the permitted deletions may take several passes.
type ruling struct {
	Revision string `json:"revision"`
	// Pull is the pull request that the commit merges, 0 if it merges none. Why is the reason why the
	// trailer permits only Prunes: by target, the pools whose deletion was shown as permitted. If Why is
	// empty, the trailer permits everything that it names.
	Pull   int64               `json:"pull,omitempty"`
	Why    string              `json:"why,omitempty"`
	Prunes map[string][]string `json:"prunes,omitempty"`
}

// rulings contains the rulings by source.
var rulings = state.Bucket[ruling]{Name: "trailers"}

// inquiry is a commit that waits for a ruling.
type inquiry struct {
	revision, parent, tree string
	committed              time.Time
	// since is the time of the first request about the commit, and next the time of the next one.
	since, next time.Time
	warned      bool
}

// trailers decides which trailers of the followed commit are valid.
type trailers struct {
	records
	log    *slog.Logger
	pulls  *pullRequests // only Run uses these
	images *images
	// listen makes the watcher read new merges.
	listen func()

	mu sync.Mutex // guards the fields below
	// ruling is the last decision. inquiry is the commit that waits for a ruling, nil if none exists.
	ruling  ruling
	inquiry *inquiry
}

// rule limits the deletions that the trailer of a target's commit permits.
func (t *trailers) rule(d *reconciler.Desired, commit snapshot.Snapshot) {
	prune := &d.Policy.Prune
	if len(prune.Allowed) == 0 {
		return
	}
	r, known := t.ruled(commit)
	switch {
	case !known:
		prune.Allowed = nil
		prune.Waits = "weir does not know yet whether the commit " + wording.Short(commit.Revision) + " merges a pull request, whose plan must then show the deletions"
		return
	case r.Why == "":
		return
	}
	counts := map[string]bool{}
	for pool := range prune.Allowed {
		if slices.Contains(r.Prunes[d.Policy.Target], pool) {
			counts[pool] = true
		}
	}
	if left := len(prune.Allowed) - len(counts); left > 0 {
		// Passes do not share their diagnostics.
		d.Diagnostics = append(slices.Clone(d.Diagnostics), diag.Diagnostic{Severity: diag.Warning, Code: "trailer-ignored",
			Summary: fmt.Sprintf("the trailer Weir-Allow-Prune has no effect for %d of %d pools: %s", left, len(prune.Allowed), r.Why),
			Detail:  diag.Hint("trailer-ignored")}).Sorted()
	}
	prune.Allowed = counts
}

// ruled returns the ruling on a commit. If it is missing, ruled starts an inquiry.
func (t *trailers) ruled(commit snapshot.Snapshot) (ruling, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.ruling.Revision == commit.Revision {
		return t.ruling, true
	}
	if t.inquiry == nil || t.inquiry.revision != commit.Revision {
		t.inquiry = &inquiry{revision: commit.Revision, parent: commit.Parent, tree: treeOf(commit), committed: commit.CommittedAt, since: t.Now()}
		t.listen()
	}
	return ruling{}, false
}

// read reads the last ruling from the state directory.
func (t *trailers) read() error {
	var r ruling
	if err := t.DB.View(func(tx *state.Tx) (err error) { r, _, err = rulings.Get(tx, t.Source); return err }); err != nil {
		return err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ruling = r
	return nil
}

// asked returns the commit that waits for a ruling, and reports whether the next request is due.
func (t *trailers) asked() (*inquiry, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.inquiry
	if q == nil || t.Now().Before(q.next) {
		return q, false
	}
	now := t.Now()
	if q.next = now.Add(asking); now.After(q.since.Add(2 * late)) {
		q.next = now.Add(max(asking, t.Interval)) // after so long without an answer, weir sends fewer requests
	}
	return q, true
}

// decided records the ruling on a commit.
func (t *trailers) decided(q *inquiry, r ruling) {
	t.Logger.Info("found out which pull request a commit merges", "source", t.Source, "revision", q.revision, "pull", r.Pull, "why", r.Why)
	t.write(func(tx *state.Tx) error { return rulings.Put(tx, t.Source, r) })
	t.mu.Lock()
	if t.ruling = r; t.inquiry == q {
		t.inquiry = nil
	}
	t.mu.Unlock()
	t.Approved()
}

// inquire decides on a commit if the forge and Git have the required data by now.
func (t *trailers) inquire(ctx context.Context, q *inquiry) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	r, known, err := t.origin(ctx, q)
	if err != nil && ctx.Err() == nil && !q.warned {
		t.log.Warn("cannot find out yet which pull request a commit merges; the deletions that its trailer allows wait, and changes for which plans showed different images", "revision", q.revision, "error", err)
		q.warned = true
	}
	if !known && t.Now().Before(q.since.Add(waiting)) {
		return
	}
	if !known {
		r = ruling{Revision: q.revision, Why: fmt.Sprintf("within %.0f hours the forge has not said whether the commit merges a pull request", waiting.Hours())}
	}
	t.images.markMerged(r.Pull) // before the ruling, so that its readers can use the images
	t.decided(q, r)
}

// origin finds the pull request that a commit merges, and returns the ruling based on its plan. known is
// false while the forge may still report a different result.
func (t *trailers) origin(ctx context.Context, q *inquiry) (r ruling, known bool, err error) {
	for _, number := range t.pulls.open.numbers() {
		k := t.pulls.open[number]
		is := k.MergeSHA == q.revision
		if !is && k.Seen != "" { // merged by a user's push
			if is, err = q.brought(ctx, t.Git, k.Seen); err != nil {
				return r, false, err
			}
		}
		// It may have been squashed or rebased, and the forge may not have reported it yet.
		if is = is || k.Base != "" && t.gives(ctx, k, q.parent, q.tree); is {
			shown, err := k.reviewOf(ctx, t.Git, q.revision)
			return k.ruling(q.revision, shown), err == nil, err
		}
	}
	from := q.committed
	if now := t.Now(); from.IsZero() || from.After(now) {
		from = now
	}
	merged, whole, err := t.Forge.MergedSince(ctx, from.Add(-merging))
	if err != nil {
		return r, false, err
	}
	for _, pr := range merged {
		is := pr.MergeSHA == q.revision
		if !is && pr.HeadSHA != "" {
			if is, err = q.brought(ctx, t.Git, pr.HeadSHA); err != nil {
				return r, false, err
			}
		}
		if is { // it was opened and merged between two polls, or is old
			return ruling{Revision: q.revision, Pull: pr.Number, Why: mergesText(pr.Number) + "no plan of it was shown"}, true, nil
		}
	}
	if !whole {
		return r, false, fmt.Errorf("more pull requests were merged since %s than the forge lists", from.Add(-merging).Format(time.RFC3339))
	}
	return ruling{Revision: q.revision}, !t.Now().Before(q.since.Add(late)), nil
}

// brought reports whether the commit contains a pull request's head and its parent does not.
func (q *inquiry) brought(ctx context.Context, git Git, head string) (bool, error) {
	in, err := git.Descends(ctx, q.revision, head)
	if err != nil || !in || q.parent == "" {
		return in, err
	}
	before, err := git.Descends(ctx, q.parent, head)
	return !before, err
}

// ruling returns the decision about the commit that merges a pull request: its trailer permits the
// deletions that the plan showed as permitted.
func (k *openPull) ruling(revision string, shown reviewed) ruling {
	r := ruling{Revision: revision, Pull: k.Number, Why: mergesText(k.Number) + "its plan did not show their deletion as allowed"}
	if !k.Reported || shown.Head == "" || shown.Head != k.Seen {
		r.Why = mergesText(k.Number) + "no plan of its commit " + wording.Short(k.Seen) + " was shown"
		return r
	}
	r.Prunes = shown.Prunes
	return r
}

// mergesText returns the start of the reason in a ruling.
func mergesText(number int64) string {
	return fmt.Sprintf("the commit merges pull request %d, and ", number)
}

// prunes returns the pools of a plan whose deletion a trailer permits.
func prunes(p *plan.Plan) []string {
	var out []string
	for _, s := range p.Steps {
		if s.Allowed && s.Pool != "" && !slices.Contains(out, s.Pool) {
			out = append(out, s.Pool)
		}
	}
	return out
}
