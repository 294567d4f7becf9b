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
// way finishes the pools that it has started, and leaves the remaining ones. It does not wait.
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
