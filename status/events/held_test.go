package events

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/lastgood"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/events/kinds"
	"github.com/weir-gitops/weir/status/statustest"
	"github.com/weir-gitops/weir/status/wording"
)

// searching is a pass in which the revision that was tried does not fit, unknown one that says
// nothing of it, as a daemon's first ones.
func searching() *plan.Report {
	r := statustest.HeldTo("")
	r.Fallback.Revision = statustest.ShaNew
	return r
}

// unanswered is a pass in which AWS did not answer.
func unanswered() *plan.Report {
	r := searching()
	r.Fallback.Verdict.Answer = lastgood.Unclear
	r.Err = &observed.Error{Kind: observed.Transient, Service: "ec2", Operation: "DescribeSubnets", Code: "ConnectionFailed"}
	return r
}

func unknown() *plan.Report {
	r := statustest.HeldTo("")
	r.Fallback, r.Diagnostics = nil, r.Diagnostics[:1]
	return r
}

// A hold of many days is told once, whoever tells of it: what was announced is read again after
// a restart, and by another member.
func TestAHoldIsToldOnceOverRestarts(t *testing.T) {
	held := statustest.HeldTo(statustest.ShaOld, statustest.Pool("prod", "web"))
	told, first := Between(Known{}, held, statustest.Noon, true)
	for range 3 {
		told = restarted(t, told)
		for _, r := range []*plan.Report{unknown(), searching(), unanswered(), held} {
			var again []Event
			told, again = Between(told, r, statustest.Noon.Add(time.Hour), true)
			if again = slices.DeleteFunc(again, func(e Event) bool {
				return !strings.Contains(e.Kind, "hold-ended") && !strings.Contains(e.Kind, "observed") && e.Kind != "target-held"
			}); len(again) > 0 {
				t.Errorf("told again: %+v", again)
			}
		}
	}
	if len(first) == 0 || first[0].Kind != "target-held" || first[0].Facts["to"] != statustest.ShaOld || told.Held == nil || !told.Held.Since.Equal(statustest.Noon) {
		t.Errorf("%+v, %+v", first, told.Held)
	}
}

// Waits are told in the words that statuses and the page have for them.
func TestWaitsAreToldAsElsewhere(t *testing.T) {
	for _, w := range step.Waits {
		r := statustest.With(statustest.Report("prod"), step.Held, statustest.Waiting(w.Hold))
		_, list := Between(Known{}, r, statustest.Noon, true)
		for _, e := range list {
			if want := wording.WaitsOf("prod", r.Plan.Steps)[0].Of(1); e.Reason == string(w.Hold) && !strings.HasSuffix(e.Text, " "+want) {
				t.Errorf("%s: %q lacks %q", w.Hold, e.Text, want)
			}
		}
		if told := slices.ContainsFunc(list, func(e Event) bool { return e.Reason == string(w.Hold) }); told != (kinds.Holds[w.Hold] != "") {
			t.Errorf("%s: an event of it: %v", w.Hold, told)
		}
	}
}
