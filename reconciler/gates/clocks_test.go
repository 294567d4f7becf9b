package gates

import (
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/gates/calendar"
)

// TestClocksThatAreSet reads what people asked for at moments when it is not known
// what time it is, or with a clock that was set meanwhile.
func TestClocksThatAreSet(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	b, c := newBook(t)
	made, d := c.at, known{"prod"}
	for _, do := range []func() error{
		func() error { _, err := b.Approve("d", "ann"); return err },
		func() error { _, err := b.Override("prod", "ann"); return err },
		func() error {
			if _, err := b.Approve("g", "ann"); err != nil {
				return err
			}
			return b.Begin(Grant{Approval: Approval{Digest: "g", Since: made, Until: made.Add(approvalFor)}, Target: "prod"})
		},
		func() error { _, err := Suspend(b, d, Request{Target: "prod", Reason: "x", For: "2h"}); return err },
	} {
		if err := do(); err != nil {
			t.Fatal(err)
		}
	}
	c.at = made.Add(2 * early) // AWS is heard once more, and says that the clock was right
	if r := read(t, b); r.Suspensions[0].Unsure != 0 || !r.Suspensions[0].Until.Equal(made.Add(2*time.Hour)) {
		t.Errorf("by a clock that is right: %+v", r.Suspensions)
	}
	for name, tt := range map[string]struct {
		earliest, latest                           time.Duration // since it was asked for
		suspensions, approvals, overrides, granted int
	}{
		"known":                      {time.Minute, time.Minute, 1, 1, 1, 1},
		"a little early":             {-time.Minute, -time.Minute, 1, 1, 1, 1},
		"set ahead by days":          {time.Minute, 10 * day, 1, 0, 0, 0},
		"set back by days":           {-10 * day, time.Minute, 1, 0, 0, 0},
		"started long ago":           {-10 * day, -10 * day, 1, 0, 0, 0},
		"set ahead by hours":         {time.Minute, 3 * time.Hour, 1, 1, 0, 1},
		"days later":                 {3 * day, 3 * day, 0, 1, 0, 1},
		"days later, set back":       {-day, 3 * day, 1, 0, 0, 0},
		"days later, set back a bit": {3*day - time.Hour, 3 * day, 0, 1, 0, 1},
	} {
		at := clock.Moment{Earliest: made.Add(tt.earliest), Latest: made.Add(tt.latest), Heard: true}
		b.now = func() clock.Moment { return at }
		r := read(t, b)
		if len(r.Suspensions) != tt.suspensions || len(r.Approvals) != tt.approvals || len(r.Overrides) != tt.overrides || len(r.Grants) != tt.granted {
			t.Errorf("%s: %+v", name, r)
		}
	}

	// A clock that runs ahead takes nothing away that holds when it is put right.
	for _, wrong := range []clock.Moment{
		{Earliest: made.Add(400 * day), Latest: made.Add(400 * day)}, // nobody has told the time yet
		{Earliest: made.Add(time.Minute), Latest: made.Add(400 * day), Heard: true},
	} {
		b.now = func() clock.Moment { return wrong }
		if _, err := b.Resume("else", "", true); err != nil { // It tidies.
			t.Fatal(err)
		}
		b.now = clock.At(c.now)
		if r := read(t, b); len(r.Suspensions) != 1 || len(r.Approvals) != 1 || len(r.Overrides) != 1 || len(r.Grants) != 1 {
			t.Errorf("after a wrong clock: %+v", r)
		}
	}

	// In doubt a suspension is as long as it was to be, by either clock.
	b.now = func() clock.Moment { return clock.Moment{Earliest: made, Latest: made.Add(10 * day), Heard: true} }
	s, err := b.Suspend(Suspension{Target: "dev"}, time.Hour)
	if err != nil || !s.Until.Equal(made.Add(10*day+time.Hour)) {
		t.Errorf("suspended until %s, %v", s.Until, err)
	}
	a, err := b.Approve("e", "ann")
	if err != nil || !a.Until.Equal(made.Add(approvalFor)) {
		t.Errorf("approved until %s, %v", a.Until, err)
	}
}

// TestWindowsInDoubt has a window be open only if it is by both clocks.
func TestWindowsInDoubt(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	windows := []calendar.Window{{Start: 11 * 60, Length: 2 * time.Hour, Zone: time.UTC}}
	for name, tt := range map[string]struct {
		earliest, latest time.Duration
		open             bool
	}{
		"inside":            {0, 0, true},
		"both inside":       {-time.Minute, time.Minute, true},
		"days apart":        {0, 24 * time.Hour, true},
		"may be before":     {-3 * time.Hour, 0, false},
		"may be behind":     {0, 3 * time.Hour, false},
		"before and behind": {-3 * time.Hour, 3 * time.Hour, false},
	} {
		text := windowText(windows, clock.Moment{Earliest: noon.Add(tt.earliest), Latest: noon.Add(tt.latest)})
		if (text == "") != tt.open {
			t.Errorf("%s: %q", name, text)
		}
	}
}

// TestSuspendedByAClockThatIsBehind asks for a suspension of two hours when the clock is
// five behind, as after a machine has stood still: it lasts two hours.
func TestSuspendedByAClockThatIsBehind(t *testing.T) {
	t.Parallel()
	const behind = 5 * time.Hour
	for name, tt := range map[string]struct {
		heard   bool // AWS, before the machine stood still
		restart time.Duration
	}{"heard before": {true, 0}, "not heard before": {false, 0}, "restarted": {true, time.Minute}, "asked while nothing ran": {false, time.Hour}} {
		b, c := newBook(t)
		began := c.at
		heardAt, seen := time.Duration(0), -behind // how wrong what it heard last is
		b.now = func() clock.Moment {
			ticks := c.at.Sub(began)
			at := c.at.Add(seen)
			return clock.Moment{Earliest: at, Latest: at, Wall: c.at.Add(-behind), Ticks: ticks, HeardAt: heardAt, Heard: tt.heard}
		}
		if _, err := Suspend(b, known{"prod"}, Request{Target: "prod", Reason: "x", For: "2h"}); err != nil {
			t.Fatal(err)
		}
		suspended := func(when string, after time.Duration, want int) {
			t.Helper()
			c.at = began.Add(after)
			if r := read(t, b); len(r.Suspensions) != want {
				t.Errorf("%s, %s after %v: %+v", name, when, after, r)
			}
		}
		suspended("nothing heard", time.Minute, 1)
		heardAt = time.Minute // an answer that was on its way
		suspended("old answer", time.Minute, 1)
		if tt.restart > 0 {
			b, tt.heard = NewRecorder(b.db, b.now), false
			suspended("restarted", tt.restart, 1)
		}
		if tt.restart > 0 { // its end seems to be past, and how long it has lasted is not known
			seen = 0
			suspended("nothing heard for long", 3*time.Hour, 1)
			seen = -behind
		}
		tt.heard, heardAt, seen = true, 7*time.Minute+tt.restart, 0
		suspended("heard", 7*time.Minute+tt.restart, 1)
		suspended("heard", 119*time.Minute, 1)
		suspended("heard", 2*time.Hour+2*time.Minute, 0)
		if _, err := b.Resume("else", "", true); err != nil { // It tidies.
			t.Fatal(err)
		}
	}
}
