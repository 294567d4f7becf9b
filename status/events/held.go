package events

import (
	"time"
)

// KnownHeld is the announced hold of a target at an earlier commit.
type KnownHeld struct {
	// To is the full hash of that commit. It is empty if the target is only observed.
	To string `json:"to,omitempty"`
	// Since is the time of the announcement.
	Since time.Time `json:"since"`
}

// targetHold announces the earlier commit at which a target is held, and the end of the hold. The last
// announcement stays valid while the state is unknown: while a daemon starts, AWS does not answer, or weir
// tries the next commit. This prevents a second announcement of one hold.
func (t *finder) targetHold() {
	h, old := t.r.Fallback, t.old.Held
	switch {
	case h == nil && t.r.Plan != nil && old != nil:
		t.next.Held = nil
		t.add(Event{Kind: "target-hold-ended", Text: "weir applies the followed commit again"})
	case h == nil, h.Passing(), old != nil && old.To == h.To():
	default:
		t.next.Held = &KnownHeld{To: h.To(), Since: t.at}
		e := Event{Kind: "target-held", Reason: h.Diagnostic().Code, Text: h.Text(), Facts: map[string]string{"to": h.To()}}
		if h.To() == "" {
			e.Kind, e.Facts = "target-only-observed", nil
		}
		t.add(e)
	}
}
