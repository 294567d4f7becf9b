package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accept"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/edit"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/board"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/proposal"
	"github.com/weir-gitops/weir/status/proposal/accepts"
	"github.com/weir-gitops/weir/status/pulls"
)

// accepting proposes to keep what AWS has of a source's pools, with a token that is in no other
// client.
type accepting struct {
	*accepts.Source
	pusher *transport.Pusher
	due    chan struct{}
}

// makeAccepts makes what people may ask to keep what AWS has, for the sources whose forge the
// configuration lets weir push to for that.
func (g *generation) makeAccepts() error {
	g.accepts = map[string]*accepting{}
	for _, f := range g.config.Forges {
		if !f.Accepts() {
			continue
		}
		client, pusher, err := g.pushing(f)
		if err != nil {
			return err
		}
		a := g.app
		name, address := f.Push.By()
		g.accepts[f.Source] = &accepting{accepts.New(accepts.Options{
			Options: proposal.Options{
				Source: f.Source, PageURL: g.config.PublicURL, Author: name, Address: address, Every: min(g.followers[f.Source].config.Interval, mostAccepts),
				Forge: client, Git: g.followers[f.Source].git, Pusher: pusher, Redact: a.o.Secrets.Redact, Event: a.board.Event, Logger: a.log,
			},
			Fleet: acceptor{g, f.Source},
		}), pusher, make(chan struct{}, 1)}
	}
	return nil
}

// mostAccepts is how long nobody asks AWS at most whether an open pull request is needed still.
const mostAccepts = 5 * time.Minute

// keepAccepts turns while the daemon runs.
func (g *generation) keepAccepts(ctx context.Context, name string, s *accepting) error {
	defer s.pusher.Close()
	return g.proposing(ctx, name, "what AWS has", s.due, func(store state.Store, of *follower) (time.Time, error) {
		now, early := g.acceptsNow(of)
		if early {
			return time.Now().Add(unled), nil
		}
		again, err := s.Turn(ctx, store, now)
		if errors.Is(err, pulls.ErrEarly) || errors.Is(err, pulls.ErrBusy) {
			return time.Now().Add(unled), nil
		}
		return again, err
	})
}

func (g *generation) acceptsNow(of *follower) (now proposal.Now, early bool) {
	head := of.now().Snapshot
	return proposal.Now{Time: time.Now().UTC(), Head: head.Revision, Base: of.branch()}, head.Revision == "" || g.base.Load() == nil
}

// accept has a pull request opened that keeps what AWS has of a pool.
func (s *site) accept(ctx context.Context, r commands.AcceptRequest) (out commands.Accepted, err error) {
	a := s.app
	g := a.gen.Load()
	t, known := a.board.Target(r.Target)
	if !known {
		return out, &gates.Fault{Message: fmt.Sprintf("there is no target %q", r.Target), Hint: "weir status names them"}
	}
	pool := r.Pool
	if !strings.Contains(pool, "/") {
		pool = "default/" + pool
	}
	if !slices.Contains(daemon{a}.Pools(r.Target), pool) {
		return out, &gates.Fault{Message: fmt.Sprintf("the target %s has no pool %q", r.Target, pool), Hint: "name it with its namespace, as weir status " + r.Target + " does"}
	}
	may := g.accepts[t.Source]
	if may == nil {
		return out, &gates.Fault{Message: "weir may not propose to keep what AWS has: nothing lets it push for that to the source " + t.Source,
			Hint: "add accept to push.for of the source's entry of forges, with a tokenFile that may push; or edit the files yourself with weir import --update DIR --config FILE"}
	}
	if why, hint := a.corrects(t, pool); why != "" {
		return out, &gates.Fault{Message: why, Hint: hint}
	}
	of := g.followers[t.Source]
	store := state.Store(a.store)
	if a.crew != nil {
		store = g.held(t.Source)
	}
	if !of.leads() || store == nil {
		return out, of.elsewhere("weir accept " + r.Target + " " + r.Pool)
	}
	now, early := g.acceptsNow(of)
	if early {
		return out, busy(pulls.ErrEarly)
	}
	e, f, err := may.Ask(ctx, store, now, accepts.Asked{Target: r.Target, Pool: pool, Fields: r.Fields, By: r.By})
	if err != nil {
		return out, busy(err)
	}
	select {
	case may.due <- struct{}{}:
	default:
	}
	out = commands.Accepted{Schema: "weir.dev/accept/v1", Target: r.Target, Pool: pool, Number: e.Number, URL: e.URL, Branch: e.Branch, Fields: f.Fields, More: append([]string{}, f.More...)}
	return out, nil
}

// elsewhere says which member speaks for a source of which this one does not, and how to ask it.
func (f *follower) elsewhere(command string) *gates.Fault {
	again := "ask again in a moment; weir members names who owns the source then"
	now := f.crew.Mirror().Snapshot()
	o := now.Owner(f.key())
	i := slices.IndexFunc(now.Alive, func(a coord.Alive) bool { return a.Session == o.Session })
	switch {
	case i < 0 || o.Released:
		return &gates.Fault{Message: "no daemon speaks for the source " + f.config.Name + " at this moment, which proposes its changes", Hint: again}
	case o.Member == f.crew.Name():
		return &gates.Fault{Message: "this daemon has just begun to speak for the source " + f.config.Name + ", or is about to hand it over", Hint: again}
	case now.Alive[i].Member.Address == "":
		return &gates.Fault{Message: "the daemon " + o.Member + " speaks for the source " + f.config.Name + ", and proposes its changes", Hint: "ask that one: " + command + " --server, with its address"}
	}
	return &gates.Fault{Message: "the daemon " + o.Member + " speaks for the source " + f.config.Name + ", and proposes its changes", Hint: "ask that one: " + command + " --server " + now.Alive[i].Member.Address}
}

// corrects says that weir is about to put a pool right, and what to do first; empty where
// something holds it.
func (a *App) corrects(t board.TargetState, pool string) (why, hint string) {
	r := t.Last
	if r == nil || r.Suspended || r.ReportOnly {
		return "", ""
	}
	for _, held := range a.book.Read().Suspensions {
		if (held.Target == "" || held.Target == t.Name) && (held.Pool == "" || held.Pool == pool) {
			return "", ""
		}
	}
	var of []step.Step
	if r.Plan != nil {
		of = slices.DeleteFunc(slices.Clone(r.Plan.Steps), func(s step.Step) bool { return s.Pool != pool && !slices.Contains(s.Pools, pool) })
	}
	if len(of) > 0 && !slices.ContainsFunc(of, func(s step.Step) bool { return s.Held == "" }) {
		return "", ""
	}
	return "weir puts the pool " + pool + " of " + t.Name + " right at its next pass, so there would be nothing left to keep",
		"suspend it until the pull request is merged: weir suspend " + t.Name + " " + pool + " --reason TEXT --for 24h; make the change in AWS again if it is gone already"
}

// acceptor finds what AWS has otherwise of a source's pools. It looks with the roles for plans,
// as for pull requests.
type acceptor struct {
	g      *generation
	source string
}

// look plans one target of a commit.
func (p acceptor) look(ctx context.Context, s snapshot.Snapshot, target string) (review *fleet.Review, d *reconciler.Desired, seen *observed.State, planned *plan.Plan, err error) {
	base := p.g.base.Load()
	if base == nil {
		return nil, nil, nil, nil, pulls.ErrEarly
	}
	review, reports, err := p.g.app.drafts.Trusted(ctx, base, fleet.Proposal{Source: p.source, Snapshot: s, Owner: "what AWS has of " + p.source, Only: []string{target}})
	if err != nil {
		return nil, nil, nil, nil, err
	}
	i := slices.IndexFunc(reports, func(r *plan.Report) bool { return r.Target == target })
	if i < 0 {
		return nil, nil, nil, nil, &gates.Fault{Message: "the target " + target + " was not planned", Hint: "look at weir's page"}
	}
	if r := reports[i]; r.Plan == nil || r.Err != nil {
		return nil, nil, nil, nil, &gates.Fault{Message: "the target " + target + " cannot be planned: " + faultOf(r), Hint: "mend that first"}
	}
	for _, b := range review.Batches {
		for k := range b.Targets {
			if b.Targets[k].Policy.Target == target && b.Targets[k].Set != nil && b.Sight != nil {
				return review, &b.Targets[k], &b.Sight.State, reports[i].Plan, nil
			}
		}
	}
	return nil, nil, nil, nil, &gates.Fault{Message: "the target " + target + " does not render", Hint: "look at weir's page"}
}

// unknownOf says why a plan does not tell what AWS has otherwise of a pool.
func unknownOf(d *reconciler.Desired, p *plan.Plan, pool string) string {
	if d.Whole || slices.ContainsFunc(d.Set.Pools, func(p intent.Pool) bool { return p.Key.String() == pool }) {
		return p.Unplanned(pool)
	}
	return partly(d)
}

// Find implements accepts.Fleet.
func (p acceptor) Find(ctx context.Context, on string, a accepts.Asked) (out accepts.Found, err error) {
	git := p.g.followers[p.source].git
	head, err := git.At(ctx, on)
	if err != nil {
		return out, err
	}
	review, d, seen, before, err := p.look(ctx, head, a.Target)
	if err != nil {
		return out, err
	}
	if why := unknownOf(d, before, a.Pool); why != "" {
		return out, &gates.Fault{Message: "what AWS has otherwise of the pool " + a.Pool + " is not known: " + why, Hint: "mend that first"}
	}
	c := accept.Choice{Pools: []string{a.Pool}, Fields: a.Fields}
	if t, _ := p.g.app.board.Target(a.Target); len(a.Fields) == 0 && t.Last != nil && t.Last.Plan != nil {
		c.Drifted = accept.Drifted(t.Last.Plan) // what a commit changed and AWS has not yet is to come
	}
	out.Fields = accept.Find(a.Target, d.Set, before, seen, c)
	wishes := accept.Wishes(out.Fields)
	if len(wishes) == 0 {
		return out, nil
	}
	var places []edit.Place
	for _, at := range review.Places {
		places = append(places, edit.Place{Name: at.Name, Dir: at.Dir, Options: at.Options})
	}
	done, err := edit.Set(ctx, head.Tree, places, wishes)
	if err != nil {
		return out, err
	}
	accept.Take(out.Fields, wishes, done)
	if out.Files = done.Files; len(out.Files) == 0 {
		return out, nil
	}
	edited, err := git.Edited(ctx, on, out.Files)
	if err != nil {
		return out, err
	}
	_, d, _, after, err := p.look(ctx, edited, a.Target)
	if err != nil {
		return out, err
	}
	if why := unknownOf(d, after, a.Pool); why != "" {
		return out, &gates.Fault{Message: "with what AWS has, the pool " + a.Pool + " cannot be planned: " + why, Hint: "write it into the manifests by hand"}
	}
	out.More = accept.Prove(out.Fields, before, after)
	return out, nil
}
