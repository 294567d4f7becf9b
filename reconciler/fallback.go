package reconciler

import (
	"context"
	"slices"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/lastgood"
	"github.com/weir-gitops/weir/reconciler/plan/model"
)

// recallConverged marks pools that use an earlier revision as converged if the record says that they
// had converged. A process that has just started needs this to recognize drift.
func recallConverged(inputs []model.Input, memory *model.Memory) {
	cloned := false
	for i := range inputs {
		in := &inputs[i]
		h := in.Policy.Fallback
		if in.Set == nil {
			continue
		}
		reached := h != nil && h.Network != "" && h.Network == model.NetworkOf(in.Set, in.Answers)
		if !reached && !reachedAny(in.Policy.FallbackPools) {
			continue
		}
		if !cloned {
			converged := make(map[string]model.LastConverged, len(memory.Converged))
			for key, then := range memory.Converged {
				converged[key] = then
			}
			memory.Converged, cloned = converged, true
		}
		for j := range in.Set.Pools {
			if own := in.Policy.FallbackPools[in.Set.Pools[j].Key.String()]; h == nil && (own == nil || !own.Reached) {
				continue
			}
			key := model.ConvergedKey(in.Policy.Target, in.Set.Pools[j].Key.String())
			if _, known := memory.Converged[key]; !known {
				memory.Converged[key] = model.LastConverged{Pool: &in.Set.Pools[j], Answers: in.Answers}
			}
		}
	}
	if cloned {
		for i := range inputs {
			inputs[i].Memory.Converged = memory.Converged
		}
	}
}

func reachedAny(held map[string]*model.Fallback) bool {
	for _, h := range held {
		if h.Reached {
			return true
		}
	}
	return false
}

// selectTargets selects the targets for the remaining stages. It treats a target that the partial
// read skipped as unknown in this pass, and also a target whose followed commit cannot be rendered,
// unless that is held to the planned revision.
func (ps *passState) selectTargets(context.Context) error {
	ps.targets = ps.partial.leaveOut(ps.batch.Targets, ps.inputs)
	ps.targets = judgeFallbacks(ps.targets, ps.inputs, ps.plans, ps.reports)
	return nil
}

// judgeFallbacks decides which targets whose followed commit cannot be rendered stay at their earlier
// revision: the targets whose AWS resources fit it. It removes the plans of the others, and later stages treat
// them as targets without a render. It also reports the pools that stay at an earlier revision.
func judgeFallbacks(targets []Desired, inputs []model.Input, plans []*plan.Plan, reports []*plan.Report) []Desired {
	out := targets
	for i := range targets {
		h, p := targets[i].Policy.Fallback, plans[i]
		if p != nil {
			reports[i].FallbackPools = holdsOfPools(targets[i].Policy.FallbackPools, p)
		}
		if h == nil || p == nil {
			continue
		}
		held := &plan.Fallback{Revision: h.Revision, Why: h.Why, Verdict: p.Verdict()}
		reports[i].Fallback = held
		if held.Verdict.Answer == lastgood.Fits {
			p.Diagnostics = append(p.Diagnostics, held.Diagnostic())
			continue
		}
		if &out[0] == &targets[0] {
			out = slices.Clone(targets)
		}
		out[i].Set, inputs[i].Set, plans[i] = nil, nil, nil
		reports[i].Diagnostics = append(slices.Clone(reports[i].Diagnostics), held.Diagnostic()).Sorted()
	}
	return out
}

// holdsOfPools compares pools with the earlier revisions that they use.
func holdsOfPools(held map[string]*model.Fallback, p *plan.Plan) map[string]*plan.Fallback {
	if len(held) == 0 {
		return nil
	}
	out := map[string]*plan.Fallback{}
	for pool, verdict := range p.Verdicts() {
		out[pool] = &plan.Fallback{Revision: held[pool].Revision, Why: held[pool].Why, Verdict: verdict}
	}
	return out
}
