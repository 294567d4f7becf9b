package forge

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// hub reads GitHub's API, which is Gitea's and Forgejo's too but for what dialect says.
// https://docs.github.com/rest/pulls/pulls
// https://docs.gitea.com/api/ (repository, issue)
type hub struct {
	*rest
	dialect
	name string // owner/name
	repo string // its path

	mu   sync.Mutex
	self string
	said onceTold[[]Comment]
}

// dialect is where GitHub and Gitea differ.
type dialect struct {
	size     int
	sizeName string
	order    string // of listing pull requests, those that changed last first
	// merges is whether a ref holds the result of merging.
	merges bool
	// graphql answers who an App is, "" if there are no Apps.
	graphql string

	canRead, canWrite, canAskLevel, canAskSelf string // grants, for errors
}

func newGitHub(api, base *url.URL, o ClientOptions) *hub {
	graphql := "https://api.github.com/graphql"
	if api != base {
		graphql = base.JoinPath("api", "graphql").String()
	}
	h := newHub(newRest(GitHub, api, base, forgehttp.Bearer, o), o, dialect{
		size: 100, sizeName: "per_page", order: "sort=updated&direction=desc", merges: true, graphql: graphql,
		canRead:     "the permission \"Pull requests: read\", or the scope repo if it is a classic token",
		canWrite:    "the permission \"Pull requests: read and write\", or the scope repo if it is a classic token",
		canAskLevel: "the permission \"Metadata: read\" and access to the repository, or the scope repo if it is a classic token",
		canAskSelf:  "to be a user's or an App's installation",
	})
	h.header = http.Header{"Accept": {"application/vnd.github+json"}, "X-Github-Api-Version": {"2022-11-28"}}
	return h
}

func newGitea(base *url.URL, o ClientOptions) *hub {
	return newHub(newRest(Gitea, base.JoinPath("api", "v1"), base, forgehttp.Plain, o), o, dialect{
		size: 50, sizeName: "limit", order: "sort=recentupdate", // 50 is the usual maximum of a server
		canRead:     "the scopes read:repository and read:issue, and its user access to the repository",
		canWrite:    "the scope write:issue",
		canAskLevel: "the scope read:repository, and its user must be an administrator of the repository: Gitea tells nobody else what others may do",
		canAskSelf:  "the scope read:user",
	})
}

func newHub(r *rest, o ClientOptions, d dialect) *hub {
	owner, name, _ := strings.Cut(o.Repository, "/")
	return &hub{rest: r, dialect: d, name: o.Repository, repo: "/repos/" + url.PathEscape(owner) + "/" + url.PathEscape(name)}
}

// Kind is GitHub or Gitea.
func (h *hub) Kind() Kind { return h.kind }

// HeadRef is the same on both.
func (h *hub) HeadRef(number int64) string {
	return "refs/pull/" + strconv.FormatInt(number, 10) + "/head"
}

type hubUser struct {
	Login string `json:"login"`
}

type hubBranch struct {
	Label string `json:"label"`
	Ref   string `json:"ref"`
	SHA   string `json:"sha"`
	Repo  *struct {
		ID int64 `json:"id"`
	} `json:"repo"`
}

type hubPull struct {
	Number  int64    `json:"number"`
	Title   string   `json:"title"`
	State   string   `json:"state"`
	Draft   bool     `json:"draft"`
	WebURL  string   `json:"html_url"`
	User    *hubUser `json:"user"`
	Updated string   `json:"updated_at"`
	Labels  []struct {
		Name string `json:"name"`
	} `json:"labels"`
	Head     hubBranch `json:"head"`
	Base     hubBranch `json:"base"`
	MergedAt *string   `json:"merged_at"`
	Merged   bool      `json:"merged"`
	// MergeSHA is of a trial merge while it is open.
	MergeSHA *string `json:"merge_commit_sha"`
}

// moment reads a time; the zero time where there is none.
func moment(s string) time.Time {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

func (u *hubUser) login() string {
	if u == nil { // an account that is gone
		return ""
	}
	return u.Login
}

func (h *hub) pull(in hubPull) PullRequest {
	out := PullRequest{
		Number: in.Number, Title: in.Title, Author: in.User.login(), WebURL: in.WebURL, Draft: in.Draft, State: Open, Fork: h.fork(in),
		HeadSHA: in.Head.SHA, HeadRef: in.Head.Ref, BaseRef: in.Base.Ref, BaseSHA: in.Base.SHA, UpdatedAt: moment(in.Updated),
	}
	for _, l := range in.Labels {
		out.Labels = append(out.Labels, l.Name)
	}
	switch {
	case in.Merged || in.MergedAt != nil:
		out.State = Merged
		if in.MergeSHA != nil {
			out.MergeSHA = *in.MergeSHA
		}
	case in.State == "closed":
		out.State = Closed
	case h.merges:
		out.MergeRef = strings.TrimSuffix(h.HeadRef(in.Number), "head") + "merge"
	}
	return out.bounded()
}

// fork reports whether the head may be from somebody who may not push. Who may only
// read can push to refs/for/… of Gitea: such a pull request names the repository
// itself as its head's, and no branch of it.
// https://docs.gitea.com/usage/agit
func (h *hub) fork(in hubPull) bool {
	if in.Head.Repo == nil || in.Base.Repo == nil || in.Head.Repo.ID != in.Base.Repo.ID {
		return true
	}
	return h.kind == Gitea && (in.Head.Label == "" || strings.HasPrefix(in.Head.Ref, "refs/"))
}

func (h *hub) of() string { return h.api + h.repo }

func (h *hub) pageSize() int { return h.size }

func (h *hub) paged(path, query string, page int) string {
	return fmt.Sprintf("%s%s?%s&%s=%d&page=%d", h.repo, path, query, h.sizeName, h.size, page)
}

func (h *hub) theRepository(does, grant string) need {
	return need{does: does, grant: grant, thing: "the repository " + h.name, hidden: true}
}

func (h *hub) thePull(does, grant string, number int64) need {
	return need{does: does, grant: grant, thing: fmt.Sprintf("pull request %d of %s", number, h.name)}
}

func (h *hub) pullPage(ctx context.Context, page int, etag string) ([]PullRequest, answer, error) {
	var in []hubPull
	a, err := h.do(ctx, ask{
		method: http.MethodGet, path: h.paged("/pulls", "state=open&"+h.order, page), etag: etag, need: h.theRepository("list pull requests", h.canRead),
	}, each(&in))
	if err != nil && page == 1 && h.kind == Gitea {
		return nil, answer{}, h.withoutPulls(ctx, err)
	}
	var out []PullRequest
	for _, p := range in {
		out = append(out, h.pull(p))
	}
	return out, a, err
}

// Pulls lists the open pull requests.
func (h *hub) Pulls(ctx context.Context, after Cursor) ([]PullRequest, Cursor, bool, error) {
	return listPulls(ctx, h, after)
}

// Pull reads one.
func (h *hub) Pull(ctx context.Context, number int64) (PullRequest, error) {
	var in hubPull
	_, err := h.do(ctx, ask{
		method: http.MethodGet, path: fmt.Sprintf("%s/pulls/%d", h.repo, number), need: h.thePull("read pull requests", h.canRead, number),
	}, into(&in))
	if err != nil {
		return PullRequest{}, err
	}
	return h.pull(in), nil
}

// MergedSince reads what was closed: neither lists those alone that were merged.
func (h *hub) MergedSince(ctx context.Context, from time.Time) ([]PullRequest, bool, error) {
	return mergedSince(h.size, from, func(page int) ([]PullRequest, answer, error) {
		var in []hubPull
		a, err := h.do(ctx, ask{
			method: http.MethodGet, path: h.paged("/pulls", "state=closed&"+h.order, page), need: h.theRepository("list pull requests", h.canRead),
		}, each(&in))
		var out []PullRequest
		for _, p := range in {
			out = append(out, h.pull(p))
		}
		return out, a, err
	})
}

type hubComment struct {
	ID      int64    `json:"id"`
	Body    string   `json:"body"`
	WebURL  string   `json:"html_url"`
	User    *hubUser `json:"user"`
	Created string   `json:"created_at"`
	Updated string   `json:"updated_at"`
	Issue   string   `json:"issue_url"`
	Pull    string   `json:"pull_request_url"` // Gitea's, empty for an issue
}

// number is the pull request that a comment is on, 0 if it is on an issue. GitHub
// has the number in the address of the issue that each pull request also is, and
// tells the two apart by the page's address.
func (c hubComment) number() int64 {
	address := c.Pull
	if page, _, _ := strings.Cut(c.WebURL, "#"); address == "" && strings.Contains(page, "/pull/") {
		address = c.Issue
	}
	n, err := strconv.ParseInt(address[strings.LastIndex(address, "/")+1:], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

func (c hubComment) comment(number int64) Comment {
	return Comment{ID: c.ID, Number: number, Author: word(c.User.login()), Body: clipBody(c.Body), WebURL: word(c.WebURL), CreatedAt: moment(c.Created), UpdatedAt: moment(c.Updated)}
}

func since(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return "since=" + url.QueryEscape(t.UTC().Truncate(time.Second).Format(time.RFC3339))
}

// Comments lists a conversation, without what is said on lines of the change.
func (h *hub) Comments(ctx context.Context, number int64, from time.Time) ([]Comment, error) {
	var out []Comment
	for page := 1; page <= maxItems/h.size; page++ {
		var in []hubComment
		a, err := h.do(ctx, ask{
			method: http.MethodGet, path: h.paged(fmt.Sprintf("/issues/%d/comments", number), since(from), page),
			need: h.thePull("read comments", h.canRead, number),
		}, each(&in))
		if err != nil {
			return nil, err
		}
		for _, c := range in {
			out = append(out, c.comment(number))
		}
		if !a.more || len(in) == 0 {
			break
		}
	}
	return inOrder(out, from), nil
}

// CommentsSince lists what was said on all pull requests.
func (h *hub) CommentsSince(ctx context.Context, from time.Time) ([]Comment, error) {
	h.mu.Lock()
	was := h.said
	h.mu.Unlock()
	name := since(from)
	if was.name != name {
		was = onceTold[[]Comment]{}
	}
	now := onceTold[[]Comment]{name: name}
	for page := 1; page <= maxItems/h.size; page++ {
		q := ask{
			method: http.MethodGet, path: h.paged("/issues/comments", "sort=updated&direction=asc&"+name, page),
			need: h.theRepository("read comments", h.canRead),
		}
		if page == 1 {
			q.etag = was.etag
		}
		var in []hubComment
		a, err := h.do(ctx, q, each(&in))
		if err != nil {
			return nil, err
		}
		if a.same {
			return inOrder(append([]Comment(nil), was.value...), from), nil
		}
		for _, c := range in {
			if n := c.number(); n != 0 {
				now.value = append(now.value, brief(c.comment(n)))
			}
		}
		if !a.more || len(in) == 0 {
			if page == 1 {
				now.etag = a.etag // of the whole answer then
			}
			break
		}
	}
	h.mu.Lock()
	h.said = now
	h.mu.Unlock()
	return inOrder(append([]Comment(nil), now.value...), from), nil
}
