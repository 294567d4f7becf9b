package transport

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"

	"github.com/go-git/go-git/v5/plumbing/format/pktline"
	"github.com/go-git/go-git/v5/plumbing/protocol/packp"
	"github.com/go-git/go-git/v5/plumbing/transport"
	"golang.org/x/crypto/ssh"

	"github.com/weir-gitops/weir/source/fault"
)

// sshRemote is a repository behind SSH. It uses its own SSH client. go-git's client reads ~/.ssh/config, uses
// the SSH agent of the user who started the process, and cannot be cancelled while it connects.
//
// Each session is a connection with a login, so each poll logs in once.
type sshRemote struct {
	loc   sshLocation
	host  string
	auth  Auth
	proxy proxySettings
	keys  keyCache
}

// sshLocation is the location of a repository over SSH.
type sshLocation struct {
	user, addr string
	// path is the argument of git-upload-pack.
	path string
}

func newSSHRemote(loc Location, cfg Settings) (*sshRemote, error) {
	if err := cfg.Auth.validateSSH(); err != nil {
		return nil, err
	}
	if cfg.CAFile != "" || cfg.ClientCert != (ClientCert{}) {
		return nil, errors.New("caFile and clientCert are for https; over SSH auth.knownHostsFile says which server is trusted")
	}
	p, err := newProxySettings(cfg)
	if err != nil {
		return nil, err
	}
	return &sshRemote{loc: *loc.ssh, host: loc.ssh.display(), auth: cfg.Auth, proxy: p}, nil
}

// display returns the location without the user.
func (l sshLocation) display() string {
	host := strings.TrimSuffix(l.addr, ":22")
	return fault.Plain("ssh://" + host + "/" + strings.TrimPrefix(l.path, "/"))
}

func (r *sshRemote) Close() {}

// Connect starts git-upload-pack over SSH and reads the list of refs. keep selects the refs of the list.
// The connection is closed when ctx ends.
func (r *sshRemote) Connect(ctx context.Context, keep refChoice) (*Session, error) {
	login, err := r.login()
	if err != nil {
		return nil, err
	}
	conn, err := r.proxy.dial(ctx, r.loc.addr)
	if err != nil {
		return nil, networkFault(ctx, r.host, err)
	}
	u := &sshUploader{host: r.host, conn: conn}
	// The library does not support contexts. Closing the connection ends everything that waits.
	u.unbind = context.AfterFunc(ctx, func() { _ = conn.Close() })
	if err := u.open(r, login); err != nil {
		loggedIn := u.client != nil
		u.close()
		if loggedIn {
			return nil, u.explain(ctx, err)
		}
		return nil, login.fault(ctx, r, err)
	}
	s, err := u.advertisement(ctx, keep)
	if err != nil {
		u.close()
		return nil, err
	}
	return s, nil
}

// sshUploader is a running git-upload-pack.
type sshUploader struct {
	host     string
	conn     net.Conn
	unbind   func() bool
	client   *ssh.Client
	session  *ssh.Session
	in       io.WriteCloser
	out      *bufio.Reader
	overhead *overhead
	stderr   cappedText
}

// open logs in and starts git-upload-pack for the path of the remote. u.client is set once the login has
// succeeded; the caller needs this to explain an error. After an error, the caller closes u.
func (u *sshUploader) open(r *sshRemote, l *login) error {
	c, channels, requests, err := ssh.NewClientConn(u.conn, r.loc.addr, l.config)
	if err != nil {
		return err
	}
	u.client = ssh.NewClient(c, channels, requests)
	if u.session, err = u.client.NewSession(); err != nil {
		return err
	}
	if u.in, err = u.session.StdinPipe(); err != nil {
		return err
	}
	out, err := u.session.StdoutPipe()
	if err != nil {
		return err
	}
	u.out = bufio.NewReaderSize(out, 64<<10)
	u.session.Stderr = &u.stderr
	return u.session.Start("git-upload-pack " + shellQuote(r.loc.path))
}

// shellQuote quotes a word for the server's shell, like Git. The exclamation mark is quoted for csh.
func shellQuote(s string) string {
	return "'" + strings.NewReplacer("'", `'\''`, "!", `'\!'`).Replace(s) + "'"
}

// advertisement reads the refs. It must not read beyond the end of the list, because the stream continues.
func (u *sshUploader) advertisement(ctx context.Context, keep refChoice) (*Session, error) {
	s := &Session{Host: u.host, up: u, Adv: packp.NewAdvRefs(), overhead: overhead{left: maxOverheadBytes}}
	u.overhead = &s.overhead
	size, err := u.out.Peek(4)
	if err != nil {
		return nil, u.refused(ctx, err)
	}
	var n int
	if _, err := fmt.Sscanf(string(size), "%04x", &n); err != nil || n > 64<<10 {
		return nil, fault.New(fault.Unsupported, "%s does not answer as a Git server (%s); check the url", u.host, fault.Plain(string(size)))
	}
	line, err := u.out.Peek(n)
	if err != nil {
		return nil, u.refused(ctx, err)
	}
	s.Caps = parseCapabilities(line)
	if err := s.Caps.checkFormat(); err != nil {
		return nil, err
	}
	listed := filterRefs(limitRefs(ctx, u.out), keep, s)
	if err := s.Adv.Decode(listed); err != nil {
		var said *pktline.ErrorLine
		switch {
		case errors.As(err, &said):
			return nil, fault.New(fault.NotFound, "%s: the server says: %s", u.host, fault.Plain(said.Text))
		case errors.Is(err, packp.ErrEmptyAdvRefs):
			return nil, emptyRepository(u.host)
		}
		return nil, u.explain(ctx, err)
	}
	if s.Adv.IsEmpty() {
		return nil, emptyRepository(u.host)
	}
	transport.FilterUnsupportedCapabilities(s.Adv.Capabilities)
	return s, nil
}

func emptyRepository(host string) error {
	return &fault.Error{Reason: fault.EmptyRepository, Text: host + " has no commit yet", Err: transport.ErrEmptyRemoteRepository}
}

// refused returns the error if the server ended before it sent anything. The only information is its output
// outside of the protocol.
func (u *sshUploader) refused(ctx context.Context, err error) error {
	if ctx.Err() != nil || !errors.Is(err, io.EOF) {
		return u.explain(ctx, err)
	}
	// The exit status adds nothing to the text. Waiting makes sure that the text is complete.
	_ = u.session.Wait()
	said := u.stderr.String()
	if said == "" {
		return fault.New(fault.Unreachable, "%s: the server ended the session without an answer", u.host)
	}
	return fault.New(fault.NotFound, "%s: the server says: %s", u.host, said)
}

// UploadPack requests a pack in a single message, as over stateless HTTP, so that both kinds are read in the
// same way.
func (u *sshUploader) UploadPack(_ context.Context, req *packp.UploadPackRequest) (*packp.UploadPackResponse, error) {
	if err := req.Validate(); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := req.UploadRequest.Encode(&b); err != nil {
		return nil, fmt.Errorf("ask for a pack: %w", err)
	}
	if err := req.UploadHaves.Encode(&b, false); err != nil {
		return nil, fmt.Errorf("ask for a pack: %w", err)
	}
	if err := pktline.NewEncoder(&b).EncodeString("done\n"); err != nil {
		return nil, fmt.Errorf("ask for a pack: %w", err)
	}
	if _, err := u.in.Write(b.Bytes()); err != nil {
		return nil, err
	}
	if err := u.in.Close(); err != nil {
		return nil, err
	}
	resp := packp.NewUploadPackResponse(req)
	if err := resp.Decode(io.NopCloser(u.overhead.over(u.out))); err != nil {
		return nil, err
	}
	return resp, nil
}

// explain adds a reason to an error.
func (u *sshUploader) explain(ctx context.Context, err error) error {
	if said := u.stderr.String(); said != "" && ctx.Err() == nil {
		return fault.New(fault.Unreachable, "%s: the server says: %s", u.host, said)
	}
	return networkFault(ctx, u.host, err)
}

func (u *sshUploader) close() {
	u.unbind()
	_ = u.conn.Close() // all needed data was read
	if u.client != nil {
		_ = u.client.Wait() // it ends with the connection
	}
}

// cappedText keeps the beginning of a server's output outside of the protocol.
type cappedText struct {
	mu  sync.Mutex
	buf []byte
}

func (c *cappedText) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.buf = append(c.buf, p[:min(len(p), maxErrorBody-len(c.buf))]...)
	return len(p), nil
}

func (c *cappedText) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fault.Plain(string(c.buf))
}
