package fleet

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan/lastgood"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/source/snapshot"
)

// If the followed commit leaves nothing of a target to render, weir holds the target to an earlier commit. A
// search renders earlier revisions in order until one renders completely. weir plans that revision. The
// report's verdict then decides whether the target is held to it, or whether the search continues. Searches
// run concurrently with compositions, and a composition never waits for one.

// Good has the records of the last good revisions.
type Good interface {
	Record(target string) (lastgood.Record, error)
}

// Judged is a report's verdict on a revision that a search found.
type Judged struct {
	Head, Revision, Wanted string
	lastgood.Verdict
	// Pools contains the verdicts on pools ("namespace/name") that have their own searches.
	Pools map[string]JudgedPool
}

// JudgedPool is the verdict of a report on one pool of a revision.
type JudgedPool struct {
	Revision string
	lastgood.Verdict
}

// searchEvery is the time after which a failed search restarts even without a new commit. AWS may match an
// earlier revision by then.
const searchEvery = time.Hour

// search is the search of one target for one followed commit.
type search struct {
	// of is the item at the start of the search.
	of     item
	record lastgood.Record
	// order lists the revisions to try, and next is the index of the first untried one. order is
	// nil before they are listed.
	order []string
	next  int
	job   *candidateJob
	// found is the candidate to plan. Until a job has ended, it is the candidate of the earlier
	// search.
	found *candidate
	// why explains why the last tried revision was rejected. ended is the time at which no revision was
	// left.
	why   string
	ended time.Time
	// pools contains the searches for single pools, if the followed commit breaks only some pools. poolJob
	// is their job, and merged its last result.
	pools   map[string]*poolSearch
	poolJob *poolJob
	merged  merged
}

// candidate is a revision that renders completely.
type candidate struct {
	revision string
	kept     *render.Kept
	snap     snapshot.Snapshot
	wants    string // sumOfSet
}

// candidateJob looks for the next candidate. Its fields may be read only after it has ended.
type candidateJob struct {
	order []string
	next  int
	found *candidate
	why   string
	err   error
	done  chan struct{}
}

// Judge stores the verdicts of the last reports, by target.
func (f *Fleet) Judge(verdicts map[string]Judged) { f.holds.verdicts = verdicts }

// broken explains why the followed commit leaves nothing of the item to apply. It is empty if the commit
// leaves something, or if the commit is not the cause.
func (it *item) broken() string {
	d := &it.desired
	if d.Set != nil || it.err != nil || it.unknown || it.rowless || it.render.over != nil || !it.since.IsZero() {
		return ""
	}
	own := it.diags.HasErrors()
	if own && slices.ContainsFunc(it.diags, func(d diag.Diagnostic) bool { return d.Severity == diag.Error && d.Code != "path-missing" }) {
		return "" // the configuration has the fault, not the commit
	}
	if !own && (it.render.result == nil || !it.render.of(it)) {
		return ""
	}
	return faultOf(d.Diagnostics)
}

// fallbacks finds the earlier revisions of targets that cannot be rendered at the followed one.
type fallbacks struct {
	o      *Options
	runs   *runs
	budget *budget
	// The maps are by name of a target that cannot be rendered: searches for an earlier revision, the
	// intents wanted at that revision (see sumOfSet), and the verdicts of reports.
	searches map[string]*search
	desired  map[string]string
	verdicts map[string]Judged
}

// apply makes an item use an earlier revision if the followed one leaves nothing of it.
func (h *fallbacks) apply(ctx context.Context, in *inputs, it *item) {
	if h.o.Good == nil {
		return
	}
	s, why := h.searches[it.name], it.broken()
	switch {
	case why == "" && s != nil && it.desired.Set == nil && it.err == nil && !it.since.IsZero():
		why = "the newest commit is still rendering" // until the render ends, the target stays as it is
	case why == "" && len(it.brokenPools()) > 0:
		h.holdPools(ctx, it, it.brokenPools())
		return
	case why == "":
		h.endHold(it.name)
		return
	case s == nil || !it.rendersLike(&s.of) || !s.ended.IsZero() && time.Since(s.ended) > searchEvery:
		s = h.newSearch(it, s)
	}
	h.advance(ctx, it, s)
	if s.found != nil {
		h.fillHeld(in, it, s, why)
	}
	if it.desired.Policy.Fallback == nil && !s.ended.IsZero() {
		none := fmt.Sprintf("none of %d earlier commits can be applied instead", len(s.order))
		if s.why != "" {
			none += "; the last one: " + s.why
		}
		it.desired.Policy.Fallback = &model.Fallback{Why: why, None: none}
	}
}

func (h *fallbacks) endHold(name string) {
	if h.searches[name] == nil {
		return
	}
	delete(h.searches, name)
	h.o.hide("held "+name, nil)
}

// newSearch starts a search. Until it finds a candidate, it keeps the candidate of the earlier search, if
// that was made with the same configuration.
func (h *fallbacks) newSearch(it *item, before *search) *search {
	s := &search{of: *it}
	own := *it.render
	s.of.render = &own
	s.of.diags, s.of.desired = nil, reconciler.Desired{}
	record, err := h.o.Good.Record(it.name)
	if err != nil {
		h.o.Logger.Error("the last good revision cannot be read", "target", it.name, "error", err)
	}
	s.record = record
	if before != nil && len(before.pools) > 0 {
		was := before.of
		was.view.Snapshot.Revision = it.view.Snapshot.Revision
		if it.rendersLike(&was) {
			s.pools = map[string]*poolSearch{}
			for key, p := range before.pools {
				s.pools[key] = &poolSearch{found: p.found, pool: p.pool}
			}
		}
	}
	if before != nil && before.found != nil {
		was := before.of
		was.view.Snapshot.Revision = it.view.Snapshot.Revision
		if it.rendersLike(&was) {
			s.found = before.found
		}
	}
	h.searches[it.name] = s
	return s
}

// advance takes a job's result and the verdict on it, and starts the next job.
func (h *fallbacks) advance(ctx context.Context, it *item, s *search) {
	if j := s.job; j != nil {
		select {
		case <-j.done:
		default:
			return
		}
		s.job = nil
		if j.err != nil {
			return // ctx has ended
		}
		s.order, s.next, s.found = j.order, j.next, j.found
		if j.why != "" {
			s.why = j.why
		}
		if s.found == nil {
			s.ended = time.Now()
		}
	}
	if !s.ended.IsZero() {
		return
	}
	if s.order != nil && s.found != nil {
		v, known := h.verdicts[it.name]
		if !known || v.Head != s.of.view.Snapshot.Revision || v.Revision != s.found.revision || v.Wanted != h.desired[it.name] || v.Answer == lastgood.Fits || v.Answer == lastgood.Unclear {
			return
		}
		s.why = rollout.ShortRevision(s.found.revision) + ": " + v.Why
		if v.Answer == lastgood.Nothing {
			s.found, s.ended = nil, time.Now()
			return
		}
	}
	s.job = h.seek(ctx, s)
}

// seek starts a job that renders the remaining revisions of a search until one renders completely and
// differs from the tried ones.
func (h *fallbacks) seek(ctx context.Context, s *search) *candidateJob {
	it := s.of
	it.budget, it.earlier = h.budget.forReview(), true
	j := &candidateJob{order: s.order, next: s.next, done: make(chan struct{})}
	var tried []*render.Kept
	if s.of.render.result != nil {
		tried = append(tried, s.of.render.result)
	}
	if s.order != nil && s.found != nil {
		tried = append(tried, s.found.kept)
	}
	record := s.record
	h.runs.start(ctx, j.done, &j.err, func() error {
		if j.order == nil {
			parents, err := it.view.Parents(ctx, it.view.Snapshot.Revision, lastgood.MaxParents)
			if err != nil {
				j.why = err.Error() // the recorded revisions are tried anyway
			}
			j.order = append([]string{}, record.Order(it.view.Snapshot.Revision, parents)...)
		}
		for ; j.next < len(j.order) && j.found == nil && ctx.Err() == nil; j.next++ {
			j.found, tried = it.candidate(ctx, j, tried)
		}
		return ctx.Err()
	})
	return j
}

// candidate renders the next revision of a job. It returns nil if that is no candidate, and puts the reason
// into the job's why. A revision that reads the same as a tried one is no candidate and has no reason.
func (it *item) candidate(ctx context.Context, j *candidateJob, tried []*render.Kept) (*candidate, []*render.Kept) {
	c, why := it.renderEarlier(ctx, j.order[j.next], tried)
	if c != nil {
		tried = append(tried, c.kept)
		if c.kept.Diags.HasErrors() {
			c, why = nil, rollout.ShortRevision(j.order[j.next])+": it cannot be rendered either"
		}
	}
	if why != "" {
		j.why = why
	}
	return c, tried
}

// renderEarlier renders an earlier revision, or returns the reason why it cannot. It returns nothing for a
// revision that reads the same as a tried one.
func (it *item) renderEarlier(ctx context.Context, revision string, tried []*render.Kept) (c *candidate, why string) {
	no := func(format string, args ...any) (*candidate, string) {
		return nil, rollout.ShortRevision(revision) + ": " + fmt.Sprintf(format, args...)
	}
	snap, err := it.view.Earlier(ctx, revision)
	if err != nil {
		return no("%v", err)
	}
	if gone, err := isMissing(snap.Tree, it.path); err != nil || gone {
		return no("path %s is not in it", it.path)
	}
	for _, k := range tried {
		if same, err := k.Reads.Same(snap.Tree); err == nil && same && !k.Retry {
			return nil, ""
		}
	}
	kept, err := render.Keep(ctx, snap.Tree, it.path, it.options(), render.NewShared(it.budget.shared))
	if err != nil {
		return no("%v", err)
	}
	return &candidate{revision: revision, kept: kept, snap: snap}, ""
}

// fillHeld puts the found candidate into the item's Desired. The commit stays the followed one, because
// statuses belong to it and other instances compare commits with it.
func (h *fallbacks) fillHeld(in *inputs, it *item, s *search, why string) {
	d, c := &it.desired, s.found
	key := reconciler.ScopeKey{Account: it.target.AccountID, Region: it.target.Region, RoleARN: it.target.RoleARN, Endpoint: h.o.endpoint(it.target)}
	of := reconciler.Desired{Policy: d.Policy}
	fill(&of, c.kept, &key, it.target.AllowedRoleARNs)
	if of.Set == nil || it.accountUnknown() {
		return // the candidate names a role that the configuration does not allow
	}
	key.RoleARN = in.role(it.target, key.RoleARN)
	it.key = key
	h.o.hide("held "+it.name, c.kept.Hidden)
	if c.wants == "" {
		c.wants = sumOfSet(d.Policy.DigestKey, &c.kept.Set)
	}
	it.heldSum = c.wants
	d.Set, d.Whole = of.Set, false
	d.Policy.Secretless = d.Policy.Secretless || of.Policy.Secretless
	d.Policy.Prune.Allowed = nil
	kept, tree, path, options := c.kept, c.snap.Tree, it.path, it.options()
	d.Origins = func(ctx context.Context, asked []intent.Question) []diag.Position {
		return kept.Origins(ctx, tree, path, options, asked)
	}
	d.Policy.Fallback = &model.Fallback{Revision: c.revision, Why: why, Recorded: s.record.Recorded(c.revision), Network: s.record.ConvergedNetwork(it.wanted())}
	h.desired[it.name] = it.wanted() + it.configured()
}
