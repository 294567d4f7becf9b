package reverts

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/sourcetest"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/proposal"
)

// world is a repository over HTTP, a forge in memory and a Source between them. Pool a of
// target t launches what a.yaml holds, with base.yaml; a file that holds "broken" does not
// render.
type world struct {
	t      *testing.T
	repo   *sourcetest.Repo
	git    *source.Git
	store  state.Store
	pulls  map[string]*forge.PullRequest // by branch
	bodies []string
	said   []string
	status []string
	events []string
	// fails is the error of the next write of a kind, lost says that the write is done all
	// the same.
	fails  map[string]error
	lost   bool
	pusher *transport.Pusher
	now    standing
	s      *Source
}

// standing is how the source stands.
type standing struct {
	proposal.Now
	Standing
}

var records = state.Bucket[struct{}]{Name: "reverts"}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, repo: sourcetest.New(t), pulls: map[string]*forge.PullRequest{}, fails: map[string]error{}}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("any\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := state.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	w.store = db
	w.git, err = source.New(source.Config{Name: "s", URL: w.repo.URL(), Ref: source.Ref{Branch: "main"}, Dir: t.TempDir()}, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.git.Close)
	w.pusher, err = transport.NewPusher(w.repo.URL(), transport.Settings{Auth: transport.Auth{TokenFile: file}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.pusher.Close)
	w.restart(w.git)
	w.now.Time = sourcetest.Epoch.Add(time.Hour)
	w.now.Record = &rollout.Record{}
	return w
}

// restart is another process with a mirror: what is in memory is lost.
func (w *world) restart(git Git) {
	w.s = New(Options{
		Options: proposal.Options{
			Source: "s", PageURL: "https://weir.example.com", Author: "weir", Address: "weir@localhost", Forge: w, Pusher: w.pusher,
			Redact: func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }, Event: func(e events.Event) { w.events = append(w.events, e.Kind) }, Logger: slog.New(slog.DiscardHandler),
		},
		Instance: "fleet", Statuses: w, Git: git, Fleet: w,
	})
}

// Standing implements Fleet.
func (w *world) Standing(string) (Standing, error) { return w.now.Standing, nil }

// commit pushes files and follows them.
func (w *world) commit(message string, files ...string) string {
	w.t.Helper()
	in := map[string]string{}
	for i := 0; i < len(files); i += 2 {
		in[files[i]] = files[i+1]
	}
	w.repo.Write(in)
	sha := w.repo.Commit(message)
	w.follow()
	return sha
}

func (w *world) follow() {
	w.t.Helper()
	s, err := w.git.Latest(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.now.Head, w.now.Base = s.Revision, "main"
}

var poolA = rollout.ID{Target: "t", Pool: "default/a"}

// stop has what the head launches be bad for pool a.
func (w *world) stop(revision, why string) {
	hash := "hash of " + revision
	run := rollout.Run{
		Name: "default/nodes", Revision: revision, Began: w.now.Time, Stopped: &rollout.Word{By: "weir", Why: why, At: w.now.Time},
		Gates:   []rollout.Gate{{Name: "errors", Answer: rollout.Answer{Verdict: rollout.Fail, What: "17 | > 1, token hunter2, \u202ereversed"}}},
		Members: []rollout.Member{{ID: poolA, Hash: hash, Machines: 3, Granted: 10, Earlier: &rollout.Version{Template: "lt-a", Number: 7}}},
	}
	w.now.Record = &rollout.Record{Runs: []rollout.Run{run}, Bad: []rollout.Bad{{ID: poolA, Hash: hash}}}
	w.now.Pools = []rollout.Pool{{ID: poolA, Hash: hash, Pending: true}}
}

// turn turns after what was tried before may be tried again.
func (w *world) turn() Entry {
	w.t.Helper()
	w.now.Time = w.now.Time.Add(time.Hour)
	if _, err := w.s.Turn(w.t.Context(), w.store, w.now.Now); err != nil {
		w.t.Fatal(err)
	}
	all, err := w.s.Read(w.store)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(all) == 0 {
		return Entry{}
	}
	return all[len(all)-1]
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

func (w *world) failing(what string) error {
	err := w.fails[what]
	delete(w.fails, what)
	return err
}

func (w *world) Pull(_ context.Context, n int64) (forge.PullRequest, error) {
	for _, p := range w.pulls {
		if p.Number == n {
			return *p, nil
		}
	}
	return forge.PullRequest{}, fmt.Errorf("there is no %d", n)
}

func (w *world) PullOf(_ context.Context, base, head string) (forge.PullRequest, bool, error) {
	if p := w.pulls[head]; p != nil && p.BaseRef == base {
		return *p, true, nil
	}
	return forge.PullRequest{}, false, nil
}

func (w *world) OpenPull(_ context.Context, p forge.Proposal) (forge.PullRequest, error) {
	err := w.failing("open")
	if err != nil && !w.lost {
		return forge.PullRequest{}, err
	}
	if w.pulls[p.Head] != nil {
		w.t.Errorf("a second pull request of %s", p.Head)
	}
	w.pulls[p.Head] = &forge.PullRequest{Number: int64(len(w.pulls) + 1), State: forge.Open, HeadRef: p.Head, BaseRef: p.Base, Title: p.Title}
	w.bodies = append(w.bodies, p.Body)
	return *w.pulls[p.Head], err
}

func (w *world) EditPull(context.Context, int64, string, string) error {
	w.t.Error("a text is changed")
	return nil
}

func (w *world) Pulls(context.Context, forge.Cursor) (list []forge.PullRequest, next forge.Cursor, same bool, err error) {
	for _, p := range w.pulls {
		if p.State == forge.Open {
			list = append(list, *p)
		}
	}
	return list, "", false, nil
}

func (w *world) ClosePull(_ context.Context, n int64) error {
	err := w.failing("close")
	if err != nil && !w.lost {
		return err
	}
	for _, p := range w.pulls {
		if p.Number == n {
			p.State = forge.Closed
		}
	}
	return err
}

func (w *world) CreateComment(_ context.Context, _ int64, body string) (forge.Comment, error) {
	w.said = append(w.said, body)
	return forge.Comment{ID: 1}, nil
}

func (w *world) Profile() forge.Profile {
	return forge.Profile{Limits: forge.Limits{Description: 140}}
}

func (w *world) SetStatus(_ context.Context, sha string, s forge.CommitStatus) error {
	w.status = append(w.status, sha+" "+s.Context+" "+string(s.State)+" "+s.Description)
	return w.failing("status")
}

// branches are those of weir's on the server.
func (w *world) branches() string {
	return w.repo.Git("for-each-ref", "--format=%(refname:short) %(subject)", "refs/heads/weir")
}

func TestTheFewestPathsAreReverted(t *testing.T) {
	w := newWorld(t)
	first := w.commit("first", "a.yaml", "1", "base.yaml", "1", "README", "x")
	bad := w.commit("bad \u202echange hunter2", "a.yaml", "2", "README", "y", "other.yaml", "z")
	w.stop(bad, "gate errors: 17 > 1")
	e := w.turn()
	if e.Phase != proposal.Open || e.Number != 1 {
		t.Fatalf("%+v", e)
	}
	branch := "weir/revert-" + bad[:12]
	if got := w.repo.Git("diff", "--name-only", bad, branch); got != "a.yaml" {
		t.Errorf("reverted %q", got)
	}
	if got := w.repo.Git("show", branch+":a.yaml"); got != "1" {
		t.Error(got)
	}
	message := w.repo.Git("log", "-1", "--format=%B", branch)
	for _, text := range []string{message, w.bodies[0], w.pulls[branch].Title, strings.Join(w.status, "")} {
		if strings.Contains(text, "hunter2") || strings.Contains(text, "\u202e") {
			t.Errorf("a secret or a hidden character: %q", text)
		}
	}
	for _, want := range []string{"gate errors: 17 > 1", "`errors`: fail", "t default/a", "3 machines, begun", first[:7], "weir.example.com"} {
		if !strings.Contains(w.bodies[0], want) {
			t.Errorf("%q is not in %s", want, w.bodies[0])
		}
	}
	for range 3 {
		if again := w.turn(); again.Phase != proposal.Open || len(w.pulls) != 1 || len(w.status) != 1 || len(w.events) != 1 {
			t.Fatalf("%+v, %q, %q", again, w.status, w.events)
		}
	}
}

// TestEachWriteMayBeLost: an answer that does not come, before or after its effect, and a
// store that forgot, end with one pull request.
func TestEachWriteMayBeLost(t *testing.T) {
	for _, what := range []string{"open", "status"} {
		for _, lost := range []bool{false, true} {
			for _, forgets := range []bool{false, true} {
				w := newWorld(t)
				w.commit("first", "a.yaml", "1")
				w.stop(w.commit("bad", "a.yaml", "2"), "why")
				w.fails[what], w.lost = &forgehttp.Error{Fault: forgehttp.FaultBusy}, lost
				w.turn()
				if forgets {
					if err := w.store.Update(func(tx *state.Tx) error { return records.Delete(tx, "s") }); err != nil {
						t.Fatal(err)
					}
				}
				if e := w.turn(); e.Phase != proposal.Open || len(w.pulls) != 1 || !strings.Contains(strings.Join(w.status, " "), "fleet/revert success") {
					t.Errorf("%s, done %t, forgotten %t: %+v, %d, %q", what, lost, forgets, e, len(w.pulls), w.status)
				}
			}
		}
	}
}

func TestWhatIsClosedByHandStaysClosed(t *testing.T) {
	w := newWorld(t)
	w.commit("first", "a.yaml", "1")
	bad := w.commit("bad", "a.yaml", "2")
	w.stop(bad, "why")
	w.turn()
	w.pulls[branchOf(bad)].State = forge.Closed
	w.repo.DeleteBranch(branchOf(bad))
	for range 3 {
		if e := w.turn(); e.Phase != proposal.Closed || w.branches() != "" || len(w.pulls) != 1 {
			t.Fatalf("%+v, %s", e, w.branches())
		}
	}
	// Nor by one that has lost what was kept.
	if err := w.store.Update(func(tx *state.Tx) error { return records.Delete(tx, "s") }); err != nil {
		t.Fatal(err)
	}
	if e := w.turn(); e.Phase != proposal.Closed || len(w.pulls) != 1 {
		t.Errorf("%+v", e)
	}
}

func TestWhatNobodyNeedsIsClosed(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"moved on": func(w *world) { w.now.Pools[0].Hash = "another" },
		"gone":     func(w *world) { w.now.Pools = nil },
		"let go": func(w *world) {
			w.now.Record = &rollout.Record{}
			w.now.Pools[0].Pending = false
		},
	} {
		w := newWorld(t)
		w.commit("first", "a.yaml", "1")
		w.stop(w.commit("bad", "a.yaml", "2"), "why")
		w.turn()
		w.now.Missing = map[string]string{"t": "is silent"}
		w.now.Pools = []rollout.Pool{w.now.Pools[0]}
		change(w)
		if e := w.turn(); e.Phase != proposal.Open {
			t.Errorf("%s: closed though its target is silent: %+v", name, e)
		}
		w.now.Missing = nil
		if e := w.turn(); e.Phase != proposal.Obsolete || len(w.said) != 1 || !strings.Contains(w.said[0], "weir closed this") {
			t.Errorf("%s: %+v, %q", name, e, w.said)
		}
	}
	// One that is tried again stays open.
	w := newWorld(t)
	w.commit("first", "a.yaml", "1")
	w.stop(w.commit("bad", "a.yaml", "2"), "why")
	w.turn()
	w.now.Record = &rollout.Record{}
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
			w.commit("first", "a.yaml", "1")
			bad := w.commit("bad", "a.yaml", "2")
			w.commit("later", "a.yaml", "2 and more")
			return bad
		}, "a.yaml was changed again"},
		"a lookup's answer": {func(w *world) string {
			w.commit("first", "a.yaml", "1")
			return w.commit("docs", "README", "2")
		}, "no commit changed what these pools launch: weir's configuration did, or what AWS answers to a lookup; write in Git what is to run; version 7 of the launch template lt-a has it"},
		"does not render": {func(w *world) string {
			w.commit("first", "a.yaml", "broken")
			return w.commit("bad", "a.yaml", "2")
		}, "does not render"},
		"a revert of weir's own": {func(w *world) string {
			w.commit("first", "a.yaml", "1")
			return w.commit("Revert \"x\"\n\nWeir-Reverts: 0123", "a.yaml", "2")
		}, "is a revert of weir's own"},
		"a merge of one": {func(w *world) string {
			w.commit("first", "a.yaml", "1")
			return w.commit("Merge pull request 'x' (#3) from weir/revert-0123456789ab into main", "a.yaml", "2")
		}, "is a revert of weir's own"},
		"one of those pushed at once is": {func(w *world) string {
			w.commit("zeroth", "a.yaml", "0")
			w.commit("first", "a.yaml", "1")
			w.commit("Revert \"first\"\n\nWeir-Reverts: 0123", "a.yaml", "0")
			return w.commit("docs", "README", "2")
		}, "is a revert of weir's own"},
		"a lookup's answer, after a revert": {func(w *world) string {
			w.commit("first", "a.yaml", "1")
			w.commit("Revert \"other\"\n\nWeir-Reverts: 0123", "b.yaml", "0")
			return w.commit("docs", "README", "2")
		}, "no commit changed"},
		"somebody else's branch": {func(w *world) string {
			first := w.commit("first", "a.yaml", "1")
			bad := w.commit("bad", "a.yaml", "2")
			w.repo.Branch(branchOf(bad), first)
			return bad
		}, "is there already"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.stop(tt.do(w), "why")
			before := w.branches()
			e := w.turn()
			if e.Phase != proposal.ByHand || !strings.Contains(e.Text, tt.want) || w.branches() != before || len(w.pulls) != 0 {
				t.Fatalf("%+v, branches %q", e, w.branches())
			}
			if len(w.status) != 1 || !strings.Contains(w.status[0], "fleet/revert failure weir proposes no revert: ") {
				t.Errorf("%q", w.status)
			}
			if w.turn(); len(w.status) != 1 || len(w.events) != 1 {
				t.Errorf("said again: %q, %q", w.status, w.events)
			}
		})
	}
}

// TestSeveralCommitsPushedAtOnce: the last one changed nothing of the pools.
func TestSeveralCommitsPushedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.commit("first", "a.yaml", "1", "base.yaml", "1")
	w.commit("the cause", "base.yaml", "2", "x", "1")
	bad := w.commit("docs", "README", "2")
	w.stop(bad, "why")
	if e := w.turn(); e.Phase != proposal.Open {
		t.Fatalf("%+v", e)
	}
	if got := w.repo.Git("diff", "--name-only", bad, branchOf(bad)); got != "base.yaml" {
		t.Error(got)
	}
	if !strings.Contains(w.bodies[0], "the cause") {
		t.Error(w.bodies[0])
	}
}

// TestOthersMayGoOn: a commit on top that touches other files is no obstacle, and what a
// person aborted is in that person's hands.
func TestOthersMayGoOn(t *testing.T) {
	w := newWorld(t)
	w.commit("first", "a.yaml", "1")
	bad := w.commit("bad", "a.yaml", "2")
	w.commit("other", "README", "2")
	w.stop(bad, "why")
	w.now.Record.Runs[0].Stopped.By = "ada"
	if e := w.turn(); e.Revision != "" {
		t.Errorf("%+v", e)
	}
	w.now.Record.Runs[0].Stopped.By = "weir"
	if e := w.turn(); e.Phase != proposal.Open || w.repo.Git("rev-parse", branchOf(bad)+"^") != bad {
		t.Errorf("%+v", e)
	}
}

// TestTheSameBadThingIsProposedOnce, also where a rollout was let go again at a later commit.
func TestTheSameBadThingIsProposedOnce(t *testing.T) {
	w := newWorld(t)
	w.commit("first", "a.yaml", "1")
	bad := w.commit("bad", "a.yaml", "2")
	w.stop(bad, "why")
	w.turn()
	w.now.Record.Runs[0].Revision = w.commit("other", "README", "2")
	for range 2 {
		if e := w.turn(); e.Revision != bad || e.Phase != proposal.Open || len(w.pulls) != 1 {
			t.Errorf("%+v, %d", e, len(w.pulls))
		}
	}
}

// TestAForgeThatIsSlow does not know the branch for a moment: nothing is said of that.
func TestAForgeThatIsSlow(t *testing.T) {
	w := newWorld(t)
	w.commit("first", "a.yaml", "1")
	w.stop(w.commit("bad", "a.yaml", "2"), "why")
	w.fails["open"] = &forgehttp.Error{Fault: forgehttp.FaultRefused, Status: 422, Message: "head is invalid"}
	if e := w.turn(); e.Phase != proposal.Wanted || e.Refused || len(w.status) != 0 {
		t.Errorf("%+v", e)
	}
	if e := w.turn(); e.Phase != proposal.Open {
		t.Errorf("%+v", e)
	}
}

// TestARefusalIsSaidOnce: with what to grant, and mended by a better token.
func TestARefusalIsSaidOnce(t *testing.T) {
	w := newWorld(t)
	w.commit("first", "a.yaml", "1")
	w.stop(w.commit("bad", "a.yaml", "2"), "why")
	for range 3 {
		w.fails["open"] = &forgehttp.Error{Forge: "github", Fault: forgehttp.FaultDenied, Status: 403, Message: "the token may not open pull requests: it needs more"}
		if e := w.turn(); e.Phase != proposal.Wanted || !e.Refused {
			t.Fatalf("%+v", e)
		}
	}
	if len(w.status) != 1 || !strings.Contains(w.status[0], "it needs more") || len(w.events) != 1 {
		t.Errorf("%q, %q", w.status, w.events)
	}
	if e := w.turn(); e.Phase != proposal.Open || len(w.status) != 2 || !strings.Contains(w.status[1], "success") {
		t.Errorf("%+v, %q", e, w.status)
	}
}
