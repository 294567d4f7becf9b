package forge

import (
	"context"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"
)

// commentsPage reads a page of comments of a pull request, or of all pull requests if number is 0.
func (t *giteaForge) commentsPage(ctx context.Context, n need, number int64, from time.Time, page int, etag string) (list []Comment, a answer, err error) {
	a, err = t.read(ctx, n, etag, t.call(func(c *gitea.Client) (err error) {
		list = nil
		o := gitea.ListIssueCommentOptions{ListOptions: t.page(page), Since: from.UTC().Truncate(time.Second)}
		var in []*gitea.Comment
		if number == 0 {
			in, _, err = c.ListRepoIssueComments(t.owner, t.repo, o)
		} else {
			in, _, err = c.ListIssueComments(t.owner, t.repo, number, o)
		}
		for _, c := range in {
			if c == nil {
				continue
			}
			on := number
			if on == 0 {
				on = numberAtEnd(c.PRURL) // empty for an issue
			}
			list = append(list, giteaComment(c, on))
		}
		return err
	}))
	return list, a, err
}

func giteaComment(c *gitea.Comment, number int64) Comment {
	if c == nil {
		return Comment{Number: number}
	}
	return Comment{
		ID: c.ID, Number: number, Author: word(giteaLogin(c.Poster)), Body: c.Body, WebURL: word(c.HTMLURL), CreatedAt: c.Created.UTC(), UpdatedAt: c.Updated.UTC(),
	}
}

// Comments implements Client. Gitea returns all comments at once, or in pages if the server is configured
// that way.
func (t *giteaForge) Comments(ctx context.Context, number int64, from time.Time) ([]Comment, error) {
	return conversation(t.size, from, func(page int) ([]Comment, answer, error) {
		return t.commentsPage(ctx, t.aboutPull("read comments", giteaRead, number), number, from, page, "")
	})
}

// CommentsSince implements Client.
func (t *giteaForge) CommentsSince(ctx context.Context, from time.Time) ([]Comment, error) {
	return t.comments.read(t.size, from, func(page int, etag string) ([]Comment, answer, error) {
		return t.commentsPage(ctx, need{does: "read comments", grant: giteaRead}, 0, from, page, etag)
	})
}

// React implements Client.
func (t *giteaForge) React(ctx context.Context, number, comment int64, r Reaction) error {
	err := t.write(ctx, t.aboutPull("react to comments", giteaWrite, number), t.call(func(c *gitea.Client) error {
		_, _, err := c.PostIssueCommentReaction(t.owner, t.repo, comment, string(r))
		return err
	}))
	if err != nil && strings.Contains(err.Error(), "not an allowed reaction") {
		return nil // Gitea's administrator chooses the available reactions
	}
	return err
}

var giteaComments = need{does: "write comments on pull requests", grant: giteaWrite}

// CreateComment implements Client.
func (t *giteaForge) CreateComment(ctx context.Context, number int64, body string) (out Comment, err error) {
	err = t.write(ctx, giteaComments, t.call(func(c *gitea.Client) error {
		in, _, err := c.CreateIssueComment(t.owner, t.repo, number, gitea.CreateIssueCommentOption{Body: body})
		out = giteaComment(in, number)
		return err
	}))
	return out, commentRefusal(err)
}

// EditComment implements Client.
func (t *giteaForge) EditComment(ctx context.Context, number, id int64, body string) (out Comment, err error) {
	err = t.write(ctx, giteaComments, t.call(func(c *gitea.Client) error {
		in, _, err := c.EditIssueComment(t.owner, t.repo, id, gitea.EditIssueCommentOption{Body: body})
		out = giteaComment(in, number)
		return err
	}))
	return out, commentRefusal(err)
}

// DeleteComment implements Client.
func (t *giteaForge) DeleteComment(ctx context.Context, _, id int64) error {
	return commentRefusal(t.write(ctx, giteaComments, t.call(func(c *gitea.Client) error {
		_, err := c.DeleteIssueComment(t.owner, t.repo, id)
		return err
	})))
}
