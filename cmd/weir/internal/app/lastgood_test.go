package app

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// heldTo waits until the daemon says to which revision the target is held at a commit that
// cannot be rendered; "" for none, which has to be said as well.
func heldTo(t *testing.T, a *App, head, revision string) {
	t.Helper()
	eventually(t, "the hold", func() string {
		s, _ := a.current.Targets.Find("prod")
		switch {
		case s.Last == nil:
			return "no pass yet"
		case s.Last.Revision != head || s.Last.Fallback == nil:
			return fmt.Sprintf("at %q: %+v, %v", s.Last.Revision, s.Last.Fallback, s.Last.Diagnostics)
		case s.Last.Fallback.To() != revision || revision == "" && s.Last.Fallback.Revision != "":
			return fmt.Sprintf("it is held to %q: %s", s.Last.Fallback.To(), s.Last.Fallback.Text())
		}
		return ""
	})
}

// byHand sets a group's largest size past weir.
func (w *world) byHand(group string, size int) {
	w.t.Helper()
	w.query("autoscaling", fmt.Sprintf("UpdateAutoScalingGroup&AutoScalingGroupName=%s&MaxSize=%d", group, size))
}

// corrected waits until weir has put a group's largest size back.
func (w *world) corrected(group string, size int) {
	w.t.Helper()
	eventually(w.t, "the correction", func() string {
		if got := w.maxOf(group); got != fmt.Sprint(size) {
			return "the largest size of " + group + " is " + got
		}
		return ""
	})
}

func (w *world) maxOf(group string) string {
	w.t.Helper()
	_, rest, _ := strings.Cut(w.query("autoscaling", "DescribeAutoScalingGroups&AutoScalingGroupNames.member.1="+group), "<MaxSize>")
	size, _, _ := strings.Cut(rest, "<")
	return size
}

// harmless fails where writes since n did more than to put something back.
func (w *world) harmless(n int) {
	w.t.Helper()
	for _, op := range w.writes()[n:] {
		if !slices.Contains([]string{"UpdateAutoScalingGroup", "CreateOrUpdateTags"}, op) {
			w.t.Errorf("a target that is held was written: %s", op)
		}
	}
}

func (w *world) breaks(name string) string {
	w.t.Helper()
	w.repo.Write(map[string]string{"overlays/prod/" + name + ".yaml": "a: [\n"})
	return w.repo.Commit("broken")
}

// A commit that breaks the render blinds weir to nothing: drift is put right by the commit
// before, also by a daemon that starts at the broken one, and after what was changed while
// none ran. Pools that the broken commit no longer has stay.
func TestABrokenCommitIsHeldToTheOneBefore(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	pools := overlay(map[string]string{"web": pool("web", "m5.large", 3), "api": pool("api", "m5.large", 3)})
	w.repo.Write(pools)
	w.repo.Commit("first")
	w.repo.Write(map[string]string{"overlays/prod/web.yaml": pool("web", "m5.xlarge", 4)})
	second := w.repo.Commit("second")
	a, stop := w.start()
	converged(t, a, second, 2)
	w.repo.Write(map[string]string{"README": "nothing of the target"})
	third := w.repo.Commit("third")
	converged(t, a, third, 2)

	before := len(w.writes())
	w.repo.Write(overlay(map[string]string{"web": "a: [\n"})) // without api
	broken := w.repo.Commit("broken")
	heldTo(t, a, broken, second)
	s, _ := a.current.Targets.Find("prod")
	if text := s.Last.Fallback.Text(); !strings.Contains(text, "held to "+second[:7]) || !strings.Contains(text, "overlays/prod/web.yaml:") {
		t.Errorf("it says %q", text)
	}
	eventually(t, "the status", func() string {
		if state, text := w.forge.last(broken, "fleet/apply"); state != "failure" || !strings.Contains(text, "web.yaml") {
			return state + " " + text
		}
		return ""
	})
	w.byHand("web", 9)
	w.byHand("api", 8)
	w.corrected("web", 4)
	w.corrected("api", 3)
	stop()

	w.byHand("web", 7)
	a, stop = w.start()
	heldTo(t, a, broken, second)
	w.corrected("web", 4)
	again := w.breaks("api") // another broken one: it goes on
	heldTo(t, a, again, second)
	w.byHand("api", 6)
	w.corrected("api", 3)
	w.harmless(before)

	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.xlarge", 5), "api": pool("api", "m5.large", 3)}))
	mended := w.repo.Commit("mended")
	converged(t, a, mended, 2)
	stop()
	if s, _ := a.current.Targets.Find("prod"); s.Last.Fallback != nil || w.maxOf("web") != "5" {
		t.Errorf("mended: %+v, web has %s", s.Last.Fallback, w.maxOf("web"))
	}
}

// Where no commit could ever be rendered, the target is only observed, and says so.
func TestBrokenSinceTheFirstCommit(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"web": "a: [\n"}))
	w.repo.Commit("first")
	w.repo.Write(map[string]string{"README": "still"})
	head := w.repo.Commit("still broken")
	a, stop := w.start()
	defer stop()
	heldTo(t, a, head, "")
	if !finds(a, "observed-only") || len(w.writes()) > 0 {
		t.Errorf("found %s, wrote %v", troubles(a), w.writes())
	}
}

// After a force-push to a broken commit of another history, what weir itself applied still
// counts; in a repository that never had it, nothing does.
func TestABrokenCommitOfAnotherHistory(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quickAWS())
	w.repo.Write(overlay(map[string]string{"web": pool("web", "m5.large", 3)}))
	first := w.repo.Commit("first")
	a, stop := w.start()
	defer stop()
	converged(t, a, first, 1)
	before := len(w.writes())
	w.repo.Orphan()
	broken := w.breaks("web")
	heldTo(t, a, broken, first)
	w.byHand("web", 9)
	w.corrected("web", 3)
	w.harmless(before)
}
