package sourcetest

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// SSHServer serves a repository with git upload-pack over SSH, for a single key. Tests can make it fail from
// the next connection on.
type SSHServer struct {
	repo *Repo
	l    net.Listener
	wg   sync.WaitGroup

	mu       sync.Mutex
	hostKey  ssh.Signer
	more     []ssh.Signer
	client   ssh.PublicKey
	logins   []string
	commands []string
	conns    map[net.Conn]bool
	cut      int64
	stall    bool
}

// ServeSSH starts an SSH server for the repository. It ends with the test.
func (r *Repo) ServeSSH() *SSHServer {
	r.t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	s := &SSHServer{repo: r, l: l, conns: map[net.Conn]bool{}, hostKey: NewSSHKey(r.t)}
	s.wg.Go(s.accept)
	r.t.Cleanup(func() {
		_ = l.Close()
		s.Drop()
		s.wg.Wait()
	})
	return s
}

// NewSSHKey returns a new Ed25519 key.
func NewSSHKey(t testing.TB) ssh.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.NewSignerFromKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// WriteSSHKey writes a new Ed25519 key to a file in OpenSSH's format, with an optional passphrase. It returns
// the public key.
func WriteSSHKey(t testing.TB, file, passphrase string) ssh.PublicKey {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "test")
	if passphrase != "" {
		block, err = ssh.MarshalPrivateKeyWithPassphrase(key, "test", []byte(passphrase))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// URL returns the SSH address of the repository.
func (s *SSHServer) URL() string {
	return "ssh://git@" + s.Addr() + "/" + filepath.Base(s.repo.dir)
}

// Addr returns the server's host and port.
func (s *SSHServer) Addr() string { return s.l.Addr().String() }

// KnownHosts returns the server's line for a known_hosts file.
func (s *SSHServer) KnownHosts() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return knownhosts.Line([]string{s.Addr()}, s.hostKey.PublicKey()) + "\n"
}

// SetHostKey replaces the server's host key, and returns the new fingerprint.
func (s *SSHServer) SetHostKey(key ssh.Signer) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hostKey = key
	return ssh.FingerprintSHA256(key.PublicKey())
}

// AddHostKey adds a host key of another type.
func (s *SSHServer) AddHostKey(key ssh.Signer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.more = append(s.more, key)
}

// Allow sets the only key that may log in.
func (s *SSHServer) Allow(key ssh.PublicKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.client = key
}

// CutAfter makes the server close a connection after the given number of bytes. 0 disables this.
func (s *SSHServer) CutAfter(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cut = bytes
}

// Stall leaves commands unanswered.
func (s *SSHServer) Stall(stall bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stall = stall
}

// Drop closes all connections.
func (s *SSHServer) Drop() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.conns {
		_ = c.Close()
	}
}

// Logins returns the names of the users that logged in.
func (s *SSHServer) Logins() []string { return s.list(&s.logins) }

// Commands returns the commands that were run.
func (s *SSHServer) Commands() []string { return s.list(&s.commands) }

func (s *SSHServer) list(of *[]string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), *of...)
}

func (s *SSHServer) accept() {
	for {
		c, err := s.l.Accept()
		if err != nil {
			return
		}
		s.mu.Lock()
		s.conns[c] = true
		s.mu.Unlock()
		s.wg.Go(func() {
			s.serve(c)
			s.mu.Lock()
			delete(s.conns, c)
			s.mu.Unlock()
			_ = c.Close()
		})
	}
}

func (s *SSHServer) serve(c net.Conn) {
	cfg := &ssh.ServerConfig{PublicKeyCallback: func(_ ssh.ConnMetadata, key ssh.PublicKey) (*ssh.Permissions, error) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.client == nil || !bytes.Equal(key.Marshal(), s.client.Marshal()) {
			return nil, errors.New("not this key")
		}
		return nil, nil
	}}
	s.mu.Lock()
	cfg.AddHostKey(s.hostKey)
	for _, k := range s.more {
		cfg.AddHostKey(k)
	}
	s.mu.Unlock()
	conn, channels, requests, err := ssh.NewServerConn(c, cfg)
	if err != nil {
		return
	}
	s.mu.Lock()
	s.logins = append(s.logins, conn.User())
	s.mu.Unlock()
	s.wg.Go(func() { ssh.DiscardRequests(requests) })
	for ch := range channels {
		if ch.ChannelType() != "session" {
			_ = ch.Reject(ssh.UnknownChannelType, "sessions only")
			continue
		}
		channel, reqs, err := ch.Accept()
		if err != nil {
			return
		}
		s.wg.Go(func() { s.session(c, channel, reqs) })
	}
}

func (s *SSHServer) session(c net.Conn, ch ssh.Channel, reqs <-chan *ssh.Request) {
	for req := range reqs {
		if req.Type != "exec" {
			_ = req.Reply(false, nil)
			continue
		}
		var run struct{ Command string }
		if err := ssh.Unmarshal(req.Payload, &run); err != nil {
			_ = req.Reply(false, nil)
			return
		}
		_ = req.Reply(true, nil)
		s.wg.Go(func() {
			status := s.run(c, ch, run.Command)
			if status < 0 {
				return
			}
			_, _ = ch.SendRequest("exit-status", false, ssh.Marshal(struct{ Status uint32 }{uint32(status)}))
			_ = ch.Close()
		})
	}
}

// run runs git upload-pack and returns its exit status, or -1 if it did not exit.
func (s *SSHServer) run(c net.Conn, ch ssh.Channel, command string) int {
	s.mu.Lock()
	s.commands = append(s.commands, command)
	cut, stall := s.cut, s.stall
	s.mu.Unlock()
	if stall {
		return -1
	}
	p, ok := strings.CutPrefix(command, "git-upload-pack '")
	if !ok {
		return 127
	}
	p = filepath.Join(filepath.Dir(s.repo.dir), strings.TrimSuffix(p, "'"))
	cmd := exec.Command("git", "upload-pack", p)
	cmd.Env = s.repo.env()
	cmd.Stderr = ch.Stderr()
	cmd.Stdout = ch
	if cut > 0 {
		cmd.Stdout = &cutStream{w: ch, left: cut, cut: func() { _ = c.Close() }}
	}
	in, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return 127
	}
	// The copy ends with the channel, which may be after the command.
	s.wg.Go(func() {
		_, _ = io.Copy(in, ch)
		_ = in.Close()
	})
	_ = cmd.Wait()
	return cmd.ProcessState.ExitCode()
}

// cutStream forwards left bytes and then cuts the connection.
type cutStream struct {
	w    io.Writer
	left int64
	cut  func()
}

func (c *cutStream) Write(p []byte) (int, error) {
	if int64(len(p)) > c.left {
		n, _ := c.w.Write(p[:c.left])
		c.cut()
		return n, errors.New("connection cut")
	}
	c.left -= int64(len(p))
	return c.w.Write(p)
}
