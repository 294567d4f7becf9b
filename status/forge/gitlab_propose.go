package forge

import (
	"context"
	"slices"

	gitlab "gitlab.com/gitlab-org/api/client-go"
)

// PullOf lists the merge requests of a branch, the newest first. A fork's branch may have the same name.
func (g *gitLab) PullOf(ctx context.Context, base, head string) (p PullRequest, found bool, err error) {
	o := &gitlab.ListProjectMergeRequestsOptions{ListOptions: g.page(1), State: gitlab.Ptr("all"), SourceBranch: &head, TargetBranch: &base, OrderBy: gitlab.Ptr("created_at"), Sort: gitlab.Ptr("desc")}
	list, _, err := g.listBy(ctx, o, "")
	i := slices.IndexFunc(list, func(p PullRequest) bool { return !p.Fork && p.HeadRef == head && p.BaseRef == base })
	if err != nil || i < 0 {
		return p, false, err
	}
	return list[i], true, nil
}

// OpenPull implements Client. The branch is deleted after the merge.
func (g *gitLab) OpenPull(ctx context.Context, p Proposal) (out PullRequest, err error) {
	err = g.write(ctx, need{does: "open merge requests", grant: gitlabPropose, thing: "the branch " + p.Head}, func(ctx context.Context) error {
		in, _, err := g.client.MergeRequests.CreateMergeRequest(g.project, &gitlab.CreateMergeRequestOptions{
			Title: &p.Title, Description: &p.Body, SourceBranch: &p.Head, TargetBranch: &p.Base, RemoveSourceBranch: gitlab.Ptr(true),
		}, with(ctx))
		if err == nil {
			out = g.pull(in)
		}
		return err
	})
	return out, err
}

// EditPull implements Client.
func (g *gitLab) EditPull(ctx context.Context, number int64, title, body string) error {
	return g.write(ctx, g.aboutPull("edit merge requests", gitlabPropose, number), func(ctx context.Context) error {
		in := &gitlab.UpdateMergeRequestOptions{Description: &body}
		if title != "" {
			in.Title = &title
		}
		_, _, err := g.client.MergeRequests.UpdateMergeRequest(g.project, number, in, with(ctx))
		return err
	})
}

// ClosePull implements Client.
func (g *gitLab) ClosePull(ctx context.Context, number int64) error {
	return g.write(ctx, g.aboutPull("close merge requests", gitlabPropose, number), func(ctx context.Context) error {
		_, _, err := g.client.MergeRequests.UpdateMergeRequest(g.project, number, &gitlab.UpdateMergeRequestOptions{StateEvent: gitlab.Ptr("close")}, with(ctx))
		return err
	})
}
