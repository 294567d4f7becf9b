package members

import (
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
	"github.com/weir-gitops/weir/status/events"
)

// The kinds of moves of a scope or source that this member owns, or starts to own.
const (
	TakenNew      = "taken-new"      // it was unowned before
	TakenReleased = "taken-released" // its owner released it
	TakenOver     = "taken-over"     // its owner is dead
	HandedOver    = "handed-over"
	Stuck         = "stuck" // released because its work did not progress
	Released      = "released"
	Lost          = "lost"
)

// MoveOf returns the kind of the event's key and its move. ok is false for an event about the member as a
// whole, or for an event that is not a move.
func MoveOf(e coord.Event) (kind, event string, ok bool) {
	kind, _, _ = strings.Cut(e.Key, "/")
	switch e.Kind {
	case coord.Took:
		switch {
		case !e.Before.Known():
			event = TakenNew
		case e.Before.Released:
			event = TakenReleased
		default:
			event = TakenOver
		}
	case coord.HandedOver:
		event = HandedOver
	case coord.Stuck:
		event = Stuck
	case coord.Released:
		event = Released
	case coord.Lost:
		event = Lost
	}
	return kind, event, e.Key != "" && event != ""
}

// EventOf returns the event with which the member self announces a move. ok is false if the move is not
// announced, such as the release of a key that is no longer wanted.
func EventOf(e coord.Event, self string, now time.Time) (out events.Event, ok bool) {
	return counted(e, self, now, 1)
}

// counted returns the event for n moves like e, by the member self. ok is false if the move is not
// announced.
func counted(e coord.Event, self string, now time.Time, n int) (out events.Event, ok bool) {
	kind, event, moved := MoveOf(e)
	what := kind + " " + strings.TrimPrefix(e.Key, kind+"/")
	out = events.Event{Time: now, Reason: event, Facts: map[string]string{"member": self}}
	if n > 1 {
		what = strconv.Itoa(n) + " " + kind + "s"
		out.Facts["count"] = strconv.Itoa(n)
	} else if moved {
		out.Facts["key"] = e.Key
	}
	if e.Before.Member != "" {
		out.Facts["before"] = e.Before.Member
	}
	switch {
	case !moved && e.Kind == coord.Joined:
		out.Kind, out.Text = "member-joined", self+" joined"
	case !moved && e.Kind == coord.Lost:
		out.Kind, out.Text = "member-lost", self+" lost its lease and owns nothing until it gets a new one"
		if e.Err != nil {
			cause, _, _ := strings.Cut(e.Err.Error(), "\n") // without the policy statement that is missing
			out.Text += ": " + strings.TrimSuffix(cause, ":")
		}
	case !moved || event == Released:
		return events.Event{}, false
	case event == TakenOver:
		out.Kind, out.Text = "owner-replaced", self+" took over "+what+" from "+e.Before.Member+", which no longer runs"
	case event == TakenReleased:
		out.Kind, out.Text = "owner-changed", self+" owns "+what+", which "+e.Before.Member+" released"
	case event == TakenNew:
		out.Kind, out.Text = "owner-changed", self+" owns "+what
	case event == HandedOver:
		out.Kind, out.Text = "owner-changed", self+" hands over "+what
		if e.To != "" {
			out.Text += " to " + e.To
		}
	case event == Stuck:
		out.Kind, out.Text = "owner-stuck", self+" releases "+what+": it made no progress for "+coord.StuckAfter.String()
	case event == Lost:
		out.Kind, out.Text = "owner-lost", self+" lost "+what+", according to the engine"
	}
	return out, true
}
