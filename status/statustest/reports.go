package statustest

import (
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
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
