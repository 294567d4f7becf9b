package forge

import (
	"context"
	"net/http"
	"net/url"

	"github.com/google/go-github/v84/github"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// Kind is GitHub.
func (g *GitHubWriter) Kind() Kind { return GitHub }

func (g *GitHubWriter) commentFault(resp *github.Response, err error) error {
	return commentRefusal(g.faultOf(resp, err, grant{comments, "the permission \"Pull requests: read and write\"", "repo"}))
}

// Login is the token's user. An App's token has none: GraphQL tells who it writes as.
func (g *GitHubWriter) Login(ctx context.Context) (string, error) {
	user, resp, err := g.client.Users.Get(ctx, "")
	if err == nil {
		return user.GetLogin(), nil
	}
	if resp == nil || resp.Response == nil || resp.StatusCode != http.StatusForbidden || forgehttp.LimitedFor(err) > 0 {
		return "", g.commentFault(resp, err)
	}
	address := &url.URL{Path: "graphql"}
	if g.client.BaseURL.Path != "/" {
		address.Path = "../graphql" // of GitHub Enterprise Server, beside v3
	}
	req, err := g.client.NewRequest(http.MethodPost, address.String(), map[string]string{"query": "query{viewer{login}}"})
	if err != nil {
		return "", g.commentFault(nil, err)
	}
	var answer struct {
		Data struct {
			Viewer struct {
				Login string `json:"login"`
			} `json:"viewer"`
		} `json:"data"`
	}
	if resp, err = g.client.Do(ctx, req, &answer); err != nil {
		return "", g.commentFault(resp, err)
	}
	return answer.Data.Viewer.Login, nil
}

// ListComments lists the comments of the conversation.
func (g *GitHubWriter) ListComments(ctx context.Context, number int64) ([]PostedComment, error) {
	var out []PostedComment
	opts := &github.IssueListCommentsOptions{ListOptions: github.ListOptions{PerPage: 100}}
	for range commentPages {
		list, resp, err := g.client.Issues.ListComments(ctx, g.owner, g.repo, int(number), opts)
		if err != nil {
			return nil, g.commentFault(resp, err)
		}
		for _, c := range list {
			out = append(out, PostedComment{ID: c.GetID(), Author: c.GetUser().GetLogin(), Body: c.GetBody()})
		}
		if resp.NextPage == 0 {
			break
		}
		opts.Page = resp.NextPage
	}
	return out, nil
}

// CreateComment writes a comment.
func (g *GitHubWriter) CreateComment(ctx context.Context, number int64, body string) (int64, error) {
	c, resp, err := g.client.Issues.CreateComment(ctx, g.owner, g.repo, int(number), &github.IssueComment{Body: &body})
	return c.GetID(), g.commentFault(resp, err)
}

// EditComment changes a comment's text.
func (g *GitHubWriter) EditComment(ctx context.Context, _, id int64, body string) error {
	_, resp, err := g.client.Issues.EditComment(ctx, g.owner, g.repo, id, &github.IssueComment{Body: &body})
	return g.commentFault(resp, err)
}

// DeleteComment deletes a comment.
func (g *GitHubWriter) DeleteComment(ctx context.Context, _, id int64) error {
	resp, err := g.client.Issues.DeleteComment(ctx, g.owner, g.repo, id)
	return g.commentFault(resp, err)
}
