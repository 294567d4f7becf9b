package source_test

import (
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/snapshot"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// ways are the addresses of one repository.
func ways(t *testing.T, repo *sourcetest.Repo) map[string]source.Config {
	t.Helper()
	r := &sshRepo{Repo: repo, dir: t.TempDir(), ssh: repo.ServeSSH()}
	r.key, r.known = r.dir+"/key", r.dir+"/known_hosts"
	r.ssh.Allow(sourcetest.WriteSSHKey(t, r.key, ""))
	overwrite(t, r.known, r.ssh.KnownHosts())
	return map[string]source.Config{"http": {URL: repo.URL()}, "local": {URL: repo.Dir()}, "ssh": r.config(t)}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	commits := map[string]string{}
	for _, name := range []string{"one", "two", "three", "four"} {
		repo.Write(map[string]string{"f": name})
		commits[name] = repo.Commit(name)
	}
	repo.Tag("v1.0.0", commits["one"])
	repo.AnnotatedTag("v1.2.0", commits["two"])
	repo.Tag("1.10.0", commits["three"])
	repo.Tag("v2.0.0-rc.1", commits["four"])
	repo.Tag("v2", commits["four"])
	repo.Tag("release/v3.0.0", commits["four"])
	tests := map[string]struct{ versions, commit, ref string }{
		"numbers, not texts": {"1.x", "three", "refs/tags/1.10.0"},
		"annotated":          {"<1.10.0", "two", "refs/tags/v1.2.0"},
		"any":                {"*", "three", "refs/tags/1.10.0"},
		"exactly":            {"1.0.0", "one", "refs/tags/v1.0.0"},
		"pre-release":        {">=2.0.0-0", "four", "refs/tags/v2.0.0-rc.1"},
		"tilde":              {"~1.2", "two", "refs/tags/v1.2.0"},
		"alternatives":       {"1.0.0 || 1.2.x", "two", "refs/tags/v1.2.0"},
	}
	for kind, cfg := range ways(t, repo) {
		for name, tt := range tests {
			t.Run(kind+"/"+name, func(t *testing.T) {
				cfg := cfg
				cfg.Ref.SemVer = tt.versions
				cfg.Dir = t.TempDir()
				if s := wantRevision(t, open(t, cfg, source.Options{}), commits[tt.commit]); s.Ref != tt.ref {
					t.Errorf("ref %s, want %s", s.Ref, tt.ref)
				}
			})
		}
		t.Run(kind+"/none", func(t *testing.T) {
			cfg := cfg
			cfg.Ref.SemVer = ">=2.0.0"
			cfg.Dir = t.TempDir()
			ue := wantUnavailable(t, open(t, cfg, source.Options{}), fault.MissingRef)
			for _, want := range []string{`">=2.0.0"`, "v2.0.0-rc.1, 1.10.0, v1.2.0, v1.0.0", "other tags: 2", "a pre-release matches only"} {
				if !strings.Contains(ue.Error(), want) {
					t.Errorf("the error lacks %q: %v", want, ue)
				}
			}
		})
	}
}

func TestVersionsMove(t *testing.T) {
	t.Parallel()
	repo, one, two := twoCommits(t)
	sources := map[string]*source.Git{}
	for kind, cfg := range ways(t, repo) {
		cfg.Ref.SemVer = "1.x"
		cfg.Dir = t.TempDir()
		sources[kind] = open(t, cfg, source.Options{})
	}
	all := func(want string) {
		t.Helper()
		for kind, g := range sources {
			if want == "" {
				wantUnavailable(t, g, fault.MissingRef)
			} else if s := latest(t, g); s.Revision != want {
				t.Errorf("%s: revision %s, want %s", kind, s.Revision, want)
			}
		}
	}
	all("")
	repo.Tag("v1.0.0", one)
	all(one)
	repo.Tag("v1.1.0", two)
	all(two)
	repo.Tag("v1.1.0", one) // A tag that is rewritten,
	all(one)
	repo.AnnotatedTag("v1.1.0", two) // and once more, to an object.
	all(two)
	repo.Git("tag", "-d", "v1.1.0")
	all(one)
	repo.Git("tag", "-d", "v1.0.0")
	all("") // Nothing is not "apply nothing".

	// Of the same version, the youngest commit.
	repo.Tag("v1.5.0", one)
	repo.Tag("1.5.0", two)
	all(two)
	repo.Tag("v1.5.0+zz", one)
	all(two)
	repo.Tag("1.5.0", one)
	repo.Tag("v1.5.0", two)
	all(two)
	all(two)
}

func TestRefsByName(t *testing.T) {
	t.Parallel()
	repo, one, two := twoCommits(t)
	repo.Branch("main", one)
	repo.Git("update-ref", "refs/merge-requests/1/head", two)
	repo.AnnotatedTag("v1", two)
	for kind, cfg := range ways(t, repo) {
		t.Run(kind, func(t *testing.T) {
			for name, want := range map[string]string{"refs/merge-requests/1/head": two, "refs/heads/main": one, "refs/tags/v1": two} {
				cfg := cfg
				cfg.Ref.Name, cfg.Dir = name, t.TempDir()
				if s := wantRevision(t, open(t, cfg, source.Options{}), want); s.Ref != name {
					t.Errorf("ref %s, want %s", s.Ref, name)
				}
			}
		})
	}
	for _, name := range []string{"main", "refs/../x", "refs/heads/a b", "HEAD"} {
		if err := (source.Ref{Name: name}).Validate(); err == nil {
			t.Errorf("%q is taken for a ref in full", name)
		}
	}
}

// TestCommitOnNoBranch pins a commit that nothing leads to any more.
func TestCommitOnNoBranch(t *testing.T) {
	t.Parallel()
	repo, one, two := twoCommits(t)
	repo.Branch("main", one)
	for kind, cfg := range ways(t, repo) {
		t.Run(kind, func(t *testing.T) {
			cfg.Ref.Commit = two
			if kind == "local" {
				wantRevision(t, open(t, cfg, source.Options{}), two)
				return
			}
			refuse := func() {
				t.Helper()
				cfg.Dir = t.TempDir()
				if ue := wantUnavailable(t, open(t, cfg, source.Options{}), fault.MissingRef); !strings.Contains(ue.Error(), "on any branch or tag") {
					t.Errorf("the error does not say what is missing: %v", ue)
				}
			}
			repo.Git("config", "uploadpack.allowAnySHA1InWant", "false")
			refuse()
			repo.Git("config", "uploadpack.allowAnySHA1InWant", "true")
			cfg.Dir = t.TempDir()
			wantRevision(t, open(t, cfg, source.Options{}), two)
			repo.Git("config", "--unset", "uploadpack.allowAnySHA1InWant")
			// A server that gives tips by name only refuses it, and one below a tip.
			repo.Git("config", "uploadpack.allowTipSHA1InWant", "true")
			refuse()
			repo.Branch("main", two)
			cfg.Ref.Commit, cfg.Dir = one, t.TempDir()
			wantRevision(t, open(t, cfg, source.Options{}), one)
			repo.Branch("main", one)
			repo.Git("config", "--unset", "uploadpack.allowTipSHA1InWant")
		})
	}
}

// TestMirrorIsBounded fetches files that were rewritten again and again.
func TestMirrorIsBounded(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	dir := t.TempDir()
	g := open(t, source.Config{URL: repo.URL(), Dir: dir}, source.Options{})
	source.SetMirrorBytes(g, 100_000)
	repo.Write(map[string]string{"f": "1"})
	base := repo.Commit("base")
	var followed []string
	for i := range 8 {
		repo.Branch("main", base) // The former content is in no history any more.
		repo.Write(map[string]string{"f": noise(30_000 + i)})
		followed = append(followed, repo.Commit("again"))
		wantRevision(t, g, followed[i])
		var sum int64
		each(t, mirrorDir(t, dir), "objects/pack/*", func(file string) { sum += size(t, file) })
		if sum > 150_000 {
			t.Fatalf("after %d rewrites the mirror has %d bytes", i, sum)
		}
	}
	// The mirror was made again twice: what was followed each time is still known by name.
	if lost, err := g.Lost(t.Context(), followed[0], followed[7]); len(lost) < 2 || err != nil {
		t.Errorf("lost %v of %v, %v", lost, followed, err)
	}
	posts := 0
	for _, r := range repo.Requests() {
		if r.Method == http.MethodPost {
			posts++
		}
	}
	if posts > 16 {
		t.Errorf("%d packs were fetched", posts)
	}
}

// TestARefThatGoesBackAndForth follows a branch that is moved between two commits, and to
// a history that has nothing in common with them: each look gives what the branch names,
// and what is here already comes no second time.
func TestARefThatGoesBackAndForth(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	repo.Write(map[string]string{"f": "one"})
	one := repo.Commit("one")
	repo.Write(map[string]string{"f": "two"})
	two := repo.Commit("two")
	other := repo.Git("commit-tree", "-m", "another history", one+"^{tree}")
	dir := t.TempDir()
	g, err := source.New(source.Config{Name: "s", URL: repo.URL(), Ref: source.Ref{Branch: "main"}, Dir: dir}, source.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(g.Close)
	packs := 0
	for round := range 4 {
		for _, want := range []string{one, two, other, two} {
			repo.Git("update-ref", "refs/heads/main", want)
			s, err := g.Latest(t.Context())
			if err != nil || s.Revision != want {
				t.Fatalf("%s, %v; want %s", s.Revision, err, want)
			}
			text := "two"
			if want != two {
				text = "one"
			}
			if data, err := s.Tree.ReadFile("f"); err != nil || string(data) != text {
				t.Errorf("%q, %v", data, err)
			}
		}
		files, err := filepath.Glob(filepath.Join(dir, "*", "objects", "pack", "*.pack"))
		if err != nil || round > 0 && len(files) != packs {
			t.Errorf("%d packs after round %d, were %d (%v)", len(files), round, packs, err)
		}
		packs = len(files)
	}
	for other, want := range map[string]snapshot.Standing{one: snapshot.Behind, other: snapshot.Aside} {
		got, err := g.Standings(t.Context(), []string{two}, []string{other})
		if err != nil || got[other] != want {
			t.Errorf("%s stands %v, %v; want %v", other, got, err, want)
		}
	}
}
