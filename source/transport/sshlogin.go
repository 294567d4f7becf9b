package transport

import (
	"context"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/skeema/knownhosts"
	"golang.org/x/crypto/ssh"
	xknownhosts "golang.org/x/crypto/ssh/knownhosts"

	"github.com/weir-gitops/weir/source/fault"
)

// maxKnownHostsBytes bounds the size of a known_hosts file.
const maxKnownHostsBytes = 4 << 20

// hostAlgorithms are the types of host keys. The first ones are the ones that users should store if no key is
// known.
var hostAlgorithms = []string{
	ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384, ssh.KeyAlgoECDSA521, ssh.KeyAlgoRSASHA512, ssh.KeyAlgoRSASHA256,
}

// certAlgorithms are the types of host certificates. An authority of any type can sign keys of any type.
var certAlgorithms = []string{
	ssh.CertAlgoED25519v01, ssh.CertAlgoECDSA256v01, ssh.CertAlgoECDSA384v01, ssh.CertAlgoECDSA521v01, ssh.CertAlgoRSASHA512v01, ssh.CertAlgoRSASHA256v01,
}

// preferred sorts the known key types of a host first, so that a server with several keys shows one of these.
// The other types follow. If a server no longer has a known key, it shows another one, and weir can report
// that.
func preferred(known []string) []string {
	var out []string
	add := func(list []string) {
		for _, a := range list {
			// SHA-1 is omitted, although the type of an RSA key has the same name.
			if !slices.Contains(out, a) && a != ssh.KeyAlgoRSA && a != ssh.CertAlgoRSAv01 {
				out = append(out, a)
			}
		}
	}
	add(known)
	if slices.ContainsFunc(known, func(a string) bool { return strings.Contains(a, "-cert-v01@") }) {
		add(certAlgorithms)
	}
	add(hostAlgorithms)
	return out
}

// login is an attempt to log in, and its progress.
type login struct {
	config *ssh.ClientConfig
	// refusal is the reason why the server's key was not accepted.
	refusal error
	// offered is true if the server was trusted and requested our key.
	offered bool
	key     ssh.PublicKey
}

// login returns the data for a login over SSH. It reads the key and the known hosts at every connection,
// because the files may have been replaced.
func (r *sshRemote) login() (*login, error) {
	db, err := r.auth.knownHosts()
	if err != nil {
		return nil, err
	}
	signer, err := r.keys.signer(r.auth)
	if err != nil {
		return nil, err
	}
	l := &login{key: signer.PublicKey()}
	check := db.HostKeyCallback()
	l.config = &ssh.ClientConfig{
		User: r.loc.user,
		Auth: []ssh.AuthMethod{ssh.PublicKeysCallback(func() ([]ssh.Signer, error) {
			l.offered = true
			return []ssh.Signer{signer}, nil
		})},
		HostKeyCallback: func(host string, addr net.Addr, key ssh.PublicKey) error {
			if err := check(host, addr, key); err != nil {
				l.refusal = r.hostKeyFault(err, key)
			}
			return l.refusal
		},
		HostKeyAlgorithms: preferred(db.HostKeyAlgorithms(r.loc.addr)),
		ClientVersion:     "SSH-2.0-weir",
	}
	return l, nil
}

// knownHosts reads the file with the trusted servers.
func (a Auth) knownHosts() (*knownhosts.HostKeyDB, error) {
	info, err := os.Stat(a.KnownHostsFile)
	switch {
	case err != nil:
		return nil, fault.New(fault.UntrustedHost, "read auth.knownHostsFile: %v", err)
	case info.Size() > maxKnownHostsBytes:
		return nil, fault.New(fault.UntrustedHost, "read auth.knownHostsFile: %s has %d bytes, which is not a list of hosts", a.KnownHostsFile, info.Size())
	}
	db, err := knownhosts.NewDB(a.KnownHostsFile)
	if err != nil {
		return nil, fault.New(fault.UntrustedHost, "read auth.knownHostsFile: %s", fault.Plain(err.Error()))
	}
	return db, nil
}

// hostKeyFault returns an error with the key that the server showed, and the line to add if the key is
// correct.
func (r *sshRemote) hostKeyFault(err error, key ssh.PublicKey) error {
	file := r.auth.KnownHostsFile
	shown := fmt.Sprintf("%s shows the host key %s %s", r.host, key.Type(), ssh.FingerprintSHA256(key))
	if cert, ok := key.(*ssh.Certificate); ok {
		return fault.New(fault.UntrustedHost, "%s, a certificate of %s that %s does not allow: %s", shown, ssh.FingerprintSHA256(cert.SignatureKey), file, fault.Plain(err.Error()))
	}
	line := xknownhosts.Line([]string{r.loc.addr}, key)
	var revoked *xknownhosts.RevokedError
	var ke *xknownhosts.KeyError
	switch {
	case errors.As(err, &revoked):
		return fault.New(fault.UntrustedHost, "%s, which line %d of %s revokes; somebody may be intercepting the connection", shown, revoked.Revoked.Line, file)
	case !errors.As(err, &ke):
		return fault.New(fault.UntrustedHost, "%s: %s", shown, fault.Plain(err.Error()))
	case len(ke.Want) == 0:
		return fault.New(fault.UntrustedHost, "%s, and %s holds none for it; if its operator publishes this fingerprint, add this line to the file: %s", shown, file, line)
	}
	old := ke.Want[0]
	return fault.New(fault.UntrustedHost, "%s, but line %d of %s holds %s %s: the server was replaced, or somebody intercepts the connection; if its operator says that this is the new key, replace it by this line: %s",
		shown, old.Line, file, old.Key.Type(), ssh.FingerprintSHA256(old.Key), line)
}

// fault converts an error of the login to a fault with a reason.
func (l *login) fault(ctx context.Context, r *sshRemote, err error) error {
	var ne net.Error
	dropped := errors.As(err, &ne) || errors.Is(err, io.EOF) || errors.Is(err, net.ErrClosed)
	switch {
	case l.refusal != nil:
		return l.refusal
	case l.offered && ctx.Err() == nil && !dropped:
		return fault.New(fault.AuthFailed, "%s does not accept the key %s %s for user %q", r.host, l.key.Type(), ssh.FingerprintSHA256(l.key), fault.Plain(r.loc.user))
	}
	return networkFault(ctx, r.host, err)
}

// keyCache caches the private key while its files do not change. Decrypting a key takes a large fraction of a
// second by design.
type keyCache struct {
	mu   sync.Mutex
	sum  [sha256.Size]byte
	held ssh.Signer
}

// signer returns the private key in the current files.
func (c *keyCache) signer(a Auth) (ssh.Signer, error) {
	text, err := readCredential(a.SSHKeyFile)
	if err != nil {
		return nil, err
	}
	var passphrase string
	if a.PassphraseFile != "" {
		if passphrase, err = readSecret(a.PassphraseFile); err != nil {
			return nil, err
		}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s%s", len(text), text, passphrase))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.held == nil || c.sum != sum {
		signer, err := parseSigner(a, text, passphrase)
		if err != nil {
			return nil, err
		}
		c.sum, c.held = sum, signer
	}
	return c.held, nil
}

// parseSigner parses a private key. Its errors do not contain the parser's message, which may quote the key.
func parseSigner(a Auth, text []byte, passphrase string) (ssh.Signer, error) {
	signer, err := ssh.ParsePrivateKey(text)
	var encrypted *ssh.PassphraseMissingError
	if !errors.As(err, &encrypted) {
		if err != nil {
			return nil, fault.New(fault.AuthFailed, "auth.sshKeyFile: %s has no readable private key; create one with ssh-keygen -t ed25519", a.SSHKeyFile)
		}
		return signer, nil
	}
	if passphrase == "" {
		return nil, fault.New(fault.AuthFailed, "auth.sshKeyFile: the key in %s is encrypted; give auth.passphraseFile", a.SSHKeyFile)
	}
	signer, err = ssh.ParsePrivateKeyWithPassphrase(text, []byte(passphrase))
	switch {
	case errors.Is(err, x509.IncorrectPasswordError):
		return nil, fault.New(fault.AuthFailed, "auth.passphraseFile: the contents of %s do not decrypt %s", a.PassphraseFile, a.SSHKeyFile)
	case err != nil:
		return nil, fault.New(fault.AuthFailed, "auth.sshKeyFile: the key in %s is encrypted in a form that weir cannot decrypt; rewrite it with ssh-keygen -p -f FILE", a.SSHKeyFile)
	}
	return signer, nil
}

// readCredential reads a small file.
func readCredential(file string) ([]byte, error) {
	info, err := os.Stat(file)
	if err == nil && info.Size() > maxSecretBytes {
		return nil, fault.New(fault.AuthFailed, "read credentials: %s has %d bytes, which is not a credential", file, info.Size())
	}
	if err == nil {
		var data []byte
		if data, err = os.ReadFile(file); err == nil {
			return data, nil
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fault.New(fault.AuthFailed, "read credentials: %s is not there", file)
	}
	return nil, fault.New(fault.AuthFailed, "read credentials: %v", err)
}
