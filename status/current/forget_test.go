package current

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/history"
	"github.com/weir-gitops/weir/status/statustest"
)

// The state forgets after a while what it said of targets and sources that are gone, on
// the disk too; it keeps that of one that is away for a moment.
func TestWhatWasToldOfTheGoneIsForgotten(t *testing.T) {
	now := statustest.Noon
	db, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	a := history.New(db, history.Options{Now: func() time.Time { return now }})
	var b *State
	var stop func()
	start := func() {
		b = New(Options{Instance: "weir", Now: func() time.Time { return now }, Archive: a})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- b.Activity.Run(ctx) }()
		stop = func() {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}
	configure := func(names ...string) {
		var list []Target
		for _, name := range names {
			list = append(list, Target{Name: name, Source: "fleet"})
		}
		b.Configure([]Source{{Name: "fleet"}}, list)
		for _, name := range names {
			b.Targets.Report(t.Context(), &plan.Report{Target: name, Source: "fleet", Revision: "4be91a7730c2", Plan: &plan.Plan{}, StartedAt: now})
		}
	}
	kept := func(want ...string) {
		t.Helper()
		stop()
		known, err := a.Known()
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, slices.Sorted(maps.Keys(known))); d != "" {
			t.Errorf("told of (-want +got):\n%s", d)
		}
		start()
	}
	start()
	defer func() {
		stop()
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()
	for round := range 3 {
		var names []string
		for i := range 50 {
			names = append(names, fmt.Sprintf("r%d-%d", round, i))
		}
		configure(append(names, "moment", "prod")...)
		configure("prod")
		now = now.Add(30 * time.Minute)
		b.Activity.ForgetRemoved()
		configure("moment", "prod") // it was away
		now = now.Add(30 * time.Minute)
		b.Activity.ForgetRemoved()
	}
	kept("target moment", "target prod")
	// Those that went while nobody ran are forgotten too.
	configure("prod")
	b.Activity.ForgetRemoved()
	kept("target moment", "target prod")
	configure("prod")
	now = now.Add(2 * time.Hour)
	b.Activity.ForgetRemoved()
	kept("target prod")
}
