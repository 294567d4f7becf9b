package reconciler

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
)

// pace sums up what a pass found.
type pace int

const (
	resting pace = iota
	moving
	acted // it changed something itself
)

// soonerBy divides MovingDelay after a pass that acted.
const soonerBy = 5

// wait is the time to the next pass. A pass that acts every time does not hurry: it may be
// in conflict with another writer. None hurries that would use up what a commit needs.
// The interval counts from when everything was listed last, not from a look.
func (l *Loop) wait(before, now pace, listed time.Duration) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return waitFor(l.jitter(orDefault(l.Interval, DefaultInterval)), orDefault(l.MovingDelay, DefaultMovingDelay), l.within, l.untilSpare, before, now, listed)
}

func waitFor(wait, delay, within, untilSpare time.Duration, before, now pace, listed time.Duration) time.Duration {
	if within > 0 {
		wait = min(wait, max(within, untilSpare))
	}
	if now == acted && before != acted {
		delay /= soonerBy
	}
	soon := min(wait, max(delay, untilSpare))
	if now == resting {
		return max(wait-listed, soon)
	}
	return soon
}

func paceOf(r *plan.Report) pace {
	if slices.ContainsFunc(r.Outcomes, func(o step.Outcome) bool { return o.Status == step.Done }) {
		return acted
	}
	if Moving(r) {
		return moving
	}
	return resting
}

// Rhythm is the time between passes for who makes them by another clock than a Loop's. The
// zero value goes at the defaults, without jitter.
type Rhythm struct{ before pace }

// Wait is the time to the pass after one with these reports; rests says that it changed
// nothing and that nothing is on its way.
func (r *Rhythm) Wait(reports []*plan.Report, within, untilSpare time.Duration) (wait time.Duration, rests bool) {
	now := resting
	for _, one := range reports {
		now = max(now, paceOf(one))
	}
	wait = waitFor(DefaultInterval, DefaultMovingDelay, within, untilSpare, r.before, now, 0)
	r.before = now
	return wait, now == resting
}

func orDefault(d, fallback time.Duration) time.Duration {
	if d <= 0 {
		return fallback
	}
	return d
}

// jitter moves d by up to 10 % either way, so that many daemons do not beat in time.
func (l *Loop) jitter(d time.Duration) time.Duration {
	random := l.Rand
	if random == nil {
		random = rand.Float64
	}
	return d + time.Duration((random()*0.2-0.1)*float64(d))
}

// Moving reports whether a target deserves another look soon: something was done, waits
// for something, or is on its way.
func Moving(r *plan.Report) bool {
	resting := heldPools(r.Plan)
	for _, o := range r.Outcomes {
		if o.Parked {
			resting[o.Step.Pool] = true
			for _, pool := range o.Step.Pools {
				resting[pool] = true
			}
		}
	}
	for _, o := range r.Outcomes {
		behind := o.Parked || o.Step.Pool != "" && resting[o.Step.Pool]
		if o.Status == step.Done || o.Status == step.Skipped && !behind {
			return true
		}
	}
	for _, p := range r.Pools {
		if len(p.Draining) > 0 {
			return true
		}
		if resting[p.Namespace+"/"+p.Name] && p.Rollout == nil {
			continue // looking again soon changes nothing
		}
		if !p.Converged && !p.Rests() && p.FailureReason == "" && (p.Rollout != nil || p.InfrastructureReady || p.Phase == plan.PhaseProvisioning) {
			return true
		}
	}
	return false
}
