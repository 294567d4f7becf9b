// Package app implements the daemon: it wires sources, renders, accounts and status together and
// controls their lifetime.
//
// New opens what can fail and starts nothing. Start starts the goroutines. Stop ends them in the
// reverse order, each within the bound of its context. Run does all of it around one context. The
// goroutines are
//
//	source NAME     one for each source: polls it, keeps its view, rings the loop
//	conductor       puts together what Git wants, and nudges the passes
//	passes          one for each scope: passes over an account and region, reports
//	statuses        posts commit statuses
//	pull requests   one for each source with a forge: plans them
//	page            serves the page, the API, the metrics and webhooks
//	webhooks        makes sources read Git again after a webhook
//	embedded AWS    only if aws.endpoint is "embedded"
//	configuration   watches the file and reloads
//	notifications   sends events to receivers, only if notify names some
//	history         writes events and passes to the state directory
//	service manager reports to it that weir is ready and alive, only if one listens
//
// A reload is a stop and a start in one process. Everything that depends on the configuration forms
// a generation: sources, statuses, pull requests, notifications and the conductor. The old
// generation stops, and one of the new configuration starts, which inherits only the renders. The
// page, the state directory, webhooks and the loops of passes live on. Passes under way end without
// a new step, each as soon as AWS has answered the calls in flight. No pass starts with the desired
// resources of the old generation.
//
// A reload loses nothing. Pending statuses wait in their journals, and notifications are handed on.
// If a webhook arrives meanwhile, it triggers the read itself, or each source finds the push when
// it first reads its repository.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/crew"
	"github.com/weir-gitops/weir/cmd/weir/internal/embedded"
	"github.com/weir-gitops/weir/cmd/weir/internal/handover"
	"github.com/weir-gitops/weir/cmd/weir/internal/telemetry"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/lineage"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/state/keys"
	"github.com/weir-gitops/weir/reconciler/state/renders"
	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/status/board"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/history"
	"github.com/weir-gitops/weir/status/members"
	"github.com/weir-gitops/weir/status/metrics"
	"github.com/weir-gitops/weir/status/pulls"
)

// stopWithin bounds the whole shutdown: less than the 30 s that Kubernetes and systemd wait by
// default or by custom before they kill. Every step may use the time that other steps leave, and
// always has its own share: what must be saved is saved, however slow AWS or a forge is. Steps
// without a share of their own only close something, or end work that nothing waits for: each has
// leastShare for that.
const (
	stopWithin      = 25 * time.Second
	reloadShare     = 2 * time.Second
	conductorShare  = time.Second
	passesShare     = reconciler.LastCall + time.Second
	sourcesShare    = 1500 * time.Millisecond
	statusesShare   = 5 * time.Second
	pullsShare      = 3 * time.Second
	pageShare       = 3500 * time.Millisecond // its own bound is 3 s
	embeddedShare   = 5 * time.Second         // its own bound is 5 s
	notifyShare     = time.Second             // its own bound is 0.9 s
	crewShare       = 2 * time.Second
	handOverShare   = reconciler.LastCall + coord.Quiet + 2*time.Second
	historyShare    = 500 * time.Millisecond
	tracingShare    = 500 * time.Millisecond
	leastShare      = 500 * time.Millisecond
	reloadStopBound = 5 * time.Second
)

// Options of a daemon.
type Options struct {
	Config *config.Config
	// Engine is shared with the other daemons of the instance; nil: what the configuration
	// names, and this one is alone where it names none.
	Engine *coord.Engine
	// Member is this daemon's name among them; empty for one of its host's.
	Member string
	// LeaseClock decides when leases end; nil for this machine's.
	LeaseClock coord.Clock
	// Load reads the configuration again. When it returns an error, it has already reported the
	// faults. If it is nil, the configuration never changes.
	Load func() (*config.Config, error)
	// Reload requests reloads in addition to changes of the file; nil for none.
	Reload <-chan os.Signal
	Logger *slog.Logger
	Getenv func(string) string
	// Secrets knows what must not be shown; nil makes one. Logger passes through
	// it where it was made with its Handler, as here where Secrets is nil.
	Secrets *redact.Registry
	// Version is shown in the metrics.
	Version string
	// Foreseeing bounds the time to compute what a pull request would do over time. Zero means the
	// default of pulls.Options.
	Foreseeing time.Duration
	// Rand gives numbers in [0,1) that spread polls and passes; nil: those of math/rand.
	Rand func() float64
	// Clock reads the time from AWS; nil means clock.New.
	Clock *clock.Clock
	// Watch calls changed after any of the files has changed, until ctx ends; nil:
	// config.Watch.
	Watch func(ctx context.Context, files []string, changed func()) error
	// Listen opens the page's listener; nil: one of the system's.
	Listen func(ctx context.Context, network, address string) (net.Listener, error)
}

// App is a daemon.
type App struct {
	o     Options
	log   *slog.Logger
	state *State
	// store are the records.
	store state.Store
	// crew holds the daemons that share the work; nil if this daemon is alone. heeded holds the requests
	// of people at the last read.
	crew       *crew.Crew
	news       *members.News        // reports owners to people; nil like crew
	dispatcher *handover.Dispatcher // asks members to move work, and shows them; nil like crew
	shared     map[string][]byte    // keys of the instance, by use
	heeded     gates.Records
	clock      *clock.Clock
	// clockWrong says that weir has reported that this machine's clock differs from
	// AWS's.
	clockWrong atomic.Bool
	key        []byte
	tracing    *telemetry.Tracing
	watchdog   time.Duration // how often the service manager must hear of it at least; 0 for never
	listener   net.Listener
	emulator   *embedded.Server
	board      *board.Board
	registry   *prometheus.Registry
	metrics    *metrics.Metrics
	accounts   *accounts.Set
	hooks      *forge.Receiver
	// planAccounts holds the accounts for plans of pull requests.
	planAccounts *accounts.Set
	// turns bounds the concurrent plans of pull requests and drafts together.
	turns  *pulls.Turns
	drafts *pulls.Drafts
	// gen holds everything that depends on the configuration. A reload replaces it while no
	// conductor runs and no pass adopts or hands on anything.
	gen atomic.Pointer[generation]
	// shown are the targets that the page shows. The conductor uses them, and a reload.
	shown []fleet.Target

	cleanups  []cleanup
	fatal     chan error
	reloadDue chan struct{}
	// wakeup wakes the conductor; all makes it nudge every scope.
	wakeup chan struct{}
	all    atomic.Bool
	// sourcesDue says that a command wants the sources to look at Git.
	sourcesDue atomic.Bool

	book     *gates.Book
	rollouts *rollouts
	lineages *lineage.Book
	renders  *renders.Dir
	site     *site

	reporter *reporter
	passes   *passes
}

// cleanup is a named step of Stop.
type cleanup struct {
	name  string
	share time.Duration
	run   func(context.Context) error
}

// New opens the state directory, the listeners and the sources. It starts no
// goroutine.
func New(ctx context.Context, o Options) (*App, error) {
	if o.Secrets == nil {
		o.Secrets = &redact.Registry{}
		o.Logger = slog.New(o.Secrets.Handler(o.Logger.Handler()))
	}
	a := &App{o: o, log: o.Logger, fatal: make(chan error, 8), reloadDue: make(chan struct{}, 1), wakeup: make(chan struct{}, 1)}
	a.passes = &passes{app: a, of: map[reconciler.ScopeKey]*loop{}, run: map[*loop]bool{}, replay: map[string]bool{}, finding: map[reconciler.ScopeKey]bool{}}
	a.reporter = &reporter{app: a, log: newPassLog(a.log)}
	if err := a.open(ctx); err != nil {
		return nil, errors.Join(err, a.Stop(ctx))
	}
	return a, nil
}

// open opens everything. Each step uses what the steps before it opened; the cleanups contain
// everything that was opened before an error.
func (a *App) open(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		a.openState,      // nothing before it
		a.openTracing,    // nothing but the options
		a.openPage,       // the state directory's keys
		a.openEmbedded,   // the state directory
		a.openReporting,  // records, and the guard, which knows where webhooks come from
		a.openAccounts,   // the clock, metrics, and the address of an embedded AWS
		a.openGeneration, // all of them
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// openState opens the state directory, and the records in it.
func (a *App) openState(ctx context.Context) (err error) {
	if a.watchdog, err = watchdog(); err != nil {
		return err
	}
	a.starting("opens its state")
	if a.state, err = OpenState(a.o.Config.StateDir); err != nil {
		return err
	}
	a.onStop("state directory", 0, func(context.Context) error { return a.state.Close() })
	if err = a.openRecords(ctx); err != nil {
		return err
	}
	a.clock = cmp.Or(a.o.Clock, clock.New())
	a.book = gates.NewBook(a.store, a.clock.Moment)
	a.rollouts = newRollouts(a)
	a.lineages = lineage.Open(a.store, a.log)
	a.key, err = peers{a}.keyOf(keys.Digest, DigestKey)
	a.renders = renders.Open(a.state.path("renders"), a.key, a.log)
	return err
}

// openRecords opens those of the state directory, or those that several daemons share.
func (a *App) openRecords(ctx context.Context) error {
	if a.o.Engine != nil || a.o.Config.Several() {
		return peers{a}.reach(ctx)
	}
	db, err := state.Open(a.state.Dir)
	if err != nil {
		return err
	}
	if err := state.Claim(db, a.o.Config.Instance); err != nil {
		return errors.Join(fmt.Errorf("open state directory %s: %w", a.state.Dir, err), db.Close())
	}
	a.store = db
	a.onStop("state", 0, func(context.Context) error { return db.Close() })
	if lost := db.Lost(); lost != nil {
		a.log.Error("the state was put aside", "error", lost)
	}
	return nil
}

func (a *App) openTracing(ctx context.Context) (err error) {
	a.tracing, err = telemetry.Open(ctx, telemetry.Options{
		Instance: a.o.Config.Instance, Version: a.o.Version, Redact: a.o.Secrets.Redact, Logger: a.o.Logger,
	})
	if err == nil {
		a.onStop("tracing", tracingShare, a.tracing.Close)
	}
	return err
}

// openPage opens the page's listener, and the access checks before the page.
func (a *App) openPage(ctx context.Context) (err error) {
	if a.site, err = newSite(a); err != nil {
		return err
	}
	listen := a.o.Listen
	if listen == nil {
		listen = new(net.ListenConfig).Listen
	}
	if a.listener, err = listen(ctx, "tcp", a.o.Config.Listen); err != nil {
		return fmt.Errorf("open page: %w", err)
	}
	a.onStop("listener", 0, func(context.Context) error { return ignoreClosed(a.listener.Close()) })
	return nil
}

// openEmbedded opens the embedded AWS, where it is configured.
func (a *App) openEmbedded(ctx context.Context) (err error) {
	if a.o.Config.AWS.Endpoint != config.EmbeddedEndpoint {
		return nil
	}
	a.emulator, err = embedded.New(ctx, embedded.Options{
		Listen: "127.0.0.1:0", State: a.state.path("embedded-aws.json"), Logger: a.o.Logger,
	})
	if err == nil {
		a.onStop("listener of the embedded AWS", 0, func(context.Context) error { return ignoreClosed(a.emulator.Close()) })
	}
	return err
}

// openReporting makes the reports of passes, and the handler of webhooks.
func (a *App) openReporting(context.Context) error {
	a.registry = prometheus.NewRegistry()
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	a.metrics = metrics.New(a.registry, a.o.Version)
	a.board = board.New(board.Options{
		Instance: a.o.Config.Instance, Redact: a.o.Secrets.Redact, Logger: a.log, Archive: history.New(a.store, history.Options{Now: a.sinceWhen}), Notify: a.notify,
	})
	a.measure()
	a.hooks = forge.NewReceiver(forge.Options{Logger: a.log, Origin: a.site.guard.Origin, Received: func(label string, result forge.Result) {
		a.metrics.Webhook(label, string(result))
	}})
	return nil
}

// openAccounts makes the opener of accounts; it opens no account.
func (a *App) openAccounts(context.Context) error {
	a.accounts = accounts.New(accounts.Options{
		Fence: peers{a}.fence, Shared: a.crew != nil,
		Logger: a.o.Logger, Getenv: a.o.Getenv, Embedded: a.embeddedURL(), Round: nodegroupRound, StepsFor: stepsFor,
		Clock: a.clock,
		OnCall: func(c sdk.CallInfo) {
			a.checkClock()
			a.metrics.AWSCall(metrics.AWSCall{Service: c.Service, Operation: c.Operation, Kind: c.Kind, Throttled: c.Throttled, Duration: c.Duration})
		},
	})
	a.accounts.SetShare(a.o.Config.AWS.Share())
	a.planAccounts, a.turns = a.accounts.ForPlans(), pulls.NewTurns()
	a.drafts = &pulls.Drafts{Accounts: a.planAccounts, Turns: a.turns, Within: commands.PlanWithin}
	return nil
}

// openGeneration makes what the configuration decides. It hides credentials before it
// reports anything.
func (a *App) openGeneration(context.Context) error {
	a.starting("opens sources and forges")
	g, err := a.newGeneration(a.o.Config)
	if err != nil {
		return err
	}
	a.gen.Store(g)
	g.hideCredentials()
	if err = g.openPulls(); err != nil {
		return err
	}
	g.setHooks()
	return g.openStatuses()
}

// ignoreClosed forgives closing what its server has closed before.
func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// stepsFor bounds the time that a pass may start new steps. With hundreds of new pools AWS's limits
// stretch a pass to minutes, and a newer commit would wait that long.
const stepsFor = 30 * time.Second

// nodegroupRound is the time in which each resting nodegroup is described once.
const nodegroupRound = 5 * time.Minute

// onStop adds a step that Stop runs before the steps that were added earlier.
func (a *App) onStop(name string, share time.Duration, run func(context.Context) error) {
	a.cleanups = append(a.cleanups, cleanup{name, share, run})
}

// Pools are all pools as the last passes found them.
func (a *App) Pools() []plan.PoolStatus { return a.board.Pools() }

// Ready reports whether every target had its first pass.
func (a *App) Ready() bool {
	targets := a.board.Targets()
	for _, t := range targets {
		if t.Last == nil {
			return false
		}
	}
	return len(targets) > 0
}
