package app

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
)

// TestAReloadWaitsForTheCallsInFlight, as long as AWS takes: a daemon that gave up
// over a slow answer would manage nothing. Only a stop ends the waiting.
func TestAReloadWaitsForTheCallsInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		a := &App{log: slog.New(slog.NewTextHandler(&out, nil)), fatal: make(chan error, 1)}
		loop, answered := &running{}, make(chan struct{})
		loop.stop = a.spawn(t.Context(), "loop", func(context.Context) error { <-answered; return nil })
		stopped, stop := context.WithCancel(t.Context())
		waits := func(ctx context.Context) <-chan error {
			done := make(chan error, 1)
			go func() { done <- a.haltLoop(ctx, loop) }()
			time.Sleep(time.Hour)
			synctest.Wait()
			if len(done) > 0 {
				t.Fatalf("the reload did not wait: %v", <-done)
			}
			return done
		}
		first, second := waits(t.Context()), waits(stopped)
		if n := strings.Count(out.String(), "level=INFO"); n != 2 || strings.Count(out.String(), "\n") != 2 {
			t.Errorf("each waiting is to be logged once:\n%s", &out)
		}
		stop()
		if err := <-second; !errors.Is(err, context.Canceled) {
			t.Errorf("the stopped one: %v", err)
		}
		close(answered)
		if err := errors.Join(<-first, loop.end(t.Context())); err != nil || len(a.fatal) > 0 {
			t.Errorf("once AWS had answered: %v, %d fatal", err, len(a.fatal))
		}
	})
}

// TestNoLoopStartsAfterTheEnd of loops, though a reload is about to start one.
func TestNoLoopStartsAfterTheEnd(t *testing.T) {
	w := newWorld(t, quickAWS())
	a := w.open(w.config(), nil)
	loop := &running{}
	if err := loop.end(t.Context()); err != nil {
		t.Fatal(err)
	}
	a.startLoop(t.Context(), loop)
	if loop.stop != nil {
		t.Error("a loop runs that nobody stops")
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

// TestAStopDuringAReload: the reload that waits for AWS gives up at once, and the
// call in flight has the loop's own time.
func TestAStopDuringAReload(t *testing.T) {
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
	next, loading := w.config(), make(chan struct{})
	next.Interval *= 2
	a := w.open(w.config(), func() (*config.Config, error) { close(loading); return next, nil })
	old := a.gen
	a.Start(t.Context())
	<-called
	a.configChanged()
	<-loading
	// What Stop does after the configuration, whose time it is not to use up.
	i := slices.IndexFunc(a.cleanups, func(c cleanup) bool { return c.name == "configuration" })
	a.cleanups = slices.Insert(a.cleanups, i, cleanup{name: "answer", run: func(context.Context) error { close(answer); return nil }})
	stop, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := a.Stop(stop); err != nil {
		t.Error(err)
	}
	if a.gen != old {
		t.Error("the reload went on")
	}
	if got := w.writes(); !slices.Contains(got, "CreateAutoScalingGroup") {
		t.Errorf("the call in flight was not finished: %v", got)
	}
}
