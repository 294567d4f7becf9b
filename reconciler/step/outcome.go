package step

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// ErrLater means that a step was not sent to AWS: no spare call was left for a Patient step, or the
// step's basis has changed since it was planned.
var ErrLater = errors.New("left to a later pass")

// Result contains the results of an executed step.
type Result struct {
	// Template is the template version that the step made, with its number.
	Template observed.TemplateRef
	// RefreshID and UpdateID identify the refresh or update that the step started.
	RefreshID string
	UpdateID  string
	// Existed reports whether AWS refused to create the resource because it exists already,
	// although the pass's observation did not contain it.
	Existed bool
}

// OutcomeStatus is the way a step ended.
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
	// Parked reports whether AWS permanently refused the step, or an earlier step of the same
	// pool. weir does not retry it for a while, or until the pool's steps change.
	Parked bool
	// Lift describes how a person can make weir retry a parked step.
	Lift string
}

// MarshalJSON writes an outcome for commands and the API: the step and its result, without the
// step's changes and request.
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
