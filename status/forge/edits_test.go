package forge

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// graph answers GraphQL queries with a document, if they ask for the comment with an id.
func (f *fakeForge) graph(path, id, document string) func(r *http.Request) (int, http.Header, string) {
	return func(r *http.Request) (int, http.Header, string) {
		if r.Method != http.MethodPost || r.URL.Path != path {
			return 0, nil, ""
		}
		var in struct {
			Query     string
			Variables map[string]string
		}
		if json.Unmarshal([]byte(f.bodies[len(f.bodies)-1]), &in) != nil || in.Variables["id"] != id || !strings.Contains(in.Query, "lastEditedAt") {
			return http.StatusBadRequest, nil, `{"message":"another query"}`
		}
		return http.StatusOK, http.Header{"Content-Type": {"application/json"}}, document
	}
}

func TestEditsOfGitHubAndGitLab(t *testing.T) {
	created := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for _, forge := range []struct {
		kind             Kind
		path, id, member string
	}{
		{GitHub, "/api/graphql", "IC_1", "node"}, {GitLab, "/api/graphql", "gid://gitlab/Note/7", "note"},
	} {
		document := func(inner string) string {
			return fmt.Sprintf(`{"data":{%q:%s}}`, forge.member, inner)
		}
		for name, tt := range map[string]struct {
			document string
			body     string
			updated  time.Time
			want     Edits
		}{
			"as it was written":   {document(`{"body":"weir approve\r\n","lastEditedAt":null}`), "weir approve\n", created, Unedited},
			"edited":              {document(`{"body":"weir approve","lastEditedAt":"2026-05-01T12:00:00Z"}`), "weir approve", created, Edited},
			"edited since":        {document(`{"body":"never mind","lastEditedAt":null}`), "weir approve", created, Edited},
			"a thread resolved":   {document(`{"body":"weir approve","lastEditedAt":null}`), "weir approve", created.Add(time.Hour), Unedited},
			"gone, or not shown":  {document(`null`), "weir approve", created.Add(time.Hour), EditsUnknown},
			"no such query":       {`{"errors":[{"message":"Field 'note' doesn't exist on type 'Query'"}]}`, "weir approve", created.Add(time.Hour), EditsUnknown},
			"a list's beginning":  {document(`{"body":"weir approve\n` + strings.Repeat("x", 3*maxComment) + `","lastEditedAt":null}`), Beginning("weir approve\n" + strings.Repeat("x", 3*maxComment)), created, Unedited},
			"a changed beginning": {document(`{"body":"weir approvf\n` + strings.Repeat("x", 3*maxComment) + `","lastEditedAt":null}`), Beginning("weir approve\n" + strings.Repeat("x", 3*maxComment)), created, Edited},
		} {
			t.Run(string(forge.kind)+" "+name, func(t *testing.T) {
				f := newFakeForge(forge.kind)
				f.answer = f.graph(forge.path, forge.id, tt.document)
				got, err := f.client(t).Edits(t.Context(), Comment{ID: 7, Number: 3, Node: "IC_1", Body: tt.body, CreatedAt: created, UpdatedAt: tt.updated})
				if got != tt.want || err != nil {
					t.Errorf("%d, %v, want %d", got, err, tt.want)
				}
			})
		}
		t.Run(string(forge.kind)+" refuses", func(t *testing.T) {
			f := newFakeForge(forge.kind)
			f.answer = func(*http.Request) (int, http.Header, string) {
				return http.StatusForbidden, nil, `{"message":"Resource not accessible"}`
			}
			_, err := f.client(t).Edits(t.Context(), Comment{ID: 7, Number: 3, Node: "IC_1"})
			var e *forgehttp.Error
			if !errors.As(err, &e) || e.Fault != forgehttp.FaultDenied || !strings.Contains(e.Message, "read whether a comment was edited") {
				t.Errorf("%v", err)
			}
		})
	}
	// GitLab before 15.9, of a note to which nothing happened.
	f := newFakeForge(GitLab)
	f.answer = f.graph("/api/graphql", "gid://gitlab/Note/7", `{"errors":[]}`)
	if got, err := f.client(t).Edits(t.Context(), Comment{ID: 7, CreatedAt: created, UpdatedAt: created}); got != Unedited || err != nil {
		t.Errorf("%d, %v", got, err)
	}
}

// Gitea's own activity shows what a comment first said, also where its times do not.
func TestEditsOfGitea(t *testing.T) {
	created := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	long := "weir approve\n\n" + strings.Repeat("because it is so ", 20)
	hidden := "<!-- " + strings.Repeat("x", 200) + " -->\nweir approve"
	for name, tt := range map[string]struct {
		first   string // in the activity, "" if that does not show it
		body    string
		updated time.Time
		want    Edits
	}{
		"as it was written":            {"weir approve", "weir approve", created, Unedited},
		"its times show an edit":       {"weir approve", "weir approve", created.Add(time.Second), Edited},
		"edited within the second":     {"looks good", "weir approve", created, Edited},
		"more was put in front":        {"weir approve", "weir approve\nand more", created, Edited},
		"a pipe in it":                 {"weir plan | x", "weir plan | x", created, Unedited},
		"hidden activity":              {"", "weir approve", created, EditsUnknown},
		"long":                         {long[:120] + "…", long, created, Unedited},
		"long, with broken characters": {long[:120] + "...", long, created, Unedited},
		"long, another":                {"looks good " + long[:100] + "…", long, created, Edited},
		"the command is not in it":     {hidden[:150] + "…", hidden, created, EditsUnknown},
		"it ends with an ellipsis":     {"weir plan…", "weir plan…", created, Unedited},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFakeForge(Gitea)
			f.answer = func(r *http.Request) (int, http.Header, string) {
				if r.URL.Path != "/api/v1/repos/platform/fleet/activities/feeds" {
					return 0, nil, ""
				}
				entry := func(op string, comment int64, content string, at time.Time) map[string]any {
					return map[string]any{"op_type": op, "comment_id": comment, "content": content, "created": stamp(at)}
				}
				list := []map[string]any{
					entry("comment_pull", 8, "3|weir help", created.Add(time.Minute)), entry("commit_repo", 0, "{}", created),
					entry("comment_issue", 7, "3|nothing of it", created), entry("comment_pull", 7, "4|nothing of it", created),
				}
				if tt.first != "" {
					list = append(list, entry("comment_pull", 7, "3|"+tt.first, created))
				}
				body, err := json.Marshal(list)
				if err != nil {
					panic(err)
				}
				return http.StatusOK, http.Header{"X-Total-Count": {fmt.Sprint(len(list))}}, string(body)
			}
			got, err := f.client(t).Edits(t.Context(), Comment{ID: 7, Number: 3, Body: tt.body, CreatedAt: created, UpdatedAt: tt.updated})
			if got != tt.want || err != nil {
				t.Errorf("%d, %v, want %d", got, err, tt.want)
			}
		})
	}
	f := newFakeForge(Gitea)
	if got, err := f.client(t).Edits(t.Context(), Comment{ID: 7, Number: 3, CreatedAt: created, UpdatedAt: created}); got != EditsUnknown || err != nil {
		t.Errorf("a Gitea without activity: %d, %v", got, err)
	}
}

// Of the pull requests of two branches the newest counts, on every forge.
func TestGiteaPullOfIsTheNewest(t *testing.T) {
	one := func(number int, head, base string, repo int) map[string]any {
		return map[string]any{
			"number": number, "state": "closed", "head": map[string]any{"label": head, "ref": head, "repo": map[string]any{"id": repo}},
			"base": map[string]any{"label": base, "ref": base, "repo": map[string]any{"id": 1}},
		}
	}
	deleted := one(7, "weir/x", "main", 1) // its branch is
	deleted["head"].(map[string]any)["ref"] = "refs/pull/7/head"
	f := newFakeForge(Gitea)
	f.answer = func(r *http.Request) (int, http.Header, string) {
		var out any
		switch q := r.URL.Query(); {
		case strings.HasSuffix(r.URL.Path, "/pulls/main/weir/x"):
			out = one(2, "weir/x", "main", 1) // as Gitea does
		case strings.HasSuffix(r.URL.Path, "/pulls") && q.Get("state") == "all" && q.Get("sort") == "":
			out = []any{one(9, "weir/x", "other", 1), one(8, "weir/x", "main", 2), deleted, one(5, "weir/x", "main", 1), one(2, "weir/x", "main", 1)}
		default:
			return http.StatusNotFound, nil, `{"message":"not found"}`
		}
		body, err := json.Marshal(out)
		if err != nil {
			panic(err)
		}
		return http.StatusOK, nil, string(body)
	}
	p, found, err := f.client(t).PullOf(t.Context(), "main", "weir/x")
	if p.Number != 7 || !found || err != nil {
		t.Errorf("pull request %d, %t, %v", p.Number, found, err)
	}
	if _, found, err := f.client(t).PullOf(t.Context(), "main", "weir/y"); found || err != nil {
		t.Errorf("of a branch without one: %t, %v", found, err)
	}
}
