package report_test

import (
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/statustest"
)

// A name that AWS does not know is one fault: its diagnostic, which has the line. While
// it may still be on its way there is none, and another failure beside it is told too.
func TestANameThatAWSDoesNotKnowIsOneFault(t *testing.T) {
	refused := func(u observed.UnknownName) step.Outcome {
		return step.Outcome{Step: statustest.StepFor(step.Create, step.AutoScalingGroup, "default/web", "web"), Status: step.Failed,
			Err: &observed.Error{Kind: observed.Invalid, Service: "autoscaling", Operation: "CreateAutoScalingGroup", Code: "ValidationError", Unknown: u}}
	}
	r := statustest.Report("prod", statustest.Pool("prod", "web"))
	r.Outcomes = []step.Outcome{refused(observed.UnknownName{Kind: "key pair", Name: "ops"})}
	if text, more := report.FirstFault(r); more != 0 || !strings.Contains(text, "ValidationError") {
		t.Errorf("without its diagnostic: %q and %d more", text, more)
	}
	r.Diagnostics = diag.List{{Severity: diag.Error, Code: "unknown-name", Summary: "AWS knows no key pair ops", Position: diag.Position{File: "web.yaml", Line: 18, Column: 17}}}
	if text, more := report.FirstFault(r); more != 0 || text != "AWS knows no key pair ops (web.yaml:18:17)" {
		t.Errorf("with it: %q and %d more", text, more)
	}
	r.Outcomes = append(r.Outcomes, refused(observed.UnknownName{}))
	if text, more := report.FirstFault(r); more != 1 {
		t.Errorf("with another failure: %q and %d more", text, more)
	}
}
