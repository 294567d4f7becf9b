package wording

import (
	"strings"

	"github.com/weir-gitops/weir/reconciler/step"
)

// Wait is a reason why steps of one target wait. Its text is the same everywhere: in plans and comments, on
// the page, in commit statuses and events, and in the results of passes. A single step shows only the name
// of its hold, and the time until which it lasts.
type Wait struct {
	Hold step.Hold
	// Steps are the steps with the same hold, reason and end.
	Steps []step.Step
	// Reason describes the time or the particular thing that the steps wait for. Ends names
	// the person or event that ends the wait. Either may be empty.
	Reason, Ends string
}

// mostAlike is the maximum number of waits with the same hold that are listed separately. Otherwise, each
// of a thousand pools could wait behind a different number of rollouts.
const mostAlike = 3

// WaitsOf returns the waits of a target's steps, in the order of their first steps. Beyond mostAlike, the
// waits of one hold are combined into one with the hold's general text.
func WaitsOf(target string, steps []step.Step) []Wait {
	type kind struct {
		hold         step.Hold
		reason, ends string
	}
	at, alike := map[kind]int{}, map[step.Hold]int{}
	var out []Wait
	for _, s := range steps {
		if s.Held == "" {
			continue
		}
		k := kind{s.Held, s.HeldReason, s.Ends(target)}
		n, known := at[k]
		if !known && alike[s.Held] >= mostAlike {
			s.HeldEnds = ""
			k.reason, k.ends = "", s.Ends(target)
			n, known = at[k]
		}
		if !known {
			alike[s.Held]++
			n, at[k] = len(out), len(out)
			out = append(out, Wait{Hold: k.hold, Reason: k.reason, Ends: k.ends})
		}
		out[n].Steps = append(out[n].Steps, s)
	}
	return out
}

// For describes what the steps wait for, without details.
func (w Wait) For() string { return Clean(step.WaitOf(w.Hold).For) }

// Text describes the wait: the number of steps, what they wait for and until when, and who can end that.
func (w Wait) Text() string { return Count(len(w.Steps), "step") + " " + w.Of(len(w.Steps)) }

// Of returns Text without its subject, for n steps.
func (w Wait) Of(n int) string {
	text := "wait for "
	if n == 1 {
		text = "waits for "
	}
	text += w.For()
	if w.Reason != "" {
		text += ": " + Clean(w.Reason)
	}
	return text + w.end()
}

// end returns Ends, or "" if the reason already contains it.
func (w Wait) end() string {
	if w.Ends == "" || strings.Contains(w.Reason, w.Ends) {
		return ""
	}
	return "; released by: " + Clean(w.Ends)
}

// HeldUntil describes the hold of a step of a target: the reason, until when it lasts, and who can end it.
func HeldUntil(target string, s step.Step) string {
	w := Wait{Hold: s.Held, Reason: s.HeldReason, Ends: s.Ends(target)}
	return Held(s) + w.end()
}
