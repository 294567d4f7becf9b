package fill

import (
	"context"
	"slices"

	"github.com/weir-gitops/weir/reconciler/awscloud/read"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// fillRefreshes reads the newest instance refresh of each group. AWS lists the refreshes of one group per
// call, the newest first. If the group was read before its refresh ended, it looks as if the refresh never
// happened. Then the group is read again, because weir would otherwise start the refresh twice.
func (f *Filler) fillRefreshes(ctx context.Context, s *observed.State, groups, polls []string) error {
	polls = slices.DeleteFunc(slices.Clone(polls), func(name string) bool { return slices.Contains(groups, name) })
	slices.SortStableFunc(polls, func(a, b string) int { return s.Refreshes[a].ReadAt.Compare(s.Refreshes[b].ReadAt) })
	if len(polls) > 0 && f.client.Now().Sub(s.Refreshes[polls[0]].ReadAt) >= sdk.PollLate {
		groups, polls = append(slices.Clone(groups), polls[0]), polls[1:]
	}
	if err := read.Each(ctx, groups, read.Noting(&s.Unread.Refreshes, f.reader.Refresh, func(name string, r observed.Refresh) { s.Refreshes[name] = r })); err != nil {
		return err
	}
	polled, err := f.pollRefreshes(ctx, s, polls)
	if err != nil {
		return err
	}
	var late []string
	for _, name := range append(polled, groups...) {
		g, known := s.Groups[name]
		if r := s.Refreshes[name]; known && r.Status == "Successful" && r.Template != (observed.TemplateRef{}) && !read.SameTemplate(r.Template, g.Template) {
			late = append(late, name)
		}
	}
	if len(late) == 0 {
		return nil
	}
	s.Groups, s.Absent.Groups = read.Copied(s.Groups), read.Copied(s.Absent.Groups)
	for _, name := range late {
		delete(s.Groups, name)
	}
	return f.fillGroups(ctx, s, late)
}

// pollRefreshes reads the refreshes of as many groups as spare calls allow, and returns these groups.
func (f *Filler) pollRefreshes(ctx context.Context, s *observed.State, groups []string) (polled []string, err error) {
	err = sdk.PollSpare(ctx, f.client, "autoscaling", "DescribeInstanceRefreshes", groups, read.Noting(&s.Unread.Refreshes, f.reader.RefreshTriedOnce, func(name string, r observed.Refresh) {
		s.Refreshes[name] = r
		polled = append(polled, name)
	}))
	return polled, err
}
