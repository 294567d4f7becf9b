package pulls

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/status/report"
)

// planning is a plan in progress. It runs in parallel with Run, on a copy of the pull request, so that it
// delays neither other pull requests nor the next poll of this one.
type planning struct {
	records
	k *openPull // the pull request; only Run uses it
	// was is the pull request at the start of the plan. The plan is based on base, at commit at.
	was   openPull
	base  *fleet.Base
	at    string
	dirty bool
	// The plan may miss changes after from. began is its start by this machine's clock.
	from, began time.Time
	// early says that the forge may not yet have reported the pull request whose merge is commit at.
	early bool
	stop  context.CancelFunc
	// dropped says that the plan is no longer needed. noted says that its start is recorded in the state
	// directory.
	dropped, noted bool
	// heavy says that the plan may use much memory. Only one such plan runs at a time.
	heavy bool

	// shown, review and err are the result. If review is nil, the known review is still valid. slow says
	// that the render took long.
	shown  report.Pull
	review *fleet.Review
	slow   bool
	err    error
}

// drop cancels the plan in progress, because it is no longer needed.
func (k *openPull) drop() {
	if k.planning != nil {
		k.planning.dropped = true
		k.planning.stop()
	}
}

// propose makes the plan. It returns no review if the known review is still valid.
func (p *planning) propose(ctx context.Context) (report.Pull, *fleet.Review, error) {
	defer p.survived(p)
	defer p.lighter()
	k := &p.was
	ref := source.PullRef{Head: p.Forge.Profile().HeadRef(k.Number), HeadSHA: k.pr.HeadSHA, Base: p.at}
	if k.mayStillBeValid(p.dirty) && p.sameReview(ctx, ref) {
		return k.shown, nil, nil
	}
	ref.MergeRef = k.pr.MergeRef
	m, err := p.mergePull(ctx, ref)
	if err != nil {
		return report.Pull{}, nil, err
	}
	if len(m.Conflicts) > 0 && p.mayBeMerged() {
		return report.Pull{}, nil, errMerging
	}
	if len(m.Conflicts) > 0 {
		return report.Pull{State: report.PullConflict, BaseSHA: p.at, Reason: conflictText(m.Conflicts)}, &fleet.Review{}, nil
	}
	review, err := p.changes(ctx, m)
	if err == nil && len(review.Touched)+len(review.Gone) == 0 && p.mayBeMerged() {
		err = errMerging
	}
	if err != nil {
		return report.Pull{}, nil, err
	}
	return p.judge(ctx, review), review, nil
}

// mayBeMerged reports whether main may already contain a pull request, because it no longer changes
// anything, or conflicts with main. Git shows a merge before the forge reports it, and a squashed or
// rebased merge does not contain the head.
func (p *planning) mayBeMerged() bool {
	was := p.was.reviewed
	return p.early && was.Base != p.at && (was.State == report.PullPlanned || was.State == report.PullFailing)
}

// mergePull merges a pull request with the followed commit.
func (o *Options) mergePull(ctx context.Context, ref source.PullRef) (source.Merge, error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	return o.Git.Pull(ctx, ref)
}

// gives reports whether the merge of a pull request with a commit results in exactly the given tree. Then
// the commit with that tree contains the pull request and nothing else, by any merge method.
func (o *Options) gives(ctx context.Context, k *openPull, upon, tree string) bool {
	if upon == "" || tree == "" || k.Seen == "" {
		return false
	}
	m, err := o.mergePull(ctx, source.PullRef{Head: o.Forge.Profile().HeadRef(k.Number), HeadSHA: k.Seen, Base: upon})
	return err == nil && treeOf(m.Snapshot) == tree
}

// changes renders the targets that a merge would change, when a slot is free. A render that needs much
// memory is stopped. It restarts here if no other such render is running. Otherwise, changes returns an
// error, and the planner starts the plan again later, so that a waiting plan does not occupy a slot.
func (p *planning) changes(ctx context.Context, m source.Merge) (*fleet.Review, error) {
	review, err := p.render(ctx, m)
	if p.heavy || !errors.Is(err, fleet.ErrHeavy) {
		return review, err
	}
	if p.heavy = p.Turns.takeHeavy(); !p.heavy {
		return nil, err
	}
	return p.render(ctx, m)
}

// lighter allows another plan to use much memory.
func (p *planning) lighter() {
	if p.heavy {
		<-p.Turns.heavy
	}
}

func (p *planning) render(ctx context.Context, m source.Merge) (review *fleet.Review, err error) {
	p.slow, err = p.Turns.render(ctx, p.Source, p.was.slow, func(ctx context.Context) error {
		if err := p.attempt(p); err != nil {
			return err
		}
		proposal := p.proposal(m)
		proposal.Light = !p.heavy
		review, err = p.base.Review(ctx, p.Accounts, proposal)
		return err
	})
	return review, err
}

// sameReview reports whether the known review is still valid after the base has changed: neither the pull
// request nor its targets read the changed files, and the same targets are touched. It needs no request to
// a server, because the head was already fetched.
func (p *planning) sameReview(ctx context.Context, ref source.PullRef) bool {
	before := p.was.review
	m, err := p.mergePull(ctx, ref)
	if err != nil || len(m.Conflicts) > 0 || !before.Same(m.Snapshot.Tree) {
		return false // the full plan reports the error
	}
	again, err := p.changes(ctx, m)
	return err == nil && slices.Equal(again.Touched, before.Touched) && slices.Equal(again.Gone, before.Gone) && again.Targets == before.Targets
}

// mayStillBeValid reports whether the shown plan may still be valid after the base has changed.
func (k *openPull) mayStillBeValid(dirty bool) bool {
	return k.review != nil && !dirty && !k.asked && k.shown.HeadSHA == k.pr.HeadSHA && k.shown.Stale == "" && k.tries == 0 &&
		(k.shown.State == report.PullPlanned || k.shown.State == report.PullUnaffected)
}

// proposal converts a merge to the fleet's type. The content of a fork is never trusted, even if a user
// permitted its plan.
func (p *planning) proposal(m source.Merge) fleet.Proposal {
	return fleet.Proposal{Source: p.Source, Snapshot: m.Snapshot, Owner: fmt.Sprintf("pull request %s %d", p.Source, p.was.Number), Untrusted: p.was.pr.Fork}
}

// judge plans the targets that a review touches, and returns the pull request to show. A fork needs a role
// for plans in every touched target. Only a pull request without failed plans gets a digest.
func (p *planning) judge(ctx context.Context, review *fleet.Review) report.Pull {
	out := report.Pull{BaseSHA: p.at, Gone: review.Gone, Unaffected: review.Targets - len(review.Touched), State: report.PullPlanned}
	if len(review.Touched)+len(review.Gone) == 0 {
		out.State = report.PullUnaffected
		return out
	}
	if p.was.pr.Fork && len(review.Roleless) > 0 {
		out.State = report.PullFailing
		out.Reason = "pull requests from forks are planned with a role of their own: set planRoleARN of " + strings.Join(review.Roleless, ", ") + " in weir's configuration"
		return out
	}
	opening, cancel := context.WithTimeout(ctx, answering)
	review.Open(opening, p.Accounts)
	cancel()
	out.AsReviewed = asReviewed(review)
	scene := newScene(review)
	out.Reports = review.Plan(func(b reconciler.Batch) []*plan.Report { return scene.pass(ctx, p.Turns, b) })
	defer review.Planned()
	var plans []*plan.Plan
	for _, r := range out.Reports {
		if r.Plan != nil {
			plans = append(plans, r.Plan)
		}
		if out.State == report.PullPlanned && (r.Err != nil || r.Diagnostics.HasErrors()) {
			out.State, out.Reason = report.PullFailing, firstFault(r)
		}
	}
	// A failed plan gets no digest. It cannot be approved, and its comment must not contain the digest that
	// would approve a later plan.
	if out.State == report.PullPlanned && len(plans) == len(out.Reports) && len(plans) > 0 {
		out.Digest = plan.CombinedDigest(plans)
	}
	out.Forecast = p.foresee(ctx, scene, out)
	return out
}

// asReviewed reports whether at least one touched target applies its reviewed images.
func asReviewed(review *fleet.Review) bool {
	return slices.ContainsFunc(review.Batches, func(b reconciler.Batch) bool {
		return slices.ContainsFunc(b.Targets, func(d reconciler.Desired) bool {
			return d.Policy.Gates.AsReviewed && slices.Contains(review.Touched, d.Policy.Target)
		})
	})
}

// firstFault returns the first reason why a target cannot be planned, on one line.
func firstFault(r *plan.Report) string {
	if r.Err != nil {
		return r.Target + ": " + r.Err.Error()
	}
	for _, d := range r.Diagnostics {
		if d.Severity == diag.Error {
			return r.Target + ": " + d.String()
		}
	}
	return r.Target
}

// conflictText describes why the branch cannot be merged.
func conflictText(list []source.Conflict) string {
	const most = 5
	var lines []string
	for _, c := range list[:min(most, len(list))] {
		lines = append(lines, c.String())
	}
	text := "update the branch: " + strings.Join(lines, "; ")
	if n := len(list) - most; n > 0 {
		text += fmt.Sprintf("; and %d more", n)
	}
	return text
}
