package page

import (
	"testing"

	"github.com/weir-gitops/weir/status/report"
)

// The gravest state of the fleet makes the headline; the line below it has what else is changing.
func TestHeadlinesOfTheFleet(t *testing.T) {
	type byPhase = map[report.Phase]int
	for _, tc := range []struct {
		name  string
		is    fleetCounts
		want  string
		mood  report.Phase
		moves string
	}{
		{"nothing is configured", fleetCounts{}, "No target is configured yet.", report.Waiting, ""},
		{"weir just started", fleetCounts{targets: 2, by: byPhase{report.Waiting: 2}}, "Waiting for the first pass.", report.Waiting, ""},
		{"a target fails, others change",
			fleetCounts{targets: 3, pools: 5, rolling: 1, stale: 2, by: byPhase{report.Failing: 1, report.Moving: 2}},
			"1 target needs attention.", report.Failing, "1 pool rolls, the state of 2 pools is unknown"},
		{"a target changes, another waits for an approval",
			fleetCounts{targets: 2, pools: 4, converged: 1, rolling: 2, scaling: 1, approvals: 1, by: byPhase{report.Moving: 1, report.Held: 1}},
			"1 of 4 pools converged.", report.Moving, "2 pools roll, 1 pool changes, 1 plan waits for an approval"},
		{"plans wait for approvals", fleetCounts{targets: 2, pools: 4, approvals: 2, by: byPhase{report.Held: 2}},
			"2 plans wait for an approval.", report.Held, ""},
		{"a target is held", fleetCounts{targets: 2, by: byPhase{report.Held: 1, report.Suspended: 1}}, "1 target held.", report.Held, ""},
		{"a target is suspended", fleetCounts{targets: 2, by: byPhase{report.Suspended: 1, report.Converged: 1}}, "1 target suspended.", report.Suspended, ""},
		{"all is done", fleetCounts{targets: 2, by: byPhase{report.Converged: 2}}, "All pools have converged.", report.Converged, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text, mood := tc.is.headline()
			if moves := tc.is.moves(text); text != tc.want || mood != tc.mood || moves != tc.moves {
				t.Errorf("%q (%s), %q", text, mood, moves)
			}
		})
	}
}
