package wording

import (
	"strings"

	"github.com/weir-gitops/weir/reconciler/step"
)

// Wait is a reason for which steps of one target wait. It has the same words everywhere: in plans
// and comments, on the page, in commit statuses and events, and in the results of passes. A single
// step shows only the name of its hold, and until when it lasts.
type Wait struct {
	Hold step.Hold
	// Steps wait for the same, for the same reason and until the same time.
	Steps []step.Step
	// Reason says until when or for what in particular, Ends who or what ends it; either may
	// be empty.
	Reason, Ends string
}

// mostAlike bounds the waits of one hold that are listed separately: each of a thousand pools may
// wait behind another number of rollouts.
const mostAlike = 3

// WaitsOf are the waits of a target's steps, in the order of their first steps. Those of one
// hold beyond mostAlike are one, in the hold's own words.
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

// For names what the steps wait for, without details.
func (w Wait) For() string { return Clean(step.WaitOf(w.Hold).For) }

// Text says how many steps wait for what, until when, and who can end that.
func (w Wait) Text() string { return Count(len(w.Steps), "step") + " " + w.Of(len(w.Steps)) }

// Of is Text behind the name of what waits, n of them.
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

// end returns Ends unless the reason contains it.
func (w Wait) end() string {
	if w.Ends == "" || strings.Contains(w.Reason, w.Ends) {
		return ""
	}
	return "; released by: " + Clean(w.Ends)
}

// HeldUntil says what holds a step of a target, until when or for what, and who can end that.
func HeldUntil(target string, s step.Step) string {
	w := Wait{Hold: s.Held, Reason: s.HeldReason, Ends: s.Ends(target)}
	return Held(s) + w.end()
}
