package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/board"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/proposal/accepts"
	"github.com/weir-gitops/weir/status/pulls"
)

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
	store, now, early := g.standing(t.Source)
	switch {
	case store == nil:
		return out, g.followers[t.Source].elsewhere("weir accept " + r.Target + " " + r.Pool)
	case early:
		return out, busy(pulls.ErrEarly)
	}
	e, f, err := may.Ask(ctx, store, now, accepts.Asked{Target: r.Target, Pool: pool, Fields: r.Fields, By: r.By})
	if err != nil {
		return out, busy(err)
	}
	g.wake(t.Source)
	out = commands.Accepted{Schema: "weir.dev/accept/v1", Target: r.Target, Pool: pool, Number: e.Number, URL: e.URL, Branch: e.Branch, Fields: f.Fields, More: append([]string{}, f.More...)}
	return out, nil
}

// elsewhere returns a fault that names the member that owns the source, if this member does not own
// it, and how to reach that member.
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
