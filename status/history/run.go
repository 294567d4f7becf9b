package history

import (
	"encoding/json"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/report"
)

// Run is one pass in the history.
type Run struct {
	Time     time.Time    `json:"time"`
	Target   string       `json:"target"`
	Revision string       `json:"revision"`
	Subject  string       `json:"subject"`
	Phase    report.Phase `json:"phase"`
	Duration Seconds      `json:"durationSeconds"`
	Steps    StepCounts   `json:"steps"`
	// Text describes the result briefly.
	Text string `json:"text"`
}

// Seconds is a duration that is a number of seconds in JSON.
type Seconds time.Duration

// MarshalJSON writes seconds.
func (s Seconds) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(s).Seconds()) }

// UnmarshalJSON reads seconds.
func (s *Seconds) UnmarshalJSON(raw []byte) error {
	var n float64
	if err := json.Unmarshal(raw, &n); err != nil {
		return err
	}
	*s = Seconds(n * float64(time.Second))
	return nil
}

// StepCounts counts the steps of a pass by result.
type StepCounts struct {
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
	Held    int `json:"held"`
}

// CountSteps counts outcomes by status.
func CountSteps(outcomes []step.Outcome) StepCounts {
	var c StepCounts
	for _, o := range outcomes {
		switch o.Status {
		case step.Done:
			c.Done++
		case step.Failed:
			c.Failed++
		case step.Skipped:
			c.Skipped++
		case step.Held:
			c.Held++
		}
	}
	return c
}

func RunOf(r *plan.Report) Run {
	return Run{
		Time: r.StartedAt, Target: r.Target, Revision: r.Revision, Subject: r.Subject,
		Phase: report.PhaseOf(r), Duration: Seconds(r.Duration), Steps: CountSteps(r.Outcomes), Text: report.RunText(r),
	}
}
