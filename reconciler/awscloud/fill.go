package awscloud

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// updatesKept bounds the memory of ended nodegroup updates.
const updatesKept = 1000

// Fill reads what planning found missing and returns a state that has it. The
// state it is given is not changed. What was asked for by name and does not exist
// is in the new state's Absent.
func (c *Cloud) Fill(ctx context.Context, s observed.State, n observed.Needs) (observed.State, error) {
	s = cloneFor(s, n)
	if err := c.fillTemplates(ctx, &s, n.TemplateNames); err != nil {
		return observed.State{}, err
	}
	if err := c.fillGroups(ctx, &s, n.GroupNames); err != nil {
		return observed.State{}, err
	}
	if err := c.fillNodegroups(ctx, &s, n.Nodegroups); err != nil {
		return observed.State{}, err
	}
	if err := c.fillVersions(ctx, &s, n.Versions); err != nil {
		return observed.State{}, err
	}
	if err := c.fillRefreshes(ctx, &s, n.Refreshes, n.Polls); err != nil {
		return observed.State{}, err
	}
	c.fillActivities(ctx, &s, n.Activities)
	if err := c.fillShort(ctx, &s, n.Short); err != nil {
		return observed.State{}, err
	}
	if err := c.fillHooks(ctx, &s, n.Hooks); err != nil {
		return observed.State{}, err
	}
	if err := c.fillUpdates(ctx, &s, n.Updates); err != nil {
		return observed.State{}, err
	}
	if err := c.fillNumbers(ctx, &s, n.Numbers); err != nil {
		return observed.State{}, err
	}
	if len(n.VersionUsers) > 0 {
		if err := c.fillVersionUsers(ctx, &s, n.VersionUsers); err != nil {
			return observed.State{}, err
		}
	}
	if len(n.Launched) > 0 {
		if err := c.fillLaunched(ctx, &s, n.Launched); err != nil {
			return observed.State{}, err
		}
	}
	if n.TemplateUsers {
		if err := c.fillTemplateUsers(ctx, &s); err != nil {
			return observed.State{}, err
		}
	}
	return s, nil
}

// cloneFor copies those maps of a state that n will have written to.
func cloneFor(s observed.State, n observed.Needs) observed.State {
	if len(n.TemplateNames)+len(n.Versions)+len(n.Numbers) > 0 {
		s.Templates, s.Absent.Templates = cloned(s.Templates), cloned(s.Absent.Templates)
	}
	if len(n.GroupNames) > 0 {
		s.Groups, s.Absent.Groups = cloned(s.Groups), cloned(s.Absent.Groups)
	}
	if len(n.Nodegroups) > 0 {
		s.Nodegroups, s.Absent.Nodegroups = cloned(s.Nodegroups), cloned(s.Absent.Nodegroups)
	}
	if len(n.Refreshes)+len(n.Polls) > 0 {
		s.Refreshes = cloned(s.Refreshes)
	}
	if len(n.Activities) > 0 {
		s.Activities = cloned(s.Activities)
	}
	if len(n.Hooks) > 0 {
		s.Hooks = cloned(s.Hooks)
	}
	if len(n.Updates) > 0 {
		s.Updates = cloned(s.Updates)
	}
	return s
}

func cloned[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	return maps.Clone(m)
}

// fillTemplates reads templates by name. It filters rather than names them: a
// filter passes over a missing name, where a name would fail the whole call.
func (c *Cloud) fillTemplates(ctx context.Context, s *observed.State, names []string) error {
	found := map[string]observed.Template{}
	for batch := range slices.Chunk(names, filterValues) {
		err := c.templatePages(ctx, &ec2.DescribeLaunchTemplatesInput{
			MaxResults: aws.Int32(templatesPage),
			Filters:    []ec2types.Filter{{Name: aws.String("launch-template-name"), Values: batch}},
		}, found)
		if err != nil {
			return err
		}
	}
	c.versions.fill(found, c.now())
	for _, n := range names {
		if t, ok := found[n]; ok {
			s.Templates[n] = t
		} else {
			s.Absent.Templates[n] = true
		}
	}
	return nil
}

// fillGroups reads groups by name; Auto Scaling leaves missing ones out.
func (c *Cloud) fillGroups(ctx context.Context, s *observed.State, names []string) error {
	found := map[string]observed.Group{}
	for batch := range slices.Chunk(names, groupsPage) {
		in := &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: batch, MaxRecords: aws.Int32(groupsPage)}
		if err := c.groupPages(ctx, in, found); err != nil {
			return err
		}
	}
	for _, n := range names {
		if g, ok := found[n]; ok {
			s.Groups[n] = g
		} else {
			s.Absent.Groups[n] = true
		}
	}
	return nil
}

// fillNodegroups reads nodegroups by name. In a cluster that was listed a
// missing one is known to be absent without a call.
func (c *Cloud) fillNodegroups(ctx context.Context, s *observed.State, names []observed.NodegroupName) error {
	var unknown []observed.NodegroupName
	for _, n := range names {
		_, listed := s.Clusters[n.Cluster]
		if _, remembered := s.Nodegroups[n]; listed && !remembered {
			s.Absent.Nodegroups[n] = true
		} else {
			unknown = append(unknown, n)
		}
	}
	found, err := c.describeNodegroups(ctx, unknown, s)
	if err != nil {
		return err
	}
	for name, n := range found {
		if n == nil {
			s.Absent.Nodegroups[name] = true
			delete(s.Nodegroups, name)
			continue
		}
		s.Nodegroups[name] = *n
		c.remember(*n, s)
	}
	return nil
}

// fillTemplateUsers reads all groups of the account and region, whoever owns
// them, for the templates that they launch from.
func (c *Cloud) fillTemplateUsers(ctx context.Context, s *observed.State) error {
	found := map[string]observed.Group{}
	in := &autoscaling.DescribeAutoScalingGroupsInput{MaxRecords: aws.Int32(groupsPage)}
	if err := c.groupPages(ctx, in, found); err != nil {
		return err
	}
	users := map[string][]string{}
	for _, g := range found {
		refs := map[string]bool{g.Template.ID: true, g.Template.Name: true}
		for _, i := range g.Instances {
			refs[i.Template.ID], refs[i.Template.Name] = true, true
		}
		for ref := range refs {
			if ref != "" {
				users[ref] = append(users[ref], g.Name)
			}
		}
	}
	s.TemplateUsers = users
	return nil
}

// fillUpdates reads the newest update of each nodegroup.
func (c *Cloud) fillUpdates(ctx context.Context, s *observed.State, names []observed.NodegroupName) error {
	return each(ctx, names, noting(&s.Unread.Updates, c.newestUpdate, func(name observed.NodegroupName, u observed.NodegroupUpdate) { s.Updates[name] = u }))
}

// newestUpdate finds the newest update of a nodegroup, zero where there is none.
// EKS lists ids in no promised order, so each is described once; what has ended
// stays as it is and is remembered.
func (c *Cloud) newestUpdate(ctx context.Context, name observed.NodegroupName) (observed.NodegroupUpdate, error) {
	var newest observed.NodegroupUpdate
	in := &eks.ListUpdatesInput{Name: aws.String(name.Cluster), NodegroupName: aws.String(name.Name), MaxResults: aws.Int32(100)}
	n := 0
	err := eachPage(ctx, "eks", "ListUpdates", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		out, err := c.eks.ListUpdates(ctx, in)
		if err != nil {
			return nil, err
		}
		if n += len(out.UpdateIds); tooMany(n) != nil {
			return nil, tooMany(n)
		}
		for _, id := range out.UpdateIds {
			u, err := c.update(ctx, name, id)
			if err != nil {
				return nil, err
			}
			if u.CreatedAt.After(newest.CreatedAt) || newest.ID == "" {
				newest = u
			}
		}
		return out.NextToken, nil
	})
	if e := classify("eks", "ListUpdates", err); e != nil {
		if e.Kind == observed.NotFound {
			return observed.NodegroupUpdate{}, nil
		}
		return observed.NodegroupUpdate{}, e
	}
	return newest, nil
}

// updateOf is a nodegroup's update by its id.
type updateOf struct {
	observed.NodegroupName
	id string
}

func (c *Cloud) update(ctx context.Context, name observed.NodegroupName, id string) (observed.NodegroupUpdate, error) {
	c.mu.Lock()
	known, ok := c.updates[updateOf{name, id}]
	c.mu.Unlock()
	if ok {
		return known, nil
	}
	out, err := c.eks.DescribeUpdate(ctx, &eks.DescribeUpdateInput{
		Name: aws.String(name.Cluster), NodegroupName: aws.String(name.Name), UpdateId: aws.String(id),
	})
	if e := classify("eks", "DescribeUpdate", err); e != nil {
		if e.Kind == observed.NotFound {
			return observed.NodegroupUpdate{ID: id}, nil // too old to be told about
		}
		return observed.NodegroupUpdate{}, e
	}
	u := nodegroupUpdate(out.Update)
	if u.Status != "InProgress" {
		c.mu.Lock()
		if len(c.updates) >= updatesKept {
			clear(c.updates)
		}
		c.updates[updateOf{name, id}] = u
		c.mu.Unlock()
	}
	return u, nil
}
