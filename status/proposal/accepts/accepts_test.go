package accepts

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/proposal"
)

// TestOnePullRequestFollowsAWS until AWS and Git say the same.
func TestOnePullRequestFollowsAWS(t *testing.T) {
	w := newWorld(t)
	if n, why := w.ask(); n != 0 || !strings.Contains(why, "nothing otherwise") {
		t.Errorf("%d %s", n, why)
	}
	w.aws = "7"
	if n, why := w.ask(); n != 1 {
		t.Fatal(why)
	}
	w.proposes(1, "7", "accept-opened")
	if body := w.bodies[0]; !strings.Contains(body, "`size` is ") || !strings.Contains(body, "rollout of ***") || strings.Contains(body, "hunter2") || !strings.Contains(body, "https://weir.example.com/") {
		t.Error(body)
	}
	if message := w.repo.Git("log", "-1", "--format=%B", w.pulls[0].HeadRef); !strings.Contains(message, Trailer+": prod default/web") {
		t.Error(message)
	}
	if n, _ := w.ask(); n != 1 || w.pushes != 1 {
		t.Errorf("asked again: %d, %d pushes", n, w.pushes)
	}
	w.commit("other", "x") // which it does not touch
	if w.turn(); w.pushes != 1 {
		t.Errorf("%d pushes", w.pushes)
	}
	before := w.repo.Tip(w.pulls[0].HeadRef)
	w.aws = "8"
	w.turn()
	w.proposes(1, "8", "accept-opened accept-updated")
	if _, code := w.repo.Try("merge-base", "--is-ancestor", before, w.pulls[0].HeadRef); code != 0 {
		t.Error("the branch was forced")
	}
	w.commit("web", "5") // the lines are others by now
	w.turn()
	w.proposes(1, "8", "accept-opened accept-updated accept-updated")
	w.restart()
	w.commit("web", "8")
	if e := w.turn(); e.Number != 0 || w.pulls[0].State != forge.Closed {
		t.Errorf("%+v", e)
	}
	w.proposes(1, "8", "accept-opened accept-updated accept-updated accept-closed")
	if len(w.said) != 1 || !strings.Contains(w.said[0], "AWS and Git say the same") {
		t.Error(w.said)
	}
	w.aws = "9" // somebody asks anew
	if n, why := w.ask(); n != 2 {
		t.Error(n, why)
	}
}

// TestWhatPeopleDoWithIt: a merge and a closed pull request end it, and commits of others are
// left alone.
func TestWhatPeopleDoWithIt(t *testing.T) {
	for name, end := range map[string]forge.State{"merged": forge.Merged, "closed": forge.Closed} {
		w := newWorld(t)
		w.aws = "7"
		w.ask()
		w.pulls[0].State = end
		if e := w.turn(); e.Number != 0 {
			t.Errorf("%s: %+v", name, e)
		}
		w.proposes(1, "7", "accept-opened accept-closed")
		if e := w.turn(); e.Number != 0 || len(w.pulls) != 1 {
			t.Errorf("%s: opened again: %+v", name, e)
		}
		if n, why := w.ask(); n != 2 { // as somebody asked
			t.Errorf("%s: %d %s", name, n, why)
		}
		w.pulls[1].State, w.aws = end, "8" // and again, before weir has looked
		if n, why := w.ask(); n != 3 {
			t.Errorf("%s: %d %s", name, n, why)
		}
		if got := w.repo.Git("show", w.pulls[1].HeadRef+":web"); got != "7" {
			t.Errorf("%s: the branch of what has ended has %s", name, got)
		}
	}
	w := newWorld(t)
	w.aws = "7"
	w.ask()
	branch := w.pulls[0].HeadRef
	w.repo.Git("update-ref", "refs/heads/"+branch, w.repo.Git("commit-tree", "-m", "theirs", "-p", branch, branch+"^{tree}"))
	theirs := w.repo.Tip(branch)
	w.aws = "8"
	w.turn()
	w.turn()
	w.proposes(1, "7", "accept-opened accept-left")
	if n, why := w.ask(); n != 0 || !strings.Contains(why, "commits of somebody else") || w.repo.Tip(branch) != theirs || len(w.said) != 1 {
		t.Error(n, why, w.said)
	}
	w.aws = "3" // nor is it closed
	if w.turn(); w.pulls[0].State != forge.Open {
		t.Error("it was closed")
	}
	w.pulls[0].State = forge.Closed
	if e := w.turn(); e.Number != 0 {
		t.Errorf("%+v", e)
	}
}

// TestNothingIsDoneTwice: a write fails, or is done and its answer lost, and the process may end
// then.
func TestNothingIsDoneTwice(t *testing.T) {
	for _, write := range []string{"push", "open", "list"} {
		for _, lost := range []bool{false, true} {
			for _, dies := range []bool{false, true} {
				w := newWorld(t)
				w.aws, w.lost, w.fails[write] = "7", lost, errors.New("gone")
				if n, why := w.ask(); n != 0 || !strings.Contains(why, "not there yet") {
					t.Errorf("%s: %d %s", write, n, why)
				}
				if dies {
					w.restart()
				}
				if e := w.turn(); e.Number != 1 || e.Phase != proposal.Open {
					t.Errorf("%s lost %t dies %t: %+v", write, lost, dies, e)
				}
				if got := w.repo.Git("show", w.pulls[0].HeadRef+":web"); len(w.pulls) != 1 || got != "7" {
					t.Errorf("%s lost %t dies %t: %d pull requests with %s", write, lost, dies, len(w.pulls), got)
				}
			}
		}
	}
	for _, lost := range []bool{false, true} { // the text, and the end
		w := newWorld(t)
		w.aws = "7"
		w.ask()
		w.aws, w.lost, w.fails["push"] = "6", lost, errors.New("gone") // and the branch
		w.turn()
		w.restart()
		w.turn()
		w.proposes(1, "6", "accept-opened accept-updated")
		w.aws, w.fails["edit"] = "8", errors.New("gone")
		w.turn()
		w.restart()
		w.turn()
		if last := w.bodies[len(w.bodies)-1]; !strings.Contains(last, "`8`") && !strings.Contains(last, `"8"`) {
			t.Errorf("lost %t: %s", lost, last)
		}
		w.aws, w.fails["close"] = "3", errors.New("gone")
		w.turn()
		w.restart()
		if e := w.turn(); e.Number != 0 || w.pulls[0].State != forge.Closed {
			t.Errorf("lost %t: %+v", lost, e)
		}
		if got := w.events[len(w.events)-1]; got != "accept-closed" {
			t.Error(w.events)
		}
	}
}

// TestNoneIsLeftOpen: a pull request is opened and its answer lost, and by the time that weir
// looks again, AWS and Git say the same.
func TestNoneIsLeftOpen(t *testing.T) {
	for name, do := range map[string]func(w *world, branch string){
		"": func(*world, string) {},
		" theirs": func(w *world, b string) {
			w.repo.Git("update-ref", "refs/heads/"+b, w.repo.Git("commit-tree", "-m", "theirs", "-p", b, b+"^{tree}"))
		},
		" closed":  func(w *world, _ string) { w.pulls[0].State = forge.Closed },
		" dropped": func(w *world, _ string) { w.pulls = nil }, // it was not opened after all
	} {
		w := newWorld(t)
		w.aws, w.lost, w.fails["open"] = "7", true, errors.New("gone")
		w.ask()
		w.aws = "3"
		do(w, w.pulls[0].HeadRef)
		w.restart()
		e := w.turn()
		if open := len(w.pulls) > 0 && w.pulls[0].State == forge.Open; open != (name == " theirs") || (e.Branch == "") == open {
			t.Errorf("%s: open %t, %+v", name, open, e)
		}
		if got, want := strings.Join(w.events, " "), map[bool]string{true: "accept-left", false: "accept-closed"}[name == " theirs"]; got != want {
			t.Errorf("%s: told %s", name, got)
		}
	}
}

// TestWhoClosedIt: weir was to close it, could not, and it is needed again by the time that
// somebody does.
func TestWhoClosedIt(t *testing.T) {
	w := newWorld(t)
	w.aws = "7"
	w.ask()
	w.aws, w.fails["close"] = "3", errors.New("gone")
	w.turn()
	w.aws = "7"
	if e := w.turn(); e.Closing != "" || e.Phase != proposal.Open {
		t.Errorf("%+v", e)
	}
}

// TestWhatIsKeptNoMoreIsLeftAlone: the pull request is open, and weir does not know any more what
// it pushed.
func TestWhatIsKeptNoMoreIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.aws = "7"
	w.ask()
	if err := w.store.Update(func(tx *state.Tx) error { return records.Delete(tx, "s") }); err != nil {
		t.Fatal(err)
	}
	w.restart()
	w.aws = "8"
	if n, why := w.ask(); n != 0 || !strings.Contains(why, "open for this pool already") {
		t.Error(n, why)
	}
	w.turn()
	w.proposes(1, "7", "accept-opened")
}

// TestWhoMayNotPushIsToldOnce, and it is tried again.
func TestWhoMayNotPushIsToldOnce(t *testing.T) {
	w := newWorld(t)
	w.aws = "7"
	for range 3 {
		w.fails["open"] = &forgehttp.Error{Fault: forgehttp.FaultDenied, Message: "no scope, hunter2"}
		w.ask()
	}
	if got := strings.Join(w.events, " "); got != "accept-refused" {
		t.Error(got)
	}
	if e := w.turn(); e.Number != 1 {
		t.Errorf("%+v", e)
	}
	w = newWorld(t)
	w.aws, w.left = "7", "a variable decides"
	if n, why := w.ask(); n != 0 || !strings.Contains(why, "a variable decides") || len(w.pulls) != 0 {
		t.Error(n, why)
	}
}
