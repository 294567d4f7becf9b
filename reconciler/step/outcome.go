package step

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// ErrLater says that a step was not asked of AWS: no spare call was left for a Patient
// step, or its basis has changed since it was planned.
var ErrLater = errors.New("left to a later pass")

// Result says what an executed step made.
type Result struct {
	// Template is the template version that the step made, with its number.
	Template observed.TemplateRef
	// RefreshID and UpdateID name what the step started.
	RefreshID string
	UpdateID  string
	// Existed says that AWS refused to make the resource, because it is there already: what
	// the pass observed lacked it.
	Existed bool
}

// OutcomeStatus says how a step ended.
type OutcomeStatus string

// Outcome statuses.
const (
	Done    OutcomeStatus = "done"
	Failed  OutcomeStatus = "failed"
	Skipped OutcomeStatus = "skipped" // an earlier step of the pool failed, or weir is stopping
	Held    OutcomeStatus = "held"
)

// Outcome is the result of a step.
type Outcome struct {
	Step     Step
	Status   OutcomeStatus
	Result   Result
	Err      *observed.Error
	Duration time.Duration
	// Parked says that AWS refused the step, or one before it of the same pool, for
	// good: it is left alone for a while or until the pool's steps change.
	Parked bool
	// Lift says how to make weir try a parked step again, where a person can.
	Lift string
}

// MarshalJSON writes what commands and the API say of an outcome: which step it
// was and how it ended, without the step's changes and request.
func (o Outcome) MarshalJSON() ([]byte, error) {
	out := struct {
		Verb     Verb     `json:"verb"`
		Resource Resource `json:"resource"`
		Pool     string   `json:"pool"`
		// LaunchConfig is set instead of Pool for a template that several pools share.
		LaunchConfig string             `json:"launchConfig,omitempty"`
		Name         string             `json:"name"`
		Status       OutcomeStatus      `json:"status"`
		Error        string             `json:"error,omitempty"`
		Kind         observed.ErrorKind `json:"kind,omitempty"`
		Lift         string             `json:"lift,omitempty"`
		Duration     float64            `json:"durationSeconds"`
	}{
		Verb: o.Step.Verb, Resource: o.Step.Resource, Pool: o.Step.Pool, LaunchConfig: o.Step.LaunchConfig, Name: o.Step.Name,
		Status: o.Status, Lift: o.Lift, Duration: o.Duration.Seconds(),
	}
	if o.Err != nil {
		out.Error, out.Kind = o.Err.Error(), o.Err.Kind
	}
	return json.Marshal(out)
}
