package forge

import (
	"context"
	"strconv"

	"code.gitea.io/sdk/gitea"
)

// Kind is Gitea.
func (g *GiteaWriter) Kind() Kind { return Gitea }

func (g *GiteaWriter) commentFault(resp *gitea.Response, err error) error {
	return commentRefusal(g.faultOf(resp, err, grant{does: comments, scope: "write:issue"}))
}

// Login is the token's user.
func (g *GiteaWriter) Login(ctx context.Context) (string, error) {
	client, err := g.client(ctx)
	if err != nil {
		return "", g.commentFault(nil, err)
	}
	user, resp, err := client.GetMyUserInfo()
	if err != nil {
		return "", g.faultOf(resp, err, grant{does: "ask whose it is", scope: "read:user"})
	}
	return user.UserName, nil
}

// ListComments lists the comments of the conversation. Gitea gives all of them at
// once, or pages where a server has been made to.
func (g *GiteaWriter) ListComments(ctx context.Context, number int64) ([]PostedComment, error) {
	client, err := g.client(ctx)
	if err != nil {
		return nil, g.commentFault(nil, err)
	}
	var out []PostedComment
	seen := map[int64]bool{}
	for page := 1; page <= commentPages; page++ {
		list, resp, err := client.ListIssueComments(g.owner, g.repo, number, gitea.ListIssueCommentOptions{
			ListOptions: gitea.ListOptions{Page: page, PageSize: giteaPageSize},
		})
		if err != nil {
			return nil, g.commentFault(resp, err)
		}
		before := len(out)
		for _, c := range list {
			if seen[c.ID] {
				continue
			}
			seen[c.ID] = true
			author := ""
			if c.Poster != nil {
				author = c.Poster.UserName
			}
			out = append(out, PostedComment{ID: c.ID, Author: author, Body: c.Body})
		}
		total, err := strconv.Atoi(resp.Header.Get("X-Total-Count"))
		if more := resp.NextPage != 0 || err == nil && len(out) < total; len(out) == before || !more {
			break
		}
	}
	return out, nil
}

// CreateComment writes a comment.
func (g *GiteaWriter) CreateComment(ctx context.Context, number int64, body string) (int64, error) {
	client, err := g.client(ctx)
	if err != nil {
		return 0, g.commentFault(nil, err)
	}
	c, resp, err := client.CreateIssueComment(g.owner, g.repo, number, gitea.CreateIssueCommentOption{Body: body})
	if err != nil {
		return 0, g.commentFault(resp, err)
	}
	return c.ID, nil
}

// EditComment changes a comment's text.
func (g *GiteaWriter) EditComment(ctx context.Context, _, id int64, body string) error {
	client, err := g.client(ctx)
	if err != nil {
		return g.commentFault(nil, err)
	}
	_, resp, err := client.EditIssueComment(g.owner, g.repo, id, gitea.EditIssueCommentOption{Body: body})
	return g.commentFault(resp, err)
}

// DeleteComment deletes a comment.
func (g *GiteaWriter) DeleteComment(ctx context.Context, _, id int64) error {
	client, err := g.client(ctx)
	if err != nil {
		return g.commentFault(nil, err)
	}
	resp, err := client.DeleteIssueComment(g.owner, g.repo, id)
	return g.commentFault(resp, err)
}
