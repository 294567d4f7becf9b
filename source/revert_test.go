package source_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/sourcetest"
	"github.com/weir-gitops/weir/source/transport"
)

type reverting struct {
	repo        *sourcetest.Repo
	git         *source.Git
	first, bad  string
	commit      source.Commit
	tokenOfPush string
}

// newReverting is a source with a change of some paths, and a server that asks for a token.
func newReverting(t *testing.T) *reverting {
	t.Helper()
	w := &reverting{repo: sourcetest.New(t), tokenOfPush: filepath.Join(t.TempDir(), "token")}
	w.repo.Write(map[string]string{"a.yaml": "a1", "dir/b.yaml": "b1", "dir/keep": "k", "deep/er/c": "c1", "run.sh": "x"})
	w.first = w.repo.Commit("first")
	w.repo.Write(map[string]string{"a.yaml": "a2", "dir/b.yaml": "b2", "new/d/e": "new", "run.sh": "x", "deep/file": "f"})
	w.repo.WriteMode("100755", "run.sh", "x")
	w.repo.Remove("deep/er/c")
	w.bad = w.repo.Commit("bad")
	w.repo.RequireAuth("x-access-token", "reads")
	reads := filepath.Join(t.TempDir(), "reads")
	for name, text := range map[string]string{reads: "reads\n", w.tokenOfPush: "reads\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var err error
	w.git, err = source.New(source.Config{Name: "s", URL: w.repo.URL(), Dir: t.TempDir(), Settings: transport.Settings{Auth: transport.Auth{TokenFile: reads}}}, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.git.Close)
	if _, err := w.git.Latest(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.commit = source.Commit{On: w.bad, From: w.first, Author: "weir", Address: "weir@localhost", At: sourcetest.Epoch.Add(time.Hour), Message: "Revert \"bad\"\n\nWeir-Reverts: " + w.bad + "\n"}
	return w
}

func (w *reverting) pusher(t *testing.T) *transport.Pusher {
	t.Helper()
	p, err := transport.NewPusher(w.repo.URL(), transport.Settings{Auth: transport.Auth{TokenFile: w.tokenOfPush}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// TestAWholeRevertIsTheTreeOfBefore holds what weir makes against what git itself says.
func TestAWholeRevertIsTheTreeOfBefore(t *testing.T) {
	w := newReverting(t)
	paths, err := w.git.Changed(t.Context(), w.first, w.bad)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Fields(w.repo.Git("diff", "--no-renames", "--name-only", w.first, w.bad))
	if slices.Sort(want); !slices.Equal(paths, want) {
		t.Fatalf("changed %q, git says %q", paths, want)
	}
	w.commit.Paths = paths
	b, err := w.git.Branch(t.Context(), "weir/revert-1", w.commit)
	if err != nil {
		t.Fatal(err)
	}
	again, err := w.git.Branch(t.Context(), "weir/revert-1", w.commit)
	if err != nil || again.Commit != b.Commit || string(again.Pack) != string(b.Pack) {
		t.Errorf("the same commit is made anew: %v", err)
	}
	p := w.pusher(t)
	for range 2 { // the second time as after a lost answer
		if err := p.Make(t.Context(), b); err != nil {
			t.Fatal(err)
		}
	}
	if got := w.repo.Tip("weir/revert-1"); got != b.Commit {
		t.Fatalf("the branch is at %s, want %s", got, b.Commit)
	}
	if now, before := w.repo.Git("rev-parse", b.Commit+"^{tree}"), w.repo.Git("rev-parse", w.first+"^{tree}"); now != before {
		t.Errorf("the tree is %s, that of before %s:\n%s", now, before, w.repo.Git("diff", "--stat", w.first, b.Commit))
	}
	w.repo.Git("fsck", "--strict")
	if got := w.repo.Git("log", "-1", "--format=%an <%ae> %cn %at %P%n%(trailers:key=Weir-Reverts,valueonly)", b.Commit); got != "weir <weir@localhost> weir 1767229200 "+w.bad+"\n"+w.bad {
		t.Error(got)
	}
	if w.repo.Tip("main") != w.bad {
		t.Error("the followed branch was moved")
	}
}

// TestAPartIsReverted: the rest stays as it is, directories that become empty go.
func TestAPartIsReverted(t *testing.T) {
	w := newReverting(t)
	w.commit.Paths = []string{"new/d/e", "dir/b.yaml", "deep/er/c", "never/was", "deep"}
	b, err := w.git.Branch(t.Context(), "weir/revert-2", w.commit)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.pusher(t).Make(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if got := w.repo.Git("diff", "--no-renames", "--name-status", w.bad, b.Commit); got != "A\tdeep/er/c\nM\tdir/b.yaml\nD\tnew/d/e" {
		t.Error(got)
	}
	w.repo.Git("fsck", "--strict")
	s, err := w.git.Restored(t.Context(), w.bad, w.first, w.commit.Paths)
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.Tree.ReadFile("dir/b.yaml")
	if err != nil || string(text) != "b1" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := s.Tree.ReadFile("new/d/e"); err == nil {
		t.Error("a file that was not there before is there")
	}
}

// TestWhatAPusherDoesNot: it moves no branch, and makes none that is not weir's.
func TestWhatAPusherDoesNot(t *testing.T) {
	w := newReverting(t)
	w.commit.Paths = []string{"a.yaml"}
	p := w.pusher(t)
	b, err := w.git.Branch(t.Context(), "weir/revert-3", w.commit)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"main", "revert", "weir/", "weir/../main", "weir/a:refs/heads/main", "refs/heads/weir/x\nmain", "weir"} {
		b.Name = name
		if err := p.Make(t.Context(), b); err == nil {
			t.Errorf("the branch %q was made", name)
		}
	}
	w.repo.Branch("weir/revert-3", w.first)
	b.Name = "weir/revert-3"
	var taken *transport.TakenError
	if err := p.Make(t.Context(), b); !errors.As(err, &taken) || taken.At != w.first {
		t.Error(err)
	}
	if w.repo.Tip("weir/revert-3") != w.first {
		t.Error("somebody else's branch was moved")
	}
	w.commit.Paths = []string{"dir/keep"}
	if _, err := w.git.Branch(t.Context(), "weir/revert-4", w.commit); err == nil || !strings.Contains(err.Error(), "nothing would change") {
		t.Error(err)
	}
	if _, err := transport.NewPusher("ssh://git@example.com/o/r.git", transport.Settings{}); err == nil {
		t.Error("it pushes over SSH")
	}
}

// TestRefusedPushes: each says what to do, and no token.
func TestRefusedPushes(t *testing.T) {
	w := newReverting(t)
	w.commit.Paths = []string{"a.yaml"}
	b, err := w.git.Branch(t.Context(), "weir/revert-5", w.commit)
	if err != nil {
		t.Fatal(err)
	}
	p := w.pusher(t)
	w.repo.Answer(http.StatusForbidden)
	err = p.Make(t.Context(), b)
	if fault.ReasonOf(err) != fault.AuthFailed || !strings.Contains(err.Error(), "Contents: read and write") {
		t.Error(err)
	}
	w.repo.Answer(0)
	if err := os.WriteFile(w.tokenOfPush, []byte("s3cret-and-wrong\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := p.Make(t.Context(), b); fault.ReasonOf(err) != fault.AuthFailed || strings.Contains(err.Error(), "s3cret") {
		t.Error(err)
	}
	if err := os.WriteFile(w.tokenOfPush, []byte("reads\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hook := filepath.Join(w.repo.Dir(), "hooks", "pre-receive")
	if err := os.MkdirAll(filepath.Dir(hook), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(hook, []byte("#!/bin/sh\necho nobody makes branches here >&2\nexit 1\n"), 0o700); err != nil { //nolint:gosec // Git runs it
		t.Fatal(err)
	}
	var refused *transport.RefusedError
	if err := p.Make(t.Context(), b); !errors.As(err, &refused) || !strings.Contains(err.Error(), "nobody makes branches here") {
		t.Error(err)
	}
	if _, code := w.repo.Try("rev-parse", "--verify", "-q", "refs/heads/weir/revert-5"); code == 0 {
		t.Error("the branch was made")
	}
	other := httptest.NewServer(http.RedirectHandler("https://elsewhere.example.com", http.StatusFound))
	defer other.Close()
	w.repo.Redirect("http://elsewhere.example.com")
	if err := p.Make(t.Context(), b); fault.ReasonOf(err) != fault.RefusedURL {
		t.Errorf("the token follows a server elsewhere: %v", err)
	}
}
