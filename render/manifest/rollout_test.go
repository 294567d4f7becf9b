package manifest_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest"
)

func TestFleetRollouts(t *testing.T) {
	head := "apiVersion: weir.dev/v1alpha1\nkind: FleetRollout\nmetadata: {name: nodes}\nspec: "
	for spec, want := range map[string][]string{
		"{}": nil,
		"{waves: [{pools: 1, shares: [10, 100]}, {percent: 5}, {percent: 100}, {selector: {targets: [a]}}], bakeTime: 10m, maxMachines: 5, gates: [{name: a, nodesReady: {within: 5m}}]}": nil,
		"{wave: []}":                                                 {"unknown-field spec.wave"},
		"{waves: [{name: a}]}":                                       {"incomplete spec.waves[0]"},
		"{waves: [{pools: 1, percent: 5}]}":                          {"exclusive spec.waves[0].percent"},
		"{waves: [{percent: 5}, {percent: 5}]}":                      {"out-of-range spec.waves[1].percent"},
		"{waves: [{percent: 101}]}":                                  {"out-of-range spec.waves[0].percent"},
		"{waves: [{pools: 1, shares: [10, 5, 100]}]}":                {"out-of-range spec.waves[0].shares[1]"},
		"{waves: [{pools: 1, shares: [10]}]}":                        {"incomplete spec.waves[0].shares[0]"},
		"{waves: [{name: a, pools: 1}, {name: a, pools: 1}]}":        {"duplicate spec.waves[1].name"},
		"{bakeTime: -1m}":                                            {"out-of-range spec.bakeTime"},
		"{maxMachines: 0}":                                           {"out-of-range spec.maxMachines"},
		"{onFailure: retry}":                                         {"bad-enum spec.onFailure"},
		"{selector: {targets: ['']}}":                                {"bad-value spec.selector.targets[0]"},
		"{gates: [{name: a}]}":                                       {"incomplete spec.gates[0]"},
		"{gates: [{name: a, nodesReady: {within: 0s}}]}":             {"out-of-range spec.gates[0].nodesReady.within"},
		"{gates: [{name: a, cloudWatchAlarms: {alarms: []}}]}":       {"incomplete spec.gates[0].cloudWatchAlarms.alarms"},
		"{gates: [{name: a, prometheus: {provider: p, query: up}}]}": {"incomplete spec.gates[0].prometheus"},
		"{gates: [{name: a, prometheus: {provider: p, query: up, min: 3, max: 2}}]}":  {"mismatch spec.gates[0].prometheus.min"},
		"{gates: [{name: a, failedActivities: {}}, {name: a, failedActivities: {}}]}": {"duplicate spec.gates[1].name"},
		"{gates: [{failedActivities: {}}]}":                                           {"missing-required spec.gates[0].name"},
	} {
		set, faults := manifest.Intents(objects(t, stream(head+spec)), manifest.Options{})
		if d := cmp.Diff(want, briefly(faults, diag.Error)); d != "" {
			t.Errorf("%s (-want +got):\n%s", spec, d)
		}
		if (len(set.Rollouts) == 1) != (want == nil) {
			t.Errorf("%s: %d FleetRollouts", spec, len(set.Rollouts))
		}
	}
	set, _ := manifest.Intents(objects(t, stream(head+"{onFailure: rollback, bakeTime: 5m, waves: [{pools: 2}]}")), manifest.Options{})
	got := set.Rollouts[0]
	if !got.Rollback || got.BakeTime != 5*time.Minute || got.Waves[0].Pools != 2 || got.Key != (intent.Key{Namespace: "default", Name: "nodes"}) {
		t.Errorf("%+v", got)
	}
}
