package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/follow"
	"github.com/weir-gitops/weir/cmd/weir/internal/propose"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/commits"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/metrics"
	"github.com/weir-gitops/weir/status/proposal"
	"github.com/weir-gitops/weir/status/proposal/accepts"
	"github.com/weir-gitops/weir/status/proposal/images"
	"github.com/weir-gitops/weir/status/proposal/reverts"
	"github.com/weir-gitops/weir/status/pulls"
)

// proposer opens the pull requests of one kind for a source, with a token that no other client uses.
type proposer struct {
	source, what string
	turn         turn
	pusher       *transport.Pusher
	// due says that there is something new: a rollout was stopped, a user made a request, or a new commit
	// is followed.
	due signal
}

// turn does the missing work, and returns the time of the next turn if nothing new happens.
type turn func(ctx context.Context, store state.Store, now proposal.Now) (again time.Time, err error)

const (
	// unled is the time until a daemon checks again whether it owns a source.
	unled = 5 * time.Second
	// settleImages is the minimum time between a check of images and a check that a commit triggers.
	settleImages = 2 * time.Minute
	// mostAccepts is the maximum time until AWS is read again to find out whether an open pull request is
	// still needed.
	mostAccepts = 5 * time.Minute
)

// proposals opens pull requests for the sources with a forge to which weir may push.
type proposals struct {
	proposalOptions
	proposers []*proposer
	// accepts contains, by source, the proposers for requests to keep changes in AWS.
	accepts map[string]*accepts.Source
}

// proposalOptions are the dependencies of proposals.
type proposalOptions struct {
	config    *config.Config
	followers follow.Sources
	// base returns the base of proposals; nil before the first composition.
	base   func() *fleet.Base
	drafts *pulls.Drafts
	// statuses contains the forges for statuses, by source.
	statuses map[string]commits.Forge
	// rolled returns the state of a source's rollouts at a commit.
	rolled  func(source, head string) (reverts.Standing, error)
	current *current.State
	metrics *metrics.Metrics
	store   state.Store
	log     *slog.Logger
	redact  func(string) string
}

// makeProposals returns the proposers of pull requests that the forges of the configuration turn on: reverts,
// values of AWS, and newer images.
func makeProposals(o proposalOptions) (*proposals, error) {
	p := &proposals{proposalOptions: o, accepts: map[string]*accepts.Source{}}
	for _, f := range o.config.Forges {
		_, newer := o.config.Proposes(f)
		for _, kind := range []struct {
			wanted bool
			what   string
			make   func(config.Forge, proposal.Options) turn
		}{{f.Reverts(), "reverts", p.newReverts}, {f.Accepts(), "what AWS has", p.newAccepts}, {newer, "newer images", p.newImages}} {
			if !kind.wanted {
				continue
			}
			o, pusher, err := p.pushing(f)
			if err != nil {
				return nil, err
			}
			p.proposers = append(p.proposers, &proposer{f.Source, kind.what, kind.make(f, o), pusher, newSignal()})
		}
	}
	return p, nil
}

// pushing returns the common options of all kinds of proposals, with the token that may push.
func (p *proposals) pushing(f config.Forge) (o proposal.Options, pusher *transport.Pusher, err error) {
	of := p.followers[f.Source]
	own := f
	own.TokenFile = f.Push.TokenFile
	client, err := follow.NewForge(own, of, "", p.metrics)
	if err != nil {
		return o, nil, err
	}
	settings := of.Config.Settings
	settings.Auth = transport.Auth{TokenFile: f.Push.TokenFile, Username: f.Profile().GitUser}
	pusher, err = transport.NewPusher(strings.TrimSuffix(strings.TrimRight(f.URL, "/"), ".git")+".git", settings)
	name, address := f.Push.By()
	return proposal.Options{
		Source: f.Source, PageURL: p.config.PublicURL, Author: name, Address: address, Forge: client, Git: of.Git, Pusher: pusher,
		Redact: p.redact, Event: p.current.Activity.Add, Logger: p.log,
	}, pusher, err
}

// planned returns a Source that renders and plans commits of a source.
func (p *proposals) planned(source string) propose.Source {
	return propose.Source{Name: source, Git: p.followers[source].Git, Base: p.base, Drafts: p.drafts}
}

func (p *proposals) newReverts(f config.Forge, o proposal.Options) turn {
	standing := func(head string) (reverts.Standing, error) { return p.rolled(f.Source, head) }
	s := reverts.New(reverts.Options{
		Options: o, Instance: p.config.Instance, Statuses: p.statuses[f.Source], Git: p.followers[f.Source].Git,
		Fleet: propose.Reverts{Source: p.planned(f.Source), Rollouts: standing},
	})
	return func(ctx context.Context, store state.Store, now proposal.Now) (again time.Time, err error) {
		if _, err := standing(now.Head); err != nil { // then nothing is requested from the forge either
			return again, err
		}
		return s.Turn(ctx, store, now)
	}
}

func (p *proposals) newImages(f config.Forge, o proposal.Options) turn {
	o.Every, _ = p.config.Proposes(f)
	return images.New(images.Options{
		Options: o, Settle: min(o.Every, settleImages), Git: p.followers[f.Source].Git, Fleet: propose.Images{Source: p.planned(f.Source)},
		Counted: func(pools, open int) { p.metrics.Images(f.Source, pools, open) },
	}).Turn
}

func (p *proposals) newAccepts(f config.Forge, o proposal.Options) turn {
	o.Every = min(p.followers[f.Source].Config.Interval, mostAccepts)
	last := func(target string) *plan.Plan {
		t, _ := p.current.Targets.Find(target)
		if t.Last == nil {
			return nil
		}
		return t.Last.Plan
	}
	s := accepts.New(accepts.Options{Options: o, Fleet: propose.Accepts{Source: p.planned(f.Source), Last: last}})
	p.accepts[f.Source] = s
	return s.Turn
}

// wake wakes the proposers of a source. It never blocks.
func (p *proposals) wake(source string) {
	for _, of := range p.proposers {
		if of.source == source {
			of.due.send()
		}
	}
}

// standing returns the state of a source, and the store of its proposals. The store is nil if this
// daemon does not own the source. early reports that nothing has been read yet.
func (p *proposals) standing(source string) (store state.Store, now proposal.Now, early bool) {
	of := p.followers[source]
	store = p.store
	if of.Member != nil {
		store = p.followers.Held(source)
	}
	if !of.Leads() {
		store = nil
	}
	head := of.Now().Snapshot
	return store, proposal.Now{Time: time.Now().UTC(), Head: head.Revision, Base: of.Branch()}, head.Revision == "" || p.base() == nil
}

// propose runs turns while the daemon runs and owns a source: when there is something new, at the time that
// the last turn returned, and at least as often as the source polls Git.
func (p *proposals) propose(ctx context.Context, of *proposer) error {
	defer of.pusher.Close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-of.due:
		}
		store, now, early := p.standing(of.source)
		if store == nil || early {
			timer.Reset(unled)
			continue
		}
		again, err := of.turn(ctx, store, now)
		if errors.Is(err, pulls.ErrEarly) || errors.Is(err, pulls.ErrBusy) {
			timer.Reset(unled)
			continue
		}
		if err != nil && ctx.Err() == nil {
			p.log.Error("cannot check proposals", "what", of.what, "source", of.source, "error", p.redact(err.Error()))
		}
		wait := p.followers[of.source].Config.Interval
		if !again.IsZero() {
			wait = min(wait, max(time.Until(again), time.Second))
		}
		timer.Reset(wait)
	}
}
