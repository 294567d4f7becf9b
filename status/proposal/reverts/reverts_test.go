package reverts

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/proposal"
	"github.com/weir-gitops/weir/status/proposal/proposaltest"
)

// world is a fleet whose pool a of target t launches what a.yaml holds, with base.yaml. A file that
// holds "broken" does not render.
type world struct {
	*proposaltest.World
	standing Standing
	status   []string
	wants    string // what a.yaml is to be again
	s        *Source
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: proposaltest.NewWorld(t), standing: Standing{Record: &rollout.Record{}}}
	w.restart(w.Git)
	return w
}

// restart is another process with a mirror: what is in memory is lost.
func (w *world) restart(git Git) {
	w.s = New(Options{Options: w.Options(0), Instance: "fleet", Statuses: w, Git: git, Fleet: w})
}

// TestContract holds reverts and pins against the rules of all proposals.
func TestContract(t *testing.T) {
	kinds(t, func(t *testing.T, begin func(t *testing.T) (w *world, stop func())) {
		proposaltest.Contract(t, func(t *testing.T) *proposaltest.Kind {
			w, stop := begin(t)
			bad := ""
			return &proposaltest.Kind{
				World: w.World, Record: "reverts", Restart: func() { w.restart(w.Git) }, Goes: true,
				Need: stop, Again: func() { w.standing.Pools[0].Hash = bad },
				Drop:    func() { bad, w.standing.Pools[0].Hash = w.standing.Pools[0].Hash, "another" },
				Turn:    func() error { _, err := w.s.Turn(t.Context(), w.Store, w.Now); return err },
				Earlier: "revision at rollouts pools earlier was pin phase number url merge made closing text refused tries after told",
				State:   func() proposal.State { return w.kept().State },
				Wants:   func() string { return "a.yaml=" + w.wants },
			}
		})
	})
}

// kinds are the two things that are proposed. begin makes a world in which both take a.yaml back;
// stop stops what launches something else.
func kinds(t *testing.T, test func(t *testing.T, begin func(t *testing.T) (w *world, stop func()))) {
	for name, stop := range map[string]func(w *world, bad string){
		"revert": func(w *world, bad string) { w.wants = "1"; w.stop(bad, "why") },
		"pin":    func(w *world, bad string) { w.wants = "ami-good"; w.badImage(bad, "two") },
	} {
		t.Run(name, func(t *testing.T) {
			test(t, func(t *testing.T) (*world, func()) {
				w := newWorld(t)
				w.Commit("first", "a.yaml", "1")
				bad := w.Commit("bad", "a.yaml", "newest")
				return w, func() { stop(w, bad) }
			})
		})
	}
}

// Standing implements Fleet.
func (w *world) Standing(string) (Standing, error) { return w.standing, nil }

var poolA = rollout.ID{Target: "t", Pool: "default/a"}

// stop has what the head launches be bad for pool a.
func (w *world) stop(revision, why string) {
	hash := "hash of " + revision
	run := rollout.Run{
		Name: "default/nodes", Revision: revision, Began: w.Now.Time, Stopped: &rollout.Decision{By: "weir", Why: why, At: w.Now.Time},
		Gates:   []rollout.Gate{{Name: "errors", Answer: rollout.Answer{Verdict: rollout.Fail, What: "17 | > 1, token hunter2, \u202ereversed"}}},
		Members: []rollout.Member{{ID: poolA, Hash: hash, Machines: 3, Granted: 10, Earlier: &rollout.Version{Template: "lt-a", Number: 7}}},
	}
	w.standing.Record = &rollout.Record{Runs: []rollout.Run{run}, Bad: []rollout.Bad{{ID: poolA, Hash: hash}}}
	w.standing.Pools = []rollout.Pool{{ID: poolA, Hash: hash, Pending: true}}
}

// turn turns after what was tried before may be tried again.
func (w *world) turn() Entry {
	w.T.Helper()
	w.Now.Time = w.Now.Time.Add(time.Hour)
	if _, err := w.s.Turn(w.T.Context(), w.Store, w.Now); err != nil {
		w.T.Fatal(err)
	}
	return w.kept()
}

// kept is the last entry.
func (w *world) kept() Entry {
	w.T.Helper()
	all, err := w.s.Read(w.Store)
	if err != nil {
		w.T.Fatal(err)
	}
	return append([]Entry{{}}, all...)[len(all)]
}

// Render implements Fleet.
func (w *world) Render(_ context.Context, s snapshot.Snapshot, _ []string) ([]Target, error) {
	t := Target{Name: "t", Launches: map[string]string{}}
	all := ""
	for _, name := range []string{"a.yaml", "base.yaml"} {
		text, err := s.Tree.ReadFile(name)
		if err != nil {
			text = nil
		}
		all += name + ":" + string(text) + ";"
	}
	if strings.Contains(all, "broken") {
		t.Fault = "a.yaml is broken"
	}
	t.Launches[poolA.Pool] = all
	return []Target{t}, nil
}

// Pin implements Fleet: a.yaml says "newest" where the newest image is taken.
func (w *world) Pin(_ context.Context, s snapshot.Snapshot, was map[rollout.ID]rollout.Version) (Pinned, error) {
	text, err := s.Tree.ReadFile("a.yaml")
	if err != nil || !strings.Contains(string(text), "newest") {
		return Pinned{Left: []LeftPool{{ID: poolA, Text: "write a: " + was[poolA].Pin + " into a.yaml"}}}, nil
	}
	pinned := strings.Replace(string(text), "newest", was[poolA].Pin, 1)
	return Pinned{Files: map[string][]byte{"a.yaml": []byte(pinned)}, Places: []PinnedPool{{ID: poolA, Field: "a", Value: was[poolA].Pin, At: "a.yaml:1:1"}}}, nil
}

func (w *world) Profile() forge.Profile {
	return forge.Profile{Limits: forge.Limits{Description: 140}}
}

func (w *world) SetStatus(_ context.Context, sha string, s forge.CommitStatus) error {
	w.status = append(w.status, sha+" "+s.Context+" "+string(s.State)+" "+s.Description)
	err := w.Fails["status"]
	delete(w.Fails, "status")
	return err
}

func TestTheFewestPathsAreReverted(t *testing.T) {
	w := newWorld(t)
	first := w.Commit("first", "a.yaml", "1", "base.yaml", "1", "README", "x")
	bad := w.Commit("bad \u202echange hunter2", "a.yaml", "2", "README", "y", "other.yaml", "z")
	w.stop(bad, "gate errors: 17 > 1")
	e := w.turn()
	if e.Phase != proposal.Open || e.Number != 1 {
		t.Fatalf("%+v", e)
	}
	branch := "weir/revert-" + bad[:12]
	if got := w.Repo.Git("diff", "--name-only", bad, branch); got != "a.yaml" {
		t.Errorf("reverted %q", got)
	}
	if got := w.Repo.Git("show", branch+":a.yaml"); got != "1" {
		t.Error(got)
	}
	message := w.Repo.Git("log", "-1", "--format=%B", branch)
	for _, text := range []string{message, w.Bodies[0], w.Last().Title, strings.Join(w.status, "")} {
		if strings.Contains(text, "hunter2") || strings.Contains(text, "\u202e") {
			t.Errorf("a secret or a hidden character: %q", text)
		}
	}
	for _, want := range []string{"gate errors: 17 > 1", "`errors`: fail", "t default/a", "3 machines, started", first[:7], "weir.example.com"} {
		if !strings.Contains(w.Bodies[0], want) {
			t.Errorf("%q is not in %s", want, w.Bodies[0])
		}
	}
	for range 3 {
		if again := w.turn(); again.Phase != proposal.Open || len(w.Pulls) != 1 || len(w.status) != 1 || len(w.Events) != 1 {
			t.Fatalf("%+v, %q, %q", again, w.status, w.Events)
		}
	}
}

func TestWhatNobodyNeedsIsClosed(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"moved on": func(w *world) { w.standing.Pools[0].Hash = "another" },
		"gone":     func(w *world) { w.standing.Pools = nil },
		"let go": func(w *world) {
			w.standing.Record = &rollout.Record{}
			w.standing.Pools[0].Pending = false
		},
	} {
		w := newWorld(t)
		w.Commit("first", "a.yaml", "1")
		w.stop(w.Commit("bad", "a.yaml", "2"), "why")
		w.turn()
		w.standing.Missing = map[string]string{"t": "is silent"}
		w.standing.Pools = []rollout.Pool{w.standing.Pools[0]}
		change(w)
		if e := w.turn(); e.Phase != proposal.Open {
			t.Errorf("%s: closed though its target is silent: %+v", name, e)
		}
		w.standing.Missing = nil
		if e := w.turn(); e.Phase != proposal.Obsolete || len(w.Said) != 1 || !strings.Contains(w.Said[0], "weir closed this") {
			t.Errorf("%s: %+v, %q", name, e, w.Said)
		}
	}
	// One that is tried again stays open.
	w := newWorld(t)
	w.Commit("first", "a.yaml", "1")
	w.stop(w.Commit("bad", "a.yaml", "2"), "why")
	w.turn()
	w.standing.Record = &rollout.Record{}
	if e := w.turn(); e.Phase != proposal.Open {
		t.Errorf("%+v", e)
	}
}

// TestWhatIsLeftToPeople: no branch is made, and the status of the commit says why.
func TestWhatIsLeftToPeople(t *testing.T) {
	for name, tt := range map[string]struct {
		do   func(w *world) (bad string)
		want string
	}{
		"changed again": {func(w *world) string {
			w.Commit("first", "a.yaml", "1")
			bad := w.Commit("bad", "a.yaml", "2")
			w.Commit("later", "a.yaml", "2 and more")
			return bad
		}, "a.yaml was changed again"},
		"a lookup's answer": {func(w *world) string {
			w.Commit("first", "a.yaml", "1")
			return w.Commit("docs", "README", "2")
		}, "no commit changed what these pools launch: weir's configuration changed, or AWS's answer to a lookup; write in Git what must run; version 7 of the launch template lt-a has it"},
		"does not render": {func(w *world) string {
			w.Commit("first", "a.yaml", "broken")
			return w.Commit("bad", "a.yaml", "2")
		}, "does not render"},
		"a revert of weir's own": {func(w *world) string {
			w.Commit("first", "a.yaml", "1")
			return w.Commit("Revert \"x\"\n\nWeir-Reverts: 0123", "a.yaml", "2")
		}, "is itself a revert by weir"},
		"a merge of one": {func(w *world) string {
			w.Commit("first", "a.yaml", "1")
			return w.Commit("Merge pull request 'x' (#3) from weir/revert-0123456789ab into main", "a.yaml", "2")
		}, "is itself a revert by weir"},
		"one of those pushed at once is": {func(w *world) string {
			w.Commit("zeroth", "a.yaml", "0")
			w.Commit("first", "a.yaml", "1")
			w.Commit("Revert \"first\"\n\nWeir-Reverts: 0123", "a.yaml", "0")
			return w.Commit("docs", "README", "2")
		}, "is itself a revert by weir"},
		"a lookup's answer, after a revert": {func(w *world) string {
			w.Commit("first", "a.yaml", "1")
			w.Commit("Revert \"other\"\n\nWeir-Reverts: 0123", "b.yaml", "0")
			return w.Commit("docs", "README", "2")
		}, "no commit changed"},
		"somebody else's branch": {func(w *world) string {
			first := w.Commit("first", "a.yaml", "1")
			bad := w.Commit("bad", "a.yaml", "2")
			w.Repo.Branch(branchOf(bad), first)
			return bad
		}, "already exists at"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.stop(tt.do(w), "why")
			before := w.Branches()
			e := w.turn()
			if e.Phase != proposal.ByHand || !strings.Contains(e.Text, tt.want) || w.Branches() != before || len(w.Pulls) != 0 {
				t.Fatalf("%+v, branches %q", e, w.Branches())
			}
			if len(w.status) != 1 || !strings.Contains(w.status[0], "fleet/revert failure weir proposes no revert: ") {
				t.Errorf("%q", w.status)
			}
			if w.turn(); len(w.status) != 1 || len(w.Events) != 1 {
				t.Errorf("said again: %q, %q", w.status, w.Events)
			}
		})
	}
}

// TestSeveralCommitsPushedAtOnce: the last one changed nothing of the pools.
func TestSeveralCommitsPushedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.Commit("first", "a.yaml", "1", "base.yaml", "1")
	w.Commit("the cause", "base.yaml", "2", "x", "1")
	bad := w.Commit("docs", "README", "2")
	w.stop(bad, "why")
	if e := w.turn(); e.Phase != proposal.Open {
		t.Fatalf("%+v", e)
	}
	if got := w.Repo.Git("diff", "--name-only", bad, branchOf(bad)); got != "base.yaml" {
		t.Error(got)
	}
	if !strings.Contains(w.Bodies[0], "the cause") {
		t.Error(w.Bodies[0])
	}
}

// TestOthersMayGoOn: a commit on top that touches other files is no obstacle, and what a
// person aborted is in that person's hands.
func TestOthersMayGoOn(t *testing.T) {
	w := newWorld(t)
	w.Commit("first", "a.yaml", "1")
	bad := w.Commit("bad", "a.yaml", "2")
	w.Commit("other", "README", "2")
	w.stop(bad, "why")
	w.standing.Record.Runs[0].Stopped.By = "ada"
	if e := w.turn(); e.Revision != "" {
		t.Errorf("%+v", e)
	}
	w.standing.Record.Runs[0].Stopped.By = "weir"
	if e := w.turn(); e.Phase != proposal.Open || w.Repo.Git("rev-parse", branchOf(bad)+"^") != bad {
		t.Errorf("%+v", e)
	}
}

// TestTheSameBadThingIsProposedOnce, also where a rollout was let go again at a later commit.
func TestTheSameBadThingIsProposedOnce(t *testing.T) {
	w := newWorld(t)
	w.Commit("first", "a.yaml", "1")
	bad := w.Commit("bad", "a.yaml", "2")
	w.stop(bad, "why")
	w.turn()
	w.standing.Record.Runs[0].Revision = w.Commit("other", "README", "2")
	for range 2 {
		if e := w.turn(); e.Revision != bad || e.Phase != proposal.Open || len(w.Pulls) != 1 {
			t.Errorf("%+v, %d", e, len(w.Pulls))
		}
	}
}

// TestTheStatusOfTheCommit says what becomes of it: a refusal, the pull request, who pushed to it, and
// the end. It is written again if its answer is lost.
func TestTheStatusOfTheCommit(t *testing.T) {
	kinds(t, func(t *testing.T, begin func(t *testing.T) (w *world, stop func())) {
		w, stop := begin(t)
		stop()
		w.Fails["open"] = &forgehttp.Error{Forge: "github", Fault: forgehttp.FaultDenied, Status: 403, Message: "it needs more"}
		w.turn()
		w.Fails["open"] = &forgehttp.Error{Forge: "github", Fault: forgehttp.FaultDenied, Status: 403, Message: "it needs more"}
		w.turn()
		w.Fails["status"] = &forgehttp.Error{Fault: forgehttp.FaultBusy}
		w.turn()
		w.turn()
		w.Push(w.Last().HeadRef)
		w.turn()
		w.Last().State = forge.Merged
		e := w.turn()
		want := []string{
			"failure weir must not propose the " + e.what() + ": ", "success pull request #1 proposes the " + e.what(), "success pull request #1 proposes the " + e.what(),
			"success pull request #1 proposes the " + e.what() + ", with commits by somebody else", "success pull request #1 was merged",
		}
		if len(w.status) != len(want) {
			t.Fatalf("%q", w.status)
		}
		for i, text := range w.status {
			if !strings.HasPrefix(text, e.Revision+" fleet/revert "+want[i]) {
				t.Errorf("%q, want %q", text, want[i])
			}
		}
		if got := strings.Join(w.Events, " "); got != "revert-refused revert-opened revert-closed" {
			t.Errorf("told %s", got)
		}
	})
}
