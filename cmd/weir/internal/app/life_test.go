package app

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/targetspec"
)

// TestASlowStepOfStopLeavesTheOthersTheirTime: also where the whole is over
// before it began.
func TestASlowStepOfStopLeavesTheOthersTheirTime(t *testing.T) {
	t.Parallel()
	for name, within := range map[string]time.Duration{"in time": 10 * time.Second, "too late": -time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &App{}
				began := time.Now()
				var left []time.Duration
				hog := func(ctx context.Context) error {
					deadline, _ := ctx.Deadline()
					left = append(left, time.Until(deadline))
					<-ctx.Done()
					return ctx.Err()
				}
				unlocked := false
				a.onStop("lock", 0, func(context.Context) error { unlocked = true; return nil })
				a.onStop("save", 2*time.Second, hog)
				a.onStop("post", 3*time.Second, hog)
				a.onStop("loop", 0, a.spawn(t.Context(), "loop", func(ctx context.Context) error { // it has no share, and still has to see that it is to end
					<-ctx.Done()
					time.Sleep(100 * time.Millisecond)
					return nil
				}))
				a.onStop("work", time.Second, hog)
				ctx, cancel := context.WithDeadline(t.Context(), began.Add(within))
				defer cancel()
				err := a.Stop(ctx)
				if !errors.Is(err, context.DeadlineExceeded) || strings.Contains(err.Error(), "loop") || !unlocked {
					t.Errorf("error %v, unlocked %t", err, unlocked)
				}
				want := []time.Duration{max(within-5*time.Second, time.Second), 3 * time.Second, 2 * time.Second}
				if fmt.Sprint(left) != fmt.Sprint(want) {
					t.Errorf("the steps had %v, want %v", left, want)
				}
			})
		})
	}
}

// startReloading begins with three machines; reload changes the configuration that the
// world has, and waits until it is taken.
func (w *world) startReloading() (a *App, reload func(change func(*config.Config)), stop func()) {
	w.t.Helper()
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	next, reloads := w.config(), 0.0
	a, stop = w.startWith(func() (*config.Config, error) { return next, nil })
	converged(w.t, a, first, 1)
	return a, func(change func(*config.Config)) {
		w.t.Helper()
		next = w.config()
		change(next)
		reloads++
		a.reloadDue.send()
		eventually(w.t, "reload", func() string {
			if got := reloadsOf(w.t, a, "success"); got != reloads {
				return fmt.Sprint(got)
			}
			return ""
		})
	}, stop
}

// TestAReloadTakesWhatTheForgeIsReachedBy and what the interval decides.
func TestAReloadTakesWhatTheForgeIsReachedBy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	a, reload, stop := w.startReloading()
	defer stop()
	// By a proxy that is not there, the forge is not reached.
	reload(func(c *config.Config) { c.Interval *= 1000; c.Sources[0].Proxy = "http://127.0.0.1:1" })
	second := w.repo.Commit("second")
	eventually(t, "the source is not reached", func() string {
		for _, s := range a.current.Sources.All() {
			if s.Error != "" {
				return ""
			}
		}
		return "no error"
	})
	if got := w.forge.states(second, "fleet/apply"); got != "" {
		t.Errorf("told past the proxy: %s", got)
	}
	reload(func(*config.Config) {})
	eventually(t, "the forge is reached again", func() string {
		if got := w.forge.states(second, "fleet/apply"); !strings.HasSuffix(got, "success") {
			return got
		}
		return ""
	})
}

// TestAChangedFileActsAtOnce: values start a pass, though none is due for an hour,
// and a better token is tried though the old one was refused.
func TestAChangedFileActsAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	values := filepath.Join(w.dir, "values")
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(values, "MAX=3\n")
	w.repo.Write(overlay(map[string]string{"web": strings.Replace(pool("web", "m5.large", 3), "maxSize: 3", "maxSize: ${MAX}", 1)}))
	first := w.repo.Commit("first")
	c := w.config()
	c.Interval = time.Hour
	c.Targets[0].VarsFrom = []targetspec.VarsFrom{{File: values}}
	a, stop := w.startConfig(c, nil)
	defer stop()
	converged(t, a, first, 1)
	write(values, "MAX=7\n")
	eventually(t, "the new value", func() string {
		if got := w.query("autoscaling", "DescribeAutoScalingGroups"); !strings.Contains(got, "<MaxSize>7</MaxSize>") {
			return got
		}
		return ""
	})
}
