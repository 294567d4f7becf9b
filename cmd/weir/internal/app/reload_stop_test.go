package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
)

// TestNoConductorStartsAfterTheEnd of conductors, though a reload is about to start one.
func TestNoConductorStartsAfterTheEnd(t *testing.T) {
	w := newWorld(t, quickAWS())
	a := w.open(w.config(), nil)
	conductor := &running{}
	if err := conductor.end(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.startConductor(t.Context(), conductor)
	if conductor.stop != nil {
		t.Error("a conductor runs that nobody stops")
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestStopSeesTheGenerationOfAReload that had begun before, and is not held up
// for ever by one that hangs.
func TestStopSeesTheGenerationOfAReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		next := &generation{}
		a := &App{gen: &generation{}, swapping: make(chan struct{}, 1)}
		var seen *generation
		step := a.ofGeneration(func(g *generation, _ context.Context) error { seen = g; return nil })
		a.swapping <- struct{}{}
		bound, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := step(bound); !errors.Is(err, context.DeadlineExceeded) || seen != nil {
			t.Errorf("beside a reload that hangs: %v, %v", err, seen)
		}
		done := make(chan error, 1)
		go func() { done <- step(t.Context()) }()
		synctest.Wait()
		a.gen = next
		<-a.swapping
		if err := <-done; err != nil || seen != next {
			t.Errorf("after the reload: %v, the new generation: %t", err, seen == next)
		}
	})
}

// TestAReloadHurriesOnceWeirStops, and has its time before.
func TestAReloadHurriesOnceWeirStops(t *testing.T) {
	for name, tc := range map[string]struct{ stop, want time.Duration }{
		"never": {time.Hour, 20 * time.Second}, "at once": {0, time.Second}, "later": {3 * time.Second, 4 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				ctx, stop := context.WithTimeout(t.Context(), tc.stop)
				defer stop()
				bound, cancel := hurried(ctx, 20*time.Second, time.Second)
				defer cancel()
				<-bound.Done()
				if took := time.Since(began); took != tc.want {
					t.Errorf("it had %s, want %s", took, tc.want)
				}
			})
		})
	}
}

// TestAStopAfterAReload that went by a call in flight: the call is finished.
func TestAStopAfterAReload(t *testing.T) {
	w := newWorld(t, quickAWS())
	called, answer := make(chan struct{}, 1), make(chan struct{})
	w.before = func(body string) {
		if strings.Contains(body, "Action=CreateAutoScalingGroup") {
			select {
			case called <- struct{}{}:
			default:
			}
			<-answer
		}
	}
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	w.repo.Commit("first")
	next := w.config()
	next.Interval *= 2
	a := w.open(w.config(), func() (*config.Config, error) { return next, nil })
	a.Start(t.Context())
	<-called
	a.configChanged()
	eventually(t, "the reload", func() string {
		if got := reloadsOf(t, a, "success"); got != 1 {
			return fmt.Sprint(got)
		}
		return ""
	})
	// What Stop does before it ends the passes.
	i := slices.IndexFunc(a.cleanups, func(c cleanup) bool { return c.name == "passes" })
	a.cleanups = slices.Insert(a.cleanups, i+1, cleanup{name: "answer", run: func(context.Context) error { close(answer); return nil }})
	stop, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := a.Stop(stop); err != nil {
		t.Error(err)
	}
	if got := w.writes(); !slices.Contains(got, "CreateAutoScalingGroup") {
		t.Errorf("the call in flight was not finished: %v", got)
	}
}
