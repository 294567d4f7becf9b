package report

import (
	"testing"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/lastgood"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/wording"
)

// What a pass came to that waits is told in the words that everybody else has for it.
func TestEachWaitIsToldInTheSameWords(t *testing.T) {
	for _, w := range step.Waits {
		r := &plan.Report{Target: "prod", Plan: &plan.Plan{Steps: []step.Step{{Held: w.Hold, HeldReason: "until the cows come home"}}}}
		if got, want := RunText(r), wording.WaitsOf("prod", r.Plan.Steps)[0].Text(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	r := &plan.Report{Target: "prod", Suspended: true, Plan: &plan.Plan{Steps: []step.Step{{}}}}
	if got := RunText(r); got != "suspended: planned only" {
		t.Errorf("without a step that is held: %q", got)
	}
}

// What is said of a held target and of a wait may hold what must not be shown: it comes out of
// the manifests, or of what somebody wrote.
func TestHoldsAreRedacted(t *testing.T) {
	r := &plan.Report{
		Fallback: &plan.Fallback{Revision: "a", Why: "x: secret", Verdict: lastgood.Verdict{Answer: lastgood.Differs, Why: "secret"}},
		Plan:     &plan.Plan{Steps: []step.Step{{Held: step.HeldSuspended, HeldReason: "secret", HeldEnds: "secret"}}},
	}
	hide := Redact(func(s string) string {
		if s == "secret" || s == "x: secret" {
			return "***"
		}
		return s
	})
	out := hide.Report(r)
	if h, s := out.Fallback, out.Plan.Steps[0]; h.Why != "***" || h.Verdict.Why != "***" || s.HeldReason != "***" || s.HeldEnds != "***" {
		t.Errorf("%+v, %+v", h, s)
	}
	if r.Fallback.Why != "x: secret" {
		t.Error("the report itself was changed")
	}
}
