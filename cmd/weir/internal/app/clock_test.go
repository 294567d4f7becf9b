package app

import (
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/status/commands"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/history"
	"github.com/weir-gitops/weir/status/statustest"
)

// TestAWSClockCounts runs daemons on a machine whose clock is two days ahead.
func TestAWSClockCounts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	day := func(ago int) string { return strings.ToLower(time.Now().UTC().AddDate(0, 0, -ago).Format("Mon")) }
	w.extra = "  windows: [{days: [" + day(2) + ", " + day(1) + "], duration: 24h}]\n"
	w.repo.Write(fleetOf("m5.large", "prod"))
	first := w.repo.Commit("first")
	a, stop := w.start()
	targetConverged(t, a, "prod", first)
	w.repo.Write(fleetOf("m6i.large", "prod"))
	second := w.repo.Commit("second")
	heldBy(t, a, "prod", second, step.HeldWindow, "the next window opens on ")

	// AWS's clock is set in the middle of it. Until it is known which of the two is
	// right, both must be in the window.
	w.ahead.Store(int64(-48 * time.Hour))
	eventually(t, "the other clock is heard", func() string {
		if m := a.clock.Moment(); m.Latest.Sub(m.Earliest) < time.Hour {
			return "not yet"
		}
		return ""
	})
	time.Sleep(time.Second)
	heldBy(t, a, "prod", second, step.HeldWindow, "the next window opens on ")
	if got := w.writes(); slices.Contains(got, "StartInstanceRefresh") {
		t.Errorf("it rolls outside of a window: %v", got)
	}
	stop()

	var log statustest.Log
	w.log = slog.New(slog.NewTextHandler(&log, nil))
	a, stop = w.start()
	defer stop()
	targetConverged(t, a, "prod", second)
	if text := log.String(); strings.Count(text, "differs from AWS's") != 1 || !strings.Contains(text, "ahead=48h0m") {
		t.Errorf("it is not said once that the clock is wrong: %s", text)
	}
	s := command(t, a, commands.SuspendPath, gates.Request{Target: "prod", Reason: "incident", For: "1h"}).Suspension
	if left := time.Until(s.Until); left > -46*time.Hour {
		t.Errorf("suspended until %s, by this machine's clock", s.Until)
	}
	w.repo.Write(fleetOf("m7i.large", "prod"))
	heldBy(t, a, "prod", w.repo.Commit("third"), step.HeldSuspended, "incident")
}

// TestHistoryOutlivesAWrongClock has nothing removed before the time is known.
func TestHistoryOutlivesAWrongClock(t *testing.T) {
	t.Parallel()
	db, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	now := clock.New()
	h := history.New(db, history.Options{Now: func() time.Time { return since(now) }, MaxAge: time.Hour})
	add := func(ago time.Duration) int {
		t.Helper()
		if err := h.Append(history.Record{Events: []events.Event{{Time: time.Now().Add(-ago), Kind: "x"}}}); err != nil {
			t.Fatal(err)
		}
		list, err := h.Events(history.Filter{})
		if err != nil {
			t.Fatal(err)
		}
		return len(list)
	}
	const year = 365 * 24 * time.Hour
	if n := add(year) + add(0); n != 3 {
		t.Errorf("%d events before the time is known", n)
	}
	now.Hear(time.Now().Add(-year)) // it is a year ago
	if n := add(0); n != 3 {
		t.Errorf("%d events with a clock that is a year ahead", n)
	}
	now = clock.New()
	now.Hear(time.Now())
	if n := add(0); n != 3 {
		t.Errorf("%d events, want those of the last hour", n)
	}
}
