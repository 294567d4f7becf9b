package terminal

import (
	"fmt"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/wording"
)

// Applied prints the result of an apply on one target.
func (p Printer) Applied(a Applied) {
	p.headline(a.Last)
	for _, o := range a.Outcomes {
		p.outcome(o)
	}
	last := a.Last.Shown()
	p.waits(last)
	p.remarks(last)
	done, failed := count(a.Outcomes, step.Done), count(a.Outcomes, step.Failed)
	switch {
	case last.Diagnostics.HasErrors() && len(a.Outcomes) == 0:
		p.line("  ", p.paint(red, "Nothing was done"), ": ", CountDiagnostics(last.Diagnostics), ".")
		return
	case len(a.Outcomes) == 0:
		p.line("  ", emptyPlan(last))
	default:
		text := fmt.Sprintf("Applied: %s done", wording.Count(done, "step"))
		if failed > 0 {
			text += ", " + p.paint(red, fmt.Sprintf("%d failed", failed))
		}
		for _, status := range []step.OutcomeStatus{step.Held, step.Skipped} {
			if n := count(a.Outcomes, status); n > 0 {
				text += fmt.Sprintf(", %d %s", n, status)
			}
		}
		p.line("  ", text, ".")
	}
	if moving := unsettled(a.Last); moving != "" {
		p.line("  Not converged yet: ", moving, ".")
	} else if a.Last.Converged() {
		p.line("  Converged: ", wording.Count(len(a.Last.Pools), "pool"), ".")
	}
}

func count(outcomes []step.Outcome, status step.OutcomeStatus) int {
	n := 0
	for _, o := range outcomes {
		if o.Status == status {
			n++
		}
	}
	return n
}

// mostUnsettled is the maximum number of unconverged pools that are named.
const mostUnsettled = 10

// unsettled names the pools that have not converged, with their state; "" if all have.
func unsettled(r *plan.Report) string {
	var out []string
	for _, s := range r.Pools {
		if !s.Converged {
			out = append(out, wording.Clean(s.Namespace+"/"+s.Name)+" "+PoolState(s))
		}
	}
	if n := len(out) - mostUnsettled; n > 0 {
		out = append(out[:mostUnsettled], fmt.Sprintf("and %d more", n))
	}
	return strings.Join(out, ", ")
}

// outcome prints the result of a step. After a done or failed step it also prints the changed fields,
// except for a creation.
func (p Printer) outcome(o step.Outcome) {
	mark, color := sign(o.Step.Verb)
	text := fmt.Sprintf("%s %s %s: ", o.Step.Verb, o.Step.Resource, wording.Clean(o.Step.Name))
	switch o.Status {
	case step.Failed:
		text += p.paint(red, "failed")
		if o.Err != nil {
			text += ": " + wording.Clean(o.Err.Error())
		}
	case step.Held:
		text += p.paint(yellow, "held: "+wording.Held(o.Step))
	case step.Skipped:
		text += "waits for a later pass"
	default:
		text += string(o.Status)
		if o.Duration >= time.Millisecond {
			text += fmt.Sprintf(" in %s", o.Duration.Round(time.Millisecond))
		}
	}
	p.line("  ", p.paint(color, mark), " ", text)
	if o.Step.Verb != step.Create && (o.Status == step.Done || o.Status == step.Failed) {
		p.changes(o.Step)
	}
}

// PoolState describes a pool's phase and size briefly.
func PoolState(s plan.PoolStatus) string {
	text := fmt.Sprintf("%s %d/%d", s.Phase, s.ReadyReplicas, s.DesiredReplicas)
	if r := s.Rollout; r != nil {
		text += ", " + rollout(*r)
	}
	if s.FailureMessage != "" {
		text += ": " + wording.Clean(s.FailureMessage)
	}
	return wording.Clean(text)
}

func rollout(r plan.RolloutStatus) string {
	text := "rollout " + wording.Clean(r.Status)
	if r.Percentage > 0 {
		text += fmt.Sprintf(" %d %%", r.Percentage)
	}
	if r.Message != "" {
		text += " (" + wording.Clean(r.Message) + ")"
	}
	return text
}

// LaunchConfigs prints a table of the launch configurations that pools share. It prints nothing if they
// share none.
func (p Printer) LaunchConfigs(configs []plan.LaunchConfigStatus) {
	if len(configs) == 0 {
		return
	}
	p.line()
	var rows [][]tableCell
	for _, s := range configs {
		ready, newest := "no", "-"
		if s.Ready {
			ready = "yes"
		}
		if s.LatestVersion > 0 {
			newest = fmt.Sprintf("v%d", s.LatestVersion)
		}
		rows = append(rows, []tableCell{plain(wording.Clean(s.Target)), plain(wording.Clean(s.Namespace + "/" + s.Name)), plain(ready), plain(newest), plain(wording.Clean(wording.Runs(s)))})
	}
	p.table([]column{{"TARGET", 0}, {"LAUNCH CONFIG", 0}, {"READY", 1}, {"NEWEST", 2}, {"POOLS", 0}}, rows)
}

// draining returns the number of machines that wait for their pods to be evicted, and the first such pod.
func draining(s plan.PoolStatus) string {
	if len(s.Draining) == 0 {
		return ""
	}
	text := ", drains " + wording.Count(len(s.Draining), "machine")
	for _, d := range s.Draining {
		if len(d.Pods) > 0 {
			return text + ": " + wording.Clean(d.Pods[0].Name+": "+d.Pods[0].Why)
		}
	}
	return text
}

// poolRemark returns the most important fact about a pool for its row, or "".
func poolRemark(s plan.PoolStatus) string {
	switch {
	case s.FailureMessage != "":
		return wording.Clean(s.FailureMessage)
	case s.Rollout != nil:
		return rollout(*s.Rollout) + draining(s)
	case len(s.Draining) > 0:
		return strings.TrimPrefix(draining(s), ", ")
	case s.Converged:
		return "converged"
	}
	for _, c := range s.Conditions {
		if c.Type == "Ready" && c.Message != "" {
			return wording.Clean(c.Message)
		}
		if missing := int(s.DesiredReplicas - s.ReadyReplicas); c.Type == "Ready" && c.Reason == plan.ReasonInProgress && missing > 0 {
			return "waits for " + wording.Count(missing, "machine")
		}
		if c.Type == "Ready" && c.Reason != "" {
			return wording.Clean(c.Reason)
		}
	}
	return ""
}
