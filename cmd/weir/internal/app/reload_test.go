package app

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
)

// TestReload swaps a running daemon's configuration: the forge goes and comes
// back, the source is another one, a target appears and one goes.
func TestReload(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	files := overlay(map[string]string{"web": pool("web", "m5.large", 3)})
	files["overlays/dev/pool.yaml"] = pool("dev", "m5.large", 3)
	w.repo.Write(files)
	first := w.repo.Commit("first")
	next := w.config()
	a, stop := w.startWith(func() (*config.Config, error) {
		if next == nil {
			return nil, errors.New("not today")
		}
		return next, nil
	})
	defer stop()
	converged(t, a, first, 1)

	reloads := func(result string, n float64) {
		t.Helper()
		a.reloadDue.send()
		eventually(t, "reload", func() string {
			if got := reloadsOf(t, a, result); got != n {
				return fmt.Sprintf("%s: %v", result, got)
			}
			return ""
		})
	}
	// Without the forge, with another target, and the source polled differently.
	w.extra = "- {name: dev, path: overlays/dev, region: us-east-1}\n"
	c := w.config()
	c.Forges, c.Sources[0].Interval = nil, c.Sources[0].Interval*2
	next = c
	reloads("success", 1)
	eventually(t, "the new target", func() string {
		if s, ok := a.current.Targets.Find("dev"); !ok || s.Last == nil || !s.Last.Converged() {
			return fmt.Sprintf("%+v", s.Last)
		}
		return ""
	})
	second := w.repo.Commit("second")
	converged(t, a, second, 1)
	if got := w.forge.states(second, "fleet/apply"); got != "" {
		t.Errorf("statuses without a forge: %s", got)
	}

	// A reload refuses an unreadable configuration, and changes that need a restart.
	next = nil
	reloads("refused", 1)
	c = w.config()
	c.Instance = "other"
	next = c
	reloads("refused", 2)
	c = w.config()
	c.Coordination.DynamoDB.Table = "weir"
	next = c
	reloads("refused", 3)

	// Back to the first one: the other target goes, the forge is told again.
	w.extra = ""
	next = w.config()
	reloads("success", 2)
	eventually(t, "the target goes", func() string {
		if _, ok := a.current.Targets.Find("dev"); ok {
			return "still there"
		}
		return ""
	})
	third := w.repo.Commit("third")
	eventually(t, "the forge is told", func() string {
		if got := w.forge.states(third, "fleet/apply"); got != "success" {
			return got
		}
		return ""
	})
	if got := w.deletes(); len(got) > 0 {
		t.Errorf("deleted: %v", got)
	}
}

func TestThePageIsServed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	converged(t, a, first, 1)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for path, want := range map[string]int{
		"/": 200, "/targets/prod": 200, "/api/v1/pools": 200, "/api/v1/targets": 200, "/metrics": 200, "/healthz": 200, "/readyz": 200, "/nothing": 404,
	} {
		res, err := client.Get(a.PageURL() + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != want {
			t.Errorf("%s: want %d, got %d", path, want, res.StatusCode)
		}
	}
}
