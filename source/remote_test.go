package source_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/sourcetest"
	"github.com/weir-gitops/weir/source/transport"
)

// oneCommit is a repository with a commit of the file f.
func oneCommit(t testing.TB) (repo *sourcetest.Repo, one string) {
	t.Helper()
	repo = sourcetest.New(t)
	repo.Write(map[string]string{"f": "1"})
	return repo, repo.Commit("one")
}

// twoCommits adds one that changes it.
func twoCommits(t testing.TB) (repo *sourcetest.Repo, one, two string) {
	t.Helper()
	repo, one = oneCommit(t)
	repo.Write(map[string]string{"f": "2"})
	return repo, one, repo.Commit("two")
}

// open makes a source for a repository and closes it with the test.
func open(t testing.TB, cfg source.Config, opts source.Options) *source.Git {
	t.Helper()
	if cfg.Name == "" {
		cfg.Name = "fleet"
	}
	if cfg.Dir == "" && (strings.HasPrefix(cfg.URL, "http") || strings.HasPrefix(cfg.URL, "ssh")) {
		cfg.Dir = t.TempDir()
	}
	g, err := source.New(cfg, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	return g
}

func latest(t testing.TB, g *source.Git) snapshot.Snapshot {
	t.Helper()
	s, err := g.Latest(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// wantUnavailable asserts that Latest fails for a reason, gives no tree, and
// keeps what was good before.
func wantUnavailable(t *testing.T, g *source.Git, want fault.Reason) *fault.UnavailableError {
	t.Helper()
	before, _ := g.Last()
	s, err := g.Latest(context.Background())
	var ue *fault.UnavailableError
	if !errors.As(err, &ue) {
		t.Fatalf("Latest gave %v, want an UnavailableError with reason %s", err, want)
	}
	if ue.Reason != want {
		t.Fatalf("reason %s, want %s: %v", ue.Reason, want, err)
	}
	if s.Tree != nil || s.Revision != "" {
		t.Errorf("an error came with the snapshot %+v", s)
	}
	if after, _ := g.Last(); after.Revision != before.Revision {
		t.Errorf("Last moved from %s to %s by an error", before.Revision, after.Revision)
	}
	return ue
}

func files(t testing.TB, tr tree.Tree) map[string]string {
	t.Helper()
	out := map[string]string{}
	var walk func(dir string)
	walk = func(dir string) {
		entries, err := tr.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			p := strings.TrimPrefix(dir+"/"+e.Name, "./")
			switch e.Mode {
			case tree.Dir:
				walk(p)
			case tree.Submodule:
				out[p] = "submodule:" + e.Hash
			default:
				data, err := tr.ReadFile(p)
				if err != nil {
					t.Fatal(err)
				}
				if e.Mode == tree.Symlink {
					data = append([]byte("symlink:"), data...)
				}
				out[p] = string(data)
			}
		}
	}
	walk(".")
	return out
}

func TestLatestOverHTTP(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	want := map[string]string{"base/pool.yaml": "kind: AWSMachinePool\n", "overlays/prod/kustomization.yaml": "resources: [../../base]\n", "link": "symlink:base/pool.yaml"}
	repo.Write(want)
	first := repo.Commit("pools: start\n\nBody of the message.\n")
	g := open(t, source.Config{URL: repo.URL()}, source.Options{})

	if _, ok := g.Last(); ok {
		t.Error("Last gives a snapshot before the first fetch")
	}
	s := latest(t, g)
	got := s
	got.Tree = nil
	if diff := cmp.Diff(snapshot.Snapshot{
		Source: "fleet", SourceID: transport.ID(repo.URL()), Revision: first, Ref: "refs/heads/main",
		Subject: "pools: start", Message: "pools: start\n\nBody of the message.\n", CommittedAt: got.CommittedAt,
	}, got); diff != "" {
		t.Errorf("snapshot (-want +got):\n%s", diff)
	}
	if !got.CommittedAt.Equal(sourcetest.Epoch) {
		t.Errorf("committed at %s, want %s", got.CommittedAt, sourcetest.Epoch)
	}
	if diff := cmp.Diff(want, files(t, s.Tree)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}

	repo.Write(map[string]string{"base/pool.yaml": "kind: AWSManagedMachinePool\n"})
	repo.Remove("link")
	second := repo.Commit("pools: change")
	s2 := latest(t, g)
	if s2.Revision != second || s2.Parent != first {
		t.Errorf("revision %s with parent %s, want %s with %s", s2.Revision, s2.Parent, second, first)
	}
	if diff := cmp.Diff(map[string]string{"base/pool.yaml": "kind: AWSManagedMachinePool\n", "overlays/prod/kustomization.yaml": "resources: [../../base]\n"}, files(t, s2.Tree)); diff != "" {
		t.Errorf("files after the second commit (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(want, files(t, s.Tree)); diff != "" {
		t.Errorf("the first snapshot changed (-want +got):\n%s", diff)
	}
	old, err := g.At(context.Background(), first)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, files(t, old.Tree)); diff != "" {
		t.Errorf("files at the first commit (-want +got):\n%s", diff)
	}
}

func TestUnchangedRemoteCostsOneRequest(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	repo.Write(map[string]string{"a": "1"})
	repo.Commit("one")
	g := open(t, source.Config{URL: repo.URL()}, source.Options{})
	latest(t, g)
	before := len(repo.Requests())
	latest(t, g)
	if n := len(repo.Requests()) - before; n != 1 {
		t.Errorf("%d requests for an unchanged ref, want 1", n)
	}
}

func TestRefKinds(t *testing.T) {
	t.Parallel()
	repo, one, two := twoCommits(t)
	repo.Switch("side")
	repo.Branch("side", one)
	repo.Write(map[string]string{"f": "3"})
	three := repo.Commit("three")
	repo.Tag("light", one)
	inner := repo.AnnotatedTag("v1", two)
	repo.AnnotatedTag("v1-again", inner)
	blob := repo.Git("rev-parse", one+":f")
	repo.Tag("file", blob)

	tests := map[string]struct {
		ref      source.Ref
		revision string
		name     string
		reason   fault.Reason
	}{
		"head":              {source.Ref{}, two, "refs/heads/main", ""},
		"branch":            {source.Ref{Branch: "side"}, three, "refs/heads/side", ""},
		"light tag":         {source.Ref{Tag: "light"}, one, "refs/tags/light", ""},
		"annotated tag":     {source.Ref{Tag: "v1"}, two, "refs/tags/v1", ""},
		"tag of a tag":      {source.Ref{Tag: "v1-again"}, two, "refs/tags/v1-again", ""},
		"tag of a file":     {source.Ref{Tag: "file"}, "", "", fault.MissingRef},
		"commit at a tip":   {source.Ref{Commit: three}, three, three, ""},
		"commit in history": {source.Ref{Commit: one}, one, one, ""},
		"no such branch":    {source.Ref{Branch: "nope"}, "", "", fault.MissingRef},
		"no such tag":       {source.Ref{Tag: "nope"}, "", "", fault.MissingRef},
		"no such commit":    {source.Ref{Commit: strings.Repeat("ab", 20)}, "", "", fault.MissingRef},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			for _, url := range []string{repo.URL(), repo.Dir(), "file://" + repo.Dir()} {
				g := open(t, source.Config{URL: url, Ref: tt.ref}, source.Options{})
				if tt.reason != "" {
					wantUnavailable(t, g, tt.reason)
					continue
				}
				if s := latest(t, g); s.Revision != tt.revision || s.Ref != tt.name {
					t.Errorf("%s: %s at %s, want %s at %s", url, s.Ref, s.Revision, tt.name, tt.revision)
				}
			}
		})
	}
}

func TestCommitInHistoryByExactName(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	repo.Git("config", "uploadpack.allowReachableSHA1InWant", "true")
	repo.Write(map[string]string{"f": "1"})
	one := repo.Commit("one")
	repo.Write(map[string]string{"f": "2"})
	repo.Commit("two")
	g := open(t, source.Config{URL: repo.URL(), Ref: source.Ref{Commit: one}}, source.Options{})
	if s := latest(t, g); s.Revision != one {
		t.Errorf("revision %s, want %s", s.Revision, one)
	}
	repo.Down(true)
	if s := latest(t, g); s.Revision != one {
		t.Error("a pinned commit that is here needs the remote")
	}
}

func TestMovingRefs(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"http", "ssh", "local"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			repo := sourcetest.New(t)
			cfg := ways(t, repo)[kind]
			g := open(t, cfg, source.Options{})
			wantUnavailable(t, g, fault.EmptyRepository)

			repo.Write(map[string]string{"f": "1"})
			one := repo.Commit("one")
			repo.Write(map[string]string{"f": "2", "g/h": "2"})
			two := repo.Commit("two")
			wantRevision(t, g, two)

			repo.Branch("main", one) // Force-push to an older base,
			wantRevision(t, g, one)
			repo.Write(map[string]string{"f": "3"})
			three := repo.Commit("three") // and on from there.
			wantRevision(t, g, three)

			repo.DeleteBranch("main")
			repo.Branch("other", two)
			wantUnavailable(t, g, fault.MissingRef)
			repo.Branch("main", two)
			wantRevision(t, g, two)

			repo.Orphan()
			repo.Write(map[string]string{"new": "root"})
			orphan := repo.Commit("orphan")
			s := wantRevision(t, g, orphan)
			if diff := cmp.Diff(map[string]string{"new": "root"}, files(t, s.Tree)); diff != "" || s.Parent != "" {
				t.Errorf("orphan with parent %q (-want +got):\n%s", s.Parent, diff)
			}

			repo.SetHead("other") // The default branch is renamed.
			if s := wantRevision(t, g, two); s.Ref != "refs/heads/other" {
				t.Errorf("ref %s, want the new default branch", s.Ref)
			}
			repo.SetHead("nope")
			wantUnavailable(t, g, fault.MissingRef)
			repo.Git("update-ref", "--no-deref", "HEAD", three)
			if s := wantRevision(t, g, three); s.Ref != "HEAD" {
				t.Errorf("ref %s, want HEAD", s.Ref)
			}

			cfg.Name, cfg.Ref.Tag = "tagged", "v"
			tagged := open(t, cfg, source.Options{})
			repo.AnnotatedTag("v", one)
			wantRevision(t, tagged, one)
			repo.AnnotatedTag("v", two)
			wantRevision(t, tagged, two)
		})
	}
}

func wantRevision(t *testing.T, g *source.Git, want string) snapshot.Snapshot {
	t.Helper()
	s := latest(t, g)
	if s.Revision != want {
		t.Fatalf("revision %s, want %s", s.Revision, want)
	}
	files(t, s.Tree) // All of it can be read.
	return s
}

func TestTenThousandRefs(t *testing.T) {
	t.Parallel()
	repo, one := oneCommit(t)
	var packed strings.Builder
	packed.WriteString("# pack-refs with: peeled fully-peeled sorted \n")
	for i := range 10_000 {
		fmt.Fprintf(&packed, "%s refs/pull/%05d/head\n", one, i)
	}
	if err := os.WriteFile(filepath.Join(repo.Dir(), "packed-refs"), []byte(packed.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	wantRevision(t, open(t, source.Config{URL: repo.URL()}, source.Options{}), one)
	wantRevision(t, open(t, source.Config{URL: repo.Dir()}, source.Options{}), one)
}
