package statustest

import (
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/lastgood"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
)

func Created() *plan.Report {
	return With(Report("prod", Pool("prod", "web", Unconverged(plan.PhaseProvisioning), Sized(0, 3))), step.Done,
		StepFor(step.Create, step.LaunchTemplate, "default/web", "prod-web"), StepFor(step.Create, step.AutoScalingGroup, "default/web", "prod-web"))
}

func Until(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		if ok() {
			return
		}
	}
	t.Fatal("it did not happen within 10 s")
}

func HeldStep(h step.Hold) step.Step {
	s := StepFor(step.Delete, step.AutoScalingGroup, "default/web", "prod-web")
	s.Held, s.Reason = h, "owned by another weir"
	return s
}

// Waiting returns a step with a hold and a specific reason for it.
func Waiting(h step.Hold) step.Step {
	s := HeldStep(h)
	s.HeldReason = "until the cows come home"
	return s
}

// HeldTo returns the report of a target whose commit cannot be rendered: held at a revision, or only
// observed if revision is empty.
func HeldTo(revision string, pools ...plan.PoolStatus) *plan.Report {
	r := Report("prod", pools...)
	d := diag.Diagnostic{Severity: diag.Error, Code: "yaml-invalid", Summary: "did not find expected ',' or ']'", Position: diag.Position{File: "overlays/prod/web.yaml", Line: 1, Column: 5}}
	r.Fallback = &plan.Fallback{Revision: revision, Why: d.Position.String() + ": " + d.Summary, Verdict: lastgood.Verdict{Answer: lastgood.Fits}}
	if revision == "" {
		r.Plan, r.Fallback.Verdict = nil, lastgood.Verdict{Answer: lastgood.Differs, Why: "none of 4 earlier commits can be applied in its place"}
	}
	r.Diagnostics = diag.List{d, r.Fallback.Diagnostic()}
	if r.Plan != nil {
		r.Plan.Diagnostics = r.Diagnostics
	}
	return r
}
