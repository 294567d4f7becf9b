package plan

import (
	"strings"
	"testing"
)

func TestDrainWaits(t *testing.T) {
	in := func(id, state string, protected bool) Instance {
		return Instance{ID: id, LifecycleState: state, Protected: protected}
	}
	for name, tt := range map[string]struct {
		g    Group
		want string
	}{
		"on their way out":           {Group{Instances: []Instance{in("i-1", "Terminating:Wait", true), in("i-2", "Terminating", false)}}, ""},
		"about to go":                {Group{Instances: []Instance{in("i-1", "InService", false)}}, ""},
		"one protected":              {Group{Instances: []Instance{in("i-1", "InService", false), in("i-2", "InService", true)}}, "i-2 are protected"},
		"on standby":                 {Group{Instances: []Instance{in("i-1", "Standby", false)}}, "i-1 are on standby"},
		"Terminate suspended":        {Group{SuspendedProcesses: []string{"Launch", "Terminate"}, Instances: []Instance{in("i-1", "InService", false)}}, "process Terminate is suspended"},
		"another process suspended":  {Group{SuspendedProcesses: []string{"Launch"}, Instances: []Instance{in("i-1", "InService", false)}}, ""},
		"suspended, and all leaving": {Group{SuspendedProcesses: []string{"Terminate"}, Instances: []Instance{in("i-1", "Terminating:Wait", false)}}, ""},
	} {
		if got := drainWaits(tt.g); got != tt.want && (tt.want == "" || !strings.Contains(got, tt.want)) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
