package source_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// withFiles runs do with so many file descriptors left and no more. Afterwards the test has its own descriptors again.
func withFiles(t *testing.T, left int, do func()) {
	t.Helper()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	few := limit
	few.Cur = 256
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &few); err != nil {
		t.Fatal(err)
	}
	var taken []*os.File
	defer func() {
		for _, f := range taken {
			_ = f.Close()
		}
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			t.Fatal(err)
		}
	}()
	for {
		f, err := os.Open(os.DevNull)
		if errors.Is(err, syscall.EMFILE) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		taken = append(taken, f)
	}
	for _, f := range taken[:left] {
		_ = f.Close()
	}
	taken = taken[left:]
	do()
}

// TestNoFilesLeftIsNoDamage lets a source run out of file descriptors while it
// reads: that says nothing of the mirror, which is not made again, and what was the
// last good commit is so afterwards. It runs alone, as it takes what all tests share.
//
//nolint:paralleltest // see above
func TestNoFilesLeftIsNoDamage(t *testing.T) {
	for left := range 4 {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d left, restart=%v", left, restart), func(t *testing.T) {
				repo := sourcetest.New(t)
				repo.Write(map[string]string{"a/f": "1", "b/g": "2"})
				one := repo.Commit("one")
				dir := t.TempDir()
				cfg := source.Config{URL: repo.URL(), Dir: dir}
				g := open(t, cfg, source.Options{})
				s := latest(t, g)
				before, err := os.Stat(mirrorDir(t, dir))
				if err != nil {
					t.Fatal(err)
				}
				g.Close() // So that files are opened again.
				if restart {
					g = open(t, cfg, source.Options{})
				}
				check := func(what string, err error) {
					t.Helper()
					var ue *fault.UnavailableError
					if errors.As(err, &ue) && ue.Reason == fault.Corrupt || err != nil && strings.Contains(err.Error(), "damaged") {
						t.Errorf("%s: %v", what, err)
					}
				}
				withFiles(t, left, func() {
					// Something else in this process, such as a server's idle connection, may free a descriptor at any moment: then nothing fails.
					_, _ = g.Last()
					_, err := s.Tree.ReadFile("b/g")
					if left == 0 && !restart && err != nil && !strings.Contains(err.Error(), "too many open files") {
						t.Errorf("reading a file: %v", err)
					}
					check("reading a file", err)
					_, err = g.At(context.Background(), one)
					check("reading a commit", err)
					var ue *fault.UnavailableError
					if left == 0 && restart && err != nil && (!errors.As(err, &ue) || ue.Reason != fault.Exhausted) {
						t.Errorf("reading a commit: %v", err)
					}
					// The server is in this process, so it may not get to answer.
					ctx, cancel := context.WithTimeout(context.Background(), time.Second)
					defer cancel()
					_, err = g.Latest(ctx)
					check("looking", err)
				})
				if last, ok := g.Last(); !ok || last.Revision != one {
					t.Errorf("the last good commit is %q, %t", last.Revision, ok)
				}
				repo.Write(map[string]string{"a/f": "3"})
				two := repo.Commit("two")
				wantRevision(t, g, two)
				after, err := os.Stat(mirrorDir(t, dir))
				if err != nil || !os.SameFile(before, after) {
					t.Errorf("the mirror was made again: %v", err)
				}
				if err := readAll(latest(t, g).Tree, "."); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

// TestNoFilesLeftInALocalRepository: one on this machine needs no git fsck then.
//
//nolint:paralleltest // as above
func TestNoFilesLeftInALocalRepository(t *testing.T) {
	repo := sourcetest.New(t)
	repo.Write(map[string]string{"a/f": "1"})
	one := repo.Commit("one")
	g := open(t, source.Config{URL: repo.Dir(), Dir: t.TempDir()}, source.Options{})
	withFiles(t, 0, func() {
		_, err := g.Latest(context.Background())
		var ue *fault.UnavailableError
		if !errors.As(err, &ue) || ue.Reason == fault.Corrupt || ue.Reason == fault.MissingRef || ue.Reason == fault.EmptyRepository {
			t.Errorf("looking: %v", err)
		}
	})
	wantRevision(t, g, one)
}
