package pulls

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/forge/forgehttp"
	"github.com/weir-gitops/weir/status/report"
)

// memForge is a forge in memory. It counts requests.
type memForge struct {
	pulls    map[int64]*forge.PullRequest
	comments []forge.Comment
	levels   map[string]forge.Level
	reacted  []string
	replies  []string
	asked    map[string]int
	version  int
	err      error
	// deaf is why comments cannot be read, unknown are users of whom the forge cannot
	// tell anything.
	deaf    error
	unknown map[string]bool
	now     func() time.Time
	// edits are what the forge says of edits, where it is not what a comment's times say.
	edits map[int64]forge.Edits
	// forbidden is why the forge does not say what users may do.
	forbidden error
	// cut says that its list of what was merged is not whole.
	cut bool
}

func (f *memForge) ask(what string) error {
	f.asked[what]++
	return f.err
}

func (f *memForge) Profile() forge.Profile { return forge.ProfileOf(forge.Gitea) }

func (f *memForge) Pulls(_ context.Context, after forge.Cursor) ([]forge.PullRequest, forge.Cursor, bool, error) {
	if err := f.ask("pulls"); err != nil {
		return nil, "", false, err
	}
	cursor := forge.Cursor(fmt.Sprint(f.version))
	if after == cursor {
		return nil, after, true, nil
	}
	var out []forge.PullRequest
	for _, p := range f.pulls {
		if p.State == forge.Open {
			out = append(out, *p)
		}
	}
	return out, cursor, false, nil
}

func (f *memForge) Pull(_ context.Context, number int64) (forge.PullRequest, error) {
	if err := f.ask("pull"); err != nil {
		return forge.PullRequest{}, err
	}
	if p := f.pulls[number]; p != nil {
		return *p, nil
	}
	return forge.PullRequest{}, &forgehttp.Error{Status: http.StatusNotFound, Fault: forgehttp.FaultMissing, Message: "not found"}
}

func (f *memForge) MergedSince(_ context.Context, since time.Time) ([]forge.PullRequest, bool, error) {
	if err := f.ask("merged"); err != nil {
		return nil, false, err
	}
	var out []forge.PullRequest
	for _, p := range f.pulls {
		if p.State == forge.Merged && !p.UpdatedAt.Before(since) {
			out = append(out, *p)
		}
	}
	return out, !f.cut, nil
}

func (f *memForge) Comments(_ context.Context, number int64, since time.Time) ([]forge.Comment, error) {
	return slices.DeleteFunc(slices.Clone(f.comments), func(c forge.Comment) bool { return c.Number != number || c.UpdatedAt.Before(since) }), f.ask("comments")
}

func (f *memForge) CommentsSince(_ context.Context, since time.Time) ([]forge.Comment, error) {
	if f.deaf != nil {
		return nil, f.deaf
	}
	list := slices.DeleteFunc(slices.Clone(f.comments), func(c forge.Comment) bool { return c.UpdatedAt.Before(since) })
	return list[:min(len(list), 1000)], f.ask("comments since")
}

func (f *memForge) Permission(_ context.Context, user string) (forge.Level, error) {
	if f.unknown[user] {
		return forge.None, &forgehttp.Error{Status: http.StatusInternalServerError, Fault: forgehttp.FaultBusy, Message: "away"}
	}
	if f.forbidden != nil {
		return forge.None, f.forbidden
	}
	return f.levels[user], f.ask("permission")
}

func (f *memForge) Edits(_ context.Context, c forge.Comment) (forge.Edits, error) {
	if e, ok := f.edits[c.ID]; ok {
		return e, f.ask("edits")
	}
	if c.UpdatedAt.Equal(c.CreatedAt) {
		return forge.Unedited, f.ask("edits")
	}
	return forge.Edited, f.ask("edits")
}

func (f *memForge) React(_ context.Context, _, comment int64, r forge.Reaction) error {
	f.reacted = append(f.reacted, fmt.Sprintf("%d %s", comment, r))
	return nil
}

func (f *memForge) CreateComment(_ context.Context, _ int64, body string) (forge.Comment, error) {
	f.replies = append(f.replies, body)
	return forge.Comment{Body: body}, nil
}

// edit changes the text of a comment, as anybody may who may write to the repository.
func (f *memForge) edit(id int64, body string) {
	f.comments[id-1].Body, f.comments[id-1].UpdatedAt = body, f.now()
}

func (f *memForge) Self(context.Context) (string, error) { return "weir-bot", nil }

// say adds a comment of a user.
func (f *memForge) say(number int64, user, body string) int64 {
	id := int64(len(f.comments) + 1)
	f.comments = append(f.comments, forge.Comment{ID: id, Number: number, Author: user, Body: body, CreatedAt: f.now(), UpdatedAt: f.now()})
	return id
}

// memDisplay keeps what was told.
type memDisplay struct {
	begun []string
	shown []report.Pull
	// delivered are last words, owes says that the forge has not got the newest.
	delivered []report.Pull
	owes      bool
	// edited are weir's comments that somebody else edited, again counts how often they are to
	// be written anew.
	edited map[int64]bool
	again  int
}

func (m *memDisplay) Begin(_ string, number int64, sha string) {
	m.begun = append(m.begun, fmt.Sprintf("%d %s", number, sha))
}

func (m *memDisplay) Show(p report.Pull) { m.shown = append(m.shown, p) }

func (m *memDisplay) Deliver(p report.Pull) { m.delivered = append(m.delivered, p) }

func (m *memDisplay) Owes(string, int64) bool { return m.owes }

func (m *memDisplay) Again(string, int64) { m.again++ }

func (m *memDisplay) Written(_ string, c forge.Comment, _ bool) (intact, edited bool) {
	return !m.edited[c.ID] && c.Author == "weir-bot", m.edited[c.ID]
}

func (m *memDisplay) last() report.Pull {
	if len(m.shown) == 0 {
		return report.Pull{}
	}
	return m.shown[len(m.shown)-1]
}
