package source_test

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/source"
	"github.com/weir-gitops/weir/source/fault"
	"github.com/weir-gitops/weir/source/sourcetest"
	"github.com/weir-gitops/weir/source/transport"
)

const (
	someCommit = "1111111111111111111111111111111111111111"
	usualCaps  = "side-band-64k ofs-delta multi_ack_detailed no-progress allow-tip-sha1-in-want symref=HEAD:refs/heads/main agent=git/2.50"
)

// pkt is a line of Git's protocol.
func pkt(text string) string { return fmt.Sprintf("%04x%s", len(text)+4, text) }

// refs is the list of a repository with one branch.
func refs(caps string, more ...string) string {
	list := pkt(someCommit+" HEAD\x00"+caps+"\n") + pkt(someCommit+" refs/heads/main\n")
	return list + strings.Join(more, "") + "0000"
}

// hostile is an HTTP server that says what it likes.
type hostile struct {
	refs, pack func(w *bufio.Writer, r *http.Request)
	zipped     bool
}

func say(text string) func(*bufio.Writer, *http.Request) {
	return func(w *bufio.Writer, _ *http.Request) { _, _ = w.WriteString(text) }
}

// forEver repeats a text until nobody listens any more.
func forEver(first, text string) func(*bufio.Writer, *http.Request) {
	return func(w *bufio.Writer, _ *http.Request) {
		for _, err := w.WriteString(first); err == nil; {
			_, err = w.WriteString(text)
		}
	}
}

// drip sends a text byte by byte, and goes on with its end for ever.
func drip(text string) func(*bufio.Writer, *http.Request) {
	return func(w *bufio.Writer, r *http.Request) {
		for i := 0; r.Context().Err() == nil; i++ {
			_ = w.WriteByte(text[i%len(text)])
			if w.Flush() != nil {
				return
			}
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// flusher sends what is written at once.
type flusher struct{ http.ResponseWriter }

func (f flusher) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	if err == nil {
		err = http.NewResponseController(f.ResponseWriter).Flush()
	}
	return n, err
}

func (h hostile) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var to io.Writer = flusher{w}
	if h.zipped {
		w.Header().Set("Content-Encoding", "gzip")
		to = gzip.NewWriter(w)
	}
	b := bufio.NewWriterSize(to, 64<<10)
	if r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		_, _ = b.WriteString(pkt("# service=git-upload-pack\n") + "0000")
		h.refs(b, r)
	} else {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
		h.pack(b, r)
	}
	_ = b.Flush()
}

// attack lets a source look at a server once.
func attack(t *testing.T, url string, cfg source.Config, wait time.Duration) error {
	t.Helper()
	cfg.URL = url
	g := open(t, cfg, source.Options{Timeout: wait})
	s, err := g.Latest(context.Background())
	if err == nil {
		t.Fatalf("it gave %+v", s)
	}
	if _, ok := g.Last(); ok {
		t.Error("something is the last good commit")
	}
	return err
}

func TestHostileServers(t *testing.T) {
	t.Parallel()
	band := func(n byte, text string) string { return pkt(string(n) + text) }
	usual := say(refs(usualCaps))
	open := strings.TrimSuffix(refs(usualCaps), "0000")
	endless := forEver(open, strings.Repeat(pkt(someCommit+" refs/heads/"+strings.Repeat("x", 900)+"\n"), 64))
	const timeout = 400 * time.Millisecond
	for name, tt := range map[string]struct {
		hostile
		ref    source.Ref
		reason fault.Reason
		text   string
		slow   bool
	}{
		"refs drip":                 {hostile{drip(refs(usualCaps)), nil, false}, source.Ref{}, fault.Timeout, "in time", true},
		"refs, then a drip":         {hostile{func(w *bufio.Writer, r *http.Request) { say(open)(w, r); drip("0")(w, r) }, nil, false}, source.Ref{}, fault.Timeout, "in time", true},
		"refs without end":          {hostile{endless, nil, false}, source.Ref{}, fault.Unsupported, "bytes of refs", false},
		"branches without end":      {hostile{manyRefs, nil, false}, source.Ref{Commit: someCommit}, fault.Unsupported, "branches and tags", false},
		"shallow without end":       {hostile{forEver(open, strings.Repeat(pkt("shallow "+someCommit+"\n"), 1000)), nil, false}, source.Ref{}, fault.Unsupported, "bytes of refs", false},
		"capabilities without end":  {hostile{forEver(pkt(someCommit+" HEAD\x00"+strings.Repeat("x", 60_000)), pkt(strings.Repeat("y", 60_000))), nil, false}, source.Ref{}, fault.Unreachable, "malformed", false},
		"a line without end":        {hostile{forEver("ffff"+someCommit+" HEAD\x00", strings.Repeat("x", 64<<10)), nil, false}, source.Ref{}, fault.Unreachable, "invalid pkt-len", false},
		"refs in a bomb":            {hostile{endless, nil, true}, source.Ref{}, fault.Unsupported, "bytes of refs", false},
		"refs of version 1":         {hostile{say(pkt("version 1\n") + refs(usualCaps)), nil, false}, source.Ref{}, fault.Unsupported, "in version 1", false},
		"refs of version 2":         {hostile{say(pkt("version 2\n") + pkt("ls-refs\n") + pkt("fetch=shallow\n") + "0000"), nil, false}, source.Ref{}, fault.Unsupported, "in version 2", false},
		"refs with an error":        {hostile{say(pkt("ERR go \x1b[31maway")), nil, false}, source.Ref{}, fault.Unreachable, "go [31maway", false},
		"a hash of letters":         {hostile{say(pkt(strings.Repeat("z", 40)+" HEAD\x00"+usualCaps) + "0000"), nil, false}, source.Ref{}, fault.Unreachable, "", false},
		"the zero commit":           {hostile{say(pkt(strings.Repeat("0", 40)+" HEAD\x00"+usualCaps) + "0000"), nil, false}, source.Ref{}, fault.Unreachable, "", false},
		"nothing":                   {hostile{say(""), nil, false}, source.Ref{}, fault.Unreachable, "", false},
		"pack drips":                {hostile{usual, drip(pkt("NAK\n") + band(1, "PACK\x00\x00\x00\x02\x00\x00\x00\x01")), false}, source.Ref{}, fault.Timeout, "in time", true},
		"keeps alive and no more":   {hostile{usual, slowly(pkt("NAK\n"), band(1, "")), false}, source.Ref{}, fault.Timeout, "in time", true},
		"progress drips":            {hostile{usual, slowly(pkt("NAK\n"), band(2, "counting")), false}, source.Ref{}, fault.Timeout, "in time", true},
		"acknowledges without end":  {hostile{usual, forEver("", strings.Repeat(pkt("ACK "+someCommit+" common\n"), 1000)), false}, source.Ref{}, fault.Unsupported, "talks without end", false},
		"refuses without end":       {hostile{usual, forEver("", strings.Repeat(pkt("NAK\n"), 5000)), false}, source.Ref{}, fault.Unsupported, "talks without end", false},
		"progress without end":      {hostile{usual, forEver(pkt("NAK\n"), strings.Repeat(band(2, strings.Repeat("x", 1000)), 60)), false}, source.Ref{}, fault.Unsupported, "talks without end", false},
		"keeps alive without end":   {hostile{usual, forEver(pkt("NAK\n"), strings.Repeat(band(1, ""), 10_000)), false}, source.Ref{}, fault.Unsupported, "talks without end", false},
		"an error in the pack":      {hostile{usual, say(pkt("NAK\n") + band(3, "no\x1b[31m"+strings.Repeat("x", 60_000))), false}, source.Ref{}, fault.Unreachable, "no [31mxxx", false},
		"an unknown band":           {hostile{usual, say(pkt("NAK\n") + band(9, strings.Repeat("x", 60_000))), false}, source.Ref{}, fault.Unreachable, "unknown channel", false},
		"no pack":                   {hostile{usual, say(pkt("NAK\n") + "0000"), false}, source.Ref{}, fault.Unreachable, "no pack", false},
		"an empty answer":           {hostile{usual, say(""), false}, source.Ref{}, fault.Unreachable, "", false},
		"a pack of nothing":         {hostile{usual, say(pkt("NAK\n") + band(1, pack(0)) + "0000"), false}, source.Ref{}, fault.MissingRef, "", false},
		"an object that is another": {hostile{usual, say(pkt("NAK\n") + band(1, pack(1, object(3, "x"))) + "0000"), false}, source.Ref{}, fault.MissingRef, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(tt.hostile)
			defer server.Close()
			defer server.CloseClientConnections()
			wait := time.Minute
			if tt.slow {
				wait = timeout
			}
			err := attack(t, server.URL+"/x.git", source.Config{Ref: tt.ref}, wait)
			var ue *fault.UnavailableError
			if !errors.As(err, &ue) || ue.Reason != tt.reason || !strings.Contains(err.Error(), tt.text) || len(err.Error()) > 1000 || strings.Contains(err.Error(), "\x1b") {
				t.Errorf("%v, want %s with %q", err, tt.reason, tt.text)
			}
		})
	}
}

func slowly(first, text string) func(*bufio.Writer, *http.Request) {
	return func(w *bufio.Writer, r *http.Request) {
		_, _ = w.WriteString(first)
		for r.Context().Err() == nil && w.Flush() == nil {
			_, _ = w.WriteString(text)
			time.Sleep(20 * time.Millisecond)
		}
	}
}

func manyRefs(w *bufio.Writer, _ *http.Request) {
	_, err := w.WriteString(strings.TrimSuffix(refs("agent=x"), "0000"))
	for i := 0; err == nil; i++ {
		_, err = w.WriteString(pkt(fmt.Sprintf("%s refs/heads/%x\n", someCommit, i)))
	}
}

// TestSlowButHonest takes longer than the time for a server that sends nothing.
func TestSlowButHonest(t *testing.T) {
	t.Parallel()
	repo := sourcetest.New(t)
	repo.Write(map[string]string{"f": noise(400_000), "g": noise(400_000)})
	one := repo.Commit("one")
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		repo.ServeHTTP(&slowWriter{ResponseWriter: w}, r)
	}))
	defer slow.Close()
	g := open(t, source.Config{URL: slow.URL + strings.TrimPrefix(repo.URL(), repo.URL()[:strings.LastIndex(repo.URL(), "/")])}, source.Options{Timeout: 5 * time.Second})
	start := time.Now()
	wantRevision(t, g, one)
	if took := time.Since(start); took < 6*time.Second {
		t.Errorf("it took %s: the test is not slow enough to show anything", took)
	}
}

// slowWriter sends 100 kB in a second.
type slowWriter struct {
	http.ResponseWriter
	sent int
}

func (s *slowWriter) Write(p []byte) (int, error) {
	n, err := flusher{s.ResponseWriter}.Write(p)
	if s.sent += n; s.sent > 100_000 {
		s.sent = 0
		time.Sleep(time.Second)
	}
	return n, err
}

// TestConnectionsThatDrip never come as far as HTTP, TLS or SSH.
func TestConnectionsThatDrip(t *testing.T) {
	t.Parallel()
	r := newSSHRepo(t)
	for name, tt := range map[string]struct{ scheme, first, then string }{
		"silence":               {"http", "", ""},
		"silence in TLS":        {"https", "", ""},
		"silence in SSH":        {"ssh", "", ""},
		"a header":              {"http", "HTTP/1.1 200 OK\r\nX: ", "x"},
		"informational answers": {"http", "", "HTTP/1.1 100 Continue\r\n\r\n"},
		"a handshake":           {"https", "\x16\x03\x03\x3f\xff", "\x02"},
		"a banner":              {"ssh", "", "x"},
		"lines before a banner": {"ssh", "", "hello\r\n"},
		"a key exchange":        {"ssh", "SSH-2.0-x\r\n\x00\x00\x08\x00\x04", "\x14"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := dripping(t, tt.first, tt.then)
			cfg := source.Config{}
			if tt.scheme == "ssh" {
				cfg.Auth = transport.Auth{SSHKeyFile: r.key, KnownHostsFile: r.known}
			}
			err := attack(t, tt.scheme+"://"+addr+"/x.git", cfg, 400*time.Millisecond)
			var ue *fault.UnavailableError
			if !errors.As(err, &ue) || ue.Reason != fault.Timeout && ue.Reason != fault.Unreachable {
				t.Errorf("%v", err)
			}
		})
	}
}

// dripping listens, and says first and then a little more, again and again.
func dripping(t *testing.T, first, then string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var wg sync.WaitGroup
	t.Cleanup(func() {
		close(done)
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
				for text := first; ; text = then {
					if _, err := io.WriteString(c, text); err != nil {
						return
					}
					select {
					case <-done:
						return
					case <-time.After(20 * time.Millisecond):
					}
				}
			})
		}
	})
	return l.Addr().String()
}
