package forge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
)

// Kind is GitLab.
func (g *GitLabWriter) Kind() Kind { return GitLab }

// gitlabNote is a comment as GitLab answers with it.
type gitlabNote struct {
	ID     int64  `json:"id"`
	Body   string `json:"body"`
	System bool   `json:"system"`
	Author struct {
		Username string `json:"username"`
	} `json:"author"`
}

func (g *GitLabWriter) notes(number int64) string {
	return fmt.Sprintf("%s/merge_requests/%d/notes", g.project, number)
}

// Login is the token's user.
func (g *GitLabWriter) Login(ctx context.Context) (string, error) {
	var user struct {
		Username string `json:"username"`
	}
	_, err := g.ask(ctx, http.MethodGet, g.api+"/user", nil, &user, "ask whose it is")
	return user.Username, err
}

// ListComments lists a merge request's notes, without GitLab's own.
func (g *GitLabWriter) ListComments(ctx context.Context, number int64) ([]PostedComment, error) {
	var out []PostedComment
	for page := 1; page <= commentPages; page++ {
		var list []gitlabNote
		h, err := g.ask(ctx, http.MethodGet, fmt.Sprintf("%s?sort=asc&order_by=created_at&per_page=100&page=%d", g.notes(number), page), nil, &list, comments)
		if err != nil {
			return nil, commentRefusal(err)
		}
		for _, n := range list {
			if !n.System {
				out = append(out, PostedComment{ID: n.ID, Author: n.Author.Username, Body: n.Body})
			}
		}
		if len(list) == 0 || h.Get("X-Next-Page") == "" {
			break
		}
	}
	return out, nil
}

// CreateComment writes a note.
func (g *GitLabWriter) CreateComment(ctx context.Context, number int64, body string) (int64, error) {
	var note gitlabNote
	err := g.writeNote(ctx, http.MethodPost, g.notes(number), body, &note)
	return note.ID, err
}

// EditComment changes a note's text.
func (g *GitLabWriter) EditComment(ctx context.Context, number, id int64, body string) error {
	return g.writeNote(ctx, http.MethodPut, fmt.Sprintf("%s/%d", g.notes(number), id), body, nil)
}

// DeleteComment deletes a note.
func (g *GitLabWriter) DeleteComment(ctx context.Context, number, id int64) error {
	_, err := g.ask(ctx, http.MethodDelete, fmt.Sprintf("%s/%d", g.notes(number), id), nil, nil, comments)
	return commentRefusal(err)
}

func (g *GitLabWriter) writeNote(ctx context.Context, method, address, body string, note any) error {
	raw, err := json.Marshal(map[string]string{"body": body})
	if err != nil {
		return g.fault(nil, nil, err, comments)
	}
	_, err = g.ask(ctx, method, address, raw, note, comments)
	return commentRefusal(err)
}
