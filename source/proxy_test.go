package source_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/transport"
)

// TestSSHThroughProxies goes through a proxy that wants a password from a file.
func TestSSHThroughProxies(t *testing.T) {
	t.Parallel()
	r := newSSHRepo(t)
	r.Write(map[string]string{"f": "1"})
	one := r.Commit("one")
	for kind, tt := range map[string]struct {
		proxy  string
		reason fault.Reason
		said   string
	}{
		"connect": {connectProxy(t, "bot", "hunter2"), fault.AuthFailed, "407"},
		"socks":   {socksProxy(t, "bot", "hunter2"), fault.Unreachable, "authentication failed"},
	} {
		t.Run(kind, func(t *testing.T) {
			secret := filepath.Join(r.dir, kind)
			cfg := r.config(t)
			cfg.Proxy, cfg.ProxyAuth = tt.proxy, transport.ProxyAuth{Username: "bot", PasswordFile: secret}
			g := open(t, cfg, source.Options{})
			wantUnavailable(t, g, fault.AuthFailed)
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
		// From the hijack on the server does not wait for this connection.
		wg.Add(2)
		from, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			wg.Add(-2)
			t.Error(err)
			return
		}
		fmt.Fprint(from, "HTTP/1.1 200 OK\r\n\r\n")
		for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
			go func() {
				defer wg.Done()
				pipe(pair[0], pair[1])
			}()
		}
	}))
	t.Cleanup(func() {
		server.Close()
		wg.Wait()
	})
	return server.URL
}
