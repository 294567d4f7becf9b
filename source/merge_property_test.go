package source_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// drawn is a commit of a random history: its parents by number, and what it
// changes on top of the first of them.
type drawn struct {
	parents []int
	stream  string
}

// Paths collide as file and directory, in case and in Git's order of names.
var (
	drawnPaths = []string{"a", "A", "b", "d", "d/x", "d/y", "d/e/z", "d-x", "d.x", "e/w", "e/v", `n\377`}
	drawnModes = []string{"100644", "100644", "100644", "100755", "120000", "160000"}
)

// drawEdit draws a change of one path. With own, no two paths have content of
// which Git would say that the one is the other renamed.
func drawEdit(t *rapid.T, own bool) string {
	which := rapid.IntRange(0, len(drawnPaths)-1).Draw(t, "path")
	p, filler, letter := drawnPaths[which], "\n\n\n\n\n\n", byte('f')
	if own {
		filler, letter = "\n", "0123456789abcdef"[which]
		for i := range 8 {
			sum := sha256.Sum256([]byte{byte(which), byte(i)})
			filler += hex.EncodeToString(sum[:]) + "\n"
		}
	}
	switch mode := rapid.SampledFrom(append([]string{"D"}, drawnModes...)).Draw(t, "mode"); mode {
	case "D":
		return fmt.Sprintf("D \"%s\"\n", p)
	case "160000":
		return fmt.Sprintf("M 160000 %s \"%s\"\n", strings.Repeat(string(letter)+rapid.SampledFrom([]string{"1", "2", "3"}).Draw(t, "submodule"), 20), p)
	default:
		// Two places, far enough from one another for Git to merge them.
		text := fmt.Sprintf("%d%s%d\n", rapid.IntRange(0, 2).Draw(t, "top"), filler, rapid.IntRange(0, 2).Draw(t, "bottom"))
		return fmt.Sprintf("M %s inline \"%s\"\ndata %d\n%s\n", mode, p, len(text), text)
	}
}

// drawHistory gives commits and whether their clocks are right. The last two are
// not parent and child, so that most often both sides have something new.
func drawHistory(t *rapid.T, own bool) ([]drawn, bool) {
	honest := rapid.Bool().Draw(t, "honest clocks")
	var out []drawn
	n := rapid.IntRange(3, 9).Draw(t, "commits")
	for i := range n {
		var d drawn
		edits := rapid.IntRange(1, 3).Draw(t, "edits")
		if i == 0 {
			edits = 8
		}
		last := i - 1
		if i == n-1 {
			last--
		}
		if i > 0 && rapid.IntRange(0, 20).Draw(t, "orphan") != 20 {
			first := max(0, last-3)
			count := min(last-first+1, rapid.SampledFrom([]int{1, 2, 2, 3}).Draw(t, "how many parents"))
			d.parents = rapid.SliceOfNDistinct(rapid.IntRange(first, last), count, count, rapid.ID[int]).Draw(t, "parents")
		}
		for range edits {
			d.stream += drawEdit(t, own)
		}
		out = append(out, d)
	}
	return out, honest
}

// write makes the commits in the repository and gives their names.
func write(t *rapid.T, repo *sourcetest.Repo, commits []drawn, honest bool) []string {
	var in bytes.Buffer
	for i, d := range commits {
		when := sourcetest.Epoch.Unix() + int64(i)
		if !honest {
			when = sourcetest.Epoch.Unix() + rapid.Int64Range(0, 5).Draw(t, "clock")
		}
		fmt.Fprintf(&in, "reset refs/heads/drawn\ncommit refs/heads/drawn\nmark :%d\ncommitter Weir Test <test@weir.dev> %d +0000\ndata 1\n%d\n", i+1, when, i%10)
		for n, p := range d.parents {
			fmt.Fprintf(&in, "%s :%d\n", map[bool]string{true: "from", false: "merge"}[n == 0], p+1)
		}
		if len(d.parents) == 0 {
			in.WriteString("deleteall\n")
		}
		in.WriteString(d.stream + "\n")
	}
	for i := range commits {
		fmt.Fprintf(&in, "get-mark :%d\n", i+1)
	}
	return strings.Fields(repo.GitInput(in.Bytes(), "fast-import", "--quiet", "--force", "--date-format=raw"))
}

// reached gives the commits that each commit reaches, itself included.
func reached(commits []drawn) []map[int]bool {
	out := make([]map[int]bool, len(commits))
	for i, d := range commits {
		out[i] = map[int]bool{i: true}
		for _, p := range d.parents {
			for r := range out[p] {
				out[i][r] = true
			}
		}
	}
	return out
}

// commonest gives the commits that base and head reach and no other such commit
// reaches, and how many base has that head does not.
func commonest(reach []map[int]bool, base, head int) (best []int, behind int) {
	for c := range reach {
		if reach[base][c] && !reach[head][c] {
			behind++
		}
		if !reach[base][c] || !reach[head][c] {
			continue
		}
		beaten := false
		for other := range reach {
			beaten = beaten || other != c && reach[other][c] && reach[base][other] && reach[head][other]
		}
		if !beaten {
			best = append(best, c)
		}
	}
	return best, behind
}

// gitMerge is what git makes of a merge: the tree, whether it is clean, and the
// files whose content it merged.
type gitMerge struct {
	tree    string
	clean   bool
	content []string
}

func mergeByGit(t *rapid.T, repo *sourcetest.Repo, base, head string) gitMerge {
	out, code := repo.Try("-c", "core.quotepath=false", "merge-tree", "--write-tree", "--messages", "--allow-unrelated-histories", base, head)
	if code > 1 {
		t.Fatalf("git merge-tree ended with %d: %s", code, out)
	}
	m := gitMerge{clean: code == 0}
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if m.tree == "" {
			m.tree = line
		}
		if p, ok := strings.CutPrefix(line, "Auto-merging "); ok {
			m.content = append(m.content, p)
		}
	}
	return m
}

// TestMergeAsGit merges random histories and holds the result against git's. Where
// nothing can be taken for renamed, they differ only where weir says so:
//
//   - git merges inside of a file; weir says that both sides changed it;
//   - there are several merge bases over which the results differ; git merges the
//     bases first, weir says to update the branch.
//
// Otherwise there are two more:
//
//   - a file was renamed on one side and changed or deleted on the other; git
//     carries the change over or says that it cannot, weir sees a path deleted,
//     which is a conflict if it was changed and none if it was deleted;
//   - a directory was renamed, or a file to two names; git asks, weir does not.
//
// Wherever both are clean, the trees are the same to the byte.
func TestMergeAsGit(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	if _, code := repo.Try("merge-tree", "--write-tree", "--messages", "x", "y"); code == 129 {
		t.Skip("this git has no merge-tree --write-tree; it came with 2.38")
	}
	repo.Write(map[string]string{"f": "1"})
	repo.Commit("one")
	g := open(t, source.Config{URL: repo.Dir()}, source.Options{})
	latest(t, g)
	rapid.Check(t, func(t *rapid.T) {
		own := rapid.Bool().Draw(t, "own content")
		commits, honest := drawHistory(t, own)
		names := write(t, repo, commits, honest)
		b, h := len(names)-1, len(names)-2
		if rapid.IntRange(0, 9).Draw(t, "any two") == 9 {
			b = rapid.IntRange(0, b).Draw(t, "base")
		}
		base, head := names[b], names[h]
		repo.Git("update-ref", pullHead, head)
		latestOf(t, g)
		m, err := g.Pull(context.Background(), ref(head, base))
		if err != nil {
			t.Fatal(err)
		}

		best, behind := commonest(reached(commits), b, h)
		if m.Behind != behind && (honest || m.Behind < behind) {
			t.Errorf("behind by %d commits, want %d", m.Behind, behind)
		}
		bases := map[string]bool{}
		for _, c := range best {
			bases[names[c]] = true
		}
		if bases[m.MergeBase] != (len(bases) > 0) {
			t.Errorf("merge base %q, want one of %v", m.MergeBase, bases)
		}
		if len(bases) == 0 {
			if len(m.Conflicts) != 1 || m.Conflicts[0].Kind != source.UnrelatedHistories {
				t.Errorf("unrelated histories give %v", m.Conflicts)
			}
			return
		}
		clean := len(m.Conflicts) == 0
		if clean != (m.Snapshot.Tree != nil) {
			t.Fatalf("tree %v with conflicts %v", m.Snapshot.Tree, m.Conflicts)
		}
		got := ""
		if clean {
			root, err := m.Snapshot.Tree.Lookup(".")
			if err != nil {
				t.Fatal(err)
			}
			got = root.Hash
			readMerged(t, m)
		}
		want := mergeByGit(t, repo, base, head)
		if clean && want.clean && got != want.tree {
			t.Errorf("tree %s; git: %+v", got, want)
		}
		if !own {
			return
		}
		if clean && (!want.clean || len(want.content) > 0) {
			t.Errorf("clean; git: %+v", want)
		}
		if !clean && len(bases) == 1 {
			if want.clean && len(want.content) == 0 {
				t.Errorf("conflicts %v; git is clean", m.Conflicts)
			}
			for _, p := range want.content {
				if !slices.ContainsFunc(m.Conflicts, func(c source.Conflict) bool { return c.Path == p }) {
					t.Errorf("git merged inside of %q, and the conflicts are %v", p, m.Conflicts)
				}
			}
		}
	})
}

func latestOf(t *rapid.T, g *source.Git) {
	if _, err := g.Latest(context.Background()); err != nil {
		t.Fatal(err)
	}
}

// readMerged reads a merged tree to its leaves.
func readMerged(t *rapid.T, m source.Merge) {
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := m.Snapshot.Tree.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			p := strings.TrimPrefix(dir+"/"+e.Name, "./")
			switch looked, err := m.Snapshot.Tree.Lookup(p); {
			case err != nil || looked != e:
				t.Fatalf("Lookup(%q) = %+v, %v; ReadDir gave %+v", p, looked, err, e)
			case e.Mode.String() == "040000":
				walk(p)
			case e.Mode.String() != "160000":
				if _, err := m.Snapshot.Tree.ReadFile(p); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	walk(".")
}
