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
	// leave ends the loop, and wait waits for its end.
	leave context.CancelFunc
	wait  func(context.Context) error
	// scope is nil until it is opened. targets lists the targets of the pass in progress. passes.mu guards both.
	scope   *reconciler.Scope
	targets []string
	// records contains the requests of users at the start of the pass in progress.
	records gates.Records
	// permits contains, by source, the permits of the governed pools that may roll in that pass.
	permits map[string][]rollout.Permit
	// lease permits the passes of the loop; nil for a single daemon.
	lease *coord.Lease
	// marks writes the last good revisions; nil before the first pass. Only passes use it.
	marks *marks
	// silent says that AWS did not answer at the last check.
	silent bool
}

// withdrawnGrant returns a grant (an approval in use) of a target of the pass in progress that users have
// withdrawn since the pass started. It returns nil if users have withdrawn no grant. The caller holds passes.mu.
func (l *loop) withdrawnGrant(now gates.Records) *gates.Grant {
	for _, g := range l.records.Grants {
		if slices.Contains(l.targets, g.Target) && !slices.ContainsFunc(now.Grants, func(o gates.Grant) bool { return o.Holds(g) }) {
			return &g
		}
	}
	return nil
}

// loops contains the loops of scopes. passes.mu guards it.
type loops struct {
	of map[reconciler.ScopeKey]*loop
	// run contains the loops that have not ended, including unwanted ones.
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

// nudge starts passes over scopes immediately.
func (ls loops) nudge(keys []reconciler.ScopeKey) {
	for _, key := range keys {
		if l := ls.of[key]; l != nil {
			l.Nudge()
		}
	}
}

// elsewhere reports whether the current pass of another loop contains a target, because the target was
// moved from there.
func (ls loops) elsewhere(l *loop, target string) bool {
	for other := range ls.run {
		if other != l && !other.Began().IsZero() && slices.Contains(other.targets, target) {
			return true
		}
	}
	return false
}

// awaited returns the targets whose steps an approval now permits, because the plan of a target has
// arrived. An approval that was given earlier, such as in the pull request, waited for this plan.
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

// dropGrants removes the approvals of a target from the passes in progress, so that their end does not interrupt
// a pass.
func (ls loops) dropGrants(target string) {
	for _, l := range ls.of {
		l.records.Grants = slices.DeleteFunc(slices.Clone(l.records.Grants), func(g gates.Grant) bool { return g.Target == target })
	}
}
