package workspace

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/simulate"
)

// Scene executes the pass of weir plan, and returns the scene of a simulation from its reads, with the
// reports of the plans.
func (w *Workspace) Scene(ctx context.Context) (simulate.Scene, []*plan.Report) {
	for i := range w.batches {
		w.batches[i].Inputs = &reconciler.PassInputs{}
	}
	reports := w.Pass(ctx, reconciler.PlanOnly)
	s := simulate.Scene{Now: time.Now(), Shown: map[string]bool{}}
	for _, b := range w.batches {
		s.Stages = append(s.Stages, simulate.Stage{Batch: b, Inputs: b.Inputs, Reports: reports})
	}
	for _, r := range reports {
		s.Shown[r.Target] = true
	}
	if g := w.gating; g != nil {
		s.Conditions, s.Records, s.Rollouts, s.Elsewhere = g.conditions, g.records, g.rollouts, g.all
		s.Now = g.clock.Earliest()
	}
	return s, reports
}

// DraftScene is Scene for a draft, as if its source followed it.
func DraftScene(ctx context.Context, env Env, c *config.Config, f Draft) (s simulate.Scene, out Drafted, err error) {
	var mu sync.Mutex
	var once sync.Once
	reviewed := map[string]bool{} // targets that wait for approvals
	var of *drafting
	out, err = planDraft(ctx, env, c, f, func(d *drafting, b reconciler.Batch) []*plan.Report {
		b.Inputs = &reconciler.PassInputs{}
		reports := reconciler.RunBatch(ctx, b, reconciler.PlanOnly)
		mu.Lock()
		defer mu.Unlock()
		of = d
		once.Do(func() {
			for _, all := range d.composition.Batches {
				for _, t := range all.Targets {
					reviewed[t.Policy.Target] = t.Policy.Gates.AsReviewed
				}
			}
		})
		s.Stages = append(s.Stages, simulate.Stage{Batch: b, Inputs: b.Inputs, Reports: reports})
		return reports
	})
	if err != nil || of == nil {
		return s, out, err
	}
	g, err := newGating(ctx, env, c, of.composition, of.accounts.Clock(), false)
	if err != nil {
		return s, out, err
	}
	slices.SortFunc(s.Stages, func(a, b simulate.Stage) int { return a.Batch.Key.Compare(b.Batch.Key) })
	for i := range s.Stages {
		targets := slices.Clone(s.Stages[i].Batch.Targets)
		for j := range targets {
			targets[j].Policy.Gates.AsReviewed = reviewed[targets[j].Policy.Target]
		}
		s.Stages[i].Batch.Targets = targets
	}
	s.Now, s.Conditions, s.Records, s.Rollouts, s.Elsewhere, s.Shown = g.clock.Earliest(), g.conditions, g.records, g.rollouts, g.all, map[string]bool{}
	s.Records.Grants, s.Records.Approvals = nil, nil // they belong to the followed commits
	for _, r := range out.Reports {
		s.Shown[r.Target] = true
	}
	return s, out, nil
}
