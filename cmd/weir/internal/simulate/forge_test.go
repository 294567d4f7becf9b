package simulate

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
)

// forge answers as Gitea does to who posts the statuses of commits.
type forge struct {
	statuses map[string][]postedStatus // by commit, oldest first
}

type postedStatus struct {
	ID          int    `json:"id"`
	Context     string `json:"context"`
	State       string `json:"state"`
	Status      string `json:"status"`
	Description string `json:"description"`
	TargetURL   string `json:"target_url"`
}

const repoPath = "/api/v1/repos/platform/fleet"

// handler answers what has had its turn.
func (f *forge) handler(w *World) http.Handler {
	mux := http.NewServeMux()
	say := func(rw http.ResponseWriter, code int, v any) {
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(code)
		_ = json.NewEncoder(rw).Encode(v)
	}
	mux.HandleFunc("GET /api/v1/version", func(rw http.ResponseWriter, _ *http.Request) {
		say(rw, http.StatusOK, map[string]string{"version": "1.22.0"})
	})
	mux.HandleFunc("GET /api/v1/user", func(rw http.ResponseWriter, _ *http.Request) {
		say(rw, http.StatusOK, map[string]string{"login": "weir-bot"})
	})
	mux.HandleFunc("GET "+repoPath, func(rw http.ResponseWriter, _ *http.Request) {
		say(rw, http.StatusOK, map[string]any{"id": 1, "full_name": "platform/fleet"})
	})
	mux.HandleFunc("GET "+repoPath+"/commits/{sha}/statuses", func(rw http.ResponseWriter, r *http.Request) {
		list := append([]postedStatus{}, f.statuses[r.PathValue("sha")]...)
		if r.URL.Query().Get("page") > "1" {
			list = nil
		}
		say(rw, http.StatusOK, list)
	})
	mux.HandleFunc("POST "+repoPath+"/statuses/{sha}", func(rw http.ResponseWriter, r *http.Request) {
		var s postedStatus
		if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
			say(rw, http.StatusUnprocessableEntity, map[string]string{"message": err.Error()})
			return
		}
		sha := r.PathValue("sha")
		s.ID, s.Status = len(f.statuses[sha])+1, s.State
		f.statuses[sha] = append(f.statuses[sha], s)
		w.posted(sha, s)
		say(rw, http.StatusCreated, s)
	})
	mux.HandleFunc("GET "+repoPath+"/", func(rw http.ResponseWriter, _ *http.Request) { say(rw, http.StatusOK, []any{}) })
	return mux
}

// serve gives each request of the daemon its turn.
func (w *World) serve(service string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		d := w.daemon
		if d == nil {
			panic(http.ErrAbortHandler)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		one := &call{daemon: d, service: service, name: r.Method + " " + r.URL.RequestURI(), body: string(body), write: r.Method != http.MethodGet}
		resp, err := w.ask(r.Context(), one, func() *http.Response {
			if strings.Contains(string(body), canary) {
				w.fail("a secret is sent to the %s", service)
			}
			in := r.Clone(r.Context())
			in.Body = io.NopCloser(strings.NewReader(string(body)))
			rec := httptest.NewRecorder()
			h.ServeHTTP(rec, in)
			if service == "git" {
				w.fetched(r, rec.Code)
			}
			return rec.Result()
		})
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		for name, values := range resp.Header {
			rw.Header()[name] = values
		}
		rw.WriteHeader(resp.StatusCode)
		_, _ = io.Copy(rw, resp.Body)
	})
}

// token writes the file with the daemon's token for the forge, which is a secret too.
func (w *World) token(dir string) {
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte(canary+"\n"), 0o600); err != nil {
		w.t.Fatal(err)
	}
}

// posted looks at what a commit is said to be.
func (w *World) posted(sha string, s postedStatus) {
	w.trace("status %s %s %s: %s", sha[:7], s.Context, s.State, s.Description)
	if s.State != "success" || s.Description == "no target affected" {
		return
	}
	for _, h := range w.repo.heads {
		if h.revision == sha && !h.broken {
			w.checks.promised(w, h)
			return
		}
	}
	w.fail("commit %s is said to be applied, and cannot be: %s", sha, s.Description)
}
