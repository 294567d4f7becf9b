package source_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/git"
	"github.com/weir-gitops/weir/source/sourcetest"
)

func TestTreeContract(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	big := strings.Repeat("x", git.MaxFileBytes+1)
	odd := "odd/\xff\x01 \\name"
	repo.Write(map[string]string{
		"dir/a.yaml": "a", "dir.yaml": "b", "dir-x": "c", "Case.yaml": "upper", "case.yaml": "lower",
		"link": "symlink:dir", "big.bin": big, "edge.bin": big[1:], odd: "odd",
		"lfs.yaml": "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n",
		"crlf.txt": "a\r\nb\r\n",
	})
	repo.WriteMode("100755", "run.sh", "#!/bin/sh\n")
	sub := strings.Repeat("ab", 20)
	repo.Submodule("vendor/lib", sub)
	repo.Commit("all kinds")
	tr := latest(t, open(t, source.Config{URL: repo.URL()}, source.Options{})).Tree

	list, err := tr.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range list {
		got = append(got, e.Mode.String()+" "+e.Name)
	}
	if diff := cmp.Diff([]string{
		"100644 Case.yaml", "100644 big.bin", "100644 case.yaml", "100644 crlf.txt", "040000 dir", "100644 dir-x", "100644 dir.yaml",
		"100644 edge.bin", "100644 lfs.yaml", "120000 link", "040000 odd", "100755 run.sh", "040000 vendor",
	}, got); diff != "" {
		t.Errorf("root (-want +got):\n%s", diff)
	}
	for p, want := range map[string]string{
		"dir/a.yaml": "a", "Case.yaml": "upper", "case.yaml": "lower", "link": "dir", odd: "odd", "edge.bin": big[1:], "crlf.txt": "a\r\nb\r\n",
	} {
		data, err := tr.ReadFile(p)
		if err != nil || string(data) != want {
			t.Errorf("ReadFile(%q) = %d bytes, %v", p, len(data), err)
		}
		e, err := tr.Lookup(p)
		if err != nil || e.Hash != tree.BlobHash([]byte(want)) {
			t.Errorf("Lookup(%q) = %+v, %v", p, e, err)
		}
	}
	if e, err := tr.Lookup("vendor/lib"); err != nil || e.Mode != tree.Submodule || e.Hash != sub {
		t.Errorf("submodule: %+v, %v", e, err)
	}
	for _, p := range []string{"nope", "dir/nope", "link/a.yaml", "dir.yaml/x", "vendor/lib/x", "../x", "/dir", "", "dir/", "./dir", ".git"} {
		if _, err := tr.Lookup(p); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("Lookup(%q) gave %v, want fs.ErrNotExist", p, err)
		}
	}
	var tooLarge *tree.TooLargeError
	if _, err := tr.ReadFile("big.bin"); !errors.As(err, &tooLarge) || tooLarge.Path != "big.bin" || tooLarge.Size != git.MaxFileBytes+1 {
		t.Errorf("big file: %v", err)
	}
	var lfs *tree.LFSPointerError
	if _, err := tr.ReadFile("lfs.yaml"); !errors.As(err, &lfs) || lfs.Path != "lfs.yaml" {
		t.Errorf("LFS pointer: %v", err)
	}
	for _, p := range []string{"dir", "vendor/lib"} {
		if _, err := tr.ReadFile(p); err == nil || errors.Is(err, fs.ErrNotExist) {
			t.Errorf("ReadFile(%q) gave %v, want an error that is not absence", p, err)
		}
	}
	if _, err := tr.ReadDir("dir.yaml"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ReadDir of a file gave %v", err)
	}
}

func TestTreeIsSafeForConcurrentReaders(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	want := map[string]string{}
	for i := range 200 {
		want[fmt.Sprintf("d%02d/f%03d.yaml", i%20, i)] = strings.Repeat(fmt.Sprintln(i), 20)
	}
	repo.Write(want)
	repo.Commit("one")
	g := open(t, source.Config{URL: repo.URL()}, source.Options{})
	s := latest(t, g)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for p, text := range want {
				data, err := s.Tree.ReadFile(p)
				if err != nil || string(data) != text {
					t.Errorf("ReadFile(%s) = %d bytes, %v", p, len(data), err)
					return
				}
			}
		})
	}
	for i := range 3 { // Fetches go on meanwhile.
		repo.Write(map[string]string{"d00/new.yaml": fmt.Sprint(i)})
		repo.Commit("more")
		latest(t, g)
	}
	wg.Wait()
}

// TestMethodsTogether calls everything at once, for the race detector.
func TestMethodsTogether(t *testing.T) {
	t.Parallel()
	repo, one := oneCommit(t)
	for _, url := range []string{repo.URL(), repo.Dir()} {
		g := open(t, source.Config{URL: url}, source.Options{})
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for range 5 {
					g.Nudge()
					if s, err := g.Latest(context.Background()); err != nil || s.Revision == "" {
						t.Errorf("Latest gave %v", err)
					}
					if _, err := g.At(context.Background(), one); err != nil {
						t.Errorf("At gave %v", err)
					}
					if s, ok := g.Last(); !ok || readAll(s.Tree, ".") != nil {
						t.Errorf("Last gives %v", ok)
					}
				}
			})
		}
		repo.Write(map[string]string{"f": url})
		repo.Commit("more")
		wg.Wait()
	}
}
