package events

import (
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/statustest"
)

func TestDriftNamesItsFields(t *testing.T) {
	s := statustest.StepFor(step.Update, step.AutoScalingGroup, "default/web", "web")
	s.Drift = &step.Drift{}
	s.Changes = []step.Change{{Field: "maxSize", From: 7, To: 20}, {Field: "tags", From: strings.Repeat("x", 100), To: "y"}, {Field: "minSize", To: 1}, {Field: "zones"}}
	_, events := Between(Known{}, statustest.With(statustest.Report("prod", statustest.Pool("prod", "web")), step.Done, s), statustest.Noon, false)
	const want = "AWS differs, although Git did not change: update auto scaling group web (maxSize 7 → 20, tags, minSize (none) → 1 and 1 more field)"
	if len(events) == 0 || events[0].Kind != "drift-found" || events[0].Text != want {
		t.Errorf("told %+v, want %s", events, want)
	}
}

func TestWhatEndedIsNamed(t *testing.T) {
	scale := statustest.StepFor(step.Update, step.ManagedNodegroup, "default/gpu", "gpu")
	scale.Changes = []step.Change{{Field: "scaling.maxSize", From: 2, To: 4}}
	began := statustest.With(statustest.Report("prod", statustest.Pool("prod", "gpu", statustest.Managed)), step.Done, scale)
	began.Outcomes[0].Result.UpdateID = "u-1"
	told, _ := Between(Known{}, began, statustest.Noon, false)
	_, events := Between(told, statustest.Report("prod", statustest.Pool("prod", "gpu", statustest.Managed)), statustest.Noon, false)
	if len(events) == 0 || events[0].Kind != "nodegroup-update-succeeded" || events[0].Text != "the change of scaling.maxSize succeeded" {
		t.Errorf("told %+v", events)
	}
	told, _ = Between(Known{}, statustest.Report("prod", statustest.Pool("prod", "web", statustest.Rolling(10, 3))), statustest.Noon, false)
	_, events = Between(told, statustest.Report("prod", statustest.Pool("prod", "web", statustest.Rolling(60, 1))), statustest.Noon, false)
	if len(events) == 0 || events[0].Text != "60 %, 1 instance left" {
		t.Errorf("told %+v", events)
	}
}

// Each case is what is known of a pool or AWSLaunchConfig, and what follows. The cases of a block
// show what decides if several things are true.
func TestStatesOfDrift(t *testing.T) {
	for _, tc := range []struct {
		name string
		is   driftFacts
		want driftState
	}{
		{"nothing differs", driftFacts{wanted: true}, noDrift},
		{"Git changed it", driftFacts{planned: true}, noDrift},
		{"somebody changed AWS", driftFacts{planned: true, drifts: true}, driftFound},
		{"somebody changed AWS, and this pass corrected it", driftFacts{planned: true, drifts: true, mended: true}, driftFound},

		{"it still differs", driftFacts{known: true, planned: true, drifts: true}, driftStays},
		{"it still differs, and Git changed too", driftFacts{known: true, planned: true}, driftStays},
		{"weir's step is done, its machines are on their way", driftFacts{known: true, mended: true, wanted: true, changing: true}, driftStays},
		{"weir's step is done, and something else differs", driftFacts{known: true, mended: true, planned: true}, driftStays},

		{"weir corrected it", driftFacts{known: true, mended: true, wanted: true}, driftMended},
		{"somebody else corrected it", driftFacts{known: true, wanted: true}, driftGone},
		{"the pool was deleted in Git", driftFacts{known: true, mended: true}, notWanted},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got := tc.is.state(); got != tc.want {
				t.Errorf("%q, want %q", got, tc.want)
			}
		})
	}
}
