package source

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/snapshot"
)

const (
	// jitter spreads polls over ±10 % of the interval.
	jitter = 0.1
	// healDelay is the delay before a damaged mirror is recreated.
	healDelay = time.Second
	// refusedRate bounds the average transfer of polls whose pack is refused, in bytes per second. The server
	// sends such a pack again at every poll.
	refusedRate = 1 << 20
)

// Nudge makes Watch fetch immediately, for example after a webhook. It does not block. Several nudges before
// the fetch count as one.
func (g *Git) Nudge() {
	select {
	case g.nudges <- struct{}{}:
	default:
	}
}

// Watch fetches the source immediately, at each interval with jitter, and at each nudge. A local repository
// is also fetched soon after each change of a ref. Watch calls fn whenever the outcome differs from the
// previous one: another revision or ref, another error, or the end of an error. It calls fn in its own
// goroutine, and never concurrently. It skips revisions that were replaced while fn ran.
//
// Watch returns nil after ctx has ended. Only one Watch may run at a time.
func (g *Git) Watch(ctx context.Context, fn func(snapshot.Snapshot, error)) error {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	defer wg.Wait()
	defer cancel()
	p := poller{interval: g.cfg.Interval, rand: g.opts.Rand, wake: g.nudges, fetch: g.Latest, report: fn}
	if set := g.backend.watch(); set != nil {
		n, err := newNotifier(set, g.Nudge, g.log)
		if err != nil {
			g.log.Warn("changes are seen by polling only", slog.Any("error", err))
		} else {
			p.before = n.sync
			wg.Go(func() { n.run(ctx) })
		}
	}
	p.run(ctx)
	return nil
}

// poller is the loop of Watch.
type poller struct {
	interval time.Duration
	rand     func() float64
	wake     <-chan struct{}
	fetch    func(context.Context) (snapshot.Snapshot, error)
	report   func(snapshot.Snapshot, error)
	// before is called before each fetch.
	before func()
}

// run fetches until ctx ends, at the interval with jitter and at every wake. It reports an outcome only if
// it differs from the last one. After damage, the next fetch comes sooner, so that the mirror is repaired
// soon.
func (p poller) run(ctx context.Context) {
	var reported outcome
	for {
		if p.before != nil {
			p.before()
		}
		s, err := p.fetch(ctx)
		if ctx.Err() != nil {
			return
		}
		now := outcomeOf(s, err)
		delay := time.Duration(float64(p.interval) * (1 - jitter + 2*jitter*p.rand()))
		if now.reason == fault.Corrupt && reported.reason != fault.Corrupt {
			delay = min(delay, healDelay)
		}
		delay = max(delay, restAfter(err))
		if now != reported {
			reported = now
			p.report(s, err)
		}
		timer := time.NewTimer(delay)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-p.wake:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// outcome has the properties that distinguish the results of fetches.
type outcome struct {
	seen          bool
	revision, ref string
	reason        fault.Reason
	text          string
}

// restAfter returns the minimum pause after an error, regardless of the interval.
func restAfter(err error) time.Duration {
	var ue *fault.UnavailableError
	if !errors.As(err, &ue) {
		return 0
	}
	return time.Duration(ue.Wasted/refusedRate) * time.Second
}

func outcomeOf(s snapshot.Snapshot, err error) outcome {
	if err == nil {
		return outcome{seen: true, revision: s.Revision, ref: s.Ref}
	}
	o := outcome{seen: true, text: err.Error()}
	var ue *fault.UnavailableError
	if errors.As(err, &ue) {
		o.reason = ue.Reason
	}
	return o
}
