package workspace

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/cmd/weir/internal/advice"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/terminal"
)

// AdoptOnly makes the passes of the workspace only adopt resources. With from, they also adopt resources of
// the weir instance of that name. names limits the passes to pools; an empty list means all pools. AdoptOnly
// returns an error for a name that no pool has, unless a target could not be rendered.
func (w *Workspace) AdoptOnly(from string, names []string) error {
	wanted := map[string]bool{}
	known := map[string]bool{}
	var unrendered bool
	w.Each(func(_ reconciler.ScopeKey, d *reconciler.Desired) {
		if d.Set == nil {
			unrendered = true
			return
		}
		for i := range d.Set.Pools {
			key := d.Set.Pools[i].Key
			known[key.String()] = true
			if slices.Contains(names, key.Name) || slices.Contains(names, key.String()) {
				wanted[key.String()] = true
			}
		}
	})
	for _, name := range names {
		found := slices.ContainsFunc(slices.Collect(maps.Keys(wanted)), func(k string) bool { return k == name || strings.HasSuffix(k, "/"+name) })
		if !found && !unrendered {
			all := slices.Sorted(maps.Keys(known))
			return advice.Usage(advice.DidYouMeanPool(name, all, "the pools are "+strings.Join(all, ", ")), "there is no pool %q", name)
		}
	}
	a := model.Adoption{Asked: true, From: from}
	if len(names) > 0 {
		a.Pools = wanted
	}
	w.Each(func(_ reconciler.ScopeKey, d *reconciler.Desired) { d.Policy.Adoption = a })
	return nil
}

// PlanAgain plans each target again after an adoption, with the current state of its pools. The previous
// pass saw only their state before the adoption. PlanAgain adopts nothing else.
func (w *Workspace) PlanAgain(ctx context.Context, applied []terminal.Applied) {
	done := func(o step.Outcome) bool { return o.Status == step.Done }
	if !slices.ContainsFunc(applied, func(a terminal.Applied) bool { return slices.ContainsFunc(a.Outcomes, done) }) {
		return
	}
	w.Each(func(_ reconciler.ScopeKey, d *reconciler.Desired) { d.Policy.Adoption = model.Adoption{} })
	for _, r := range w.Pass(ctx, reconciler.PlanOnly) {
		if i := slices.IndexFunc(applied, func(a terminal.Applied) bool { return a.First.Target == r.Target }); i >= 0 && r.Err == nil && applied[i].First.Err == nil {
			applied[i].Last = r
		}
	}
}

// Only limits each target to the pools that were shown.
func (w *Workspace) Only(reports []*plan.Report) {
	for _, r := range reports {
		pools := map[string]bool{}
		if r.Plan != nil {
			for _, st := range r.Plan.Steps {
				pools[st.Pool] = true
			}
		}
		w.Each(func(_ reconciler.ScopeKey, d *reconciler.Desired) {
			if d.Policy.Target == r.Target {
				d.Policy.Adoption.Pools = pools
			}
		})
	}
}
