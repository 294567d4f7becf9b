package source_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// change is what one side does on top of the fork.
type change func(r *sourcetest.Repo)

func writing(files map[string]string) change { return func(r *sourcetest.Repo) { r.Write(files) } }

func one(name, text string) change { return writing(map[string]string{name: text}) }

func mode(mode, name, text string) change {
	return func(r *sourcetest.Repo) { r.WriteMode(mode, name, text) }
}

func without(names ...string) change { return func(r *sourcetest.Repo) { r.Remove(names...) } }

func submodule(name, digit string) change {
	return func(r *sourcetest.Repo) { r.Submodule(name, strings.Repeat(digit, 40)) }
}

func several(changes ...change) change {
	return func(r *sourcetest.Repo) {
		for _, c := range changes {
			c(r)
		}
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	several(
		writing(map[string]string{"f": "1", "d/x": "1", "d/y": "1", "e/only": "1", "link": "symlink:f", "l\xfftin": "1", "Case": "1"}),
		submodule("sub", "1"),
	)(repo)
	fork := repo.Commit("fork")
	g := open(t, source.Config{URL: repo.Dir()}, source.Options{})
	latest(t, g)

	conflict := func(path string, kind source.ConflictKind) []source.Conflict {
		return []source.Conflict{{Path: path, Kind: kind}}
	}
	tests := map[string]struct {
		base, head change
		conflicts  []source.Conflict
		// want is what is asserted of the merged tree: content, or "" for absent.
		want map[string]string
	}{
		"different files":                         {one("f", "b"), one("d/x", "h"), nil, map[string]string{"f": "b", "d/x": "h", "d/y": "1"}},
		"both to the same":                        {several(one("f", "2"), one("d/x", "b")), several(one("f", "2"), one("d/y", "h")), nil, map[string]string{"f": "2", "d/x": "b", "d/y": "h"}},
		"both changed":                            {one("d/x", "b"), one("d/x", "h"), conflict("d/x", source.BothChanged), nil},
		"both added":                              {one("n", "b"), one("n", "h"), conflict("n", source.BothAdded), nil},
		"both added the same":                     {one("n/n", "2"), several(one("n/n", "2"), one("n/m", "h")), nil, map[string]string{"n/n": "2", "n/m": "h"}},
		"changed, deleted":                        {one("f", "b"), without("f"), conflict("f", source.ChangedAndDeleted), nil},
		"deleted, changed":                        {without("d"), one("d/x", "h"), conflict("d/x", source.ChangedAndDeleted), nil},
		"both deleted":                            {without("e"), several(without("e"), one("f", "h")), nil, map[string]string{"e": "", "f": "h"}},
		"a directory emptied by halves":           {without("d/x"), without("d/y"), nil, map[string]string{"d": ""}},
		"file, directory":                         {one("n", "b"), one("n/n", "h"), conflict("n", source.FileAndDirectory), nil},
		"changed file, directory":                 {one("f", "b"), several(without("f"), one("f/n", "h")), conflict("f", source.FileAndDirectory), nil},
		"directory in place of a file":            {one("d/x", "b"), several(without("f"), one("f/n", "h")), nil, map[string]string{"f/n": "h", "d/x": "b"}},
		"file in place of a directory":            {several(without("e"), one("e", "b")), one("f", "h"), nil, map[string]string{"e": "b", "f": "h"}},
		"file in place of a directory that grows": {several(without("e"), one("e", "b")), one("e/more", "h"), conflict("e", source.FileAndDirectory), nil},
		"mode and content":                        {mode("100755", "f", "1"), one("f", "h"), nil, map[string]string{"f": "100755 h"}},
		"content and mode":                        {one("f", "b"), mode("100755", "f", "1"), nil, map[string]string{"f": "100755 b"}},
		"mode of both":                            {mode("100755", "n", "1"), mode("100644", "n", "1"), conflict("n", source.ModeConflict), nil},
		"symlink to file":                         {one("d/x", "b"), several(without("link"), one("link", "text")), nil, map[string]string{"link": "text", "d/x": "b"}},
		"symlink to file, moved link":             {one("link", "symlink:d/x"), several(without("link"), one("link", "text")), conflict("link", source.KindConflict), nil},
		"symlinks":                                {one("link", "symlink:d/x"), one("link", "symlink:d/y"), conflict("link", source.BothChanged), nil},
		"submodule moved":                         {one("f", "b"), submodule("sub", "2"), nil, map[string]string{"sub": "submodule:" + strings.Repeat("2", 40), "f": "b"}},
		"submodule moved twice":                   {submodule("sub", "2"), submodule("sub", "3"), conflict("sub", source.SubmoduleConflict), nil},
		"submodule, file":                         {submodule("n", "2"), one("n", "h"), conflict("n", source.KindConflict), nil},
		"name in no encoding":                     {one("f", "b"), one("l\xfftin", "h"), nil, map[string]string{"l\xfftin": "h"}},
		"name in no encoding, both":               {one("l\xfftin", "b"), one("l\xfftin", "h"), conflict("l\xfftin", source.BothChanged), nil},
		"case of a name":                          {one("f", "b"), several(without("Case"), one("case", "1")), nil, map[string]string{"case": "1", "Case": "", "f": "b"}},
		"case of a name, changed":                 {one("Case", "b"), several(without("Case"), one("case", "1")), conflict("Case", source.ChangedAndDeleted), nil},
		"everything deleted":                      {without("d", "e", "f", "sub"), without("link", "l\xfftin", "Case", "d"), nil, map[string]string{}},
		"several, sorted": {several(one("f", "b"), one("d/x", "b"), one("Case", "b")), several(one("f", "h"), one("d/x", "h"), without("Case")), []source.Conflict{
			{Path: "Case", Kind: source.ChangedAndDeleted}, {Path: "d/x", Kind: source.BothChanged}, {Path: "f", Kind: source.BothChanged},
		}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			side := func(branch string, c change) string {
				repo.Branch(branch, fork)
				repo.Switch(branch)
				c(repo)
				return repo.Commit(branch)
			}
			base, head := side("base", tt.base), side("head", tt.head)
			propose(repo, "head")
			latest(t, g)
			m := pull(t, g, ref(head, base))
			if diff := cmp.Diff(tt.conflicts, m.Conflicts); diff != "" {
				t.Fatal(diff)
			}
			if tt.conflicts != nil {
				if m.Snapshot.Tree != nil {
					t.Error("a tree came with conflicts")
				}
				return
			}
			got := files(t, m.Snapshot.Tree)
			if len(tt.want) == 0 && len(got) > 0 {
				t.Errorf("left: %v", got)
			}
			for p, want := range tt.want {
				e, err := m.Snapshot.Tree.Lookup(p)
				text := got[p]
				if strings.HasPrefix(want, "100755 ") {
					text = e.Mode.String() + " " + text
				}
				if want == "" && err == nil || want != "" && text != want {
					t.Errorf("%q is %q (%+v, %v), want %q", p, text, e, err, want)
				}
			}
		})
	}
}

func TestConflictAsText(t *testing.T) {
	t.Parallel()
	for c, want := range map[source.Conflict]string{
		{Path: "a/b", Kind: source.BothChanged}:        "a/b: changed on both sides",
		{Path: "a\nb\x1b[31m", Kind: source.BothAdded}: "a b [31m: added on both sides with different content",
		{Kind: source.SeveralMergeBases}:               "several merge bases: update the branch",
		{Kind: source.UnrelatedHistories}:              "the branch has no commit in common with the one that is followed: start it from that branch",
	} {
		if got := c.String(); got != want {
			t.Errorf("%#v is %q, want %q", c, got, want)
		}
	}
}

// TestManyConflicts tells a bounded number of them.
func TestManyConflicts(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	tenThousand(repo)
	fork := repo.Tip("main")
	rewrite := func(branch string) string {
		repo.Branch(branch, fork)
		repo.Switch(branch)
		e := map[string]string{}
		for i := range 300 {
			e["clusters/c00/p00/new"+strings.Repeat("x", i)] = branch
		}
		repo.Write(e)
		return repo.Commit(branch)
	}
	base, head := rewrite("base"), rewrite("head")
	propose(repo, "head")
	g := open(t, source.Config{URL: repo.Dir()}, source.Options{})
	if m := pull(t, g, ref(head, base)); len(m.Conflicts) != source.MaxConflicts {
		t.Errorf("%d conflicts told, want %d", len(m.Conflicts), source.MaxConflicts)
	}
}

// join makes a commit with given parents, all of one commit's files.
func join(repo *sourcetest.Repo, files string, parents ...string) string {
	args := []string{"commit-tree", "-m", "join", files + "^{tree}"}
	for _, p := range parents {
		args = append(args, "-p", p)
	}
	return repo.Git(args...)
}

func TestMergeBases(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	repo.Write(map[string]string{"f": "1", "g": "1", "h": "1"})
	fork := repo.Commit("fork")
	on := func(parent, name, text string) string {
		repo.Branch("side", parent)
		repo.Switch("side")
		repo.Write(map[string]string{name: text})
		return repo.Commit(name + text)
	}
	g := open(t, source.Config{URL: repo.Dir()}, source.Options{})
	merge := func(t *testing.T, base, head string) source.Merge {
		t.Helper()
		repo.Git("update-ref", pullHead, head)
		return pull(t, g, ref(head, base))
	}
	a, b := on(fork, "f", "a"), on(fork, "g", "b")
	whole := func(f, g, h string) string {
		repo.Branch("side", fork)
		repo.Switch("side")
		repo.Write(map[string]string{"f": f, "g": g, "h": h})
		return repo.Commit("whole")
	}
	t.Run("criss-cross that agrees", func(t *testing.T) {
		both := whole("a", "b", "1")
		x, y := join(repo, both, a, b), join(repo, whole("a", "b", "y"), b, a)
		m := merge(t, x, y)
		if m.Conflicts != nil || m.Snapshot.Tree == nil || files(t, m.Snapshot.Tree)["h"] != "y" {
			t.Errorf("%+v", m)
		}
		if m.MergeBase != a && m.MergeBase != b {
			t.Errorf("merge base %s, want %s or %s", m.MergeBase, a, b)
		}
	})
	t.Run("criss-cross that does not", func(t *testing.T) {
		x, y := join(repo, whole("a", "1", "1"), a, b), join(repo, whole("1", "b", "1"), b, a)
		m := merge(t, x, y)
		if diff := cmp.Diff([]source.Conflict{{Kind: source.SeveralMergeBases}}, m.Conflicts); diff != "" {
			t.Error(diff)
		}
	})
	t.Run("octopus", func(t *testing.T) {
		c := on(fork, "h", "c")
		head := join(repo, whole("a", "b", "c"), a, b, c)
		m := merge(t, on(a, "n", "base"), head)
		want := map[string]string{"f": "a", "g": "b", "h": "c", "n": "base"}
		if diff := cmp.Diff(want, files(t, m.Snapshot.Tree)); diff != "" || m.MergeBase != a || m.Behind != 1 {
			t.Errorf("%s\n%+v", diff, m)
		}
	})
	t.Run("unrelated", func(t *testing.T) {
		repo.Switch("unrelated")
		repo.Orphan()
		repo.Write(map[string]string{"f": "1"})
		m := merge(t, a, repo.Commit("unrelated"))
		if diff := cmp.Diff([]source.Conflict{{Kind: source.UnrelatedHistories}}, m.Conflicts); diff != "" || m.MergeBase != "" {
			t.Errorf("%s\n%+v", diff, m)
		}
	})
	t.Run("the base itself", func(t *testing.T) {
		m := merge(t, a, a)
		if m.MergeBase != a || m.Behind != 0 || files(t, m.Snapshot.Tree)["f"] != "a" {
			t.Errorf("%+v", m)
		}
	})
	t.Run("merged already", func(t *testing.T) {
		m := merge(t, on(a, "n", "x"), a)
		if m.MergeBase != a || m.Behind != 1 || files(t, m.Snapshot.Tree)["n"] != "x" {
			t.Errorf("%+v", m)
		}
	})
	t.Run("on top", func(t *testing.T) {
		head := on(a, "n", "y")
		m := merge(t, a, head)
		root, err := m.Snapshot.Tree.Lookup(".")
		if want := repo.Git("rev-parse", head+"^{tree}"); err != nil || root.Hash != want || m.Behind != 0 {
			t.Errorf("root %+v, %v, want %s; %+v", root, err, want, m)
		}
	})
}

// TestMergeBaseOfLyingClocks has two common commits, of which one is below the
// other, by way of a commit that claims to be older than both.
func TestMergeBaseOfLyingClocks(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	var in strings.Builder
	commit := func(mark int, minute int64, links, edit string) {
		fmt.Fprintf(&in, "reset refs/heads/c%d\ncommit refs/heads/c%d\nmark :%d\ncommitter Weir Test <test@weir.dev> %d +0000\ndata 1\n%d\n%s%s\n",
			mark, mark, mark, sourcetest.Epoch.Unix()+60*minute, mark, links, edit)
	}
	write := func(name, text string) string {
		return fmt.Sprintf("M 100644 inline %s\ndata %d\n%s\n", name, len(text), text)
	}
	commit(1, 9, "", write("f", "1")+write("g", "1"))
	commit(2, 1, "from :1\n", write("f", "2"))
	commit(3, 5, "from :2\n", write("f", "3"))
	commit(4, 10, "from :3\nmerge :1\n", write("g", "base"))
	commit(5, 10, "from :3\nmerge :1\n", write("h", "head"))
	repo.GitInput([]byte(in.String()), "fast-import", "--quiet", "--date-format=raw")
	repo.Branch("main", repo.Tip("c4"))
	propose(repo, "c5")
	m := pull(t, open(t, source.Config{URL: repo.Dir()}, source.Options{}), ref(repo.Tip("c5"), repo.Tip("c4")))
	if m.MergeBase != repo.Tip("c3") || m.Behind != 1 {
		t.Errorf("merge base %s, behind by %d; want %s and 1", m.MergeBase, m.Behind, repo.Tip("c3"))
	}
	if diff := cmp.Diff(map[string]string{"f": "3", "g": "base", "h": "head"}, files(t, m.Snapshot.Tree)); diff != "" {
		t.Error(diff)
	}
}

// TestForgesMerge takes the forge's merge commit only if it merges what is asked for.
func TestForgesMerge(t *testing.T) {
	t.Parallel()
	everyWay(t, func(t *testing.T, repo *sourcetest.Repo, cfg source.Config) {
		repo.Write(map[string]string{"f": "a\nb\nc\nd\ne\n", "g": "1"})
		fork := repo.Commit("fork")
		repo.Branch("change", fork)
		repo.Switch("change")
		repo.Write(map[string]string{"f": "A\nb\nc\nd\ne\n"})
		head := repo.Commit("change")
		propose(repo, "change")
		repo.Switch("main")
		repo.Write(map[string]string{"f": "a\nb\nc\nd\nE\n"})
		base := repo.Commit("main goes on")
		repo.Switch("merged")
		repo.Branch("merged", fork)
		repo.Write(map[string]string{"f": "A\nb\nc\nd\nE\n"})
		merged := repo.Commit("inside of the file")
		g := open(t, cfg, source.Options{})
		latest(t, g)

		p := ref(head, base)
		p.MergeRef = "refs/pull/7/merge"
		ownResult := func(why string) {
			t.Helper()
			m := pull(t, g, p)
			if diff := cmp.Diff([]source.Conflict{{Path: "f", Kind: source.BothChanged}}, m.Conflicts); diff != "" || m.FromForge {
				t.Errorf("%s: %s\n%+v", why, diff, m)
			}
		}
		ownResult("no such ref")
		for why, c := range map[string]string{
			"of an earlier base":    join(repo, merged, fork, head),
			"of an earlier head":    join(repo, merged, base, fork),
			"other way round":       join(repo, merged, head, base),
			"a third parent":        join(repo, merged, base, head, fork),
			"one parent":            join(repo, merged, head),
			"no merge at all":       head,
			"nothing to do with it": merged,
		} {
			repo.Git("update-ref", p.MergeRef, c)
			ownResult(why)
		}
		right := join(repo, merged, base, head)
		repo.Git("update-ref", p.MergeRef, right)
		m := pull(t, g, p)
		if !m.FromForge || m.Conflicts != nil || m.Snapshot.Revision != head || m.Snapshot.Parent != base || m.MergeBase != fork || m.Snapshot.Subject != "change" {
			t.Errorf("%+v", m)
		}
		if got := files(t, m.Snapshot.Tree)["f"]; got != "A\nb\nc\nd\nE\n" {
			t.Errorf("f is %q", got)
		}
	})
}

// TestMergedDirectoriesCompare gives a merged directory the name that Git gives it
// once it is committed, so that what was read of the one is found equal in the other.
func TestMergedDirectoriesCompare(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	repo.Write(map[string]string{"d/x": "1", "d/y": "1", "d/y.d/z": "1", "d/y-": "1"})
	fork := repo.Commit("fork")
	repo.Branch("change", fork)
	repo.Switch("change")
	repo.Write(map[string]string{"d/x": "h"})
	head := repo.Commit("change")
	propose(repo, "change")
	repo.Switch("main")
	repo.Write(map[string]string{"d/y": "b"})
	base := repo.Commit("base")
	g := open(t, source.Config{URL: repo.Dir()}, source.Options{})
	m := pull(t, g, ref(head, base))
	repo.Write(map[string]string{"d/x": "h"})
	repo.Commit("merged")
	s := latest(t, g)
	for _, p := range []string{".", "d", "d/x", "d/y", "d/y.d"} {
		got, err := m.Snapshot.Tree.Lookup(p)
		want, werr := s.Tree.Lookup(p)
		if err != nil || werr != nil || got != want {
			t.Errorf("%s is %+v, %v; committed it is %+v, %v", p, got, err, want, werr)
		}
		if got.Mode != tree.Dir {
			continue
		}
		list, err := m.Snapshot.Tree.ReadDir(p)
		wantList, werr := s.Tree.ReadDir(p)
		if diff := cmp.Diff(wantList, list); err != nil || werr != nil || diff != "" {
			t.Errorf("%s: %v, %v, %s", p, err, werr, diff)
		}
	}
}
