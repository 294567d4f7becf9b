package forge

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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
)

const (
	testToken = "s3cret-t0ken"
	fleetRepo = "platform/fleet"
	deepRepo  = "company/platform/fleet" // GitLab's
)

// fakePull is a pull request on a fakeForge.
type fakePull struct {
	number  int64
	title   string
	closed  bool
	merged  bool
	updated time.Time
	labels  []string
}

type fakeComment struct {
	id, on           int64
	author, body     string
	created, updated time.Time
	issue            bool // it is on an issue, not on a pull request
	system           bool // GitLab itself says it
}

// fakeForge answers as one of the forges does, for one repository. It is used
// within the process, as a transport.
type fakeForge struct {
	kind Kind
	mu   sync.Mutex
	now  time.Time
	// pulls and comments are what there is.
	pulls    map[int64]*fakePull
	comments []fakeComment
	// levels is what users may do, in the forge's own words.
	levels map[string]string
	// requests has each request, "?" after those that were conditional.
	requests []string
	bodies   []string
	// answer replaces the answer where it returns a status code.
	answer func(r *http.Request) (code int, h http.Header, body string)
	// plain leaves out ETag.
	plain bool
}

func newFakeForge(kind Kind) *fakeForge {
	return &fakeForge{kind: kind, now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC), pulls: map[int64]*fakePull{}, levels: map[string]string{}, plain: kind == Gitea}
}

// client makes a client of the fake.
func (f *fakeForge) client(t testing.TB) Client {
	t.Helper()
	repository := fleetRepo
	if f.kind == GitLab {
		repository = deepRepo
	}
	c, err := New(ClientOptions{
		Kind: f.kind, URL: "https://git.example.com", Repository: repository, Transport: f,
		Token: func(context.Context) (string, error) { return testToken, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// each runs a test against each forge.
func eachForge(t *testing.T, run func(t *testing.T, f *fakeForge, c Client)) {
	for _, kind := range []Kind{GitHub, GitLab, Gitea} {
		t.Run(string(kind), func(t *testing.T) {
			f := newFakeForge(kind)
			run(t, f, f.client(t))
		})
	}
}

// touch changes a pull request, at a later time than everything before.
func (f *fakeForge) touch(number int64, change func(*fakePull)) {
	f.now = f.now.Add(time.Second)
	p := f.pulls[number]
	if p == nil {
		p = &fakePull{number: number, title: fmt.Sprint("change ", number)}
		f.pulls[number] = p
	}
	p.updated = f.now
	if change != nil {
		change(p)
	}
}

func (f *fakeForge) fill(n int) {
	for i := range n {
		f.touch(int64(i+1), nil)
	}
}

// open is what a list should say, as number and title.
func (f *fakeForge) open() []string {
	var out []string
	for _, p := range f.sorted("open") {
		out = append(out, fmt.Sprint(p.number, " ", p.title, " ", p.labels))
	}
	return out
}

func shown(list []PullRequest) []string {
	var out []string
	for _, p := range list {
		out = append(out, fmt.Sprint(p.Number, " ", p.Title, " ", p.Labels))
	}
	return out
}

// sorted has the open ones, those that changed last first.
func (f *fakeForge) sorted(state string) []*fakePull {
	var out []*fakePull
	for _, p := range f.pulls {
		switch state {
		case "closed":
			if p.closed || p.merged {
				out = append(out, p)
			}
		case "merged":
			if p.merged {
				out = append(out, p)
			}
		default:
			if !p.closed && !p.merged {
				out = append(out, p)
			}
		}
	}
	slices.SortFunc(out, func(a, b *fakePull) int {
		return cmp.Or(b.updated.Compare(a.updated), cmp.Compare(b.number, a.number))
	})
	return out
}

// took is the requests since it was asked last.
func (f *fakeForge) took() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := f.requests
	f.requests = nil
	return out
}

// RoundTrip implements http.RoundTripper.
func (f *fakeForge) RoundTrip(r *http.Request) (*http.Response, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	line := r.Method + " " + r.URL.RequestURI()
	if r.Header.Get("If-None-Match") != "" {
		line += " ?"
	}
	f.requests = append(f.requests, line)
	if r.Body != nil {
		text := new(strings.Builder)
		_, _ = fmt.Fprint(text, readAll(r))
		f.bodies = append(f.bodies, strings.TrimSpace(text.String()))
	}
	for name, values := range r.Header { // as a server reads them
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	w := httptest.NewRecorder()
	code := 0
	if f.answer != nil {
		var h http.Header
		var body string
		if code, h, body = f.answer(r); code != 0 {
			for k, v := range h {
				w.Header()[k] = v
			}
			w.WriteHeader(code)
			_, _ = w.WriteString(body)
		}
	}
	if code == 0 {
		f.serve(w, r)
	}
	return w.Result(), nil
}

func (f *fakeForge) serve(w *httptest.ResponseRecorder, r *http.Request) {
	want := map[Kind]string{GitHub: "Bearer ", GitLab: "Bearer ", Gitea: "token "}[f.kind] + testToken
	if r.Header.Get("Authorization") != want {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	prefix := map[Kind]string{
		GitHub: "/api/v3/repos/platform/fleet", Gitea: "/api/v1/repos/platform/fleet", GitLab: "/api/v4/projects/" + url.PathEscape(deepRepo),
	}[f.kind]
	path, own := strings.CutPrefix(r.URL.EscapedPath(), prefix)
	if !own {
		path = strings.TrimPrefix(r.URL.EscapedPath(), strings.Split(prefix, "/repos")[0])
		path = strings.TrimPrefix(path, "/api/v4")
	}
	if f.kind == GitLab {
		f.lab(w, r, own, path)
	} else {
		f.hub(w, r, own, path)
	}
}

func (f *fakeForge) say(w *httptest.ResponseRecorder, r *http.Request, v any) {
	body, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "application/json")
	if sum := sha256.Sum256(body); !f.plain {
		etag := `W/"` + hex.EncodeToString(sum[:]) + `"`
		w.Header().Set("ETag", etag)
		if r.Header.Get("If-None-Match") == etag {
			w.Header().Del("Link")
			w.Header().Del("X-Next-Page")
			w.Header().Del("X-Total")
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	_, _ = w.Write(body)
}

// page cuts a page out of a list, and says in the forge's way whether there is another.
func page[T any](f *fakeForge, w *httptest.ResponseRecorder, r *http.Request, all []T) []T {
	q := r.URL.Query()
	size, _ := strconv.Atoi(cmp.Or(q.Get("per_page"), q.Get("limit")))
	n, _ := strconv.Atoi(q.Get("page"))
	n = max(n, 1)
	if f.kind == Gitea {
		size = min(size, 50)
	}
	if n*size < len(all) {
		q.Set("page", strconv.Itoa(n+1))
		w.Header().Set("Link", fmt.Sprintf(`<https://elsewhere.example.com%s?%s>; rel="next", <https://x>; rel="last"`, r.URL.Path, q.Encode()))
		if f.kind == GitLab {
			w.Header().Set("X-Next-Page", strconv.Itoa(n+1))
		}
	}
	switch f.kind {
	case Gitea:
		w.Header().Set("X-Total-Count", strconv.Itoa(len(all)))
	case GitLab:
		w.Header().Set("X-Total", strconv.Itoa(len(all)))
	}
	return all[min((n-1)*size, len(all)):min(n*size, len(all))]
}

// at reads a time; the zero time where there is none.
func at(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

func stamp(t time.Time) string { return t.Format(time.RFC3339) }

func (f *fakeForge) hub(w *httptest.ResponseRecorder, r *http.Request, own bool, path string) {
	q := r.URL.Query()
	var n int64
	switch {
	case path == "/user":
		f.say(w, r, map[string]any{"login": "weir-bot", "id": 1})
	case !own:
		w.WriteHeader(http.StatusNotFound)
	case r.Method == http.MethodPost:
		w.WriteHeader(http.StatusCreated)
		_, _ = w.WriteString("{}")
	case path == "/pulls" && q.Get("state") != "" && (q.Get("sort")+q.Get("direction") == "updateddesc" || q.Get("sort") == "recentupdate"):
		out := []map[string]any{}
		for _, p := range page(f, w, r, f.sorted(q.Get("state"))) {
			out = append(out, f.githubPull(p))
		}
		f.say(w, r, out)
	case path == "/issues/comments":
		list := f.since(q.Get("since"), func(fakeComment) bool { return true })
		f.say(w, r, f.githubComments(page(f, w, r, list)))
	case strings.HasSuffix(path, "/permission"):
		user, _ := url.PathUnescape(strings.Split(path, "/")[2])
		level, ok := f.levels[user]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		permission := map[string]string{"triage": "read", "maintain": "write", "release-crew": "write"}[level]
		f.say(w, r, map[string]any{"permission": cmp.Or(permission, level), "role_name": level, "user": map[string]any{"login": user}})
	case scan(path, "/issues/%d/comments", &n):
		list := f.since(q.Get("since"), func(c fakeComment) bool { return c.on == n && !c.issue })
		if f.kind == GitHub {
			list = page(f, w, r, list) // Gitea has no pages here
		}
		f.say(w, r, f.githubComments(list))
	case scan(path, "/pulls/%d", &n) && f.pulls[n] != nil:
		f.say(w, r, f.githubPull(f.pulls[n]))
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

func (f *fakeForge) githubPull(p *fakePull) map[string]any {
	labels := []map[string]any{}
	for _, l := range p.labels {
		labels = append(labels, map[string]any{"name": l})
	}
	state, mergedAt := "open", any(nil)
	if p.closed || p.merged {
		state = "closed"
	}
	if p.merged {
		mergedAt = stamp(p.updated)
	}
	side := func(ref, sha string) map[string]any {
		return map[string]any{"label": ref, "ref": ref, "sha": sha, "repo_id": 1, "repo": map[string]any{"id": 1}}
	}
	return map[string]any{
		"number": p.number, "title": p.title, "state": state, "updated_at": stamp(p.updated), "labels": labels, "user": map[string]any{"login": "ada"},
		"head": side("topic", sha1b), "base": side("main", sha1a), "merged_at": mergedAt, "merge_commit_sha": sha1a,
	}
}

func (f *fakeForge) githubComments(list []fakeComment) []map[string]any {
	out := []map[string]any{}
	for _, c := range list {
		kind := "pull"
		if f.kind == Gitea {
			kind = "pulls"
		}
		if c.issue {
			kind = "issues"
		}
		m := map[string]any{
			"id": c.id, "body": c.body, "user": map[string]any{"login": c.author}, "created_at": stamp(c.created), "updated_at": stamp(c.updated),
			"html_url": fmt.Sprintf("https://git.example.com/platform/fleet/%s/%d#issuecomment-%d", kind, c.on, c.id),
		}
		switch {
		case f.kind == GitHub:
			m["issue_url"] = fmt.Sprintf("https://git.example.com/api/v3/repos/platform/fleet/issues/%d", c.on)
		case c.issue:
			m["issue_url"], m["pull_request_url"] = fmt.Sprintf("https://git.example.com/platform/fleet/issues/%d", c.on), ""
		default:
			m["issue_url"], m["pull_request_url"] = "", fmt.Sprintf("https://git.example.com/platform/fleet/pulls/%d", c.on)
		}
		out = append(out, m)
	}
	return out
}

// since is the comments that were touched since, the ones made first in front.
func (f *fakeForge) since(from string, of func(fakeComment) bool) []fakeComment {
	var out []fakeComment
	for _, c := range f.comments {
		if of(c) && !c.updated.Before(at(from)) {
			out = append(out, c)
		}
	}
	return out
}

func scan(path, format string, n *int64) bool {
	got, err := fmt.Sscanf(path, format, n)
	return err == nil && got == 1 && fmt.Sprintf(format, *n) == path
}
