package field

import (
	"reflect"
	"strconv"
	"testing"

	"github.com/weir-gitops/weir/render/intent"
)

// TestAZeroIsAValue: what points to 0 or false was written, or is set in AWS; it is no
// absent member, whatever AWS takes that for.
func TestAZeroIsAValue(t *testing.T) {
	number := func(v int32) *int32 { return &v }
	for _, tt := range []struct {
		member      string
		want, found *int32
		holds       bool
	}{
		{"DefaultCooldown", number(0), number(300), false},
		{"DefaultCooldown", number(0), nil, false},
		{"DefaultCooldown", number(300), number(0), false},
		{"DefaultCooldown", number(300), nil, true},
		{"DefaultCooldown", number(0), number(0), true},
		{"DefaultInstanceWarmup", number(0), nil, false},
		{"DefaultInstanceWarmup", number(0), number(-1), false},
		{"DefaultInstanceWarmup", number(-1), number(0), false},
		{"DefaultInstanceWarmup", number(-1), nil, true},
		{"MaxInstanceLifetime", number(0), nil, true},
		{"HealthCheckGracePeriod", number(0), number(0), true},
	} {
		var want, found intent.GroupSettings
		m := GroupMember()[tt.member]
		m.Of(&want).Set(reflect.ValueOf(tt.want))
		m.Of(&found).Set(reflect.ValueOf(tt.found))
		if got := m.Holds(m.Of(&want), m.Of(&found)); got != tt.holds {
			t.Errorf("%s %s, found %s: holds %v", tt.member, text(tt.want), text(tt.found), got)
		}
	}
	low, none := number(0), number(-1)
	policy := func(low, high *int32) *intent.GroupSettings {
		return &intent.GroupSettings{Options: intent.GroupOptions{InstanceMaintenancePolicy: &intent.HealthyPercentages{MinHealthyPercentage: low, MaxHealthyPercentage: high}}}
	}
	m := GroupMember()["InstanceMaintenancePolicy"]
	if m.Holds(m.Of(policy(low, none)), m.Of(policy(none, none))) {
		t.Error("a policy with 0 is taken for none")
	}
}

func text(n *int32) string {
	if n == nil {
		return "nothing"
	}
	return strconv.Itoa(int(*n))
}
