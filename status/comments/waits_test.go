package comments

import (
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/statustest"
	"github.com/weir-gitops/weir/status/wording"
)

// A comment tells a wait in the words that everybody else has for it.
func TestEachWaitIsToldInTheSameWords(t *testing.T) {
	for _, w := range step.Waits {
		r := statustest.With(statustest.Report("prod", statustest.Pool("prod", "web")), step.Held, statustest.Waiting(w.Hold))
		text := Text(report.Pull{State: report.PullPlanned, Reports: []*plan.Report{r}}, TextOptions{Instance: "production", Forge: forge.ProfileOf(forge.GitHub)})
		if want := "\n- " + wording.Escape(wording.WaitsOf("prod", r.Plan.Steps)[0].Text()) + "\n"; !strings.Contains(text, want) {
			t.Errorf("%s: the comment lacks %q:\n%s", w.Hold, want, text)
		}
	}
}
