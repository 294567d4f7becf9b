package forge

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// calls is every method of a client that asks the forge.
func calls(ctx context.Context, c Client) map[string]error {
	out := map[string]error{}
	_, _, _, out["Pulls"] = c.Pulls(ctx, "")
	_, out["Pull"] = c.Pull(ctx, 7)
	_, out["Comments"] = c.Comments(ctx, 7, time.Time{})
	_, out["CommentsSince"] = c.CommentsSince(ctx, time.Time{})
	_, out["Permission"] = c.Permission(ctx, "ada")
	out["React"] = c.React(ctx, 7, 70, Eyes)
	_, out["CreateComment"] = c.CreateComment(ctx, 7, "text")
	_, out["Self"] = c.Self(ctx)
	return out
}

func TestFaults(t *testing.T) {
	reset := strconv.FormatInt(time.Now().Add(90*time.Second).Unix(), 10)
	for name, tt := range map[string]struct {
		kind  Kind
		code  int
		h     http.Header
		body  string
		call  string
		fault forgehttp.Fault
		after time.Duration // at least
		text  string
	}{
		"github bad token":        {GitHub, 401, nil, `{"message":"Bad credentials"}`, "Pulls", forgehttp.FaultDenied, 0, "expired or revoked"},
		"github no permission":    {GitHub, 403, nil, `{"message":"Resource not accessible by personal access token"}`, "Pulls", forgehttp.FaultDenied, 0, `"Pull requests: read"`},
		"github may not react":    {GitHub, 403, nil, `{"message":"Resource not accessible by integration"}`, "React", forgehttp.FaultDenied, 0, `react to comments (Resource not accessible by integration): it needs the permission "Pull requests: read and write"`},
		"github may not ask":      {GitHub, 403, nil, `{"message":"Must have push access to view collaborator permission."}`, "Permission", forgehttp.FaultDenied, 0, "Metadata: read"},
		"github not anybody's":    {GitHub, 403, nil, `{"message":"no"}`, "Self", forgehttp.FaultDenied, 0, "ask who it is"},
		"github hidden":           {GitHub, 404, nil, `{"message":"Not Found"}`, "Pulls", forgehttp.FaultDenied, 0, "the repository platform/fleet is not found (Not Found): the token must have access"},
		"github no such":          {GitHub, 404, nil, `{"message":"Not Found"}`, "Pull", forgehttp.FaultMissing, 0, "pull request 7 of platform/fleet is not found"},
		"github conflict":         {GitHub, 409, nil, `{"message":"Conflict"}`, "CreateComment", forgehttp.FaultMissing, 0, "Conflict"},
		"github locked":           {GitHub, 410, nil, `{"message":"Issues are disabled for this repo"}`, "CommentsSince", forgehttp.FaultRefused, 0, "disabled"},
		"github invalid":          {GitHub, 422, nil, `{"message":"Validation Failed","errors":[{"resource":"IssueComment","code":"unprocessable","message":"body is too long"}]}`, "CreateComment", forgehttp.FaultRefused, 0, "Validation Failed: body is too long"},
		"github first limit":      {GitHub, 403, http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {reset}}, `{"message":"API rate limit exceeded for user ID 1."}`, "Pulls", forgehttp.FaultBusy, 80 * time.Second, "rate limit"},
		"github second limit":     {GitHub, 403, http.Header{"Retry-After": {"37"}}, `{"message":"You have exceeded a secondary rate limit."}`, "Pulls", forgehttp.FaultBusy, 37 * time.Second, "secondary"},
		"github second, no time":  {GitHub, 403, nil, `{"message":"You have exceeded a secondary rate limit."}`, "CreateComment", forgehttp.FaultBusy, time.Minute, "secondary"},
		"github throttled":        {GitHub, 429, http.Header{"Retry-After": {"60"}}, ``, "Comments", forgehttp.FaultBusy, time.Minute, "too many requests"},
		"gitea bad token":         {Gitea, 401, nil, `{"message":"invalid username, password or token"}`, "Self", forgehttp.FaultDenied, 0, "expired or revoked"},
		"gitea scope":             {Gitea, 403, nil, `{"message":"token does not have at least one of required scope(s), required=[read:user]"}`, "Self", forgehttp.FaultDenied, 0, "it needs the scope read:user"},
		"gitea may not write":     {Gitea, 403, nil, `{"message":"token does not have at least one of required scope(s), required=[write:issue]"}`, "CreateComment", forgehttp.FaultDenied, 0, "it needs the scope write:issue"},
		"gitea no administrator":  {Gitea, 403, nil, `{"message":"Only admins can query all permissions, repo admins can query all repo permissions, collaborators can query only their own"}`, "Permission", forgehttp.FaultDenied, 0, "must be an administrator of the repository"},
		"gitea hidden":            {Gitea, 404, nil, `{"message":"The target couldn't be found."}`, "CommentsSince", forgehttp.FaultDenied, 0, "the repository platform/fleet"},
		"gitea archived":          {Gitea, 423, nil, `{"message":"platform/fleet is archived"}`, "CreateComment", forgehttp.FaultRefused, 0, "archived"},
		"gitlab bad token":        {GitLab, 401, nil, `{"message":"401 Unauthorized"}`, "Pulls", forgehttp.FaultDenied, 0, "expired or revoked"},
		"gitlab revoked":          {GitLab, 401, nil, `{"error":"invalid_token","error_description":"Token was revoked."}`, "Pull", forgehttp.FaultDenied, 0, "Token was revoked"},
		"gitlab scope":            {GitLab, 403, nil, `{"error":"insufficient_scope","error_description":"The request requires higher privileges than provided by the access token.","scope":"api read_api"}`, "Pulls", forgehttp.FaultDenied, 0, "the scope read_api or api"},
		"gitlab role":             {GitLab, 403, nil, `{"message":"403 Forbidden"}`, "CreateComment", forgehttp.FaultDenied, 0, "the scope api, and its user the role Reporter"},
		"gitlab hidden":           {GitLab, 404, nil, `{"message":"404 Project Not Found"}`, "Pulls", forgehttp.FaultDenied, 0, "the project company/platform/fleet is not found"},
		"gitlab no such":          {GitLab, 404, nil, `{"message":"404 Not found"}`, "Comments", forgehttp.FaultMissing, 0, "merge request 7 of company/platform/fleet is not found"},
		"gitlab fields":           {GitLab, 400, nil, `{"message":{"note":["is too long (maximum is 1000000 characters)"]}}`, "CreateComment", forgehttp.FaultRefused, 0, "is too long"},
		"gitlab throttled":        {GitLab, 429, http.Header{"Retry-After": {"60"}}, "Retry later\n", "Pulls", forgehttp.FaultBusy, time.Minute, "Retry later"},
		"gitlab nothing left":     {GitLab, 429, http.Header{"Ratelimit-Remaining": {"0"}, "Ratelimit-Reset": {reset}}, "", "Pulls", forgehttp.FaultBusy, 80 * time.Second, ""},
		"a page instead of a doc": {GitLab, 200, http.Header{"Content-Type": {"text/html"}}, "<html>login</html>", "Pulls", forgehttp.FaultBusy, 0, "is the forge's address right?"},
		"a document, not a list":  {GitHub, 200, nil, `{"message":"moved"}`, "Pulls", forgehttp.FaultBusy, 0, "is the forge's address right?"},
		"half a list":             {Gitea, 200, nil, `[{"number":1},{"numb`, "Pulls", forgehttp.FaultBusy, 0, "incomplete"},
		"a number as a text":      {Gitea, 200, nil, `{"number":"one"}`, "Pull", forgehttp.FaultBusy, 0, "incomplete"},
		"a proxy's page":          {GitHub, 502, http.Header{"Content-Type": {"text/html"}}, "<html>\n" + strings.Repeat("x", 5000), "Pulls", forgehttp.FaultBusy, 0, "<html>"},
		"maintenance":             {GitHub, 503, nil, ``, "Comments", forgehttp.FaultBusy, 0, "service unavailable"},
		"broken":                  {Gitea, 500, nil, `{"message":"issue does not exist [id: 0, repo_id: 1, index: 7]"}`, "Comments", forgehttp.FaultMissing, 0, "issue does not exist"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFakeForge(tt.kind)
				f.answer = func(*http.Request) (int, http.Header, string) { return tt.code, tt.h, tt.body }
				err := calls(t.Context(), f.client(t))[tt.call]
				if tt.after > 0 { // what was asked before it used up the limit
					err = one(t, f.client(t), tt.call)
				}
				var got *forgehttp.Error
				if !errors.As(err, &got) {
					t.Fatalf("got %v", err)
				}
				if got.Fault != tt.fault || got.Status != tt.code || got.After < tt.after || tt.after == 0 && got.After != 0 {
					t.Errorf("%s with %d after %s: %v", got.Fault, got.Status, got.After, got)
				}
				if !strings.Contains(got.Error(), tt.text) || len(got.Error()) > 700 || strings.Contains(got.Error(), "\n") {
					t.Errorf("%q lacks %q", got, tt.text)
				}
			})
		})
	}
}

// one makes one call of a client.
func one(t *testing.T, c Client, name string) error {
	t.Helper()
	switch name {
	case "Pulls":
		_, _, _, err := c.Pulls(t.Context(), "")
		return err
	case "Comments":
		_, err := c.Comments(t.Context(), 7, time.Time{})
		return err
	default:
		_, err := c.CreateComment(t.Context(), 7, "text")
		return err
	}
}

// TestTries counts how often a forge is asked: a read three times where that may
// help, a write once, and nothing that would have to wait long.
func TestTries(t *testing.T) {
	for name, tt := range map[string]struct {
		code         int
		h            http.Header
		reads, takes int // requests of one read, and seconds at most
	}{
		"denied":           {403, nil, 1, 0},
		"no token":         {401, nil, 1, 0},
		"not there":        {404, nil, 1, 0},
		"refused":          {422, nil, 1, 0},
		"broken":           {500, nil, 3, 4},
		"a bad gateway":    {502, nil, 3, 4},
		"throttled":        {429, http.Header{"Retry-After": {"5"}}, 3, 10},
		"throttled longer": {429, http.Header{"Retry-After": {"11"}}, 1, 0},
		"nothing is left":  {403, http.Header{"X-Ratelimit-Remaining": {"0"}, "X-Ratelimit-Reset": {"3600"}}, 1, 0},
	} {
		t.Run(name, func(t *testing.T) {
			eachForge(t, func(t *testing.T, f *fakeForge, _ Client) {
				synctest.Test(t, func(t *testing.T) {
					f.answer = func(*http.Request) (int, http.Header, string) { return tt.code, tt.h, `{}` }
					began := time.Now()
					if _, err := f.client(t).Pull(t.Context(), 7); err == nil {
						t.Error("no error")
					}
					if got := f.took(); len(got) != tt.reads {
						t.Errorf("%d reads", len(got))
					}
					if took := time.Since(began); took > time.Duration(tt.takes)*time.Second {
						t.Errorf("reading took %s", took)
					}
					if _, err := f.client(t).CreateComment(t.Context(), 7, "text"); err == nil || len(f.took()) != 1 {
						t.Errorf("written more than once: %v", err)
					}
				})
			})
		})
	}
}

// TestATryMayHelp: a forge that is back in a moment is no error.
func TestATryMayHelp(t *testing.T) {
	eachForge(t, func(t *testing.T, f *fakeForge, _ Client) {
		synctest.Test(t, func(t *testing.T) {
			f.fill(2)
			n := 0
			f.answer = func(*http.Request) (int, http.Header, string) {
				switch n++; n {
				case 1:
					return 502, nil, "<html>"
				case 2:
					return 200, nil, `[{"number":1,"iid":1},{"num` // was cut short
				}
				return 0, nil, ""
			}
			list, _, _, err := f.client(t).Pulls(t.Context(), "")
			if err != nil || len(list) != 2 {
				t.Errorf("%d, %v", len(list), err)
			}
		})
	})
}

// TestWaitingEnds with the context.
func TestWaitingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFakeForge(GitHub)
		f.answer = func(*http.Request) (int, http.Header, string) { return 429, http.Header{"Retry-After": {"9"}}, "" }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		if _, err := f.client(t).Pull(ctx, 7); err == nil || time.Since(began) != time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
	})
}

// TestNoErrorShowsTheToken: whatever a forge or a proxy says back.
func TestNoErrorShowsTheToken(t *testing.T) {
	for _, code := range []int{200, 400, 401, 403, 404, 409, 422, 429, 500, 502} {
		for _, body := range []string{"Authorization: %s", `{"message":"bad %s","errors":[{"message":"%[1]s"}]}`, `{"error":"x","error_description":"%s"}`, `{"message":{"token":["%s"]}}`} {
			eachForge(t, func(t *testing.T, f *fakeForge, _ Client) {
				synctest.Test(t, func(t *testing.T) {
					f.answer = func(r *http.Request) (int, http.Header, string) {
						return code, nil, fmt.Sprintf(body, r.Header.Get("Authorization"))
					}
					for call, err := range calls(t.Context(), f.client(t)) {
						for ; err != nil; err = errors.Unwrap(err) {
							if strings.Contains(err.Error(), testToken) {
								t.Errorf("%s, %d: %v", call, code, err)
							}
						}
					}
				})
			})
		}
	}
}

// TestNothingLeavesTheForge: neither a redirect nor a link of a page takes a request
// to another host.
func TestNothingLeavesTheForge(t *testing.T) {
	eachForge(t, func(t *testing.T, f *fakeForge, c Client) {
		f.fill(120)
		hosts := map[string]bool{}
		f.answer = func(r *http.Request) (int, http.Header, string) { hosts[r.URL.Host] = true; return 0, nil, "" }
		if list, _, _, err := c.Pulls(t.Context(), ""); err != nil || len(list) != 120 {
			t.Fatalf("%d, %v", len(list), err)
		}
		f.answer = func(r *http.Request) (int, http.Header, string) {
			hosts[r.URL.Host] = true
			return 307, http.Header{"Location": {"https://thief.example.com" + r.URL.Path}}, ""
		}
		if _, err := c.CreateComment(t.Context(), 7, "text"); err == nil {
			t.Error("a redirect was followed")
		}
		if len(hosts) != 1 || !hosts["git.example.com"] {
			t.Errorf("asked %v", hosts)
		}
	})
}

// TestBrokenConnections: what comes is no answer, or ends before it says it does.
func TestBrokenConnections(t *testing.T) {
	for name, answer := range map[string]string{
		"a length that is a lie": "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999999\r\n\r\n[{\"number\":1}",
		"half a chunk":           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n[{\"number\":1}",
		"nothing":                "",
		"half a header":          "HTTP/1.1 200",
		"another speech":         "SSH-2.0-OpenSSH_9.6\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			wg.Go(func() {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				defer conn.Close()
				_, _ = http.ReadRequest(bufio.NewReader(conn))
				_, _ = io.WriteString(conn, answer)
			})
			c, err := New(ClientOptions{Kind: GitHub, URL: "http://" + listener.Addr().String(), Repository: fleetRepo, Token: staticToken, Transport: &http.Transport{DisableKeepAlives: true}})
			if err != nil {
				t.Fatal(err)
			}
			hub := c.(*gitHub)
			_, err = hub.once(t.Context(), need{does: "list pull requests"}, "", func(ctx context.Context) error {
				_, _, err := hub.client.PullRequests.List(ctx, "a", "b", nil)
				return err
			})
			_ = listener.Close()
			wg.Wait()
			var got *forgehttp.Error
			if !errors.As(err, &got) || got.Fault != forgehttp.FaultBusy || !passes(got) || !strings.Contains(got.Error(), "list pull requests: ") {
				t.Errorf("got %v", err)
			}
		})
	}
}
