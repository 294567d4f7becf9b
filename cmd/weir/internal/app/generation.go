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

// generation contains everything that depends on one configuration. A reload stops one generation and
// starts the next, which gets the values in inherited. Everything else is in the state directory, or the
// new generation finds it again, as after a restart.
type generation struct {
	config    *config.Config
	common    string // config.Common, which passes compare with the common part of other members
	followers follow.Sources
	fleet     *fleet.Fleet
	// base is the base of pull requests; nil before the first composition.
	base      *atomic.Pointer[fleet.Base]
	publisher *publisher
	proposals *proposals
	providers providers
	webhooks  *webhooks
	conductor *conductor
	lineages  *ancestry.Tracker
	spawner   spawner
	// stops contains functions that end the started goroutines, by part.
	stops map[part][]func(context.Context) error
}

// services contains the parts that outlive reloads: the records, the renders, the loops of passes, and the
// receivers of results. Each generation uses them.
type services struct {
	log *slog.Logger
	// store contains the records.
	store state.Store
	// member is this daemon as one of several; nil for a single daemon.
	member   *membership.Member
	clock    *clock.Clock
	key      []byte // of digests
	tracing  *telemetry.Tracing
	current  *current.State
	metrics  *metrics.Metrics
	accounts *accounts.Set
	hooks    *forge.Receiver
	// planAccounts contains the accounts for plans of pull requests.
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
	// loss shows on the page and in metrics that all writes are held because records were lost; nil ends
	// that.
	loss func(*state.Loss)
}

// generationOptions are the dependencies of a generation.
type generationOptions struct {
	services
	secrets  *redact.Registry
	stateDir string
	// embedded is the address of an embedded AWS; empty if none exists.
	embedded string
	version  string
	rand     func() float64
	// foreseeing is the timeout of the simulation of a pull request.
	foreseeing time.Duration
	spawn      spawner
	// rolled returns the state of a source's rollouts at a commit. withdrawn ends the passes over targets
	// whose approval was withdrawn. gone receives the names of removed targets.
	rolled    func(source, head string) (reverts.Standing, error)
	withdrawn func(targets []string)
	gone      func(target string)
}

// newGeneration creates the sources, the fleet, the publisher and the conductor of a configuration. It
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

// newPublisher creates the clients of forges. It opens no journal.
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

// start starts everything except the conductor.
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

// halt ends the goroutines of parts, one part after another, and waits for them. It may be called again.
func (g *generation) halt(ctx context.Context, parts ...part) error {
	var errs []error
	for _, of := range parts {
		for i := len(g.stops[of]) - 1; i >= 0; i-- {
			errs = append(errs, g.stops[of][i](ctx))
		}
	}
	return errors.Join(errs...)
}

// inherited contains the values that a generation passes to the next one.
type inherited struct {
	// fleet contains the renders.
	fleet     *fleet.Fleet
	followers follow.Sources
	// publisher contains the waiting notifications.
	publisher *publisher
	// shown lists the targets on the page.
	shown []fleet.Target
}

// leave ends all parts. The conductor must already have ended. Wanted statuses stay in their journals for
// the next generation.
func (g *generation) leave(ctx context.Context) (inherited, error) {
	err := g.halt(ctx, pullsPart, sourcesPart, statusesPart, notifierPart)
	err = errors.Join(err, g.publisher.leave())
	g.providers.close()
	g.followers.CloseConnections()
	return inherited{g.fleet, g.followers, g.publisher, g.conductor.shown}, err
}

// inherit takes over the renders, the last commits of sources, and the targets on the page.
func (g *generation) inherit(from inherited) {
	g.fleet.Adopt(from.fleet)
	g.followers.Inherit(from.followers)
	g.conductor.shown = from.shown
}

// currentGeneration points to the generation of the current configuration. It is nil until the first one is
// opened.
type currentGeneration struct{ atomic.Pointer[generation] }

// followers returns the sources; none before there is a generation.
func (c *currentGeneration) followers() follow.Sources {
	if g := c.Load(); g != nil {
		return g.followers
	}
	return nil
}

// publisher returns the publisher, which sends results to forges and receivers.
func (c *currentGeneration) publisher() *publisher { return c.Load().publisher }

// proposals returns the proposals, which open pull requests.
func (c *currentGeneration) proposals() *proposals { return c.Load().proposals }

// common returns the part of the configuration that all members must have in common.
func (c *currentGeneration) common() string { return c.Load().common }

// interval returns the interval between passes.
func (c *currentGeneration) interval() time.Duration { return c.Load().config.Interval }

// compared returns the configuration, and the base of drafts.
func (c *currentGeneration) compared() (*config.Config, *fleet.Base) {
	g := c.Load()
	return g.config, g.base.Load()
}

// notify sends events to the receivers in the configuration. It never blocks.
func (c *currentGeneration) notify(events []events.Event) {
	if g := c.Load(); g != nil {
		g.publisher.notify(events)
	}
}
