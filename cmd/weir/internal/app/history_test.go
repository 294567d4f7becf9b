package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/status/history"
)

// TestHistoryOutlivesTheDaemon: what was told before a restart is there after it,
// and is not told again.
func TestHistoryOutlivesTheDaemon(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	a, stop := w.start()
	converged(t, a, first, 1)
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m6i.large", 3)}))
	second := w.repo.Commit("second")
	converged(t, a, second, 1)
	stop()
	told := func(a *App) []string {
		events, err := a.current.Activity.QueryEvents(history.Filter{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		out := []string{}
		for _, e := range slices.Backward(events) {
			// The number of progress events depends on time.
			if !strings.HasSuffix(e.Kind, "-progress") {
				out = append(out, e.Kind)
			}
		}
		return out
	}
	a, stop = w.start()
	defer stop()
	// The third pass of the second daemon has seen all there is to see twice.
	for range 3 {
		passed := lastPass(a)
		eventually(t, "a pass", func() string {
			if !lastPass(a).After(passed) {
				return "none yet"
			}
			return ""
		})
	}
	want := []string{
		"weir-started", "revision-seen", "template-created", "group-created", "pool-converged",
		"revision-seen", "version-created", "refresh-started", "refresh-succeeded", "default-version-moved", "pool-converged", "weir-started",
	}
	if diff := cmp.Diff(want, told(a)); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	runs, err := a.current.Activity.QueryRuns(history.Filter{})
	if err != nil || len(runs) < 3 || runs[0].Text != "nothing to change" && !strings.Contains(runs[0].Text, "default") {
		t.Errorf("passes %v, %v", runs, err)
	}
	version, err := a.current.Activity.QueryEvents(history.Filter{Kinds: []string{"version-created"}})
	if err != nil || len(version) != 1 || version[0].Revision != second || version[0].Facts["version"] != "2" || fmt.Sprint(version[0].Changes[0].To) != "m6i.large" {
		t.Errorf("the version's event is %+v, %v", version, err)
	}
}

func lastPass(a *App) time.Time {
	s, _ := a.current.Targets.Find("prod")
	if s.Last == nil {
		return time.Time{}
	}
	return s.Last.StartedAt
}
