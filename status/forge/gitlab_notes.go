package forge

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// sweepTimeout bounds the reading of the notes of all merge requests.
const sweepTimeout = 5 * time.Minute

type labNote struct {
	ID      int64    `json:"id"`
	Body    string   `json:"body"`
	Author  *labUser `json:"author"`
	Created string   `json:"created_at"`
	Updated string   `json:"updated_at"`
	// System notes are what GitLab itself says.
	System bool `json:"system"`
}

// Comments lists a merge request's notes. GitLab cannot leave out the old ones, so
// that pages are read from the newest note on, as far as needed.
func (l *lab) Comments(ctx context.Context, number int64, from time.Time) ([]Comment, error) {
	var out []Comment
	for page := 1; page <= maxItems/l.size; page++ {
		var in []labNote
		a, err := l.do(ctx, ask{
			method: http.MethodGet, need: l.thePull("read comments", labRead, number),
			path: fmt.Sprintf("%s/merge_requests/%d/notes?order_by=updated_at&sort=desc&per_page=%d&page=%d", l.project, number, l.size, page),
		}, each(&in))
		if err != nil {
			return nil, err
		}
		old := false
		for _, n := range in {
			old = old || moment(n.Updated).Before(from.Truncate(time.Second))
			if !n.System {
				out = append(out, Comment{
					ID: n.ID, Number: number, Author: word(n.Author.login()), Body: clipBody(n.Body),
					WebURL: l.note(number, n.ID), CreatedAt: moment(n.Created), UpdatedAt: moment(n.Updated),
				})
			}
		}
		if old || !a.more || len(in) == 0 {
			break
		}
	}
	return inOrder(out, from), nil
}

// note is a note's address, which the API does not give.
func (l *lab) note(number, id int64) string {
	return fmt.Sprintf("%s/%s/-/merge_requests/%d#note_%d", l.api[:len(l.api)-len("/api/v4")], l.name, number, id)
}

// CommentsSince lists the notes of the merge requests that changed since, which a
// note also does. What did not change after it was read is not read again.
func (l *lab) CommentsSince(ctx context.Context, from time.Time) ([]Comment, error) {
	l.mu.Lock()
	was := l.moved
	l.mu.Unlock()
	query := ""
	if !from.IsZero() {
		query = "&updated_after=" + url.QueryEscape(from.UTC().Truncate(time.Second).Add(-time.Second).Format(time.RFC3339))
	}
	if was.name != query {
		was.etag = ""
	}
	now := onceTold[[]PullRequest]{name: query}
	for page := 1; page <= maxItems/l.size; page++ {
		etag := ""
		if page == 1 {
			etag = was.etag
		}
		list, a, err := l.list(ctx, "opened", query, page, etag)
		if err != nil {
			return nil, err
		}
		if a.same {
			now = was
			break
		}
		now.value = append(now.value, list...)
		if !a.more || len(list) == 0 {
			if page == 1 {
				now.etag = a.etag // of the whole answer then
			}
			break
		}
	}
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	var out []Comment
	notes, kept := map[int64]labNotes{}, 0
	for _, p := range now.value {
		if _, twice := notes[p.Number]; twice {
			continue
		}
		l.mu.Lock()
		had, ok := l.notes[p.Number]
		l.mu.Unlock()
		if !ok || !had.at.Equal(p.UpdatedAt) || had.from.After(from) {
			list, err := l.Comments(ctx, p.Number, from)
			if err != nil {
				return nil, err
			}
			for i := range list {
				list[i] = brief(list[i])
			}
			had = labNotes{at: p.UpdatedAt, from: from, list: list}
		}
		out = append(out, had.list...)
		if len(out) > 2*maxItems {
			out = inOrder(out, from)
			out = slices.Clone(out[:min(len(out), maxItems)])
		}
		if kept += len(had.list); kept > 2*maxItems {
			had = labNotes{} // it is read again
		}
		notes[p.Number] = had
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.moved, l.notes = now, notes
	out = inOrder(out, from)
	return out[:min(len(out), maxItems)], nil
}
