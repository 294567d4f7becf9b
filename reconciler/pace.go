package reconciler

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
)

// pace is the activity that a pass found.
type pace int

const (
	resting pace = iota
	moving
	acted // it changed something itself
)

// soonerBy divides MovingDelay after a pass that acted.
const soonerBy = 5

// wait returns the time to the next pass. Passes that act every time do not follow faster, because
// they may be in conflict with another writer. No pass follows so fast that it uses up the calls
// that a commit needs. The interval counts from the last full read, not from a partial one.
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

// Rhythm computes the time between passes for callers with a clock of their own, instead of a Loop.
// The zero value uses the defaults, without jitter.
type Rhythm struct{ before pace }

// Next returns the time from a pass with these reports to the next pass. within limits it (Batch.Within), and
// untilSpare is the time until AWS's rate limits leave spare reads (Cloud.UntilSpare); zero means no limit.
// rests reports whether the pass changed nothing and nothing is changing.
func (r *Rhythm) Next(reports []*plan.Report, within, untilSpare time.Duration) (wait time.Duration, rests bool) {
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

// jitter varies d by up to 10 % either way, so that many daemons do not start their passes at the
// same time.
func (l *Loop) jitter(d time.Duration) time.Duration {
	random := l.Rand
	if random == nil {
		random = rand.Float64
	}
	return d + time.Duration((random()*0.2-0.1)*float64(d))
}

// Moving reports whether a target needs another pass soon: something was done, waits for something,
// or is changing.
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
			continue // another pass soon would change nothing
		}
		if !p.Converged && !p.Rests() && p.FailureReason == "" && (p.Rollout != nil || p.InfrastructureReady || p.Phase == plan.PhaseProvisioning) {
			return true
		}
	}
	return false
}
