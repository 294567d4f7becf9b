package app

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
)

// TestNothingStartsAfterTheEnd of a daemon, though a reload was under way: it starts no
// generation once it is to end.
func TestNothingStartsAfterTheEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	a := w.open(w.config(), nil)
	a.startPasses(t.Context())
	old := a.gen.Load()
	old.start(t.Context())
	old.startConductor(t.Context())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := a.swap(ctx, w.config()); err == nil || a.gen.Load() != old {
		t.Errorf("another generation is there: %v", err)
	}
	if err := a.Stop(t.Context()); err != nil {
		t.Error(err)
	}
	if err := old.halt(t.Context(), conductorPart, pullsPart, sourcesPart, statusesPart, notifierPart); err != nil {
		t.Error(err)
	}
}

// TestAStopAfterAReload that went by a call in flight: the call is finished.
func TestAStopAfterAReload(t *testing.T) {
	t.Parallel()
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
	a.reloadDue.send()
	eventually(t, "the reload", func() string {
		if got := reloadsOf(t, a, "success"); got != 1 {
			return fmt.Sprint(got)
		}
		return ""
	})
	// Stop does this before it ends the passes.
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

// TestAReloadIsNotSeenFromOutside: no request fails meanwhile, weir stays ready, and the
// status of a commit that is being applied does not change.
func TestAReloadIsNotSeenFromOutside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	called, answer := make(chan struct{}, 1), make(chan struct{})
	var hold atomic.Bool
	w.before = func(body string) {
		if hold.Load() && strings.Contains(body, "Action=UpdateAutoScalingGroup") {
			select {
			case called <- struct{}{}:
			default:
			}
			<-answer
		}
	}
	release := sync.OnceFunc(func() { close(answer) })
	defer release()
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	next := w.config()
	a, stop := w.startWith(func() (*config.Config, error) { return next, nil })
	defer stop()
	converged(t, a, first, 1)
	hold.Store(true)
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 4)}))
	second := w.repo.Commit("second")
	<-called
	eventually(t, "pending", func() string {
		if got := w.forge.states(second, "fleet/apply"); got != "pending" {
			return got
		}
		return ""
	})

	ctx, cancel := context.WithCancel(t.Context())
	var asked sync.WaitGroup
	var requests atomic.Int64
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, path := range []string{"/", "/readyz", "/healthz", "/targets/prod", "/api/v1/pools"} {
		asked.Go(func() {
			for ctx.Err() == nil {
				res, err := client.Get(a.PageURL() + path)
				if err != nil {
					t.Error(err)
					return
				}
				_ = res.Body.Close()
				if requests.Add(1); res.StatusCode != http.StatusOK {
					t.Errorf("%s: %s", path, res.Status)
				}
			}
		})
	}
	for n := range 3 {
		next = w.config()
		next.Interval += time.Duration(n)
		before := a.gen.Load()
		a.reloadDue.send()
		eventually(t, "the reload", func() string {
			if got := reloadsOf(t, a, "success"); got != float64(n+1) {
				return fmt.Sprint(got)
			}
			return ""
		})
		if a.gen.Load() == before {
			t.Error("the generation is the one before")
		}
	}
	cancel()
	asked.Wait()
	if requests.Load() < 10 {
		t.Errorf("%d requests", requests.Load())
	}
	hold.Store(false)
	release()
	converged(t, a, second, 1)
	eventually(t, "applied", func() string {
		if got := w.forge.states(second, "fleet/apply"); got != "pending success" {
			return got
		}
		return ""
	})
}
