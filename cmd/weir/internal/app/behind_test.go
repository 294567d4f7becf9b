package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/render/diag"
)

// second is another daemon of the same instance, in front of the same AWS, that reads
// the same repository at an address of its own, with a state directory of its own.
func (w *world) second(address, ref string) (a *App, stop func()) {
	w.t.Helper()
	dir := w.t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("s3cret-token\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
	text := fmt.Sprintf(configuration, w.url, address, w.forge.url, w.extra, w.forgeExtra, w.sourceExtra)
	text = strings.Replace(text, "{branch: main}", ref, 1)
	text = text[:strings.Index(text, "forges:")] + text[strings.Index(text, "targets:"):]
	c, faults := config.Parse(filepath.Join(dir, "weir.yaml"), []byte(text), config.Env{Getenv: os.Getenv})
	if c == nil {
		w.t.Fatalf("configuration: %v", faults)
	}
	return w.startConfig(c, nil)
}

// finds reports whether the last pass of a daemon found something.
func finds(a *App, code string) bool {
	s, _ := a.current.Targets.Find("prod")
	return s.Last != nil && slices.ContainsFunc(s.Last.Diagnostics, func(d diag.Diagnostic) bool { return d.Code == code })
}

// counts are how often operations were called that make machines go.
func (w *world) rollouts() int {
	calls := w.aws.CallCounts()
	return calls["autoscaling:StartInstanceRefresh"] + calls["autoscaling:CancelInstanceRefresh"]
}

// Of two daemons of one instance, one is held at an old commit: the other one's work
// stands, and the first says who is ahead of whom.
func TestADaemonAtAnOldCommitDoesNotFight(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3), "api": pool("api", "m5.large", 3)}))
	first := w.repo.Commit("first")
	a, end := w.start()
	stop := sync.OnceFunc(end)
	defer stop()
	converged(t, a, first, 2)
	b, stopB := w.second(w.repo.URL(), "{commit: "+first+"}")
	defer stopB()
	converged(t, b, first, 2)

	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.xlarge", 3), "api": pool("api", "m5.large", 3)}))
	second := w.repo.Commit("second")
	converged(t, a, second, 2)
	eventually(t, "the second daemon's word", func() string {
		if !finds(b, "commit-ahead") {
			s, _ := b.current.Targets.Find("prod")
			return fmt.Sprint(s.Last.Diagnostics)
		}
		return ""
	})
	time.Sleep(3 * time.Second) // ten intervals
	if n := w.rollouts(); n != 1 {
		t.Errorf("%d refreshes were started or cancelled", n)
	}
	if s, _ := a.current.Targets.Find("prod"); !s.Last.Converged() {
		t.Errorf("the first daemon is not at rest: %v", s.Last.Diagnostics)
	}
	if s, _ := b.current.Targets.Find("prod"); s.Last.Plan == nil || s.Last.Plan.Runnable() > 0 || finds(b, "drift") {
		t.Errorf("the second one would write: %v", s.Last.Plan)
	}

	// Somebody decides that it is right: with the other one stopped, it writes.
	stop()
	if got, _ := b.daemon.Reconcile([]string{"prod"}, true); len(got) != 1 {
		t.Errorf("reconciles %v", got)
	}
	converged(t, b, first, 2)
	if n := w.rollouts(); n != 2 {
		t.Errorf("%d refreshes were started or cancelled", n)
	}
}

// One whose Git does not answer waits, and goes on with what it then finds.
func TestADaemonWithoutGitWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	converged(t, a, first, 1)
	to, err := url.Parse(w.repo.URL())
	if err != nil {
		t.Fatal(err)
	}
	var away atomic.Bool
	proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: to.Scheme, Host: to.Host})
	door := httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		if away.Load() {
			http.Error(rw, "away", http.StatusServiceUnavailable)
			return
		}
		proxy.ServeHTTP(rw, r)
	}))
	defer door.Close()
	b, stopB := w.second(door.URL+to.Path, "{branch: main}")
	defer stopB()
	converged(t, b, first, 1)
	away.Store(true)
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.xlarge", 3)}))
	second := w.repo.Commit("second")
	converged(t, a, second, 1)
	eventually(t, "the second daemon asks", func() string {
		if !finds(b, "commit-asked") {
			s, _ := b.current.Targets.Find("prod")
			return fmt.Sprint(s.Last.Diagnostics)
		}
		return ""
	})
	time.Sleep(2 * time.Second)
	if n := w.rollouts(); n != 1 || finds(b, "commit-ahead") {
		t.Errorf("%d refreshes were started or cancelled", n)
	}
	away.Store(false)
	converged(t, b, second, 1)
	if n := w.rollouts(); n != 1 {
		t.Errorf("%d refreshes were started or cancelled", n)
	}
}

// A branch that is reset takes the machines back, also where that happens while weir is
// stopped; and a revert does.
func TestGoingBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	commit := func(kind string) string {
		w.repo.Write(overlay(map[string]string{"web": pool("web", kind, 3)}))
		return w.repo.Commit(kind)
	}
	first, second := commit("m5.large"), ""
	a, stop := w.start()
	converged(t, a, first, 1)
	second = commit("m5.xlarge")
	converged(t, a, second, 1)
	w.repo.Branch("main", first)
	converged(t, a, first, 1)
	if n := w.rollouts(); n != 2 {
		t.Errorf("reset: %d rollouts", n)
	}
	w.repo.Branch("main", second)
	converged(t, a, second, 1)
	stop()
	w.repo.Branch("main", first)
	a, stop = w.start()
	converged(t, a, first, 1)
	w.repo.Switch("main")
	converged(t, a, commit("m5.xlarge"), 1)
	converged(t, a, commit("m5.large"), 1) // a revert
	stop()
	if finds(a, "commit-ahead") {
		t.Error("somebody is said to be ahead")
	}
	// Without any memory, what is not in the repository any more stops it, until
	// somebody says otherwise.
	last := commit("m5.2xlarge")
	a, stop = w.start()
	converged(t, a, last, 1)
	stop()
	if err := os.RemoveAll(filepath.Join(w.dir, "state")); err != nil {
		t.Fatal(err)
	}
	w.repo.Branch("main", first)
	a, stop = w.start()
	defer stop()
	eventually(t, "the stop", func() string {
		if !finds(a, "commit-ahead") {
			s, _ := a.current.Targets.Find("prod")
			return fmt.Sprint(s.Last)
		}
		return ""
	})
	before := w.rollouts()
	_, _ = a.daemon.Reconcile(nil, true)
	converged(t, a, first, 1)
	if n := w.rollouts() - before; n != 1 {
		t.Errorf("retried: %d rollouts", n)
	}
}
