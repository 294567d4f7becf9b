package app

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/simulate"
	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/status/commits"
	"github.com/weir-gitops/weir/status/notify"
	"github.com/weir-gitops/weir/status/proposal/reverts"
	"github.com/weir-gitops/weir/status/pulls"
)

// generationOptions are the surroundings of a generation.
type generationOptions struct {
	services
	secrets  *redact.Registry
	stateDir string
	// embedded is the address of an embedded AWS; empty without one.
	embedded   string
	version    string
	rand       func() float64
	foreseeing time.Duration
	spawn      spawner
	// rolled returns the state of a source's rollouts at a commit. withdrawn ends the passes over
	// targets whose approval was withdrawn. gone gets the names of targets that have gone.
	rolled    func(source, head string) (reverts.Standing, error)
	withdrawn func(targets []string)
	gone      func(target string)
}

// newGeneration makes sources and renders as c says, and what publishes results. It opens nothing.
func newGeneration(c *config.Config, o generationOptions) (g *generation, err error) {
	g = &generation{
		config: c, common: c.Common(), base: &atomic.Pointer[fleet.Base]{}, providers: makeProviders(c.GateProviders), lineages: o.lineages,
		spawner: o.spawn, stops: map[part][]func(context.Context) error{},
	}
	news := newSignal()
	g.followers, err = newFollowers(c.Sources, sourceOptions{
		stateDir: o.stateDir, rand: o.rand, metrics: o.metrics, tracing: o.tracing, lineages: o.lineages, passAll: o.requests.passAll, crew: o.crew,
		listeners: listeners{log: o.log, secrets: o.secrets, board: o.board, news: news, wake: o.requests.wake, conduct: o.conduct},
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
		board: o.board, metrics: o.metrics, store: o.store, log: o.log, redact: o.secrets.Redact,
	})
	if err != nil {
		return nil, err
	}
	g.webhooks = &webhooks{receiver: o.hooks, forges: c.Forges, followers: g.followers, publisher: g.publisher, crew: o.crew}
	g.conductor = newConductor(conductorOptions{
		config: c, followers: g.followers, fleet: g.fleet, publisher: g.publisher, webhooks: g.webhooks, base: g.base, requests: o.requests, news: news,
		passes: o.passes, planAccounts: o.planAccounts, crew: o.crew, board: o.board, metrics: o.metrics, tracing: o.tracing, secrets: o.secrets, log: o.log,
		gone: o.gone, loss: func() { o.loss(o.book.Read().Lost) },
	})
	return g, g.publisher.openNotifier(c.Notify, notify.Options{Instance: c.Instance, Logger: o.log, Version: o.version, Sent: o.metrics.Notification})
}

// newPublisher makes the clients of forges. It opens no journal.
func newPublisher(c *config.Config, fs followers, base func() *fleet.Base, o generationOptions) (*publisher, error) {
	forges, err := makeForges(c, fs, o.metrics, o.tracing)
	if err != nil {
		return nil, err
	}
	redact := o.secrets.Redact
	return &publisher{
		forges: forges, shared: o.crew != nil,
		statuses: commits.Options{
			Instance: c.Instance, PageURL: c.PublicURL, Forges: forges, Store: o.store, Held: fs.heldBy(o.crew), Redact: redact, Logger: o.log, Wrote: o.metrics.StatusWrite,
		},
		pulls: reviewOptions{
			config: c, followers: fs, crew: o.crew, board: o.board, metrics: o.metrics, store: o.store, log: o.log, redact: redact,
			common: pulls.Options{
				Base: base, Accounts: o.planAccounts, Redact: redact, Approver: o.book, Approved: o.requests.passAll, Withdrawn: o.withdrawn, DB: o.store,
				PageURL: c.PublicURL, Turns: o.turns, Assume: simulate.Assumptions{Share: c.AWS.Share()}, Within: o.foreseeing,
				Event: o.board.Event, Metrics: o.metrics, Logger: o.log,
			},
		},
	}, nil
}
