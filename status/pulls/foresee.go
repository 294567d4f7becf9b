package pulls

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/simulate"
	"github.com/weir-gitops/weir/status/report"
)

// scene collects the inputs of plans, to simulate the plans.
type scene struct {
	simulate.Scene
	mu sync.Mutex
}

// newScene returns the scene of a review. The plans add their inputs.
func newScene(review *fleet.Review) *scene {
	s := &scene{Scene: simulate.Scene{Shown: map[string]bool{}}}
	s.Conditions, s.Elsewhere = review.Around()
	for _, name := range review.Touched {
		s.Shown[name] = true
	}
	return s
}

// pass plans a batch, and adds the inputs of its plans to the scene.
func (s *scene) pass(ctx context.Context, turns *Turns, b reconciler.Batch) []*plan.Report {
	b.Inputs = &reconciler.PassInputs{}
	reports := turns.pass(ctx, b)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Stages = append(s.Stages, simulate.Stage{Batch: b, Inputs: b.Inputs, Reports: reports})
	return reports
}

// mostForeseen is the approximate maximum number of pools in a simulation. In a pass over the copy,
// machinesPerPool machines cost as much as one pool.
const (
	mostForeseen    = 200
	machinesPerPool = 20
)

// size returns the approximate cost of simulating a scene, in pools.
func (s *scene) size() (n int) {
	for _, st := range s.Stages {
		machines := 0
		for _, g := range st.Inputs.State.Groups {
			machines += max(len(g.Instances), int(g.DesiredCapacity))
		}
		wanted := 0
		for _, d := range st.Batch.Targets {
			if d.Set == nil {
				continue
			}
			wanted += len(d.Set.Pools)
			for _, p := range d.Set.Pools {
				if p.Replicas.Written {
					machines += int(p.Replicas.Value)
				}
			}
		}
		n += max(wanted, len(st.Inputs.State.Groups)+len(st.Inputs.State.Nodegroups)) + machines/machinesPerPool
	}
	return n
}

// foresee simulates a plan over time, on a copy of its inputs in this process. It reads nothing from AWS,
// and does not delay other work on an account. A plan that equals the shown one keeps its forecast. If the
// simulation fails, the forecast contains the reason. If it takes too long, the forecast contains a command
// to run. It never prevents a plan from being shown.
func (p *planning) foresee(ctx context.Context, s *scene, of report.Pull) (out *report.Forecast) {
	does := slices.ContainsFunc(of.Reports, func(r *plan.Report) bool { return r.Plan != nil && !r.Plan.Empty() })
	if p.Policy.Forecast == Never || of.State != report.PullPlanned || !does {
		return nil
	}
	if was := p.was.shown; was.Forecast != nil && was.Forecast.Failed == "" && was.Digest == of.Digest && of.Digest != "" && !p.was.asked {
		return was.Forecast
	}
	large := &report.Forecast{Command: fmt.Sprintf("weir simulate --config weir.yaml --pull-request %s#%d", p.Source, p.was.Number)}
	if s.size() > mostForeseen {
		return large
	}
	select {
	case p.Turns.foresees <- struct{}{}:
		defer func() { <-p.Turns.foresees }()
	case <-ctx.Done():
		return nil
	}
	defer func() {
		if fault := recover(); fault != nil {
			p.Logger.Error("cannot show what a pull request would do over time: its simulation has a fault", "source", p.Source, "pull", p.was.Number, "fault", fmt.Sprint(fault))
			out = &report.Forecast{Command: large.Command, Failed: "the simulation has a fault, which is in weir's log"}
		}
	}()
	bound, cancel := context.WithTimeout(ctx, p.Within)
	defer cancel()
	slices.SortFunc(s.Stages, func(a, b simulate.Stage) int { return a.Batch.Key.Compare(b.Batch.Key) })
	s.Now = looked(s.Stages)
	assume := p.Assume
	assume.Free, assume.Approved = true, of.AsReviewed
	t, err := simulate.Run(bound, s.Scene, assume, nil)
	switch {
	case ctx.Err() != nil:
		return nil
	case bound.Err() != nil:
		return large
	case err != nil:
		if !errors.Is(err, simulate.ErrNothing) { // the plan contains the reason why AWS was not read
			p.Logger.Warn("cannot show what a pull request would do over time", "source", p.Source, "pull", p.was.Number, "error", err)
		}
		return &report.Forecast{Command: large.Command, Failed: err.Error()}
	}
	return &report.Forecast{Timeline: t.Brief()}
}

// looked returns the time of the last read from AWS, in whole seconds: AWS reports no finer times, and
// plans do not depend on fractions.
func looked(stages []simulate.Stage) (at time.Time) {
	for _, st := range stages {
		for _, r := range st.Reports {
			if r.StartedAt.After(at) {
				at = r.StartedAt
			}
		}
	}
	return at.Truncate(time.Second)
}
