package current

import (
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/statustest"
)

func TestEndedPullsAreBounded(t *testing.T) {
	now := statustest.Noon
	b := New(Options{Now: func() time.Time { return now }})
	b.Pulls.Update(report.Pull{Source: "s", Number: 1_000_000, State: report.PullPlanned})
	for i := range int64(keptPulls + 20) {
		now = now.Add(time.Second)
		b.Pulls.Update(report.Pull{Source: "s", Number: i + 1, State: report.PullMerged})
	}
	list := b.Pulls.All()
	if len(list) != keptPulls+1 || list[0].Number != 1_000_000 || list[1].Number != keptPulls+20 || list[len(list)-1].Number != 21 {
		t.Errorf("%d are kept, from %d to %d", len(list), list[1].Number, list[len(list)-1].Number)
	}
}

// The plans of all pull requests that the page shows are bounded together: those that
// were told last are kept.
func TestPlansOfManyPullRequests(t *testing.T) {
	b := New(Options{})
	text := strings.Repeat("x", 1<<20)
	const many = report.KeptPlans>>20 + 10
	for n := range int64(many) {
		steps := []step.Step{{Verb: step.Update, Name: "a", Changes: []step.Change{{Field: "f", To: text}}}}
		b.Pulls.Update(report.Pull{Source: "s", Number: n, State: report.PullPlanned, Title: "t", Reports: []*plan.Report{{Target: "a", Plan: &plan.Plan{Target: "a", Steps: steps}}}})
	}
	kept := 0
	for _, p := range b.Pulls.All() {
		if len(p.Reports) > 0 {
			kept++
		}
		if p.Unkept != (len(p.Reports) == 0) || p.Title != "t" || p.Digests["a"] == "" {
			t.Errorf("%d: %+v", p.Number, p)
		}
	}
	if want := report.KeptPlans >> 20; kept < want-2 || kept > want {
		t.Errorf("%d plans of a MiB are kept, want some %d", kept, want)
	}
	if p, _ := b.Pulls.Find("s", many-1); p.Unkept {
		t.Error("the last one is not kept")
	}
}
