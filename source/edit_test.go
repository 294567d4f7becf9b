package source_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/transport"
)

// TestABranchIsEditedAndMovedOn: files are written as git itself would, a branch moves on to a
// descendant, and never over a commit that was not there when that was made.
func TestABranchIsEditedAndMovedOn(t *testing.T) {
	w := newReverting(t)
	p := w.pusher(t)
	const name = "weir/images-x"
	made := func(after, text string) transport.Branch {
		t.Helper()
		c := w.commit
		c.From, c.After, c.Files = "", after, map[string][]byte{"a.yaml": []byte(text), "run.sh": []byte("y"), "of/its/own": []byte("new")}
		b, err := w.git.Branch(t.Context(), name, c)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	if at, err := p.At(t.Context(), name); at != "" || err != nil {
		t.Fatal(at, err)
	}
	first := made("", "one")
	for range 2 {
		if err := p.Make(t.Context(), first); err != nil {
			t.Fatal(err)
		}
	}
	w.repo.Git("fsck", "--strict")
	if got := w.repo.Git("diff", "--name-status", w.bad, name); got != "M\ta.yaml\nA\tof/its/own\nM\trun.sh" {
		t.Error(got)
	}
	if got := w.repo.Git("ls-tree", name, "run.sh"); !strings.HasPrefix(got, "100755") {
		t.Errorf("the mode of run.sh: %s", got)
	}
	s, err := w.git.Edited(t.Context(), w.bad, map[string][]byte{"a.yaml": []byte("one")})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := s.Tree.ReadFile("a.yaml"); string(got) != "one" || err != nil {
		t.Error(string(got), err)
	}
	if got, err := s.Tree.ReadFile("dir/b.yaml"); string(got) != "b2" || err != nil {
		t.Error(string(got), err)
	}
	// The next one needs the commit that the branch is at, and comes after it.
	at, err := p.At(t.Context(), name)
	if err != nil || at != first.Commit {
		t.Fatal(at, err)
	}
	if _, err := w.git.Pull(t.Context(), source.PullRef{Head: "refs/heads/" + name, HeadSHA: at, Base: w.bad}); err != nil {
		t.Fatal(err)
	}
	if author, committer, err := w.git.By(t.Context(), at); author != "weir <weir@localhost>" || committer != author || err != nil {
		t.Error(author, committer, err)
	}
	second := made(at, "two")
	if err := p.Make(t.Context(), second); err != nil {
		t.Fatal(err)
	}
	if got := w.repo.Git("log", "-1", "--format=%P", name); got != first.Commit+" "+w.bad {
		t.Errorf("parents %s", got)
	}
	if got := w.repo.Git("diff", "--name-only", w.bad+"..."+name); got != "a.yaml\nof/its/own\nrun.sh" {
		t.Errorf("a pull request would show %s", got)
	}
	// Somebody else's commit is never overwritten.
	w.repo.Git("branch", "-f", name, w.repo.Git("commit-tree", name+"^{tree}", "-p", name, "-m", "of somebody else"))
	theirs := w.repo.Tip(name)
	var taken *transport.TakenError
	for _, b := range []transport.Branch{first, second, made(at, "three"), made("", "four")} {
		if err := p.Make(t.Context(), b); !errors.As(err, &taken) || taken.At != theirs {
			t.Errorf("%v", err)
		}
	}
	if w.repo.Tip(name) != theirs {
		t.Error("the branch was moved")
	}
	// What is a directory cannot be written.
	for path, want := range map[string]string{"dir": "not a file", "../x": "", "a.yaml/b": ""} {
		c := w.commit
		c.From, c.Files = "", map[string][]byte{path: []byte("x")}
		if b, err := w.git.Branch(t.Context(), name, c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %+v, %v", path, b, err)
		}
	}
}
