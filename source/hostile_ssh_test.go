package source_test

import (
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/sourcetest"
	"github.com/weir-gitops/weir/source/transport"
)

// hostileSSH lets everybody in, and then does as it likes.
func hostileSSH(t *testing.T, run func(ssh.Channel)) (addr, known string) {
	t.Helper()
	key := sourcetest.NewSSHKey(t)
	conf := &ssh.ServerConfig{
		PublicKeyCallback: func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil },
		BannerCallback:    func(ssh.ConnMetadata) string { return strings.Repeat("\x1b[31mhello\n", 1000) },
	}
	conf.AddHostKey(key)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				_, channels, requests, err := ssh.NewServerConn(c, conf)
				if err != nil {
					return
				}
				wg.Go(func() { ssh.DiscardRequests(requests) })
				for ch := range channels {
					if run == nil {
						_ = ch.Reject(ssh.Prohibited, strings.Repeat("\x1b[31mno", 10_000))
						continue
					}
					channel, reqs, err := ch.Accept()
					if err != nil {
						return
					}
					wg.Go(func() {
						for r := range reqs {
							_ = r.Reply(true, nil)
							wg.Go(func() {
								run(channel)
								_ = channel.Close()
							})
						}
					})
				}
			})
		}
	})
	known = filepath.Join(t.TempDir(), "known_hosts")
	overwrite(t, known, knownhosts.Line([]string{l.Addr().String()}, key.PublicKey())+"\n")
	return l.Addr().String(), known
}

func TestHostileSSH(t *testing.T) {
	t.Parallel()
	key := filepath.Join(t.TempDir(), "key")
	sourcetest.WriteSSHKey(t, key, "")
	// asked gives the refs, and then waits for what is asked for.
	asked := func(ch ssh.Channel) {
		_, _ = io.WriteString(ch, refs(usualCaps))
		_, _ = io.Copy(io.Discard, ch)
	}
	endless := func(w io.Writer, text string) {
		for _, err := io.WriteString(w, text); err == nil; _, err = io.WriteString(w, text) {
		}
	}
	for name, tt := range map[string]struct {
		run    func(ssh.Channel)
		reason fault.Reason
		text   string
		slow   bool
	}{
		"no session":          {nil, fault.Unreachable, "", false},
		"nothing":             {func(ssh.Channel) {}, fault.Unreachable, "without an answer", false},
		"silence":             {func(ch ssh.Channel) { _, _ = io.Copy(io.Discard, ch) }, fault.Timeout, "in time", true},
		"a word":              {func(ch ssh.Channel) { _, _ = io.WriteString(ch.Stderr(), "no\x1b[31m such repository") }, fault.NotFound, "no [31m such repository", false},
		"a page":              {func(ch ssh.Channel) { _, _ = io.WriteString(ch, "<html>hello") }, fault.Unsupported, "does not answer as a Git server", false},
		"complaints for ever": {func(ch ssh.Channel) { endless(ch.Stderr(), strings.Repeat("x", 1000)) }, fault.Timeout, "in time", true},
		"refs for ever": {func(ch ssh.Channel) {
			endless(ch, strings.TrimSuffix(refs(usualCaps), "0000")+strings.Repeat(pkt(someCommit+" refs/heads/"+strings.Repeat("x", 900)+"\n"), 64))
		}, fault.Unsupported, "bytes of refs", false},
		"refs of version 2": {func(ch ssh.Channel) { _, _ = io.WriteString(ch, pkt("version 2\n")+"0000") }, fault.Unsupported, "in version 2", false},
		"refs, then silence": {func(ch ssh.Channel) {
			_, _ = io.WriteString(ch, pkt(someCommit+" HEAD\x00x\n"))
			_, _ = io.Copy(io.Discard, ch)
		}, fault.Timeout, "in time", true},
		"no pack":              {asked, fault.Unreachable, "", false},
		"progress for ever":    {func(ch ssh.Channel) { asked(ch); endless(ch, pkt("\x02"+strings.Repeat("x", 1000))) }, fault.Unreachable, "", false},
		"talk for ever":        {func(ch ssh.Channel) { asked(ch); endless(ch, strings.Repeat(pkt("NAK\n"), 4000)) }, fault.Unsupported, "talks without end", false},
		"silence for the pack": {func(ch ssh.Channel) { asked(ch); _, _ = io.WriteString(ch, pkt("NAK\n")); time.Sleep(time.Second) }, fault.Timeout, "in time", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr, known := hostileSSH(t, tt.run)
			wait := time.Minute
			if tt.slow {
				wait = 400 * time.Millisecond
			}
			err := attack(t, "ssh://"+addr+"/x.git", source.Config{Settings: transport.Settings{Auth: transport.Auth{SSHKeyFile: key, KnownHostsFile: known}}}, wait)
			var ue *fault.UnavailableError
			if !errors.As(err, &ue) || ue.Reason != tt.reason || !strings.Contains(err.Error(), tt.text) || len(err.Error()) > 1000 || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("%v, want %s with %q", err, tt.reason, tt.text)
			}
		})
	}
}
