package ancestry

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// bench is a repository over HTTP, a source that follows it, and what is remembered.
type bench struct {
	t    *testing.T
	repo *sourcetest.Repo
	dir  string
	// mirror is the directory below which the latest mirror is.
	mirror  string
	db      *state.DB
	tracker *Tracker
	line    *Line
	git     *source.Git
	// skew is how far the lines' clock is ahead of this machine's.
	skew time.Duration
	// rung counts how often passes were to be made anew.
	rung int
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, repo: sourcetest.New(t), dir: t.TempDir()}
	t.Cleanup(func() { b.stop() })
	b.start(b.dir, source.Ref{Branch: "main"})
	return b
}

func (b *bench) stop() {
	b.git.Close()
	if err := b.db.Close(); err != nil {
		b.t.Error(err)
	}
}

// start follows a ref, with a mirror below a directory.
func (b *bench) start(mirror string, ref source.Ref) {
	b.t.Helper()
	var err error
	if b.db, err = state.Open(b.dir); err != nil {
		b.t.Fatal(err)
	}
	b.tracker = Open(b.db, slog.New(slog.DiscardHandler))
	b.line, b.git = b.follow("s", mirror, ref)
	b.tracker.Follow([]*Line{b.line})
}

func (b *bench) follow(name, mirror string, ref source.Ref) (*Line, *source.Git) {
	b.t.Helper()
	b.mirror = mirror
	var line *Line
	git, err := source.New(source.Config{Name: name, URL: b.repo.URL(), Ref: ref, Dir: mirror}, source.Options{
		Found: func(began time.Time, revision string) { line.RecordHead(began, revision) },
	})
	if err != nil {
		b.t.Fatal(err)
	}
	line = b.tracker.Line(git.ID(), name, git, func() { b.rung++ }, func() time.Time { return time.Now().Add(b.skew) })
	return line, git
}

// restart is a new process, which finds the mirror there.
func (b *bench) restart(mirror string, ref source.Ref) {
	b.stop()
	b.start(mirror, ref)
}

func (b *bench) look() string {
	b.t.Helper()
	s, err := b.git.Latest(b.t.Context())
	if err != nil {
		b.t.Fatal(err)
	}
	return s.Revision
}

func (b *bench) commit(text string) string {
	b.repo.Write(map[string]string{"f": text})
	return b.repo.Commit(text)
}

// relations wants the commits to stand so to the one that was found last.
func (b *bench) relations(what string, followed string, want map[string]model.Relation) {
	b.t.Helper()
	var names []string
	for name := range want {
		names = append(names, name)
	}
	got, err := b.line.Relations(b.t.Context(), followed, names)
	if err != nil {
		b.t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		b.t.Errorf("%s (-want +got):\n%s", what, diff)
	}
}

func TestAskedThenBelieved(t *testing.T) {
	b := newBench(t)
	one, two := b.commit("one"), b.commit("two")
	b.look()
	nowhere := strings.Repeat("9", 40)
	b.relations("what is behind is known", two, map[string]model.Relation{one: model.RelationOlder, one[:7]: model.RelationOlder, two[:7]: model.RelationOlder})
	b.relations("what is not here is asked for", two, map[string]model.Relation{nowhere: model.RelationAsked, nowhere[:7]: model.RelationAsked})
	if b.rung != 0 {
		t.Error("passes are rung before Git has answered")
	}
	b.look()
	if b.rung != 1 {
		t.Errorf("passes were rung %d times", b.rung)
	}
	b.relations("and then believed", two, map[string]model.Relation{nowhere: model.RelationUnknown, nowhere[:7]: model.RelationUnknown})
	b.look()
	if b.rung != 1 {
		t.Errorf("passes were rung %d times", b.rung)
	}
	three := b.commit("three")
	b.relations("another one", two, map[string]model.Relation{three: model.RelationAsked})
	b.look()
	b.relations("the composition is behind the source", two, map[string]model.Relation{three: model.RelationAsked})
	b.relations("it came", three, map[string]model.Relation{three: model.RelationOlder})
}

// A commit that the repository still does not have after hours stops nothing any more: its
// history was rewritten while no weir looked.
func TestAnUnknownCommitDoesNotStopForEver(t *testing.T) {
	b := newBench(t)
	head := b.commit("one")
	b.look()
	gone := strings.Repeat("9", 40)
	b.relations("asked", head, map[string]model.Relation{gone: model.RelationAsked})
	b.look()
	b.skew = unknownFor - time.Minute
	b.relations("before", head, map[string]model.Relation{gone: model.RelationUnknown})
	b.skew = unknownFor
	b.relations("after", head, map[string]model.Relation{gone: model.RelationOlder})
}

// A source that stays where it is though there are later commits is behind.
func TestAPinnedSourceIsBehind(t *testing.T) {
	b := newBench(t)
	one := b.commit("one")
	b.look()
	b.restart(t.TempDir(), source.Ref{Commit: one})
	two := b.commit("two")
	b.look()
	b.relations("asked for", one, map[string]model.Relation{two[:7]: model.RelationAsked})
	b.look()
	// The server gives no commit by name, and so its branches came too.
	b.relations("believed", one, map[string]model.Relation{two[:7]: model.RelationNewer})
	// Somebody has decided.
	b.tracker.Lift(b.git.ID(), []string{two[:7]})
	b.relations("lifted, by either name", one, map[string]model.Relation{two[:7]: model.RelationOlder, two: model.RelationOlder})
	b.restart(t.TempDir(), source.Ref{Commit: one})
	b.look()
	b.relations("after a restart too", one, map[string]model.Relation{two[:7]: model.RelationOlder})
}

// A reset branch is where it was reset to, whether weir looked on, was stopped, or has
// another mirror; a repository whose past it never knew stops.
func TestAResetBranch(t *testing.T) {
	for name, tc := range map[string]struct {
		during func(b *bench)
		want   model.Relation
	}{
		"while it looks on":      {func(*bench) {}, model.RelationOlder},
		"while it is stopped":    {func(b *bench) { b.restart(b.dir, source.Ref{Branch: "main"}) }, model.RelationOlder},
		"and the mirror is lost": {func(b *bench) { b.restart(b.t.TempDir(), source.Ref{Branch: "main"}) }, model.RelationOlder},
		"and all is lost": {func(b *bench) {
			b.stop()
			b.dir = b.t.TempDir()
			b.start(b.dir, source.Ref{Branch: "main"})
		}, model.RelationUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			one := b.commit("one")
			b.commit("two")
			three := b.commit("three")
			b.look()
			b.repo.Branch("main", one)
			tc.during(b)
			b.look()
			for range 2 {
				got, err := b.line.Relations(t.Context(), one, []string{three, three[:7]})
				if err != nil {
					t.Fatal(err)
				}
				if tc.want == model.RelationOlder || b.rung > 0 {
					if diff := cmp.Diff(map[string]model.Relation{three: tc.want, three[:7]: tc.want}, got); diff != "" {
						t.Errorf("(-want +got):\n%s", diff)
					}
				}
				b.look()
			}
			// From there on it goes as ever.
			b.repo.Switch("main")
			four := b.commit("four")
			b.look()
			b.relations("later", four, map[string]model.Relation{one: model.RelationOlder})
		})
	}
}

// lineage finds the commits that a branch had between where it was reset from and to,
// as long as the mirror has them. A branch that comes back is forgotten to have been
// left.
func TestWhatWasLeft(t *testing.T) {
	b := newBench(t)
	one, two, three := b.commit("one"), b.commit("two"), b.commit("three")
	b.look()
	b.repo.Branch("main", one)
	b.look()
	b.relations("in between", one, map[string]model.Relation{two: model.RelationOlder, two[:7]: model.RelationOlder})
	b.repo.Branch("main", three)
	b.look()
	if left := b.line.left(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
	tree := b.repo.Git("rev-parse", one+"^{tree}")
	for i := range 2 * mostLeft {
		b.repo.Branch("main", b.repo.Git("commit-tree", tree, "-p", one, "-m", fmt.Sprint(i)))
		b.look()
	}
	if n := len(b.line.left()); n > mostLeft {
		t.Errorf("%d commits are remembered", n)
	}
	// The branch comes to where it was reset to long ago, and what came after that is still lost.
	b.repo.Branch("main", one)
	b.look()
	b.relations("asked for", one, map[string]model.Relation{two: model.RelationAsked, three[:7]: model.RelationAsked})
	b.look()
	b.relations("lost long ago", one, map[string]model.Relation{two: model.RelationOlder, three[:7]: model.RelationOlder})
}

// Another branch of the same repository that this weir follows is nothing to fall
// behind of: a target may move from one source to another.
func TestTwoBranchesOfOneRepository(t *testing.T) {
	b := newBench(t)
	one := b.commit("one")
	b.repo.Branch("dev", one)
	two := b.commit("two")
	b.look()
	dev, git := b.follow("dev", b.dir, source.Ref{Branch: "dev"})
	defer git.Close()
	b.tracker.Follow([]*Line{b.line, dev})
	if _, err := git.Latest(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, err := dev.Relations(context.Background(), one, []string{two, two[:7]})
	if diff := cmp.Diff(map[string]model.Relation{two: model.RelationOlder, two[:7]: model.RelationOlder}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

// The last commit of a removed source counts as nobody's newer commit, and weir forgets repositories that nobody follows.
func TestSourcesThatAreGone(t *testing.T) {
	b := newBench(t)
	one := b.commit("one")
	b.repo.Branch("dev", one)
	two := b.commit("two")
	b.look()
	dev, git := b.follow("dev", t.TempDir(), source.Ref{Branch: "dev"})
	defer git.Close()
	b.tracker.Follow([]*Line{b.line, dev})
	if _, err := git.Latest(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.tracker.Follow([]*Line{dev}) // main's source is gone, and what dev holds is behind it
	got, err := dev.Relations(t.Context(), one, []string{two})
	if diff := cmp.Diff(map[string]model.Relation{two: model.RelationOlder}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for i := range 50 {
		other := b.tracker.Line(fmt.Sprint("other-", i), "s", b.git, func() {}, time.Now)
		b.tracker.Follow([]*Line{dev, other})
		other.RecordHead(time.Now(), one)
		b.tracker.Lift(other.ID(), []string{two})
	}
	b.tracker.Follow([]*Line{dev})
	if n := len(b.tracker.known) + len(b.tracker.lines); n != 1 {
		t.Errorf("%d repositories are remembered, one is followed", n)
	}
	kept := map[string]record{}
	err = b.db.View(func(tx *state.Tx) error {
		return records.ForEach(tx, "", func(id string, r record) error { kept[id] = r; return nil })
	})
	if want := map[string]record{dev.ID(): {Heads: map[string]string{"dev": one}, Left: []string{two}}}; err != nil || !cmp.Equal(want, kept) {
		t.Errorf("%v (-want +got):\n%s", err, cmp.Diff(want, kept))
	}
}
