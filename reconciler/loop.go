package reconciler

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/reconciler/span"
	"github.com/weir-gitops/weir/reconciler/step"
)

// ScopeKey distinguishes the accounts and regions, together with how they are reached.
type ScopeKey struct {
	// Account may be empty until the credentials give it.
	Account  string
	Region   string
	RoleARN  string
	Endpoint string
}

// Compare orders keys by account, region, role and endpoint.
func (k ScopeKey) Compare(o ScopeKey) int {
	return cmp.Or(cmp.Compare(k.Account, o.Account), cmp.Compare(k.Region, o.Region), cmp.Compare(k.RoleARN, o.RoleARN), cmp.Compare(k.Endpoint, o.Endpoint))
}

// Batch is the targets of one scope.
type Batch struct {
	Key     ScopeKey
	Scope   *Scope
	Targets []Desired
	// Fresh is the earliest time of AWS's answers to lookups: weir asks again for older ones.
	Fresh time.Time
	// Within bounds the time until the next pass, even if nothing is changing. Zero means the
	// loop's own interval.
	Within time.Duration
	// AllTargets says that these are all targets of the account and region, so that weir reports a
	// resource of any other target.
	AllTargets bool
	// BeforeWrite runs before the first write of a pass. It receives whether AWS holds something of the
	// instance. If it returns an error, the pass writes nothing. BeforeWrite may be nil.
	BeforeWrite func(holds bool) error
	// Inputs receives the inputs of the pass. It may be nil.
	Inputs *PassInputs
	// Attempts keeps the failed attempts of the account's and region's owners. It is nil if a process
	// runs alone, and then forgets them as it ends.
	Attempts AttemptStore
	// Marks keep the last good revisions of targets; nil for nobody.
	Marks Marks
	// Partial allows a partial read: Git wants nothing new since the last pass, and AWS is changing
	// something. Of many groups and templates the pass then reads only those that may have changed.
	Partial bool
	// Overtaken is closed once the scope wants something else: the pass then begins with
	// no further pool. nil never is.
	Overtaken <-chan struct{}
}

// PassInputs holds the inputs of a pass. It is read only.
type PassInputs struct {
	State observed.State
	// Requests holds the requests to the Resolver, and Answers its answers.
	Requests []resolve.Request
	Answers  []observed.Answer
	// Nodes holds the nodes of the workload clusters, by target; nil if none was read.
	Nodes map[string]*model.Nodes
}

// Loop makes passes over one scope until its context ends: at once when it is
// nudged, after a short delay while something moves, and else at every interval.
// Each scope has its own, so that one in which AWS does not answer delays only itself.
// Any number of them make a pass at once: passes wait for AWS most of the time, and
// those that wait longest would fill a bound. The memory of all of them together grows
// with the pools, however these are spread over scopes.
type Loop struct {
	// Desired says what Git wants of the scope now, and what holds it. It may wait
	// until the account is open. A scope that cannot be reached gives its targets an
	// Err and no Scope.
	Desired  func(ctx context.Context) (Batch, error)
	Reporter Reporter
	Logger   *slog.Logger
	// Interval is the time between passes with nothing moving, with 10 % of
	// jitter either way; MovingDelay the time to the next pass while something moves.
	// After a pass that did something it is a fifth of that, once: AWS's answer
	// completes most changes, and somebody waits for the news.
	Interval    time.Duration
	MovingDelay time.Duration
	// Watchful is for how long after Run began the passes follow each other as while
	// something moves: a predecessor's last calls may still have their effect.
	Watchful time.Duration
	// Tracer makes a span of each pass; nil makes none.
	Tracer trace.Tracer
	// Rand gives numbers in [0,1) that spread the passes; nil: those of math/rand.
	Rand func() float64

	once sync.Once
	wake chan struct{}

	mu sync.Mutex // guards what follows, and the pace
	// untilSpare is the scope's UntilSpare after the last pass.
	untilSpare time.Duration
	// within is the last batch's.
	within time.Duration
	// began is the start of the running pass, zero between passes. interrupt ends it.
	began     time.Time
	interrupt context.CancelFunc
	// overtaken is that of the next batch, or of the one under way.
	overtaken chan struct{}
}

// Defaults of Loop.
const (
	DefaultInterval = time.Minute
	// At 5 s fifty pools that roll would cost more than the 80 calls a minute of the budget.
	DefaultMovingDelay = 5500 * time.Millisecond
)

// LastCall is the time that a call that may change AWS still has for its answer once the process
// ends. After that the answer is lost: the next process reads the result.
const LastCall = 5 * time.Second

func (l *Loop) init() { l.once.Do(func() { l.wake = make(chan struct{}, 1) }) }

// Nudge starts the next pass now. It never blocks; several nudges before the pass are
// one.
func (l *Loop) Nudge() {
	l.init()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Interrupt ends the pass under way as soon as the calls in flight are answered,
// without a new step; then the next one begins. It does not wait.
func (l *Loop) Interrupt() {
	l.mu.Lock()
	interrupt := l.interrupt
	l.mu.Unlock()
	if interrupt != nil {
		interrupt()
		l.Nudge()
	}
}

// Overtake makes the next pass follow soon, because something else is wanted: the one under
// way finishes the pools that it has begun with, and leaves the others. It does not wait.
func (l *Loop) Overtake() {
	l.mu.Lock()
	if l.overtaken != nil && !closed(l.overtaken) {
		close(l.overtaken)
	}
	l.mu.Unlock()
	l.Nudge()
}

// Taken says that Desired takes what is wanted now: what overtook the pass before is in it.
func (l *Loop) Taken() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.overtaken = make(chan struct{})
}

// SetPace sets Interval and MovingDelay, from the next pass on.
func (l *Loop) SetPace(interval, moving time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Interval, l.MovingDelay = interval, moving
}

// listEvery returns the time after which a pass lists everything, even if something is changing:
// gates may need idle pools more often than the interval.
func (l *Loop) listEvery() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	every := orDefault(l.Interval, DefaultInterval)
	if l.within > 0 {
		every = min(every, l.within)
	}
	return every
}

// Began returns the start of the running pass, zero if none runs.
func (l *Loop) Began() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.began
}

// Run makes passes until ctx ends. The pass that is under way then finishes the
// calls in flight, for which it has LastCall, and starts no new step.
func (l *Loop) Run(ctx context.Context) error {
	l.init()
	ctx, done := withLastCall(ctx)
	defer done()
	before, began := resting, time.Now()
	found, listed := resting, began
	for {
		look := mayLook(found, time.Since(listed), l.listEvery(), time.Since(began), l.Watchful)
		found = l.pass(ctx, look)
		if !look {
			listed = time.Now() // the interval is between passes, whatever these take
		}
		now := found
		if now == resting && time.Since(began) < l.Watchful {
			now = moving
		}
		timer := time.NewTimer(l.wait(before, now, time.Since(listed)))
		before = now
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-l.wake:
			timer.Stop()
			found = resting // something new may be wanted
		case <-timer.C:
		}
	}
}

// mayLook reports whether the next pass may be a partial read: the last one found something
// changing, everything was listed less than every ago, and weir has run for longer than a
// predecessor's calls may change idle pools.
func mayLook(found pace, listed, every, running, watchful time.Duration) bool {
	return found != resting && listed < every && running >= watchful
}

// callsKey holds the context of calls that may change AWS.
type callsKey struct{}

// withLastCall gives the calls below ctx that may change AWS a context that ends
// LastCall after ctx does.
func withLastCall(ctx context.Context) (context.Context, context.CancelFunc) {
	calls, cut := context.WithCancel(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() { time.AfterFunc(LastCall, cut) })
	return context.WithValue(ctx, callsKey{}, calls), func() {
		forget()
		cut()
	}
}

// forCall is ctx for a call that may change AWS: it does not end with ctx, because a
// call that AWS may have taken is not to be left without its answer, but LastCall
// after the order to end.
func forCall(ctx context.Context) (context.Context, context.CancelFunc) {
	own, cancel := context.WithCancel(context.WithoutCancel(ctx))
	if calls, ok := ctx.Value(callsKey{}).(context.Context); ok {
		forget := context.AfterFunc(calls, cancel)
		return own, func() {
			forget()
			cancel()
		}
	}
	return own, cancel
}

// pace sums up what a pass found.
type pace int

const (
	resting pace = iota
	moving
	acted // it changed something itself
)

// soonerBy divides MovingDelay after a pass that acted.
const soonerBy = 5

// wait is the time to the next pass. One that acts each time does not hurry: it may be
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

// pass makes one pass over the scope and returns what it found.
func (l *Loop) pass(ctx context.Context, look bool) (found pace) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.note(time.Now(), cancel)
	defer l.note(time.Time{}, nil)
	if l.Tracer != nil {
		var s trace.Span
		ctx, s = l.Tracer.Start(ctx, "pass")
		defer s.End()
	}
	batch, err := l.Desired(ctx)
	l.mu.Lock()
	l.within, batch.Overtaken, batch.Partial = batch.Within, l.overtaken, look
	l.mu.Unlock()
	if err != nil {
		if ctx.Err() == nil {
			l.Logger.Error("pass failed", "error", err)
		}
		return resting
	}
	for _, r := range RunBatch(ctx, batch, Apply) {
		if ctx.Err() != nil && cutShort(r) {
			continue
		}
		l.Reporter.Report(context.WithoutCancel(ctx), r)
		found = max(found, paceOf(r))
	}
	if batch.Scope != nil {
		l.mu.Lock()
		l.untilSpare = batch.Scope.Cloud.UntilSpare()
		l.mu.Unlock()
	}
	return found
}

func (l *Loop) note(began time.Time, interrupt context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began, l.interrupt = began, interrupt
}

// cutShort reports whether a pass found and did nothing because its context ended:
// that is no failure of anything.
func cutShort(r *plan.Report) bool {
	var e *observed.Error
	cancelled := errors.Is(r.Err, context.Canceled) || errors.As(r.Err, &e) && e.Kind == observed.Cancelled
	return cancelled && len(r.Outcomes) == 0
}

// RunBatch makes one pass over one scope. A failure of the scope as a whole is
// in each report.
func RunBatch(ctx context.Context, b Batch, mode Mode) []*plan.Report {
	if b.Scope == nil {
		reports := make([]*plan.Report, len(b.Targets))
		for i, t := range b.Targets {
			reports[i] = newReport(t, time.Now())
			if reports[i].Err == nil && !reports[i].Diagnostics.HasErrors() {
				reports[i].Err = errors.New("open account: no access to AWS")
			}
		}
		return reports
	}
	ctx, sp := span.Start(ctx, "scope", "account", b.Key.Account, "region", b.Key.Region)
	reports, err := b.Scope.pass(ctx, b, mode)
	span.End(sp, err)
	if err != nil {
		for _, r := range reports {
			if r.Err == nil {
				r.Err = err
			}
		}
	}
	return reports
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
