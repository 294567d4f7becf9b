package source_test

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/sourcetest"
)

// sshRepo is a repository behind SSH with files that let weir in.
type sshRepo struct {
	*sourcetest.Repo
	ssh                *sourcetest.SSHServer
	key, known, phrase string
	dir                string
}

func newSSHRepo(t *testing.T) *sshRepo {
	t.Helper()
	r := &sshRepo{Repo: sourcetest.New(t), dir: t.TempDir()}
	r.ssh = r.ServeSSH()
	r.key, r.known, r.phrase = filepath.Join(r.dir, "key"), filepath.Join(r.dir, "known_hosts"), filepath.Join(r.dir, "passphrase")
	r.ssh.Allow(sourcetest.WriteSSHKey(t, r.key, ""))
	overwrite(t, r.known, "# ours\n"+r.ssh.KnownHosts())
	return r
}

func overwrite(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (r *sshRepo) config(t *testing.T) source.Config {
	t.Helper()
	return source.Config{URL: r.ssh.URL(), Dir: t.TempDir(), Auth: source.Auth{SSHKeyFile: r.key, KnownHostsFile: r.known}}
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
		wantUnavailable(t, open(t, cfg, source.Options{}), source.MissingRef)
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
	wantUnavailable(t, g, source.EmptyRepository)
	r.Write(map[string]string{"f": "1"})
	one := r.Commit("one")
	wantRevision(t, g, one)
	r.DeleteBranch("main")
	r.Branch("other", one)
	wantUnavailable(t, g, source.MissingRef)

	cfg := r.config(t)
	cfg.URL = strings.Replace(cfg.URL, "fleet.git", "nope.git", 1)
	if ue := wantUnavailable(t, open(t, cfg, source.Options{}), source.NotFound); !strings.Contains(ue.Error(), "does not appear to be a git repository") {
		t.Errorf("the error lacks what the server says: %v", ue)
	}
}

func TestSSHHostKeys(t *testing.T) {
	t.Parallel()
	r := newSSHRepo(t)
	r.Write(map[string]string{"f": "1"})
	one := r.Commit("one")
	g := open(t, r.config(t), source.Options{})

	overwrite(t, r.known, "# nobody\n")
	ue := wantUnavailable(t, g, source.UntrustedHost)
	line := strings.TrimSpace(r.ssh.KnownHosts())
	for _, want := range []string{"ssh-ed25519 SHA256:", r.known, line} {
		if !strings.Contains(ue.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, ue)
		}
	}
	overwrite(t, r.known, line) // What the error says works.
	wantRevision(t, g, one)

	old := strings.Fields(line)[2]
	print := r.ssh.SetHostKey(sourcetest.NewSSHKey(t))
	ue = wantUnavailable(t, g, source.UntrustedHost)
	for _, want := range []string{print, "line 1 of " + r.known, strings.TrimSpace(r.ssh.KnownHosts()), "somebody is in between"} {
		if !strings.Contains(ue.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, ue)
		}
	}
	if strings.Contains(ue.Error(), old) {
		t.Errorf("the error repeats the old key: %v", ue)
	}
	overwrite(t, r.known, line+"\n"+r.ssh.KnownHosts())
	wantRevision(t, g, one)
	overwrite(t, r.known, "@revoked "+r.ssh.KnownHosts())
	if ue := wantUnavailable(t, g, source.UntrustedHost); !strings.Contains(ue.Error(), "revokes") {
		t.Errorf("the error does not say that the key is revoked: %v", ue)
	}

	for _, text := range []string{"not a line\n", "host ssh-ed25519 AAAA\n"} {
		overwrite(t, r.known, text)
		if ue := wantUnavailable(t, g, source.UntrustedHost); !strings.Contains(ue.Error(), "read auth.knownHostsFile") {
			t.Errorf("the error does not name the file's key: %v", ue)
		}
	}
	if err := os.Remove(r.known); err != nil {
		t.Fatal(err)
	}
	wantUnavailable(t, g, source.UntrustedHost)
	if n := len(r.ssh.Logins()); n != 2 {
		t.Errorf("%d logins, want the 2 to a trusted server", n)
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
	say := func(reason source.Reason, want string) {
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
	say(source.AuthFailed, "is not there") // No passphrase file yet.
	overwrite(t, r.phrase, "hunter2\n")
	wantRevision(t, g, one) // A passphrase for a key that needs none is no fault.

	r.ssh.Allow(sourcetest.WriteSSHKey(t, r.key, "hunter2"))
	wantRevision(t, g, one) // The file changed, and is encrypted now.
	r.ssh.Allow(sourcetest.NewSSHKey(t).PublicKey())
	say(source.AuthFailed, "does not take the key ssh-ed25519 SHA256:")
	r.ssh.Allow(sourcetest.WriteSSHKey(t, r.key, "hunter2-else"))
	say(source.AuthFailed, "does not decrypt")
	overwrite(t, r.phrase, "hunter2-else")
	wantRevision(t, g, one)
	overwrite(t, r.key, "no key, hunter2")
	say(source.AuthFailed, "holds no private key")
	overwrite(t, r.key, "")
	say(source.AuthFailed, "holds no private key")

	sourcetest.WriteSSHKey(t, r.key, "hunter2")
	bare := open(t, r.config(t), source.Options{})
	g = bare
	say(source.AuthFailed, "is encrypted; give auth.passphraseFile")
}

// TestSSHUsesNothingOfTheUser shows that neither an agent nor ~/.ssh is asked.
func TestSSHUsesNothingOfTheUser(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	agent, err := net.Listen("unix", filepath.Join(home, "agent"))
	if err != nil {
		t.Fatal(err)
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
	wantUnavailable(t, open(t, r.config(t), source.Options{}), source.UntrustedHost)
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
		wantUnavailable(t, g, source.Unreachable)
	}
	r.ssh.CutAfter(0)
	r.ssh.Stall(true)
	cfg := r.config(t)
	wantUnavailable(t, open(t, cfg, source.Options{Timeout: 2 * time.Second}), source.Timeout)
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		for len(r.ssh.Commands()) == 0 {
			time.Sleep(time.Millisecond)
		}
		cancel()
	}()
	var ue *source.UnavailableError
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
	wantUnavailable(t, open(t, cfg, source.Options{}), source.Unreachable)
}

// TestSSHThroughProxies goes through a proxy that wants a password from a file.
func TestSSHThroughProxies(t *testing.T) {
	t.Parallel()
	r := newSSHRepo(t)
	r.Write(map[string]string{"f": "1"})
	one := r.Commit("one")
	for kind, tt := range map[string]struct {
		proxy  string
		reason source.Reason
		said   string
	}{
		"connect": {connectProxy(t, "bot", "hunter2"), source.AuthFailed, "407"},
		"socks":   {socksProxy(t, "bot", "hunter2"), source.Unreachable, "authentication failed"},
	} {
		t.Run(kind, func(t *testing.T) {
			secret := filepath.Join(r.dir, kind)
			cfg := r.config(t)
			cfg.Proxy, cfg.ProxyAuth = tt.proxy, source.ProxyAuth{Username: "bot", PasswordFile: secret}
			g := open(t, cfg, source.Options{})
			wantUnavailable(t, g, source.AuthFailed)
			overwrite(t, secret, "wrong-hunter2")
			if ue := wantUnavailable(t, g, tt.reason); strings.Contains(ue.Error(), "hunter2") || !strings.Contains(ue.Error(), tt.said) {
				t.Errorf("the error shows the password, or lacks %q: %v", tt.said, ue)
			}
			overwrite(t, secret, "hunter2\n")
			wantRevision(t, g, one)
		})
	}
}

// socksProxy is a SOCKS5 proxy for IPv4 (RFC 1928) with a password (RFC 1929).
func socksProxy(t *testing.T, user, pass string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	serve := func(c net.Conn) {
		read := func(n int) []byte {
			b := make([]byte, n)
			if _, err := io.ReadFull(c, b); err != nil {
				return make([]byte, n)
			}
			return b
		}
		read(int(read(2)[1]))
		_, _ = c.Write([]byte{5, 2})
		name := read(int(read(2)[1]))
		secret := read(int(read(1)[0]))
		if string(name) != user || string(secret) != pass {
			_, _ = c.Write([]byte{1, 1})
			_ = c.Close()
			return
		}
		_, _ = c.Write([]byte{1, 0})
		to := read(10)
		out, err := net.Dial("tcp", net.JoinHostPort(net.IP(to[4:8]).String(), fmt.Sprint(int(to[8])<<8|int(to[9]))))
		if err != nil {
			_ = c.Close()
			return
		}
		_, _ = c.Write([]byte{5, 0, 0, 1, 0, 0, 0, 0, 0, 0})
		wg.Go(func() { pipe(c, out) })
		pipe(out, c)
	}
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { serve(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return "socks5://" + l.Addr().String()
}

// connectProxy is an HTTP proxy that makes tunnels and forwards nothing else.
func connectProxy(t *testing.T, user, pass string) string {
	t.Helper()
	var wg sync.WaitGroup
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		probe := http.Request{Header: http.Header{"Authorization": req.Header["Proxy-Authorization"]}}
		if u, p, ok := probe.BasicAuth(); !ok || u != user || p != pass {
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
		if req.Method != http.MethodConnect {
			w.WriteHeader(http.StatusMethodNotAllowed)
			return
		}
		to, err := net.Dial("tcp", req.Host)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		from, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		fmt.Fprint(from, "HTTP/1.1 200 OK\r\n\r\n")
		for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
			wg.Go(func() { pipe(pair[0], pair[1]) })
		}
	}))
	t.Cleanup(func() {
		server.Close()
		wg.Wait()
	})
	return server.URL
}

// TestSSHHostKeyForms writes known_hosts in the ways that OpenSSH has.
func TestSSHHostKeyForms(t *testing.T) {
	t.Parallel()
	r := newSSHRepo(t)
	r.Write(map[string]string{"f": "1"})
	one := r.Commit("one")
	rsa, _ := rsaKey(t)
	authority := sourcetest.NewSSHKey(t)
	host, port, err := net.SplitHostPort(r.ssh.Addr())
	if err != nil {
		t.Fatal(err)
	}
	public := func(k ssh.Signer) string { return string(ssh.MarshalAuthorizedKey(k.PublicKey())) }
	name := "[" + host + "]:" + port
	own := strings.Fields(r.ssh.KnownHosts())[1:]
	r.ssh.AddHostKey(rsa)
	for form, text := range map[string]string{
		"hashed":           knownhosts.HashHostname(name) + " " + strings.Join(own, " ") + "\n",
		"one of two types": name + " " + public(rsa),
		"a list":           "other.example," + name + " " + public(rsa),
		"a pattern":        "*.example,[127.0.0.*]:" + port + " " + public(rsa),
	} {
		t.Run(form, func(t *testing.T) {
			overwrite(t, r.known, text)
			wantRevision(t, open(t, r.config(t), source.Options{}), one)
		})
	}

	cert := &ssh.Certificate{Key: rsa.PublicKey(), CertType: ssh.HostCert, ValidPrincipals: []string{host}, ValidBefore: ssh.CertTimeInfinity}
	if err := cert.SignCert(rand.Reader, authority); err != nil {
		t.Fatal(err)
	}
	certified, err := ssh.NewCertSigner(cert, rsa)
	if err != nil {
		t.Fatal(err)
	}
	r.ssh.AddHostKey(certified)
	overwrite(t, r.known, "@cert-authority "+name+" "+public(authority))
	wantRevision(t, open(t, r.config(t), source.Options{}), one) // An RSA key, of an Ed25519 authority.
	overwrite(t, r.known, "@cert-authority "+name+" "+public(sourcetest.NewSSHKey(t)))
	wantUnavailable(t, open(t, r.config(t), source.Options{}), source.UntrustedHost)
}

// TestSSHHostKeyOfAnotherType replaces the key by one of another type.
func TestSSHHostKeyOfAnotherType(t *testing.T) {
	t.Parallel()
	r := newSSHRepo(t)
	rsa, _ := rsaKey(t)
	overwrite(t, r.known, knownhosts.Line([]string{r.ssh.Addr()}, rsa.PublicKey())+"\n")
	ue := wantUnavailable(t, open(t, r.config(t), source.Options{}), source.UntrustedHost)
	for _, want := range []string{"ssh-ed25519 SHA256:", "line 1 of " + r.known + " holds ssh-rsa " + ssh.FingerprintSHA256(rsa.PublicKey())} {
		if !strings.Contains(ue.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, ue)
		}
	}
}

func TestSSHConfiguration(t *testing.T) {
	t.Parallel()
	full := source.Auth{SSHKeyFile: "k", KnownHostsFile: "h"}
	tests := map[string]struct {
		url  string
		auth source.Auth
		want string
	}{
		"no key":          {"ssh://git@h/x", source.Auth{KnownHostsFile: "h"}, "neither an agent nor ~/.ssh"},
		"no known hosts":  {"git@h:x", source.Auth{SSHKeyFile: "k"}, "ssh-keyscan"},
		"token":           {"git@h:x", source.Auth{SSHKeyFile: "k", KnownHostsFile: "h", TokenFile: "t"}, "are for https"},
		"key over https":  {"https://h/x", full, "are for ssh://"},
		"password in url": {"ssh://git:hunter2@h/x", full, "carries a password"},
		"no path":         {"ssh://git@h/", full, "needs a host and a path"},
		"dash path":       {"git@h:-x", full, "must not start with a dash"},
		"dash host":       {"ssh://-oProxyCommand=x/y", full, "no name of a host"},
		"query":           {"ssh://git@h/x?y", full, "no query"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := source.New(source.Config{Name: "f", URL: tt.url, Dir: "unused", Auth: tt.auth}, source.Options{})
			if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("New gave %v, want an error with %q", err, tt.want)
			}
		})
	}
	for _, url := range []string{"git@h:owner/x.git", "h:x", "ssh://git@[::1]:2222/~me/x", "git@[::1]:x"} {
		if _, err := source.New(source.Config{Name: "f", URL: url, Dir: "unused", Auth: full}, source.Options{}); err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestSSHRSAKeys makes sure that RSA keys work though SHA-1 does not.
func TestSSHRSAKeys(t *testing.T) {
	t.Parallel()
	r := newSSHRepo(t)
	r.Write(map[string]string{"f": "1"})
	one := r.Commit("one")
	signer, text := rsaKey(t)
	overwrite(t, r.key, text)
	r.ssh.Allow(signer.PublicKey())
	host, _ := rsaKey(t)
	r.ssh.SetHostKey(host)
	overwrite(t, r.known, r.ssh.KnownHosts())
	wantRevision(t, open(t, r.config(t), source.Options{}), one)
	if host.PublicKey().Type() != ssh.KeyAlgoRSA {
		t.Fatal("no RSA key")
	}
}
