package app

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/proposal/accepts"
	"github.com/weir-gitops/weir/status/pulls"
)

// accept opens a pull request that keeps the values that AWS has for a pool.
func (s *site) accept(ctx context.Context, r commands.AcceptRequest) (out commands.Accepted, err error) {
	open := s.now.proposals()
	t, known := s.current.Targets.Find(r.Target)
	if !known {
		return out, &gates.Fault{Message: fmt.Sprintf("there is no target %q", r.Target), Hint: "weir status names them"}
	}
	pool := r.Pool
	if !strings.Contains(pool, "/") {
		pool = "default/" + pool
	}
	if !slices.Contains(poolsOf(s.current.Targets, r.Target), pool) {
		return out, &gates.Fault{Message: fmt.Sprintf("target %s has no pool %q", r.Target, pool), Hint: "name it with its namespace, as weir status " + r.Target + " does"}
	}
	may := open.accepts[t.Source]
	if may == nil {
		return out, &gates.Fault{Message: "weir has no permission to propose AWS's values: no entry of forges lets it push them to the source " + t.Source,
			Hint: "add accept to push.for of the source's entry of forges, with a tokenFile that may push; or edit the files yourself with weir import --update DIR --config FILE"}
	}
	if why, hint := s.corrects(t, pool); why != "" {
		return out, &gates.Fault{Message: why, Hint: hint}
	}
	store, now, early := open.standing(t.Source)
	switch {
	case store == nil:
		return out, open.followers[t.Source].Elsewhere("weir accept " + r.Target + " " + r.Pool)
	case early:
		return out, busy(pulls.ErrEarly)
	}
	e, f, err := may.Ask(ctx, store, now, accepts.Asked{Target: r.Target, Pool: pool, Fields: r.Fields, By: r.By})
	if err != nil {
		return out, busy(err)
	}
	open.wake(t.Source)
	out = commands.Accepted{Schema: "weir.dev/accept/v1", Target: r.Target, Pool: pool, Number: e.Number, URL: e.URL, Branch: e.Branch, Fields: f.Fields, More: append([]string{}, f.More...)}
	return out, nil
}

// corrects explains that weir is about to correct a pool, and returns the remedy as hint. Both are empty if
// the correction is held.
func (s *site) corrects(t current.TargetState, pool string) (why, hint string) {
	r := t.Last
	if r == nil || r.Suspended || r.ReportOnly {
		return "", ""
	}
	for _, held := range s.recorder.Read().Suspensions {
		if (held.Target == "" || held.Target == t.Name) && (held.Pool == "" || held.Pool == pool) {
			return "", ""
		}
	}
	var of []step.Step
	if r.Plan != nil {
		of = slices.DeleteFunc(slices.Clone(r.Plan.Steps), func(of step.Step) bool { return of.Pool != pool && !slices.Contains(of.Pools, pool) })
	}
	if len(of) > 0 && !slices.ContainsFunc(of, func(s step.Step) bool { return s.Held == "" }) {
		return "", ""
	}
	return "weir puts the pool " + pool + " of " + t.Name + " right in its next pass, so no change would be left to keep",
		"suspend it until the pull request is merged: weir suspend " + t.Name + " " + pool + " --reason TEXT --for 24h; repeat the change in AWS if weir has already corrected it"
}
