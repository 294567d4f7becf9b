package reconciler

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
)

// Loop makes passes over one scope until its context ends: at once after a nudge, after a short
// delay while something is changing, and otherwise at every interval. Each scope has its own Loop,
// so a scope in which AWS does not answer delays only itself. The number of parallel passes is not
// limited: passes mostly wait for AWS, and the slowest ones would use up a limit. Their total
// memory depends on the number of pools, not of scopes.
type Loop struct {
	// Desired returns the desired state of the scope and the gates. It may wait until the account
	// is open. If the scope cannot be reached, it gives the targets an Err and returns no Scope.
	Desired  func(ctx context.Context) (Batch, error)
	Reporter Reporter
	Logger   *slog.Logger
	// Interval is the time between passes while nothing is changing, with a jitter of ±10 %.
	// MovingDelay is the time to the next pass while something is changing. After a pass that wrote
	// to AWS it is a fifth of that, once: AWS's answer completes most changes, and people wait for
	// the result.
	Interval    time.Duration
	MovingDelay time.Duration
	// Watchful is the time after the start of Run in which passes follow each other as if something
	// were changing: the last calls of a previous process may still take effect.
	Watchful time.Duration
	// Tracer creates a span for each pass. Nil creates none.
	Tracer trace.Tracer
	// Rand returns numbers in [0,1) for the jitter. Nil means math/rand.
	Rand func() float64

	once sync.Once
	wake chan struct{}

	mu sync.Mutex // guards the fields below, Interval and MovingDelay
	// untilSpare is the scope's UntilSpare after the last pass.
	untilSpare time.Duration
	// within is Within of the last batch.
	within time.Duration
	// began is the start of the running pass, zero between passes. interrupt ends the pass.
	began     time.Time
	interrupt context.CancelFunc
	// overtaken is the channel Overtaken of the next or the running batch.
	overtaken chan struct{}
}

// Defaults of Loop.
const (
	DefaultInterval = time.Minute
	// With 5 s, fifty pools in a rollout would exceed the budget of 80 calls per minute.
	DefaultMovingDelay = 5500 * time.Millisecond
)

// LastCall is the time for which weir still waits for answers of calls that change AWS after the
// process was asked to end. Later answers are lost, and the next process reads the result.
const LastCall = 5 * time.Second

func (l *Loop) init() { l.once.Do(func() { l.wake = make(chan struct{}, 1) }) }

// Nudge starts the next pass now. It never blocks. Several nudges before a pass count as one.
func (l *Loop) Nudge() {
	l.init()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Interrupt makes the running pass start no further step, and end when the calls in flight are
// answered. The next pass then starts at once. Interrupt does not wait for this. Between passes it
// does nothing.
func (l *Loop) Interrupt() {
	l.mu.Lock()
	interrupt := l.interrupt
	l.mu.Unlock()
	if interrupt != nil {
		interrupt()
		l.Nudge()
	}
}

// Overtake makes the next pass follow soon, because the desired state has changed. The running pass
// finishes the pools that it has started, and leaves the remaining ones. It does not wait.
func (l *Loop) Overtake() {
	l.mu.Lock()
	if l.overtaken != nil && !closed(l.overtaken) {
		close(l.overtaken)
	}
	l.mu.Unlock()
	l.Nudge()
}

// DesiredTaken ends an earlier Overtake. The caller calls it once Desired returns the current desired state.
func (l *Loop) DesiredTaken() {
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

// fullReadEvery returns the maximum time between passes that read everything, while something is changing:
// the interval, or less if a gate depends on idle pools (Batch.Within).
func (l *Loop) fullReadEvery() time.Duration {
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

// Run makes passes until ctx ends. The running pass then finishes the calls in flight, within
// LastCall, and starts no new step.
func (l *Loop) Run(ctx context.Context) error {
	l.init()
	ctx, done := withLastCall(ctx)
	defer done()
	before, began := resting, time.Now()
	found, listed := resting, began
	for {
		look := mayLook(found, time.Since(listed), l.fullReadEvery(), time.Since(began), l.Watchful)
		found = l.pass(ctx, look)
		if !look {
			listed = time.Now() // the interval starts when a pass ends
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
			found = resting // the desired state may have changed
		case <-timer.C:
		}
	}
}

// mayLook reports whether the next pass may be a partial read. The last pass must have found
// something changing, and the last full read must be less than every old. weir must also have run
// for at least watchful, in which calls of a previous process may change idle pools.
func mayLook(found pace, listed, every, running, watchful time.Duration) bool {
	return found != resting && listed < every && running >= watchful
}

// callsKey is the key for the context of calls that may change AWS.
type callsKey struct{}

// withLastCall gives the calls below ctx that may change AWS a context that ends LastCall after
// ctx.
func withLastCall(ctx context.Context) (context.Context, context.CancelFunc) {
	calls, cut := context.WithCancel(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() { time.AfterFunc(LastCall, cut) })
	return context.WithValue(ctx, callsKey{}, calls), func() {
		forget()
		cut()
	}
}

// forCall returns a context for a call that may change AWS. It does not end with ctx but LastCall
// later, because weir must read the answer to a call that AWS may have accepted.
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

// pass makes one pass over the scope and returns what it found.
func (l *Loop) pass(ctx context.Context, look bool) (found pace) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l.setRunning(time.Now(), cancel)
	defer l.setRunning(time.Time{}, nil)
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

func (l *Loop) setRunning(began time.Time, interrupt context.CancelFunc) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.began, l.interrupt = began, interrupt
}

// cutShort reports whether a pass found and did nothing because its context ended. That is no
// failure.
func cutShort(r *plan.Report) bool {
	var e *observed.Error
	cancelled := errors.Is(r.Err, context.Canceled) || errors.As(r.Err, &e) && e.Kind == observed.Cancelled
	return cancelled && len(r.Outcomes) == 0
}
