package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// lab reads GitLab's API, version 4. Its pull requests are merge requests, and
// their comments are notes.
// https://docs.gitlab.com/api/merge_requests/
// https://docs.gitlab.com/api/notes/
type lab struct {
	*rest
	name, project string
	size          int // of a page

	mu   sync.Mutex
	self string
	// moved is the list of those that changed since a time, notes what was read of each.
	moved onceTold[[]PullRequest]
	notes map[int64]labNotes
}

// labNotes are the notes of a merge request when it was changed last.
type labNotes struct {
	at   time.Time
	from time.Time
	list []Comment
}

const (
	labRead  = "the scope read_api or api, and its user the role Reporter or more in the project"
	labWrite = "the scope api, and its user the role Reporter or more in the project"
	labSize  = 100 // the most that GitLab gives
)

func newGitLab(base *url.URL, o ClientOptions) *lab {
	return &lab{
		rest: newRest(GitLab, base.JoinPath("api", "v4"), base, forgehttp.Bearer, o), name: o.Repository, size: labSize,
		project: "/projects/" + url.PathEscape(o.Repository), notes: map[int64]labNotes{},
	}
}

// Kind is GitLab.
func (l *lab) Kind() Kind { return GitLab }

// HeadRef is where GitLab keeps a merge request's head, forks included.
func (l *lab) HeadRef(number int64) string {
	return "refs/merge-requests/" + strconv.FormatInt(number, 10) + "/head"
}

type labUser struct {
	ID       int64  `json:"id"`
	Username string `json:"username"`
}

type labPull struct {
	IID           int64    `json:"iid"`
	Title         string   `json:"title"`
	State         string   `json:"state"`
	Draft         bool     `json:"draft"`
	WebURL        string   `json:"web_url"`
	Author        *labUser `json:"author"`
	Updated       string   `json:"updated_at"`
	Labels        []string `json:"labels"`
	SHA           string   `json:"sha"`
	SourceBranch  string   `json:"source_branch"`
	TargetBranch  string   `json:"target_branch"`
	SourceProject *int64   `json:"source_project_id"`
	TargetProject *int64   `json:"target_project_id"`
	MergeCommit   string   `json:"merge_commit_sha"`
	SquashCommit  string   `json:"squash_commit_sha"`
	DiffRefs      *struct {
		Start string `json:"start_sha"`
	} `json:"diff_refs"` // only where one is read
}

func (u *labUser) login() string {
	if u == nil {
		return ""
	}
	return u.Username
}

func (l *lab) pull(in labPull) PullRequest {
	out := PullRequest{
		Number: in.IID, Title: in.Title, Author: in.Author.login(), WebURL: in.WebURL, Draft: in.Draft, State: Open,
		Fork:    in.SourceProject == nil || in.TargetProject == nil || *in.SourceProject != *in.TargetProject,
		HeadSHA: in.SHA, HeadRef: in.SourceBranch, BaseRef: in.TargetBranch, Labels: in.Labels, UpdatedAt: moment(in.Updated),
	}
	if in.DiffRefs != nil {
		out.BaseSHA = in.DiffRefs.Start // base_sha is where the two parted
	}
	switch in.State {
	case "merged":
		out.State = Merged
		// A squashed commit that is merged is the merge commit's parent. Without
		// either the branch was moved forward to the head.
		for _, sha := range []string{in.MergeCommit, in.SquashCommit, in.SHA} {
			if sha != "" {
				out.MergeSHA = sha
				break
			}
		}
	case "closed":
		out.State = Closed
	default: // opened; locked, while it is merged
		out.MergeRef = strings.TrimSuffix(l.HeadRef(in.IID), "head") + "merge"
	}
	return out.bounded()
}

func (l *lab) of() string { return l.api + l.project }

func (l *lab) pageSize() int { return l.size }

func (l *lab) theProject(does, grant string) need {
	return need{does: does, grant: grant, thing: "the project " + l.name, hidden: true}
}

func (l *lab) thePull(does, grant string, number int64) need {
	return need{does: does, grant: grant, thing: fmt.Sprintf("merge request %d of %s", number, l.name)}
}

func (l *lab) list(ctx context.Context, state, query string, page int, etag string) ([]PullRequest, answer, error) {
	var in []labPull
	a, err := l.do(ctx, ask{
		method: http.MethodGet, etag: etag, need: l.theProject("list merge requests", labRead),
		path: fmt.Sprintf("%s/merge_requests?state=%s&order_by=updated_at&sort=desc%s&per_page=%d&page=%d", l.project, state, query, l.size, page),
	}, each(&in))
	var out []PullRequest
	for _, m := range in {
		out = append(out, l.pull(m))
	}
	return out, a, err
}

func (l *lab) pullPage(ctx context.Context, page int, etag string) ([]PullRequest, answer, error) {
	return l.list(ctx, "opened", "", page, etag)
}

// Pulls lists the open merge requests.
func (l *lab) Pulls(ctx context.Context, after Cursor) ([]PullRequest, Cursor, bool, error) {
	return listPulls(ctx, l, after)
}

// Pull reads one.
func (l *lab) Pull(ctx context.Context, number int64) (PullRequest, error) {
	var in labPull
	_, err := l.do(ctx, ask{
		method: http.MethodGet, path: fmt.Sprintf("%s/merge_requests/%d", l.project, number), need: l.thePull("read merge requests", labRead, number),
	}, into(&in))
	if err != nil {
		return PullRequest{}, err
	}
	return l.pull(in), nil
}

// MergedSince lists what was merged.
func (l *lab) MergedSince(ctx context.Context, from time.Time) ([]PullRequest, bool, error) {
	return mergedSince(l.size, from, func(page int) ([]PullRequest, answer, error) {
		return l.list(ctx, "merged", "&updated_after="+url.QueryEscape(from.UTC().Truncate(time.Second).Format(time.RFC3339)), page, "")
	})
}

// Permission is a user's role in the project, inherited ones and those by invited
// groups included.
// https://docs.gitlab.com/api/members/#get-a-member-of-a-group-or-project-including-inherited-and-invited-members
func (l *lab) Permission(ctx context.Context, user string) (Level, error) {
	if !plausible(user) {
		return None, nil
	}
	need := need{does: "ask what a user may do", grant: labRead, thing: "the user " + user}
	var users []labUser
	_, err := l.do(ctx, ask{method: http.MethodGet, path: "/users?username=" + url.QueryEscape(user), need: need}, each(&users))
	if err != nil {
		return None, err
	}
	for _, u := range users {
		if !strings.EqualFold(u.Username, user) || u.ID == 0 {
			continue
		}
		var in struct {
			Level int    `json:"access_level"`
			State string `json:"state"`
		}
		_, err := l.do(ctx, ask{method: http.MethodGet, path: fmt.Sprintf("%s/members/all/%d", l.project, u.ID), need: need}, into(&in))
		var refusal *forgehttp.Error
		switch {
		case errors.As(err, &refusal) && refusal.Status == http.StatusNotFound:
			return None, nil
		case err != nil:
			return None, err
		case in.State != "" && in.State != "active":
			return None, nil // blocked, or awaiting somebody's consent
		}
		return levelOf(in.Level), nil
	}
	return None, nil
}

// levelOf is ours for GitLab's number.
// https://docs.gitlab.com/api/access_requests/#valid-access-levels
func levelOf(n int) Level {
	switch {
	case n >= 50: // Owner
		return Admin
	case n >= 40: // Maintainer
		return Maintain
	case n >= 30: // Developer
		return Write
	case n >= 20: // Reporter
		return Triage
	case n >= 10: // Guest, Planner
		return Read
	default:
		return None
	}
}

// labEmoji are GitLab's names.
var labEmoji = map[Reaction]string{Eyes: "eyes", Done: "thumbsup", Refused: "thumbsdown"}

// React marks a note.
func (l *lab) React(ctx context.Context, number, comment int64, r Reaction) error {
	name, ok := labEmoji[r]
	if !ok {
		return nil
	}
	_, err := l.do(ctx, ask{
		method: http.MethodPost, path: fmt.Sprintf("%s/merge_requests/%d/notes/%d/award_emoji?name=%s", l.project, number, comment, name),
		need: l.thePull("react to comments", labWrite, number),
	}, nil)
	var refusal *forgehttp.Error
	if errors.As(err, &refusal) && strings.Contains(refusal.Message, "has already been taken") {
		return nil
	}
	return err
}

// Reply writes a note.
func (l *lab) Reply(ctx context.Context, number int64, body string) error {
	_, err := l.do(ctx, ask{
		method: http.MethodPost, path: fmt.Sprintf("%s/merge_requests/%d/notes", l.project, number), body: map[string]string{"body": body},
		need: l.thePull("write comments", labWrite, number),
	}, nil)
	return err
}

// Self is the token's user; project and group access tokens have one of their own.
func (l *lab) Self(ctx context.Context) (string, error) {
	l.mu.Lock()
	known := l.self
	l.mu.Unlock()
	if known != "" {
		return known, nil
	}
	var user labUser
	_, err := l.do(ctx, ask{method: http.MethodGet, path: "/user", need: need{does: "ask who it is", grant: "the scope api, read_api or read_user", thing: "the token's user"}}, into(&user))
	if err != nil {
		return "", err
	}
	if user.Username == "" {
		return "", &forgehttp.Error{Forge: string(GitLab), Fault: forgehttp.FaultDenied, Message: "the forge does not say whose token it is: it needs the scope api, read_api or read_user"}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.self = user.Username
	return user.Username, nil
}
