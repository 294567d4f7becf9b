package wording_test

import (
	"testing"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/wording"
)

func TestRunsSaysWhichPoolRunsWhichVersion(t *testing.T) {
	s := plan.LaunchConfigStatus{Pools: []string{"n/a", "n/b", "n/c", "n/d", "n/e"}, Versions: []plan.SharedVersion{
		{Version: 1, Pools: []string{"n/a", "n/b", "n/c"}, WantedBy: []string{"n/a"}},
		{Version: 3, Pools: []string{"n/c"}, WantedBy: []string{"n/b", "n/c", "n/d"}},
	}}
	want := "n/a v1, n/b v1 → v3, n/c v1 and v3 → v3, n/d → v3, n/e"
	if got := wording.Runs(s); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
