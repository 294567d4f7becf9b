package images

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler/imageupdates"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/proposal"
	"github.com/weir-gitops/weir/status/proposal/proposaltest"
)

// world is a fleet whose pool N has the image that the file N.yaml holds. If there is no such file, the
// image is looked up, and the pool keeps what running says.
type world struct {
	*proposaltest.World
	running map[string]string
	// newest is AWS's; unread says why the target is not known.
	newest  string
	unread  map[string]string
	refused map[string]string
	counted string
	s       *Source
}

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
	w := &world{World: proposaltest.NewWorld(t), running: map[string]string{}, newest: "ami-1"}
	w.runs("ami-1", pools...)
	w.restart()
	w.Commit("first", "README", "x")
	return w
}

// runs makes pools run an image: those that are named, or all.
func (w *world) runs(image string, pools ...string) {
	if len(pools) == 0 {
		pools = slices.Collect(maps.Keys(w.running))
	}
	for _, p := range pools {
		w.running[p] = image
	}
}

// restart is another process: what is in memory is lost.
func (w *world) restart() {
	w.s = New(Options{Options: w.Options(daily), Git: w.Git, Fleet: w, Counted: func(pools, open int) { w.counted = fmt.Sprint(pools, " ", open) }})
}

// TestContract holds what is proposed of images against the rules of all proposals.
func TestContract(t *testing.T) {
	proposaltest.Contract(t, func(t *testing.T) *proposaltest.Kind {
		w := newWorld(t, "a", "b")
		return &proposaltest.Kind{
			World: w.World, Record: "images", Every: daily, Restart: w.restart, Goes: true, Reopens: true,
			Need: func() { w.newest = "ami-2" }, Change: func() { w.newest = "ami-3" },
			Drop: func() { w.runs(w.newest) }, Again: func() { w.runs("ami-1") },
			Turn:    func() error { _, err := w.s.Turn(t.Context(), w.Store, w.Now); return err },
			Earlier: "family phase number url title branch commit on before foreign paths print images targets changed declined closing last merge told tries after",
			State:   func() proposal.State { return w.kept().State },
			Wants:   func() string { return "a.yaml=" + w.newest + " b.yaml=" + w.newest },
		}
	})
}

// turn turns after what was tried before may be tried again, and a day has passed.
func (w *world) turn() Entry {
	w.T.Helper()
	w.Now.Time = w.Now.Time.Add(daily)
	if _, err := w.s.Turn(w.T.Context(), w.Store, w.Now); err != nil {
		w.T.Fatal(err)
	}
	return w.kept()
}

// kept is the first entry.
func (w *world) kept() Entry {
	w.T.Helper()
	all, err := w.s.Read(w.Store)
	if err != nil {
		w.T.Fatal(err)
	}
	return append(all, Entry{})[0]
}

func (w *world) has(pool string) (string, bool) {
	s, err := w.Git.At(w.T.Context(), w.Now.Head)
	if err != nil {
		w.T.Fatal(err)
	}
	if text, err := s.Tree.ReadFile(pool + ".yaml"); err == nil {
		return strings.TrimSpace(string(text)), true
	}
	return w.running[pool], false
}

func (w *world) Survey(context.Context) (Survey, error) {
	w.Calls["survey"]++
	if err := w.Fails["survey"]; err != nil {
		delete(w.Fails, "survey")
		return Survey{}, err
	}
	var pools []imageupdates.Pool
	for name := range w.running {
		if w.unread[target(name)] != "" {
			continue
		}
		has, written := w.has(name)
		pools = append(pools, imageupdates.Pool{
			Target: target(name), Name: "default/" + name, Ask: intent.Lookup{Kind: intent.ImageForEKS, Name: "AmazonLinux2023"}, Has: has, Image: imageOf(has), Newest: observed.Answer{Image: imageOf(w.newest)},
			At: intent.Pin{Object: intent.ObjectRef{Kind: "AWSMachinePool", Name: name}, Field: intent.Path{"spec", "awsLaunchTemplate", "ami", "id"}, Written: written},
		})
	}
	families, gaps := imageupdates.Find(pools)
	return Survey{Head: w.Now.Head, Families: families, Gaps: gaps, Unread: w.unread}, nil
}

func target(pool string) string { return "t-" + pool }

func (w *world) Pin(_ context.Context, _ string, pins []imageupdates.Pin) (Pinned, error) {
	w.Calls["pin"]++
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

func TestANewerImageIsProposedOnce(t *testing.T) {
	w := newWorld(t, "a", "b", "c")
	if e := w.turn(); len(w.Pulls) != 0 || e.Family != "" {
		t.Fatalf("nothing is newer: %+v", e)
	}
	w.newest = "ami-2"
	e := w.turn()
	if e.Phase != proposal.Open || e.Number != 1 || w.Changes() != "a.yaml=ami-2 b.yaml=ami-2 c.yaml=ami-2" {
		t.Fatalf("%+v, %s", e, w.Changes())
	}
	if w.counted != "3 1" {
		t.Errorf("pools and pull requests: %s", w.counted)
	}
	for _, want := range []string{"`EKS AL2023`", "3 pools", "ami-1 (EKS AL2023 1.34, x86_64, 2026-01-01)", "ami-2 (EKS AL2023 1.34, x86_64, 2026-01-02)", "day", "t-b", "3 machines", "deny sun", "every 1 day", "weir.example.com"} {
		if !strings.Contains(w.Bodies[0], want) {
			t.Errorf("%q is not in:\n%s", want, w.Bodies[0])
		}
	}
}

// TestOneIsMovedOn by a merge of half of it, and by a change of the same files.
func TestOneIsMovedOn(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.newest = "ami-2"
	w.turn()
	w.newest = "ami-3"
	w.turn()
	if len(w.Said) != 1 || !strings.Contains(w.Said[0], "ami-3") || !strings.Contains(w.Bodies[1], "ami-3") {
		t.Errorf("%q, %q", w.Said, w.Bodies)
	}
	w.Commit("by hand, the half", "a.yaml", "ami-3")
	if e := w.turn(); e.Number != 1 || w.Changes() != "b.yaml=ami-3" {
		t.Fatalf("%+v, %s", e, w.Changes())
	}
	w.Commit("the other half, otherwise", "b.yaml", "ami-1")
	if e := w.turn(); e.Number != 1 || w.Changes() != "b.yaml=ami-3" || w.Repo.Git("merge-tree", "--write-tree", "main", e.Branch) == "" {
		t.Fatalf("%+v, %s", e, w.Changes())
	}
	w.Commit("all by hand", "b.yaml", "ami-3")
	if e := w.turn(); e.Phase != proposal.Obsolete || w.Pulls[0].State != forge.Closed || len(e.Declined) != 0 {
		t.Errorf("%+v, %q", e, w.Said)
	}
}

// TestTheNextImage is proposed after a merge, also while Git does not show it yet, and after somebody
// closed the one before. A new pool that wants what was closed does not have it proposed again.
func TestTheNextImage(t *testing.T) {
	for _, end := range []forge.State{forge.Merged, forge.Closed} {
		w := newWorld(t, "a")
		w.newest = "ami-2"
		w.turn()
		if end == forge.Merged {
			w.Merge("squash")
			w.turn()
			w.Follow()
		} else {
			w.Pulls[0].State = end
			w.turn()
			w.runs("ami-1", "b")
		}
		if e := w.turn(); len(w.Pulls) != 1 || string(e.Phase) != string(end) {
			t.Fatalf("%s: %+v", end, e)
		}
		w.newest = "ami-3"
		if e := w.turn(); e.Phase != proposal.Open || e.Number != 2 || !strings.HasPrefix(w.Changes(), "a.yaml=ami-3") {
			t.Errorf("%s: %+v, %s", end, e, w.Changes())
		}
	}
}

// TestOneThatWasOpenedAnewIsFound: its answer is lost, and of several pull requests of a branch a
// forge may name any.
func TestOneThatWasOpenedAnewIsFound(t *testing.T) {
	for _, oldest := range []bool{false, true} {
		w := newWorld(t, "a")
		w.newest, w.Oldest = "ami-2", oldest
		w.turn()
		w.runs("ami-2")
		w.turn()
		w.runs("ami-1")
		w.Fails["open"], w.Lost = &forgehttp.Error{Fault: forgehttp.FaultBusy}, true
		w.turn()
		w.restart()
		if e := w.turn(); e.Phase != proposal.Open || e.Number != 2 || len(w.Pulls) != 2 {
			t.Errorf("the oldest %t: %+v, %d", oldest, e, len(w.Pulls))
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
	if got := w.turn(); got.Commit != e.Commit || w.Pulls[0].State != forge.Open {
		t.Fatalf("%+v", got)
	}
	w.unread = nil
	if got := w.turn(); got.Commit == e.Commit || w.Changes() != "a.yaml=ami-3 b.yaml=ami-3" {
		t.Errorf("%+v, %s", got, w.Changes())
	}
}

// TestAWSDoesNotAnswer: what is open is watched all the same, and AWS is asked again in a while.
func TestAWSDoesNotAnswer(t *testing.T) {
	w := newWorld(t, "a")
	w.newest = "ami-2"
	w.turn()
	w.restart()
	w.Fails["survey"] = errors.New("throttled")
	if _, err := w.s.Turn(t.Context(), w.Store, w.Now); err == nil {
		t.Error("the error is lost")
	}
	w.Pulls[0].State = forge.Closed
	w.Now.Time = w.Now.Time.Add(time.Second)
	_, err := w.s.Turn(t.Context(), w.Store, w.Now)
	if e := w.kept(); err != nil || e.Phase != proposal.Closed || w.Calls["survey"] != 2 {
		t.Errorf("%+v, %v, %v", e, err, w.Calls)
	}
}

func TestWhatIsLeftToPeople(t *testing.T) {
	w := newWorld(t, "a", "b")
	w.newest = "ami-2"
	w.refused = map[string]string{"a": "the variable IMAGE decides", "b": "token hunter2 decides"}
	for range 3 {
		if e := w.turn(); e.Phase != proposal.ByHand || !strings.Contains(e.Told, "IMAGE decides (and 1 pool more)") || len(w.Pulls) != 0 || len(w.Events) != 1 || w.Events[0] != "images-refused" {
			t.Fatalf("%+v, %q", e, w.Events)
		}
	}
	delete(w.refused, "a")
	if e := w.turn(); e.Phase != proposal.Open || w.Changes() != "a.yaml=ami-2" || !strings.Contains(w.Bodies[0], "token *** decides") || strings.Contains(w.Bodies[0], "hunter2") {
		t.Errorf("%+v, %q", e, w.Bodies)
	}
	if e := w.turn(); len(w.Bodies) != 1 {
		t.Errorf("what is refused is tried again and again: %+v", e)
	}
	// A branch of that name that somebody else made.
	w = newWorld(t, "a")
	w.newest = "ami-2"
	w.Repo.Branch(branchOf(family, []string{"ami-2"}), w.Repo.Tip("main"))
	if e := w.turn(); e.Phase != proposal.ByHand || !strings.Contains(e.Told, "delete it") || len(w.Pulls) != 0 {
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
	if fmt.Sprint(w.Calls) != "map[list:1 open:1 pin:1 push:1 survey:1]" {
		t.Errorf("%v", w.Calls)
	}
	if got := w.Repo.Git("rev-list", "--count", "main.."+w.Pulls[0].HeadRef); got != "1" || len(strings.Fields(w.Changes())) != 1000 {
		t.Errorf("%s commits, %d files", got, len(strings.Fields(w.Changes())))
	}
	if n := len(w.Bodies[0]); n > 60_000 { // GitHub takes 65,536 characters
		t.Errorf("a text of %d bytes", n)
	}
}
