package accepts

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/accept"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/proposal"
	"github.com/weir-gitops/weir/status/proposal/proposaltest"
)

// world is a pool of which the file web holds what Git wants, and aws what AWS has.
type world struct {
	*proposaltest.World
	aws  string
	left string // why what AWS has cannot be written
	s    *Source
}

var web = Asked{Target: "prod", Pool: "default/web", By: "ann"}

const every = 5 * time.Minute

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: proposaltest.NewWorld(t), aws: "3"}
	w.restart()
	w.Commit("web", "web", "3")
	return w
}

// restart is another process: what is in memory is lost.
func (w *world) restart() { w.s = New(Options{Options: w.Options(every), Fleet: w}) }

// turn turns after what was tried before may be tried again, and gives what is kept.
func (w *world) turn() Entry {
	w.T.Helper()
	w.Now.Time = w.Now.Time.Add(time.Hour)
	if _, err := w.s.Turn(w.T.Context(), w.Store, w.Now); err != nil {
		w.T.Fatal(err)
	}
	return w.kept()
}

// kept is the only entry.
func (w *world) kept() Entry {
	w.T.Helper()
	all, err := w.s.Read(w.Store)
	if err != nil || len(all) > 1 {
		w.T.Fatal(all, err)
	}
	return append(all, Entry{})[0]
}

// ask asks, and gives the number or why there is none.
func (w *world) ask() (int64, string) {
	w.T.Helper()
	w.Now.Time = w.Now.Time.Add(time.Second)
	e, _, err := w.s.Ask(w.T.Context(), w.Store, w.Now, web)
	var wrong *gates.Fault
	switch {
	case errors.As(err, &wrong):
		return 0, wrong.Message
	case err != nil:
		w.T.Fatal(err)
	}
	return e.Number, ""
}

// Find implements Fleet.
func (w *world) Find(ctx context.Context, on string, a Asked) (out Found, err error) {
	s, err := w.Git.At(ctx, on)
	if err != nil {
		return out, err
	}
	text, err := s.Tree.ReadFile("web")
	if err != nil || string(text) == w.aws || a.Target != web.Target || len(a.Fields) > 0 && !slices.Contains(a.Fields, "size") {
		return out, err
	}
	out.Fields = []accept.Field{{Target: a.Target, Pool: a.Pool, Field: "size", Value: w.aws, At: "web:1", Left: w.left}}
	if w.left == "" {
		out.Files, out.More = map[string][]byte{"web": []byte(w.aws)}, []string{"rollout of hunter2"}
	}
	return out, nil
}

// proposes checks the last pull request: what its branch has, and what was reported so far.
func (w *world) proposes(n int, content, told string) {
	w.T.Helper()
	if len(w.Pulls) != n {
		w.T.Fatalf("%d pull requests, want %d", len(w.Pulls), n)
	}
	if got := w.Repo.Git("show", w.Last().HeadRef+":web"); got != content {
		w.T.Errorf("the branch has %s, want %s", got, content)
	}
	if got := strings.Join(w.Events, " "); got != told {
		w.T.Errorf("told %q, want %q", got, told)
	}
}

var gone = &forgehttp.Error{Fault: forgehttp.FaultBusy, Message: "gone"}

// TestContract holds what people keep of AWS against the rules of all proposals. Somebody asks, and the
// forge does not answer, so that all is done in turns.
func TestContract(t *testing.T) {
	proposaltest.Contract(t, func(t *testing.T) *proposaltest.Kind {
		w := newWorld(t)
		need := func() {
			w.aws, w.Fails["list"], w.Lost = "7", gone, false
			w.ask()
		}
		return &proposaltest.Kind{
			World: w.World, Record: "accepts", Every: every, Restart: w.restart, Reopens: true,
			Need: need, Again: need, Change: func() { w.aws = "8" }, Drop: func() { w.aws = "3" },
			Turn:    func() error { _, err := w.s.Turn(t.Context(), w.Store, w.Now); return err },
			Earlier: "target pool fields by phase at number url branch commit before on paths print said closing looked head tries after text",
			State:   func() proposal.State { return w.kept().State },
			Wants:   func() string { return "web=" + w.aws },
		}
	})
}

// TestOnePullRequestFollowsAWS until AWS and Git say the same.
func TestOnePullRequestFollowsAWS(t *testing.T) {
	w := newWorld(t)
	if n, why := w.ask(); n != 0 || !strings.Contains(why, "no other value") {
		t.Errorf("%d %s", n, why)
	}
	w.aws = "7"
	if n, why := w.ask(); n != 1 {
		t.Fatal(why)
	}
	w.proposes(1, "7", "accept-opened")
	if body := w.Bodies[0]; !strings.Contains(body, "`size` is ") || !strings.Contains(body, "rollout of ***") || strings.Contains(body, "hunter2") || !strings.Contains(body, "https://weir.example.com/") {
		t.Error(body)
	}
	if message := w.Repo.Git("log", "-1", "--format=%B", w.Pulls[0].HeadRef); !strings.Contains(message, Trailer+": prod default/web") {
		t.Error(message)
	}
	if n, _ := w.ask(); n != 1 || w.Calls["push"] != 1 {
		t.Errorf("asked again: %d, %d pushes", n, w.Calls["push"])
	}
	w.Commit("other", "other", "x") // which it does not touch
	if w.turn(); w.Calls["push"] != 1 {
		t.Errorf("%d pushes", w.Calls["push"])
	}
	before := w.Repo.Tip(w.Pulls[0].HeadRef)
	w.aws = "8"
	w.turn()
	w.proposes(1, "8", "accept-opened accept-updated")
	if _, code := w.Repo.Try("merge-base", "--is-ancestor", before, w.Pulls[0].HeadRef); code != 0 {
		t.Error("the branch was forced")
	}
	w.Commit("web", "web", "5") // the lines are others by now
	w.turn()
	w.proposes(1, "8", "accept-opened accept-updated accept-updated")
	w.restart()
	w.Commit("web", "web", "8")
	if e := w.turn(); e.Number != 0 || w.Pulls[0].State != forge.Closed {
		t.Errorf("%+v", e)
	}
	w.proposes(1, "8", "accept-opened accept-updated accept-updated accept-closed")
	if len(w.Said) != 1 || !strings.Contains(w.Said[0], "AWS and Git agree") {
		t.Error(w.Said)
	}
	w.aws = "9" // somebody asks anew
	if n, why := w.ask(); n != 2 {
		t.Error(n, why)
	}
}

// TestWhatPeopleDoWithIt: people may ask again after a merge and after one was closed, and are told of
// commits of somebody else.
func TestWhatPeopleDoWithIt(t *testing.T) {
	for name, end := range map[string]forge.State{"merged": forge.Merged, "closed": forge.Closed} {
		w := newWorld(t)
		w.aws = "7"
		w.ask()
		w.Pulls[0].State = end
		if e := w.turn(); e.Number != 0 {
			t.Errorf("%s: %+v", name, e)
		}
		w.proposes(1, "7", "accept-opened accept-closed")
		if e := w.turn(); e.Number != 0 || len(w.Pulls) != 1 {
			t.Errorf("%s: opened again: %+v", name, e)
		}
		if n, why := w.ask(); n != 2 { // as somebody asked
			t.Errorf("%s: %d %s", name, n, why)
		}
		w.Pulls[1].State, w.aws = end, "8" // and again, before weir has looked
		if n, why := w.ask(); n != 3 {
			t.Errorf("%s: %d %s", name, n, why)
		}
		if got := w.Repo.Git("show", w.Pulls[1].HeadRef+":web"); got != "7" {
			t.Errorf("%s: the branch of what has ended has %s", name, got)
		}
	}
	w := newWorld(t)
	w.aws = "7"
	w.ask()
	w.Push(w.Pulls[0].HeadRef)
	w.turn()
	w.proposes(1, "7", "accept-opened accept-left")
	if n, why := w.ask(); n != 0 || !strings.Contains(why, "commits by somebody else") || len(w.Said) != 1 {
		t.Error(n, why, w.Said)
	}
}

// TestWhoAsksIsAnswered: the pull request is not there yet, the process may end then, and asking again
// is one pull request.
func TestWhoAsksIsAnswered(t *testing.T) {
	for _, call := range []string{"push", "open", "list"} {
		for _, lost := range []bool{false, true} {
			w := newWorld(t)
			w.aws, w.Lost, w.Fails[call] = "7", lost, gone
			if n, why := w.ask(); n != 0 || !strings.Contains(why, "does not exist yet") {
				t.Errorf("%s: %d %s", call, n, why)
			}
			w.restart()
			if n, why := w.ask(); n != 1 || len(w.Pulls) != 1 {
				t.Errorf("%s, done %t: %d %s", call, lost, n, why)
			}
			w.proposes(1, "7", "accept-opened")
		}
	}
	w := newWorld(t)
	w.aws, w.left = "7", "a variable decides"
	if n, why := w.ask(); n != 0 || !strings.Contains(why, "a variable decides") || len(w.Pulls) != 0 {
		t.Error(n, why)
	}
	w = newWorld(t)
	w.aws = "7"
	w.ask()
	w.Pulls[0].State, w.Fails["list"] = forge.Closed, gone
	if n, why := w.ask(); n != 0 || !strings.Contains(why, "does not report the state of pull request #1") {
		t.Error(n, why)
	}
}

// TestWhatPeopleAskForIsNotDelayed: an open one is moved at once when somebody asks.
func TestWhatPeopleAskForIsNotDelayed(t *testing.T) {
	w := newWorld(t)
	w.aws = "7"
	w.ask()
	w.aws = "8"
	if n, why := w.ask(); n != 1 {
		t.Error(why)
	}
	w.proposes(1, "8", "accept-opened accept-updated")
}

// TestWhatIsKeptNoMoreIsLeftAlone: the pull request is open, and weir does not know any more what
// people asked for.
func TestWhatIsKeptNoMoreIsLeftAlone(t *testing.T) {
	w := newWorld(t)
	w.aws = "7"
	w.ask()
	w.Store = w.NewStore()
	w.restart()
	w.aws = "8"
	if n, why := w.ask(); n != 0 || !strings.Contains(why, "already open for this pool") {
		t.Error(n, why)
	}
	w.turn()
	w.proposes(1, "7", "accept-opened")
}
