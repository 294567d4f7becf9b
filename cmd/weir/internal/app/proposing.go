package app

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/forge"
)

// pushing makes what proposes changes on a forge, with a token that is in no other client.
func (g *generation) pushing(f config.Forge) (forge.Client, *transport.Pusher, error) {
	of := g.followers[f.Source]
	own := f
	own.TokenFile = f.Push.TokenFile
	client, err := newForge(own, of, "", g.app.metrics)
	if err != nil {
		return nil, nil, err
	}
	settings := of.config.Settings
	settings.Auth = transport.Auth{TokenFile: f.Push.TokenFile, Username: f.Profile().GitUser}
	pusher, err := transport.NewPusher(strings.TrimSuffix(strings.TrimRight(f.URL, "/"), ".git")+".git", settings)
	return client, pusher, err
}

// branch is the one that the source follows, and that changes are proposed into.
func (f *follower) branch() string {
	return cmp.Or(f.config.Ref.Branch, strings.TrimPrefix(f.now().Snapshot.Ref, "refs/heads/"))
}

// unled is how often it is looked at whether this daemon speaks for a source by now.
const unled = 5 * time.Second

// proposing calls turn while the daemon runs and speaks for a source: when there is news, when
// turn asks for it, and in any case as often as the source asks Git.
func (g *generation) proposing(ctx context.Context, name, what string, news <-chan struct{}, turn func(state.Store, *follower) (again time.Time, err error)) error {
	of := g.followers[name]
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-timer.C:
		case <-news:
		}
		store := state.Store(g.app.store)
		if g.app.crew != nil {
			store = g.held(name)
		}
		if !of.leads() || store == nil {
			timer.Reset(unled)
			continue
		}
		again, err := turn(store, of)
		if err != nil && ctx.Err() == nil {
			g.app.log.Error("proposals cannot be looked at", "what", what, "source", name, "error", g.app.o.Secrets.Redact(err.Error()))
		}
		wait := of.config.Interval
		if !again.IsZero() {
			wait = min(wait, max(time.Until(again), time.Second))
		}
		timer.Reset(wait)
	}
}
