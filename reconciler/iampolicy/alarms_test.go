package iampolicy_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/iampolicy"
	"github.com/weir-gitops/weir/render/intent"
)

// TestAlarmsOfGatesAreRead by the roles of all targets, whichever of them holds the
// FleetRollout.
func TestAlarmsOfGatesAreRead(t *testing.T) {
	for _, asks := range []bool{false, true} {
		gate := intent.RolloutGate{Name: "ready", NodesReady: &intent.NodesReadyGate{}}
		if asks {
			gate = intent.RolloutGate{Name: "alarms", CloudWatchAlarms: &intent.AlarmsGate{Alarms: []string{"errors"}}}
		}
		r := iampolicy.Roles{Instance: "fleet"}
		for name, set := range map[string]*intent.Set{"one": {Rollouts: []intent.FleetRollout{{Gates: []intent.RolloutGate{gate}}}}, "two": {}} {
			r.Add(iampolicy.Need{Target: name, Account: "123456789012", Region: "eu-west-1", Instance: "fleet", ApplyRole: "arn:aws:iam::123456789012:role/" + name, Set: set})
		}
		policies := r.Policies(func(a iampolicy.Access) bool { return a == iampolicy.Apply })
		if len(policies) != 2 {
			t.Fatalf("%d policies", len(policies))
		}
		for _, p := range policies {
			if text, err := json.Marshal(p); err != nil || strings.Contains(string(text), "cloudwatch:DescribeAlarms") != asks {
				t.Errorf("gates ask: %v, %s, %v", asks, text, err)
			}
		}
	}
}
