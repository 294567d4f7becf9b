package source_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/signature"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// signers is an allowed signers file.
type signers struct {
	t    *testing.T
	file string
}

func newSigners(t *testing.T, keys map[string]ssh.Signer) signers {
	t.Helper()
	s := signers{t, filepath.Join(t.TempDir(), "allowed_signers")}
	s.allow(keys)
	return s
}

func (s signers) allow(keys map[string]ssh.Signer) {
	s.t.Helper()
	var text strings.Builder
	for who, k := range keys {
		text.WriteString(who + " " + string(ssh.MarshalAuthorizedKey(k.PublicKey())))
	}
	overwrite(s.t, s.file, text.String())
}

func (s signers) policy(mode signature.Mode) signature.Policy {
	return signature.Policy{Mode: mode, SSH: signature.SSH{AllowedSignersFile: s.file}}
}

// wantUnverified asserts that a revision is refused, by name, for a reason.
func wantUnverified(t *testing.T, g *source.Git, revision string, reasons ...string) {
	t.Helper()
	ue := wantUnavailable(t, g, fault.Unverified)
	if ue.Revision != revision {
		t.Errorf("revision %q is refused, want %s", ue.Revision, revision)
	}
	for _, r := range append(reasons, "what was applied last stays") {
		if !strings.Contains(ue.Error(), r) {
			t.Errorf("the error lacks %q: %v", r, ue)
		}
	}
}

func TestSignedCommits(t *testing.T) {
	t.Parallel()
	for _, kind := range []string{"http", "local"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			repo := sourcetest.New(t)
			alice, mallory := sourcetest.NewSSHKey(t), sourcetest.NewSSHKey(t)
			allowed := newSigners(t, map[string]ssh.Signer{"alice@example.com": alice})
			cfg := source.Config{URL: repo.URL(), Verify: allowed.policy(signature.Commit)}
			if kind == "local" {
				cfg.URL = repo.Dir()
			}
			commit := func(text string, sign sourcetest.Sign) string {
				t.Helper()
				repo.Write(map[string]string{"f": text})
				made := repo.Commit(text)
				if sign != nil {
					made = repo.Signed(made, sign)
					repo.Branch("main", made)
				}
				return made
			}
			zero := commit("zero", nil)
			g := open(t, cfg, source.Options{})
			wantUnverified(t, g, zero, "commit "+zero[:12]+" by Weir Test <test@weir.dev>: it is not signed")
			if _, ok := g.Last(); ok {
				t.Fatal("an unsigned commit is the last good one")
			}
			one := commit("one", repo.SSHSign(alice))
			if s := wantRevision(t, g, one); !strings.Contains(s.SignedBy, "(alice@example.com)") {
				t.Errorf("signed by %q", s.SignedBy)
			}

			two := commit("two", repo.SSHSign(mallory))
			print := ssh.FingerprintSHA256(mallory.PublicKey())
			wantUnverified(t, g, two, print, "which verify.ssh does not list")
			wantUnverified(t, g, two) // And again at each look.
			if s, ok := g.Last(); !ok || s.Revision != one || files(t, s.Tree)["f"] != "one" {
				t.Errorf("the last good one is %+v", s)
			}
			// A signature of another commit.
			stolen := repo.Signed(repo.Git("commit-tree", "-m", "x", two+"^{tree}"), func(string) string { return repo.SSHSign(alice)("else") })
			repo.Branch("main", stolen)
			wantUnverified(t, g, stolen, "is wrong: the content is not what was signed")
			// One that was made for files.
			twice := repo.Signed(two, repo.SSHSign(alice))
			repo.Branch("main", twice)
			wantUnverified(t, g, twice, "several signatures")
			file := repo.Signed(repo.Git("commit-tree", "-m", "x", two+"^{tree}"), repo.SSHSignFor(alice, "file"))
			repo.Branch("main", file)
			wantUnverified(t, g, file, `is for "file", not for Git`)

			repo.Branch("main", two)
			allowed.allow(map[string]ssh.Signer{"alice@example.com": alice, "m@example.com": mallory})
			wantRevision(t, g, two) // The file changed, the branch did not.
			overwrite(t, allowed.file, "alice@example.com\n")
			wantRevision(t, g, two) // weir keeps the revision that it took.
			three := commit("three", repo.SSHSign(alice))
			wantUnverified(t, g, three, "cannot be verified", allowed.file+":1")
			if err := os.Remove(allowed.file); err != nil {
				t.Fatal(err)
			}
			wantUnverified(t, g, three, "no such file")
			allowed.allow(map[string]ssh.Signer{"a": alice})
			wantRevision(t, g, three)
		})
	}
}

func TestSignedTags(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	alice := sourcetest.NewSSHKey(t)
	sign := repo.SSHSign(alice)
	allowed := newSigners(t, map[string]ssh.Signer{"alice@example.com": alice})
	repo.Write(map[string]string{"f": "1"})
	one := repo.Commit("one")
	repo.Write(map[string]string{"f": "2"})
	two := repo.Commit("two")
	signed := repo.Signed(two, sign)
	follow := func(ref source.Ref, mode signature.Mode) *source.Git {
		t.Helper()
		return open(t, source.Config{URL: repo.URL(), Dir: t.TempDir(), Ref: ref, Verify: allowed.policy(mode)}, source.Options{})
	}
	repo.SignedTag("v1.0.0", one, sign)
	repo.Tag("v1.1.0", two)
	for _, ref := range []source.Ref{{Tag: "v1.0.0"}, {SemVer: "1.0.x"}, {Name: "refs/tags/v1.0.0"}} {
		if s := wantRevision(t, follow(ref, signature.Tag), one); !strings.Contains(s.SignedBy, "alice") {
			t.Errorf("%+v: signed by %q", ref, s.SignedBy)
		}
		wantRevision(t, follow(ref, signature.Either), one)
		wantUnverified(t, follow(ref, signature.Commit), one, "it is not signed")
	}
	wantUnverified(t, follow(source.Ref{Tag: "v1.1.0"}, signature.Tag), two, "is not annotated", "git tag -s")
	repo.Tag("v1.1.0", signed)
	wantRevision(t, follow(source.Ref{Tag: "v1.1.0"}, signature.Either), signed)
	wantUnverified(t, follow(source.Ref{Tag: "v1.1.0"}, signature.Tag), signed, "is not annotated")
	repo.AnnotatedTag("v1.2.0", signed)
	wantUnverified(t, follow(source.Ref{Tag: "v1.2.0"}, signature.Tag), signed, `tag "v1.2.0" by Weir Test <test@weir.dev>: it is not signed`)
	wantRevision(t, follow(source.Ref{Tag: "v1.2.0"}, signature.Either), signed)
	wantUnverified(t, follow(source.Ref{Branch: "main"}, signature.Either), two, "no signed tag led", "it is not signed")
	// An old release under a new name.
	repo.Tag("v2.0.0", repo.Git("rev-parse", "refs/tags/v1.0.0"))
	wantUnverified(t, follow(source.Ref{Tag: "v2.0.0"}, signature.Tag), one, `under "v2.0.0" is one for "v1.0.0"`)

	if _, err := source.New(source.Config{Name: "f", URL: repo.Dir(), Verify: allowed.policy(signature.Tag)}, source.Options{}); err == nil || !strings.Contains(err.Error(), "names a tag") {
		t.Errorf("a signed tag of a branch: %v", err)
	}
}

// TestSignedRestart starts again while the remote is down, and with other keys.
func TestSignedRestart(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	alice := sourcetest.NewSSHKey(t)
	allowed := newSigners(t, map[string]ssh.Signer{"a": alice})
	repo.Write(map[string]string{"f": "1"})
	one := repo.Signed(repo.Commit("one"), repo.SSHSign(alice))
	repo.Branch("main", one)
	repo.SignedTag("v1.0.0", repo.Git("rev-parse", "main"), repo.SSHSign(alice))
	plain := repo.Git("commit-tree", "-m", "plain", one+"^{tree}")
	repo.SignedTag("v1.1.0", plain, repo.SSHSign(alice))
	for name, tt := range map[string]struct {
		ref  source.Ref
		mode signature.Mode
		want string
	}{
		"commit":        {source.Ref{}, signature.Commit, one},
		"tag":           {source.Ref{Tag: "v1.1.0"}, signature.Tag, plain},
		"newest tag":    {source.Ref{SemVer: "1.x"}, signature.Tag, plain},
		"either by tag": {source.Ref{SemVer: "1.x"}, signature.Either, plain},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := source.Config{URL: repo.URL(), Dir: t.TempDir(), Ref: tt.ref, Verify: allowed.policy(tt.mode)}
			wantRevision(t, open(t, cfg, source.Options{}), tt.want)
			repo.Down(true)
			defer repo.Down(false)
			again := func() string {
				t.Helper()
				g := open(t, cfg, source.Options{})
				s, _ := g.Last()
				return s.Revision
			}
			if got := again(); got != tt.want {
				t.Errorf("after a restart the last good one is %q, want %s", got, tt.want)
			}
			allowed.allow(map[string]ssh.Signer{"b": sourcetest.NewSSHKey(t)})
			if got := again(); got != "" {
				t.Errorf("with other keys the last good one is %s, want none", got)
			}
			allowed.allow(map[string]ssh.Signer{"a": alice})
			if got := again(); got != tt.want {
				t.Errorf("with the keys again the last good one is %q, want %s", got, tt.want)
			}
		})
	}
	// A revision that an earlier process took without a policy does not count under one.
	cfg := source.Config{URL: repo.URL(), Dir: t.TempDir(), Ref: source.Ref{Name: "refs/tags/v1.1.0"}}
	wantRevision(t, open(t, cfg, source.Options{}), plain)
	cfg.Verify = allowed.policy(signature.Commit)
	if s, ok := open(t, cfg, source.Options{}).Last(); ok {
		t.Errorf("%s is good though it is not signed", s.Revision)
	}
}

// TestDamageUnderAnUnsignedCommit loses the mirror while the branch names what is
// refused: the last good commit must come back, not the new one.
func TestDamageUnderAnUnsignedCommit(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	alice := sourcetest.NewSSHKey(t)
	allowed := newSigners(t, map[string]ssh.Signer{"a": alice})
	repo.Write(map[string]string{"f": "1"})
	one := repo.Signed(repo.Commit("one"), repo.SSHSign(alice))
	repo.Branch("main", one)
	cfg := source.Config{URL: repo.URL(), Dir: t.TempDir(), Verify: allowed.policy(signature.Commit)}
	g := open(t, cfg, source.Options{})
	wantRevision(t, g, one)
	repo.Write(map[string]string{"f": "2"})
	two := repo.Commit("two")
	wantUnverified(t, g, two)
	g.Close()
	each(t, mirrorDir(t, cfg.Dir), "objects/pack/*.pack", func(file string) { garble(t, file) })

	g = open(t, cfg, source.Options{})
	if _, ok := g.Last(); ok {
		t.Fatal("a damaged mirror gave a commit")
	}
	wantUnverified(t, g, two) // The mirror is made again here.
	g.Close()
	g = open(t, cfg, source.Options{})
	s, ok := g.Last()
	if !ok || s.Revision != one || files(t, s.Tree)["f"] != "1" {
		t.Errorf("the last good one is %+v, want %s", s, one)
	}
}
