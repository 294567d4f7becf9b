package page

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/report"
)

// fleetCounts contains the numbers of the overview.
type fleetCounts struct {
	targets, pools int
	by             map[report.Phase]int // targets by phase
	// approvals is the number of targets whose plans wait for an approval.
	approvals int
	// Each pool is counted in at most one of these. The last pass did not read stale ones.
	converged, rolling, scaling, stale int
	// before is the part of ready that an earlier pass saw, because the last one did not see the pool.
	ready, desired, before int32
}

// countFleet counts the pools and targets for the overview. by has the number of targets in each phase.
func countFleet(items []poolItem, all []current.TargetState, by map[report.Phase]int) fleetCounts {
	c := fleetCounts{targets: len(all), pools: len(items), by: by}
	for i := range all {
		if awaitsApproval(&all[i]) {
			c.approvals++
		}
	}
	for _, i := range items {
		c.desired += i.pool.DesiredReplicas
		c.ready += i.pool.ReadyReplicas
		switch {
		case i.stale:
			c.stale++
			c.before += i.pool.ReadyReplicas
		case i.pool.Converged:
			c.converged++
		case i.pool.Rollout != nil:
			c.rolling++
		case i.mark == report.Moving:
			c.scaling++
		}
	}
	return c
}

// headline describes the state of the fleet in one sentence. mood is the phase of that state.
func (c fleetCounts) headline() (text string, mood report.Phase) {
	switch {
	case c.targets == 0:
		return "No target is configured yet.", report.Waiting
	case c.by[report.Failing] > 0:
		return fmt.Sprintf("%s %s attention.", plural(c.by[report.Failing], "target"), needs(c.by[report.Failing])), report.Failing
	case c.by[report.Waiting] == c.targets:
		return "Waiting for the first pass.", report.Waiting
	case c.by[report.Moving] > 0 || c.by[report.Waiting] > 0:
		return fmt.Sprintf("%s of %s converged.", thousands(c.converged), plural(c.pools, "pool")), report.Moving
	case c.approvals > 0:
		return approvalWords(c.approvals), report.Held
	case c.by[report.Held] > 0:
		return plural(c.by[report.Held], "target") + " held.", report.Held
	case c.by[report.Suspended] > 0:
		return plural(c.by[report.Suspended], "target") + " suspended.", report.Suspended
	}
	return "All pools have converged.", report.Converged
}

// moves describes the current changes, without those in the headline.
func (c fleetCounts) moves(headline string) string {
	var moves []string
	if c.rolling > 0 {
		moves = append(moves, plural(c.rolling, "pool")+" "+verb(c.rolling, "rolls", "roll"))
	}
	if c.scaling > 0 {
		moves = append(moves, plural(c.scaling, "pool")+" "+verb(c.scaling, "changes", "change"))
	}
	if words := approvalWords(c.approvals); c.approvals > 0 && words != headline {
		moves = append(moves, strings.TrimSuffix(words, "."))
	}
	if c.stale > 0 {
		moves = append(moves, "the state of "+plural(c.stale, "pool")+" is unknown")
	}
	return strings.Join(moves, ", ")
}

func (c fleetCounts) figures() []figure {
	readyNote := "ready"
	if c.before > 0 {
		readyNote += ", " + thousands(int(c.before)) + " of them as of an earlier pass"
	}
	return []figure{
		{"Targets", fmt.Sprintf("%s / %s", thousands(c.by[report.Converged]), thousands(c.targets)), "converged"},
		{"Pools", fmt.Sprintf("%s / %s", thousands(c.converged), thousands(c.pools)), "converged"},
		{"Instances", fmt.Sprintf("%s / %s", thousands(int(c.ready)), thousands(int(c.desired))), readyNote},
	}
}

func approvalWords(n int) string {
	return plural(n, "plan") + " " + verb(n, "waits", "wait") + " for " + step.WaitOf(step.HeldApproval).For + "."
}

func needs(n int) string { return verb(n, "needs", "need") }

func verb(n int, one, many string) string {
	if n == 1 {
		return one
	}
	return many
}
