package sourcetest

import (
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Request is a request from a client.
type Request struct {
	Method, Path  string
	Authorization string
}

// Server serves a directory of bare repositories with git http-backend, for reading and writing. Tests can
// make it fail from the next request on.
type Server struct {
	http *httptest.Server
	git  http.Handler

	mu         sync.Mutex
	requests   []Request
	user, pass string
	down       bool
	status     int
	stalled    chan struct{}
	cutAfter   int64
	redirect   string
	before     func(*http.Request)
}

// gitPrograms returns the directory of git's own programs.
var gitPrograms = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("git", "--exec-path").Output()
	return strings.TrimSpace(string(out)), err
})

func newServer(t testing.TB, root string, env []string) *Server {
	t.Helper()
	programs, err := gitPrograms()
	if err != nil {
		t.Fatalf("find git http-backend: %v", err)
	}
	s := &Server{git: &adverts{root: root, kept: map[string]advert{}, git: &cgi.Handler{
		Path: filepath.Join(programs, "git-http-backend"),
		Root: "/",
		Env:  append(env, "GIT_PROJECT_ROOT="+root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=test"),
		// git's messages about intended failures are not useful
		Stderr: io.Discard, Logger: log.New(io.Discard, "", 0),
	}}}
	s.http = httptest.NewServer(s)
	t.Cleanup(func() {
		s.Stall(false)
		s.http.CloseClientConnections()
		s.http.Close()
	})
	return s
}

func (s *Server) base() string { return s.http.URL }

// RequireAuth requires basic authentication. An empty user disables it.
func (s *Server) RequireAuth(user, pass string) {
	s.set(func() { s.user, s.pass = user, pass })
}

// Down makes the server close each connection without an answer, or serve normally again.
func (s *Server) Down(down bool) { s.set(func() { s.down = down }) }

// Answer makes the server answer all requests with an HTTP status. 0 disables this.
func (s *Server) Answer(status int) { s.set(func() { s.status = status }) }

// Stall leaves requests unanswered until a test ends the stall or the client disconnects.
func (s *Server) Stall(stall bool) {
	s.set(func() {
		if s.stalled != nil {
			close(s.stalled)
			s.stalled = nil
		}
		if stall {
			s.stalled = make(chan struct{})
		}
	})
}

// CutAfter makes the server cut the connection after the given number of bytes of a pack. 0 disables this.
func (s *Server) CutAfter(bytes int64) { s.set(func() { s.cutAfter = bytes }) }

// Redirect redirects clients to the same path below another base URL. An empty URL disables this.
func (s *Server) Redirect(base string) { s.set(func() { s.redirect = base }) }

// Before runs fn before each request, to simulate events between two requests.
func (s *Server) Before(fn func(*http.Request)) { s.set(func() { s.before = fn }) }

// Requests returns the requests so far.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

func (s *Server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// ServeHTTP answers like git http-backend, or fails as the test has configured.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests = append(s.requests, Request{r.Method, r.URL.RequestURI(), r.Header.Get("Authorization")})
	before, stalled := s.before, s.stalled
	s.mu.Unlock()
	if before != nil {
		before(r)
	}
	if stalled != nil {
		select {
		case <-stalled:
		case <-r.Context().Done():
			return
		}
	}
	s.mu.Lock()
	down, status, cut, redirect, user, pass := s.down, s.status, s.cutAfter, s.redirect, s.user, s.pass
	s.mu.Unlock()
	gotUser, gotPass, _ := r.BasicAuth()
	switch {
	case down:
		panic(http.ErrAbortHandler)
	case status != 0:
		http.Error(w, http.StatusText(status), status)
	case redirect != "":
		http.Redirect(w, r, redirect+r.URL.RequestURI(), http.StatusMovedPermanently)
	case user != "" && (gotUser != user || gotPass != pass):
		w.Header().Set("WWW-Authenticate", `Basic realm="sourcetest"`)
		http.Error(w, "credentials required", http.StatusUnauthorized)
	case cut > 0 && strings.HasSuffix(r.URL.Path, "/git-upload-pack"):
		s.git.ServeHTTP(&cutWriter{ResponseWriter: w, left: cut}, r)
		panic(http.ErrAbortHandler)
	default:
		s.git.ServeHTTP(w, r)
	}
}

// cutWriter forwards left bytes and then fails.
type cutWriter struct {
	http.ResponseWriter
	left int64
}

func (c *cutWriter) Write(p []byte) (int, error) {
	short := int64(len(p)) > c.left
	if short {
		p = p[:c.left]
	}
	n, err := c.ResponseWriter.Write(p)
	c.left -= int64(n)
	if f, ok := c.ResponseWriter.(http.Flusher); ok {
		f.Flush()
	}
	if err == nil && short {
		err = errors.New("connection cut")
	}
	return n, err
}
