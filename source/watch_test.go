package source_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/snapshot"
)

type event struct {
	snap snapshot.Snapshot
	err  error
}

// watch runs Watch until the test ends and gives its events.
func watch(t *testing.T, g *source.Git) <-chan event {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	events, done := make(chan event, 100), make(chan error, 1)
	go func() { done <- g.Watch(ctx, func(s snapshot.Snapshot, err error) { events <- event{s, err} }) }()
	t.Cleanup(func() {
		cancel()
		select {
		case err := <-done:
			if err != nil {
				t.Errorf("Watch gave %v", err)
			}
		case <-time.After(time.Minute):
			t.Error("Watch does not end with its context")
		}
	})
	return events
}

func nextRevision(t *testing.T, events <-chan event, want string) {
	t.Helper()
	timeout := time.After(time.Minute)
	for {
		select {
		case e := <-events:
			if e.err != nil {
				t.Fatalf("event with %v, want revision %s", e.err, want)
			}
			if e.snap.Revision == want {
				return
			}
		case <-timeout:
			t.Fatalf("revision %s not seen within a minute", want)
		}
	}
}

func TestWatchSeesLocalCommits(t *testing.T) {
	t.Parallel()
	repo, one := oneCommit(t)
	dir := t.TempDir()
	clone, linked := filepath.Join(dir, "clone"), filepath.Join(dir, "linked")
	repo.GitIn(dir, "clone", "--quiet", repo.Dir(), clone)
	events := watch(t, open(t, source.Config{URL: clone, Interval: time.Hour}, source.Options{}))
	nextRevision(t, events, one)

	commit := func(where string) string {
		if err := os.WriteFile(filepath.Join(where, "f"), []byte(noise(4)), 0o600); err != nil {
			t.Fatal(err)
		}
		repo.GitIn(where, "commit", "--quiet", "--all", "--message", "change")
		return repo.GitIn(where, "rev-parse", "HEAD")
	}
	nextRevision(t, events, commit(clone))

	repo.GitIn(clone, "checkout", "--quiet", "-b", "topic/deep/name")
	repo.GitIn(clone, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/topic/deep/name") // It becomes the default branch.
	two := commit(clone)                                                                                 // In directories of refs that are new.
	nextRevision(t, events, two)

	repo.GitIn(clone, "pack-refs", "--all")
	nextRevision(t, events, commit(clone))

	// A linked worktree commits to the branch that the main one is not on.
	repo.GitIn(clone, "worktree", "add", "--quiet", linked, "main")
	inLinked := watch(t, open(t, source.Config{URL: linked, Ref: source.Ref{Branch: "main"}, Interval: time.Hour}, source.Options{}))
	follow := watch(t, open(t, source.Config{URL: clone, Ref: source.Ref{Branch: "main"}, Interval: time.Hour}, source.Options{}))
	three := commit(linked)
	nextRevision(t, inLinked, three)
	nextRevision(t, follow, three)
}

func TestWatchRemote(t *testing.T) {
	t.Parallel()
	repo, one := oneCommit(t)
	g := open(t, source.Config{URL: repo.URL(), Interval: time.Hour}, source.Options{})
	events := watch(t, g)
	nextRevision(t, events, one)
	repo.Write(map[string]string{"f": "2"})
	two := repo.Commit("two")
	g.Nudge()
	nextRevision(t, events, two)
	repo.Down(true)
	g.Nudge()
	var ue *fault.UnavailableError
	if e := <-events; !errors.As(e.err, &ue) || e.snap.Tree != nil {
		t.Errorf("event %+v, want an UnavailableError alone", e)
	}
	repo.Down(false)
	g.Nudge()
	nextRevision(t, events, two) // The end of an error is told.
}

func TestWatchPolls(t *testing.T) {
	t.Parallel()
	repo, one := oneCommit(t)
	events := watch(t, open(t, source.Config{URL: repo.URL(), Interval: 20 * time.Millisecond}, source.Options{}))
	nextRevision(t, events, one)
	repo.Write(map[string]string{"f": "2"})
	nextRevision(t, events, repo.Commit("two"))
}
