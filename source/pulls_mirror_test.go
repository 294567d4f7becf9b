package source_test

import (
	"context"
	"errors"
	"fmt"
	"github.com/weir-gitops/weir/source/git"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/signature"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// fork is a repository with one commit on main and a way to make pull requests.
type fork struct {
	*sourcetest.Repo
	base string
	n    int
}

func newFork(t testing.TB) *fork {
	r := &fork{Repo: sourcetest.New(t)}
	r.Write(map[string]string{"f": "1", "d/g": "1"})
	r.base = r.Commit("base")
	return r
}

// open makes the next pull request, of one commit that writes a file.
func (r *fork) open(name, text string) source.PullRef {
	r.n++
	return r.push(r.n, r.base, name, text)
}

// push sets a pull request to one commit on top of another.
func (r *fork) push(n int, parent, name, text string) source.PullRef {
	branch := fmt.Sprintf("pull-%d", n)
	r.Branch(branch, parent)
	r.Switch(branch)
	r.Write(map[string]string{name: text})
	p := source.PullRef{Head: fmt.Sprintf("refs/pull/%d/head", n), HeadSHA: r.Commit(text[:1]), Base: r.base}
	r.Git("update-ref", p.Head, p.HeadSHA)
	r.DeleteBranch(branch)
	r.Switch("main")
	return p
}

// wantPullFails asserts that Pull fails for a reason, and that what is followed
// goes on.
func wantPullFails(t *testing.T, g *source.Git, p source.PullRef, want fault.Reason, text string) *fault.UnavailableError {
	t.Helper()
	m, err := g.Pull(context.Background(), p)
	var ue *fault.UnavailableError
	if !errors.As(err, &ue) || ue.Reason != want || !strings.Contains(err.Error(), text) {
		t.Fatalf("Pull gave %v, want reason %s and %q", err, want, text)
	}
	if m.Snapshot.Tree != nil || m.Snapshot.Revision != "" {
		t.Errorf("an error came with %+v", m)
	}
	return ue
}

func TestPullCostsOneExchange(t *testing.T) {
	t.Parallel()
	repo := newFork(t)
	dir := t.TempDir()
	g := open(t, source.Config{URL: repo.URL(), Dir: dir}, source.Options{})
	latest(t, g)
	p := repo.open("d/g", "2")
	repo.Git("update-ref", "refs/pull/1/merge", join(repo.Repo, p.HeadSHA, p.Base, p.HeadSHA))
	asked := func(want string, call func()) {
		t.Helper()
		before := len(repo.Requests())
		call()
		var got []string
		for _, r := range repo.Requests()[before:] {
			got = append(got, r.Method)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("requests %v, want %s", got, want)
		}
	}
	asked("GET POST", func() { pull(t, g, p) })
	asked("", func() { pull(t, g, p) })
	p.MergeRef = "refs/pull/1/merge"
	asked("GET POST", func() { pull(t, g, p) })
	asked("GET", func() {
		if m := pull(t, g, p); !m.FromForge {
			t.Errorf("%+v", m)
		}
	})

	m := mirrorDir(t, dir)
	refs := repo.GitIn(m, "for-each-ref", "--format=%(refname) %(objectname)", "refs/weir/ok", "refs/heads", "refs/pull")
	if want := "refs/weir/ok/fleet " + repo.base; refs != want {
		t.Errorf("refs %q, want %q", refs, want)
	}
	if got := repo.GitIn(m, "for-each-ref", "--format=%(objectname)", "refs/weir/pulls"); got != p.HeadSHA {
		t.Errorf("remembered %q, want %s", got, p.HeadSHA)
	}
	repo.GitIn(m, "fsck", "--strict", "--full")
	if err := g.Forget(p.Head); err != nil {
		t.Fatal(err)
	}
	if got := repo.GitIn(m, "for-each-ref", "refs/weir/pulls"); got != "" {
		t.Errorf("remembered after Forget: %q", got)
	}
	if s, ok := g.Last(); !ok || s.Revision != repo.base {
		t.Errorf("Last is %+v, %v", s, ok)
	}
}

// TestPullBringsWhatIsNew fetches a large file once, however often the head moves.
func TestPullBringsWhatIsNew(t *testing.T) {
	t.Parallel()
	repo := newFork(t)
	dir := t.TempDir()
	g := open(t, source.Config{URL: repo.URL(), Dir: dir}, source.Options{})
	latest(t, g)
	large := repo.open("large", noise(200_000))
	pull(t, g, large)
	p := repo.push(1, large.HeadSHA, "small", "1")
	pull(t, g, p)
	// Merged, and so followed.
	repo.Branch("main", p.HeadSHA)
	wantRevision(t, g, p.HeadSHA)
	var sum int64
	each(t, mirrorDir(t, dir), "objects/pack/*.pack", func(f string) { sum += size(t, f) })
	if sum > 300_000 {
		t.Errorf("the packs have %d bytes, want the large file once", sum)
	}
}

// TestPullWhileHeadMoves: the ref moves after the server listed it.
func TestPullWhileHeadMoves(t *testing.T) {
	t.Parallel()
	repo := newFork(t)
	g := open(t, source.Config{URL: repo.URL()}, source.Options{})
	latest(t, g)
	p := repo.open("f", "2")
	var once sync.Once
	var moved source.PullRef
	repo.Before(func(r *http.Request) {
		if r.Method == http.MethodPost {
			once.Do(func() { moved = repo.push(1, repo.base, "f", "3") })
		}
	})
	_, err := g.Pull(context.Background(), p)
	var me *source.MovedError
	if !errors.As(err, &me) || me.Got != moved.HeadSHA {
		t.Fatalf("Pull gave %v, want that the head is at %s", err, moved.HeadSHA)
	}
	if got := files(t, pull(t, g, moved).Snapshot.Tree)["f"]; got != "3" {
		t.Errorf("f is %q", got)
	}
}

// TestPullOfHiddenRef reads heads that the server does not list but gives.
func TestPullOfHiddenRef(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"http", "ssh"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := newSSHRepo(t)
			cfg := r.config(t)
			if kind == "http" {
				cfg = source.Config{URL: r.URL()}
			}
			r.Write(map[string]string{"f": "1"})
			repo := &fork{Repo: r.Repo, base: r.Commit("base")}
			repo.Git("config", "uploadpack.hideRefs", "refs/pull")
			repo.Git("config", "uploadpack.allowTipSHA1InWant", "true")
			g := open(t, cfg, source.Options{})
			latest(t, g)
			p := repo.open("f", "2")
			if got := files(t, pull(t, g, p).Snapshot.Tree)["f"]; got != "2" {
				t.Errorf("f is %q", got)
			}
			p = repo.open("f", "3")
			repo.Git("update-ref", "-d", p.Head)
			wantMoved(t, g, p, "")
		})
	}
}

func TestPullFails(t *testing.T) {
	t.Parallel()
	repo := newFork(t)
	g := open(t, source.Config{URL: repo.URL()}, source.Options{})
	latest(t, g)
	p := repo.open("f", "2")
	with := func(change func(*source.PullRef)) source.PullRef {
		c := p
		change(&c)
		return c
	}
	for name, c := range map[string]source.PullRef{
		"no head":          with(func(p *source.PullRef) { p.Head = "" }),
		"short head":       with(func(p *source.PullRef) { p.Head = "pull/1/head" }),
		"head that climbs": with(func(p *source.PullRef) { p.Head = "refs/../../config" }),
		"no commit":        with(func(p *source.PullRef) { p.HeadSHA = "" }),
		"short commit":     with(func(p *source.PullRef) { p.HeadSHA = p.HeadSHA[:12] }),
		"no base":          with(func(p *source.PullRef) { p.Base = "main" }),
		"base elsewhere":   with(func(p *source.PullRef) { p.Base = strings.Repeat("1", 40) }),
		"merge ref":        with(func(p *source.PullRef) { p.MergeRef = "merge" }),
	} {
		t.Run(name, func(t *testing.T) { wantPullFails(t, g, c, fault.MissingRef, "") })
	}
	blob := repo.Git("rev-parse", repo.base+":f")
	repo.Git("update-ref", "refs/pull/blob", blob)
	wantPullFails(t, g, source.PullRef{Head: "refs/pull/blob", HeadSHA: blob, Base: repo.base}, fault.MissingRef, "not a commit")
	tag := repo.AnnotatedTag("t", repo.base)
	wantPullFails(t, g, source.PullRef{Head: "refs/tags/t", HeadSHA: tag, Base: repo.base}, fault.MissingRef, "not a commit")

	p = repo.open("f", "3")
	repo.Answer(http.StatusInternalServerError)
	wantPullFails(t, g, p, fault.Unreachable, "500")
	repo.Answer(http.StatusForbidden)
	wantPullFails(t, g, p, fault.AuthFailed, "403")
	repo.Answer(0)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := g.Pull(ctx, p)
	var ue *fault.UnavailableError
	if !errors.Is(err, context.Canceled) || errors.As(err, &ue) {
		t.Errorf("Pull gave %v, want the context's error alone", err)
	}
	pull(t, g, p)
}

func TestPullInShallowClone(t *testing.T) {
	t.Parallel()
	repo := newFork(t)
	p := repo.open("f", "2")
	clone := filepath.Join(t.TempDir(), "clone")
	repo.Git("clone", "--quiet", "--depth=1", "file://"+repo.Dir(), clone)
	repo.GitIn(clone, "fetch", "--quiet", "--depth=1", "origin", p.Head+":"+p.Head)
	g := open(t, source.Config{URL: clone}, source.Options{})
	latest(t, g)
	wantPullFails(t, g, p, fault.Unsupported, "git fetch --unshallow")
}

// TestPullNeedsNoSignature plans a head that could not be applied.
func TestPullNeedsNoSignature(t *testing.T) {
	t.Parallel()
	repo := newFork(t)
	alice := sourcetest.NewSSHKey(t)
	allowed := newSigners(t, map[string]ssh.Signer{"alice@example.com": alice})
	repo.base = repo.Signed(repo.base, repo.SSHSign(alice))
	repo.Branch("main", repo.base)
	g := open(t, source.Config{URL: repo.URL(), Verify: allowed.policy(signature.Commit)}, source.Options{})
	latest(t, g)
	p := repo.open("f", "2")
	if s := pull(t, g, p).Snapshot; s.SignedBy != "" || files(t, s.Tree)["f"] != "2" {
		t.Errorf("%+v", s)
	}
	repo.Branch("main", p.HeadSHA)
	wantUnverified(t, g, p.HeadSHA)
}

// TestPullsBesideLatest reads pull requests and what is followed at once, while
// the mirror is made again every few packs.
func TestPullsBesideLatest(t *testing.T) {
	t.Parallel()
	repo := newFork(t)
	g := open(t, source.Config{URL: repo.URL()}, source.Options{})
	source.SetMirrorLimits(g, 6, 1<<20)
	latest(t, g)
	var pulls []source.PullRef
	for i := range 12 {
		pulls = append(pulls, repo.open("d/g", fmt.Sprint("pull ", i)))
	}
	var wg sync.WaitGroup
	for worker := range 3 {
		wg.Go(func() {
			for i := worker; i < len(pulls); i += 3 {
				for attempt := 0; ; attempt++ {
					m, err := g.Pull(context.Background(), pulls[i])
					var data []byte
					if err == nil {
						data, err = m.Snapshot.Tree.ReadFile("d/g")
					}
					var ue *fault.UnavailableError
					full := errors.As(err, &ue) && ue.Reason == fault.Storage
					if (full || errors.Is(err, git.ErrReplaced)) && attempt < 100 {
						if _, err := g.Latest(context.Background()); err != nil {
							t.Error(err)
							return
						}
						continue
					}
					if err != nil || string(data) != fmt.Sprint("pull ", i) {
						t.Errorf("pull %d gave %q, %v", i, data, err)
						return
					}
					break
				}
			}
		})
	}
	for i := range 8 {
		repo.Write(map[string]string{"f": fmt.Sprint(i)})
		s := wantRevision(t, g, repo.Commit("main goes on"))
		if got := files(t, s.Tree)["f"]; got != fmt.Sprint(i) {
			t.Errorf("f is %q", got)
		}
	}
	wg.Wait()
}

func TestPullOfTenThousandFiles(t *testing.T) {
	t.Parallel()
	repo := &fork{Repo: sourcetest.New(t)}
	tenThousand(repo.Repo)
	repo.base = repo.Tip("main")
	p := repo.open("clusters/c05/p50/f5.yaml", "head")
	repo.Write(map[string]string{"clusters/c05/p50/f6.yaml": "base"})
	p.Base = repo.Commit("main goes on")
	g := open(t, source.Config{URL: repo.URL()}, source.Options{})
	latest(t, g)
	got := files(t, pull(t, g, p).Snapshot.Tree)
	if len(got) != 10_000 || got["clusters/c05/p50/f5.yaml"] != "head" || got["clusters/c05/p50/f6.yaml"] != "base" {
		t.Errorf("%d files, %q, %q", len(got), got["clusters/c05/p50/f5.yaml"], got["clusters/c05/p50/f6.yaml"])
	}
}
