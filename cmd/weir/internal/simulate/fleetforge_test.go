package simulate

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

const pushToken = canary + "-push"

// fleetForge answers as Gitea does, and keeps the repository itself: who has the token that
// may push makes branches and pull requests.
type fleetForge struct {
	f   *fleet
	mux *http.ServeMux

	mu       sync.Mutex
	statuses map[string][]postedStatus // by commit, oldest first
	pulls    []*revertPull
	pushes   int
}

// revertPull is a pull request that weir has opened.
type revertPull struct {
	number            int
	Title, Body, Head string
	state, merged     string
	updated           time.Time
}

func newFleetForge(f *fleet) *fleetForge {
	h := &fleetForge{f: f, mux: http.NewServeMux(), statuses: map[string][]postedStatus{}}
	out, err := exec.CommandContext(f.t.Context(), "git", "--exec-path").Output()
	if err != nil {
		f.t.Fatal(err)
	}
	git := &cgi.Handler{
		Path: filepath.Join(strings.TrimSpace(string(out)), "git-http-backend"), Root: "/platform", Stderr: io.Discard,
		Env: []string{"GIT_PROJECT_ROOT=" + f.repo.root, "GIT_HTTP_EXPORT_ALL=1"},
	}
	h.mux.HandleFunc("/platform/fleet.git/", func(rw http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.URL.RequestURI(), "git-receive-pack") {
			if _, password, _ := r.BasicAuth(); password != pushToken {
				rw.Header().Set("WWW-Authenticate", "Basic")
				http.Error(rw, "who are you", http.StatusUnauthorized)
				return
			}
			if r.Method == http.MethodPost {
				h.mu.Lock()
				h.pushes++
				h.mu.Unlock()
			}
		}
		git.ServeHTTP(rw, r)
	})
	h.mux.HandleFunc("GET /api/v1/version", func(rw http.ResponseWriter, _ *http.Request) {
		say(rw, http.StatusOK, map[string]string{"version": "1.22.0"})
	})
	h.mux.HandleFunc("GET /api/v1/user", func(rw http.ResponseWriter, _ *http.Request) {
		say(rw, http.StatusOK, map[string]string{"login": bot})
	})
	h.mux.HandleFunc("GET "+repoPath, func(rw http.ResponseWriter, _ *http.Request) {
		say(rw, http.StatusOK, map[string]any{"id": 1, "full_name": "platform/fleet"})
	})
	h.mux.HandleFunc("GET "+repoPath+"/commits/{sha}/statuses", func(rw http.ResponseWriter, r *http.Request) {
		say(rw, http.StatusOK, page(r, h.statuses[r.PathValue("sha")]))
	})
	h.mux.HandleFunc("POST "+repoPath+"/statuses/{sha}", func(rw http.ResponseWriter, r *http.Request) {
		var s postedStatus
		if err := json.NewDecoder(r.Body).Decode(&s); err != nil {
			say(rw, http.StatusUnprocessableEntity, map[string]string{"message": err.Error()})
			return
		}
		sha := r.PathValue("sha")
		s.ID, s.Status = len(h.statuses[sha])+1, s.State
		h.statuses[sha] = append(h.statuses[sha], s)
		f.say("status of %s: %s %s %s", sha[:7], s.Context, s.State, s.Description)
		say(rw, http.StatusCreated, s)
	})
	h.servePulls()
	return h
}

// ServeHTTP answers one request at a time, each after a while; none of a process that is dead.
func (h *fleetForge) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	d := caller(r.Context())
	if h.f.takes(r.Context(), d, 40*time.Millisecond) != nil {
		panic(http.ErrAbortHandler)
	}
	if !strings.HasPrefix(r.URL.Path, "/platform/") {
		h.mu.Lock()
		defer h.mu.Unlock()
	}
	h.mux.ServeHTTP(rw, r)
}

func (h *fleetForge) servePulls() {
	h.mux.HandleFunc("GET "+repoPath+"/pulls", func(rw http.ResponseWriter, r *http.Request) {
		out := []map[string]any{}
		for _, p := range page(r, h.pulls) {
			if state := r.URL.Query().Get("state"); state == "all" || state == p.state || state == "" && p.state == "open" {
				out = append(out, h.json(p))
			}
		}
		say(rw, http.StatusOK, out)
	})
	answer := func(rw http.ResponseWriter, is func(p *revertPull) bool) *revertPull {
		i := slices.IndexFunc(h.pulls, is)
		if i < 0 {
			say(rw, http.StatusNotFound, map[string]string{"message": "not found"})
			return nil
		}
		return h.pulls[i]
	}
	h.mux.HandleFunc("GET "+repoPath+"/pulls/{number}", func(rw http.ResponseWriter, r *http.Request) {
		if p := answer(rw, func(p *revertPull) bool { return strconv.Itoa(p.number) == r.PathValue("number") }); p != nil {
			say(rw, http.StatusOK, h.json(p))
		}
	})
	h.mux.HandleFunc("GET "+repoPath+"/pulls/main/weir/{branch}", func(rw http.ResponseWriter, r *http.Request) {
		if p := answer(rw, func(p *revertPull) bool { return p.Head == "weir/"+r.PathValue("branch") }); p != nil {
			say(rw, http.StatusOK, h.json(p))
		}
	})
	h.mux.HandleFunc("POST "+repoPath+"/pulls", func(rw http.ResponseWriter, r *http.Request) {
		p := &revertPull{number: 1 + len(h.pulls), state: "open", updated: time.Now()}
		if err := json.NewDecoder(r.Body).Decode(p); err != nil || r.Header.Get("Authorization") != "token "+pushToken {
			say(rw, http.StatusForbidden, map[string]string{"message": "no"})
			return
		}
		if slices.ContainsFunc(h.pulls, func(o *revertPull) bool { return o.Head == p.Head && o.state == "open" }) {
			say(rw, http.StatusConflict, map[string]string{"message": "pull request already exists for these targets"})
			return
		}
		h.pulls = append(h.pulls, p)
		h.f.say("pull request %d of %s: %s", p.number, p.Head, p.Title)
		say(rw, http.StatusCreated, h.json(p))
	})
	h.mux.HandleFunc("PATCH "+repoPath+"/pulls/{number}", func(rw http.ResponseWriter, r *http.Request) {
		p := answer(rw, func(p *revertPull) bool { return strconv.Itoa(p.number) == r.PathValue("number") })
		if p == nil {
			return
		}
		p.state, p.updated = "closed", time.Now()
		h.f.say("pull request %d is closed by weir", p.number)
		say(rw, http.StatusCreated, h.json(p))
	})
	h.mux.HandleFunc("GET "+repoPath+"/issues/comments", func(rw http.ResponseWriter, _ *http.Request) { say(rw, http.StatusOK, []any{}) })
}

func (h *fleetForge) json(p *revertPull) map[string]any {
	tip := strings.TrimSpace(h.f.git(nil, "for-each-ref", "--format=%(objectname)", "refs/heads/"+p.Head))
	out := map[string]any{
		"number": p.number, "title": p.Title, "body": p.Body, "state": p.state, "html_url": fmt.Sprintf("http://127.0.0.1:7000/platform/fleet/pulls/%d", p.number),
		"user": map[string]any{"login": bot}, "updated_at": p.updated.UTC().Format(time.RFC3339), "merged": p.merged != "",
		"head": map[string]any{"label": p.Head, "ref": p.Head, "sha": tip, "repo": map[string]any{"id": 1}},
		"base": map[string]any{"label": "main", "ref": "main", "sha": "", "repo": map[string]any{"id": 1}},
	}
	if p.merged != "" {
		out["merge_commit_sha"] = p.merged
	}
	return out
}

// proposed are the pull requests that weir has opened, the last of them merged where asked for.
func (h *fleetForge) proposed(merge bool) []*revertPull {
	h.mu.Lock()
	defer h.mu.Unlock()
	if merge && len(h.pulls) > 0 {
		p := h.pulls[len(h.pulls)-1]
		h.f.git(nil, "update-ref", branch, "refs/heads/"+p.Head)
		p.state, p.merged, p.updated = "closed", h.f.tip(), time.Now()
		h.f.say("pull request %d is merged: %s", p.number, p.merged[:7])
	}
	return slices.Clone(h.pulls)
}
