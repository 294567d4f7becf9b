package forge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// forgeServer answers as GitHub Enterprise Server and Gitea do, below /api/v3
// and /api/v1, for the repository platform/fleet.
type forgeServer struct {
	mu sync.Mutex
	// commits holds the statuses of each commit that exists, oldest first.
	commits  map[string][]map[string]any
	nextID   int
	requests []string
	tokens   []string
	// answer replaces the answer where it returns a status code.
	answer func(r *http.Request) (code int, header http.Header, body string)
	writes int
}

func newForgeServer(t *testing.T, commits ...string) (*forgeServer, string) {
	t.Helper()
	f := &forgeServer{commits: map[string][]map[string]any{}}
	for _, sha := range commits {
		f.commits[sha] = nil
	}
	mux := http.NewServeMux()
	for _, api := range []string{"/api/v3", "/api/v1"} {
		mux.HandleFunc("POST "+api+"/repos/platform/fleet/statuses/{sha}", f.create)
		mux.HandleFunc("GET "+api+"/repos/platform/fleet/commits/{sha}/statuses", f.list)
	}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.requests = append(f.requests, r.Method+" "+r.URL.Path)
		f.tokens = append(f.tokens, r.Header.Get("Authorization"))
		if f.answer != nil {
			if code, header, body := f.answer(r); code != 0 {
				for k, v := range header {
					w.Header()[k] = v
				}
				w.WriteHeader(code)
				_, _ = w.Write([]byte(body))
				return
			}
		}
		mux.ServeHTTP(w, r)
	}))
	t.Cleanup(srv.Close)
	return f, srv.URL
}

func isGitHub(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/v3/") }

func refuse(w http.ResponseWriter, code int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": message})
}

func (f *forgeServer) create(w http.ResponseWriter, r *http.Request) {
	var in map[string]any
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		refuse(w, http.StatusUnprocessableEntity, "not JSON")
		return
	}
	sha := r.PathValue("sha")
	if !f.exists(w, r, sha) {
		return
	}
	text := func(k string) string { s, _ := in[k].(string); return s }
	state := text("state")
	same := 0
	for _, s := range f.commits[sha] {
		if s["context"] == text("context") {
			same++
		}
	}
	switch {
	case state != "pending" && state != "success" && state != "failure" && state != "error":
		refuse(w, http.StatusUnprocessableEntity, "Validation Failed")
		return
	case isGitHub(r) && utf8.RuneCountInString(text("description")) > 140:
		refuse(w, http.StatusUnprocessableEntity, "Validation Failed: description is too long (maximum is 140 characters)")
		return
	case utf8.RuneCountInString(text("context")) > 255:
		refuse(w, http.StatusUnprocessableEntity, "Validation Failed: context is too long")
		return
	case isGitHub(r) && same >= 1000:
		refuse(w, http.StatusUnprocessableEntity, "This SHA and context has reached the maximum number of statuses.")
		return
	}
	f.nextID++
	f.writes++
	item := map[string]any{"id": f.nextID, "context": text("context"), "description": text("description"), "target_url": text("target_url")}
	if isGitHub(r) {
		item["state"] = state
	} else {
		item["status"] = state
	}
	f.commits[sha] = append(f.commits[sha], item)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(item)
}

func (f *forgeServer) exists(w http.ResponseWriter, r *http.Request, sha string) bool {
	if _, ok := f.commits[sha]; ok {
		return true
	}
	if isGitHub(r) {
		refuse(w, http.StatusUnprocessableEntity, "No commit found for SHA: "+sha)
	} else {
		refuse(w, http.StatusInternalServerError, "object does not exist [id: "+sha+", rel_path: ]")
	}
	return false
}

func (f *forgeServer) list(w http.ResponseWriter, r *http.Request) {
	sha := r.PathValue("sha")
	if !f.exists(w, r, sha) {
		return
	}
	q := r.URL.Query()
	size, _ := strconv.Atoi(q.Get("per_page"))
	if !isGitHub(r) {
		size, _ = strconv.Atoi(q.Get("limit"))
	}
	page, _ := strconv.Atoi(q.Get("page"))
	page = max(page, 1)
	all := f.commits[sha]
	out := []map[string]any{}
	for i := (page - 1) * size; i < min(page*size, len(all)); i++ {
		if isGitHub(r) {
			out = append(out, all[len(all)-1-i]) // newest first
		} else {
			out = append(out, all[i]) // ties within a second: any order
		}
	}
	if page*size < len(all) {
		q.Set("page", strconv.Itoa(page+1))
		w.Header().Set("Link", fmt.Sprintf(`<http://%s%s?%s>; rel="next"`, r.Host, r.URL.Path, q.Encode()))
	}
	w.Header().Set("X-Total-Count", strconv.Itoa(len(all)))
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(out)
}

// newest is what a person sees on a commit.
func (f *forgeServer) newest(sha string) map[string]CommitStatus {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := map[string]CommitStatus{}
	for _, s := range f.commits[sha] {
		text := func(k string) string { v, _ := s[k].(string); return v }
		out[text("context")] = CommitStatus{
			Context: text("context"), State: CommitState(text("state") + text("status")),
			Description: text("description"), TargetURL: text("target_url"),
		}
	}
	return out
}

const shaNew = "4be91a7730c2d9f1e8a7b6c5d4e3f2a1908f7e6d"

// open makes a client of a kind.
func (o ClientOptions) open(kind Kind) (Client, error) {
	o.Kind = kind
	return New(o)
}

func token(s string) forgehttp.Token { return func(context.Context) (string, error) { return s, nil } }

// forges makes both kinds of forge on a server.
func forges(t *testing.T, url string, tok forgehttp.Token) map[string]Client {
	t.Helper()
	o := ClientOptions{URL: url, Repository: "platform/fleet", Token: tok}
	hub, err := o.open(GitHub)
	if err != nil {
		t.Fatal(err)
	}
	giteaForge, err := o.open(Gitea)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]Client{"github": hub, "gitea": giteaForge}
}

func TestForgeWritesAndReads(t *testing.T) {
	for _, kind := range []string{"github", "gitea"} {
		t.Run(kind, func(t *testing.T) {
			server, url := newForgeServer(t, shaNew)
			f := forges(t, url, token("s3cret"))[kind]
			want := map[string]CommitStatus{}
			// More than a page, with the newest of a context at either end.
			for i := range 130 {
				s := CommitStatus{Context: fmt.Sprintf("weir/apply/t%d", i%60), State: Pending, Description: fmt.Sprintf("try %d", i), TargetURL: "https://weir.example.com/"}
				if err := f.SetStatus(t.Context(), shaNew, s); err != nil {
					t.Fatal(err)
				}
				want[s.Context] = s
			}
			got, err := f.Statuses(t.Context(), shaNew)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("statuses (-want +got):\n%s", diff)
			}
			scheme := map[string]string{"github": "Bearer s3cret", "gitea": "token s3cret"}[kind]
			for _, got := range server.tokens {
				if got != scheme {
					t.Fatalf("Authorization is %q, want %q", got, scheme)
				}
			}
		})
	}
}

func TestForgeFaults(t *testing.T) {
	reset := strconv.FormatInt(time.Now().Add(90*time.Second).Unix(), 10)
	cases := map[string]struct {
		forge   string
		code    int
		header  http.Header
		body    string
		fault   forgehttp.Fault
		after   time.Duration // at least
		mention string
	}{
		"github bad token":         {"github", 401, nil, `{"message":"Bad credentials"}`, forgehttp.FaultDenied, 0, "expired or revoked"},
		"github missing scope":     {"github", 403, nil, `{"message":"Resource not accessible by personal access token"}`, forgehttp.FaultDenied, 0, "Commit statuses: read and write"},
		"github hidden repository": {"github", 404, nil, `{"message":"Not Found"}`, forgehttp.FaultDenied, 0, "repo:status"},
		"github unknown commit":    {"github", 422, nil, `{"message":"No commit found for SHA: ` + shaNew + `"}`, forgehttp.FaultMissing, 0, "No commit found"},
		"github full context":      {"github", 422, nil, `{"message":"Validation Failed","errors":[{"message":"This SHA and context has reached the maximum number of statuses."}]}`, forgehttp.FaultRefused, 0, "maximum number of statuses"},
		"github primary limit":     {"github", 403, http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {reset}}, `{"message":"API rate limit exceeded"}`, forgehttp.FaultBusy, 80 * time.Second, "rate limit"},
		"github secondary limit":   {"github", 403, http.Header{"Retry-After": {"37"}}, `{"message":"You have exceeded a secondary rate limit","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`, forgehttp.FaultBusy, 37 * time.Second, "secondary"},
		"github maintenance":       {"github", 503, nil, `<html>down</html>`, forgehttp.FaultBusy, 0, ""},
		"gitea bad token":          {"gitea", 401, nil, `{"message":"invalid username, password or token"}`, forgehttp.FaultDenied, 0, "expired or revoked"},
		"gitea read-only token":    {"gitea", 403, nil, `{"message":"token does not have at least one of required scope(s), required=[write:repository]"}`, forgehttp.FaultDenied, 0, "write:repository"},
		"gitea hidden repository":  {"gitea", 404, nil, `{"message":"The target couldn't be found."}`, forgehttp.FaultDenied, 0, "must have access"},
		"gitea missing commit":     {"gitea", 500, nil, `{"message":"object does not exist"}`, forgehttp.FaultMissing, 0, "object does not exist"},
		"gitea behind busy proxy":  {"gitea", 429, http.Header{"Retry-After": {"5"}}, `slow down`, forgehttp.FaultBusy, 5 * time.Second, ""},
		"gitea bad gateway":        {"gitea", 502, nil, `<html>` + strings.Repeat("x", 5000), forgehttp.FaultBusy, 0, ""},
		"gitea refused":            {"gitea", 422, nil, `{"message":"bad state"}`, forgehttp.FaultRefused, 0, "bad state"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			server, url := newForgeServer(t, shaNew)
			server.answer = func(*http.Request) (int, http.Header, string) { return c.code, c.header, c.body }
			f := forges(t, url, token("s3cret"))[c.forge]
			err := f.SetStatus(t.Context(), shaNew, CommitStatus{Context: "weir/apply", State: Pending})
			var got *forgehttp.Error
			if !errors.As(err, &got) {
				t.Fatalf("error is %v, want a *forgehttp.Error", err)
			}
			if got.Fault != c.fault || got.Status != c.code {
				t.Errorf("fault %q with status %d, want %q with %d", got.Fault, got.Status, c.fault, c.code)
			}
			if got.After < c.after || c.after == 0 && got.After != 0 {
				t.Errorf("after is %s, want %s", got.After, c.after)
			}
			if !strings.Contains(got.Error(), c.mention) {
				t.Errorf("message %q lacks %q", got.Error(), c.mention)
			}
			if len(got.Error()) > 600 || strings.Contains(got.Error(), "s3cret") {
				t.Errorf("message %q is too long or holds the token", got.Error())
			}
		})
	}
}

func TestForgeUnreachable(t *testing.T) {
	_, url := newForgeServer(t)
	for kind, f := range forges(t, url, func(context.Context) (string, error) { return "", errors.New("open token: no such file") }) {
		var got *forgehttp.Error
		if err := f.SetStatus(t.Context(), shaNew, CommitStatus{Context: "c", State: Success}); !errors.As(err, &got) || got.Fault != forgehttp.FaultBusy || !strings.Contains(got.Message, "no such file") {
			t.Errorf("%s without token: %v, want a busy fault that says why", kind, err)
		}
	}
}

// TestForgeTokenStaysHome proves that a redirect does not carry the token away.
func TestForgeTokenStaysHome(t *testing.T) {
	thief, thiefURL := newForgeServer(t, shaNew)
	for _, kind := range []string{"github", "gitea"} {
		server, url := newForgeServer(t, shaNew)
		server.answer = func(r *http.Request) (int, http.Header, string) {
			return http.StatusTemporaryRedirect, http.Header{"Location": {thiefURL + r.URL.Path}}, ""
		}
		f := forges(t, url, token("s3cret"))[kind]
		if err := f.SetStatus(t.Context(), shaNew, CommitStatus{Context: "c", State: Success}); err == nil {
			t.Errorf("%s: the redirect to another host was followed", kind)
		}
	}
	if len(thief.requests) > 0 {
		t.Errorf("the other host saw %v", thief.requests)
	}
}

// TestForgeReadsTokenEachTime proves that a replaced token is used at once.
func TestForgeReadsTokenEachTime(t *testing.T) {
	server, url := newForgeServer(t, shaNew)
	n := 0
	f := forges(t, url, func(context.Context) (string, error) { n++; return strconv.Itoa(n), nil })["gitea"]
	for range 2 {
		if err := f.SetStatus(t.Context(), shaNew, CommitStatus{Context: "c", State: Success}); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"token 1", "token 2"}, server.tokens); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
}

func TestForgeOptionsAreChecked(t *testing.T) {
	for name, o := range map[string]ClientOptions{
		"no repository":    {URL: "https://git.example.com", Repository: "fleet"},
		"deep repository":  {URL: "https://git.example.com", Repository: "a/b/c"},
		"no scheme":        {URL: "git.example.com", Repository: "a/b"},
		"user in URL":      {URL: "https://bot:hunter2@git.example.com", Repository: "a/b"},
		"other scheme":     {URL: "ssh://git.example.com", Repository: "a/b"},
		"not a URL at all": {URL: "https://git.example.com/%zz", Repository: "a/b"},
	} {
		if _, err := o.open(Gitea); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: gitea: error is %v", name, err)
		}
		if _, err := o.open(GitHub); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: github: error is %v", name, err)
		}
	}
	if _, err := New(ClientOptions{Kind: GitHub, Repository: "a/b"}); err != nil {
		t.Errorf("github.com: %v", err)
	}
}

func TestRepositoryOf(t *testing.T) {
	for address, want := range map[string]string{
		"https://github.com/platform/fleet.git":          "platform/fleet",
		"https://bot:x@git.example.com/platform/fleet/":  "platform/fleet",
		"https://git.example.com/forge/platform/fleet":   "platform/fleet",
		"ssh://git@git.example.com:2222/platform/fleet":  "platform/fleet",
		"git@github.com:platform/fleet.git":              "platform/fleet",
		"https://git.example.com/fleet":                  "",
		"/srv/git/platform/fleet.git":                    "",
		"file:///srv/git/platform/fleet.git":             "",
		"https://bot:hunter2@git.example.com/broken.git": "",
	} {
		got, err := RepositoryOf(address)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("RepositoryOf(%q) = %q, %v; want %q", address, got, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error tells the password: %v", err)
		}
	}
}
