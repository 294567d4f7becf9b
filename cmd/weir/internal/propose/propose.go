// Package propose renders and plans commits that are not pushed yet, for the pull requests that weir opens.
// It reads AWS with the roles for plans, as for pull requests of other authors.
package propose

import (
	"context"
	"slices"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/edit"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/status/pulls"
)

// Source renders and plans commits of one source.
type Source struct {
	Name string
	Git  *source.Git
	// Base returns the fleet that commits are compared with; nil before the first composition.
	Base   func() *fleet.Base
	Drafts *pulls.Drafts
}

// render renders targets of a commit: the targets in only, all targets, or by default the targets that the
// commit changes. owner is the purpose, for logs.
func (s Source) render(ctx context.Context, c snapshot.Snapshot, owner string, only []string, all bool) (*fleet.Review, error) {
	base := s.Base()
	if base == nil {
		return nil, pulls.ErrEarly
	}
	return base.Review(ctx, s.Drafts.Accounts, fleet.Proposal{Source: s.Name, Snapshot: c, Owner: owner, Only: only, All: all})
}

// followed returns the followed commit.
func (s Source) followed() (snapshot.Snapshot, error) {
	base := s.Base()
	if base == nil {
		return snapshot.Snapshot{}, pulls.ErrEarly
	}
	return base.View(s.Name).Snapshot, nil
}

// plan renders targets of a commit, as render does, and plans them. It returns the reports by target.
func (s Source) plan(ctx context.Context, c snapshot.Snapshot, owner string, only []string, all bool) (*fleet.Review, map[string]*plan.Report, error) {
	base := s.Base()
	if base == nil {
		return nil, nil, pulls.ErrEarly
	}
	review, list, err := s.Drafts.Trusted(ctx, base, fleet.Proposal{Source: s.Name, Snapshot: c, Owner: owner, Only: only, All: all})
	reports := map[string]*plan.Report{}
	for _, r := range list {
		reports[r.Target] = r
	}
	return review, reports, err
}

// write writes changes into the files of a rendered tree.
func write(ctx context.Context, t tree.Tree, of *fleet.Review, changes []edit.Change) (*edit.Result, error) {
	var places []edit.Place
	for _, p := range of.Places {
		places = append(places, edit.Place{Name: p.Name, Dir: p.Dir, Options: p.Options})
	}
	return edit.Set(ctx, t, places, changes)
}

// partly explains why a target's manifests are incomplete.
func partly(d *reconciler.Desired) string {
	if i := slices.IndexFunc(d.Diagnostics, func(x diag.Diagnostic) bool { return x.Severity == diag.Error }); i >= 0 {
		return d.Diagnostics[i].String()
	}
	return "its manifests have faults"
}

// faultOf returns the reason why a target cannot be planned.
func faultOf(r *plan.Report) string {
	if r.Err != nil {
		return r.Err.Error()
	}
	for _, d := range r.Diagnostics {
		if d.Severity == diag.Error {
			return d.String()
		}
	}
	return "it has no plan"
}

// setsOf returns the intents of targets.
func setsOf(review *fleet.Review) map[string]*intent.Set {
	out := map[string]*intent.Set{}
	for _, b := range review.Batches {
		for i := range b.Targets {
			out[b.Targets[i].Policy.Target] = b.Targets[i].Set
		}
	}
	return out
}
