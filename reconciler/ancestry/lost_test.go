package ancestry

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/coord/coordtest"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/reconciler/state/statetest"
	"github.com/weir-gitops/weir/source"
)

// packs are those of the mirror below a directory, without extension.
func packs(t *testing.T, dir string) (out []string) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.git", "objects", "pack", "*.pack"))
	if err != nil || len(found) == 0 {
		t.Fatalf("packs below %s: %v, %v", dir, found, err)
	}
	for _, f := range found {
		out = append(out, strings.TrimSuffix(f, ".pack"))
	}
	return out
}

// crowd gives the mirror so many packs that it is made again at the next fetch.
func (b *bench) crowd() {
	t, one := b.t, packs(b.t, b.dir)[0]
	t.Helper()
	for i := range 200 {
		for _, ext := range []string{".idx", ".pack"} {
			name := filepath.Join(filepath.Dir(one), fmt.Sprintf("pack-%040x%s", i, ext))
			if err := os.Link(one+ext, name); err != nil {
				t.Fatal(err)
			}
		}
	}
	b.restart(b.dir, source.Ref{Branch: "main"}) // it lists them anew
}

// damage spoils the middle of the large packs, where there is a directory.
func damage(t *testing.T, dir string) {
	t.Helper()
	for _, p := range packs(t, dir) {
		data, err := os.ReadFile(p + ".pack")
		if err != nil {
			t.Fatal(err)
		}
		if len(data) < 3000 {
			continue
		}
		for i := len(data) / 2; i < len(data)/2+64; i++ {
			data[i] ^= 0xff
		}
		if err := errors.Join(os.Remove(p+".pack"), os.WriteFile(p+".pack", data, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
}

// listing is a directory whose listing does not get smaller.
func listing(n int) map[string]string {
	r, out := rand.New(rand.NewPCG(1, 2)), map[string]string{} //nolint:gosec // It is no secret.
	for range n {
		out[fmt.Sprintf("%016x", r.Uint64())] = "a file"
	}
	return out
}

// What was made from a line that the branch has left is known once the mirror was made again,
// though the repository has that line no more; what another weir made from a newer commit is still
// nobody's here.
func TestALeftLineOutlivesTheMirror(t *testing.T) {
	main := source.Ref{Branch: "main"}
	for name, tc := range map[string]struct {
		before func(b *bench) // before the branch is reset
		after  func(b *bench) // and after it
	}{
		"made again as the branch is reset": {before: func(b *bench) { b.crowd() }},
		"made again later": {after: func(b *bench) {
			b.crowd()
			b.commit("later")
			b.look()
		}},
		"made again twice": {
			before: func(b *bench) { b.crowd() },
			after: func(b *bench) {
				b.crowd()
				b.commit("later")
				b.look()
			},
		},
		"damaged as the branch is reset": {before: func(b *bench) {
			damage(b.t, b.dir)
			b.restart(b.dir, main)
		}},
		"made again, then weir is stopped before it wrote anything down": {before: func(b *bench) {
			b.crowd()
			b.repo.Orphan()
			b.commit("in between")
			stopped, err := source.New(source.Config{Name: "s", URL: b.repo.URL(), Ref: main, Dir: b.dir}, source.Options{})
			if err != nil {
				b.t.Fatal(err)
			}
			defer stopped.Close()
			if _, err := stopped.Latest(b.t.Context()); err != nil {
				b.t.Fatal(err)
			}
			b.restart(b.dir, main)
		}},
		"lost after it": {after: func(b *bench) { b.restart(b.t.TempDir(), main) }},
		"another one, as the source has another name": {after: func(b *bench) {
			b.git.Close()
			b.line, b.git = b.follow("renamed", b.t.TempDir(), main)
			b.tracker.Follow([]*Line{b.line})
			b.look()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			one := b.commit("one")
			b.look()
			b.repo.Write(listing(500))
			two := b.commit("two")
			b.look()
			three := b.commit("three")
			b.look()
			if tc.before != nil {
				tc.before(b)
			}
			b.repo.Orphan()
			b.commit("another history")
			b.look()
			if tc.after != nil {
				tc.after(b)
			}
			at := b.look()
			if found := packs(t, b.mirror); len(found) > 3 {
				t.Fatalf("the mirror was not made again: it has %d packs", len(found))
			}
			want := map[string]model.Relation{
				one: model.RelationOlder, one[:7]: model.RelationOlder, two[:7]: model.RelationOlder, two: model.RelationOlder, three: model.RelationOlder,
			}
			_, err := b.line.Relations(t.Context(), at, slices.Collect(maps.Keys(want)))
			if err != nil {
				t.Fatal(err)
			}
			b.look() // what is not here is asked for first
			b.relations("each is an old one", at, want)
			b.others(at)
		})
	}
}

// others wants what another weir of the instance made to stop this one.
func (b *bench) others(at string) {
	b.t.Helper()
	tree := b.repo.Git("rev-parse", at+"^{tree}")
	next := b.repo.Git("commit-tree", tree, "-p", at, "-m", "of another weir")
	b.relations("asked for", at, map[string]model.Relation{next: model.RelationAsked, next[:7]: model.RelationAsked})
	b.look()
	b.relations("believed", at, map[string]model.Relation{next: model.RelationUnknown, next[:7]: model.RelationUnknown})
}

// A member whose mirror never had the old line takes over.
func TestAMemberThatNeverHadALeftLine(t *testing.T) {
	b := newBench(t)
	memory := coordtest.NewMemory()
	first, second := statetest.Join(t, memory, "a"), statetest.Join(t, memory, "b")
	join := func(m *statetest.Member) (*Line, *source.Git) {
		b.tracker = Open(m, slog.New(slog.DiscardHandler))
		line, git := b.follow("s", t.TempDir(), source.Ref{Branch: "main"})
		t.Cleanup(git.Close)
		b.tracker.Follow([]*Line{line})
		return line, git
	}
	look := func(git *source.Git) string {
		s, err := git.Latest(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return s.Revision
	}
	line, git := join(first)
	one := b.commit("one")
	look(git)
	_, gitB := join(second)
	two := b.commit("two")
	look(git)
	b.repo.Orphan()
	b.commit("another history")
	second.Sync(t)
	look(gitB) // it comes first, and has no two
	first.Sync(t)
	at := look(git)
	want := map[string]model.Relation{one: model.RelationOlder, two: model.RelationOlder, one[:7]: model.RelationOlder}
	third := statetest.Join(t, memory, "c")
	lineC, gitC := join(third)
	if look(gitC) != at {
		t.Fatal("members see different branches")
	}
	for name, l := range map[string]*Line{"a": line, "c": lineC} {
		if _, err := l.Relations(t.Context(), at, []string{one, two, one[:7]}); err != nil {
			t.Fatal(err)
		}
		look(git)
		look(gitC)
		got, err := l.Relations(t.Context(), at, []string{one, two, one[:7]})
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("member %s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// writes counts the changes of a store, and fails them where it is told to.
type writes struct {
	state.Store
	n    int
	fail bool
}

func (w *writes) Update(fn func(*state.Tx) error) error {
	if w.fail {
		return os.ErrPermission
	}
	w.n++
	return w.Store.Update(fn)
}

// A source at rest writes nothing, nor does one that goes on as ever; what could not be
// written is written later; and it does not grow for ever.
func TestLostCommitsAreWrittenOnce(t *testing.T) {
	b := newBench(t)
	store := &writes{Store: b.db}
	open := func() {
		b.git.Close()
		b.tracker = Open(store, slog.New(slog.DiscardHandler))
		b.line, b.git = b.follow("s", b.dir, source.Ref{Branch: "main"})
		b.tracker.Follow([]*Line{b.line})
	}
	open()
	one := b.commit("one")
	b.look()
	two := b.commit("two")
	b.look()
	if n := len(b.line.lost()); n > 0 {
		t.Errorf("%d commits are lost, and no branch was reset", n)
	}
	b.repo.Branch("main", one)
	store.fail = true
	b.look()
	if n := len(b.line.lost()); n > 0 {
		t.Fatalf("%d commits are written, though nothing can be", n)
	}
	store.fail = false
	b.look()
	if diff := cmp.Diff([]string{two[:nameLength]}, b.line.lost()); diff != "" {
		t.Errorf("lost (-want +got):\n%s", diff)
	}
	open()
	b.look()
	before := store.n
	for range 5 {
		b.look()
	}
	if store.n != before {
		t.Errorf("%d writes at rest", store.n-before)
	}
	// All that there is room for, and the latest first.
	all := make([]string, mostLost+10)
	for i := range all {
		all[i] = fmt.Sprintf("%08x%032d", i, 0)
	}
	b.line.git = lossy{b.git, all}
	b.line.RecordHead(time.Now(), two)
	if got := b.line.lost(); len(got) != mostLost || got[0] != all[0][:nameLength] {
		t.Errorf("%d commits are kept, the first is %s", len(got), got[0])
	}
}

type lossy struct {
	Git
	all []string
}

func (l lossy) Lost(context.Context, string, string) ([]string, error) { return l.all, nil }
