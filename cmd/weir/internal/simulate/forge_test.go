package simulate

import (
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/status/report"
)

// forge answers as Gitea does to who posts the statuses of commits, and reads and comments
// on pull requests.
type forge struct {
	statuses map[string][]postedStatus // by commit, oldest first
	pulls    []*pull
	comments []*comment
	// ids and numbers are the last of comments and of pull requests.
	ids, numbers int
}

type postedStatus struct {
	ID          int    `json:"id"`
	Context     string `json:"context"`
	State       string `json:"state"`
	Status      string `json:"status"`
	Description string `json:"description"`
	TargetURL   string `json:"target_url"`
}

// comment is one of a pull request.
type comment struct {
	id, number       int
	author, body     string
	created, updated time.Time
	first            string // as it was written
}

const (
	repoPath = "/api/v1/repos/platform/fleet"
	bot      = "weir-bot"
)

// levels are what people may do; who is not here may read.
var levels = map[string]string{"alice": "write"}

func say(rw http.ResponseWriter, code int, v any) {
	rw.Header().Set("Content-Type", "application/json")
	rw.WriteHeader(code)
	_ = json.NewEncoder(rw).Encode(v)
}

// handler answers what has had its turn.
func (f *forge) handler(w *World) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1/version", func(rw http.ResponseWriter, _ *http.Request) {
		say(rw, http.StatusOK, map[string]string{"version": "1.22.0"})
	})
	mux.HandleFunc("GET /api/v1/user", func(rw http.ResponseWriter, _ *http.Request) {
		say(rw, http.StatusOK, map[string]string{"login": bot})
	})
	mux.HandleFunc("GET "+repoPath, func(rw http.ResponseWriter, _ *http.Request) {
		say(rw, http.StatusOK, map[string]any{"id": 1, "full_name": "platform/fleet"})
	})
	mux.HandleFunc("GET "+repoPath+"/commits/{sha}/statuses", func(rw http.ResponseWriter, r *http.Request) {
		w.rereads(caller(r.Context()), r.PathValue("sha"))
		say(rw, http.StatusOK, page(r, f.statuses[r.PathValue("sha")]))
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
		w.posted(caller(r.Context()), sha, s)
		say(rw, http.StatusCreated, s)
	})
	f.servePulls(mux)
	f.serveComments(w, mux)
	return mux
}

// page is the page of a list that a request asks for.
func page[T any](r *http.Request, list []T) []T {
	n, _ := strconv.Atoi(r.URL.Query().Get("page"))
	size, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	size = cmp.Or(size, 50)
	from := min(max(0, n-1)*size, len(list))
	return append([]T{}, list[from:min(from+size, len(list))]...)
}

func (f *forge) servePulls(mux *http.ServeMux) {
	mux.HandleFunc("GET "+repoPath+"/pulls", func(rw http.ResponseWriter, r *http.Request) {
		state := cmp.Or(r.URL.Query().Get("state"), "open")
		list := slices.DeleteFunc(slices.Clone(f.pulls), func(p *pull) bool { return p.state != state && state != "all" })
		slices.SortStableFunc(list, func(a, b *pull) int { return b.updated.Compare(a.updated) })
		out := []map[string]any{}
		for _, p := range page(r, list) {
			out = append(out, p.json())
		}
		say(rw, http.StatusOK, out)
	})
	mux.HandleFunc("GET "+repoPath+"/pulls/{number}", func(rw http.ResponseWriter, r *http.Request) {
		for _, p := range f.pulls {
			if strconv.Itoa(p.number) == r.PathValue("number") {
				say(rw, http.StatusOK, p.json())
				return
			}
		}
		say(rw, http.StatusNotFound, map[string]string{"message": "not found"})
	})
	mux.HandleFunc("GET "+repoPath+"/collaborators/{user}/permission", func(rw http.ResponseWriter, r *http.Request) {
		user := r.PathValue("user")
		say(rw, http.StatusOK, map[string]any{"permission": cmp.Or(levels[user], "read"), "user": map[string]any{"login": user}})
	})
}

func (p *pull) json() map[string]any {
	out := map[string]any{
		"number": p.number, "title": p.title, "state": p.state, "draft": p.draft, "html_url": "http://forge.example.com/platform/fleet/pulls/" + strconv.Itoa(p.number),
		"user": map[string]any{"login": p.author}, "updated_at": p.updated.UTC().Format(time.RFC3339), "merged": p.merged != "",
		"head": map[string]any{"label": "change", "ref": "change", "sha": p.head(), "repo": map[string]any{"id": 1}},
		"base": map[string]any{"label": "main", "ref": "main", "sha": "", "repo": map[string]any{"id": 1}},
	}
	if p.merged != "" {
		out["merge_commit_sha"] = p.merged
	}
	return out
}

func (c *comment) json() map[string]any {
	at := "http://forge.example.com/platform/fleet/pulls/" + strconv.Itoa(c.number)
	return map[string]any{
		"id": c.id, "body": c.body, "user": map[string]any{"login": c.author}, "html_url": at + "#issuecomment-" + strconv.Itoa(c.id),
		"created_at": c.created.UTC().Format(time.RFC3339), "updated_at": c.updated.UTC().Format(time.RFC3339), "pull_request_url": at, "issue_url": "",
	}
}

func (f *forge) serveComments(w *World, mux *http.ServeMux) {
	list := func(rw http.ResponseWriter, r *http.Request) {
		since, _ := time.Parse(time.RFC3339, r.URL.Query().Get("since")) // none is the zero time
		all := slices.DeleteFunc(slices.Clone(f.comments), func(c *comment) bool {
			n := r.PathValue("number")
			return n != "" && n != strconv.Itoa(c.number) || c.updated.Before(since)
		})
		out := []map[string]any{}
		for _, c := range page(r, all) {
			out = append(out, c.json())
		}
		say(rw, http.StatusOK, out)
	}
	mux.HandleFunc("GET "+repoPath+"/issues/comments", list)
	mux.HandleFunc("GET "+repoPath+"/issues/{number}/comments", list)
	mux.HandleFunc("POST "+repoPath+"/issues/{number}/comments", func(rw http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.PathValue("number"))
		c := f.write(n, bot, body(r))
		w.commented(caller(r.Context()), c)
		say(rw, http.StatusCreated, c.json())
	})
	byID := func(rw http.ResponseWriter, r *http.Request, do func(i int)) {
		i := slices.IndexFunc(f.comments, func(c *comment) bool { return strconv.Itoa(c.id) == r.PathValue("id") })
		if i < 0 {
			say(rw, http.StatusNotFound, map[string]string{"message": "not found"})
			return
		}
		do(i)
	}
	mux.HandleFunc("PATCH "+repoPath+"/issues/comments/{id}", func(rw http.ResponseWriter, r *http.Request) {
		byID(rw, r, func(i int) {
			c := f.comments[i]
			c.body, c.updated = body(r), time.Now()
			w.commented(caller(r.Context()), c)
			say(rw, http.StatusOK, c.json())
		})
	})
	mux.HandleFunc("DELETE "+repoPath+"/issues/comments/{id}", func(rw http.ResponseWriter, r *http.Request) {
		byID(rw, r, func(i int) {
			f.comments = slices.Delete(f.comments, i, i+1)
			rw.WriteHeader(http.StatusNoContent)
		})
	})
	mux.HandleFunc("GET "+repoPath+"/activities/feeds", func(rw http.ResponseWriter, r *http.Request) {
		all := slices.Clone(f.comments)
		slices.Reverse(all)
		out := []map[string]any{}
		for _, c := range page(r, all) {
			out = append(out, map[string]any{
				"op_type": "comment_pull", "comment_id": c.id, "content": strconv.Itoa(c.number) + "|" + c.first, "created": c.created.UTC().Format(time.RFC3339),
			})
		}
		say(rw, http.StatusOK, out)
	})
	mux.HandleFunc("POST "+repoPath+"/issues/comments/{id}/reactions", func(rw http.ResponseWriter, _ *http.Request) {
		say(rw, http.StatusCreated, struct{}{})
	})
}

func body(r *http.Request) string {
	var in struct{ Body string }
	_ = json.NewDecoder(r.Body).Decode(&in) // what cannot be read has no body
	return in.Body
}

// write adds a comment.
func (f *forge) write(number int, author, text string) *comment {
	f.ids++
	c := &comment{id: f.ids, number: number, author: author, body: text, first: text, created: time.Now(), updated: time.Now()}
	f.comments = append(f.comments, c)
	for _, p := range f.pulls {
		if p.number == number {
			p.updated = time.Now()
		}
	}
	return c
}

// told are the comments of an instance that show what a pull request does.
func (f *forge) told(m *instance, number int) (out []*comment) {
	for _, c := range f.comments {
		if c.number == number && c.author == bot && strings.Contains(c.body, report.PullMarker(m.name, "pools")) {
			out = append(out, c)
		}
	}
	return out
}

// serve gives each request of a daemon its turn.
func (w *World) serve(service string, h http.Handler) http.Handler {
	return http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		d := caller(r.Context())
		if d == nil {
			w.fail("nobody knows who asks %s for %s", service, r.URL)
			panic(http.ErrAbortHandler)
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		one := &call{daemon: d, service: service, name: r.Method + " " + r.URL.RequestURI(), body: string(body), write: r.Method != http.MethodGet}
		rec := httptest.NewRecorder()
		err = w.ask(r.Context(), one, func() {
			if strings.Contains(string(body), canary) {
				w.fail("a secret is sent to the %s", service)
			}
			ctx := r.Context()
			if one.fate.stale {
				ctx = context.WithValue(ctx, staleKey{}, true)
			}
			in := r.Clone(ctx)
			in.Body = io.NopCloser(strings.NewReader(string(body)))
			h.ServeHTTP(rec, in)
			if said := branchIn(rec.Body.String()); service == "git" && said != "" && !one.fate.lost {
				d.hear(said)
			}
		})
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		maps.Copy(rw.Header(), rec.Result().Header)
		rw.WriteHeader(rec.Code)
		_, _ = rw.Write(rec.Body.Bytes())
	})
}

// posted looks at what a commit is said to be.
func (w *World) posted(d *daemon, sha string, s postedStatus) {
	w.trace("%s: status %s %s %s: %s", d.id, sha[:7], s.Context, s.State, s.Description)
	w.speaks(d, sha, s)
	if !strings.HasPrefix(s.Context, d.name+"/") {
		w.fail("%s posts the status %s", d.name, s.Context)
	}
	if s.State != "success" || s.Description == "no target affected" {
		return
	}
	kind, target, _ := strings.Cut(strings.TrimPrefix(s.Context, d.name+"/"), "/")
	if kind == "plan" {
		w.planned(d, sha, s)
		return
	}
	for i := len(w.repo.heads) - 1; i >= 0; i-- {
		if h := w.repo.heads[i]; h.revision == sha && !h.broken {
			w.promised(d, h, target)
			return
		}
	}
	w.fail("commit %s is said to be applied, and cannot be: %s", sha, s.Description)
}
