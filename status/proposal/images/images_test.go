package images

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/newer"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/sourcetest"
	"github.com/weir-gitops/weir/source/transport"
	"github.com/weir-gitops/weir/status/events"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/proposal"
)

// world is a repository over HTTP, a forge in memory that knows its branches, and a Source
// between them. Pool N has the image that the file N.yaml holds; a file that is not there is
// looked up, and the pool keeps what running says.
type world struct {
	t       *testing.T
	repo    *sourcetest.Repo
	git     *source.Git
	store   state.Store
	pulls   []*forge.PullRequest
	said    []string
	bodies  []string
	events  []string
	calls   map[string]int
	running map[string]string
	// newest is AWS's; unread says why the target is not known.
	newest string
	unread map[string]string
	// fails is the error of the next write of a kind, lost says that the write is done all
	// the same.
	fails   map[string]error
	lost    bool
	refused map[string]string
	counted string
	// oldest says that of several pull requests of a branch the forge names the first.
	oldest bool
	pusher *transport.Pusher
	now    proposal.Now
	s      *Source
}

var records = state.Bucket[struct{}]{Name: "images"}

const daily = 24 * time.Hour

const family = "EKS AL2023"

func imageOf(id string) *observed.Image {
	if id == "" {
		return nil
	}
	return &observed.Image{ID: id, Name: "amazon-eks-node-al2023-x86_64-standard-1.34-v2026010" + id[4:], Architecture: "x86_64", CreatedAt: "2026-01-0" + id[4:] + "T00:00:00.000Z"}
}

func newWorld(t *testing.T, pools ...string) *world {
	t.Helper()
	w := &world{t: t, repo: sourcetest.New(t), fails: map[string]error{}, calls: map[string]int{}, running: map[string]string{}, newest: "ami-1"}
	for _, p := range pools {
		w.running[p] = "ami-1"
	}
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
	w.restart()
	w.now.Time = sourcetest.Epoch.Add(time.Hour)
	w.commit("first", "README", "x")
	return w
}

// restart is another process: what is in memory is lost.
func (w *world) restart() {
	w.s = New(Options{
		Options: proposal.Options{
			Source: "s", PageURL: "https://weir.example.com", Author: "weir", Address: "weir@localhost", Every: daily, Forge: w, Pusher: w,
			Redact: func(text string) string { return strings.ReplaceAll(text, "hunter2", "***") }, Event: func(e events.Event) { w.events = append(w.events, e.Kind) }, Logger: slog.New(slog.DiscardHandler),
		},
		Git: w.git, Fleet: w, Counted: func(pools, open int) { w.counted = fmt.Sprint(pools, " ", open) },
	})
}

// forgets loses what was kept.
func (w *world) forgets() {
	w.t.Helper()
	if err := w.store.Update(func(tx *state.Tx) error { return records.Delete(tx, "s") }); err != nil {
		w.t.Fatal(err)
	}
	w.restart()
}

func (w *world) commit(message string, files ...string) {
	w.t.Helper()
	in := map[string]string{}
	for i := 0; i < len(files); i += 2 {
		in[files[i]] = files[i+1]
	}
	w.repo.Write(in)
	w.repo.Commit(message)
	w.follow()
}

func (w *world) follow() {
	w.t.Helper()
	s, err := w.git.Latest(w.t.Context())
	if err != nil {
		w.t.Fatal(err)
	}
	w.now.Head, w.now.Base = s.Revision, "main"
}

// turn turns after what was tried before may be tried again, and a day has passed.
func (w *world) turn() Entry {
	w.t.Helper()
	w.now.Time = w.now.Time.Add(daily)
	return w.soon()
}

// soon turns now.
func (w *world) soon() Entry {
	w.t.Helper()
	if _, err := w.s.Turn(w.t.Context(), w.store, w.now); err != nil {
		w.t.Fatal(err)
	}
	all, err := w.s.Read(w.store)
	if err != nil {
		w.t.Fatal(err)
	}
	if len(all) == 0 {
		return Entry{}
	}
	return all[0]
}

func (w *world) has(pool string) (string, bool) {
	s, err := w.git.At(w.t.Context(), w.now.Head)
	if err != nil {
		w.t.Fatal(err)
	}
	if text, err := s.Tree.ReadFile(pool + ".yaml"); err == nil {
		return strings.TrimSpace(string(text)), true
	}
	return w.running[pool], false
}

func (w *world) Survey(context.Context) (Survey, error) {
	w.calls["survey"]++
	if err := w.failing("survey"); err != nil {
		return Survey{}, err
	}
	var pools []newer.Pool
	for name := range w.running {
		if w.unread[target(name)] != "" {
			continue
		}
		has, written := w.has(name)
		pools = append(pools, newer.Pool{
			Target: target(name), Name: "default/" + name, Ask: intent.Lookup{Kind: intent.ImageForEKS, Name: "AmazonLinux2023"}, Has: has, Image: imageOf(has), Newest: observed.Answer{Image: imageOf(w.newest)},
			At: intent.Pin{Object: intent.ObjectRef{Kind: "AWSMachinePool", Name: name}, Field: intent.Path{"spec", "awsLaunchTemplate", "ami", "id"}, Written: written},
		})
	}
	families, gaps := newer.Find(pools)
	return Survey{Head: w.now.Head, Families: families, Gaps: gaps, Unread: w.unread}, nil
}

func target(pool string) string { return "t-" + pool }

func (w *world) Pin(_ context.Context, _ string, pins []newer.Pin) (Pinned, error) {
	w.calls["pin"]++
	out := Pinned{Files: map[string][]byte{}}
	for _, p := range pins {
		if text := w.refused[p.At.Object.Name]; text != "" {
			out.Refused = append(out.Refused, Refusal{p, text})
			continue
		}
		out.Files[p.At.Object.Name+".yaml"] = []byte(p.To + "\n")
		out.Pins = append(out.Pins, p)
		out.Plans = append(out.Plans, Planned{Target: p.Target, Pools: 1, Machines: 3, Schedule: "within deny sun 00:00 to 24:00 UTC"})
	}
	return out, nil
}

func (w *world) failing(what string) error {
	err := w.fails[what]
	delete(w.fails, what)
	return err
}

func (w *world) At(ctx context.Context, branch string) (string, error) {
	return w.pusher.At(ctx, branch)
}

func (w *world) Make(ctx context.Context, b transport.Branch) error {
	w.calls["push"]++
	err := w.failing("push")
	if err != nil && !w.lost {
		return err
	}
	return errors.Join(w.pusher.Make(ctx, b), err)
}

// show is a pull request as the forge shows it now.
func (w *world) show(p *forge.PullRequest) forge.PullRequest {
	if p.State == forge.Open {
		if at := w.repo.Git("for-each-ref", "--format=%(objectname)", "refs/heads/"+p.HeadRef); at != "" {
			p.HeadSHA = at
		}
	}
	return *p
}

func (w *world) Pulls(context.Context, forge.Cursor) (list []forge.PullRequest, next forge.Cursor, same bool, err error) {
	w.calls["list"]++
	for _, p := range w.pulls {
		if p.State == forge.Open {
			list = append(list, w.show(p))
		}
	}
	return list, "", false, w.failing("list")
}

func (w *world) Pull(_ context.Context, n int64) (forge.PullRequest, error) {
	w.calls["pull"]++
	return w.show(w.pulls[n-1]), nil
}

func (w *world) PullOf(_ context.Context, base, head string) (forge.PullRequest, bool, error) {
	list := slices.Clone(w.pulls)
	if !w.oldest {
		slices.Reverse(list)
	}
	for _, p := range list {
		if p.HeadRef == head && p.BaseRef == base {
			return w.show(p), true, nil
		}
	}
	return forge.PullRequest{}, false, nil
}

func (w *world) OpenPull(_ context.Context, p forge.Proposal) (forge.PullRequest, error) {
	w.calls["open"]++
	err := w.failing("open")
	if err != nil && !w.lost {
		return forge.PullRequest{}, err
	}
	for _, o := range w.pulls {
		if o.State == forge.Open {
			w.t.Errorf("%s is opened while %s is", p.Head, o.HeadRef)
		}
	}
	w.pulls = append(w.pulls, &forge.PullRequest{Number: int64(len(w.pulls) + 1), State: forge.Open, HeadRef: p.Head, BaseRef: p.Base, Title: p.Title, UpdatedAt: w.now.Time})
	w.bodies = append(w.bodies, p.Body)
	return w.show(w.pulls[len(w.pulls)-1]), err
}

func (w *world) EditPull(_ context.Context, n int64, title, body string) error {
	err := w.failing("edit")
	if err != nil && !w.lost {
		return err
	}
	if title != "" {
		w.pulls[n-1].Title = title
	}
	w.bodies = append(w.bodies, body)
	return err
}

func (w *world) ClosePull(_ context.Context, n int64) error {
	err := w.failing("close")
	if err != nil && !w.lost {
		return err
	}
	w.pulls[n-1].State = forge.Closed
	return err
}

func (w *world) CreateComment(_ context.Context, _ int64, body string) (forge.Comment, error) {
	w.said = append(w.said, body)
	return forge.Comment{ID: 1}, w.failing("comment")
}

// changes are the files that the last pull request would change, with their contents.
func (w *world) changes() string {
	branch := w.pulls[len(w.pulls)-1].HeadRef
	var out []string
	for name := range strings.FieldsSeq(w.repo.Git("diff", "--name-only", "main..."+branch)) {
		out = append(out, name+"="+w.repo.Git("show", branch+":"+name))
	}
	return strings.Join(out, " ")
}

// merge merges the last pull request, as a forge does.
func (w *world) merge(method string) {
	w.t.Helper()
	p := w.pulls[len(w.pulls)-1]
	args := []string{"commit-tree", "-m", "merged", "-p", "main"}
	if method == "merge" {
		args = append(args, "-p", p.HeadRef)
	}
	// The tree of a merge without conflicts: main with what the branch changes.
	tree := strings.Fields(w.repo.Git("merge-tree", "--write-tree", "main", p.HeadRef))[0]
	sha := w.repo.Git(append(args, tree)...)
	w.repo.Git("update-ref", "refs/heads/main", sha)
	p.State, p.MergeSHA = forge.Merged, sha
}

func TestANewerImageIsProposedOnce(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	if e := w.turn(); len(w.pulls) != 0 || e.Family != "" {
		t.Fatalf("nothing is newer: %+v", e)
	}
	w.newest = "ami-2"
	e := w.turn()
	if e.Phase != proposal.Open || e.Number != 1 || w.changes() != "a.yaml=ami-2 b.yaml=ami-2 c.yaml=ami-2" {
		t.Fatalf("%+v, %s", e, w.changes())
	}
	if w.counted != "3 1" {
		t.Errorf("pools and pull requests: %s", w.counted)
	}
	for _, want := range []string{"`EKS AL2023`", "3 pools", "ami-1 (EKS AL2023 1.34, x86_64, 2026-01-01)", "ami-2 (EKS AL2023 1.34, x86_64, 2026-01-02)", "day", "t-b", "3 machines", "deny sun", "every 1 day", "weir.example.com"} {
		if !strings.Contains(w.bodies[0], want) {
			t.Errorf("%q is not in:\n%s", want, w.bodies[0])
		}
	}
	w.calls = map[string]int{}
	for range 5 { // half a minute apart
		w.now.Time = w.now.Time.Add(30 * time.Second)
		w.soon()
	}
	if fmt.Sprint(w.calls) != "map[list:5]" {
		t.Errorf("turns without news make the calls %v", w.calls)
	}
	w.restart()
	if again := w.turn(); again.Number != 1 || len(w.pulls) != 1 || len(w.bodies) != 1 {
		t.Errorf("%+v", again)
	}
}

// TestOneIsMovedOn: a newer image, a merge of half of it, and a change of the same files lead
// to another commit on the same branch, at most as often as configured, and never over what is
// there.
func TestOneIsMovedOn(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.newest = "ami-2"
	first := w.turn()
	w.newest = "ami-3"
	w.pulls[0].Title = "A title of somebody's"
	w.now.Time = w.now.Time.Add(daily - time.Minute)
	w.restart() // and so asks
	if e := w.soon(); e.Commit != first.Commit {
		t.Fatalf("too soon: %+v", e)
	}
	e := w.turn()
	if e.Number != 1 || len(w.pulls) != 1 || e.Commit == first.Commit || w.changes() != "a.yaml=ami-3 b.yaml=ami-3" {
		t.Fatalf("%+v, %s", e, w.changes())
	}
	if got := w.repo.Git("merge-base", "--is-ancestor", first.Commit, e.Commit); got != "" {
		t.Error(got)
	}
	if w.pulls[0].Title != "A title of somebody's" || len(w.said) != 1 || !strings.Contains(w.said[0], "ami-3") || !strings.Contains(w.bodies[1], "ami-3") {
		t.Errorf("%q, %q, %q", w.pulls[0].Title, w.said, w.bodies)
	}
	w.commit("by hand, the half", "a.yaml", "ami-3")
	if e = w.turn(); e.Number != 1 || w.changes() != "b.yaml=ami-3" {
		t.Fatalf("%+v, %s", e, w.changes())
	}
	w.commit("the other half, otherwise", "b.yaml", "ami-1")
	if e = w.turn(); e.Number != 1 || w.changes() != "b.yaml=ami-3" || w.repo.Git("merge-tree", "--write-tree", "main", e.Branch) == "" {
		t.Fatalf("%+v, %s", e, w.changes())
	}
	w.commit("all by hand", "b.yaml", "ami-3")
	if e = w.turn(); e.Phase != proposal.Obsolete || w.pulls[0].State != forge.Closed || !strings.Contains(w.said[len(w.said)-1], "weir closed this") {
		t.Errorf("%+v, %q", e, w.said)
	}
}

func TestWhatIsMergedIsDone(t *testing.T) {
	for _, method := range []string{"merge", "squash"} {
		w := newWorld(t, "a")
		w.newest = "ami-2"
		w.turn()
		w.merge(method)
		// The forge knows before Git does.
		if e := w.turn(); e.Phase != proposal.Merged || len(w.pulls) != 1 {
			t.Fatalf("%s: %+v", method, e)
		}
		w.follow()
		if e := w.turn(); e.Phase != proposal.Merged || len(w.pulls) != 1 {
			t.Fatalf("%s: %+v", method, e)
		}
		w.newest = "ami-3"
		if e := w.turn(); e.Phase != proposal.Open || e.Number != 2 || w.changes() != "a.yaml=ami-3" {
			t.Errorf("%s: %+v, %s", method, e, w.changes())
		}
	}
}

// TestWhatIsClosedIsNotProposedAgain, until there is a newer image, also by one that has lost
// what was kept.
func TestWhatIsClosedIsNotProposedAgain(t *testing.T) {
	for _, forgets := range []bool{false, true} {
		w := newWorld(t, "a")
		w.newest = "ami-2"
		branch := w.turn().Branch
		w.pulls[0].State = forge.Closed
		w.repo.DeleteBranch(branch)
		for range 3 {
			if forgets {
				w.forgets()
			}
			if e := w.turn(); e.Phase != proposal.Closed || len(w.pulls) != 1 {
				t.Fatalf("forgets %t: %+v", forgets, e)
			}
		}
		w.running["b"] = "ami-1" // a new pool wants the same image
		if e := w.turn(); len(w.pulls) != 1 {
			t.Fatalf("forgets %t: %+v", forgets, e)
		}
		w.newest = "ami-3"
		if e := w.turn(); e.Phase != proposal.Open || len(w.pulls) != 2 {
			t.Errorf("forgets %t: %+v", forgets, e)
		}
	}
}

func TestWhatSomebodyPushedToIsLeftAlone(t *testing.T) {
	w := newWorld(t, "a")
	w.newest = "ami-2"
	e := w.turn()
	theirs := w.repo.Git("commit-tree", e.Branch+"^{tree}", "-p", e.Branch, "-m", "mine\n\n"+TrailerFamily+": "+family+"\n"+TrailerPins+": x y")
	w.repo.Branch(e.Branch, theirs)
	w.newest = "ami-3"
	for i := range 3 {
		if i == 2 {
			w.forgets()
		}
		if e = w.turn(); e.Phase != proposal.Theirs || w.repo.Tip(e.Branch) != theirs || len(w.pulls) != 1 {
			t.Fatalf("%+v", e)
		}
	}
	if len(w.said) != 1 || !strings.Contains(w.said[0], "leaves it alone") || !slices.Contains(w.events, "images-left") {
		t.Errorf("%q, %q", w.said, w.events)
	}
	// Also when nobody needs it.
	w.commit("by hand", "a.yaml", "ami-3")
	if e = w.turn(); e.Phase != proposal.Theirs || w.pulls[0].State != forge.Open {
		t.Errorf("%+v", e)
	}
	w.pulls[0].State = forge.Closed
	if e = w.turn(); e.Phase != proposal.Closed {
		t.Errorf("%+v", e)
	}
}

// TestEachWriteMayBeLost: an answer that does not come, before or after its effect, with a
// process that ends there, and a store that forgot, end with one pull request that pins the
// newest image.
func TestEachWriteMayBeLost(t *testing.T) {
	for _, what := range []string{"push", "open", "edit", "list"} {
		for _, lost := range []bool{false, true}[:map[bool]int{true: 1, false: 2}[what == "list"]] {
			for _, forgets := range []bool{false, true} {
				for _, second := range []bool{false, true} {
					name := fmt.Sprintf("%s, done %t, forgets %t, at the second image %t", what, lost, forgets, second)
					w := newWorld(t, "a", "b")
					w.newest = "ami-2"
					if second {
						w.turn()
						w.newest = "ami-3"
					}
					w.now.Time = w.now.Time.Add(daily)
					w.fails[what], w.lost = &forgehttp.Error{Fault: forgehttp.FaultBusy, Message: "busy"}, lost
					_, _ = w.s.Turn(t.Context(), w.store, w.now)
					w.restart()
					if forgets {
						w.forgets()
					}
					e := w.turn()
					if forgets && second { // the one that was found counts as changed now
						e = w.turn()
					}
					want := "a.yaml=" + w.newest + " b.yaml=" + w.newest
					if e.Phase != proposal.Open || len(w.pulls) != 1 || w.changes() != want || !strings.Contains(w.bodies[len(w.bodies)-1], w.newest) {
						t.Errorf("%s: %+v, %d, %s", name, e, len(w.pulls), w.changes())
					}
				}
			}
		}
	}
}

// TestAClosedByWeirIsNotOneOfSomebody: the answer to closing is lost, and the same images are
// wanted again later.
func TestAClosedByWeirIsNotOneOfSomebody(t *testing.T) {
	for _, lost := range []bool{false, true} {
		w := newWorld(t, "a")
		w.newest = "ami-2"
		w.turn()
		w.running["a"] = "ami-2"
		w.fails["close"], w.lost = &forgehttp.Error{Fault: forgehttp.FaultBusy}, lost
		w.turn()
		w.restart()
		if e := w.turn(); e.Phase != proposal.Obsolete || len(e.Declined) != 0 || w.pulls[0].State != forge.Closed {
			t.Fatalf("%t: %+v", lost, e)
		}
		w.running["a"] = "ami-1"
		if e := w.turn(); e.Phase != proposal.Open || len(w.pulls) != 2 {
			t.Errorf("%t: %+v", lost, e)
		}
	}
}

// TestWhatIsNotKnownChangesNothing: a target that cannot be read is not one that needs nothing.
func TestWhatIsNotKnownChangesNothing(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.newest = "ami-2"
	e := w.turn()
	w.unread = map[string]string{target("a"): "AWS did not answer", target("b"): "neither"}
	w.newest = "ami-3"
	if got := w.turn(); got.Commit != e.Commit || w.pulls[0].State != forge.Open {
		t.Fatalf("%+v", got)
	}
	w.unread = nil
	if got := w.turn(); got.Commit == e.Commit || w.changes() != "a.yaml=ami-3 b.yaml=ami-3" {
		t.Errorf("%+v, %s", got, w.changes())
	}
}

// TestAWSDoesNotAnswer: what is open is watched all the same, and AWS is asked again in a while.
func TestAWSDoesNotAnswer(t *testing.T) {
	w := newWorld(t, "a")
	w.newest = "ami-2"
	w.turn()
	w.restart()
	w.fails["survey"] = errors.New("throttled")
	if _, err := w.s.Turn(t.Context(), w.store, w.now); err == nil {
		t.Error("the error is lost")
	}
	w.pulls[0].State = forge.Closed
	w.now.Time = w.now.Time.Add(time.Second)
	if e := w.soon(); e.Phase != proposal.Closed || w.calls["survey"] != 2 {
		t.Errorf("%+v, %v", e, w.calls)
	}
}

func TestWhatIsLeftToPeople(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.newest = "ami-2"
	w.refused = map[string]string{"a": "the variable IMAGE decides", "b": "token hunter2 decides"}
	for range 3 {
		if e := w.turn(); e.Phase != proposal.ByHand || !strings.Contains(e.Told, "IMAGE decides (and 1 pool more)") || len(w.pulls) != 0 || len(w.events) != 1 || w.events[0] != "images-refused" {
			t.Fatalf("%+v, %q", e, w.events)
		}
	}
	delete(w.refused, "a")
	if e := w.turn(); e.Phase != proposal.Open || w.changes() != "a.yaml=ami-2" || !strings.Contains(w.bodies[0], "token *** decides") || strings.Contains(w.bodies[0], "hunter2") {
		t.Errorf("%+v, %q", e, w.bodies)
	}
	if e := w.turn(); len(w.bodies) != 1 {
		t.Errorf("what is refused is tried again and again: %+v", e)
	}
	// A branch of that name that somebody else made.
	w = newWorld(t, "a")
	w.newest = "ami-2"
	w.repo.Branch(branchOf(family, []string{"ami-2"}), w.repo.Tip("main"))
	if e := w.turn(); e.Phase != proposal.ByHand || !strings.Contains(e.Told, "delete it") || len(w.pulls) != 0 {
		t.Errorf("%+v", e)
	}
	// A token that may not push is said once, and tried seldom.
	w = newWorld(t, "a")
	w.newest = "ami-2"
	for range 3 {
		w.fails["push"] = &transport.RefusedError{Name: "b", Said: "protected"}
		w.turn()
	}
	if fmt.Sprint(w.events) != "[images-refused]" {
		t.Errorf("%q", w.events)
	}
	if e := w.turn(); e.Phase != proposal.Open {
		t.Errorf("%+v", e)
	}
}

// TestAThousandPools are one branch with one commit, and a bounded number of calls.
func TestAThousandPools(t *testing.T) {
	var names []string
	for i := range 1000 {
		names = append(names, fmt.Sprintf("p%d", i))
	}
	w := newWorld(t, names...)
	w.newest = "ami-2"
	w.turn()
	if fmt.Sprint(w.calls) != "map[list:1 open:1 pin:1 push:1 survey:1]" {
		t.Errorf("%v", w.calls)
	}
	if got := w.repo.Git("rev-list", "--count", "main.."+w.pulls[0].HeadRef); got != "1" || len(strings.Fields(w.changes())) != 1000 {
		t.Errorf("%s commits, %d files", got, len(strings.Fields(w.changes())))
	}
	if n := len(w.bodies[0]); n > 60_000 { // GitHub takes 65,536 characters
		t.Errorf("a text of %d bytes", n)
	}
}
