package current

import (
	"errors"
	"maps"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/history"
	"github.com/weir-gitops/weir/status/statustest"
)

// memoryArchive keeps what was told, and counts the records.
type memoryArchive struct {
	records int
	known   map[string]events.Known
}

func (a *memoryArchive) Append(r history.Record) error {
	a.records++
	if a.known == nil {
		a.known = map[string]events.Known{}
	}
	maps.Copy(a.known, r.Known)
	return nil
}
func (a *memoryArchive) Events(history.Filter) ([]events.Event, error) { return nil, nil }
func (a *memoryArchive) Runs(history.Filter) ([]history.Run, error)    { return nil, nil }
func (a *memoryArchive) Known() (map[string]events.Known, error)       { return maps.Clone(a.known), nil }

// TestWhatWasSeenLastOutlivesTheProcess: a state that begins at a report that could not
// tell shows the pools of the state before it, with since when they were so; what is
// there no more is not shown, and a pass that finds nothing new writes nothing.
func TestWhatWasSeenLastOutlivesTheProcess(t *testing.T) {
	archive := &memoryArchive{}
	at := time.Date(2026, 11, 3, 7, 0, 0, 0, time.UTC)
	start := func() *State {
		return New(Options{Archive: archive, Now: func() time.Time { return at }})
	}
	b := start()
	flush := func() {
		t.Helper()
		if err := b.Activity.recorder.flush(); err != nil {
			t.Fatal(err)
		}
	}
	of := func(pools ...plan.PoolStatus) *plan.Report {
		r := statustest.Report("prod", pools...)
		r.StartedAt, r.Duration = at, 0
		return r
	}
	b.Targets.Report(t.Context(), of(statustest.Pool("prod", "web", statustest.Sized(2, 3)), statustest.Pool("prod", "gone")))
	b.Targets.Report(t.Context(), of(statustest.Pool("prod", "web", statustest.Sized(2, 3))))
	flush()
	before := archive.records
	at = at.Add(time.Hour)
	b.Targets.Report(t.Context(), of(statustest.Pool("prod", "web", statustest.Sized(2, 3))))
	flush()
	if n := archive.records - before; n > 0 {
		t.Errorf("a pass that found nothing new wrote %d records", n)
	}
	if got := b.Targets.Pools(); len(got) != 1 || !got[0].LastSeen.IsZero() {
		t.Errorf("what was seen just now: %+v", got)
	}

	b = start()
	blind := statustest.Report("prod")
	blind.Plan, blind.Err = nil, errors.New("not valid YAML")
	b.Targets.Report(t.Context(), blind)
	b.Targets.Report(t.Context(), blind)
	got := b.Targets.Pools()
	if len(got) != 1 {
		t.Fatalf("%+v", got)
	}
	want := statustest.Pool("prod", "web", statustest.Sized(2, 3))
	if p := got[0]; p.Name != "web" || p.Target != "prod" || p.Kind != want.Kind || p.Phase != want.Phase || p.ReadyReplicas != 2 || p.DesiredReplicas != 3 || !p.LastSeen.Equal(at.Add(-time.Hour)) {
		t.Errorf("%+v", p)
	}
	if s, _ := b.Targets.Find("prod"); !s.Stale() || s.PoolsAt.IsZero() {
		t.Errorf("stale %t, at %s", s.Stale(), s.PoolsAt)
	}
	b.Targets.Report(t.Context(), of(statustest.Pool("prod", "web", statustest.Sized(3, 3))))
	if got := b.Targets.Pools(); len(got) != 1 || !got[0].LastSeen.IsZero() || got[0].ReadyReplicas != 3 {
		t.Errorf("seen again: %+v", got)
	}
}
