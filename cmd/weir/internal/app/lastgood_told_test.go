package app

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler/fleet/fleettest"
	"github.com/weir-gitops/weir/status/history"
)

// holdEvents are what was told of holds, oldest first, whichever daemon told it.
func holdEvents(t *testing.T, a *App) (out []string) {
	t.Helper()
	list, err := a.current.Activity.QueryEvents(history.Filter{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		if slices.Contains([]string{"target-held", "target-only-observed", "target-hold-ended"}, e.Kind) {
			out = append(out, e.Kind)
		}
	}
	slices.Reverse(out)
	return out
}

// anotherPass waits until a pass has been over the target since.
func anotherPass(t *testing.T, a *App) {
	t.Helper()
	began := lastPass(a)
	eventually(t, "another pass", func() string {
		if !lastPass(a).After(began) {
			return "none"
		}
		return ""
	})
}

// A hold is told when it begins and when it ends, once each: not again by a daemon that starts
// under it, nor for the next commit that is as broken.
func TestAHoldIsToldOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer func() { stop() }()
	converged(t, a, first, 1)
	heldTo(t, a, w.breaks("web"), first)
	w.told(w.repo.Tip("main"), "fleet/apply", "failure", "prod: held to "+first[:7])
	for range 2 {
		stop()
		a, stop = w.start()
		heldTo(t, a, w.repo.Tip("main"), first)
		anotherPass(t, a)
	}
	w.repo.Write(map[string]string{"README": "words"})
	heldTo(t, a, w.repo.Commit("words"), first)
	if got := holdEvents(t, a); !slices.Equal(got, []string{"target-held"}) {
		t.Errorf("told %v", got)
	}
	if s, _ := a.current.Targets.Find("prod"); s.HeldSince.IsZero() || !s.HeldSince.Before(s.Last.StartedAt) {
		t.Errorf("it is held since %s", s.HeldSince)
	}
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 4)}))
	converged(t, a, w.repo.Commit("mended"), 1)
	if got := holdEvents(t, a); !slices.Equal(got, []string{"target-held", "target-hold-ended"}) {
		t.Errorf("told at the end: %v", got)
	}
}

// Another member takes a hold over: it holds to the same commit, puts drift right and writes
// nothing more, and each event is told once between them.
func TestATakeoverKeepsAHold(t *testing.T) {
	t.Parallel()
	s := newSeveral(t)
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := s.repo.Commit("first")
	a, b := s.member("a"), s.member("b")
	defer a.stop()
	converged(t, b.App, first, 1)
	before := len(s.writes())
	broken := s.breaks("web")
	for _, m := range []*member{a, b} {
		heldTo(t, m.App, broken, first)
	}
	s.byHand("web", 9)
	s.corrected("web", 3)
	b.stop()
	s.byHand("web", 8)
	s.corrected("web", 3)
	heldTo(t, a.App, broken, first)
	anotherPass(t, a.App)
	s.harmless(before)
	if got := holdEvents(t, a.App); !slices.Equal(got, []string{"target-held"}) {
		t.Errorf("told %v", got)
	}
	s.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 4)}))
	converged(t, a.App, s.repo.Commit("mended"), 1)
	if got := holdEvents(t, a.App); !slices.Equal(got, []string{"target-held", "target-hold-ended"}) {
		t.Errorf("told at the end: %v", got)
	}
}

// Where all commits were written anew, the record names one that nobody has any more: what
// stands in its place says the same, and is what the target is held to.
func TestABrokenCommitOfARewrittenHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	good := overlay(map[string]string{"web": pool("web", "m5.large", 3)})
	w.repo.Write(good)
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer func() { stop() }()
	converged(t, a, first, 1)
	stop()
	before := len(w.writes())
	w.repo.Orphan()
	w.repo.Write(good)
	again := w.repo.Commit("first, with another message")
	broken := w.breaks("web")
	if err := os.RemoveAll(filepath.Join(w.config().StateDir, "mirrors")); err != nil {
		t.Fatal(err)
	}
	a, stop = w.start()
	heldTo(t, a, broken, again)
	w.byHand("web", 9)
	anotherPass(t, a)
	anotherPass(t, a)
	w.harmless(before)
}

// What the configuration breaks is not the commit's doing: nothing is written meanwhile, what
// was the last good one stays so, and once the configuration is mended all goes on.
func TestABrokenConfigurationKeepsTheLastGood(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	web := fleettest.Pool("web", "m5.large", "'${TYPE}'") // without a default
	w.repo.Write(overlay(map[string]string{"web": web}))
	first := w.repo.Commit("first")
	with := func(vars map[string]string) *config.Config {
		c := w.config()
		c.Targets[0].Vars = vars
		return c
	}
	good := map[string]string{"TYPE": "m5.large"}
	next := with(good)
	a, stop := w.startConfig(next, func() (*config.Config, error) {
		if next == nil {
			return nil, errors.New("no configuration")
		}
		return next, nil
	})
	defer func() { stop() }()
	converged(t, a, first, 1)
	before := len(w.writes())

	next = with(nil)
	a.reloadDue.send()
	heldTo(t, a, first, "") // no commit renders without the variable
	s, _ := a.current.Targets.Find("prod")
	if text := s.Last.Fallback.Text(); !strings.Contains(text, "TYPE") {
		t.Errorf("it does not say what is missing: %s", text)
	}
	w.byHand("web", 9)
	anotherPass(t, a)
	if got := w.maxOf("web"); got != "9" {
		t.Errorf("what is only observed was written: %s", got)
	}
	broken := w.breaks("web") // and then a commit breaks it as well
	heldTo(t, a, broken, "")
	if got := w.writes()[before:]; len(got) != 1 { // the one by hand
		t.Errorf("written: %v", got)
	}
	stop()

	next = with(good)
	a, stop = w.startConfig(next, nil)
	heldTo(t, a, broken, first)
	w.corrected("web", 3)
	w.harmless(before)
	if got := holdEvents(t, a); fmt.Sprint(got) != "[target-only-observed target-held]" {
		t.Errorf("told %v", got)
	}
}
