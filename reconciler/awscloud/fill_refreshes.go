package awscloud

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// fillRefreshes reads the newest instance refresh of each group: AWS lists them
// newest first, of one group in a call. A group that was read before its refresh
// ended looks as if that had never been: it is read again, or the refresh would be
// started twice.
func (c *Cloud) fillRefreshes(ctx context.Context, s *observed.State, groups, polls []string) error {
	polls = slices.DeleteFunc(slices.Clone(polls), func(name string) bool { return slices.Contains(groups, name) })
	slices.SortStableFunc(polls, func(a, b string) int { return s.Refreshes[a].ReadAt.Compare(s.Refreshes[b].ReadAt) })
	if len(polls) > 0 && c.now().Sub(s.Refreshes[polls[0]].ReadAt) >= pollLate {
		groups, polls = append(slices.Clone(groups), polls[0]), polls[1:]
	}
	if err := c.newestRefreshes(ctx, s, groups); err != nil {
		return err
	}
	polled, err := c.pollRefreshes(ctx, s, polls)
	if err != nil {
		return err
	}
	var late []string
	for _, name := range append(polled, groups...) {
		g, known := s.Groups[name]
		if r := s.Refreshes[name]; known && r.Status == "Successful" && r.Template != (observed.TemplateRef{}) && !sameTemplate(r.Template, g.Template) {
			late = append(late, name)
		}
	}
	if len(late) == 0 {
		return nil
	}
	s.Groups, s.Absent.Groups = cloned(s.Groups), cloned(s.Absent.Groups)
	for _, name := range late {
		delete(s.Groups, name)
	}
	return c.fillGroups(ctx, s, late)
}

func (c *Cloud) newestRefreshes(ctx context.Context, s *observed.State, groups []string) error {
	read := func(ctx context.Context, name string) (observed.Refresh, error) { return c.newestRefresh(ctx, name) }
	return each(ctx, groups, noting(&s.Unread.Refreshes, read, func(name string, r observed.Refresh) { s.Refreshes[name] = r }))
}

// pollRefreshes reads the refreshes of as many groups as there are calls to spare
// for, and says which.
func (c *Cloud) pollRefreshes(ctx context.Context, s *observed.State, groups []string) (polled []string, err error) {
	read := func(ctx context.Context, name string) (observed.Refresh, error) {
		return c.newestRefresh(ctx, name, once)
	}
	err = poll(ctx, c, "autoscaling", "DescribeInstanceRefreshes", groups, noting(&s.Unread.Refreshes, read, func(name string, r observed.Refresh) {
		s.Refreshes[name] = r
		polled = append(polled, name)
	}))
	return polled, err
}

// once has a call tried once.
func once(o *autoscaling.Options) { o.RetryMaxAttempts = 1 }

// newestRefresh has no ID where the group never had a refresh or is gone.
// Assumed of AWS: refreshes-newest-first.
func (c *Cloud) newestRefresh(ctx context.Context, name string, options ...func(*autoscaling.Options)) (observed.Refresh, error) {
	out, err := c.autoscaling.DescribeInstanceRefreshes(ctx, &autoscaling.DescribeInstanceRefreshesInput{
		AutoScalingGroupName: aws.String(name), MaxRecords: aws.Int32(refreshesRead),
	}, options...)
	none := observed.Refresh{ReadAt: c.now()}
	if e := classify("autoscaling", "DescribeInstanceRefreshes", err); e != nil {
		if e.Kind == observed.NotFound {
			return none, nil
		}
		return observed.Refresh{}, e
	}
	if len(out.InstanceRefreshes) == 0 {
		return none, nil
	}
	r := refresh(out.InstanceRefreshes[0])
	r.ReadAt = none.ReadAt
	for _, earlier := range out.InstanceRefreshes[1:] {
		if c.clock().Sub(aws.ToTime(earlier.StartTime)) < observed.Lately {
			r.Earlier = append(r.Earlier, refresh(earlier))
		}
	}
	return r, nil
}

// refreshesRead is how many refreshes are read of a group: the newest, and before it so
// many that it shows where several weirs roll a group to and fro.
const refreshesRead = 10
