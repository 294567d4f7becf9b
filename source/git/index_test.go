package git

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// manyVersions is a repository with files that change a little, and often.
func manyVersions(t *testing.T) *sourcetest.Repo {
	t.Helper()
	r := sourcetest.New(t)
	rnd := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // tests are to be the same each time
	files := map[string]string{}
	for i := range 40 {
		var b strings.Builder
		for range 20 + rnd.IntN(400) {
			fmt.Fprintf(&b, "line %d\n", rnd.IntN(1000))
		}
		files[fmt.Sprintf("d%d/f%d", i%7, i)] = b.String()
	}
	for c := range 60 {
		for name := range files {
			if rnd.IntN(4) == 0 {
				lines := strings.SplitAfter(files[name], "\n")
				lines[rnd.IntN(len(lines))] = fmt.Sprintf("line of commit %d: %d\n", c, rnd.IntN(1000))
				files[name] = strings.Join(lines, "")
			}
		}
		r.Write(files)
		r.Commit(fmt.Sprintf("commit %d", c))
	}
	return r
}

// The index that is made of a pack is byte for byte the one that Git makes, however
// deltas name what they are made of.
func TestIndexIsThatOfGit(t *testing.T) {
	t.Parallel()
	r := manyVersions(t)
	for name, args := range map[string][]string{
		"by offset": {"--delta-base-offset", "--window=20", "--depth=50"},
		"by name":   {"--window=20", "--depth=50"},
		"whole":     {"--window=0"},
		"deep":      {"--delta-base-offset", "--window=250", "--depth=250"},
	} {
		t.Run(name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "p")
			r.Git(append(append([]string{"-c", "pack.useSparse=false", "pack-objects", "--no-reuse-delta", "--all", "--quiet"}, args...), out)...)
			packs, err := filepath.Glob(out + "-*.pack")
			if err != nil || len(packs) != 1 {
				t.Fatal(packs, err)
			}
			f, err := os.Open(packs[0])
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = f.Close() }()
			index, sum, err := indexPack(f, DefaultPackLimits())
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(packs[0], sum.String()) {
				t.Errorf("%s has the sum %s", packs[0], sum)
			}
			made := filepath.Join(t.TempDir(), "made.idx")
			if err := writeIndex(made, index); err != nil {
				t.Fatal(err)
			}
			got, err := os.ReadFile(made)
			if err != nil {
				t.Fatal(err)
			}
			want, err := os.ReadFile(strings.TrimSuffix(packs[0], ".pack") + ".idx")
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got, want) {
				t.Errorf("an index of %d bytes, want another of %d", len(got), len(want))
			}
			if len(want) < 10_000 {
				t.Errorf("an index of %d bytes says little", len(want))
			}
		})
	}
}

// The index holds a bounded amount in memory at a time, and little even for large families of deltas.
func TestIndexHoldsLittle(t *testing.T) {
	t.Parallel()
	r := manyVersions(t)
	out := filepath.Join(t.TempDir(), "p")
	r.Git("pack-objects", "--no-reuse-delta", "--all", "--quiet", "--delta-base-offset", "--window=250", "--depth=250", out)
	packs, _ := filepath.Glob(out + "-*.pack")
	f, err := os.Open(packs[0])
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	limits := DefaultPackLimits()
	limits.deltaBytes = 64 << 10 // some ten times the largest file
	if _, _, err := indexPack(f, limits); err != nil {
		t.Errorf("with room for a few objects: %v", err)
	}
	limits.deltaBytes = 5000
	if _, _, err := indexPack(f, limits); fault.ReasonOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "large objects as deltas of each other") {
		t.Errorf("with room for none: %v", err)
	}
}
