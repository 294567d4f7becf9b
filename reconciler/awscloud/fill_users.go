package awscloud

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"golang.org/x/sync/errgroup"
)

// Tags that EC2 puts on what it launches from a template.
const (
	tagTemplateID      = "aws:ec2launchtemplate:id"
	tagTemplateVersion = "aws:ec2launchtemplate:version"
)

// instancesPage is the largest page of DescribeInstances.
const instancesPage = 1000

// fillNumbers reads which versions templates have. What was read is remembered
// while the template's newest version stays the same.
func (c *Cloud) fillNumbers(ctx context.Context, s *observed.State, names []string) error {
	var unread []observed.Template
	for _, name := range names {
		t := s.Templates[name]
		if t.Numbers, t.Contents = c.versions.numbers(t.ID, t.LatestVersion); t.Numbers != nil {
			s.Templates[name] = t
		} else {
			unread = append(unread, t)
		}
	}
	var mu sync.Mutex
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, t := range unread {
		g.Go(func() error {
			contents, gone, err := c.versionContents(gctx, t.ID)
			mu.Lock()
			defer mu.Unlock()
			if e := refused(err); e != nil {
				s.Unread.VersionUsers = note(s.Unread.VersionUsers, t.Name, e)
				return nil
			}
			if err != nil {
				return err
			}
			if gone {
				delete(s.Templates, t.Name)
				s.Absent.Templates[t.Name] = true
				return nil
			}
			t.Numbers, t.Contents = c.versions.setNumbers(t.ID, t.LatestVersion, contents)
			s.Templates[t.Name] = t
			return nil
		})
	}
	return g.Wait()
}

// versionContents lists the versions of a template, with what each says of its
// content; never nil.
func (c *Cloud) versionContents(ctx context.Context, id string) (contents map[int64]string, gone bool, err error) {
	contents = map[int64]string{}
	in := &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: aws.String(id), MaxResults: aws.Int32(versionPage)}
	err = eachPage(ctx, "ec2", "DescribeLaunchTemplateVersions", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		out, err := c.ec2.DescribeLaunchTemplateVersions(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, v := range out.LaunchTemplateVersions {
			contents[aws.ToInt64(v.VersionNumber)] = content.Of(aws.ToString(v.VersionDescription))
		}
		return out.NextToken, nil
	})
	if e := classify("ec2", "DescribeLaunchTemplateVersions", err); e != nil {
		if e.Kind == observed.NotFound {
			return nil, true, nil
		}
		return nil, false, e
	}
	return contents, false, nil
}

// versionUsers collects who uses which version of some templates.
type versionUsers struct {
	mu    sync.Mutex
	names map[string]string // by template id and by name
	users map[string][]observed.VersionUser
}

func (u *versionUsers) add(id, name, version, user string) bool {
	template, ours := u.names[id]
	if id == "" {
		template, ours = u.names[name]
	}
	if !ours {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.users[template] = append(u.users[template], observed.VersionUser{User: user, Version: version})
	return true
}

func (u *versionUsers) addRef(r observed.TemplateRef, user string) bool {
	return u.add(r.ID, r.Name, r.Version, user)
}

// fillVersionUsers reads who in the account and region uses which version of
// templates, whoever owns them: all groups with their overrides and instances,
// the active refreshes of those that use one of the templates, all nodegroups of
// all clusters, and what else was launched from the templates and lives. Where one
// of these may not be read, all of it is unread: half of the users are not enough.
func (c *Cloud) fillVersionUsers(ctx context.Context, s *observed.State, names []string) error {
	u := &versionUsers{names: map[string]string{}, users: map[string][]observed.VersionUser{}}
	var ids []string
	for _, name := range names {
		id := s.Templates[name].ID
		ids = append(ids, id)
		u.names[id], u.names[name] = name, name
		u.users[name] = []observed.VersionUser{}
	}
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() error { return c.groupUsers(gctx, u) })
	g.Go(func() error { return c.instanceUsers(gctx, u, ids) })
	g.Go(func() error { return c.nodegroupUsers(gctx, s, u) })
	err := g.Wait()
	if e := refused(err); e != nil {
		for _, name := range names {
			s.Unread.VersionUsers = note(s.Unread.VersionUsers, name, e)
		}
		return nil
	}
	if err != nil {
		return err
	}
	if s.VersionUsers = maps.Clone(s.VersionUsers); s.VersionUsers == nil {
		s.VersionUsers = map[string][]observed.VersionUser{}
	}
	maps.Copy(s.VersionUsers, u.users)
	return nil
}

func (c *Cloud) groupUsers(ctx context.Context, u *versionUsers) error {
	in := &autoscaling.DescribeAutoScalingGroupsInput{MaxRecords: aws.Int32(groupsPage)}
	var concerned []string
	err := eachPage(ctx, "autoscaling", "DescribeAutoScalingGroups", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		out, err := c.autoscaling.DescribeAutoScalingGroups(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, g := range out.AutoScalingGroups {
			if groupUses(u, g) {
				concerned = append(concerned, aws.ToString(g.AutoScalingGroupName))
			}
		}
		return out.NextToken, nil
	})
	if err != nil {
		return err
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, name := range concerned {
		g.Go(func() error {
			r, err := c.newestRefresh(gctx, name)
			if err == nil && r.Active() {
				u.addRef(r.Template, "the instance refresh of "+name)
			}
			return err
		})
	}
	return g.Wait()
}

// groupUses notes the versions that a group is set to and its instances run.
func groupUses(u *versionUsers, g astypes.AutoScalingGroup) (any bool) {
	user := "the group " + aws.ToString(g.AutoScalingGroupName)
	note := func(s *astypes.LaunchTemplateSpecification) {
		if s != nil && u.addRef(templateRef(s), user) {
			any = true
		}
	}
	note(g.LaunchTemplate)
	if p := g.MixedInstancesPolicy; p != nil && p.LaunchTemplate != nil {
		note(p.LaunchTemplate.LaunchTemplateSpecification)
		for _, o := range p.LaunchTemplate.Overrides {
			note(o.LaunchTemplateSpecification)
		}
	}
	for _, i := range g.Instances {
		note(i.LaunchTemplate)
	}
	return any
}

// instanceUsers finds instances by the tags that EC2 gives them: also those that
// no group launched.
func (c *Cloud) instanceUsers(ctx context.Context, u *versionUsers, ids []string) error {
	for batch := range slices.Chunk(ids, filterValues-5) {
		in := &ec2.DescribeInstancesInput{MaxResults: aws.Int32(instancesPage), Filters: []types.Filter{
			filter("tag:"+tagTemplateID, batch...),
			filter("instance-state-name", "pending", "running", "shutting-down", "stopping", "stopped"),
		}}
		err := eachPage(ctx, "ec2", "DescribeInstances", func(ctx context.Context, token *string) (*string, error) {
			in.NextToken = token
			out, err := c.ec2.DescribeInstances(ctx, in)
			if err != nil {
				return nil, err
			}
			for _, r := range out.Reservations {
				for _, i := range r.Instances {
					tags := ec2Tags(i.Tags)
					u.add(tags[tagTemplateID], "", tags[tagTemplateVersion], "the instance "+aws.ToString(i.InstanceId))
				}
			}
			return out.NextToken, nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// nodegroupUsers looks at the nodegroups that were observed, and describes those
// of the clusters that no target names.
func (c *Cloud) nodegroupUsers(ctx context.Context, s *observed.State, u *versionUsers) error {
	for name, n := range s.Nodegroups {
		u.addRef(n.Template, "the nodegroup "+name.String())
	}
	var others []observed.NodegroupName
	in := &eks.ListClustersInput{MaxResults: aws.Int32(100)}
	n := 0
	err := eachPage(ctx, "eks", "ListClusters", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		out, err := c.eks.ListClusters(ctx, in)
		if err != nil {
			return nil, err
		}
		if n += len(out.Clusters); tooMany(n) != nil {
			return nil, tooMany(n)
		}
		for _, cluster := range out.Clusters {
			if _, observed := s.Clusters[cluster]; observed {
				continue
			}
			found, _, err := c.listNodegroups(ctx, cluster)
			if err != nil {
				return nil, err
			}
			others = append(others, found...)
		}
		return out.NextToken, nil
	})
	if err != nil {
		return err
	}
	var seen observed.State
	described, err := c.describeNodegroups(ctx, others, &seen)
	for name, n := range described {
		if n != nil {
			u.addRef(n.Template, "the nodegroup "+name.String())
		}
	}
	for _, denied := range seen.Unread.Nodegroups {
		return denied
	}
	return err
}

// deleteVersions reads both lists of the answer: EC2 answers 200 and tells for
// each version whether it is gone.
func (c *Cloud) deleteVersions(ctx context.Context, a step.DeleteLaunchTemplateVersions) error {
	id, name := templateSelector(a.Template)
	in := &ec2.DeleteLaunchTemplateVersionsInput{LaunchTemplateId: id, LaunchTemplateName: name}
	for _, n := range a.Versions {
		in.Versions = append(in.Versions, strconv.FormatInt(n, 10))
	}
	defer c.versions.forgetNumbers(a.Template.ID)
	out, err := c.ec2.DeleteLaunchTemplateVersions(ctx, in)
	if e := classify("ec2", "DeleteLaunchTemplateVersions", err); e != nil {
		if e.Kind == observed.NotFound {
			return nil
		}
		return e
	}
	var refused *observed.Error
	kept := 0
	for _, v := range out.UnsuccessfullyDeletedLaunchTemplateVersions {
		code, message := types.LaunchTemplateErrorCodeUnexpectedError, "AWS gives no reason"
		if v.ResponseError != nil {
			code, message = v.ResponseError.Code, aws.ToString(v.ResponseError.Message)
		}
		switch code {
		case types.LaunchTemplateErrorCodeLaunchTemplateVersionDoesNotExist, types.LaunchTemplateErrorCodeLaunchTemplateIdDoesNotExist,
			types.LaunchTemplateErrorCodeLaunchTemplateNameDoesNotExist:
			continue // gone is what was asked for
		}
		kept++
		if refused == nil {
			refused = &observed.Error{Kind: observed.Invalid, Service: "ec2", Operation: "DeleteLaunchTemplateVersions", Code: string(code),
				Message: "version " + strconv.FormatInt(aws.ToInt64(v.VersionNumber), 10) + " stays: " + message}
		}
	}
	if refused == nil {
		return nil
	}
	bounded(refused)
	if kept > 1 {
		refused.Message += " (and " + strconv.Itoa(kept-1) + " more of " + strconv.Itoa(len(a.Versions)) + ")"
	}
	return refused
}
