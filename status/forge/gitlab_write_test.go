package forge

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// gitlabServer answers as GitLab does for the project company/platform/fleet: a
// status is a job in a pipeline, and jobs have transitions.
type gitlabServer struct {
	mu      sync.Mutex
	commits map[string]bool
	jobs    []map[string]any
	bodies  []map[string]any
	reads   int
	// answer replaces the answer where it returns a status code.
	answer func(r *http.Request) (code int, h http.Header, body string)
	// closed pipelines take no jobs.
	closed map[int64]bool
	tokens []string
	next   int64
}

const gitlabProject = "company/platform/fleet"

func newGitLabServer(t *testing.T, commits ...string) (*gitlabServer, Client) {
	t.Helper()
	s := &gitlabServer{commits: map[string]bool{}, closed: map[int64]bool{}, next: 70}
	for _, c := range commits {
		s.commits[c] = true
	}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	g, err := New(ClientOptions{Kind: GitLab, URL: server.URL, Repository: gitlabProject, Ref: "main", Token: token("glpat-1")})
	if err != nil {
		t.Fatal(err)
	}
	return s, g
}

func (s *gitlabServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = append(s.tokens, r.Header.Get("Authorization"))
	w.Header().Set("Content-Type", "application/json")
	say := func(code int, v any) {
		w.WriteHeader(code)
		_ = json.NewEncoder(w).Encode(v)
	}
	if s.answer != nil {
		if code, h, body := s.answer(r); code != 0 {
			for k, v := range h {
				w.Header()[k] = v
			}
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
			return
		}
	}
	rest, ok := strings.CutPrefix(r.URL.EscapedPath(), "/api/v4/projects/"+url.PathEscape(gitlabProject))
	if !ok {
		say(404, map[string]any{"message": "404 Project Not Found"})
		return
	}
	parts := strings.Split(strings.Trim(rest, "/"), "/")
	switch {
	case r.Method == http.MethodPost && len(parts) == 2 && parts[0] == "statuses":
		s.create(r, parts[1], say)
	case r.Method == http.MethodGet && len(parts) == 4 && parts[1] == "commits" && parts[3] == "statuses":
		s.list(w, r, parts[2], say)
	default:
		say(404, map[string]any{"error": "404 Not Found"})
	}
}

func (s *gitlabServer) create(r *http.Request, sha string, say func(int, any)) {
	var in map[string]any
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		say(400, map[string]any{"error": "body is invalid"})
		return
	}
	s.bodies = append(s.bodies, in)
	for _, key := range []string{"description", "target_url", "name"} {
		if text, _ := in[key].(string); len(text) > 255 {
			say(400, map[string]any{"message": map[string]any{key: []string{"is too long (maximum is 255 characters)"}}})
			return
		}
	}
	if !s.commits[sha] {
		say(404, map[string]any{"message": "404 Commit Not Found"})
		return
	}
	pipeline := int64(7)
	if n, ok := in["pipeline_id"].(float64); ok {
		pipeline = int64(n)
	} else if s.closed[7] {
		pipeline = 8
	}
	if s.closed[pipeline] {
		say(404, map[string]any{"message": "404 Pipeline Not Found"})
		return
	}
	state := fmt.Sprint(in["state"])
	var job map[string]any
	for _, j := range s.jobs {
		if j["name"] == in["name"] && j["sha"] == sha && (j["status"] == "pending" || j["status"] == "running") {
			job = j
		}
	}
	if job != nil && (job["status"] == state || job["status"] == "running" && state == "pending") {
		event := map[string]string{"pending": "enqueue", "running": "run"}[state]
		say(400, map[string]any{"message": fmt.Sprintf("Cannot transition status via :%s from :%s (Reason(s): Status cannot transition via %q)", event, job["status"], event)})
		return
	}
	if job == nil {
		s.next++
		job = map[string]any{"id": s.next, "sha": sha, "name": in["name"]}
		s.jobs = append(s.jobs, job)
	}
	job["status"], job["description"], job["target_url"], job["pipeline_id"], job["ref"] = state, in["description"], in["target_url"], pipeline, in["ref"]
	say(201, job)
}

func (s *gitlabServer) list(w http.ResponseWriter, r *http.Request, sha string, say func(int, any)) {
	s.reads++
	if !s.commits[sha] {
		say(404, map[string]any{"message": "404 Commit Not Found"})
		return
	}
	var list []map[string]any
	for _, j := range s.jobs {
		if j["sha"] == sha {
			list = append(list, j)
		}
	}
	size, _ := strconv.Atoi(r.URL.Query().Get("per_page"))
	page, _ := strconv.Atoi(r.URL.Query().Get("page"))
	from, to := min((page-1)*size, len(list)), min(page*size, len(list))
	if to < len(list) {
		w.Header().Set("X-Next-Page", strconv.Itoa(page+1))
	}
	say(200, slices.Concat([]map[string]any{}, list[from:to]))
}

// trail are the states that were asked for of a context, in order.
func (s *gitlabServer) trail() (out []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.bodies {
		out = append(out, fmt.Sprint(b["state"]))
	}
	return out
}

func TestGitLabTransitions(t *testing.T) {
	set := func(state CommitState, text string) CommitStatus {
		return CommitStatus{Context: "prod/apply", State: state, Description: text}
	}
	for name, tt := range map[string]struct {
		in   []CommitStatus
		want string // states that were asked for
		has  CommitState
		text string
	}{
		"to success":         {[]CommitStatus{set(Pending, "a"), set(Success, "b")}, "pending success", Success, "b"},
		"new words once":     {[]CommitStatus{set(Pending, "a"), set(Pending, "b"), set(Pending, "c"), set(Pending, "d"), set(Failure, "e")}, "pending running failed", Failure, "e"},
		"what moves shows":   {[]CommitStatus{set(Pending, "a"), set(Pending, "b"), set(Pending, "c")}, "pending running", Pending, "b"},
		"superseded":         {[]CommitStatus{set(Pending, "a"), set(Errored, "superseded by 1234567")}, "pending canceled", Errored, "superseded by 1234567"},
		"at once":            {[]CommitStatus{set(Success, "no target affected")}, "success", Success, "no target affected"},
		"begins anew":        {[]CommitStatus{set(Failure, "a"), set(Pending, "b"), set(Success, "c")}, "failed pending success", Success, "c"},
		"success twice":      {[]CommitStatus{set(Success, "a"), set(Success, "b")}, "success success", Success, "b"},
		"failure to success": {[]CommitStatus{set(Failure, "a"), set(Success, "b")}, "failed success", Success, "b"},
	} {
		t.Run(name, func(t *testing.T) {
			s, g := newGitLabServer(t, "c1")
			for _, in := range tt.in {
				if err := g.SetStatus(t.Context(), "c1", in); err != nil {
					t.Fatal(err)
				}
			}
			if got := strings.Join(s.trail(), " "); got != tt.want {
				t.Errorf("asked for %s, want %s", got, tt.want)
			}
			has, err := g.Statuses(t.Context(), "c1")
			if err != nil || has["prod/apply"].State != tt.has || has["prod/apply"].Description != tt.text {
				t.Errorf("it has %v, %v", has, err)
			}
		})
	}
}

// TestGitLabAfterARestart knows nothing of what the process before it wrote.
func TestGitLabAfterARestart(t *testing.T) {
	s, first := newGitLabServer(t, "c1")
	for _, text := range []string{"a", "b"} {
		if err := first.SetStatus(t.Context(), "c1", CommitStatus{Context: "prod/apply", State: Pending, Description: text}); err != nil {
			t.Fatal(err)
		}
	}
	fresh := func() Client {
		return &gitLab{caller: first.(*gitLab).caller, client: first.(*gitLab).client, project: gitlabProject, ref: "main", size: 100, commits: map[string]*gitlabCommit{}}
	}
	// The job runs and cannot be made pending: that is what was wanted.
	if err := fresh().SetStatus(t.Context(), "c1", CommitStatus{Context: "prod/apply", State: Pending, Description: "c"}); err != nil {
		t.Errorf("pending again: %v", err)
	}
	second := fresh()
	if _, err := second.Statuses(t.Context(), "c1"); err != nil {
		t.Fatal(err)
	}
	writes := len(s.trail())
	if err := second.SetStatus(t.Context(), "c1", CommitStatus{Context: "prod/apply", State: Pending, Description: "d"}); err != nil || len(s.trail()) != writes {
		t.Errorf("%v, %d writes", err, len(s.trail())-writes)
	}
	if err := second.SetStatus(t.Context(), "c1", CommitStatus{Context: "prod/apply", State: Success, Description: "e"}); err != nil {
		t.Error(err)
	}
}

func TestGitLabKeepsToOnePipeline(t *testing.T) {
	s, g := newGitLabServer(t, "c1")
	long := "https://weir.example.com/" + strings.Repeat("x", 300)
	for i, name := range []string{"prod/apply", "prod/apply/a", "prod/apply/b"} {
		if err := g.SetStatus(t.Context(), "c1", CommitStatus{Context: name, State: Success, Description: "ok", TargetURL: []string{long, "https://weir.example.com/", ""}[i]}); err != nil {
			t.Fatal(err)
		}
	}
	if s.bodies[0]["pipeline_id"] != nil || s.bodies[1]["pipeline_id"] != 7.0 || s.bodies[2]["ref"] != "main" || s.bodies[0]["target_url"] != nil || s.bodies[1]["target_url"] == nil {
		t.Errorf("sent %v", s.bodies)
	}
	s.closed[7] = true
	if err := g.SetStatus(t.Context(), "c1", CommitStatus{Context: "prod/apply/c", State: Success, Description: "ok"}); err != nil {
		t.Errorf("the pipeline is gone: %v", err)
	}
	if got := s.jobs[len(s.jobs)-1]["pipeline_id"]; got != int64(8) {
		t.Errorf("the new job is in pipeline %v", got)
	}
}

func TestGitLabReadsAllPages(t *testing.T) {
	s, g := newGitLabServer(t, "c1")
	for i := range 250 {
		s.next++
		s.jobs = append(s.jobs, map[string]any{"id": s.next, "sha": "c1", "name": fmt.Sprint("x/", i%240), "status": []string{"success", "canceled"}[i/240], "description": nil, "target_url": nil, "pipeline_id": 7})
	}
	has, err := g.Statuses(t.Context(), "c1")
	if err != nil || len(has) != 240 || s.reads != 3 || has["x/3"].State != Errored || has["x/30"].State != Success {
		t.Errorf("%d contexts in %d reads, %v, %v", len(has), s.reads, has["x/3"], err)
	}
}

func TestGitLabFaults(t *testing.T) {
	reset := strconv.FormatInt(time.Now().Add(90*time.Second).Unix(), 10)
	for name, tt := range map[string]struct {
		code  int
		h     http.Header
		body  string
		fault forgehttp.Fault
		text  string
		after time.Duration // at least
	}{
		"no token":        {401, nil, `{"message":"401 Unauthorized"}`, forgehttp.FaultDenied, "not accepted", 0},
		"revoked":         {401, nil, `{"error":"invalid_token","error_description":"Token was revoked. You have to re-authorize from the user."}`, forgehttp.FaultDenied, "Token was revoked", 0},
		"scope":           {403, nil, `{"error":"insufficient_scope","error_description":"The request requires higher privileges than provided by the access token.","scope":"api"}`, forgehttp.FaultDenied, "it needs the scope api", 0},
		"role":            {403, nil, `{"message":"403 Forbidden"}`, forgehttp.FaultDenied, "role Developer", 0},
		"hidden project":  {404, nil, `{"message":"404 Project Not Found"}`, forgehttp.FaultDenied, "company/platform/fleet is not found", 0},
		"no commit yet":   {404, nil, `{"message":"404 Commit Not Found"}`, forgehttp.FaultMissing, "Commit", 0},
		"parallel":        {409, nil, `{"message":"409 Conflict"}`, forgehttp.FaultBusy, "Conflict", 0},
		"too long":        {400, nil, `{"message":{"description":["is too long (maximum is 255 characters)"]}}`, forgehttp.FaultRefused, "too long", 0},
		"throttled":       {429, http.Header{"Retry-After": {"60"}}, "Retry later\n", forgehttp.FaultBusy, "Retry later", time.Minute},
		"by its headers":  {429, http.Header{"Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {reset}}, "Retry later\n", forgehttp.FaultBusy, "Retry later", 80 * time.Second},
		"a proxy's page":  {502, http.Header{"Content-Type": {"text/html"}}, "<html>" + strings.Repeat("x", 5000), forgehttp.FaultBusy, "<html>", 0},
		"broken":          {500, nil, `{"message":"500 Internal Server Error"}`, forgehttp.FaultMissing, "500", 0},
		"another answer":  {200, nil, `<html>login</html>`, forgehttp.FaultBusy, "not from the API of gitlab", 0},
		"nothing is said": {403, nil, ``, forgehttp.FaultDenied, "role Developer", 0},
	} {
		t.Run(name, func(t *testing.T) {
			s, g := newGitLabServer(t, "c1")
			s.answer = func(*http.Request) (int, http.Header, string) { return tt.code, tt.h, tt.body }
			err := g.SetStatus(t.Context(), "c1", CommitStatus{Context: "x", State: Success})
			var refusal *forgehttp.Error
			if !errors.As(err, &refusal) {
				t.Fatal(err)
			}
			if refusal.Fault != tt.fault || !strings.Contains(refusal.Error(), tt.text) || refusal.After < tt.after || len(refusal.Error()) > 600 {
				t.Errorf("%s after %s: %v", refusal.Fault, refusal.After, refusal)
			}
			if strings.Contains(refusal.Error(), "glpat-1") {
				t.Error("the token is shown")
			}
		})
	}
}

func TestGitLabProjects(t *testing.T) {
	for address, want := range map[string]string{
		"https://gitlab.com/company/platform/fleet":          "company/platform/fleet",
		"https://gitlab.com/company/platform/deep/fleet.git": "company/platform/deep/fleet",
		"git@gitlab.com:company/platform/fleet.git":          "company/platform/fleet",
		"https://gitlab.com/fleet":                           "",
	} {
		if got, err := ProjectOf(address); got != want || (err == nil) != (want != "") {
			t.Errorf("ProjectOf(%q) = %q, %v", address, got, err)
		}
	}
	for _, bad := range []string{"", "fleet", "a//b", "/"} {
		if _, err := New(ClientOptions{Kind: GitLab, URL: "https://gitlab.com", Repository: bad}); err == nil {
			t.Errorf("NewGitLab takes %q", bad)
		}
	}
	if _, err := New(ClientOptions{Kind: GitLab, URL: "gitlab.com", Repository: "a/b"}); err == nil {
		t.Error("NewGitLab takes an address without scheme")
	}
}
