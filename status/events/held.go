package events

import (
	"time"
)

// KnownHeld is an earlier commit to which a target was reported as held.
type KnownHeld struct {
	// To is its full hash, empty where the target is only observed.
	To string `json:"to,omitempty"`
	// Since is the time at which that was announced.
	Since time.Time `json:"since"`
}

// targetHold announces to which earlier commit the target is held, and when that has ended. The last
// announcement stays valid while the state is unknown: as a daemon starts, AWS does not answer or
// the next commit is tried. So no daemon announces one hold twice.
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
