package page

import (
	"testing"

	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/statustest"
)

func TestPagesAreToldOfChanges(t *testing.T) {
	b := testBoard("prod", "dev")
	url := serve(t, b)
	one, other := statustest.Listen(t, url), statustest.Listen(t, url)
	b.Targets.Report(t.Context(), statustest.Report("prod"))
	for _, l := range []*statustest.Listener{one, other} {
		name, change := l.Next()
		if name != "change" || change.All || len(change.Targets) != 1 || change.Targets[0] != "prod" {
			t.Errorf("told of %s %+v", name, change)
		}
	}
	b.Sources.Update(current.Source{Name: "fleet"})
	if name, change := one.Next(); name != "change" || !change.All {
		t.Errorf("told of %s %+v", name, change)
	}
	b.Pulls.Update(report.Pull{Source: "fleet", Number: 1})
	if name, change := one.Next(); name != "change" || !change.All {
		t.Errorf("told of %s %+v", name, change)
	}
}
