package source_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/signature"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// The commits before one are those that git rev-list --first-parent lists.
func TestFirstParentsAreGits(t *testing.T) {
	t.Parallel()
	repo, all := branchy(t)
	for where, cfg := range map[string]source.Config{"http": {URL: repo.URL()}, "local": {URL: repo.Dir()}} {
		t.Run(where, func(t *testing.T) {
			g := open(t, cfg, source.Options{})
			latest(t, g)
			for name, revision := range all {
				want := strings.Fields(repo.Git("rev-list", "--first-parent", revision))[1:]
				for _, n := range []int{0, 1, 2, 100} {
					got, err := g.FirstParents(t.Context(), revision, n)
					if err != nil || !slices.Equal(got, want[:min(n, len(want))]) {
						t.Errorf("%d before %s: %v, %v, want %v", n, name, got, err, want)
					}
				}
			}
			if got, err := g.FirstParents(t.Context(), strings.Repeat("1", 40), 5); len(got) > 0 || err != nil {
				t.Errorf("before a commit that is nowhere: %v, %v", got, err)
			}
			if _, err := g.FirstParents(t.Context(), "abc1234", 5); err == nil {
				t.Error("a short name is no error")
			}
		})
	}
}

// Where the server has a part of the history, the walk ends there, and no mirror is made
// again for it.
func TestFirstParentsOfAShallowServer(t *testing.T) {
	t.Parallel()
	origin, repo := sourcetest.New(t), sourcetest.New(t)
	for _, text := range []string{"1", "2", "3", "4"} {
		origin.Write(map[string]string{"f": text})
		origin.Commit(text)
	}
	if err := os.RemoveAll(repo.Dir()); err != nil {
		t.Fatal(err)
	}
	repo.GitIn(filepath.Dir(repo.Dir()), "clone", "--quiet", "--bare", "--no-local", "--depth=2", origin.URL(), repo.Dir())
	g := open(t, source.Config{URL: repo.URL()}, source.Options{})
	tip := latest(t, g).Revision
	got, err := g.FirstParents(t.Context(), tip, 100)
	if want := origin.Git("rev-parse", tip+"^"); err != nil || !slices.Equal(got, []string{want}) {
		t.Errorf("got %v, %v, want %s", got, err, want)
	}
	before := countPosts(repo)
	wantRevision(t, g, tip)
	if after := countPosts(repo); after != before {
		t.Errorf("%d packs were asked for, though nothing moved", after-before)
	}
}

// An earlier commit needs the signature that a followed one needs.
func TestEarlierCommitsAreVerified(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	alice := sourcetest.NewSSHKey(t)
	allowed := newSigners(t, map[string]ssh.Signer{"a": alice})
	commit := func(text string, signed bool) string {
		repo.Write(map[string]string{"f": text})
		made := repo.Commit(text)
		if signed {
			made = repo.Signed(made, repo.SSHSign(alice))
			repo.Branch("main", made)
		}
		return made
	}
	plain, signed, tip := commit("plain", false), commit("signed", true), commit("tip", true)
	refused := func(g *source.Git, revision string) {
		t.Helper()
		s, err := g.Earlier(t.Context(), revision)
		var ue *fault.UnavailableError
		if !errors.As(err, &ue) || ue.Reason != fault.Unverified || s.Tree != nil {
			t.Errorf("%s: %+v, %v, want a refusal", revision[:7], s, err)
		}
	}
	open1 := open(t, source.Config{URL: repo.URL()}, source.Options{})
	wantRevision(t, open1, tip)
	if s, err := open1.Earlier(t.Context(), plain); err != nil || files(t, s.Tree)["f"] != "plain" {
		t.Errorf("without a policy: %+v, %v", s, err)
	}
	g := open(t, source.Config{URL: repo.URL(), Verify: allowed.policy(signature.Commit)}, source.Options{})
	wantRevision(t, g, tip)
	if s, err := g.Earlier(t.Context(), signed); err != nil || s.Revision != signed || s.SignedBy == "" {
		t.Errorf("a signed one: %+v, %v", s, err)
	}
	refused(g, plain)
	// A tag vouches for the commit that it led to, and for none before that.
	repo.SignedTag("v1", tip, repo.SSHSign(alice))
	tagged := open(t, source.Config{URL: repo.URL(), Ref: source.Ref{Tag: "v1"}, Verify: allowed.policy(signature.Tag)}, source.Options{})
	wantRevision(t, tagged, tip)
	refused(tagged, signed)
}
