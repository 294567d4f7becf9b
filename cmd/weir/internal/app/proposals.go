package app

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/propose"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/proposal"
	"github.com/weir-gitops/weir/status/proposal/accepts"
	"github.com/weir-gitops/weir/status/proposal/images"
	"github.com/weir-gitops/weir/status/proposal/reverts"
	"github.com/weir-gitops/weir/status/pulls"
)

// proposer opens the pull requests of one kind for a source, with a token that is in no other client.
type proposer struct {
	source, what string
	turn         turn
	pusher       *transport.Pusher
	// due says that there is news: something was stopped, somebody asked, or a commit is followed.
	due chan struct{}
}

// turn does what is missing, and returns the time of the next turn without news.
type turn func(ctx context.Context, store state.Store, now proposal.Now) (again time.Time, err error)

const (
	// unled is the time until a daemon looks again whether it speaks for a source.
	unled = 5 * time.Second
	// settleImages is the time from a check of images to the next check that a commit requests.
	settleImages = 2 * time.Minute
	// mostAccepts bounds the time until AWS is asked again whether an open pull request is needed.
	mostAccepts = 5 * time.Minute
)

// makeProposers makes what proposes changes, for the sources whose forge the configuration lets weir
// push to.
func (g *generation) makeProposers() error {
	g.accepts = map[string]*accepts.Source{}
	for _, f := range g.config.Forges {
		_, newer := g.config.Proposes(f)
		for _, kind := range []struct {
			wanted bool
			what   string
			make   func(config.Forge, proposal.Options) turn
		}{{f.Reverts(), "reverts", g.newReverts}, {f.Accepts(), "what AWS has", g.newAccepts}, {newer, "newer images", g.newImages}} {
			if !kind.wanted {
				continue
			}
			o, pusher, err := g.pushing(f)
			if err != nil {
				return err
			}
			g.proposers = append(g.proposers, &proposer{f.Source, kind.what, kind.make(f, o), pusher, make(chan struct{}, 1)})
		}
	}
	return nil
}

// pushing makes what all kinds of proposals need, with the token that may push.
func (g *generation) pushing(f config.Forge) (o proposal.Options, pusher *transport.Pusher, err error) {
	a, of := g.app, g.followers[f.Source]
	own := f
	own.TokenFile = f.Push.TokenFile
	client, err := newForge(own, of, "", a.metrics)
	if err != nil {
		return o, nil, err
	}
	settings := of.config.Settings
	settings.Auth = transport.Auth{TokenFile: f.Push.TokenFile, Username: f.Profile().GitUser}
	pusher, err = transport.NewPusher(strings.TrimSuffix(strings.TrimRight(f.URL, "/"), ".git")+".git", settings)
	name, address := f.Push.By()
	return proposal.Options{
		Source: f.Source, PageURL: g.config.PublicURL, Author: name, Address: address, Forge: client, Git: of.git, Pusher: pusher,
		Redact: a.o.Secrets.Redact, Event: a.board.Event, Logger: a.log,
	}, pusher, err
}

// planned renders and plans commits of a source.
func (g *generation) planned(source string) propose.Source {
	return propose.Source{Name: source, Git: g.followers[source].git, Base: g.base.Load, Drafts: g.app.drafts}
}

func (g *generation) newReverts(f config.Forge, o proposal.Options) turn {
	r := g.app.rollouts
	standing := func(head string) (out reverts.Standing, err error) {
		if out.Record, err = r.ledger.Read(f.Source); err != nil {
			return out, err
		}
		input, known := r.input(f.Source, head, out.Record)
		if out.Pools, out.Missing = input.Pools, input.Missing; !known {
			err = pulls.ErrEarly
		}
		return out, err
	}
	s := reverts.New(reverts.Options{
		Options: o, Instance: g.config.Instance, Statuses: g.forges[f.Source], Git: g.followers[f.Source].git,
		Fleet: propose.Reverts{Source: g.planned(f.Source), Rollouts: standing},
	})
	return func(ctx context.Context, store state.Store, now proposal.Now) (again time.Time, err error) {
		if _, err := standing(now.Head); err != nil { // so the forge is not asked either
			return again, err
		}
		return s.Turn(ctx, store, now)
	}
}

func (g *generation) newImages(f config.Forge, o proposal.Options) turn {
	o.Every, _ = g.config.Proposes(f)
	return images.New(images.Options{
		Options: o, Settle: min(o.Every, settleImages), Git: g.followers[f.Source].git, Fleet: propose.Images{Source: g.planned(f.Source)},
		Counted: func(pools, open int) { g.app.metrics.Images(f.Source, pools, open) },
	}).Turn
}

func (g *generation) newAccepts(f config.Forge, o proposal.Options) turn {
	o.Every = min(g.followers[f.Source].config.Interval, mostAccepts)
	last := func(target string) *plan.Plan {
		t, _ := g.app.board.Target(target)
		if t.Last == nil {
			return nil
		}
		return t.Last.Plan
	}
	s := accepts.New(accepts.Options{Options: o, Fleet: propose.Accepts{Source: g.planned(f.Source), Last: last}})
	g.accepts[f.Source] = s
	return s.Turn
}

// wake makes the proposers of a source look at it now. It never blocks.
func (g *generation) wake(source string) {
	for _, p := range g.proposers {
		if p.source == source {
			select {
			case p.due <- struct{}{}:
			default:
			}
		}
	}
}

// branch returns the branch that the source follows, and that changes are proposed into.
func (f *follower) branch() string {
	return cmp.Or(f.config.Ref.Branch, strings.TrimPrefix(f.now().Snapshot.Ref, "refs/heads/"))
}

// standing returns the state of a source, and the store of its proposals. The store is nil if this
// daemon does not own the source; early reports that nothing was read yet.
func (g *generation) standing(source string) (store state.Store, now proposal.Now, early bool) {
	of := g.followers[source]
	store = state.Store(g.app.store)
	if g.app.crew != nil {
		store = g.held(source)
	}
	if !of.leads() {
		store = nil
	}
	head := of.now().Snapshot
	return store, proposal.Now{Time: time.Now().UTC(), Head: head.Revision, Base: of.branch()}, head.Revision == "" || g.base.Load() == nil
}

// propose turns while the daemon runs and speaks for a source: when there is news, when a turn asks
// for it, and in any case as often as the source asks Git.
func (g *generation) propose(ctx context.Context, p *proposer) error {
	defer p.pusher.Close()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-p.due:
		}
		store, now, early := g.standing(p.source)
		if store == nil || early {
			timer.Reset(unled)
			continue
		}
		again, err := p.turn(ctx, store, now)
		if errors.Is(err, pulls.ErrEarly) || errors.Is(err, pulls.ErrBusy) {
			timer.Reset(unled)
			continue
		}
		if err != nil && ctx.Err() == nil {
			g.app.log.Error("proposals cannot be looked at", "what", p.what, "source", p.source, "error", g.app.o.Secrets.Redact(err.Error()))
		}
		wait := g.followers[p.source].config.Interval
		if !again.IsZero() {
			wait = min(wait, max(time.Until(again), time.Second))
		}
		timer.Reset(wait)
	}
}
