package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/notify"
	"github.com/weir-gitops/weir/status/statustest"
)

// TestAForgeThatDoesNotAnswerHoldsUpNoReload: whatever weir asks it just then.
func TestAForgeThatDoesNotAnswerHoldsUpNoReload(t *testing.T) {
	t.Parallel()
	for _, path := range []string{"/statuses", "/pulls", "/user", "/comments", ""} {
		t.Run(cmp.Or(strings.Trim(path, "/"), "all"), func(t *testing.T) {
			w := newWorld(t, quickAWS())
			var log statustest.Log
			w.log = slog.New(slog.NewTextHandler(&log, nil))
			asked, release := make(chan struct{}, 100), make(chan struct{})
			to, err := url.Parse(w.forge.url)
			if err != nil {
				t.Fatal(err)
			}
			pass := httputil.NewSingleHostReverseProxy(to)
			hanging := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
				if strings.Contains(r.URL.Path, path) {
					asked <- struct{}{}
					<-release
				}
				pass.ServeHTTP(rw, r)
			}))
			defer hanging.Close()
			answer := sync.OnceFunc(func() { close(release) })
			defer answer()
			w.forge.url = hanging.URL
			w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
			first := w.repo.Commit("first")
			w.propose(1, map[string]string{"web": pool("web", "m5.large", 4)})
			next := w.config()
			a, stop := w.startConfig(w.config(), func() (*config.Config, error) { return next, nil })
			defer stop()
			<-asked
			a.reloadDue.send()
			eventually(t, "the reload", func() string {
				if got := reloadsOf(t, a, "success"); got != 1 {
					return fmt.Sprint(got)
				}
				return ""
			})
			if strings.Contains(log.String(), "did not stop cleanly") {
				t.Errorf("the forge was waited for:\n%s", log.String())
			}
			answer()
			eventually(t, "the status", func() string { // at its end a daemon says which are left
				if got := w.forge.states(first, "fleet/apply"); !strings.HasSuffix(got, "success") {
					return "is " + got
				}
				return ""
			})
		})
	}
}

// deaf are records that cannot be read, while it is so or once; some reads still work.
type deaf struct {
	state.Store
	is, once atomic.Bool
	first    atomic.Int32
}

func (d *deaf) View(fn func(*state.Tx) error) error {
	if d.is.Load() && d.first.Add(-1) < 0 || d.once.CompareAndSwap(true, false) {
		return errors.New("input/output error")
	}
	return d.Store.View(fn)
}

// TestAReloadThatCannotStartLeavesTheOldOne: its statuses have a journal that cannot be
// read. The old configuration goes on as if nothing had been asked, with a forge of its own
// and without one.
func TestAReloadThatCannotStartLeavesTheOldOne(t *testing.T) {
	t.Parallel()
	for _, forges := range []int{0, 1} {
		t.Run(fmt.Sprintf("%d forges before", forges), func(t *testing.T) {
			w := newWorld(t, quickAWS())
			w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
			first := w.repo.Commit("first")
			c, next := w.config(), w.config()
			c.Forges = c.Forges[:forges]
			next.Interval *= 2
			a, stop := w.startConfig(c, func() (*config.Config, error) { return next, nil })
			defer stop()
			converged(t, a, first, 1)
			if forges > 0 {
				eventually(t, "the verdict", func() string {
					if got := w.forge.states(first, "fleet/apply"); !strings.HasSuffix(got, "success") {
						return "is " + got
					}
					return ""
				})
			}
			records := &deaf{Store: a.store}
			records.is.Store(true)
			a.store = records
			old := a.gen.Load()
			reload := func(result string) {
				a.reloadDue.send()
				eventually(t, "the reload", func() string {
					if got := reloadsOf(t, a, result); got != 1 {
						return fmt.Sprint(result, " ", got)
					}
					return ""
				})
			}
			reload("refused")
			if a.gen.Load() != old {
				t.Error("the old configuration was stopped")
			}
			records.is.Store(false) // a pass writes nothing while they cannot be read
			w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 4)}))
			converged(t, a, w.repo.Commit("second"), 1)
			reload("success")
			w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 5)}))
			third := w.repo.Commit("third")
			converged(t, a, third, 1)
			eventually(t, "the verdict", func() string {
				if got := w.forge.states(third, "fleet/apply"); !strings.HasSuffix(got, "success") {
					return "is " + got
				}
				return ""
			})
		})
	}
}

// TestAReloadThatFailsHalfWay starts the old configuration again: the journal went away
// after it had been looked at, when the old one left it.
func TestAReloadThatFailsHalfWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	c, next := w.config(), w.config()
	c.Forges = nil
	a, stop := w.startConfig(c, func() (*config.Config, error) { return next, nil })
	defer stop()
	converged(t, a, first, 1)
	old := a.gen.Load()
	records := &deaf{Store: a.store}
	a.store = records
	// The last of what leaves.
	old.stops[notifierPart] = append(old.stops[notifierPart], func(context.Context) error {
		records.once.Store(true)
		return nil
	})
	a.reloadDue.send()
	eventually(t, "the reload", func() string {
		if got := reloadsOf(t, a, "refused"); got != 1 {
			return fmt.Sprint(got)
		}
		return ""
	})
	if g := a.gen.Load(); g == old || g.config != c {
		t.Error("the old configuration was not started again")
	}
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 4)}))
	converged(t, a, w.repo.Commit("second"), 1)
}

// TestAWebhookDuringAReload is acted on, whatever the reload is at: the sources are polled
// each hour.
func TestAWebhookDuringAReload(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	next := w.hooked()
	a, stop := w.startConfig(w.hooked(), func() (*config.Config, error) { return next, nil })
	defer stop()
	converged(t, a, first, 1)
	for n, when := range []part{pullsPart, sourcesPart, notifierPart} {
		old := a.gen.Load()
		var commit string
		old.stops[when] = append(old.stops[when], func(context.Context) error {
			w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 4+n)}))
			commit = w.repo.Commit("while it is reloaded")
			code, err := deliver(a, fmt.Sprint("d-", n), commit, hookSecret)
			if code != http.StatusAccepted {
				err = fmt.Errorf("answered %d, %w", code, err)
				t.Error(err)
			}
			return err
		})
		a.reloadDue.send()
		eventually(t, "the reload", func() string {
			if got := reloadsOf(t, a, "success"); got != float64(n+1) {
				return fmt.Sprint(got)
			}
			return ""
		})
		converged(t, a, commit, 1)
	}
}

// TestNotificationsWaitOverAReload for a receiver that does not take them before it.
func TestNotificationsWaitOverAReload(t *testing.T) {
	t.Parallel()
	var refuses atomic.Bool
	refuses.Store(true)
	var mu sync.Mutex
	got := map[string]int{}
	asked := make(chan struct{}, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		asked <- struct{}{}
		if refuses.Load() {
			rw.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		mu.Lock()
		defer mu.Unlock()
		got[r.Header.Get(notify.HeaderEvent)]++
	}))
	defer receiver.Close()
	w := newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	file := filepath.Join(w.dir, "notify-secret")
	if err := os.WriteFile(file, []byte("a-secret-for-notifications\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	configured := func() *config.Config {
		c := w.config()
		c.Notify = []config.Notify{{URL: receiver.URL, SecretFile: file}}
		return c
	}
	next := configured()
	a, stop := w.startConfig(configured(), func() (*config.Config, error) { return next, nil })
	defer stop()
	<-asked
	converged(t, a, first, 1)
	a.reloadDue.send()
	eventually(t, "the reload", func() string {
		if n := reloadsOf(t, a, "success"); n != 1 {
			return fmt.Sprint(n)
		}
		return ""
	})
	refuses.Store(false)
	eventually(t, "what happened before the reload", func() string {
		mu.Lock()
		defer mu.Unlock()
		if got["group-created"] != 1 || got["template-created"] != 1 || got["configuration-reloaded"] != 1 {
			return fmt.Sprint(got)
		}
		return ""
	})
}
