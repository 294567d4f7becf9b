package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/status/wording"
)

// RunText describes the result of a pass: its first fault, otherwise its completed steps.
func RunText(r *plan.Report) string {
	if fault, more := FirstFault(r); fault != "" {
		return AndMore(fault, more)
	}
	var did []string
	for _, o := range r.Outcomes {
		if o.Status == step.Done {
			did = append(did, StepWords(o.Step))
		}
	}
	switch {
	case len(did) > 3:
		return fmt.Sprintf("%s and %d more steps", strings.Join(did[:2], ", "), len(did)-2)
	case len(did) > 0:
		return strings.Join(did, ", ")
	case r.Converged():
		return "nothing to change"
	case r.Suspended && r.Plan != nil, onlyHeld(r):
		return heldText(r)
	default:
		return movingText(r)
	}
}

// heldText describes what the planned steps of a target wait for, if the pass ran none of them. The page and the
// history show it. If no step waits, the target is suspended.
func heldText(r *plan.Report) string {
	waits := wording.WaitsOf(r.Target, r.Plan.Steps)
	switch len(waits) {
	case 0:
		return "suspended: planned only"
	case 1:
		return waits[0].Text()
	}
	var holds []string
	for _, w := range waits {
		if words := w.For(); !slices.Contains(holds, words) {
			holds = append(holds, words)
		}
	}
	return wording.Count(len(r.Plan.Steps), "step") + verb(len(r.Plan.Steps)) + strings.Join(holds, ", and for ")
}

func verb(n int) string {
	if n == 1 {
		return " waits for "
	}
	return " wait for "
}

// movingText describes the changes in AWS that a pass without steps waits for.
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

// FirstFault describes the most serious fault of a report, and returns the number of further faults.
// Positions come last, so that a truncated text still contains the fault.
func FirstFault(r *plan.Report) (text string, more int) {
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
		faults = append(faults, DiagnosticWords(d))
	}
	for _, o := range r.Failures() {
		if named && o.Err != nil && o.Err.Unknown != (observed.UnknownName{}) {
			continue // the diagnostic reports it, with its line
		}
		faults = append(faults, FailureWords(o))
	}
	if len(faults) == 0 {
		return "", 0
	}
	return faults[0], len(faults) - 1
}

func DiagnosticWords(d diag.Diagnostic) string {
	switch {
	case d.Known():
		return d.Summary + " (" + d.Position.String() + ")"
	case d.Object != "" && !strings.Contains(d.Summary, d.Object):
		return d.Summary + " (" + d.Object + ")"
	}
	return d.Summary
}

func AndMore(text string, more int) string {
	if more == 0 {
		return text
	}
	return text + fmt.Sprintf(" (and %d more)", more)
}

func FailureWords(o step.Outcome) string {
	s := string(o.Step.Verb) + " " + string(o.Step.Resource) + " " + o.Step.Name
	if o.Err != nil {
		s += ": " + o.Err.Code
		if o.Err.Message != "" {
			s += ": " + o.Err.Message
		}
	}
	return s
}

// past returns the past form of a verb.
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

func StepWords(s step.Step) string {
	return past(s.Verb) + " " + strings.ReplaceAll(string(s.Resource), "-", " ") + " " + s.Name
}

// StepList lists steps briefly.
func StepList(steps []step.Step) string {
	const most = 3
	var out []string
	for i, s := range steps {
		if i == most {
			return strings.Join(out, ", ") + " and " + wording.Count(len(steps)-most, "more step")
		}
		out = append(out, string(s.Verb)+" "+strings.ReplaceAll(string(s.Resource), "-", " ")+" "+s.Name)
	}
	return strings.Join(out, ", ")
}
