package source_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/sourcetest"
	"github.com/weir-gitops/weir/source/transport"
)

// sshRepo is a repository behind SSH with files that let weir in.
type sshRepo struct {
	*sourcetest.Repo
	ssh                *sourcetest.SSHServer
	key, known, phrase string
	dir                string
}

func newSSHRepo(t testing.TB) *sshRepo {
	t.Helper()
	r := &sshRepo{Repo: sourcetest.New(t), dir: t.TempDir()}
	r.ssh = r.ServeSSH()
	r.key, r.known, r.phrase = filepath.Join(r.dir, "key"), filepath.Join(r.dir, "known_hosts"), filepath.Join(r.dir, "passphrase")
	r.ssh.Allow(sourcetest.WriteSSHKey(t, r.key, ""))
	overwrite(t, r.known, "# ours\n"+r.ssh.KnownHosts())
	return r
}

func overwrite(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (r *sshRepo) config(t testing.TB) source.Config {
	t.Helper()
	return source.Config{URL: r.ssh.URL(), Dir: t.TempDir(), Settings: transport.Settings{Auth: transport.Auth{SSHKeyFile: r.key, KnownHostsFile: r.known}}}
}

func TestSSH(t *testing.T) {
	t.Parallel()
	r := newSSHRepo(t)
	r.Write(map[string]string{"f": noise(300_000), "g/h": "1"})
	one := r.Commit("one")
	g := open(t, r.config(t), source.Options{})
	if s := wantRevision(t, g, one); s.Ref != "refs/heads/main" {
		t.Errorf("ref %s, want the branch that HEAD names", s.Ref)
	}
	wantRevision(t, g, one)
	r.Write(map[string]string{"f": "2"})
	two := r.Commit("two")
	wantRevision(t, g, two)
	r.Branch("main", one) // A force-push.
	wantRevision(t, g, one)
	r.Write(map[string]string{"f": "3"})
	wantRevision(t, g, r.Commit("three"))

	for _, ref := range []source.Ref{{Branch: "nope"}, {Tag: "nope"}, {Name: "refs/nope/1"}} {
		cfg := r.config(t)
		cfg.Ref = ref
		wantUnavailable(t, open(t, cfg, source.Options{}), fault.MissingRef)
	}
	pinned := r.config(t)
	pinned.Ref.Commit = one
	wantRevision(t, open(t, pinned, source.Options{}), one)

	for _, u := range r.ssh.Logins() {
		if u != "git" {
			t.Errorf("logged in as %q, want git", u)
		}
	}
	for _, c := range r.ssh.Commands() {
		if c != "git-upload-pack '/fleet.git'" {
			t.Errorf("ran %q", c)
		}
	}
}

// TestSSHForms asks an address that git itself would ask.
func TestSSHForms(t *testing.T) {
	t.Parallel()
	r := newSSHRepo(t)
	r.Write(map[string]string{"f": "1"})
	one := r.Commit("one")
	for _, url := range []string{
		"ssh://" + r.ssh.Addr() + "/fleet.git",
		"ssh://deploy@" + r.ssh.Addr() + "/fleet.git/",
		"git+ssh://git@" + r.ssh.Addr() + "/fleet.git",
	} {
		cfg := r.config(t)
		cfg.URL = url
		wantRevision(t, open(t, cfg, source.Options{}), one)
	}
	if logins := strings.Join(r.ssh.Logins(), " "); logins != "git deploy git" {
		t.Errorf("users %s", logins)
	}
}

func TestSSHEmptyAndMissing(t *testing.T) {
	t.Parallel()
	r := newSSHRepo(t)
	g := open(t, r.config(t), source.Options{})
	wantUnavailable(t, g, fault.EmptyRepository)
	r.Write(map[string]string{"f": "1"})
	one := r.Commit("one")
	wantRevision(t, g, one)
	r.DeleteBranch("main")
	r.Branch("other", one)
	wantUnavailable(t, g, fault.MissingRef)

	cfg := r.config(t)
	cfg.URL = strings.Replace(cfg.URL, "fleet.git", "nope.git", 1)
	if ue := wantUnavailable(t, open(t, cfg, source.Options{}), fault.NotFound); !strings.Contains(ue.Error(), "does not appear to be a git repository") {
		t.Errorf("the error lacks what the server says: %v", ue)
	}
}

func TestSSHKeys(t *testing.T) {
	t.Parallel()
	r := newSSHRepo(t)
	r.Write(map[string]string{"f": "1"})
	one := r.Commit("one")
	cfg := r.config(t)
	cfg.Auth.PassphraseFile = r.phrase
	g := open(t, cfg, source.Options{})
	say := func(reason fault.Reason, want string) {
		t.Helper()
		ue := wantUnavailable(t, g, reason)
		if !strings.Contains(ue.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, ue)
		}
		for _, secret := range []string{"hunter2", "BEGIN OPENSSH", "b3BlbnNzaC1rZXktdjE"} {
			if strings.Contains(ue.Error(), secret) {
				t.Errorf("the error shows a secret: %v", ue)
			}
		}
	}
	say(fault.AuthFailed, "is not there") // No passphrase file yet.
	overwrite(t, r.phrase, "hunter2\n")
	wantRevision(t, g, one) // A passphrase for a key that needs none is no fault.

	r.ssh.Allow(sourcetest.WriteSSHKey(t, r.key, "hunter2"))
	wantRevision(t, g, one) // The file changed, and is encrypted now.
	r.ssh.Allow(sourcetest.NewSSHKey(t).PublicKey())
	say(fault.AuthFailed, "does not accept the key ssh-ed25519 SHA256:")
	r.ssh.Allow(sourcetest.WriteSSHKey(t, r.key, "hunter2-else"))
	say(fault.AuthFailed, "do not decrypt")
	overwrite(t, r.phrase, "hunter2-else")
	wantRevision(t, g, one)
	overwrite(t, r.key, "no key, hunter2")
	say(fault.AuthFailed, "no readable private key")
	overwrite(t, r.key, "")
	say(fault.AuthFailed, "no readable private key")

	sourcetest.WriteSSHKey(t, r.key, "hunter2")
	bare := open(t, r.config(t), source.Options{})
	g = bare
	say(fault.AuthFailed, "is encrypted; give auth.passphraseFile")
}

// TestSSHUsesNothingOfTheUser shows that neither an agent nor ~/.ssh is asked.
func TestSSHUsesNothingOfTheUser(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	agent, err := net.Listen("unix", filepath.Join(home, "agent"))
	if err != nil {
		t.Skipf("no socket for an agent: %v", err) // Its path may be too long.
	}
	defer agent.Close()
	var asked sync.Map
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := agent.Accept()
			if err != nil {
				return
			}
			asked.Store("agent", true)
			_ = c.Close()
		}
	}()
	t.Setenv("SSH_AUTH_SOCK", agent.Addr().String())
	r := newSSHRepo(t)
	r.Write(map[string]string{"f": "1"})
	one := r.Commit("one")
	if err := os.MkdirAll(filepath.Join(home, ".ssh"), 0o700); err != nil {
		t.Fatal(err)
	}
	overwrite(t, filepath.Join(home, ".ssh", "config"), "Host *\n  Hostname nowhere.invalid\n  User nobody\n")
	overwrite(t, filepath.Join(home, ".ssh", "known_hosts"), r.ssh.KnownHosts())
	wantRevision(t, open(t, r.config(t), source.Options{}), one)
	overwrite(t, r.known, "")
	wantUnavailable(t, open(t, r.config(t), source.Options{}), fault.UntrustedHost)
	_ = agent.Close()
	<-done
	if _, ok := asked.Load("agent"); ok {
		t.Error("the agent was asked")
	}
}

func TestSSHFailures(t *testing.T) {
	t.Parallel()
	r := newSSHRepo(t)
	r.Write(map[string]string{"f": "1"})
	one := r.Commit("one")
	g := open(t, r.config(t), source.Options{})
	wantRevision(t, g, one)
	r.Write(map[string]string{"f": noise(200_000)})
	two := r.Commit("two")
	for _, n := range []int64{1, 40, 1000, 150_000} {
		r.ssh.CutAfter(n)
		wantUnavailable(t, g, fault.Unreachable)
	}
	r.ssh.CutAfter(0)
	r.ssh.Stall(true)
	cfg := r.config(t)
	wantUnavailable(t, open(t, cfg, source.Options{Timeout: 2 * time.Second}), fault.Timeout)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for len(r.ssh.Commands()) == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	var ue *fault.UnavailableError
	if _, err := g.Latest(ctx); !errors.Is(err, context.Canceled) || errors.As(err, &ue) {
		t.Errorf("Latest gave %v, want the context's error alone", err)
	}
	r.ssh.Stall(false)
	wantRevision(t, g, two)

	talker, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer talker.Close()
	go func() {
		for {
			c, err := talker.Accept()
			if err != nil {
				return
			}
			fmt.Fprint(c, "220 mail.example ESMTP\r\n")
			_ = c.Close()
		}
	}()
	cfg = r.config(t)
	cfg.URL = "ssh://git@" + talker.Addr().String() + "/x.git"
	wantUnavailable(t, open(t, cfg, source.Options{}), fault.Unreachable)
}

func TestSSHConfiguration(t *testing.T) {
	t.Parallel()
	full := transport.Auth{SSHKeyFile: "k", KnownHostsFile: "h"}
	tests := map[string]struct {
		url  string
		auth transport.Auth
		want string
	}{
		"no key":          {"ssh://git@h/x", transport.Auth{KnownHostsFile: "h"}, "neither an agent nor ~/.ssh"},
		"no known hosts":  {"git@h:x", transport.Auth{SSHKeyFile: "k"}, "ssh-keyscan"},
		"token":           {"git@h:x", transport.Auth{SSHKeyFile: "k", KnownHostsFile: "h", TokenFile: "t"}, "are for https"},
		"key over https":  {"https://h/x", full, "are for ssh://"},
		"password in url": {"ssh://git:hunter2@h/x", full, "contains a password"},
		"no path":         {"ssh://git@h/", full, "needs a host and a path"},
		"dash path":       {"git@h:-x", full, "must not start with a dash"},
		"dash host":       {"ssh://-oProxyCommand=x/y", full, "not a valid name for a host"},
		"query":           {"ssh://git@h/x?y", full, "no query"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := source.New(source.Config{Name: "f", URL: tt.url, Dir: "unused", Settings: transport.Settings{Auth: tt.auth}}, source.Options{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("New gave %v, want an error with %q", err, tt.want)
			}
		})
	}
	for _, url := range []string{"git@h:owner/x.git", "h:x", "ssh://git@[::1]:2222/~me/x", "git@[::1]:x"} {
		if _, err := source.New(source.Config{Name: "f", URL: url, Dir: "unused", Settings: transport.Settings{Auth: full}}, source.Options{}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}
