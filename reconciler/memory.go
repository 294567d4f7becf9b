package reconciler

import (
	"maps"
	"time"

	"github.com/weir-gitops/weir/reconciler/drain"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/refusals"
)

// memory is what a Scope remembers from one pass to the next: what neither Git nor AWS says. A
// restart forgets all of it.
type memory struct {
	// Steps that run in parallel use these parts, and so may callers of the Scope. Each has a lock.

	refusals  refusals.Record
	refreshes refreshMemory
	tokens    clientTokens
	updates   nodegroupUpdates
	keepers   tokenKeepers

	// Only the goroutine of the pass uses these parts.

	clusters clusterNames
	drainers map[string]*drain.Drainer // by target
	budgets  budgetMemory
	skipped  skippedSlots
	levels   lookupLevels
	planned  plannedCommits
	pools    poolMemory
	reads    partialReads
	// waiting are the rollouts that waited for a slot in the last pass, in order.
	waiting []plan.Waiting
}

// view returns a copy of what planning depends on.
func (m *memory) view(now time.Time) model.Memory {
	v := model.Memory{Started: m.updates.view(), Settled: m.pools.settled, InService: maps.Clone(m.pools.inService), Refusals: m.refusals.View(now)}
	v.Refreshes, v.Cancelled = m.refreshes.view()
	return v
}
