package forge

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/google/go-github/v84/github"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// gitHub is a client of GitHub, or of GitHub Enterprise Server.
type gitHub struct {
	*caller
	client      *github.Client
	owner, repo string
	size        int // of a page
	comments    allComments
}

const (
	githubRead   = "the permission \"Pull requests: read\", or the scope repo if it is a classic token"
	githubWrite  = "the permission \"Pull requests: read and write\", or the scope repo if it is a classic token"
	githubLevel  = "the permission \"Metadata: read\" and access to the repository, or the scope repo if it is a classic token"
	githubStatus = "the permission \"Commit statuses: read and write\", or repo:status among its scopes if it is a classic token"
)

// newGitHub returns the client of a repository on github.com or on a GitHub Enterprise Server at base.
func newGitHub(p Profile, base *url.URL, o ClientOptions) (Client, error) {
	api := base.JoinPath("api", "v3")
	if strings.EqualFold(base.Host, "github.com") {
		base = &url.URL{Scheme: "https", Host: "api.github.com"}
		api = base
	}
	owner, name, _ := strings.Cut(o.Repository, "/")
	g := &gitHub{
		caller: newCaller(p, o, forgehttp.Options{Base: base, Scheme: forgehttp.Bearer}),
		owner:  url.PathEscape(owner), repo: url.PathEscape(name), size: 100, // the library inserts them into paths unescaped
	}
	g.client = github.NewClient(g.http)
	g.client.BaseURL = api.JoinPath("/")  // WithEnterpriseURLs would guess the API's address from the host name
	g.client.DisableRateLimitCheck = true // the transport observes rate limits
	return g, nil
}

// pull converts a pull request of GitHub. If a repository is missing, because it was deleted, it counts as
// a fork.
func (g *gitHub) pull(in *github.PullRequest) PullRequest {
	out := PullRequest{
		Number: int64(in.GetNumber()), Title: in.GetTitle(), Author: in.GetUser().GetLogin(), WebURL: in.GetHTMLURL(), Draft: in.GetDraft(), State: Open,
		Fork:    in.GetHead().GetRepo() == nil || in.GetBase().GetRepo() == nil || in.GetHead().GetRepo().GetID() != in.GetBase().GetRepo().GetID(),
		HeadSHA: in.GetHead().GetSHA(), HeadRef: in.GetHead().GetRef(), BaseRef: in.GetBase().GetRef(), BaseSHA: in.GetBase().GetSHA(), UpdatedAt: in.GetUpdatedAt().UTC(),
	}
	for _, l := range in.Labels {
		out.Labels = append(out.Labels, l.GetName())
	}
	switch {
	case in.GetMerged() || in.MergedAt != nil:
		out.State, out.MergeSHA = Merged, in.GetMergeCommitSHA() // while a pull request is open, this is a trial merge
	case in.GetState() == "closed":
		out.State = Closed
	default:
		out.MergeRef = g.profile.MergeRef(out.Number)
	}
	return out.bounded()
}

// list returns a page of pull requests, the most recently updated first. If the list still has the given
// ETag, it is empty and the answer has same.
func (g *gitHub) list(ctx context.Context, state string, page int, etag string) (list []PullRequest, a answer, err error) {
	a, err = g.read(ctx, need{does: "list pull requests", grant: githubRead}, etag, func(ctx context.Context) error {
		list = nil
		in, _, err := g.client.PullRequests.List(ctx, g.owner, g.repo, &github.PullRequestListOptions{
			State: state, Sort: "updated", Direction: "desc", ListOptions: github.ListOptions{Page: page, PerPage: g.size},
		})
		for _, p := range in {
			if p != nil {
				list = append(list, g.pull(p))
			}
		}
		return err
	})
	return list, a, err
}

// Pulls implements Client.
func (g *gitHub) Pulls(ctx context.Context, after Cursor) ([]PullRequest, Cursor, bool, error) {
	return listPulls(ctx, g, after)
}

func (g *gitHub) repositoryURL() string {
	return g.client.BaseURL.String() + "repos/" + g.owner + "/" + g.repo
}

func (g *gitHub) pageSize() int { return g.size }

func (g *gitHub) pullPage(ctx context.Context, page int, etag string) ([]PullRequest, answer, error) {
	return g.list(ctx, "open", page, etag)
}

// Pull implements Client.
func (g *gitHub) Pull(ctx context.Context, number int64) (out PullRequest, err error) {
	_, err = g.read(ctx, g.aboutPull("read pull requests", githubRead, number), "", func(ctx context.Context) error {
		in, _, err := g.client.PullRequests.Get(ctx, g.owner, g.repo, int(number))
		if err == nil {
			out = g.pull(in)
		}
		return err
	})
	return out, err
}

// MergedSince reads all closed pull requests, because GitHub cannot list only the merged ones.
func (g *gitHub) MergedSince(ctx context.Context, from time.Time) ([]PullRequest, bool, error) {
	return mergedSince(g.size, from, func(page int) ([]PullRequest, answer, error) { return g.list(ctx, "closed", page, "") })
}

// PullOf lists the pull requests of a branch, the newest first. A fork's branch has a different owner.
// https://docs.github.com/rest/pulls/pulls#list-pull-requests
func (g *gitHub) PullOf(ctx context.Context, base, head string) (p PullRequest, found bool, err error) {
	_, err = g.read(ctx, need{does: "list pull requests", grant: githubRead}, "", func(ctx context.Context) error {
		in, _, err := g.client.PullRequests.List(ctx, g.owner, g.repo, &github.PullRequestListOptions{
			State: "all", Head: g.owner + ":" + head, Base: base, Sort: "created", Direction: "desc", ListOptions: github.ListOptions{PerPage: g.size},
		})
		for _, one := range in {
			if p = g.pull(one); !p.Fork && p.HeadRef == head && p.BaseRef == base { // GitHub ignores a filter that it cannot parse
				found = true
				return err
			}
		}
		return err
	})
	return p, found, err
}

// OpenPull implements Client.
func (g *gitHub) OpenPull(ctx context.Context, p Proposal) (out PullRequest, err error) {
	err = g.write(ctx, need{does: "open pull requests", grant: githubWrite, thing: "the branch " + p.Head}, func(ctx context.Context) error {
		in, _, err := g.client.PullRequests.Create(ctx, g.owner, g.repo, &github.NewPullRequest{Title: &p.Title, Body: &p.Body, Head: &p.Head, Base: &p.Base})
		if err == nil {
			out = g.pull(in)
		}
		return err
	})
	return out, err
}

// EditPull implements Client.
func (g *gitHub) EditPull(ctx context.Context, number int64, title, body string) error {
	return g.write(ctx, g.aboutPull("edit pull requests", githubWrite, number), func(ctx context.Context) error {
		in := &github.PullRequest{Body: &body}
		if title != "" {
			in.Title = &title
		}
		_, _, err := g.client.PullRequests.Edit(ctx, g.owner, g.repo, int(number), in)
		return err
	})
}

// ClosePull implements Client.
func (g *gitHub) ClosePull(ctx context.Context, number int64) error {
	return g.write(ctx, g.aboutPull("close pull requests", githubWrite, number), func(ctx context.Context) error {
		_, _, err := g.client.PullRequests.Edit(ctx, g.owner, g.repo, int(number), &github.PullRequest{State: github.Ptr("closed")})
		return err
	})
}

// commentsPage reads a page of comments of a pull request, or of all pull requests if number is 0.
func (g *gitHub) commentsPage(ctx context.Context, n need, number int64, from time.Time, page int, etag string) (list []Comment, a answer, err error) {
	o := &github.IssueListCommentsOptions{ListOptions: github.ListOptions{Page: page, PerPage: g.size}}
	if from = from.UTC().Truncate(time.Second); !from.IsZero() {
		o.Since = &from
	}
	if number == 0 {
		o.Sort, o.Direction = github.Ptr("updated"), github.Ptr("asc")
	}
	a, err = g.read(ctx, n, etag, func(ctx context.Context) error {
		list = nil
		in, _, err := g.client.Issues.ListComments(ctx, g.owner, g.repo, int(number), o)
		for _, c := range in {
			on := number
			if on == 0 {
				on = githubPullOf(c)
			}
			list = append(list, githubComment(c, on))
		}
		return err
	})
	return list, a, err
}

func githubComment(c *github.IssueComment, number int64) Comment {
	return Comment{
		ID: c.GetID(), Number: number, Author: word(c.GetUser().GetLogin()), Body: c.GetBody(), WebURL: word(c.GetHTMLURL()),
		CreatedAt: c.GetCreatedAt().UTC(), UpdatedAt: c.GetUpdatedAt().UTC(), Node: word(c.GetNodeID()),
	}
}

// githubPullOf returns the number of the pull request that a comment is on, 0 if it is on an issue. The API
// address contains the number of an issue for both, because each pull request is also an issue. Only the
// web address distinguishes them.
func githubPullOf(c *github.IssueComment) int64 {
	if page, _, _ := strings.Cut(c.GetHTMLURL(), "#"); !strings.Contains(page, "/pull/") {
		return 0
	}
	return numberAtEnd(c.GetIssueURL())
}

// Comments implements Client. It omits comments on lines of the change.
func (g *gitHub) Comments(ctx context.Context, number int64, from time.Time) ([]Comment, error) {
	return conversation(g.size, from, func(page int) ([]Comment, answer, error) {
		return g.commentsPage(ctx, g.aboutPull("read comments", githubRead, number), number, from, page, "")
	})
}

// CommentsSince implements Client.
func (g *gitHub) CommentsSince(ctx context.Context, from time.Time) ([]Comment, error) {
	return g.comments.read(g.size, from, func(page int, etag string) ([]Comment, answer, error) {
		return g.commentsPage(ctx, need{does: "read comments", grant: githubRead}, 0, from, page, etag)
	})
}

// Permission returns the level of a user's role in the repository. A custom role of an organization counts
// as the role that it is based on.
// https://docs.github.com/rest/collaborators/collaborators#get-repository-permissions-for-a-user
func (g *gitHub) Permission(ctx context.Context, user string) (level Level, err error) {
	if !plausible(user) {
		return None, nil
	}
	_, err = g.read(ctx, aboutUser(user, githubLevel), "", func(ctx context.Context) error {
		in, _, err := g.client.Repositories.GetPermissionLevel(ctx, g.owner, g.repo, url.PathEscape(user))
		if err == nil {
			level = githubLevelOf(user, in.GetUser() == nil, in.GetUser().GetLogin(), in.GetRoleName(), in.GetPermission())
		}
		return err
	})
	if refused(err, http.StatusNotFound) != nil {
		return None, nil
	}
	return level, err
}

func aboutUser(user, grant string) need {
	return need{does: "ask what a user may do", grant: grant, thing: "the user " + user}
}

var githubLevels = map[string]Level{
	"none": None, "read": Read, "triage": Triage, "write": Write, "maintain": Maintain, "admin": Admin, "owner": Admin,
}

// githubLevelOf returns the level of the first known role name. It returns None if the response is about a
// different user; with nobody, it may be about no user.
func githubLevelOf(user string, nobody bool, of string, names ...string) Level {
	if !nobody && !strings.EqualFold(of, user) {
		return None
	}
	for _, name := range names {
		if level, ok := githubLevels[name]; ok {
			return level
		}
	}
	return None
}

// React implements Client.
func (g *gitHub) React(ctx context.Context, number, comment int64, r Reaction) error {
	return g.write(ctx, g.aboutPull("react to comments", githubWrite, number), func(ctx context.Context) error {
		_, _, err := g.client.Reactions.CreateIssueCommentReaction(ctx, g.owner, g.repo, comment, string(r))
		return err
	})
}

// CreateComment implements Client.
func (g *gitHub) CreateComment(ctx context.Context, number int64, body string) (out Comment, err error) {
	err = g.write(ctx, need{does: "write comments on pull requests", grant: githubWrite}, func(ctx context.Context) error {
		c, _, err := g.client.Issues.CreateComment(ctx, g.owner, g.repo, int(number), &github.IssueComment{Body: &body})
		out = githubComment(c, number)
		return err
	})
	return out, commentRefusal(err)
}

// EditComment implements Client.
func (g *gitHub) EditComment(ctx context.Context, number, id int64, body string) (out Comment, err error) {
	err = g.write(ctx, need{does: "write comments on pull requests", grant: githubWrite}, func(ctx context.Context) error {
		c, _, err := g.client.Issues.EditComment(ctx, g.owner, g.repo, id, &github.IssueComment{Body: &body})
		out = githubComment(c, number)
		return err
	})
	return out, commentRefusal(err)
}

// DeleteComment implements Client.
func (g *gitHub) DeleteComment(ctx context.Context, _, id int64) error {
	return commentRefusal(g.write(ctx, need{does: "write comments on pull requests", grant: githubWrite}, func(ctx context.Context) error {
		_, err := g.client.Issues.DeleteComment(ctx, g.owner, g.repo, id)
		return err
	}))
}

// Self returns the token's user. The token of an App's installation has no user; for these, GraphQL returns
// the author of their writes.
func (g *gitHub) Self(ctx context.Context) (string, error) {
	return g.whoAmI(ctx, "to be a user's or an App's installation", func(ctx context.Context) (string, error) {
		user, _, err := g.client.Users.Get(ctx, "")
		if e := refused(err, http.StatusForbidden); e == nil || e.Fault != forgehttp.FaultDenied {
			return user.GetLogin(), err
		}
		var in struct {
			Data struct {
				Viewer github.User `json:"viewer"`
			} `json:"data"`
		}
		err = g.query(ctx, map[string]any{"query": "query{viewer{login}}"}, &in)
		return in.Data.Viewer.GetLogin(), err
	})
}

// query sends a GraphQL query.
func (g *gitHub) query(ctx context.Context, query map[string]any, into any) error {
	path := "../graphql" // on GitHub Enterprise Server, next to v3
	if g.client.BaseURL.Path == "/" {
		path = "graphql"
	}
	req, err := g.client.NewRequest(http.MethodPost, path, query)
	if err != nil {
		return err
	}
	_, err = g.client.Do(ctx, req, into)
	return err
}

var githubStatuses = need{does: "write statuses", grant: githubStatus}

// SetStatus implements Client.
func (g *gitHub) SetStatus(ctx context.Context, sha string, s CommitStatus) error {
	err := g.write(ctx, githubStatuses, func(ctx context.Context) error {
		in := github.RepoStatus{State: github.Ptr(string(s.State)), Description: &s.Description, Context: &s.Context}
		if s.TargetURL != "" {
			in.TargetURL = &s.TargetURL
		}
		_, _, err := g.client.Repositories.CreateStatus(ctx, g.owner, g.repo, sha, in)
		return err
	})
	if e := refused(err, http.StatusUnprocessableEntity); e != nil && strings.Contains(e.Message, "No commit found") {
		e.Fault = forgehttp.FaultMissing // the other cause of this status, a context with too many statuses, is permanent
	}
	return err
}

// Statuses implements Client. GitHub returns the newest statuses first, at most 1,000 per context.
func (g *gitHub) Statuses(ctx context.Context, sha string) (map[string]CommitStatus, error) {
	out := map[string]CommitStatus{}
	err := eachPage(g.size, func(page int) (n int, a answer, err error) {
		var list []*github.RepoStatus
		a, err = g.once(ctx, githubStatuses, "", func(ctx context.Context) (err error) {
			list, _, err = g.client.Repositories.ListStatuses(ctx, g.owner, g.repo, sha, &github.ListOptions{Page: page, PerPage: g.size})
			return err
		})
		for _, s := range list {
			if _, newer := out[s.GetContext()]; !newer {
				out[s.GetContext()] = CommitStatus{Context: s.GetContext(), State: CommitState(s.GetState()), Description: s.GetDescription(), TargetURL: s.GetTargetURL()}
			}
		}
		return len(list), a, err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
