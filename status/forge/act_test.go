package forge

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// TestActing: what is sent, and where.
func TestActing(t *testing.T) {
	want := map[Kind][]string{
		GitHub: {
			"POST /api/v3/repos/platform/fleet/issues/comments/70/reactions", `{"content":"eyes"}`,
			"POST /api/v3/repos/platform/fleet/issues/comments/70/reactions", `{"content":"+1"}`,
			"POST /api/v3/repos/platform/fleet/issues/comments/70/reactions", `{"content":"-1"}`,
			"POST /api/v3/repos/platform/fleet/issues/7/comments", `{"body":"text"}`,
		},
		Gitea: {
			"POST /api/v1/repos/platform/fleet/issues/comments/70/reactions", `{"content":"eyes"}`,
			"POST /api/v1/repos/platform/fleet/issues/comments/70/reactions", `{"content":"+1"}`,
			"POST /api/v1/repos/platform/fleet/issues/comments/70/reactions", `{"content":"-1"}`,
			"POST /api/v1/repos/platform/fleet/issues/7/comments", `{"body":"text"}`,
		},
		GitLab: {
			"POST /api/v4/projects/company%2Fplatform%2Ffleet/merge_requests/7/notes/70/award_emoji", `{"name":"eyes"}`,
			"POST /api/v4/projects/company%2Fplatform%2Ffleet/merge_requests/7/notes/70/award_emoji", `{"name":"thumbsup"}`,
			"POST /api/v4/projects/company%2Fplatform%2Ffleet/merge_requests/7/notes/70/award_emoji", `{"name":"thumbsdown"}`,
			"POST /api/v4/projects/company%2Fplatform%2Ffleet/merge_requests/7/notes", `{"body":"text"}`,
		},
	}
	eachForge(t, func(t *testing.T, f *fakeForge, c Client) {
		var got []string
		f.answer = func(r *http.Request) (int, http.Header, string) {
			body := ""
			if r.Body != nil {
				body = f.bodies[len(f.bodies)-1]
				if kind := r.Header.Get("Content-Type"); kind != "application/json" {
					t.Errorf("Content-Type is %q", kind)
				}
			}
			got = append(got, r.Method+" "+r.URL.RequestURI(), body)
			return 201, nil, `{"id":1}`
		}
		for _, r := range []Reaction{Eyes, Done, Refused} {
			if err := c.React(t.Context(), 7, 70, r); err != nil {
				t.Error(err)
			}
		}
		if _, err := c.CreateComment(t.Context(), 7, "text"); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want[f.kind], got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		if c.Profile().Kind != f.kind {
			t.Errorf("kind %s", c.Profile().Kind)
		}
	})
}

// TestAMarkThatIsThereOrCannotBe is no error.
func TestAMarkThatIsThereOrCannotBe(t *testing.T) {
	for kind, tt := range map[Kind]struct {
		code int
		body string
	}{
		GitHub: {200, `{"id":1,"content":"eyes"}`},
		Gitea:  {403, `{"message":"'eyes' is not an allowed reaction"}`},
		GitLab: {404, `{"message":"404 Award Emoji Name has already been taken Not Found"}`},
	} {
		f := newFakeForge(kind)
		f.answer = func(*http.Request) (int, http.Header, string) { return tt.code, nil, tt.body }
		if err := f.client(t).React(t.Context(), 7, 70, Eyes); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
}

func TestSelfIsReadOnce(t *testing.T) {
	eachForge(t, func(t *testing.T, f *fakeForge, c Client) {
		for range 3 {
			if got, err := c.Self(t.Context()); err != nil || got != "weir-bot" {
				t.Errorf("%q, %v", got, err)
			}
		}
		if got := f.took(); len(got) != 1 {
			t.Errorf("asked %v", got)
		}
		f.answer = func(*http.Request) (int, http.Header, string) { return 200, nil, `{}` }
		if got, err := f.client(t).Self(t.Context()); err == nil || got != "" || !strings.Contains(err.Error(), "whose token it is") {
			t.Errorf("nobody: %q, %v", got, err)
		}
	})
}

// TestAnAppAsksGraphQL, as its token has no user.
func TestAnAppAsksGraphQL(t *testing.T) {
	for address, want := range map[string]string{
		"":                        "https://api.github.com/graphql",
		"https://ghe.example.com": "https://ghe.example.com/api/graphql",
	} {
		f := newFakeForge(GitHub)
		var asked []string
		f.answer = func(r *http.Request) (int, http.Header, string) {
			asked = append(asked, r.URL.String())
			if r.Method == http.MethodGet {
				return 403, nil, `{"message":"Resource not accessible by integration"}`
			}
			return 200, nil, `{"data":{"viewer":{"login":"weir[bot]"}}}`
		}
		c, err := New(ClientOptions{Kind: GitHub, URL: address, Repository: fleetRepo, Transport: f, Token: staticToken})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := c.Self(t.Context()); err != nil || got != "weir[bot]" || asked[len(asked)-1] != want {
			t.Errorf("%q from %v, %v", got, asked, err)
		}
		var query string
		if query = f.bodies[len(f.bodies)-1]; query != `{"query":"query{viewer{login}}"}` {
			t.Errorf("asked for %s", query)
		}
	}
}

// TestATokenThatCannotBeRead says so.
func TestATokenThatCannotBeRead(t *testing.T) {
	f := newFakeForge(Gitea)
	c, err := New(ClientOptions{Kind: Gitea, URL: "https://git.example.com", Repository: fleetRepo, Transport: f, Token: noToken})
	if err != nil {
		t.Fatal(err)
	}
	var got *forgehttp.Error
	if _, err := c.CreateComment(t.Context(), 7, "text"); !errors.As(err, &got) || !strings.Contains(got.Error(), "write comments on pull requests: read forge token: open token: no such file") || len(f.took()) != 0 {
		t.Errorf("got %v", err)
	}
}

func noToken(context.Context) (string, error) { return "", errors.New("open token: no such file") }

func TestNewRefuses(t *testing.T) {
	for name, o := range map[string]ClientOptions{
		"no repository":      {Kind: GitHub, Repository: "fleet"},
		"deep on github":     {Kind: GitHub, Repository: "a/b/c"},
		"deep on gitea":      {Kind: Gitea, URL: "https://git.example.com", Repository: "a/b/c"},
		"an empty part":      {Kind: GitLab, URL: "https://git.example.com", Repository: "a//c"},
		"dots":               {Kind: GitHub, Repository: "../x"},
		"no address":         {Kind: GitLab, Repository: "a/b"},
		"no scheme":          {Kind: Gitea, URL: "git.example.com", Repository: "a/b"},
		"a password":         {Kind: Gitea, URL: "https://bot:hunter2@git.example.com", Repository: "a/b"},
		"no pull requests":   {Kind: Generic, URL: "https://git.example.com", Repository: "a/b"},
		"a forge unheard of": {Kind: "svn", URL: "https://git.example.com", Repository: "a/b"},
	} {
		if _, err := New(o); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestAddresses: where each forge has its API.
func TestAddresses(t *testing.T) {
	for _, tt := range []struct {
		kind            Kind
		url, repository string
		want            string
	}{
		{GitHub, "", "a/b", "https://api.github.com/repos/a/b/pulls/7"},
		{GitHub, "https://github.com/", "a/b", "https://api.github.com/repos/a/b/pulls/7"},
		{GitHub, "https://ghe.example.com", "a/b", "https://ghe.example.com/api/v3/repos/a/b/pulls/7"},
		{GitHub, "https://ghe.example.com/sub/", "a/b", "https://ghe.example.com/sub/api/v3/repos/a/b/pulls/7"},
		{Gitea, "http://127.0.0.1:3000", "a/b", "http://127.0.0.1:3000/api/v1/repos/a/b/pulls/7"},
		{Gitea, "https://example.com/git", "a/b c", "https://example.com/git/api/v1/repos/a/b%20c/pulls/7"},
		{GitLab, "https://gitlab.com", "a/b/c", "https://gitlab.com/api/v4/projects/a%2Fb%2Fc/merge_requests/7"},
		{GitLab, "https://example.com/lab/", "a/b", "https://example.com/lab/api/v4/projects/a%2Fb/merge_requests/7"},
	} {
		asked := asked{}
		c, err := New(ClientOptions{Kind: tt.kind, URL: tt.url, Repository: tt.repository, Transport: &asked, Token: staticToken})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Pull(t.Context(), 7); err != nil || asked.url.String() != tt.want {
			t.Errorf("%s at %q: %s, want %s: %v", tt.kind, tt.url, &asked.url, tt.want, err)
		}
	}
}

// asked notes the address of a request.
type asked struct{ url url.URL }

func (a *asked) RoundTrip(r *http.Request) (*http.Response, error) {
	a.url = *r.URL
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("{}"))}, nil
}
