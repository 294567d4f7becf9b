package forge

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
)

func readAll(r *http.Request) string {
	text, err := io.ReadAll(r.Body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// gitlabIDs are the ids of users.
var gitlabIDs = []string{"ada", "grace", "linus", "guest", "planner", "blocked"}

// lab answers as GitLab does.
func (f *fakeForge) lab(w *httptest.ResponseRecorder, r *http.Request, own bool, path string) {
	q := r.URL.Query()
	var n int64
	switch {
	case path == "/user":
		f.say(w, r, map[string]any{"username": "weir-bot", "id": 1})
	case path == "/users":
		out := []map[string]any{}
		if i := slices.Index(gitlabIDs, strings.ToLower(q.Get("username"))); i >= 0 {
			out = append(out, map[string]any{"id": i + 100, "username": gitlabIDs[i]})
		}
		f.say(w, r, out)
	case !own:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodPost:
		w.WriteHeader(http.StatusCreated)
		_, _ = w.WriteString("{}")
	case path == "/merge_requests" && q.Get("state") != "" && q.Get("order_by") == "updated_at" && q.Get("sort") == "desc":
		list := slices.DeleteFunc(f.sorted(q.Get("state")), func(p *fakePull) bool { return p.updated.Before(at(q.Get("updated_after"))) })
		out := []map[string]any{}
		for _, p := range page(f, w, r, list) {
			out = append(out, f.gitlabPull(p))
		}
		f.say(w, r, out)
	case strings.HasPrefix(path, "/members/all/"):
		id, _ := strconv.Atoi(strings.TrimPrefix(path, "/members/all/"))
		level, err := strconv.Atoi(f.levels[gitlabIDs[id-100]])
		if err != nil {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		state := "active"
		if gitlabIDs[id-100] == "blocked" {
			state = "blocked"
		}
		f.say(w, r, map[string]any{"id": id, "access_level": level, "state": state})
	case scan(path, "/merge_requests/%d/notes", &n):
		list := f.since("", func(c fakeComment) bool { return c.on == n && !c.issue })
		slices.SortStableFunc(list, func(a, b fakeComment) int { return b.updated.Compare(a.updated) })
		out := []map[string]any{}
		for _, c := range page(f, w, r, list) {
			out = append(out, map[string]any{
				"id": c.id, "body": c.body, "author": map[string]any{"username": c.author}, "system": c.system,
				"created_at": stamp(c.created), "updated_at": stamp(c.updated),
			})
		}
		f.say(w, r, out)
	case scan(path, "/merge_requests/%d", &n) && f.pulls[n] != nil:
		f.say(w, r, f.gitlabPull(f.pulls[n]))
	default:
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.WriteString(`{"message":"404 Not found"}`)
	}
}

func (f *fakeForge) gitlabPull(p *fakePull) map[string]any {
	state := "opened"
	switch {
	case p.merged:
		state = "merged"
	case p.closed:
		state = "closed"
	}
	return map[string]any{
		"iid": p.number, "title": p.title, "state": state, "updated_at": stamp(p.updated), "labels": append([]string{}, p.labels...),
		"author": map[string]any{"username": "ada"}, "sha": sha1b, "source_branch": "topic", "target_branch": "main",
		"source_project_id": 5, "target_project_id": 5, "merge_commit_sha": sha1a,
	}
}
