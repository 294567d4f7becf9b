package forge

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"code.gitea.io/sdk/gitea"

	"github.com/weir-gitops/weir/status/forge/forgehttp"
)

// giteaForge is a client of Gitea or Forgejo, which have the same API here.
type giteaForge struct {
	*caller
	base        string
	owner, repo string
	size        int // of a page
	comments    allComments
}

const (
	giteaRead    = "the scopes read:repository and read:issue, and its user access to the repository"
	giteaWrite   = "the scope write:issue"
	giteaPropose = "the scopes write:repository and write:issue, and its user write access"
	giteaLevel   = "the scope read:repository, and its user must be an administrator of the repository: Gitea shows nobody else the permissions of users"
	giteaStatus  = "the scope write:repository, and its user write access"
)

func newGitea(p Profile, base *url.URL, o ClientOptions) (Client, error) {
	owner, name, _ := strings.Cut(o.Repository, "/")
	return &giteaForge{
		caller: newCaller(p, o, forgehttp.Options{Base: base, Scheme: forgehttp.Plain}),
		base:   base.String(), owner: owner, repo: name, size: 50, // the usual maximum of a server
	}, nil
}

// call creates an SDK client for one call, because the SDK keeps the context in the client. Its version is
// set to empty, so that it does not request the version from the server.
func (t *giteaForge) call(do func(*gitea.Client) error) func(context.Context) error {
	return func(ctx context.Context) error {
		c, err := gitea.NewClient(t.base, gitea.SetGiteaVersion(""), gitea.SetHTTPClient(t.http), gitea.SetContext(ctx))
		if err != nil {
			return err
		}
		return do(c)
	}
}

func (t *giteaForge) page(n int) gitea.ListOptions {
	return gitea.ListOptions{Page: n, PageSize: t.size}
}

func giteaLogin(u *gitea.User) string {
	if u == nil { // a deleted account
		return ""
	}
	return u.UserName
}

// pull converts a pull request of Gitea. If the response does not show where the head is from, it counts as
// a fork.
func (t *giteaForge) pull(in *gitea.PullRequest) PullRequest {
	out := PullRequest{Number: in.Index, Title: in.Title, Author: giteaLogin(in.Poster), WebURL: in.HTMLURL, Draft: in.Draft, State: Open, Fork: true}
	if in.Updated != nil {
		out.UpdatedAt = in.Updated.UTC()
	}
	if h := in.Head; h != nil {
		out.HeadSHA, out.HeadRef = h.Sha, h.Ref
		// Users with read permission can push to refs/for/… of Gitea. Such a pull request names the
		// repository itself as the head's repository, but no branch.
		// https://docs.gitea.com/usage/agit
		out.Fork = h.Repository == nil || in.Base == nil || in.Base.Repository == nil || h.Repository.ID != in.Base.Repository.ID ||
			h.Name == "" || strings.HasPrefix(h.Ref, "refs/")
	}
	if in.Base != nil {
		out.BaseRef, out.BaseSHA = in.Base.Ref, in.Base.Sha
	}
	for _, l := range in.Labels {
		if l != nil {
			out.Labels = append(out.Labels, l.Name)
		}
	}
	switch {
	case in.HasMerged || in.Merged != nil:
		out.State = Merged
		if in.MergedCommitID != nil {
			out.MergeSHA = *in.MergedCommitID
		}
	case in.State == gitea.StateClosed:
		out.State = Closed
	}
	return out.bounded()
}

func (t *giteaForge) list(ctx context.Context, state gitea.StateType, page int, etag string) (list []PullRequest, a answer, err error) {
	a, err = t.read(ctx, need{does: "list pull requests", grant: giteaRead}, etag, t.call(func(c *gitea.Client) error {
		list = nil
		in, _, err := c.ListRepoPullRequests(t.owner, t.repo, gitea.ListPullRequestsOptions{ListOptions: t.page(page), State: state, Sort: "recentupdate"})
		for _, p := range in {
			if p != nil {
				list = append(list, t.pull(p))
			}
		}
		return err
	}))
	return list, a, err
}

// Pulls implements Client.
func (t *giteaForge) Pulls(ctx context.Context, after Cursor) ([]PullRequest, Cursor, bool, error) {
	return listPulls(ctx, t, after)
}

func (t *giteaForge) repositoryURL() string {
	return t.base + "/api/v1/repos/" + t.owner + "/" + t.repo
}

func (t *giteaForge) pageSize() int { return t.size }

func (t *giteaForge) pullPage(ctx context.Context, page int, etag string) ([]PullRequest, answer, error) {
	list, a, err := t.list(ctx, gitea.StateOpen, page, etag)
	if page == 1 && refused(err, http.StatusNotFound) != nil {
		return nil, answer{}, t.withoutPulls(ctx, err)
	}
	return list, a, err
}

// withoutPulls explains why Gitea returns no list of pull requests. It answers 404 if they are disabled. It
// also does so before the first push, and for a moment after that: then withoutPulls returns nil, because
// the list is empty.
func (t *giteaForge) withoutPulls(ctx context.Context, err error) error {
	var repository *gitea.Repository
	_, asked := t.read(ctx, need{does: "read the repository", grant: giteaRead}, "", t.call(func(c *gitea.Client) (err error) {
		repository, _, err = c.GetRepo(t.owner, t.repo)
		return err
	}))
	switch {
	case asked != nil:
		return err
	case repository.Empty:
		return nil
	case !repository.HasPullRequests:
		return &forgehttp.Error{Forge: t.profile.Label, Fault: forgehttp.FaultDenied, Status: http.StatusNotFound,
			Message: "pull requests are turned off in the settings of " + t.owner + "/" + t.repo + ": turn them on there, or write pullRequests: {plan: never}"}
	default:
		return &forgehttp.Error{Forge: t.profile.Label, Fault: forgehttp.FaultMissing, Status: http.StatusNotFound,
			Message: "pull requests of " + t.owner + "/" + t.repo + " are not there yet, as for a moment after the first push"}
	}
}

// Pull implements Client.
func (t *giteaForge) Pull(ctx context.Context, number int64) (out PullRequest, err error) {
	_, err = t.read(ctx, t.aboutPull("read pull requests", giteaRead, number), "", t.call(func(c *gitea.Client) error {
		in, _, err := c.GetPullRequest(t.owner, t.repo, number)
		if err == nil {
			out = t.pull(in)
		}
		return err
	}))
	return out, err
}

// MergedSince reads all closed pull requests, because Gitea cannot list only the merged ones.
func (t *giteaForge) MergedSince(ctx context.Context, from time.Time) ([]PullRequest, bool, error) {
	return mergedSince(t.size, from, func(page int) ([]PullRequest, answer, error) { return t.list(ctx, gitea.StateClosed, page, "") })
}

// PullOf finds the pull request of two branches, with a request that Gitea has since 1.22. If several
// exist, Gitea returns the oldest. So the list, which has the newest first, is also read if one exists.
func (t *giteaForge) PullOf(ctx context.Context, base, head string) (p PullRequest, found bool, err error) {
	_, err = t.read(ctx, need{does: "read pull requests", grant: giteaRead, thing: "the pull request"}, "", t.call(func(c *gitea.Client) error {
		in, _, err := c.GetPullRequestByBaseHead(t.owner, t.repo, base, head)
		if err == nil {
			p, found = t.pull(in), true
		}
		return err
	}))
	if refused(err, http.StatusNotFound) != nil {
		return PullRequest{}, false, nil
	}
	if err != nil || !found {
		return p, found, err
	}
	oldest := p
	err = eachPage(t.size, func(page int) (n int, a answer, err error) {
		var list []*gitea.PullRequest
		a, err = t.read(ctx, need{does: "list pull requests", grant: giteaRead}, "", t.call(func(c *gitea.Client) (err error) {
			list, _, err = c.ListRepoPullRequests(t.owner, t.repo, gitea.ListPullRequestsOptions{ListOptions: t.page(page), State: gitea.StateAll})
			return err
		}))
		for _, one := range list {
			switch {
			case one == nil:
			case one.Index <= oldest.Number:
				return 0, a, err // all further ones are older
			case ofBranches(one, base, head):
				p = t.pull(one)
				return 0, a, err
			}
		}
		return len(list), a, err
	})
	return p, true, err
}

// ofBranches reports whether a pull request is between two branches of the repository itself. After the
// head's branch was deleted, only Name contains it.
func ofBranches(p *gitea.PullRequest, base, head string) bool {
	return p.Head != nil && p.Base != nil && p.Head.Name == head && p.Base.Ref == base &&
		p.Head.Repository != nil && p.Base.Repository != nil && p.Head.Repository.ID == p.Base.Repository.ID
}

// OpenPull implements Client.
func (t *giteaForge) OpenPull(ctx context.Context, p Proposal) (out PullRequest, err error) {
	err = t.write(ctx, need{does: "open pull requests", grant: giteaPropose, thing: "the branch " + p.Head}, t.call(func(c *gitea.Client) error {
		in, _, err := c.CreatePullRequest(t.owner, t.repo, gitea.CreatePullRequestOption{Title: p.Title, Body: p.Body, Head: p.Head, Base: p.Base})
		if err == nil {
			out = t.pull(in)
		}
		return err
	}))
	return out, err
}

// EditPull implements Client. Gitea keeps the title if none is sent.
func (t *giteaForge) EditPull(ctx context.Context, number int64, title, body string) error {
	return t.write(ctx, t.aboutPull("edit pull requests", giteaPropose, number), t.call(func(c *gitea.Client) error {
		_, _, err := c.EditPullRequest(t.owner, t.repo, number, gitea.EditPullRequestOption{Title: title, Body: &body})
		return err
	}))
}

// ClosePull implements Client.
func (t *giteaForge) ClosePull(ctx context.Context, number int64) error {
	return t.write(ctx, t.aboutPull("close pull requests", giteaPropose, number), t.call(func(c *gitea.Client) error {
		closed := gitea.StateClosed
		_, _, err := c.EditPullRequest(t.owner, t.repo, number, gitea.EditPullRequestOption{State: &closed})
		return err
	}))
}

// Permission returns the level of a user's role in the repository.
func (t *giteaForge) Permission(ctx context.Context, user string) (level Level, err error) {
	if !plausible(user) {
		return None, nil
	}
	_, err = t.read(ctx, aboutUser(user, giteaLevel), "", t.call(func(c *gitea.Client) error {
		in, _, err := c.CollaboratorPermission(t.owner, t.repo, user)
		if err == nil && in != nil {
			level = githubLevelOf(user, in.User == nil, giteaLogin(in.User), string(in.Permission))
		}
		return err
	}))
	if refused(err, http.StatusNotFound) != nil {
		return None, nil
	}
	return level, err
}

// Self returns the token's user.
func (t *giteaForge) Self(ctx context.Context) (string, error) {
	return t.whoAmI(ctx, "the scope read:user", func(ctx context.Context) (name string, err error) {
		err = t.call(func(c *gitea.Client) error {
			user, _, err := c.GetMyUserInfo()
			name = giteaLogin(user)
			return err
		})(ctx)
		return name, err
	})
}

var giteaStatuses = need{does: "write statuses", grant: giteaStatus}

// SetStatus implements Client.
func (t *giteaForge) SetStatus(ctx context.Context, sha string, s CommitStatus) error {
	return t.write(ctx, giteaStatuses, t.call(func(c *gitea.Client) error {
		_, _, err := c.CreateStatus(t.owner, t.repo, sha, gitea.CreateStatusOption{
			State: gitea.StatusState(s.State), TargetURL: s.TargetURL, Description: s.Description, Context: s.Context,
		})
		return err
	}))
}

// Statuses implements Client. Gitea sorts statuses by whole seconds, so the newest status of a context is
// the one with the highest ID.
func (t *giteaForge) Statuses(ctx context.Context, sha string) (map[string]CommitStatus, error) {
	out, newest := map[string]CommitStatus{}, map[string]int64{}
	err := eachPage(t.size, func(page int) (n int, a answer, err error) {
		var list []*gitea.Status
		a, err = t.once(ctx, giteaStatuses, "", t.call(func(c *gitea.Client) (err error) {
			list, _, err = c.ListStatuses(t.owner, t.repo, sha, gitea.ListStatusesOption{ListOptions: t.page(page)})
			return err
		}))
		for _, s := range list {
			if s != nil && s.ID >= newest[s.Context] {
				newest[s.Context] = s.ID
				out[s.Context] = CommitStatus{Context: s.Context, State: CommitState(s.State), Description: s.Description, TargetURL: s.TargetURL}
			}
		}
		return len(list), a, err
	})
	if e := refused(err, http.StatusNotFound); e != nil {
		// Gitea answers "not found" both for a commit that it does not have yet, and for a repository that
		// is invisible to the token.
		if t.write(ctx, giteaStatuses, t.call(func(c *gitea.Client) error { _, _, err := c.GetRepo(t.owner, t.repo); return err })) == nil {
			return nil, &forgehttp.Error{Forge: e.Forge, Fault: forgehttp.FaultMissing, Status: e.Status, Message: "the commit is not there yet", Err: e.Err}
		}
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}
