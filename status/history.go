package status

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
)

// Run is one pass in the history.
type Run struct {
	Time     time.Time   `json:"time"`
	Target   string      `json:"target"`
	Revision string      `json:"revision"`
	Subject  string      `json:"subject"`
	Phase    TargetPhase `json:"phase"`
	Duration Seconds     `json:"durationSeconds"`
	Steps    StepCounts  `json:"steps"`
	// Text says in a few words what came of it.
	Text string `json:"text"`
}

// Seconds is a duration that JSON has as a number of seconds.
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

// StepCounts counts the steps of a pass by how they ended.
type StepCounts struct {
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
	Held    int `json:"held"`
}

func countSteps(outcomes []step.Outcome) StepCounts {
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

func runOf(r *plan.Report) Run {
	return Run{
		Time: r.StartedAt, Target: r.Target, Revision: r.Revision, Subject: r.Subject,
		Phase: phaseOf(r), Duration: Seconds(r.Duration), Steps: countSteps(r.Outcomes), Text: runText(r),
	}
}

// runText says what came of a pass: the first fault, else what was done.
func runText(r *plan.Report) string {
	if fault, more := firstFault(r); fault != "" {
		return andMore(fault, more)
	}
	var did []string
	for _, o := range r.Outcomes {
		if o.Status == step.Done {
			did = append(did, stepWords(o.Step))
		}
	}
	switch {
	case len(did) > 3:
		return fmt.Sprintf("%s and %d more steps", strings.Join(did[:2], ", "), len(did)-2)
	case len(did) > 0:
		return strings.Join(did, ", ")
	case r.Converged():
		return "nothing to change"
	case r.Suspended:
		return "suspended: planned only"
	case onlyHeld(r):
		return heldText(r)
	default:
		return movingText(r)
	}
}

// heldText says what a pass without steps left to somebody or something else.
func heldText(r *plan.Report) string {
	var holds []string
	for _, s := range r.Plan.Steps {
		if !slices.Contains(holds, string(s.Held)) {
			holds = append(holds, string(s.Held))
		}
	}
	return count(len(r.Plan.Steps), "step") + " held: " + strings.Join(holds, ", ")
}

// movingText says what a pass without steps waits for.
func movingText(r *plan.Report) string {
	var wait []string
	for _, p := range r.Pools {
		switch {
		case p.Converged:
		case p.Rollout != nil:
			wait = append(wait, p.Name+" is rolling")
		default:
			wait = append(wait, fmt.Sprintf("%s has %d of %d ready", p.Name, p.ReadyReplicas, p.DesiredReplicas))
		}
	}
	switch {
	case len(wait) == 0:
		return "waiting"
	case len(wait) > 2:
		return fmt.Sprintf("%s and %d more", wait[0], len(wait)-1)
	default:
		return strings.Join(wait, ", ")
	}
}

// firstFault is the gravest fault of a report in words, and how many more there
// are. Positions come last, so a cut text keeps what is wrong.
func firstFault(r *plan.Report) (text string, more int) {
	if r.Err != nil {
		return r.Err.Error(), 0
	}
	var faults []string
	named := false
	for _, d := range r.Diagnostics {
		if d.Severity != diag.Error {
			continue
		}
		named = named || d.Code == "unknown-name"
		faults = append(faults, diagnosticWords(d))
	}
	for _, o := range r.Failures() {
		if named && o.Err != nil && o.Err.Unknown != (observed.UnknownName{}) {
			continue // the diagnostic says it, with its line
		}
		faults = append(faults, failureWords(o))
	}
	if len(faults) == 0 {
		return "", 0
	}
	return faults[0], len(faults) - 1
}

func diagnosticWords(d diag.Diagnostic) string {
	switch {
	case d.Known():
		return d.Summary + " (" + d.Position.String() + ")"
	case d.Object != "" && !strings.Contains(d.Summary, d.Object):
		return d.Summary + " (" + d.Object + ")"
	}
	return d.Summary
}

func andMore(text string, more int) string {
	if more == 0 {
		return text
	}
	return text + fmt.Sprintf(" (and %d more)", more)
}

func failureWords(o step.Outcome) string {
	s := string(o.Step.Verb) + " " + string(o.Step.Resource) + " " + o.Step.Name
	if o.Err != nil {
		s += ": " + o.Err.Code
		if o.Err.Message != "" {
			s += ": " + o.Err.Message
		}
	}
	return s
}

// past is a verb as something that was done.
func past(v step.Verb) string {
	switch v {
	case step.Create:
		return "created"
	case step.Update:
		return "updated"
	case step.Delete:
		return "deleted"
	case step.Replace:
		return "replaced"
	case step.Rollout:
		return "rollout started"
	case step.Adopt:
		return "adopted"
	case step.PruneVersion:
		return "version pruned"
	default:
		return string(v)
	}
}

func stepWords(s step.Step) string {
	return past(s.Verb) + " " + strings.ReplaceAll(string(s.Resource), "-", " ") + " " + s.Name
}

// stepList puts steps into a few words.
func stepList(steps []step.Step) string {
	const most = 3
	var out []string
	for i, s := range steps {
		if i == most {
			return strings.Join(out, ", ") + " and " + count(len(steps)-most, "more step")
		}
		out = append(out, string(s.Verb)+" "+strings.ReplaceAll(string(s.Resource), "-", " ")+" "+s.Name)
	}
	return strings.Join(out, ", ")
}
