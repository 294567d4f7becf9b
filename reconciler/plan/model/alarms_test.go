package model_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/rollout"
)

// TestAlarmsOfGovernedPools goes from what is to be read to what is told.
func TestAlarmsOfGovernedPools(t *testing.T) {
	in := model.Input{State: &observed.State{}}
	in.Policy.Gates.Alarms = []string{"errors", "gone", "late"}
	if got := in.UnreadAlarms(); got != nil {
		t.Errorf("%v is read for what is not governed", got)
	}
	in.Policy.Gates.Rollouts = map[string]rollout.Permit{"default/web": {}}
	if got := in.UnreadAlarms(); !cmp.Equal(got, []string{"errors", "gone", "late"}) {
		t.Errorf("%v is read", got)
	}
	in.State.Alarms = map[string]string{"errors": "OK", "gone": ""}
	in.State.AlarmsUnknown = "late was denied"
	if got := in.UnreadAlarms(); got != nil {
		t.Errorf("%v is read once more, though AWS would not say", got)
	}
	pools := []rollout.Pool{{}, {}}
	in.NoteAlarms(pools)
	for _, p := range pools {
		if f := p.Facts; f.AlarmsUnknown != "late was denied" || !cmp.Equal(f.Alarms, []rollout.Alarm{{Name: "errors", State: "OK"}, {Name: "gone"}}) {
			t.Errorf("%+v", f)
		}
	}
	in.State.Alarms["late"], in.State.AlarmsUnknown = "ALARM", ""
	in.NoteAlarms(pools)
	if f := pools[1].Facts; f.AlarmsUnknown != "" || len(f.Alarms) != 3 || f.Alarms[2].State != "ALARM" {
		t.Errorf("%+v", f)
	}
}
