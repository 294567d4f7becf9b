package source_test

import (
	"crypto/rand"
	"net"
	"os"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/sourcetest"
)

func TestSSHHostKeys(t *testing.T) {
	t.Parallel()
	r := newSSHRepo(t)
	r.Write(map[string]string{"f": "1"})
	one := r.Commit("one")
	g := open(t, r.config(t), source.Options{})

	overwrite(t, r.known, "# nobody\n")
	ue := wantUnavailable(t, g, fault.UntrustedHost)
	line := strings.TrimSpace(r.ssh.KnownHosts())
	for _, want := range []string{"ssh-ed25519 SHA256:", r.known, line} {
		if !strings.Contains(ue.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, ue)
		}
	}
	overwrite(t, r.known, line) // The line that the error prints works.
	wantRevision(t, g, one)

	old := strings.Fields(line)[2]
	print := r.ssh.SetHostKey(sourcetest.NewSSHKey(t))
	ue = wantUnavailable(t, g, fault.UntrustedHost)
	for _, want := range []string{print, "line 1 of " + r.known, strings.TrimSpace(r.ssh.KnownHosts()), "somebody intercepts the connection"} {
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
	if ue := wantUnavailable(t, g, fault.UntrustedHost); !strings.Contains(ue.Error(), "revokes") {
		t.Errorf("the error does not say that the key is revoked: %v", ue)
	}

	for _, text := range []string{"not a line\n", "host ssh-ed25519 AAAA\n"} {
		overwrite(t, r.known, text)
		if ue := wantUnavailable(t, g, fault.UntrustedHost); !strings.Contains(ue.Error(), "read auth.knownHostsFile") {
			t.Errorf("the error does not name the file's key: %v", ue)
		}
	}
	if err := os.Remove(r.known); err != nil {
		t.Fatal(err)
	}
	wantUnavailable(t, g, fault.UntrustedHost)
	if n := len(r.ssh.Logins()); n != 2 {
		t.Errorf("%d logins, want the 2 to a trusted server", n)
	}
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
	wantUnavailable(t, open(t, r.config(t), source.Options{}), fault.UntrustedHost)
}

// TestSSHHostKeyOfAnotherType replaces the key by one of another type.
func TestSSHHostKeyOfAnotherType(t *testing.T) {
	t.Parallel()
	r := newSSHRepo(t)
	rsa, _ := rsaKey(t)
	overwrite(t, r.known, knownhosts.Line([]string{r.ssh.Addr()}, rsa.PublicKey())+"\n")
	ue := wantUnavailable(t, open(t, r.config(t), source.Options{}), fault.UntrustedHost)
	for _, want := range []string{"ssh-ed25519 SHA256:", "line 1 of " + r.known + " holds ssh-rsa " + ssh.FingerprintSHA256(rsa.PublicKey())} {
		if !strings.Contains(ue.Error(), want) {
			t.Errorf("the error lacks %q: %v", want, ue)
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
