package reconciler

import (
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/plan/lastgood"
	"github.com/weir-gitops/weir/reconciler/step"
)

// Marks keep of targets at which commits they were begun and had converged, and which
// instance refreshes weir cancelled: AWS does not say who did that.
type Marks interface {
	Begin(target string, m lastgood.Mark) error
	Reach(target string, m lastgood.Mark) error
	// Cancel adds refreshes by the names of their groups, and forgets those of groups that
	// are not among present.
	Cancel(target string, refreshes map[string]string, present func(group string) bool) error
	Cancelled(target string) (map[string]string, error)
}

// recallSettled takes the pools of targets that are held for settled where the record says
// that they had converged: a process that has just begun tells drift by that alone.
func recallSettled(inputs []basis.Input, memory *basis.Memory) {
	cloned := false
	for i := range inputs {
		in := &inputs[i]
		h := in.Policy.Held
		if in.Set == nil {
			continue
		}
		reached := h != nil && h.Settled != "" && h.Settled == basis.NetworkOf(in.Set, in.Answers)
		if !reached && !reachedAny(in.Policy.HeldPools) {
			continue
		}
		if !cloned {
			settled := make(map[string]basis.Settled, len(memory.Settled))
			for key, then := range memory.Settled {
				settled[key] = then
			}
			memory.Settled, cloned = settled, true
		}
		for j := range in.Set.Pools {
			if own := in.Policy.HeldPools[in.Set.Pools[j].Key.String()]; h == nil && (own == nil || !own.Reached) {
				continue
			}
			key := basis.SettledKey(in.Policy.Target, in.Set.Pools[j].Key.String())
			if _, known := memory.Settled[key]; !known {
				memory.Settled[key] = basis.Settled{Pool: &in.Set.Pools[j], Answers: in.Answers}
			}
		}
	}
	if cloned {
		for i := range inputs {
			inputs[i].Memory.Settled = memory.Settled
		}
	}
}

func reachedAny(held map[string]*basis.Held) bool {
	for _, h := range held {
		if h.Reached {
			return true
		}
	}
	return false
}

// judge decides for targets whose followed commit cannot be rendered whether they are held to the
// planned revision. If a target is not, the rest of the pass treats it as a target without a
// render.
func judge(targets []Desired, inputs []basis.Input, plans []*plan.Plan, reports []*plan.Report) []Desired {
	out := targets
	for i := range targets {
		h, p := targets[i].Policy.Held, plans[i]
		if p != nil {
			reports[i].HeldPools = holdsOfPools(targets[i].Policy.HeldPools, p)
		}
		if h == nil || p == nil {
			continue
		}
		held := &plan.Holds{Revision: h.Revision, Why: h.Why, Verdict: p.Verdict()}
		reports[i].Holds = held
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

// holdsOfPools says how the pools that are held to an earlier revision stand to it.
func holdsOfPools(held map[string]*basis.Held, p *plan.Plan) map[string]*plan.Holds {
	if len(held) == 0 {
		return nil
	}
	out := map[string]*plan.Holds{}
	for pool, verdict := range p.Verdicts() {
		out[pool] = &plan.Holds{Revision: held[pool].Revision, Why: held[pool].Why, Verdict: verdict}
	}
	return out
}

// begun records what is about to be applied. Where that fails, steps run all the same: a
// target would then be held to a commit before, or to none.
func (s *Scope) begun(m Marks, targets []Desired) {
	s.mark(m, targets, func(i int) error { return m.Begin(targets[i].Policy.Target, targets[i].mark()) })
}

// reached records what has converged.
func (s *Scope) reached(m Marks, targets []Desired, inputs []basis.Input, reports []*plan.Report) {
	s.mark(m, targets, func(i int) error {
		if !reports[i].Converged() {
			return nil
		}
		mark := targets[i].mark()
		mark.Network = basis.NetworkOf(targets[i].Set, inputs[i].Answers)
		return m.Reach(targets[i].Policy.Target, mark)
	})
}

// recallCancelled takes for cancelled by weir what the record says, as another process may
// have done it.
func (s *Scope) recallCancelled(m Marks, targets []Desired) {
	if m == nil {
		return
	}
	for i := range targets {
		known, err := m.Cancelled(targets[i].Policy.Target)
		if err != nil {
			s.logger().Warn("which instance refreshes weir cancelled cannot be read", "target", targets[i].Policy.Target, "error", err)
		}
		s.mu.Lock()
		for _, id := range known {
			s.cancelled, s.cancelledBefore = keep(s.cancelled, s.cancelledBefore, id, true, remembered)
		}
		s.mu.Unlock()
	}
}

// cancelling records which refreshes are about to be cancelled: before that, as nobody could
// tell afterwards. Where it fails they are cancelled all the same: a process after this one
// would then hold a pool that comes back to what was rolled out, and ask who did it.
func (s *Scope) cancelling(m Marks, reports []*plan.Report, state *observed.State) {
	if m == nil {
		return
	}
	present := func(group string) bool { _, there := state.Groups[group]; return there }
	for _, r := range reports {
		if r.Plan == nil {
			continue
		}
		refreshes := map[string]string{}
		for _, st := range r.Plan.Steps {
			if c, ok := st.Do.(step.CancelRefresh); ok && st.Held == "" {
				refreshes[c.Group] = c.RefreshID
			}
		}
		if len(refreshes) == 0 {
			continue
		}
		if err := m.Cancel(r.Target, refreshes, present); err != nil {
			s.logger().Warn("which instance refreshes weir cancels cannot be recorded", "target", r.Target, "error", err)
		}
	}
}

func (d *Desired) mark() lastgood.Mark {
	return lastgood.Mark{Revision: d.Commit.Revision, Wants: d.Wishes}
}

func (s *Scope) mark(m Marks, targets []Desired, record func(i int) error) {
	for i := range targets {
		d := &targets[i]
		if m == nil || !d.Whole || d.Set == nil || d.Policy.Held != nil || d.Commit.Revision == "" || d.Wishes == "" {
			continue
		}
		if err := record(i); err != nil {
			s.logger().Warn("the last good revision cannot be recorded", "target", d.Policy.Target, "error", err)
		}
	}
}
