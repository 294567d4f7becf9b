package source_test

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/sourcetest"
	"github.com/weir-gitops/weir/source/transport"
)

// mirrorDir is the one mirror below dir.
func mirrorDir(t testing.TB, dir string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, "*.git"))
	if err != nil || len(found) != 1 {
		t.Fatalf("mirrors below %s: %v, %v", dir, found, err)
	}
	return found[0]
}

func noise(n int) string {
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		panic(err)
	}
	return hex.EncodeToString(b)
}

func TestMirrorOnDisk(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	repo.Write(map[string]string{"f": "1", "d/g": "2"})
	repo.Commit("one")
	repo.Tag("unwanted", repo.Tip("main"))
	repo.Write(map[string]string{"f": "2"})
	two := repo.Commit("two")
	dir := t.TempDir()
	latest(t, open(t, source.Config{URL: repo.URL(), Dir: dir}, source.Options{}))

	m := mirrorDir(t, dir)
	info, err := os.Stat(m)
	if err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("mirror has mode %v, %v; want 0700", info.Mode(), err)
	}
	if want := transport.ID(repo.URL()) + "-fleet.git"; filepath.Base(m) != want {
		t.Errorf("mirror is named %s, want %s", filepath.Base(m), want)
	}
	if got := repo.GitIn(m, "rev-list", "--count", "refs/weir/ok/fleet"); got != "2" {
		t.Errorf("git counts %s commits in the mirror, want the full history", got)
	}
	if got, want := repo.GitIn(m, "for-each-ref", "--format=%(refname) %(objectname)"), "refs/weir/ok/fleet "+two; got != want {
		t.Errorf("refs %q, want %q", got, want)
	}
	repo.GitIn(m, "fsck", "--strict", "--full")
}

func TestRestart(t *testing.T) {
	t.Parallel()
	repo, one := oneCommit(t)
	dir := t.TempDir()
	first := open(t, source.Config{URL: repo.URL(), Dir: dir}, source.Options{})
	latest(t, first)
	first.Close()

	repo.Down(true)
	again := open(t, source.Config{URL: repo.URL(), Dir: dir}, source.Options{})
	s, ok := again.Last()
	if !ok || s.Revision != one || s.Source != "fleet" || s.SourceID == "" {
		t.Fatalf("Last after a restart: %+v, %v", s, ok)
	}
	if got := files(t, s.Tree)["f"]; got != "1" {
		t.Errorf("f = %q", got)
	}
	wantUnavailable(t, again, fault.Unreachable)

	repo.Down(false)
	repo.Write(map[string]string{"f": "2"})
	two := repo.Commit("two")
	wantRevision(t, again, two)
	if n := countPosts(repo); n != 2 {
		t.Errorf("%d packs fetched, want one per commit", n)
	}
}

func countPosts(repo *sourcetest.Repo) (n int) {
	for _, r := range repo.Requests() {
		if r.Method == "POST" {
			n++
		}
	}
	return n
}

func TestPackCutInTransfer(t *testing.T) {
	t.Parallel()
	repo, one := oneCommit(t)
	dir := t.TempDir()
	g := open(t, source.Config{URL: repo.URL(), Dir: dir}, source.Options{})
	wantRevision(t, g, one)
	repo.Write(map[string]string{"f": noise(200_000)})
	two := repo.Commit("two")
	for _, n := range []int64{1, 40, 1000, 150_000} {
		repo.CutAfter(n)
		wantUnavailable(t, g, fault.Unreachable)
	}
	if left, err := filepath.Glob(filepath.Join(mirrorDir(t, dir), "objects", "pack", "tmp_*")); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v, %v", left, err)
	}
	repo.CutAfter(0)
	wantRevision(t, g, two)
}

// TestKilledDuringFetch leaves what a process killed at the worst moments leaves.
func TestKilledDuringFetch(t *testing.T) {
	t.Parallel()
	repo, one, two := twoCommits(t)
	repo.Branch("main", one)
	tests := map[string]func(t *testing.T, m string){
		"pack without index":    func(t *testing.T, m string) { put(t, m, "objects/pack/pack-"+strings.Repeat("ab", 20)+".pack", "PACK") },
		"index without pack":    func(t *testing.T, m string) { put(t, m, "objects/pack/pack-"+strings.Repeat("ab", 20)+".idx", "") },
		"temporary pack":        func(t *testing.T, m string) { put(t, m, "objects/pack/tmp_pack_123", "PACK\x00\x00") },
		"lock":                  func(t *testing.T, m string) { put(t, m, "refs/weir/ok/fleet.lock", "") },
		"half-written ref":      func(t *testing.T, m string) { put(t, m, "refs/weir/ok/fleet", one[:17]) },
		"empty ref":             func(t *testing.T, m string) { put(t, m, "refs/weir/ok/fleet", "") },
		"ref to nowhere":        func(t *testing.T, m string) { put(t, m, "refs/weir/ok/fleet", strings.Repeat("cd", 20)+"\n") },
		"no ref":                func(t *testing.T, m string) { remove(t, filepath.Join(m, "refs/weir/ok/fleet")) },
		"half-made replacement": func(t *testing.T, m string) { put(t, m+".new", "objects/pack/tmp_pack_1", "PA") },
		"between the renames": func(t *testing.T, m string) {
			if err := os.Rename(m, m+".old"); err != nil {
				t.Fatal(err)
			}
		},
		"bare directory": func(t *testing.T, m string) {
			remove(t, m)
			if err := os.MkdirAll(m, 0o700); err != nil {
				t.Fatal(err)
			}
		},
	}
	for name, damage := range tests {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			g := open(t, source.Config{URL: repo.URL(), Dir: dir}, source.Options{})
			repo.Branch("main", one)
			wantRevision(t, g, one)
			g.Close()
			m := mirrorDir(t, dir)
			damage(t, m)
			old := time.Now().Add(-time.Hour)
			err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					err = os.Chtimes(p, old, old)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}

			g = open(t, source.Config{URL: repo.URL(), Dir: dir}, source.Options{})
			wantRevision(t, g, one)
			repo.Branch("main", two)
			wantRevision(t, g, two)
			repo.GitIn(m, "fsck", "--full")
			err = filepath.WalkDir(m, func(p string, d fs.DirEntry, err error) error {
				if strings.HasPrefix(d.Name(), "tmp_") || strings.HasSuffix(p, ".lock") || strings.Contains(p, "abababab") {
					t.Errorf("%s was left", p)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

func put(t *testing.T, dir, name, text string) {
	t.Helper()
	file := filepath.Join(dir, filepath.FromSlash(name))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	remove(t, file)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, file string) {
	t.Helper()
	if err := os.RemoveAll(file); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedMirror damages the files of a mirror while the daemon runs. A new
// commit then either succeeds or is reported as corrupt, and the attempt after
// that makes the mirror again.
func TestDamagedMirror(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T, m string){
		"packs are gone":   func(t *testing.T, m string) { each(t, m, "objects/pack/*.pack", func(f string) { remove(t, f) }) },
		"indexes are gone": func(t *testing.T, m string) { each(t, m, "objects/pack/*.idx", func(f string) { remove(t, f) }) },
		"all is gone":      func(t *testing.T, m string) { remove(t, m) },
		"index is cut": func(t *testing.T, m string) {
			each(t, m, "objects/pack/*.idx", func(f string) { truncate(t, f, 1100) })
		},
		"index is empty": func(t *testing.T, m string) { each(t, m, "objects/pack/*.idx", func(f string) { truncate(t, f, 0) }) },
		"pack is cut":    func(t *testing.T, m string) { each(t, m, "objects/pack/*.pack", func(f string) { truncate(t, f, 60) }) },
		"pack is noise":  func(t *testing.T, m string) { each(t, m, "objects/pack/*.pack", func(f string) { garble(t, f) }) },
		"ref is broken":  func(t *testing.T, m string) { put(t, m, "refs/weir/ok/fleet", "x") },
	}
	for name, damage := range tests {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/restart=%v", name, restart), func(t *testing.T) {
				repo := sourcetest.New(t)
				repo.Write(map[string]string{"a/f": "1", "b/g": "2", "c/h": noise(100)})
				one := repo.Commit("one")
				dir := t.TempDir()
				cfg := source.Config{URL: repo.URL(), Dir: dir}
				g := open(t, cfg, source.Options{})
				wantRevision(t, g, one)
				g.Close() // So that files are opened again.
				damage(t, mirrorDir(t, dir))
				repo.Write(map[string]string{"a/f": "3"})
				two := repo.Commit("two")
				if restart {
					g = open(t, cfg, source.Options{})
				}
				for attempt := 1; ; attempt++ {
					s, err := g.Latest(context.Background())
					if err == nil {
						if s.Revision != two {
							t.Fatalf("revision %s, want %s", s.Revision, two)
						}
						err = readAll(s.Tree, ".")
					}
					if err == nil {
						break
					}
					sourcetest.WantDamage(t, err)
					if attempt == 3 {
						t.Fatalf("not healed after three attempts: %v", err)
					}
				}
				if restart { // Else what was cached may have hidden the damage.
					repo.GitIn(mirrorDir(t, dir), "fsck", "--full")
				}
			})
		}
	}
}

func readAll(tr tree.Tree, dir string) error {
	entries, err := tr.ReadDir(dir)
	for _, e := range entries {
		if err == nil && e.Mode == tree.Dir {
			err = readAll(tr, path.Join(dir, e.Name))
		} else if err == nil {
			_, err = tr.ReadFile(path.Join(dir, e.Name))
		}
	}
	return err
}

func each(t *testing.T, dir, pattern string, fn func(string)) {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(dir, filepath.FromSlash(pattern)))
	if err != nil || len(found) == 0 {
		t.Fatalf("%s: %v, %v", pattern, found, err)
	}
	for _, f := range found {
		fn(f)
	}
}

func truncate(t *testing.T, file string, size int64) {
	t.Helper()
	if err := os.Truncate(file, size); err != nil {
		t.Fatal(err)
	}
}

func garble(t *testing.T, file string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for i := 12; i < len(data); i++ {
		data[i] ^= 0x5a
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestReadingDamageIsNotAbsence reads a tree whose mirror loses its packs: an
// object that cannot be read is never "there is no such file".
func TestReadingDamageIsNotAbsence(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	repo.Write(map[string]string{"a/f": "1"})
	repo.Commit("one")
	dir := t.TempDir()
	cfg := source.Config{URL: repo.URL(), Dir: dir}
	g := open(t, cfg, source.Options{})
	s := latest(t, g)
	g.Close()
	each(t, mirrorDir(t, dir), "objects/pack/*.pack", func(f string) { remove(t, f) })
	_, err := s.Tree.ReadFile("a/f")
	sourcetest.WantDamage(t, err)
}

// TestMirrorWithManyPacks fetches more often than a mirror may have packs.
func TestMirrorWithManyPacks(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	dir := t.TempDir()
	g := open(t, source.Config{URL: repo.URL(), Dir: dir}, source.Options{})
	source.SetMirrorLimits(g, 3, 1<<20)
	var first snapshot.Snapshot
	for i := range 8 {
		repo.Write(map[string]string{"f": fmt.Sprint(i)})
		s := wantRevision(t, g, repo.Commit(fmt.Sprint(i)))
		if i == 0 {
			first = s
		}
	}
	packs, err := filepath.Glob(filepath.Join(mirrorDir(t, dir), "objects", "pack", "*.pack"))
	if err != nil || len(packs) > 3 {
		t.Errorf("%d packs, %v; want the mirror made again", len(packs), err)
	}
	if got := files(t, first.Tree)["f"]; got != "0" {
		t.Errorf("the first snapshot reads %q now", got)
	}
	repo.GitIn(mirrorDir(t, dir), "fsck", "--full")
}

func TestPackWithHugeObjectIsRefused(t *testing.T) {
	t.Parallel()
	repo, one := oneCommit(t)
	g := open(t, source.Config{URL: repo.URL()}, source.Options{})
	source.SetMirrorLimits(g, 100, 1<<20)
	wantRevision(t, g, one)
	repo.Write(map[string]string{"bomb": strings.Repeat("\x00", 1<<20+1)}) // Zeros deflate to a kilobyte.
	repo.Commit("two")
	wantUnavailable(t, g, fault.Unsupported)
}

// TestChangedRefForgetsTheFormer restarts with another branch while the remote
// is down: the former branch's commit must not stand in for it.
func TestChangedRefForgetsTheFormer(t *testing.T) {
	t.Parallel()
	repo, one := oneCommit(t)
	repo.Branch("prod", one)
	repo.Write(map[string]string{"f": noise(50_000)})
	two := repo.Commit("two")
	dir := t.TempDir()
	wantRevision(t, open(t, source.Config{URL: repo.URL(), Dir: dir}, source.Options{}), two)

	repo.Down(true)
	prod := source.Config{URL: repo.URL(), Dir: dir, Ref: source.Ref{Branch: "prod"}}
	g := open(t, prod, source.Options{})
	if s, ok := g.Last(); ok {
		t.Errorf("Last gives %s of another branch", s.Revision)
	}
	repo.Down(false)
	wantRevision(t, g, one)
	if n := countPosts(repo); n != 1 {
		t.Errorf("%d packs fetched, want no other for a commit that is here", n)
	}
	repo.Down(true)
	if s, ok := open(t, prod, source.Options{}).Last(); !ok || s.Revision != one || s.Ref != "refs/heads/prod" {
		t.Errorf("Last of the new branch after a restart: %s at %s, %v", s.Ref, s.Revision, ok)
	}
}
