package app

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/follow"
	"github.com/weir-gitops/weir/cmd/weir/internal/membership"
	"github.com/weir-gitops/weir/cmd/weir/internal/telemetry"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/ancestry"
	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/rollout/ledger"
	"github.com/weir-gitops/weir/reconciler/simulate"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/state/renders"
	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/status/commits"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/metrics"
	"github.com/weir-gitops/weir/status/notify"
	"github.com/weir-gitops/weir/status/proposal/reverts"
	"github.com/weir-gitops/weir/status/pulls"
)

// generation holds everything that depends on one configuration. A reload stops one and starts the
// next, which gets what inherited lists. Everything else is in the state directory, or the new
// generation finds it again, as after a restart.
type generation struct {
	config    *config.Config
	common    string // config.Common, which passes compare with the other members'
	followers follow.Sources
	fleet     *fleet.Fleet
	// base is compared with pull requests; nil before the first composition.
	base      *atomic.Pointer[fleet.Base]
	publisher *publisher
	proposals *proposals
	providers providers
	webhooks  *webhooks
	conductor *conductor
	lineages  *ancestry.Tracker
	spawner   spawner
	// stops end the goroutines that were started, by part.
	stops map[part][]func(context.Context) error
}

// services outlive reloads: the records, the renders and the loops of passes, and where results go.
// Each generation uses them.
type services struct {
	log *slog.Logger
	// store are the records.
	store state.Store
	// member is this daemon as one of several; nil if it is alone.
	member   *membership.Member
	clock    *clock.Clock
	key      []byte // of digests
	tracing  *telemetry.Tracing
	current  *current.State
	metrics  *metrics.Metrics
	accounts *accounts.Set
	hooks    *forge.Receiver
	// planAccounts holds the accounts for plans of pull requests.
	planAccounts *accounts.Set
	// turns bounds the concurrent plans of pull requests and drafts together.
	turns    *pulls.Turns
	drafts   *pulls.Drafts
	recorder *gates.Recorder
	ledger   *ledger.Ledger
	lineages *ancestry.Tracker
	renders  *renders.Dir
	requests *requests
	// conduct wakes the rollout conductor.
	conduct signal
	passes  *passes
	// loss shows on the page and in metrics that lost records block all writes; nil ends that.
	loss func(*state.Loss)
}

// generationOptions are the surroundings of a generation.
type generationOptions struct {
	services
	secrets  *redact.Registry
	stateDir string
	// embedded is the address of an embedded AWS; empty without one.
	embedded string
	version  string
	rand     func() float64
	// foreseeing bounds the simulation of a pull request.
	foreseeing time.Duration
	spawn      spawner
	// rolled returns the state of a source's rollouts at a commit. withdrawn ends the passes over
	// targets whose approval was withdrawn. gone gets the names of targets that have gone.
	rolled    func(source, head string) (reverts.Standing, error)
	withdrawn func(targets []string)
	gone      func(target string)
}

// newGeneration builds the sources, the fleet, the publisher and the conductor of a configuration. It
// starts none of them.
func newGeneration(c *config.Config, o generationOptions) (g *generation, err error) {
	g = &generation{
		config: c, common: c.Common(), base: &atomic.Pointer[fleet.Base]{}, providers: makeProviders(c.GateProviders), lineages: o.lineages,
		spawner: o.spawn, stops: map[part][]func(context.Context) error{},
	}
	news := newSignal()
	g.followers, err = follow.New(c.Sources, follow.Options{
		StateDir: o.stateDir, Rand: o.rand, Metrics: o.metrics, Tracing: o.tracing, Lineages: o.lineages, PassAll: o.requests.passAll, Member: o.member,
		Listeners: follow.Listeners{Logger: o.log, Secrets: o.secrets, Sources: o.current.Sources, News: news.send, Wake: o.requests.wake, Conduct: o.conduct.send},
	})
	if err != nil {
		return nil, err
	}
	g.fleet = fleet.New(fleet.Options{
		Config: c.Fleet(o.embedded), Accounts: o.accounts, DigestKey: o.key, Good: good{o.store}, Written: o.renders, Secrets: o.secrets, Logger: o.log,
	})
	if g.publisher, err = newPublisher(c, g.followers, g.base.Load, o); err != nil {
		return nil, err
	}
	g.proposals, err = makeProposals(proposalOptions{
		config: c, followers: g.followers, base: g.base.Load, drafts: o.drafts, statuses: g.publisher.forges, rolled: o.rolled,
		current: o.current, metrics: o.metrics, store: o.store, log: o.log, redact: o.secrets.Redact,
	})
	if err != nil {
		return nil, err
	}
	g.webhooks = &webhooks{receiver: o.hooks, forges: c.Forges, followers: g.followers, publisher: g.publisher, member: o.member}
	g.conductor = newConductor(conductorOptions{
		config: c, followers: g.followers, fleet: g.fleet, publisher: g.publisher, webhooks: g.webhooks, base: g.base, requests: o.requests, news: news,
		passes: o.passes, planAccounts: o.planAccounts, member: o.member, current: o.current, metrics: o.metrics, tracing: o.tracing, secrets: o.secrets, log: o.log,
		gone: o.gone, loss: func() { o.loss(o.recorder.Read().Lost) },
	})
	return g, g.publisher.openNotifier(c.Notify, notify.Options{Instance: c.Instance, Logger: o.log, Version: o.version, Sent: o.metrics.Notification})
}

// newPublisher makes the clients of forges. It opens no journal.
func newPublisher(c *config.Config, fs follow.Sources, base func() *fleet.Base, o generationOptions) (*publisher, error) {
	forges, err := makeForges(c, fs, o.metrics, o.tracing)
	if err != nil {
		return nil, err
	}
	redact := o.secrets.Redact
	return &publisher{
		forges: forges, shared: o.member != nil,
		statuses: commits.Options{
			Instance: c.Instance, PageURL: c.PublicURL, Forges: forges, Store: o.store, Held: fs.HeldBy(o.member), Redact: redact, Logger: o.log, Wrote: o.metrics.StatusWrite,
		},
		pulls: reviewOptions{
			config: c, followers: fs, member: o.member, current: o.current, metrics: o.metrics, store: o.store, log: o.log, redact: redact,
			common: pulls.Options{
				Base: base, Accounts: o.planAccounts, Redact: redact, Approver: o.recorder, Approved: o.requests.passAll, Withdrawn: o.withdrawn, DB: o.store,
				PageURL: c.PublicURL, Turns: o.turns, Assume: simulate.Assumptions{Share: c.AWS.Share()}, Within: o.foreseeing,
				Event: o.current.Activity.Add, Metrics: o.metrics, Logger: o.log,
			},
		},
	}, nil
}

// part names goroutines of a generation that end together.
type part string

const (
	conductorPart part = "conductor"
	sourcesPart   part = "sources"
	pullsPart     part = "pull requests"
	statusesPart  part = "statuses"
	notifierPart  part = "notifications"
)

// start starts all but the conductor.
func (g *generation) start(ctx context.Context) {
	out := g.publisher
	if out.notifier != nil {
		g.spawn(ctx, notifierPart, "notifications", out.notifier.Run)
	}
	if out.commits != nil {
		g.spawn(ctx, statusesPart, "statuses", out.commits.Run)
	}
	if out.review != nil {
		out.review.start(ctx, func(ctx context.Context, name string, run func(context.Context) error) {
			g.spawn(ctx, pullsPart, name, run)
		}, g.webhooks.set)
	}
	for _, p := range g.proposals.proposers {
		g.spawn(ctx, pullsPart, p.what+" of "+p.source, func(ctx context.Context) error { return g.proposals.propose(ctx, p) })
	}
	var lines []*ancestry.Line
	for _, f := range g.followers {
		lines = append(lines, f.Line)
	}
	g.lineages.Follow(lines)
	for name, f := range g.followers {
		g.spawn(ctx, sourcesPart, "source "+name, f.Run)
	}
}

// startConductor starts the conductor.
func (g *generation) startConductor(ctx context.Context) {
	g.spawn(ctx, conductorPart, "conductor", g.conductor.conduct)
}

func (g *generation) spawn(ctx context.Context, of part, name string, run func(context.Context) error) {
	g.stops[of] = append(g.stops[of], g.spawner(ctx, name, run))
}

// halt ends the goroutines of parts, one part after the other, and waits for them. It may
// be called again.
func (g *generation) halt(ctx context.Context, parts ...part) error {
	var errs []error
	for _, of := range parts {
		for i := len(g.stops[of]) - 1; i >= 0; i-- {
			errs = append(errs, g.stops[of][i](ctx))
		}
	}
	return errors.Join(errs...)
}

// inherited holds the values that a generation hands to the next one.
type inherited struct {
	// fleet has the renders.
	fleet     *fleet.Fleet
	followers follow.Sources
	// publisher has the notifications that wait.
	publisher *publisher
	// shown are the targets that the page shows.
	shown []fleet.Target
}

// leave ends all parts but the conductor, which has ended. Wanted statuses wait for the next
// generation in their journals.
func (g *generation) leave(ctx context.Context) (inherited, error) {
	err := g.halt(ctx, pullsPart, sourcesPart, statusesPart, notifierPart)
	err = errors.Join(err, g.publisher.leave())
	g.providers.close()
	g.followers.CloseConnections()
	return inherited{g.fleet, g.followers, g.publisher, g.conductor.shown}, err
}

// inherit takes over the renders, the last commits of sources, and the targets that the page shows.
func (g *generation) inherit(from inherited) {
	g.fleet.Adopt(from.fleet)
	g.followers.Inherit(from.followers)
	g.conductor.shown = from.shown
}

// currentGeneration points to the generation of the present configuration. It is nil until the first was
// opened.
type currentGeneration struct{ atomic.Pointer[generation] }

// followers are the sources; none before there is a generation.
func (c *currentGeneration) followers() follow.Sources {
	if g := c.Load(); g != nil {
		return g.followers
	}
	return nil
}

// publisher brings results to forges and receivers.
func (c *currentGeneration) publisher() *publisher { return c.Load().publisher }

// proposals open pull requests.
func (c *currentGeneration) proposals() *proposals { return c.Load().proposals }

// common is the part of the configuration that members have in common.
func (c *currentGeneration) common() string { return c.Load().common }

// interval is the interval between passes.
func (c *currentGeneration) interval() time.Duration { return c.Load().config.Interval }

// compared returns the configuration, and what drafts are compared with.
func (c *currentGeneration) compared() (*config.Config, *fleet.Base) {
	g := c.Load()
	return g.config, g.base.Load()
}

// notify hands events to the receivers of the configuration. It never blocks.
func (c *currentGeneration) notify(events []events.Event) {
	if g := c.Load(); g != nil {
		g.publisher.notify(events)
	}
}
