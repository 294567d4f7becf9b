// Package app implements the daemon: it connects sources, renders, accounts and status, and controls their
// lifetime.
//
// New opens everything that can fail and starts nothing. Start starts the goroutines. Stop ends them in
// reverse order, each within the bound of its context. Run does all of this for one context. The goroutines
// are
//
//	source NAME     one for each source: polls it, keeps its view, wakes the conductor
//	conductor       composes what Git wants, and starts passes
//	passes          one for each scope: passes over an account and region, reports
//	statuses        posts commit statuses
//	pull requests   one for each source with a forge: plans them
//	page            serves the page, the API, the metrics and webhooks
//	webhooks        makes sources read Git again after a webhook
//	embedded AWS    only if aws.endpoint is "embedded"
//	configuration   watches the file and reloads
//	notifications   sends events to receivers, only if notify names some
//	history         writes events and passes to the state directory
//	service manager receives reports that weir is ready and alive, only if there is one
//
// A reload is a stop and a start in one process. Everything that depends on the configuration forms a
// generation: sources, statuses, pull requests, notifications and the conductor. The old generation stops,
// and one for the new configuration starts. It inherits only the values in inherited, such as the
// renders. The page, the state directory, webhooks and the loops of passes continue.
// Passes in progress end without a new step, each as soon as AWS has answered its calls. No pass starts
// with the desired resources of the old generation.
//
// App opens and connects all parts. References between the parts have one direction, and no part refers to
// App or to a generation:
//
//	generation   everything for one configuration: sources, publisher, proposals, gate providers, conductor
//	conductor    composes what Git wants, for publisher and passes
//	publisher    commit statuses, pull requests, notifications
//	proposals    pull requests that weir opens
//	passes       the loops of scopes, and the data that passes keep for the next one
//	rollouts     conducts FleetRollouts based on the reports of passes
//	reporter     sends the reports of passes to state, metrics and publisher
//	peers        the other members of an instance
//	site         the page, the API and webhooks
//
// A reload loses nothing. Pending statuses wait in their journals, and notifications are passed on. If a
// webhook arrives during a reload, it triggers the read afterwards, or each source finds the push when it
// first reads its repository.
package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/embedded"
	"github.com/weir-gitops/weir/cmd/weir/internal/follow"
	"github.com/weir-gitops/weir/cmd/weir/internal/machines"
	"github.com/weir-gitops/weir/cmd/weir/internal/relocation"
	"github.com/weir-gitops/weir/cmd/weir/internal/servicemanager"
	"github.com/weir-gitops/weir/cmd/weir/internal/statedir"
	"github.com/weir-gitops/weir/cmd/weir/internal/telemetry"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/ancestry"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/rollout/ledger"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/state/keys"
	"github.com/weir-gitops/weir/reconciler/state/renders"
	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/status/access"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/history"
	"github.com/weir-gitops/weir/status/metrics"
	"github.com/weir-gitops/weir/status/pulls"
)

// Options configures a daemon.
type Options struct {
	Config *config.Config
	// Engine is shared with the other daemons of the instance. If it is nil, the engine in the
	// configuration is used, or none if the configuration names none.
	Engine *coord.Engine
	// Member is this daemon's name among the members. If it is empty, a name based on the host is used.
	Member string
	// LeaseClock determines when leases end; nil means this machine's clock.
	LeaseClock coord.Clock
	// Load reads the configuration again. If it returns an error, it has already reported the faults. If
	// Load is nil, the configuration never changes.
	Load func() (*config.Config, error)
	// Reload requests reloads in addition to changes of the file; nil for none.
	Reload <-chan os.Signal
	Logger *slog.Logger
	Getenv func(string) string
	// Secrets contains the values to redact; if it is nil, New creates one. Logger must write through the
	// Handler of Secrets, as it does if Secrets is nil.
	Secrets *redact.Registry
	// Version is shown in the metrics.
	Version string
	// Foreseeing is the timeout for simulating a pull request. Zero means the default of pulls.Options.
	Foreseeing time.Duration
	// Rand returns numbers in [0,1) to spread polls and passes; nil means math/rand.
	Rand func() float64
	// Clock reads the time from AWS; nil means clock.New.
	Clock *clock.Clock
	// Watch calls changed after any of the files has changed, until ctx ends; nil means config.Watch.
	Watch func(ctx context.Context, files []string, changed func()) error
	// Listen opens the page's listener; nil means a normal one.
	Listen func(ctx context.Context, network, address string) (net.Listener, error)
}

// App is a daemon. It owns everything that the daemon opens and runs.
type App struct {
	lifetime
	services
	o        Options
	manager  *servicemanager.Manager
	state    *statedir.Dir
	keys     *statedir.Keyring
	listener net.Listener
	emulator *embedded.Server
	// embedded is the address of the emulator; empty if none exists.
	embedded string
	files    fileWatch
	registry *prometheus.Registry
	access   *httpAccess
	site     *site
	daemon   daemon
	reporter *reporter
	rollouts *rollouts
	// peers and dispatcher are nil for a single daemon. dispatcher sends requests to move work to members,
	// and shows the members.
	peers      *peers
	dispatcher *relocation.Dispatcher
	// gen contains everything that depends on the configuration. A reload replaces it while no conductor
	// runs, and while no pass reads desired resources or passes on reports.
	gen       currentGeneration
	reloadDue signal
}

// New opens the state directory, the listeners and the sources. It starts no goroutine.
func New(ctx context.Context, o Options) (*App, error) {
	if o.Secrets == nil {
		o.Secrets = &redact.Registry{}
		o.Logger = slog.New(o.Secrets.Handler(o.Logger.Handler()))
	}
	a := &App{
		o: o, lifetime: lifetime{fatal: make(chan error, 8)}, reloadDue: newSignal(),
		files:    fileWatch{watch: o.Watch, log: o.Logger},
		services: services{log: o.Logger, requests: newRequests(), conduct: newSignal()},
	}
	if a.files.watch == nil {
		a.files.watch = config.Watch
	}
	if err := a.open(ctx); err != nil {
		return nil, errors.Join(err, a.Stop(ctx))
	}
	return a, nil
}

// open opens everything. Each step uses the results of earlier steps. The cleanups contain everything that
// was opened before an error.
func (a *App) open(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		a.openState,      // needs nothing
		a.openTracing,    // needs only the options
		a.openPage,       // needs the keys in the state directory
		a.openEmbedded,   // needs the state directory
		a.openReporting,  // needs the records and the guard, which determines the origin of webhooks
		a.openPasses,     // needs the clock, metrics, and the address of an embedded AWS
		a.openGeneration, // needs all of the above
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// openState opens the state directory and the records.
func (a *App) openState(ctx context.Context) (err error) {
	if a.manager, err = servicemanager.Open(a.log); err != nil {
		return err
	}
	a.manager.Starting("opens its state")
	if a.state, err = statedir.Open(a.o.Config.StateDir); err != nil {
		return err
	}
	a.onStop("state directory", 0, func(context.Context) error { return a.state.Close() })
	a.keys = &statedir.Keyring{Dir: a.state}
	if err = a.openRecords(ctx); err != nil {
		return err
	}
	a.clock = cmp.Or(a.o.Clock, clock.New())
	a.recorder = gates.NewRecorder(a.store, a.clock.Moment)
	a.ledger = ledger.Open(a.store)
	a.lineages = ancestry.Open(a.store, a.log)
	a.key, err = a.keys.Key(keys.Digest, statedir.DigestKey)
	a.renders = renders.Open(a.state.Path("renders"), a.key, a.log)
	return err
}

// openRecords opens the records in the state directory, or the ones that several daemons share.
func (a *App) openRecords(ctx context.Context) error {
	if a.o.Engine != nil || a.o.Config.Several() {
		return openWithRetry(ctx, a.manager, a.log, a.openEngine, a.openMembers)
	}
	db, err := state.Open(a.state.Name)
	if err != nil {
		return err
	}
	if err := state.Claim(db, a.o.Config.Instance); err != nil {
		return errors.Join(fmt.Errorf("open state directory %s: %w", a.state.Name, err), db.Close())
	}
	a.store = db
	a.onStop("state", 0, func(context.Context) error { return db.Close() })
	if lost := db.Lost(); lost != nil {
		a.log.Error("moved the damaged state aside", "error", lost)
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

// openPage opens the page's listener, and creates the access checks of the page.
func (a *App) openPage(ctx context.Context) (err error) {
	key, err := a.keys.Key(keys.Session, access.Key)
	if err != nil {
		return err
	}
	if a.access, err = newHTTPAccess(a.o.Config, key, a.log); err != nil {
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

// openEmbedded opens the embedded AWS, if it is configured.
func (a *App) openEmbedded(ctx context.Context) (err error) {
	if a.o.Config.AWS.Endpoint != config.EmbeddedEndpoint {
		return nil
	}
	a.emulator, err = embedded.New(ctx, embedded.Options{
		Listen: "127.0.0.1:0", State: a.state.Path("embedded-aws.json"), Logger: a.o.Logger,
	})
	if err == nil {
		a.embedded = a.emulator.URL()
		a.onStop("listener of the embedded AWS", 0, func(context.Context) error { return ignoreClosed(a.emulator.Close()) })
	}
	return err
}

// openReporting creates the reporting of passes, and the handler of webhooks.
func (a *App) openReporting(context.Context) error {
	a.registry = prometheus.NewRegistry()
	a.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	a.metrics = metrics.New(a.registry, a.o.Version)
	a.current = current.New(current.Options{
		Instance: a.o.Config.Instance, Redact: a.o.Secrets.Redact, Logger: a.log,
		Archive: history.New(a.store, history.Options{Now: func() time.Time { return since(a.clock) }}),
		Notify: func(list []events.Event) {
			a.metrics.Events(list)
			a.gen.notify(list)
		},
	})
	a.loss = reportLoss(a.current.Daemon, a.metrics)
	measure(a.metrics, a.current, &a.gen, a.state.Path(state.File))
	if a.dispatcher != nil {
		a.metrics.Coordination(a.dispatcher.View, func() time.Duration {
			if s := a.member.Keeper.Session(); s != nil {
				return s.Left()
			}
			return 0
		})
	}
	a.hooks = forge.NewReceiver(forge.Options{Logger: a.log, Origin: a.access.guard.Origin, Received: func(label string, result forge.Result) {
		a.metrics.Webhook(label, string(result))
	}})
	return nil
}

// openPasses creates the opener of accounts, and everything for passes. It opens no account, and starts no
// pass.
func (a *App) openPasses(context.Context) error {
	drift := &clockCheck{clock: a.clock, log: a.log}
	a.accounts = accounts.New(accounts.Options{
		Fence: func(key reconciler.ScopeKey) sdk.Fence { return a.passes.fence(key) }, Shared: a.member != nil,
		Logger: a.o.Logger, Getenv: a.o.Getenv, Embedded: a.embedded, Round: nodegroupRound, StepsFor: stepsFor,
		Clock: a.clock,
		OnCall: func(c sdk.CallInfo) {
			drift.check()
			a.metrics.AWSCall(metrics.AWSCall{Service: c.Service, Operation: c.Operation, Kind: c.Kind, Throttled: c.Throttled, Duration: c.Duration})
		},
	})
	a.accounts.SetShare(a.o.Config.AWS.Share())
	a.planAccounts, a.turns = a.accounts.ForPlans(), pulls.NewTurns()
	a.drafts = &pulls.Drafts{Accounts: a.planAccounts, Turns: a.turns, Within: commands.PlanWithin}
	redact := a.o.Secrets.Redact
	a.passes = newPasses(passesOptions{
		log: a.log, tracing: a.tracing, rand: a.o.Rand, redact: redact, spawn: a.spawn, clock: a.clock, accounts: a.accounts, member: a.member,
		store: a.store, ledger: a.ledger, lineages: a.lineages, approvals: approvals{a.recorder, a.current.Activity, a.log}, targets: a.current.Targets, wake: a.requests.wake, conduct: a.conduct, loss: a.loss,
	})
	a.passes.setPace(a.o.Config)
	a.reporter = &reporter{log: newPassLog(a.log), passes: a.passes, current: a.current, metrics: a.metrics, now: &a.gen, member: a.member, redact: redact}
	a.passes.reporter = a.reporter.under
	a.rollouts = newRollouts(rolloutsOptions{
		ledger: a.ledger, due: a.conduct, gates: newGates(a.clock, &a.gen), passes: a.passes, sources: a.gen.followers,
		stopped: func(source string) { a.gen.proposals().wake(source) }, clock: a.clock, current: a.current, log: a.log, redact: redact,
	})
	a.daemon = daemon{current: a.current, recorder: a.recorder, passes: a.passes, rollouts: a.rollouts, requests: a.requests, member: a.member, retries: retryRequests{a.store, a.log}}
	a.site = &site{
		access: a.access, now: &a.gen, daemon: a.daemon, current: a.current, recorder: a.recorder, rollouts: a.rollouts, drafts: a.drafts,
		machines:   machines.Reader{Scopes: a.scopesOf, Accounts: a.planAccounts, Redact: redact},
		dispatcher: a.dispatcher, hooks: a.hooks, registry: a.registry, metrics: a.metrics, log: a.log, redact: redact,
	}
	if a.peers != nil {
		a.peers.peerLinks = peerLinks{now: &a.gen, passes: a.passes, reporter: a.reporter, rollouts: a.rollouts, recorder: a.recorder, requests: a.requests, current: a.current, metrics: a.metrics}
		a.passes.kept = a.peers.kept
	}
	return nil
}

// openGeneration creates the generation of the configuration. It redacts credentials before it reports
// anything.
func (a *App) openGeneration(context.Context) error {
	a.manager.Starting("opens sources and forges")
	g, err := a.newGeneration(a.o.Config)
	if err != nil {
		return err
	}
	a.gen.Store(g)
	follow.HideCredentials(a.o.Secrets, g.config)
	if err = g.publisher.openPulls(); err != nil {
		return err
	}
	g.webhooks.set()
	return g.publisher.openStatuses()
}

// newGeneration creates a generation for a configuration. It opens nothing: a generation that was not
// opened needs no cleanup.
func (a *App) newGeneration(c *config.Config) (*generation, error) {
	return newGeneration(c, generationOptions{
		services: a.services, secrets: a.o.Secrets, stateDir: a.state.Name, embedded: a.embedded, version: a.o.Version, rand: a.o.Rand,
		foreseeing: a.o.Foreseeing, spawn: a.spawn, rolled: a.rollouts.standing, withdrawn: a.daemon.Pass, gone: a.reporter.log.forget,
	})
}

// ignoreClosed ignores the error of a listener that its server has already closed.
func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

// stepsFor is the time during which a pass may start new steps. With hundreds of new pools, AWS's limits
// extend a pass to minutes, and a newer commit would wait that long.
const stepsFor = 30 * time.Second

// nodegroupRound is the time in which each idle nodegroup is described once.
const nodegroupRound = 5 * time.Minute

// Pools returns all pools as last seen by passes.
func (a *App) Pools() []plan.PoolStatus { return a.current.Targets.Pools() }

// Ready reports whether every target has had its first pass.
func (a *App) Ready() bool { return servicemanager.Ready(a.current.Targets.All()) }
