package forge

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"
	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// Edits is a forge's record of edits of a comment's text.
type Edits int

// The possible values of Edits.
const (
	// EditsUnknown means that the forge does not show whether this comment was edited.
	EditsUnknown Edits = iota
	// Unedited means that the text is the original text of its author.
	Unedited
	// Edited means that somebody changed the text, its author or another user.
	Edited
)

// sameBeginning reports whether the start of a comment's text, from a list, matches a text that was read
// later.
func sameBeginning(listed, now string) bool {
	return Beginning(plainText(now)) == Beginning(plainText(listed))
}

// plainText normalizes the parts of a text that forges change by themselves.
func plainText(s string) string { return strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")) }

// Edits reads GitHub's flag for edits. Only GraphQL has it. updated_at has a resolution of a second, so it
// would not show an edit within the first second.
// https://docs.github.com/graphql/reference/objects#issuecomment
func (g *gitHub) Edits(ctx context.Context, c Comment) (Edits, error) {
	if c.Node == "" {
		return EditsUnknown, nil
	}
	var in struct {
		Data struct {
			Node *struct {
				Body     string     `json:"body"`
				EditedAt *time.Time `json:"lastEditedAt"`
			} `json:"node"`
		} `json:"data"`
	}
	_, err := g.read(ctx, g.aboutPull("read whether a comment was edited", githubRead, c.Number), "", func(ctx context.Context) error {
		in.Data.Node = nil
		return g.query(ctx, map[string]any{
			"query": "query($id:ID!){node(id:$id){... on IssueComment{body lastEditedAt}}}", "variables": map[string]string{"id": c.Node},
		}, &in)
	})
	switch node := in.Data.Node; {
	case err != nil:
		return EditsUnknown, err
	case node == nil:
		return EditsUnknown, nil
	case node.EditedAt != nil || !sameBeginning(c.Body, node.Body):
		return Edited, nil
	}
	return Unedited, nil
}

// Edits reads GitLab's flag for edits, which only GraphQL has. updated_at also changes when a thread is
// resolved. GitLab has the query since 15.9. With older versions, equal times show that the note was not
// changed.
// https://docs.gitlab.com/api/graphql/reference/#querynote
func (g *gitLab) Edits(ctx context.Context, c Comment) (Edits, error) {
	var in struct {
		Data struct {
			Note *struct {
				Body     string     `json:"body"`
				EditedAt *time.Time `json:"lastEditedAt"`
			} `json:"note"`
		} `json:"data"`
	}
	_, err := g.read(ctx, g.aboutPull("read whether a comment was edited", gitlabRead, c.Number), "", func(ctx context.Context) error {
		in.Data.Note = nil
		req, err := g.client.NewRequest(http.MethodPost, "", gitlab.GraphQLQuery{
			Query: "query($id:NoteID!){note(id:$id){body lastEditedAt}}", Variables: map[string]any{"id": fmt.Sprintf("gid://gitlab/Note/%d", c.ID)},
		}, []gitlab.RequestOptionFunc{with(ctx)})
		if err != nil {
			return err
		}
		req.URL.Path = strings.TrimSuffix(req.URL.Path, "/v4/") + "/graphql" // GraphQL has the same base address as the REST API
		req.URL.RawPath = ""
		_, err = g.client.Do(req, &in)
		return err
	})
	switch note := in.Data.Note; {
	case err != nil:
		return EditsUnknown, err
	case note != nil && (note.EditedAt != nil || !sameBeginning(c.Body, note.Body)):
		return Edited, nil
	case note != nil || !c.CreatedAt.IsZero() && c.UpdatedAt.Equal(c.CreatedAt):
		return Unedited, nil
	}
	return EditsUnknown, nil
}

// Edits compares a comment with its original text in the repository's activity, which edits do not change.
// The times of a comment have a resolution of a second, so they show no edit within the first second, and
// on Forgejo an owner can set them. Gitea does not show the activity of users who have hidden it.
func (t *giteaForge) Edits(ctx context.Context, c Comment) (Edits, error) {
	if !c.UpdatedAt.Equal(c.CreatedAt) {
		return Edited, nil
	}
	first, found, err := t.firstWritten(ctx, c)
	if err != nil || !found {
		return EditsUnknown, err
	}
	body := plainText(c.Body)
	if plainText(first) == body {
		return Unedited, nil
	}
	// Gitea stores about 200 characters.
	kept, cut := strings.CutSuffix(first, "…")
	if !cut {
		kept, cut = strings.CutSuffix(first, "...")
	}
	kept = strings.TrimRight(strings.ReplaceAll(kept, "\r\n", "\n"), " \n\t")
	if !cut || !strings.HasPrefix(strings.ReplaceAll(c.Body, "\r\n", "\n"), kept) {
		return Edited, nil
	}
	was, had := ParseCommand(kept)
	if now, has := ParseCommand(body); had && has && was == now {
		return Unedited, nil
	}
	return EditsUnknown, nil
}

// firstWritten returns the start of a comment as it was written, from the repository's activity. found is
// false if the activity does not have it, also for versions of Gitea without activities.
func (t *giteaForge) firstWritten(ctx context.Context, c Comment) (text string, found bool, err error) {
	err = eachPage(t.size, func(page int) (n int, a answer, err error) {
		var list []*gitea.Activity
		a, err = t.read(ctx, need{does: "read the repository's activity", grant: giteaRead}, "", t.call(func(api *gitea.Client) (err error) {
			list, _, err = api.ListRepoActivityFeeds(t.owner, t.repo, gitea.ListRepoActivityFeedsOptions{ListOptions: t.page(page)})
			return err
		}))
		for _, entry := range list {
			if entry == nil {
				continue
			}
			if entry.Created.Before(c.CreatedAt.Add(-time.Minute)) {
				return 0, a, err // all further ones are older
			}
			if on, said, ok := strings.Cut(entry.Content, "|"); ok && entry.CommentID == c.ID && entry.OpType == "comment_pull" && on == fmt.Sprint(c.Number) {
				text, found = said, true
				return 0, a, err
			}
		}
		return len(list), a, err
	})
	if refused(err, http.StatusNotFound) != nil {
		return "", false, nil // Gitea before 1.20
	}
	return text, found, err
}
