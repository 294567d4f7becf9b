package reconciler

import (
	"context"
	"log/slog"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
)

func TestWait(t *testing.T) {
	l := &Loop{Interval: time.Minute, MovingDelay: 5 * time.Second}
	for _, tc := range []struct {
		name        string
		before, now pace
		want        time.Duration
	}{
		{"something moves", resting, moving, 5 * time.Second},
		{"it goes on moving", moving, moving, 5 * time.Second},
		{"a change was made", resting, acted, time.Second},
		{"the next step of what moves", moving, acted, time.Second},
		{"a change in each pass", acted, acted, 5 * time.Second},
		{"it moves after a change", acted, moving, 5 * time.Second},
	} {
		if got := l.wait(tc.before, tc.now, 0); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
	for range 100 {
		if got := l.wait(acted, resting, 0); got < 54*time.Second || got > 66*time.Second {
			t.Fatalf("nothing moves: %s", got)
		}
	}
	for _, tc := range []struct{ listed, least, most time.Duration }{
		{40 * time.Second, 14 * time.Second, 26 * time.Second},
		{58 * time.Second, 5 * time.Second, 8 * time.Second},
		{time.Hour, 5 * time.Second, 5 * time.Second},
	} {
		if got := l.wait(moving, resting, tc.listed); got < tc.least || got > tc.most {
			t.Errorf("nothing moves any more, and everything was listed %s ago: %s", tc.listed, got)
		}
	}
	tired := &Loop{Interval: time.Minute, MovingDelay: 5 * time.Second, untilSpare: 8 * time.Second}
	if got := tired.wait(resting, moving, 0); got != 8*time.Second {
		t.Errorf("AWS's limits leave nothing for 8 s: %s", got)
	}
	tired.untilSpare = time.Hour
	if got := tired.wait(moving, moving, 0); got > 66*time.Second {
		t.Errorf("AWS's limits leave nothing for an hour: %s", got)
	}
	short := &Loop{Interval: time.Millisecond}
	if got := short.wait(resting, moving, 0); got > 2*time.Millisecond {
		t.Errorf("an interval shorter than the delay: %s", got)
	}
}

func TestPace(t *testing.T) {
	outcome := func(s step.OutcomeStatus) *plan.Report { return &plan.Report{Outcomes: []step.Outcome{{Status: s}}} }
	for _, tc := range []struct {
		name string
		r    *plan.Report
		want pace
	}{
		{"nothing", &plan.Report{}, resting},
		{"done", outcome(step.Done), acted},
		{"skipped behind a failure", outcome(step.Skipped), moving},
		{"failed", outcome(step.Failed), resting},
		{"a group on its way", &plan.Report{Pools: []plan.PoolStatus{{InfrastructureReady: true}}}, moving},
		{"refused for good, with what follows", &plan.Report{
			Outcomes: []step.Outcome{
				{Step: step.Step{LaunchConfig: "n/workers", Pools: []string{"n/b"}}, Status: step.Failed, Parked: true},
				{Step: step.Step{Pool: "n/a"}, Status: step.Failed, Parked: true}, {Step: step.Step{Pool: "n/a"}, Status: step.Skipped, Parked: true},
				{Step: step.Step{Pool: "n/b"}, Status: step.Skipped}, // it waits for the template that is refused
			},
			Pools: []plan.PoolStatus{{Namespace: "n", Name: "a", InfrastructureReady: true}, {Namespace: "n", Name: "b", InfrastructureReady: true}},
		}, resting},
		{"refused for good beside another", &plan.Report{
			Outcomes: []step.Outcome{{Step: step.Step{Pool: "n/a"}, Status: step.Failed, Parked: true}, {Step: step.Step{Pool: "n/b"}, Status: step.Skipped}},
		}, moving},
		{"converged", &plan.Report{Pools: []plan.PoolStatus{{InfrastructureReady: true, Converged: true}}}, resting},
	} {
		if got := paceOf(tc.r); got != tc.want {
			t.Errorf("%s: %d, want %d", tc.name, got, tc.want)
		}
	}
}

// What is at rest is read again as often as the interval says, or as gates watch it, and in
// each pass for as long as a predecessor's calls may have their effect.
func TestWhenAPassMayLookAtWhatMovesAlone(t *testing.T) {
	l := &Loop{Interval: time.Minute}
	watched := &Loop{Interval: time.Minute, within: 20 * time.Second}
	for name, tc := range map[string]struct {
		found           pace
		listed, every   time.Duration
		running, unsure time.Duration
		want            bool
	}{
		"something moves":                {moving, 30 * time.Second, l.fullReadEvery(), time.Hour, 0, true},
		"it did something":               {acted, time.Second, l.fullReadEvery(), time.Hour, 0, true},
		"nothing moves":                  {resting, time.Second, l.fullReadEvery(), time.Hour, 0, false},
		"the interval is over":           {moving, time.Minute, l.fullReadEvery(), time.Hour, 0, false},
		"pools are watched":              {moving, 19 * time.Second, watched.fullReadEvery(), time.Hour, 0, true},
		"pools are watched, and due":     {moving, 20 * time.Second, watched.fullReadEvery(), time.Hour, 0, false},
		"no interval is set":             {moving, 59 * time.Second, (&Loop{}).fullReadEvery(), time.Hour, 0, true},
		"a predecessor's calls may come": {moving, time.Second, l.fullReadEvery(), 9 * time.Second, 10 * time.Second, false},
		"they are over":                  {moving, time.Second, l.fullReadEvery(), 10 * time.Second, 10 * time.Second, true},
	} {
		if got := mayLook(tc.found, tc.listed, tc.every, tc.running, tc.unsure); got != tc.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// A weir that takes a scope over looks often for a while, though nothing moves: calls of
// the weir before may still have their effect.
func TestASuccessorLooksOftenForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		l := &Loop{Interval: time.Minute, MovingDelay: 2 * time.Second, Watchful: 10 * time.Second, Logger: slog.New(slog.DiscardHandler), Rand: func() float64 { return 0.5 },
			Desired: func(context.Context) (Batch, error) {
				at = append(at, time.Since(began))
				return Batch{}, nil
			}}
		ctx, cancel := context.WithTimeout(t.Context(), 80*time.Second)
		defer cancel()
		if err := l.Run(ctx); err != nil {
			t.Error(err)
		}
		want := []time.Duration{0, 2 * time.Second, 4 * time.Second, 6 * time.Second, 8 * time.Second, 10 * time.Second, 70 * time.Second}
		if !slices.Equal(at, want) {
			t.Errorf("it looked at %v, want %v", at, want)
		}
	})
}
