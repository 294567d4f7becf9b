package workspace

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	_ "github.com/weir-gitops/weir/reconciler/cloudtest/checked"

	"github.com/weir-gitops/weir/reconciler/step"
)

func TestMergeTellsAStepOnceAsItEnded(t *testing.T) {
	outcome := func(name string, status step.OutcomeStatus) step.Outcome {
		return step.Outcome{Step: step.Step{Verb: step.Update, Name: name}, Status: status}
	}
	before := []step.Outcome{outcome("done", step.Done), outcome("later", step.Skipped), outcome("held", step.Held), outcome("tried", step.Failed), outcome("gone", step.Skipped)}
	after := []step.Outcome{outcome("later", step.Done), outcome("held", step.Held), outcome("tried", step.Done)}
	var got []string
	for _, o := range merge(before, after) {
		got = append(got, o.Step.Name+" "+string(o.Status))
	}
	want := []string{"done done", "later done", "held held", "tried done"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
