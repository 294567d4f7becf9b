package app

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/proposal"
	"github.com/weir-gitops/weir/status/proposal/reverts"
	"github.com/weir-gitops/weir/status/pulls"
)

// reverting proposes the reverts of a source, with a token that is in no other client.
type reverting struct {
	*reverts.Source
	pusher *transport.Pusher
	// due says that there is news: something was stopped, or a commit is followed.
	due chan struct{}
}

// nudge has the reverts of a source looked at now. It never blocks.
func (g *generation) nudge(source string) {
	if r := g.reverts[source]; r != nil {
		select {
		case r.due <- struct{}{}:
		default:
		}
	}
}

// makeReverts makes what proposes to revert stopped changes, for the sources whose forge the
// configuration lets weir push to.
func (g *generation) makeReverts() error {
	g.reverts = map[string]*reverting{}
	for _, f := range g.config.Forges {
		if !f.Reverts() {
			continue
		}
		r, err := g.newReverts(f)
		if err != nil {
			return err
		}
		g.reverts[f.Source] = r
	}
	return nil
}

func (g *generation) newReverts(f config.Forge) (*reverting, error) {
	a, of := g.app, g.followers[f.Source]
	client, pusher, err := g.pushing(f)
	if err != nil {
		return nil, err
	}
	name, address := f.Push.By()
	return &reverting{reverts.New(reverts.Options{
		Options: proposal.Options{
			Source: f.Source, PageURL: g.config.PublicURL, Author: name, Address: address,
			Forge: client, Pusher: pusher, Redact: a.o.Secrets.Redact, Event: a.board.Event, Logger: a.log,
		},
		Instance: g.config.Instance, Statuses: g.forges[f.Source], Git: of.git, Fleet: reverter{g, f.Source},
	}), pusher, make(chan struct{}, 1)}, nil
}

// revert turns while the daemon runs.
func (g *generation) revert(ctx context.Context, name string, r *reverting) error {
	defer r.pusher.Close()
	return g.proposing(ctx, name, "reverts", r.due, func(store state.Store, of *follower) (time.Time, error) {
		head := of.now().Snapshot
		if _, err := (reverter{g, name}).Standing(head.Revision); errors.Is(err, pulls.ErrEarly) || head.Revision == "" {
			return time.Now().Add(unled), nil
		}
		return r.Turn(ctx, store, proposal.Now{Time: time.Now().UTC(), Head: head.Revision, Base: of.branch()})
	})
}

// reverter renders commits of a source that nothing has pushed, as pull requests are.
type reverter struct {
	g      *generation
	source string
}

// Standing implements reverts.Fleet.
func (r reverter) Standing(head string) (out reverts.Standing, err error) {
	if out.Record, err = r.g.app.rollouts.ledger.Read(r.source); err != nil {
		return out, err
	}
	input, known := r.g.app.rollouts.input(r.source, head, out.Record)
	if !known {
		return out, pulls.ErrEarly
	}
	out.Pools, out.Missing = input.Pools, input.Missing
	return out, nil
}

// Render implements reverts.Fleet.
func (r reverter) Render(ctx context.Context, s snapshot.Snapshot, only []string) ([]reverts.Target, error) {
	base := r.g.base.Load()
	if base == nil {
		return nil, pulls.ErrEarly
	}
	review, err := base.Review(ctx, r.g.app.planAccounts, fleet.Proposal{Source: r.source, Snapshot: s, Owner: "reverts", Only: only})
	if err != nil {
		return nil, err
	}
	var out []reverts.Target
	for _, b := range review.Batches {
		for i := range b.Targets {
			d := &b.Targets[i]
			if !slices.Contains(review.Touched, d.Policy.Target) {
				continue
			}
			t := reverts.Target{Name: d.Policy.Target, Launches: map[string]string{}}
			switch {
			case d.Err != nil:
				t.Fault = d.Err.Error()
			case d.Set == nil || !d.Whole:
				t.Fault = partly(d)
			default:
				for k := range d.Set.Pools {
					t.Launches[d.Set.Pools[k].Key.String()] = launched(&d.Set.Pools[k])
				}
			}
			out = append(out, t)
		}
	}
	return out, nil
}

// launched stands for what decides what a pool's machines are, as Git says it.
func launched(p *intent.Pool) string {
	var of struct {
		Template  *intent.LaunchTemplate
		Own       *intent.ForeignTemplate
		Overrides []intent.ForeignTemplate
		Version   string
		Nodegroup [3]string
	}
	if p.LaunchTemplate != nil {
		t := *p.LaunchTemplate
		t.Tags = nil
		of.Template = &t
	}
	of.Own, of.Overrides, of.Version = p.ForeignTemplate, p.ForeignOverrides, p.Version
	if n := p.Nodegroup; n != nil {
		of.Nodegroup = [3]string{n.AMIType, n.ReleaseVersion, n.Version}
	}
	text, err := json.Marshal(of)
	if err != nil {
		return "" // which differs from nothing
	}
	return string(text)
}
