package status

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/diag"
)

// Run is one pass in the history.
type Run struct {
	Time     time.Time
	Target   string
	Revision string
	Subject  string
	Phase    TargetPhase
	Duration time.Duration
	Steps    StepCounts
	// Text says in a few words what came of it.
	Text string
}

// StepCounts counts the steps of a pass by how they ended.
type StepCounts struct {
	Done    int `json:"done"`
	Failed  int `json:"failed"`
	Skipped int `json:"skipped"`
	Held    int `json:"held"`
}

// Event is a milestone: something was made, changed, started, finished, found
// or refused. Kind is stable, in kebab case.
type Event struct {
	Time     time.Time
	Kind     string
	Source   string
	Target   string
	Pool     string
	Revision string
	Text     string
}

func countSteps(outcomes []plan.Outcome) StepCounts {
	var c StepCounts
	for _, o := range outcomes {
		switch o.Status {
		case plan.Done:
			c.Done++
		case plan.Failed:
			c.Failed++
		case plan.Skipped:
			c.Skipped++
		case plan.Held:
			c.Held++
		}
	}
	return c
}

func runOf(r *plan.Report) Run {
	return Run{
		Time: r.StartedAt, Target: r.Target, Revision: r.Revision, Subject: r.Subject,
		Phase: phaseOf(r), Duration: r.Duration, Steps: countSteps(r.Outcomes), Text: runText(r),
	}
}

// runText says what came of a pass: the first fault, else what was done.
func runText(r *plan.Report) string {
	if fault, more := firstFault(r); fault != "" {
		if more > 0 {
			fault += fmt.Sprintf(" (and %d more)", more)
		}
		return fault
	}
	var did []string
	for _, o := range r.Outcomes {
		if o.Status == plan.Done {
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
	default:
		return movingText(r)
	}
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
	for _, d := range r.Diagnostics {
		if d.Severity != diag.Error {
			continue
		}
		s := d.Summary
		if d.Known() {
			s += " (" + d.Position.String() + ")"
		} else if d.Object != "" && !strings.Contains(s, d.Object) {
			s += " (" + d.Object + ")"
		}
		faults = append(faults, s)
	}
	for _, o := range r.Failures() {
		faults = append(faults, failureWords(o))
	}
	if len(faults) == 0 {
		return "", 0
	}
	return faults[0], len(faults) - 1
}

func failureWords(o plan.Outcome) string {
	s := string(o.Step.Verb) + " " + string(o.Step.Resource) + " " + o.Step.Name
	if o.Err != nil {
		s += ": " + o.Err.Code
		if o.Err.Message != "" {
			s += ": " + o.Err.Message
		}
	}
	return s
}

// failedBefore reports whether the same step failed in the same way in the pass
// before: it is tried again at each pass and told once.
func failedBefore(last *plan.Report, o plan.Outcome) bool {
	if last == nil {
		return false
	}
	return slices.ContainsFunc(last.Failures(), func(old plan.Outcome) bool {
		return failureWords(old) == failureWords(o)
	})
}

// past is a verb as something that was done.
func past(v plan.Verb) string {
	switch v {
	case plan.Create:
		return "created"
	case plan.Update:
		return "updated"
	case plan.Delete:
		return "deleted"
	case plan.Replace:
		return "replaced"
	case plan.Rollout:
		return "rollout started"
	case plan.Adopt:
		return "adopted"
	case plan.PruneVersion:
		return "version pruned"
	default:
		return string(v)
	}
}

func stepWords(s plan.Step) string {
	return past(s.Verb) + " " + strings.ReplaceAll(string(s.Resource), "-", " ") + " " + s.Name
}

// events are the milestones between what was known of a target and r.
func events(old TargetState, r *plan.Report, at time.Time) []Event {
	var out []Event
	add := func(kind, pool, text string) {
		out = append(out, Event{Time: at, Kind: kind, Target: r.Target, Pool: pool, Revision: r.Revision, Text: text})
	}
	if old.Last != nil && old.Last.Converged() && old.Last.Revision == r.Revision && r.Plan != nil && r.Plan.Runnable() > 0 {
		add("drift-found", "", "AWS differs although Git did not change: "+count(r.Plan.Runnable(), "step"))
	}
	for _, o := range r.Outcomes {
		switch o.Status {
		case plan.Done:
			text := stepWords(o.Step)
			if o.Step.Reason != "" {
				text += ": " + o.Step.Reason
			}
			add(string(o.Step.Resource)+"-"+string(o.Step.Verb), o.Step.Owner(), text)
		case plan.Failed:
			if !failedBefore(old.Last, o) {
				add("step-failed", o.Step.Owner(), failureWords(o))
			}
		case plan.Skipped, plan.Held:
			// A held step stands in every pass; the page shows it with its plan.
		}
	}
	before := make(map[string]plan.PoolStatus, len(old.Pools))
	for _, p := range old.Pools {
		before[poolKey(p)] = p
	}
	for _, p := range r.Pools {
		if kind, text := poolMilestone(before[poolKey(p)], p); kind != "" {
			add(kind, poolKey(p), text)
		}
	}
	return out
}

// rolloutNotch is how many percent a rollout moves between two events.
const rolloutNotch = 25

// poolMilestone compares a pool with how it stood before, zero if new.
func poolMilestone(old, p plan.PoolStatus) (kind, text string) {
	switch {
	case p.Rollout != nil && old.Rollout != nil && p.Rollout.ID == old.Rollout.ID:
		if p.Rollout.Percentage/rolloutNotch > old.Rollout.Percentage/rolloutNotch {
			return "rollout-progress", fmt.Sprintf("%d %%, %d instances left", p.Rollout.Percentage, p.Rollout.InstancesLeft)
		}
	case p.FailureReason != "" && p.FailureReason != old.FailureReason:
		return "pool-failed", p.FailureMessage
	case p.Converged && !old.Converged && old.Name != "":
		return "pool-converged", fmt.Sprintf("%d of %d ready", p.ReadyReplicas, p.DesiredReplicas)
	}
	return "", ""
}
