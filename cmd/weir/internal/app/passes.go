package app

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/span"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/target"
)

// passes are the loops of the scopes, and what passes leave for the next one and for
// commands. A loop lives as long as a target wants something of its scope, also over
// reloads of the configuration.
type passes struct {
	app *App
	// handing is locked while a pass takes what is wanted, while it hands a report on, and while a
	// reload replaces the receivers of reports; locked before mu.
	handing state.Turn
	ctx     context.Context // of all loops
	stop    context.CancelFunc

	mu     sync.Mutex // guards what follows
	memory memory
	of     map[reconciler.ScopeKey]*loop
	// run are the loops that have not ended, wanted or not.
	run map[*loop]bool

	// The fields below are for several daemons. weights are the pools of each account and region
	// that should be owned, replay the sources for which this daemon has begun to speak.
	weights map[string]int
	replay  map[string]bool
	// finding lists the scopes whose account seeking is asking AWS for, unfound those whose account
	// AWS did not return at the last try. kept lists the places whose leases are kept during the
	// first such request of a scope: the scope may be in one of them.
	finding, unfound map[reconciler.ScopeKey]bool
	kept             map[string]reconciler.ScopeKey
	seeking          sync.WaitGroup
}

// loop is the loop of one scope.
type loop struct {
	*reconciler.Loop
	key reconciler.ScopeKey
	// leave ends it, and wait waits for the end.
	leave context.CancelFunc
	wait  func(context.Context) error
	// scope is nil before it was opened; in names the targets of the pass under way.
	// Both are guarded by passes.mu.
	scope *reconciler.Scope
	in    []string
	// records holds the requests of people at the start of the pass under way.
	records gates.Records
	// permits holds the permits, by source, of the governed pools that may roll in that pass.
	permits map[string][]rollout.Permit
	// lease permits its passes; nil if this daemon is alone.
	lease *coord.Lease
	// marks write the last good revisions; nil before the first pass. Only passes use it.
	marks *marks
	// silent says that AWS did not answer at the last check.
	silent bool
}

// openPasses makes room for loops. They live until the step of Stop that it adds.
func (a *App) openPasses(ctx context.Context) {
	a.passes.ctx, a.passes.stop = context.WithCancel(span.Watch(ctx, a.metrics.Stage))
	a.onStop("passes", passesShare, a.passes.closeLoops)
}

// closeLoops ends all loops at once, and waits for them. The conductor has ended.
func (p *passes) closeLoops(ctx context.Context) error {
	p.stop()
	p.mu.Lock()
	all := maps.Clone(p.run)
	p.mu.Unlock()
	var errs []error
	for l := range all {
		errs = append(errs, l.wait(ctx))
	}
	if wait := p.app.rollouts.wait; wait != nil {
		errs = append(errs, wait(ctx))
	}
	p.seeking.Wait()
	return errors.Join(errs...)
}

// pass makes the loops pass over a composition: over all scopes, or over those whose desired
// resources have changed.
func (p *passes) pass(c *fleet.Composition, all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known := p.memory.batches, p.memory.conditions
	p.memory.take(c)
	p.weigh()
	p.app.rollouts.wake()
	if p.app.crew != nil && !maps.EqualFunc(known, c.Conditions, func(gates.Conditions, gates.Conditions) bool { return true }) {
		p.app.crew.Again() // some targets have no report yet
	}
	for key, b := range p.memory.batches {
		l := p.of[key]
		switch old, known := before[key]; {
		case l == nil:
			p.startLoop(key)
		case known && !same(old, b):
			l.Overtake()
		case all || !known:
			l.Nudge()
		}
	}
	for key, l := range p.of {
		if _, wanted := p.memory.batches[key]; !wanted && l.Began().IsZero() {
			delete(p.of, key)
			l.leave()
		}
	}
	p.app.accounts.Keep(p.needs)
}

// needs reports whether a scope is wanted, or passed over yet. The caller holds mu.
func (p *passes) needs(key reconciler.ScopeKey) bool {
	_, wanted := p.memory.batches[key]
	return wanted || p.runs(key)
}

// runs reports whether a scope has a loop that has not ended. The caller holds mu.
func (p *passes) runs(key reconciler.ScopeKey) bool {
	if p.of[key] != nil {
		return true
	}
	for l := range p.run {
		if l.key == key {
			return true
		}
	}
	return false
}

// quickDelay is the time to the next read while something is changing at an endpoint that is not
// AWS itself: emulators are quick and have no rate limits.
const quickDelay = 250 * time.Millisecond

// startLoop starts the loop of a scope. The caller holds mu.
func (p *passes) startLoop(key reconciler.ScopeKey) {
	lease, done, owned := p.lease(key)
	if !owned {
		return
	}
	l := &loop{key: key, lease: lease}
	l.Loop = &reconciler.Loop{
		Desired: func(ctx context.Context) (reconciler.Batch, error) { return p.batch(ctx, l) },
		Logger:  p.app.log, Tracer: p.app.tracing.Tracer(), Reporter: p.app.reporter, Rand: p.app.o.Rand,
	}
	p.pace(l)
	ctx, leave := context.WithCancel(p.ctx)
	l.leave = leave
	if lease != nil {
		p.under(l, lease)
	}
	p.of[key], p.run[l] = l, true
	l.wait = p.app.spawn(ctx, "passes", func(ctx context.Context) error {
		defer done()
		defer p.ended(l)
		return l.Run(ctx)
	})
}

// ended forgets a loop, and its scope where no target wants anything of that any more.
func (p *passes) ended(l *loop) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.run, l)
	if l.lease != nil && p.of[l.key] == l {
		delete(p.of, l.key)
	}
	if !p.runs(l.key) {
		p.app.accounts.Forget(l.key)
	}
}

// pace makes the loop run as often as the configuration says.
func (p *passes) pace(l *loop) {
	moving := time.Duration(0)
	c := p.app.gen.Load().config
	if quick(c) {
		moving = quickDelay
	}
	l.SetPace(c.Interval, moving)
}

// repace gives all loops the pace of the configuration.
func (p *passes) repace() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.of {
		p.pace(l)
	}
}

func quick(c *config.Config) bool {
	return c.AWS.Endpoint != "" || !slices.ContainsFunc(c.Targets, func(t target.Target) bool {
		return slices.ContainsFunc(t.Rows(), func(row *target.Target) bool { return row.EndpointURL == "" })
	})
}

// batch returns the current batch of a scope, with what restricts its steps. The loop of the scope
// calls it at the start of a pass, and waits here until the account is open.
func (p *passes) batch(ctx context.Context, l *loop) (reconciler.Batch, error) {
	p.mu.Lock()
	l.in = nil
	p.mu.Unlock()
	access := p.app.accounts.Open(ctx, l.key)
	if err := ctx.Err(); err != nil {
		return reconciler.Batch{}, err
	}
	p.retryAsked(l, access)
	p.handing.Lock()
	defer p.handing.Unlock()
	return p.gated(l, access), nil
}

// interrupt ends the passes under way without a new step. No pass begins before there is a
// new composition.
func (p *passes) interrupt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.memory.batches = nil
	for _, l := range p.of {
		l.Interrupt()
	}
}

// same reports whether two batches want the same.
func same(a, b reconciler.Batch) bool {
	return a.Strays == b.Strays && slices.EqualFunc(a.Targets, b.Targets, func(x, y reconciler.Desired) bool {
		return x.Set == y.Set && x.Whole == y.Whole && errText(x.Err) == errText(y.Err) && x.Commit == y.Commit && x.Seq == y.Seq && x.Touched == y.Touched &&
			x.Workload == y.Workload && x.Tokens == y.Tokens && x.Drains == y.Drains &&
			reflect.DeepEqual(x.Policy, y.Policy) && reflect.DeepEqual(x.Network, y.Network) && reflect.DeepEqual(x.Diagnostics, y.Diagnostics)
	})
}

func errText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
