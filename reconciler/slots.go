package reconciler

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/span"
	"github.com/weir-gitops/weir/reconciler/step"
)

// An apply runs the steps of one pool in order, because each needs the result of the previous one.
// Pools run concurrently, after the launch templates that several of them share. The first failed
// step ends the slot of its pool and of no other. Once ctx is cancelled, the call in flight is
// finished and no further step starts: weir must read the answer to a call that AWS may have
// accepted. The next pass plans again what did not run, from the state of AWS at that time.

// slot is the part of one pool or launch configuration in an apply.
type slot struct {
	report int
	key    string // slotKey
	steps  []int
	// shared reports whether the steps belong to a launch configuration, on which pools rely.
	shared bool
}

func slotKey(target, owner string) string { return target + "\x00" + owner }

// applySteps executes the plans, and records the outcomes in the reports. It creates a span if
// there is something to do.
func (ps *passState) applySteps(ctx context.Context) error {
	if slices.ContainsFunc(ps.reports, func(r *plan.Report) bool { return r.Plan != nil && r.Plan.Runnable() > 0 }) {
		spanned, sp := span.Start(ctx, "apply")
		defer sp.End()
		ctx = spanned
	}
	ps.memory.skipped = ps.applier.apply(ctx, ps.reports, ps.batch.Overtaken)
	return nil
}

// application is the state of one call of apply.
type application struct {
	*applier
	reports   []*plan.Report
	overtaken <-chan struct{}
	limit     int
	began     time.Time
	own       chan struct{} // the lanes of the scope

	mu      sync.Mutex
	started int
	skipped map[string]bool
	made    []step.Made // by steps of launch configurations, for each report
}

// apply executes the plans of all reports: launch configurations first, then pools. It returns the
// slots that it did not start.
func (a *applier) apply(ctx context.Context, reports []*plan.Report, overtaken <-chan struct{}) skippedSlots {
	run := &application{
		applier: a, reports: reports, overtaken: overtaken, limit: cmp.Or(a.Concurrency, defaultConcurrency), began: a.now(),
		own: make(chan struct{}, ownLanes), skipped: map[string]bool{}, made: make([]step.Made, len(reports)),
	}
	for i := range run.made {
		run.made[i] = step.Made{}
	}
	slots := slotsOf(reports)
	for _, s := range slots {
		if r := reports[s.report]; r.Outcomes == nil {
			r.Outcomes = make([]step.Outcome, len(r.Plan.Steps))
		}
	}
	a.memory.skipped.sort(slots)
	for _, shared := range []bool{true, false} {
		var g errgroup.Group
		g.SetLimit(run.limit)
		for _, s := range slots {
			if s.shared == shared {
				g.Go(func() error { run.run(ctx, s); return nil })
			}
		}
		_ = g.Wait() // every outcome is in its report
	}
	return skippedSlots{run.skipped, closed(overtaken)}
}

// run runs a slot, or skips it.
func (a *application) run(ctx context.Context, s slot) {
	defer a.Lanes.enter(a.own)()
	r := a.reports[s.report]
	if a.postpones(s) {
		skip(r, s.steps)
		return
	}
	made := step.Made{}
	if !s.shared {
		maps.Copy(made, a.made[s.report])
	}
	a.slot(ctx, r, s.steps, made)
	if s.shared {
		a.mu.Lock()
		defer a.mu.Unlock()
		maps.Copy(a.made[s.report], made)
	}
}

// postpones reports whether a slot is left to the next pass: the time is up, or the pass is
// overtaken and limit slots have started. It counts the slot as started.
func (a *application) postpones(s slot) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	over := a.started >= a.limit && closed(a.overtaken)
	a.started++
	if over || a.StepsFor > 0 && a.now().Sub(a.began) > a.StepsFor {
		a.skipped[s.key] = true
		return true
	}
	return false
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// slotsOf returns the slots of all reports, in turns of one slot for each report. If calls have to
// wait, a target with many slots does not delay one with few.
func slotsOf(reports []*plan.Report) (out []slot) {
	all := make([][][]int, len(reports))
	for i, r := range reports {
		if r.Plan != nil {
			all[i] = byOwner(r.Plan.Steps)
		}
	}
	for n, more := 0, true; more; n++ {
		more = false
		for i, list := range all {
			if n < len(list) {
				owner := reports[i].Plan.Steps[list[n][0]].Owner()
				out, more = append(out, slot{i, slotKey(reports[i].Target, owner), list[n], step.OfLaunchConfig(owner)}), true
			}
		}
	}
	return out
}

// byOwner groups the positions of steps by their owner, in order.
func byOwner(steps []step.Step) [][]int {
	index := map[string]int{}
	var out [][]int
	for i, st := range steps {
		n, ok := index[st.Owner()]
		if !ok {
			n = len(out)
			index[st.Owner()] = n
			out = append(out, nil)
		}
		out[n] = append(out[n], i)
	}
	return out
}

// skip leaves steps to a later pass.
func skip(r *plan.Report, positions []int) {
	for _, i := range positions {
		st := r.Plan.Steps[i]
		r.Outcomes[i] = step.Outcome{Step: st, Status: step.Skipped}
		if st.Held != "" {
			r.Outcomes[i].Status = step.Held
		}
	}
}

// skippedSlots remembers the slots that the last apply did not start.
type skippedSlots struct {
	keys map[string]bool // by slotKey
	// overtaken is set if the cause was a newer desired state.
	overtaken bool
}

// sort puts skipped slots first: pools whose calls hang in every pass must not always delay the
// pools behind them. If the cause was a newer desired state, it puts them last, because a newer
// commit does not wait for the rest of an earlier one.
func (s skippedSlots) sort(slots []slot) {
	slices.SortStableFunc(slots, func(a, b slot) int {
		switch first := s.keys[a.key] != s.overtaken; {
		case s.keys[a.key] == s.keys[b.key]:
			return 0
		case first:
			return -1
		}
		return 1
	})
}

// Lanes limits the number of pools that all scopes apply in parallel. A waiting call keeps its
// request and a connection in memory. A hundred accounts that each wait for eight answers would
// need that memory without being faster: two processors cannot use so many.
type Lanes chan struct{}

const (
	// ownLanes is the number of pools that a scope always applies at once, whatever other scopes
	// do, so that accounts with hanging calls delay no other account.
	ownLanes = 2
	// sharedLanes is the number of further pools that all scopes together apply at once.
	sharedLanes = 64
)

// NewLanes returns the lanes for the scopes of a process.
func NewLanes() Lanes { return make(Lanes, sharedLanes) }

// enter waits for a lane: one of the scope's own, or one that all scopes share. A nil Lanes has no
// limit.
func (l Lanes) enter(own chan struct{}) (leave func()) {
	if l == nil {
		return func() {}
	}
	taken := own
	select {
	case own <- struct{}{}:
	default:
		select {
		case own <- struct{}{}:
		case l <- struct{}{}:
			taken = l
		}
	}
	return func() { <-taken }
}
