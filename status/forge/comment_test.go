package forge

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// commentServer answers as GitHub Enterprise Server, GitLab and Gitea do to who reads
// and writes comments of pull request 12.
type commentServer struct {
	mu       sync.Mutex
	comments []Comment
	next     int64
	pageSize int
	// answer replaces the answer where it returns a status code.
	answer func(r *http.Request) (code int, body string)
}

func newCommentForges(t *testing.T) (*commentServer, map[string]Client) {
	t.Helper()
	s := &commentServer{next: 40, pageSize: 100}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	o := ClientOptions{URL: server.URL, Repository: "platform/fleet", Token: token("t0ken")}
	hub, err1 := o.open(GitHub)
	giteaForge, err2 := o.open(Gitea)
	o.Repository = gitlabProject
	lab, err3 := o.open(GitLab)
	if err := errors.Join(err1, err2, err3); err != nil {
		t.Fatal(err)
	}
	return s, map[string]Client{"github": hub, "gitea": giteaForge, "gitlab": lab}
}

func (s *commentServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	say := func(code int, v any) {
		w.WriteHeader(code)
		if v != nil {
			_ = json.NewEncoder(w).Encode(v)
		}
	}
	if s.answer != nil {
		if code, body := s.answer(r); code != 0 {
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
			return
		}
	}
	path := r.URL.EscapedPath()
	if strings.HasSuffix(path, "/user") {
		say(200, map[string]any{"id": 7, "login": "weir", "username": "weir"})
		return
	}
	if r.Method == http.MethodPost && path == "/api/graphql" {
		say(200, map[string]any{"data": map[string]any{"viewer": map[string]any{"login": "weir[bot]"}}})
		return
	}
	hub, isHub := strings.CutPrefix(strings.Replace(path, "/api/v1/", "/api/v3/", 1), "/api/v3/repos/platform/fleet/issues")
	lab, isLab := strings.CutPrefix(path, "/api/v4/projects/"+url.PathEscape(gitlabProject)+"/merge_requests/12/notes")
	show := func(c Comment) map[string]any {
		who := map[string]any{"login": c.Author, "username": c.Author}
		return map[string]any{"id": c.ID, "body": c.Body, "user": who, "author": who, "system": c.Author == "gitlab"}
	}
	id, err := strconv.ParseInt(path[strings.LastIndex(path, "/")+1:], 10, 64)
	one := err == nil && (isHub && strings.HasPrefix(hub, "/comments/") || isLab && lab != "")
	all := isHub && hub == "/12/comments" || isLab && lab == ""
	var in struct{ Body string }
	if r.Method == http.MethodPost || r.Method == http.MethodPut || r.Method == http.MethodPatch {
		if json.NewDecoder(r.Body).Decode(&in) != nil || in.Body == "" {
			say(422, map[string]any{"message": "Validation Failed"})
			return
		}
	}
	switch {
	case all && r.Method == http.MethodGet:
		page := max(1, number(r, "page"))
		from := min((page-1)*s.pageSize, len(s.comments))
		to := min(from+s.pageSize, len(s.comments))
		if to < len(s.comments) {
			w.Header().Set("X-Next-Page", strconv.Itoa(page+1))
			w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?page=%d>; rel="next"`, r.Host, path, page+1))
		}
		w.Header().Set("X-Total-Count", strconv.Itoa(len(s.comments)))
		list := []map[string]any{}
		for _, c := range s.comments[from:to] {
			list = append(list, show(c))
		}
		say(200, list)
	case all && r.Method == http.MethodPost:
		s.next++
		s.comments = append(s.comments, Comment{ID: s.next, Author: "weir", Body: in.Body})
		say(201, show(s.comments[len(s.comments)-1]))
	case one:
		for i, c := range s.comments {
			if c.ID != id {
				continue
			}
			switch {
			case r.Method == http.MethodDelete:
				s.comments = append(s.comments[:i:i], s.comments[i+1:]...)
				say(204, nil)
			case r.Method == http.MethodPatch && isHub, r.Method == http.MethodPut && isLab:
				s.comments[i].Body = in.Body
				say(200, show(s.comments[i]))
			default:
				say(405, map[string]any{"message": "Method Not Allowed"})
			}
			return
		}
		say(404, map[string]any{"message": "404 Not found"})
	default:
		say(404, map[string]any{"message": "404 Not found"})
	}
}

func number(r *http.Request, key string) int {
	n, _ := strconv.Atoi(r.URL.Query().Get(key))
	return n
}

func TestCommentsOnForges(t *testing.T) {
	for _, kind := range []string{"github", "gitea", "gitlab"} {
		t.Run(kind, func(t *testing.T) {
			s, forges := newCommentForges(t)
			f, ctx := forges[kind], t.Context()
			s.pageSize = 2
			for i := range 5 {
				s.comments = append(s.comments, Comment{ID: int64(i + 1), Author: "someone", Body: "words"})
			}
			made, err := f.CreateComment(ctx, 12, "first")
			if err != nil {
				t.Fatal(err)
			}
			id := made.ID
			if _, err := f.EditComment(ctx, 12, id, "second"); err != nil {
				t.Fatal(err)
			}
			list, err := f.Comments(ctx, 12, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(s.comments, bare(list)); diff != "" {
				t.Errorf("comments (-want +got):\n%s", diff)
			}
			if who, err := f.Self(ctx); who != "weir" || err != nil {
				t.Errorf("login %q, %v", who, err)
			}
			if err := f.DeleteComment(ctx, 12, id); err != nil {
				t.Fatal(err)
			}
			if _, err := f.EditComment(ctx, 12, id, "third"); !Gone(err) {
				t.Errorf("a deleted one: %v", err)
			}
			if len(s.comments) != 5 {
				t.Errorf("comments: %v", s.comments)
			}
		})
	}
}

func TestGitLabsOwnNotesAreNoComments(t *testing.T) {
	s, forges := newCommentForges(t)
	s.comments = []Comment{{ID: 1, Author: "gitlab", Body: "added 1 commit"}, {ID: 2, Author: "weir", Body: "x"}}
	list, err := forges["gitlab"].Comments(t.Context(), 12, time.Time{})
	if diff := cmp.Diff([]Comment{{ID: 2, Author: "weir", Body: "x"}}, bare(list)); diff != "" || err != nil {
		t.Error(diff, err)
	}
}

func TestAnAppIsAskedWhoItIs(t *testing.T) {
	s, forges := newCommentForges(t)
	s.answer = func(r *http.Request) (int, string) {
		if strings.HasSuffix(r.URL.Path, "/user") {
			return 403, `{"message":"Resource not accessible by integration"}`
		}
		if r.Method == http.MethodPost {
			var in struct{ Query string }
			if json.NewDecoder(r.Body).Decode(&in) != nil || in.Query != "query{viewer{login}}" || r.URL.Path != "/api/graphql" {
				return 400, `{"message":"bad query"}`
			}
			return 200, `{"data":{"viewer":{"login":"weir[bot]"}}}`
		}
		return 0, ""
	}
	if who, err := forges["github"].Self(t.Context()); who != "weir[bot]" || err != nil {
		t.Errorf("%q, %v", who, err)
	}
}

func TestRefusalsOfComments(t *testing.T) {
	for _, tt := range []struct {
		forge string
		code  int
		body  string
		fault forgehttp.Fault
		says  string
		long  bool
	}{
		{"github", 401, `{"message":"Bad credentials"}`, forgehttp.FaultDenied, "wrong, expired or revoked", false},
		{"github", 403, `{"message":"Resource not accessible by personal access token"}`, forgehttp.FaultDenied, "Pull requests: read and write", false},
		{"github", 404, `{"message":"Not Found"}`, forgehttp.FaultDenied, "Pull requests: read and write", false},
		{"github", 410, `{"message":"Issues are disabled for this repo"}`, forgehttp.FaultRefused, "disabled", false},
		{"github", 403, `{"message":"Unable to create comment because issue is locked."}`, forgehttp.FaultRefused, "unlock it", false},
		{"github", 422, `{"message":"Validation Failed","errors":[{"resource":"IssueComment","field":"data","code":"unprocessable","message":"Body is too long (maximum is 65536 characters)"}]}`, forgehttp.FaultRefused, "too long", true},
		{"github", 502, `gateway`, forgehttp.FaultBusy, "", false},
		{"gitlab", 401, `{"message":"401 Unauthorized"}`, forgehttp.FaultDenied, "wrong, expired or revoked", false},
		{"gitlab", 403, `{"error":"insufficient_scope","error_description":"The request requires higher privileges"}`, forgehttp.FaultDenied, "write comments on pull requests (insufficient_scope: The request requires higher privileges): it needs the scope api", false},
		{"gitlab", 404, `{"message":"404 Project Not Found"}`, forgehttp.FaultDenied, "scope api", false},
		{"gitlab", 400, `{"message":{"note":["is too long (maximum is 1000000 characters)"]}}`, forgehttp.FaultRefused, "too long", true},
		{"gitlab", 413, `too large`, forgehttp.FaultRefused, "", true},
		{"gitlab", 429, `Retry later`, forgehttp.FaultBusy, "", false},
		{"gitea", 403, `{"message":"token does not have at least one of required scope(s): [write:issue]"}`, forgehttp.FaultDenied, "it needs the scope write:issue", false},
		{"gitea", 404, `{"message":"The target couldn't be found."}`, forgehttp.FaultDenied, "write:issue", false},
		{"gitea", 403, `{"message":"Commenting on a locked issue is not allowed"}`, forgehttp.FaultRefused, "unlock it", false},
		{"gitea", 500, `{"message":"Error 1406: Data too long for column 'content' at row 1"}`, forgehttp.FaultMissing, "too long", true},
		{"gitea", 500, `{"message":"issue does not exist"}`, forgehttp.FaultMissing, "does not exist", false},
	} {
		t.Run(fmt.Sprint(tt.forge, tt.code, tt.says), func(t *testing.T) {
			s, forges := newCommentForges(t)
			s.answer = func(*http.Request) (int, string) { return tt.code, tt.body }
			_, err := forges[tt.forge].CreateComment(t.Context(), 12, "text")
			var e *forgehttp.Error
			if !errors.As(err, &e) || e.Fault != tt.fault || e.Status != tt.code || !strings.Contains(e.Error(), tt.says) || TooLong(err) != tt.long {
				t.Errorf("got %+v, too long %t", err, TooLong(err))
			}
			if strings.Contains(fmt.Sprint(err), "statuses") || strings.Contains(fmt.Sprint(err), "t0ken") {
				t.Errorf("it says %v", err)
			}
		})
	}
}

// bare leaves of comments what the fake has of them.
func bare(list []Comment) (out []Comment) {
	for _, c := range list {
		out = append(out, Comment{ID: c.ID, Author: c.Author, Body: c.Body})
	}
	return out
}
