package forge

import (
	"context"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	gitlab "gitlab.com/gitlab-org/api/client-go"
	"golang.org/x/time/rate"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// gitLab is a client of GitLab. Its pull requests are merge requests, and their comments are notes.
// https://docs.gitlab.com/api/merge_requests/
// https://docs.gitlab.com/api/notes/
type gitLab struct {
	*caller
	client  *gitlab.Client
	links   Links
	project string
	ref     string // of statuses, "" if unknown
	size    int    // of a page

	// The caller's lock guards these fields. moved is the last list of changed merge requests. notes
	// contains the notes that were read of each merge request. commits contains the jobs of commits, and
	// order their hashes, the oldest first.
	moved   lastAnswer[[]PullRequest]
	notes   map[int64]gitlabNotes
	commits map[string]*gitlabCommit
	order   []string
}

// gitlabNotes are the notes of a merge request, as read after its last change.
type gitlabNotes struct {
	at   time.Time
	from time.Time
	list []Comment
}

const (
	gitlabRead    = "the scope read_api or api, and its user the role Reporter or more in the project"
	gitlabWrite   = "the scope api, and its user the role Reporter or more in the project"
	gitlabStatus  = "the scope api and the role Developer, or one that may push to the branch where it is protected"
	gitlabPropose = "the scope api, and its user the role Developer or more in the project"
	gitlabSelf    = "the scope api, read_api or read_user"
	// sweepTimeout is the timeout for reading the notes of all merge requests.
	sweepTimeout = 5 * time.Minute
)

// newGitLab returns the client of a project on a GitLab instance at base.
func newGitLab(p Profile, base *url.URL, o ClientOptions) (Client, error) {
	g := &gitLab{
		caller: newCaller(p, o, forgehttp.Options{Base: base, Scheme: forgehttp.Bearer}),
		links:  Links{base: strings.TrimSuffix(base.String(), "/") + "/" + o.Repository, paths: p.paths}, project: o.Repository, ref: o.Ref, size: 100, // the most that GitLab gives
		notes: map[int64]gitlabNotes{}, commits: map[string]*gitlabCommit{},
	}
	if len(g.ref) > gitlabText {
		g.ref = "" // GitLab then chooses a ref itself
	}
	// The library would repeat writes, and slow down based on the limits in the first response. Limits are
	// observed by the transport instead.
	var err error
	g.client, err = gitlab.NewAuthSourceClient(gitlab.Unauthenticated{}, gitlab.WithBaseURL(base.JoinPath("api", "v4").String()), gitlab.WithHTTPClient(g.http),
		gitlab.WithoutRetries(), gitlab.WithURLWarningLogger(slog.New(slog.DiscardHandler)), gitlab.WithCustomLimiter(rate.NewLimiter(rate.Inf, 0)))
	return g, err
}

// with passes a context to a call of the library.
func with(ctx context.Context) gitlab.RequestOptionFunc { return gitlab.WithContext(ctx) }

func (g *gitLab) page(n int) gitlab.ListOptions {
	return gitlab.ListOptions{Page: int64(n), PerPage: int64(g.size)}
}

func moment(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// pull converts a merge request of GitLab.
func (g *gitLab) pull(in *gitlab.MergeRequest) PullRequest {
	out := PullRequest{
		Number: in.IID, Title: in.Title, WebURL: in.WebURL, Draft: in.Draft, State: Open,
		Fork: in.SourceProjectID == 0 || in.SourceProjectID != in.TargetProjectID,
		// base_sha is the merge base of both branches.
		HeadSHA: in.SHA, HeadRef: in.SourceBranch, BaseRef: in.TargetBranch, BaseSHA: in.DiffRefs.StartSha, Labels: slices.Clone([]string(in.Labels)), UpdatedAt: moment(in.UpdatedAt),
	}
	if in.Author != nil { // otherwise the account was deleted
		out.Author = in.Author.Username
	}
	switch in.State {
	case "merged":
		out.State = Merged
		// A squashed commit that was merged is a parent of the merge commit. If neither exists, the branch
		// was fast-forwarded to the head.
		for _, sha := range []string{in.MergeCommitSHA, in.SquashCommitSHA, in.SHA} {
			if sha != "" {
				out.MergeSHA = sha
				break
			}
		}
	case "closed":
		out.State = Closed
	default: // opened, or locked during a merge
		out.MergeRef = g.profile.MergeRef(out.Number)
	}
	return out.bounded()
}

// list reads a page of merge requests. The library's own call ends the process if a list contains a null,
// and does not return the commit of the target branch.
func (g *gitLab) list(ctx context.Context, state string, since time.Time, page int, etag string) (list []PullRequest, a answer, err error) {
	o := &gitlab.ListProjectMergeRequestsOptions{ListOptions: g.page(page), State: &state, OrderBy: gitlab.Ptr("updated_at"), Sort: gitlab.Ptr("desc")}
	if !since.IsZero() {
		o.UpdatedAfter = gitlab.Ptr(since.UTC().Truncate(time.Second))
	}
	return g.listBy(ctx, o, etag)
}

// listBy returns the merge requests that match o. If the list still has the given ETag, it is empty and the
// answer has same.
func (g *gitLab) listBy(ctx context.Context, o *gitlab.ListProjectMergeRequestsOptions, etag string) (list []PullRequest, a answer, err error) {
	a, err = g.read(ctx, need{does: "list merge requests", grant: gitlabRead}, etag, func(ctx context.Context) error {
		req, err := g.client.NewRequest(http.MethodGet, "projects/"+gitlab.PathEscape(g.project)+"/merge_requests", o, []gitlab.RequestOptionFunc{with(ctx)})
		if err != nil {
			return err
		}
		var in []*gitlab.MergeRequest
		_, err = g.client.Do(req, &in)
		list = nil
		for _, m := range in {
			if m != nil {
				list = append(list, g.pull(m))
			}
		}
		return err
	})
	return list, a, err
}

func (g *gitLab) repositoryURL() string { return g.links.base }

func (g *gitLab) pageSize() int { return g.size }

func (g *gitLab) pullPage(ctx context.Context, page int, etag string) ([]PullRequest, answer, error) {
	return g.list(ctx, "opened", time.Time{}, page, etag)
}

// Pulls implements Client.
func (g *gitLab) Pulls(ctx context.Context, after Cursor) ([]PullRequest, Cursor, bool, error) {
	return listPulls(ctx, g, after)
}

// Pull implements Client.
func (g *gitLab) Pull(ctx context.Context, number int64) (out PullRequest, err error) {
	_, err = g.read(ctx, g.aboutPull("read merge requests", gitlabRead, number), "", func(ctx context.Context) error {
		in, _, err := g.client.MergeRequests.GetMergeRequest(g.project, number, nil, with(ctx))
		if err == nil {
			out = g.pull(in)
		}
		return err
	})
	return out, err
}

// MergedSince implements Client.
func (g *gitLab) MergedSince(ctx context.Context, from time.Time) ([]PullRequest, bool, error) {
	return mergedSince(g.size, from, func(page int) ([]PullRequest, answer, error) { return g.list(ctx, "merged", from, page, "") })
}

// Comments implements Client. GitLab cannot filter notes by time, so pages are read from the newest note
// on, as far as needed.
func (g *gitLab) Comments(ctx context.Context, number int64, from time.Time) ([]Comment, error) {
	o := &gitlab.ListMergeRequestNotesOptions{OrderBy: gitlab.Ptr("updated_at"), Sort: gitlab.Ptr("desc")}
	var out []Comment
	err := thereAndBack(g.size, func(page int, _ bool) (n int, a answer, err error) {
		o.ListOptions = g.page(page)
		var in []*gitlab.Note
		a, err = g.read(ctx, g.aboutPull("read comments", gitlabRead, number), "", func(ctx context.Context) (err error) {
			in, _, err = g.client.Notes.ListMergeRequestNotes(g.project, number, o, with(ctx))
			return err
		})
		for _, c := range in {
			switch {
			case c == nil:
			case moment(c.UpdatedAt).Before(from.Truncate(time.Second)):
				return 0, a, err // all further ones are older
			case !c.System: // system notes are written by GitLab itself
				out = append(out, g.comment(c, number))
			}
		}
		return len(in), a, err
	})
	if err != nil {
		return nil, err
	}
	return inOrder(out, from), nil
}

func (g *gitLab) comment(c *gitlab.Note, number int64) Comment {
	if c == nil {
		return Comment{Number: number}
	}
	return Comment{
		ID: c.ID, Number: number, Author: word(c.Author.Username), Body: c.Body,
		WebURL: g.links.Comment(number, c.ID), CreatedAt: moment(c.CreatedAt), UpdatedAt: moment(c.UpdatedAt),
	}
}

// movedSince lists the open merge requests that changed since a time. was is the previous result.
func (g *gitLab) movedSince(ctx context.Context, from time.Time, was lastAnswer[[]PullRequest]) (lastAnswer[[]PullRequest], error) {
	var since time.Time
	if !from.IsZero() {
		since = from.UTC().Truncate(time.Second).Add(-time.Second)
	}
	now := lastAnswer[[]PullRequest]{name: since.String()}
	if was.name != now.name {
		was.etag = ""
	}
	err := thereAndBack(g.size, func(page int, back bool) (int, answer, error) {
		etag := ""
		if page == 1 && !back {
			etag = was.etag
		}
		list, a, err := g.list(ctx, "opened", since, page, etag)
		if a.same {
			now = was
			return 0, a, nil
		}
		now.value = append(now.value, list...)
		if page == 1 && !a.more && !back {
			now.etag = a.etag // the ETag of the complete list
		}
		return len(list), a, err
	})
	return now, err
}

// CommentsSince lists the notes of merge requests that changed since a time; a new note is also such a
// change. Merge requests without changes are not read again.
func (g *gitLab) CommentsSince(ctx context.Context, from time.Time) ([]Comment, error) {
	g.mu.Lock()
	was, had := g.moved, g.notes
	g.mu.Unlock()
	now, err := g.movedSince(ctx, from, was)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, sweepTimeout)
	defer cancel()
	var out []Comment
	notes, kept := map[int64]gitlabNotes{}, 0
	for _, p := range now.value {
		if _, twice := notes[p.Number]; twice {
			continue
		}
		n, ok := had[p.Number]
		if !ok || !n.at.Equal(p.UpdatedAt) || n.from.After(from) {
			list, err := g.Comments(ctx, p.Number, from)
			if err != nil {
				return nil, err
			}
			for i := range list {
				list[i] = brief(list[i])
			}
			n = gitlabNotes{at: p.UpdatedAt, from: from, list: list}
		}
		out = append(out, n.list...)
		if len(out) > 2*maxItems {
			out = inOrder(out, from)
			out = slices.Clone(out[:min(len(out), maxItems)])
		}
		if kept += len(n.list); kept > 2*maxItems {
			n = gitlabNotes{} // read it again next time
		}
		notes[p.Number] = n
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.moved, g.notes = now, notes
	out = inOrder(out, from)
	return out[:min(len(out), maxItems)], nil
}

// Permission returns the level of a user's role in the project. It includes inherited roles, and roles of
// invited groups.
// https://docs.gitlab.com/api/members/#get-a-member-of-a-group-or-project-including-inherited-and-invited-members
func (g *gitLab) Permission(ctx context.Context, user string) (level Level, err error) {
	if !plausible(user) {
		return None, nil
	}
	_, err = g.read(ctx, aboutUser(user, gitlabRead), "", func(ctx context.Context) error {
		users, _, err := g.client.Users.ListUsers(&gitlab.ListUsersOptions{Username: &user}, with(ctx))
		i := slices.IndexFunc(users, func(u *gitlab.User) bool { return u != nil && u.ID != 0 && strings.EqualFold(u.Username, user) })
		if err != nil || i < 0 {
			return err
		}
		in, _, err := g.client.ProjectMembers.GetInheritedProjectMember(g.project, users[i].ID, with(ctx))
		if err == nil && (in.State == "" || in.State == "active") { // otherwise the user is blocked, or has not accepted yet
			level = levelOf(in.AccessLevel)
		}
		return err
	})
	if refused(err, http.StatusNotFound) != nil {
		return None, nil
	}
	return level, err
}

// levelOf converts GitLab's access level.
// https://docs.gitlab.com/api/access_requests/#valid-access-levels
func levelOf(n gitlab.AccessLevelValue) Level {
	switch {
	case n >= gitlab.OwnerPermissions:
		return Admin
	case n >= gitlab.MaintainerPermissions:
		return Maintain
	case n >= gitlab.DeveloperPermissions:
		return Write
	case n >= gitlab.ReporterPermissions:
		return Triage
	case n >= gitlab.GuestPermissions: // also Planner
		return Read
	default:
		return None
	}
}

// gitlabEmoji maps reactions to GitLab's names.
var gitlabEmoji = map[Reaction]string{Eyes: "eyes", Done: "thumbsup", Refused: "thumbsdown"}

// React implements Client.
func (g *gitLab) React(ctx context.Context, number, comment int64, r Reaction) error {
	name, ok := gitlabEmoji[r]
	if !ok {
		return nil
	}
	err := g.write(ctx, g.aboutPull("react to comments", gitlabWrite, number), func(ctx context.Context) error {
		_, _, err := g.client.AwardEmoji.CreateMergeRequestAwardEmojiOnNote(g.project, number, comment, &gitlab.CreateAwardEmojiOptions{Name: name}, with(ctx))
		return err
	})
	if err != nil && strings.Contains(err.Error(), "has already been taken") {
		return nil
	}
	return err
}

// CreateComment implements Client.
func (g *gitLab) CreateComment(ctx context.Context, number int64, body string) (out Comment, err error) {
	err = g.write(ctx, g.aboutPull("write comments on pull requests", gitlabWrite, number), func(ctx context.Context) error {
		note, _, err := g.client.Notes.CreateMergeRequestNote(g.project, number, &gitlab.CreateMergeRequestNoteOptions{Body: &body}, with(ctx))
		out = g.comment(note, number)
		return err
	})
	return out, commentRefusal(err)
}

// EditComment implements Client.
func (g *gitLab) EditComment(ctx context.Context, number, id int64, body string) (out Comment, err error) {
	err = g.write(ctx, g.aboutPull("write comments on pull requests", gitlabWrite, number), func(ctx context.Context) error {
		note, _, err := g.client.Notes.UpdateMergeRequestNote(g.project, number, id, &gitlab.UpdateMergeRequestNoteOptions{Body: &body}, with(ctx))
		out = g.comment(note, number)
		return err
	})
	return out, commentRefusal(err)
}

// DeleteComment implements Client.
func (g *gitLab) DeleteComment(ctx context.Context, number, id int64) error {
	return commentRefusal(g.write(ctx, g.aboutPull("write comments on pull requests", gitlabWrite, number), func(ctx context.Context) error {
		_, err := g.client.Notes.DeleteMergeRequestNote(g.project, number, id, with(ctx))
		return err
	}))
}

// Self returns the token's user. Project and group access tokens have their own users.
func (g *gitLab) Self(ctx context.Context) (string, error) {
	return g.whoAmI(ctx, gitlabSelf, func(ctx context.Context) (string, error) {
		user, _, err := g.client.Users.CurrentUser(with(ctx))
		if err != nil {
			return "", err
		}
		return user.Username, nil
	})
}
