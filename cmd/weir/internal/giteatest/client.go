package giteatest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"
)

// Client calls the server's API as one user.
type Client struct {
	tb   testing.TB
	base string
	auth func(*http.Request)
}

func token(t string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Authorization", "token "+t) }
}

func basic(u *url.Userinfo) func(*http.Request) {
	return func(r *http.Request) {
		password, _ := u.Password()
		r.SetBasicAuth(u.Username(), password)
	}
}

// Do sends in as JSON to a path below /api/v1, and decodes the response into out. Either may be nil. It
// returns the status code and a text for messages, with the request, its status and the response. It fails
// the test if the server does not answer.
func (c *Client) Do(method, path string, in, out any) (code int, text string) {
	c.tb.Helper()
	var body io.Reader
	if in != nil {
		raw, err := json.Marshal(in)
		if err != nil {
			c.tb.Fatal(err)
		}
		body = bytes.NewReader(raw)
	}
	req, err := http.NewRequest(method, c.base+"/api/v1"+path, body) //nolint:noctx // cleanups call it after the test's context has ended
	if err != nil {
		c.tb.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	c.auth(req)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		c.tb.Fatal(err)
	}
	raw, err := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if err != nil {
		c.tb.Fatal(err)
	}
	text = fmt.Sprintf("%s %s: %s: %.300s", method, path, resp.Status, raw)
	if out != nil && resp.StatusCode/100 == 2 {
		if err := json.Unmarshal(raw, out); err != nil {
			c.tb.Fatalf("%s: %v", text, err)
		}
	}
	return resp.StatusCode, text
}

// Must is Do, and fails the test if the request fails.
func (c *Client) Must(method, path string, in, out any) {
	c.tb.Helper()
	if code, text := c.Do(method, path, in, out); code/100 != 2 {
		c.tb.Fatal(text)
	}
}

// User is an account on the server.
type User struct {
	*Client
	Name, Password string
	server         *Server
	tokens         int
}

// User creates a user. On an existing server, the name gets a suffix.
func (s *Server) User(name string) *User {
	s.tb.Helper()
	u := &User{Name: name + s.suffix, Password: "password-of-" + name, server: s}
	u.Client = &Client{tb: s.tb, base: s.URL, auth: basic(url.UserPassword(u.Name, u.Password))}
	s.admin.Must(http.MethodPost, "/admin/users", map[string]any{
		"username": u.Name, "password": u.Password, "email": u.Name + "@example.invalid", "must_change_password": false,
	}, nil)
	if s.suffix != "" {
		s.tb.Cleanup(func() { s.admin.Do(http.MethodDelete, "/admin/users/"+u.Name+"?purge=true", nil, nil) })
	}
	return u
}

// Token creates an access token of the user with the given scopes, such as "write:repository".
func (u *User) Token(scopes ...string) string {
	u.tb.Helper()
	u.tokens++
	var out struct {
		Sha1 string `json:"sha1"`
	}
	u.Must(http.MethodPost, "/users/"+u.Name+"/tokens", map[string]any{"name": fmt.Sprintf("token-%d", u.tokens), "scopes": scopes}, &out)
	return out.Sha1
}

// Repository is a repository on the server.
type Repository struct {
	Owner *User
	Name  string
}

// Repository creates an empty private repository.
func (u *User) Repository(name string) *Repository {
	u.tb.Helper()
	u.Must(http.MethodPost, "/user/repos", map[string]any{"name": name, "private": true, "default_branch": "main"}, nil)
	return &Repository{Owner: u, Name: name}
}

// Fork creates a user's fork of the repository.
func (r *Repository) Fork(u *User) *Repository {
	u.tb.Helper()
	u.Must(http.MethodPost, r.Path("/forks"), map[string]any{}, nil)
	return &Repository{Owner: u, Name: r.Name}
}

// Path returns a path of the API below the repository.
func (r *Repository) Path(rest string) string { return "/repos/" + r.Owner.Name + "/" + r.Name + rest }

// URL returns the address of the repository's page.
func (r *Repository) URL() string { return r.Owner.base + "/" + r.Owner.Name + "/" + r.Name }

// Grant gives a user a permission for the repository: "read", "write" or "admin".
func (r *Repository) Grant(u *User, permission string) {
	u.tb.Helper()
	r.Owner.Must(http.MethodPut, r.Path("/collaborators/"+u.Name), map[string]any{"permission": permission}, nil)
}

// Hook makes the server send signed events to an address.
func (r *Repository) Hook(address, secret string, events ...string) {
	r.Owner.tb.Helper()
	r.Owner.Must(http.MethodPost, r.Path("/hooks"), map[string]any{
		"type": "gitea", "active": true, "events": events,
		"config": map[string]string{"url": address, "content_type": "json", "secret": secret},
	}, nil)
}

// Status is a commit status.
type Status struct {
	ID          int64  `json:"id"`
	Context     string `json:"context"`
	State       string `json:"status"`
	Description string `json:"description"`
	TargetURL   string `json:"target_url"`
}

// Statuses returns all statuses that a commit ever had, oldest first.
func (r *Repository) Statuses(sha string) []Status {
	r.Owner.tb.Helper()
	var all []Status
	for page := 1; ; page++ {
		var list []Status
		code, text := r.Owner.Do(http.MethodGet, r.Path(fmt.Sprintf("/commits/%s/statuses?limit=50&page=%d", sha, page)), nil, &list)
		if code/100 == 5 || code == http.StatusNotFound {
			return nil // for a moment after a push
		}
		if code != http.StatusOK {
			r.Owner.tb.Fatal(text)
		}
		all = append(all, list...)
		if len(list) < 50 {
			break
		}
	}
	slices.SortFunc(all, func(a, b Status) int { return int(a.ID - b.ID) })
	return all
}

// States returns the sequence of states of a context of a commit, without repetitions.
func (r *Repository) States(sha, context string) string {
	var out []string
	for _, s := range r.Statuses(sha) {
		if s.Context == context {
			out = append(out, s.State)
		}
	}
	return strings.Join(slices.Compact(out), " ")
}

// Last returns the newest status of a context of a commit. Its state is empty if the commit has no status.
func (r *Repository) Last(sha, context string) (last Status) {
	for _, s := range r.Statuses(sha) {
		if s.Context == context {
			last = s
		}
	}
	return last
}

// Open opens a pull request from a branch into main, and returns its number. The branch of a fork is
// OWNER:BRANCH.
func (r *Repository) Open(u *User, branch, title string) int64 {
	u.tb.Helper()
	var out struct {
		Number int64 `json:"number"`
	}
	in := map[string]any{"head": branch, "base": "main", "title": title}
	// Gitea does not know the branch right after a push.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		code, text := u.Do(http.MethodPost, r.Path("/pulls"), in, &out)
		if code == http.StatusCreated {
			return out.Number
		}
		if code != http.StatusNotFound && code/100 != 5 || time.Now().After(deadline) {
			u.tb.Fatal(text)
		}
	}
}

// Merge merges a pull request. style is "merge", "squash", "rebase", "rebase-merge" or "fast-forward-only".
func (r *Repository) Merge(u *User, number int64, style string) {
	u.tb.Helper()
	// Gitea checks in the background whether it can be merged.
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(100 * time.Millisecond) {
		code, text := u.Do(http.MethodPost, r.Path(fmt.Sprintf("/pulls/%d/merge", number)), map[string]any{"Do": style}, nil)
		if code/100 == 2 {
			return
		}
		if code != http.StatusMethodNotAllowed || time.Now().After(deadline) {
			u.tb.Fatal(text)
		}
	}
}

// Comment is a comment on a pull request.
type Comment struct {
	ID   int64  `json:"id"`
	Body string `json:"body"`
	User struct {
		Login string `json:"login"`
	} `json:"user"`
}

// Say adds a comment of a user to a pull request.
func (r *Repository) Say(u *User, number int64, body string) Comment {
	u.tb.Helper()
	var out Comment
	u.Must(http.MethodPost, r.Path(fmt.Sprintf("/issues/%d/comments", number)), map[string]any{"body": body}, &out)
	return out
}

// Comments returns the comments of a pull request, oldest first.
func (r *Repository) Comments(number int64) []Comment {
	r.Owner.tb.Helper()
	var out []Comment
	r.Owner.Must(http.MethodGet, r.Path(fmt.Sprintf("/issues/%d/comments", number)), nil, &out)
	return out
}

// Reactions returns the reactions to a comment, such as "eyes", each with its user.
func (r *Repository) Reactions(comment int64) []string {
	r.Owner.tb.Helper()
	var list []struct {
		Content string `json:"content"`
		User    struct {
			Login string `json:"login"`
		} `json:"user"`
	}
	r.Owner.Must(http.MethodGet, r.Path(fmt.Sprintf("/issues/comments/%d/reactions", comment)), nil, &list)
	var out []string
	for _, x := range list {
		out = append(out, x.User.Login+" "+x.Content)
	}
	return out
}
