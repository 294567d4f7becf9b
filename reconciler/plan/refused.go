package plan

import (
	"slices"

	"github.com/weir-gitops/weir/reconciler/step"
)

// FailureRefused is the failure of a pool of which AWS refused a step, and refuses it
// for as long as nothing is changed.
const FailureRefused = "step-refused"

// TellRefused says of a pool that AWS refused a step of it, and what has it tried again.
// What the plan says is wrong with the pool comes first.
func TellRefused(s *PoolStatus, o *step.Outcome) {
	key := s.Namespace + "/" + s.Name
	if s.FailureReason != "" || o.Step.Pool != key && !slices.Contains(o.Step.Pools, key) {
		return
	}
	s.FailureReason = FailureRefused
	s.FailureMessage = "AWS refused to " + string(o.Step.Verb) + " the " + string(o.Step.Resource) + " " + o.Step.Name + ": " + o.Err.Error() + "; " + o.Lift
	for i := range s.Conditions {
		if c := &s.Conditions[i]; c.Type == conditionReady && c.Status != truth(true) {
			c.Severity, c.Reason, c.Message = "Error", "StepRefused", s.FailureMessage
		}
	}
}
