package app

import (
	"context"
	"slices"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/rollout"
)

// loop is the loop of one scope.
type loop struct {
	*reconciler.Loop
	key reconciler.ScopeKey
	// leave ends it, and wait waits for the end.
	leave context.CancelFunc
	wait  func(context.Context) error
	// scope is nil before it was opened; in names the targets of the pass under way.
	// Both are guarded by passes.mu.
	scope *reconciler.Scope
	in    []string
	// records holds the requests of people at the start of the pass under way.
	records gates.Records
	// permits holds the permits, by source, of the governed pools that may roll in that pass.
	permits map[string][]rollout.Permit
	// lease permits its passes; nil if this daemon is alone.
	lease *coord.Lease
	// marks write the last good revisions; nil before the first pass. Only passes use it.
	marks *marks
	// silent says that AWS did not answer at the last check.
	silent bool
}

// withdrawn is an approval under which the pass under way acts, and that is on record no more.
// The caller holds mu.
func (l *loop) withdrawn(now gates.Records) *gates.Grant {
	for _, g := range l.records.Grants {
		if slices.Contains(l.in, g.Target) && !slices.ContainsFunc(now.Grants, func(o gates.Grant) bool { return o.Holds(g) }) {
			return &g
		}
	}
	return nil
}

// loops are the loops of scopes. passes.mu guards them.
type loops struct {
	of map[reconciler.ScopeKey]*loop
	// run are the loops that have not ended, wanted or not.
	run map[*loop]bool
}

// runs reports whether a scope has a loop that has not ended.
func (ls loops) runs(key reconciler.ScopeKey) bool {
	if ls.of[key] != nil {
		return true
	}
	for l := range ls.run {
		if l.key == key {
			return true
		}
	}
	return false
}

// any reports whether one of several scopes has a loop.
func (ls loops) any(keys []reconciler.ScopeKey) bool {
	return slices.ContainsFunc(keys, func(key reconciler.ScopeKey) bool { return ls.of[key] != nil })
}

// nudge starts passes over scopes now.
func (ls loops) nudge(keys []reconciler.ScopeKey) {
	for _, key := range keys {
		if l := ls.of[key]; l != nil {
			l.Nudge()
		}
	}
}

// elsewhere reports whether a target is in the pass that another loop makes now: it
// has come over from there.
func (ls loops) elsewhere(l *loop, target string) bool {
	for other := range ls.run {
		if other != l && !other.Began().IsZero() && slices.Contains(other.in, target) {
			return true
		}
	}
	return false
}

// awaited returns the targets whose steps an approval permits now that the plan of a target is
// known. An approval that was given earlier, such as in the pull request, waited for this plan.
func (ls loops) awaited(target string, before gates.Before) (targets []string) {
	for _, l := range ls.of {
		for _, a := range l.records.Approvals {
			ready := gates.Approved(a, before)
			if !slices.ContainsFunc(ready, func(g gates.Grant) bool { return g.Target == target }) {
				continue
			}
			for _, g := range ready {
				targets = append(targets, g.Target)
			}
		}
	}
	return targets
}

// done makes the passes under way forget the approvals of a target, so that their end stops none.
func (ls loops) done(target string) {
	for _, l := range ls.of {
		l.records.Grants = slices.DeleteFunc(slices.Clone(l.records.Grants), func(g gates.Grant) bool { return g.Target == target })
	}
}
