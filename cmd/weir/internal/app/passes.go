package app

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/membership"
	"github.com/weir-gitops/weir/cmd/weir/internal/telemetry"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/ancestry"
	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/rollout/ledger"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/status/current"
)

// passes contains the loops of the scopes, and the data that passes keep for the next pass and for
// commands. A loop runs as long as a target wants something in its scope, also across reloads of the
// configuration.
type passes struct {
	passesOptions
	// reporter receives the reports of passes. With several daemons, passes run under a lease. kept returns
	// the reason why nothing is deleted while another member might keep it.
	reporter func(*coord.Lease) reconciler.Reporter
	kept     func() string
	// handing is locked while a pass reads its desired resources, while it passes on a report, and while a
	// reload replaces the receivers of reports. Lock it before mu.
	handing state.Turn
	ctx     context.Context // of all loops
	stop    context.CancelFunc

	mu     sync.Mutex // guards the fields below
	memory memory
	loops  loops
	// interval and moving are the intervals of the loops, without and with changes in progress.
	interval, moving time.Duration
	// work is the work of each account and region, with several daemons. seeking counts requests for
	// accounts.
	work    shares
	seeking sync.WaitGroup
}

// passesOptions lists the parts of the daemon that passes use.
type passesOptions struct {
	log       *slog.Logger
	tracing   *telemetry.Tracing
	rand      func() float64
	redact    func(string) string
	spawn     spawner
	clock     *clock.Clock
	accounts  *accounts.Set
	member    *membership.Member // nil for a single daemon
	store     state.Store
	ledger    *ledger.Ledger
	lineages  *ancestry.Tracker
	approvals approvals
	targets   *current.Targets
	// wake wakes the conductor, and conduct the conductor of rollouts.
	wake    func()
	conduct signal
	// loss reports whether all writes are held.
	loss func(*state.Loss)
}

func newPasses(o passesOptions) *passes {
	return &passes{passesOptions: o, kept: func() string { return "" }, loops: loops{of: map[reconciler.ScopeKey]*loop{}, run: map[*loop]bool{}}, work: shares{finding: map[reconciler.ScopeKey]bool{}}}
}

// open allows loops to start. They run until close.
func (p *passes) open(ctx context.Context) { p.ctx, p.stop = context.WithCancel(ctx) }

// close ends all loops at once, and waits for them. The conductor must have ended.
func (p *passes) close(ctx context.Context) error {
	p.stop()
	p.mu.Lock()
	all := maps.Clone(p.loops.run)
	p.mu.Unlock()
	var errs []error
	for l := range all {
		errs = append(errs, l.wait(ctx))
	}
	p.seeking.Wait()
	return errors.Join(errs...)
}

// update stores a new composition. It starts loops for new scopes, and wakes the loops of scopes whose desired
// resources have changed, or of all scopes. It removes loops of scopes that are gone, unless a pass is running.
func (p *passes) update(c *fleet.Composition, all bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known := p.memory.batches, p.memory.conditions
	p.memory.store(c)
	p.weigh()
	p.conduct.send()
	if p.member != nil && !maps.EqualFunc(known, c.Conditions, func(gates.Conditions, gates.Conditions) bool { return true }) {
		p.member.Reports.ReadAll() // some targets have no report yet
	}
	for key, b := range p.memory.batches {
		l := p.loops.of[key]
		switch old, known := before[key]; {
		case l == nil:
			p.startLoop(key)
		case known && !same(old, b):
			l.Overtake()
		case all || !known:
			l.Nudge()
		}
	}
	for key, l := range p.loops.of {
		if _, wanted := p.memory.batches[key]; !wanted && l.Began().IsZero() {
			delete(p.loops.of, key)
			l.leave()
		}
	}
	p.accounts.Keep(p.needs)
}

// needs reports whether a scope is wanted, or still has a loop. The caller holds mu.
func (p *passes) needs(key reconciler.ScopeKey) bool {
	_, wanted := p.memory.batches[key]
	return wanted || p.loops.runs(key)
}

// quickDelay is the time to the next read while something is changing at a custom endpoint: emulators are
// fast and have no rate limits.
const quickDelay = 250 * time.Millisecond

// startLoop starts the loop of a scope. The caller holds mu.
func (p *passes) startLoop(key reconciler.ScopeKey) {
	lease, done, owned := p.use(key)
	if !owned {
		return
	}
	l := &loop{key: key, lease: lease}
	l.Loop = &reconciler.Loop{
		Desired: func(ctx context.Context) (reconciler.Batch, error) { return p.batch(ctx, l) },
		Logger:  p.log, Tracer: p.tracing.Tracer(), Reporter: p.reporter(lease), Rand: p.rand,
	}
	l.SetPace(p.interval, p.moving)
	ctx, leave := context.WithCancel(p.ctx)
	l.leave = leave
	if lease != nil {
		// The loop reads often at first, because calls of the previous owner may still take effect.
		l.Watchful = coord.TTL
		context.AfterFunc(lease.Context(), leave)
	}
	p.loops.of[key], p.loops.run[l] = l, true
	l.wait = p.spawn(ctx, "passes", func(ctx context.Context) error {
		defer done()
		defer p.ended(l)
		return l.Run(ctx)
	})
}

// ended removes a loop, and its scope if no target wants it any more.
func (p *passes) ended(l *loop) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.loops.run, l)
	if l.lease != nil && p.loops.of[l.key] == l {
		delete(p.loops.of, l.key)
	}
	if !p.loops.runs(l.key) {
		p.accounts.Forget(l.key)
	}
}

// setPace applies the intervals of a configuration to all loops.
func (p *passes) setPace(c *config.Config) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.interval, p.moving = c.Interval, 0
	if quick(c) {
		p.moving = quickDelay
	}
	for _, l := range p.loops.of {
		l.SetPace(p.interval, p.moving)
	}
}

func quick(c *config.Config) bool {
	return c.AWS.Endpoint != "" || !slices.ContainsFunc(c.Targets, func(t targetspec.Target) bool {
		return slices.ContainsFunc(t.Rows(), func(row *targetspec.Target) bool { return row.EndpointURL == "" })
	})
}

// batch returns the current batch of a scope, with the restrictions of its steps. The loop of the scope
// calls it at the start of a pass, and waits here until the account is open.
func (p *passes) batch(ctx context.Context, l *loop) (reconciler.Batch, error) {
	p.mu.Lock()
	l.targets = nil
	p.mu.Unlock()
	access := p.accounts.Open(ctx, l.key)
	if err := ctx.Err(); err != nil {
		return reconciler.Batch{}, err
	}
	p.retryAsked(l, access)
	p.handing.Lock()
	defer p.handing.Unlock()
	return p.gated(l, access), nil
}

// silence is the time after which weir reports that AWS does not answer.
const silence = 15 * time.Second

// unanswered returns the targets whose passes wait for AWS, with the time since when. It logs changes of
// that.
func (p *passes) unanswered(now time.Time) map[string]time.Time {
	since := map[string]time.Time{}
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, l := range p.loops.of {
		began := l.Began()
		if answered := p.accounts.Answered(key); answered.After(began) && !began.IsZero() {
			began = answered
		}
		silent := !began.IsZero() && now.Sub(began) > silence
		if silent {
			for _, d := range p.memory.batches[key].Targets {
				since[d.Policy.Target] = began
			}
		}
		if silent != l.silent {
			l.silent = silent
			log := p.log.With("account", key.Account, "region", key.Region, "role", key.RoleARN, "endpoint", key.Endpoint)
			if silent {
				log.Warn("AWS does not answer; only this account and region wait", "since", began)
			} else {
				log.Info("AWS answers again, or the pass has ended")
			}
		}
	}
	return since
}

// interrupt ends the passes in progress without a new step. No pass starts before there is a new
// composition.
func (p *passes) interrupt() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.memory.batches = nil
	for _, l := range p.loops.of {
		l.Interrupt()
	}
}

// end ends passes in progress before their next step.
func (p *passes) end(which func(*loop) bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.loops.of {
		if which(l) {
			l.Interrupt()
		}
	}
}

// again ends the passes over targets with a withdrawn permit, and starts passes over targets whose permits
// have changed.
func (p *passes) again(withdrawn, changed map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, l := range p.loops.of {
		if slices.ContainsFunc(l.targets, func(target string) bool { return withdrawn[target] }) {
			l.Interrupt()
		}
	}
	for target := range changed {
		p.loops.nudge(p.memory.scopesOf(target))
	}
}

// retry makes the next pass retry what AWS refused for a target's pools. It also removes the record of
// commits that prevent steps of the target because weir was behind them: the user who requests the retry
// knows better.
func (p *passes) retry(target string, pools []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	last := p.memory.before.Reports[target]
	for key, b := range p.memory.batches {
		for i := range b.Targets {
			if d := &b.Targets[i]; d.Policy.Target == target && d.Ancestry != nil && last != nil && last.Plan != nil {
				p.lineages.Lift(d.Policy.Source, last.Plan.Ahead)
			}
		}
		if l := p.loops.of[key]; l != nil && l.scope != nil && slices.ContainsFunc(b.Targets, func(d reconciler.Desired) bool { return d.Policy.Target == target }) {
			l.scope.Retry(pools)
		}
	}
}

// read calls a function with the memory of passes.
func (p *passes) read(f func(*memory)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f(&p.memory)
}

// replayReports calls to with the last report of every target, for a receiver that has missed them. It holds
// handing, so that no pass delivers a newer report meanwhile.
func (p *passes) replayReports(to func(*plan.Report)) {
	p.handing.Lock()
	defer p.handing.Unlock()
	var reports []*plan.Report
	p.read(func(m *memory) { reports = m.reports() })
	for _, r := range reports {
		to(r)
	}
}

// same reports whether two batches want the same resources.
func same(a, b reconciler.Batch) bool {
	return a.AllTargets == b.AllTargets && slices.EqualFunc(a.Targets, b.Targets, func(x, y reconciler.Desired) bool {
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
