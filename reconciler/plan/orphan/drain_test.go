package orphan

import (
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/observed"
)

func TestDrainWaits(t *testing.T) {
	in := func(id, state string, protected bool) observed.Instance {
		return observed.Instance{ID: id, LifecycleState: state, Protected: protected}
	}
	for name, tt := range map[string]struct {
		g    observed.Group
		want string
	}{
		"on their way out":           {observed.Group{Instances: []observed.Instance{in("i-1", "Terminating:Wait", true), in("i-2", "Terminating", false)}}, ""},
		"about to go":                {observed.Group{Instances: []observed.Instance{in("i-1", "InService", false)}}, ""},
		"one protected":              {observed.Group{Instances: []observed.Instance{in("i-1", "InService", false), in("i-2", "InService", true)}}, "i-2 are protected"},
		"retained":                   {observed.Group{Instances: []observed.Instance{in("i-1", "Terminating:Retained", false)}}, "i-1 are retained"},
		"on standby":                 {observed.Group{Instances: []observed.Instance{in("i-1", "Standby", false)}}, "i-1 are on standby"},
		"Terminate suspended":        {observed.Group{SuspendedProcesses: []string{"Launch", "Terminate"}, Instances: []observed.Instance{in("i-1", "InService", false)}}, "process Terminate is suspended"},
		"another process suspended":  {observed.Group{SuspendedProcesses: []string{"Launch"}, Instances: []observed.Instance{in("i-1", "InService", false)}}, ""},
		"suspended, and all leaving": {observed.Group{SuspendedProcesses: []string{"Terminate"}, Instances: []observed.Instance{in("i-1", "Terminating:Wait", false)}}, ""},
	} {
		if got := drainWaits(tt.g); got != tt.want && (tt.want == "" || !strings.Contains(got, tt.want)) {
			t.Errorf("%s: got %q, want %q", name, got, tt.want)
		}
	}
}
