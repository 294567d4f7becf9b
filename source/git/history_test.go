package git

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/weir-gitops/weir/source/sourcetest"
)

// A long history costs nothing: a branch that is a little behind is compared with the
// commits since, and with no others.
func TestMergeBaseReadsLittle(t *testing.T) {
	t.Parallel()
	r := sourcetest.New(t)
	const commits, behind = 5000, 10
	var stream strings.Builder
	for i := 1; i <= commits; i++ {
		fmt.Fprintf(&stream, "commit refs/heads/long\nmark :%d\ncommitter a <a@b> %d +0000\ndata 1\nc\n\n", i, 1_700_000_000+i*60)
	}
	fmt.Fprintf(&stream, "commit refs/heads/side\ncommitter a <a@b> %d +0000\ndata 1\ns\nfrom :%d\n\n", 1_700_000_000+commits*61, commits-behind)
	cmd := exec.CommandContext(t.Context(), "git", "-C", r.Dir(), "fast-import", "--quiet")
	cmd.Stdin = strings.NewReader(stream.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	objects := filepath.Join(r.Git("rev-parse", "--absolute-git-dir"), "objects")
	h := NewHistory(NewStore(true, func() ([]string, error) { return []string{objects}, nil }))
	name := func(ref string) plumbing.Hash { return plumbing.NewHash(r.Git("rev-parse", ref)) }
	bases, got, err := h.MergeBases(t.Context(), name("long"), name("side"))
	if err != nil || got != behind || len(bases) != 1 || bases[0] != name(fmt.Sprintf("long~%d", behind)) {
		t.Errorf("%v, %d behind, %v", bases, got, err)
	}
	if n := len(h.known); n > behind+10 {
		t.Errorf("%d commits were read, want those since and a few", n)
	}
	found, err := h.Reached(t.Context(), []plumbing.Hash{name("long")}, map[plumbing.Hash]bool{name("long~5"): true})
	if err != nil || len(found) != 1 || len(h.known) > behind+10 {
		t.Errorf("%v, %v, %d commits were read", found, err, len(h.known))
	}
}
