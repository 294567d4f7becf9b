package app

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weir-gitops/weir/status/forge"
)

// fakePull is a pull request of a fakeForge.
type fakePull struct {
	number       int
	title, head  string
	base, author string
	state        string
	draft, fork  bool
	merged       string // the merge's commit
	branch       string // that of the head; empty for change
	updated      time.Time
}

// fakeComment is a comment of a fakeForge.
type fakeComment struct {
	id, number       int
	author, body     string
	created, updated time.Time
	edits            int
	first            string // as it was written
}

// fakeForge answers as Gitea does and remembers what was written.
type fakeForge struct {
	url string

	mu       sync.Mutex
	statuses map[string][]map[string]any // by commit, oldest first
	tokens   map[string]bool
	pulls    []*fakePull
	comments []*fakeComment
	levels   map[string]string
	marks    []string
	ids      int
	mux      *http.ServeMux
	front    atomic.Pointer[http.HandlerFunc]
}

const fakeRepo = "/api/v1/repos/platform/fleet"

func newFakeForge(t testing.TB) *fakeForge {
	t.Helper()
	f := &fakeForge{statuses: map[string][]map[string]any{}, tokens: map[string]bool{}, levels: map[string]string{}}
	mux := http.NewServeMux()
	f.mux = mux
	mux.HandleFunc("GET /api/v1/version", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"version":"1.22.0"}`)) })
	mux.HandleFunc("GET /api/v1/user", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"login":"weir-bot"}`)) })
	f.serveStatuses(mux)
	f.servePulls(mux)
	f.serveComments(mux)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if front := f.front.Load(); front != nil {
			(*front)(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	f.url = server.URL
	return f
}

// wrap puts something before the forge.
func (f *fakeForge) wrap(front http.HandlerFunc) { f.front.Store(&front) }

func (f *fakeForge) serveStatuses(mux *http.ServeMux) {
	mux.HandleFunc("POST "+fakeRepo+"/statuses/{sha}", func(w http.ResponseWriter, r *http.Request) {
		var in map[string]any
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			http.Error(w, "{}", http.StatusUnprocessableEntity)
			return
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		in["status"], in["id"] = in["state"], len(f.statuses[r.PathValue("sha")])+1
		f.statuses[r.PathValue("sha")] = append(f.statuses[r.PathValue("sha")], in)
		f.tokens[r.Header.Get("Authorization")] = true
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(in)
	})
	mux.HandleFunc("GET "+fakeRepo+"/commits/{sha}/statuses", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		list := f.statuses[r.PathValue("sha")]
		if r.URL.Query().Get("page") > "1" {
			list = nil
		}
		_ = json.NewEncoder(w).Encode(slices.Concat([]map[string]any{}, list))
	})
}

func (p *fakePull) json(url string) map[string]any {
	id := 1
	if p.fork {
		id = 2
	}
	out := map[string]any{
		"number": p.number, "title": p.title, "state": p.state, "draft": p.draft, "html_url": fmt.Sprintf("%s/platform/fleet/pulls/%d", url, p.number),
		"user": map[string]any{"login": p.author}, "updated_at": p.updated.UTC().Format(time.RFC3339), "merged": p.merged != "",
		"head": map[string]any{"label": cmp.Or(p.branch, "change"), "ref": cmp.Or(p.branch, "change"), "sha": p.head, "repo": map[string]any{"id": id}},
		"base": map[string]any{"label": p.base, "ref": p.base, "sha": "", "repo": map[string]any{"id": 1}},
	}
	if p.merged != "" {
		out["merge_commit_sha"] = p.merged
	}
	return out
}

func (f *fakeForge) servePulls(mux *http.ServeMux) {
	mux.HandleFunc("GET "+fakeRepo+"/pulls", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		out := []any{}
		for _, p := range f.pulls {
			if p.state == cmp.Or(r.URL.Query().Get("state"), "open") && r.URL.Query().Get("page") <= "1" {
				out = append(out, p.json(f.url))
			}
		}
		_ = json.NewEncoder(w).Encode(out)
	})
	mux.HandleFunc("GET "+fakeRepo+"/pulls/{number}", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, p := range f.pulls {
			if strconv.Itoa(p.number) == r.PathValue("number") {
				_ = json.NewEncoder(w).Encode(p.json(f.url))
				return
			}
		}
		http.Error(w, `{"message":"not found"}`, http.StatusNotFound)
	})
	mux.HandleFunc("GET "+fakeRepo+"/collaborators/{user}/permission", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		_ = json.NewEncoder(w).Encode(map[string]any{"permission": f.levels[r.PathValue("user")], "user": map[string]any{"login": r.PathValue("user")}})
	})
}

func (c *fakeComment) json(url string) map[string]any {
	at := fmt.Sprintf("%s/platform/fleet/pulls/%d", url, c.number)
	return map[string]any{
		"id": c.id, "body": c.body, "user": map[string]any{"login": c.author}, "html_url": fmt.Sprintf("%s#issuecomment-%d", at, c.id),
		"created_at": c.created.Format(time.RFC3339Nano), "updated_at": c.updated.Format(time.RFC3339Nano), "pull_request_url": at, "issue_url": "",
	}
}

func (f *fakeForge) serveComments(mux *http.ServeMux) {
	list := func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		since, _ := time.Parse(time.RFC3339, r.URL.Query().Get("since")) // none is the zero time
		out := []any{}
		for _, c := range f.comments {
			if n := r.PathValue("number"); (n == "" || n == strconv.Itoa(c.number)) && !c.updated.Before(since) && r.URL.Query().Get("page") <= "1" {
				out = append(out, c.json(f.url))
			}
		}
		_ = json.NewEncoder(w).Encode(out)
	}
	mux.HandleFunc("GET "+fakeRepo+"/issues/comments", list)
	mux.HandleFunc("GET "+fakeRepo+"/issues/{number}/comments", list)
	body := func(r *http.Request) string {
		var in struct{ Body string }
		_ = json.NewDecoder(r.Body).Decode(&in) // what cannot be read has no body
		return in.Body
	}
	mux.HandleFunc("POST "+fakeRepo+"/issues/{number}/comments", func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.PathValue("number"))
		c := f.say(n, "weir-bot", body(r))
		f.mu.Lock()
		defer f.mu.Unlock()
		w.WriteHeader(http.StatusCreated)
		_ = json.NewEncoder(w).Encode(c.json(f.url))
	})
	mux.HandleFunc("PATCH "+fakeRepo+"/issues/comments/{id}", func(w http.ResponseWriter, r *http.Request) {
		text := body(r)
		f.mu.Lock()
		defer f.mu.Unlock()
		for _, c := range f.comments {
			if strconv.Itoa(c.id) == r.PathValue("id") {
				c.body, c.updated, c.edits = text, time.Now().UTC(), c.edits+1
				_ = json.NewEncoder(w).Encode(c.json(f.url))
				return
			}
		}
		http.Error(w, `{"message":"not found"}`, http.StatusNotFound)
	})
	mux.HandleFunc("GET "+fakeRepo+"/activities/feeds", func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		out := []any{}
		for _, c := range f.comments {
			if r.URL.Query().Get("page") <= "1" {
				out = append(out, map[string]any{"op_type": "comment_pull", "comment_id": c.id, "content": fmt.Sprintf("%d|%s", c.number, c.first), "created": c.created.Format(time.RFC3339Nano)})
			}
		}
		slices.Reverse(out)
		_ = json.NewEncoder(w).Encode(out)
	})
	mux.HandleFunc("POST "+fakeRepo+"/issues/comments/{id}/reactions", func(w http.ResponseWriter, r *http.Request) {
		var in struct{ Content string }
		_ = json.NewDecoder(r.Body).Decode(&in) // what cannot be read has no content
		f.mu.Lock()
		defer f.mu.Unlock()
		f.marks = append(f.marks, r.PathValue("id")+" "+in.Content)
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write([]byte("{}"))
	})
}

// say adds a comment.
func (f *fakeForge) say(number int, author, body string) *fakeComment {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ids++
	now := time.Now().UTC()
	c := &fakeComment{id: f.ids, number: number, author: author, body: body, first: body, created: now, updated: now}
	f.comments = append(f.comments, c)
	return c
}

// told are the bodies of weir's own comments on a pull request.
func (f *fakeForge) told(number int) []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, c := range f.comments {
		if c.number == number && c.author == "weir-bot" {
			out = append(out, c.body)
		}
	}
	return out
}

// change changes a pull request, or opens one.
func (f *fakeForge) change(number int, edit func(*fakePull)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.pulls, func(p *fakePull) bool { return p.number == number })
	if i < 0 {
		f.pulls = append(f.pulls, &fakePull{number: number, title: "change", base: "main", author: "author", state: "open"})
		i = len(f.pulls) - 1
	}
	edit(f.pulls[i])
	f.pulls[i].updated = time.Now()
}

// states are the states that a context of a commit went through, without
// repetitions: a status is also written when its description changes.
func (f *fakeForge) states(sha, name string) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for _, s := range f.statuses[sha] {
		if s["context"] == name {
			out = append(out, fmt.Sprint(s["state"]))
		}
	}
	return strings.Join(slices.Compact(out), " ")
}

// succeeded reports whether a context went to success in one go. A pending that
// the verdict overtook is never posted, as happens on a slow machine.
func succeeded(states string) bool { return states == "pending success" || states == "success" }

// last is the newest description of a context of a commit.
func (f *fakeForge) last(sha, name string) (state, description string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.statuses[sha] {
		if s["context"] == name {
			state, description = fmt.Sprint(s["state"]), fmt.Sprint(s["description"])
		}
	}
	return state, description
}

// links are the addresses that the statuses of a commit have.
func (f *fakeForge) links(sha string) (out []any) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, s := range f.statuses[sha] {
		if link := s["target_url"]; link != nil && link != "" {
			out = append(out, link)
		}
	}
	return out
}

// pending lists the contexts of all commits that are pending.
func (f *fakeForge) pending() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []string
	for sha, list := range f.statuses {
		newest := map[string]string{}
		for _, s := range list {
			newest[fmt.Sprint(s["context"])] = fmt.Sprint(s["state"])
		}
		for name, state := range newest {
			if state == string(forge.Pending) {
				out = append(out, sha+" "+name)
			}
		}
	}
	return out
}
