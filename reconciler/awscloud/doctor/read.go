package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/weir-gitops/weir/reconciler/awscloud/fill"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/launch"
)

// looked bounds the number of the account's resources that a check reads.
const looked = 20

// read runs the checks that change nothing.
func (v *visit) read(ctx context.Context) {
	for _, check := range []struct {
		what string
		run  func(context.Context)
	}{
		{"pages of a thousand", v.pages},
		{"templates by alias", v.aliases},
		{"groups, their refreshes and machines", v.existingGroups},
		{"launches that failed", v.failedLaunches},
		{"nodegroups", v.existingNodegroups},
		{"refusals", v.refusals},
		{"names of EKS's images", v.imageNames},
		{"names of quotas", v.quotaNames},
		{"full filters", v.fullFilters},
	} {
		if ctx.Err() != nil {
			return
		}
		v.Progress("reading: " + check.what)
		check.run(ctx)
	}
	v.wasRead = true
}

// pages requests the largest pages that weir ever requests.
func (v *visit) pages(ctx context.Context) {
	const most = 1000
	for _, ask := range []struct {
		operation string
		run       func() error
	}{
		{"DescribeImages", func() error {
			_, err := v.calls.images(ctx, &ec2.DescribeImagesInput{Owners: []string{"self"}, MaxResults: aws.Int32(most)})
			return err
		}},
		{"DescribeSubnets", func() error {
			_, err := v.calls.subnets(ctx, &ec2.DescribeSubnetsInput{MaxResults: aws.Int32(most)})
			return err
		}},
		{"DescribeSecurityGroups", func() error {
			_, err := v.calls.securityGroups(ctx, &ec2.DescribeSecurityGroupsInput{MaxResults: aws.Int32(most)})
			return err
		}},
		{"DescribeVpcs", func() error {
			_, err := v.calls.vpcs(ctx, &ec2.DescribeVpcsInput{MaxResults: aws.Int32(most)})
			return err
		}},
	} {
		e := sdk.Classify("ec2", ask.operation, ask.run())
		switch {
		case e == nil:
			v.notes.note("pages-of-a-thousand", AsAssumed, "%s takes MaxResults %d", ask.operation, most)
		case e.Kind == observed.Invalid:
			v.notes.note("pages-of-a-thousand", Differs, "%s", e.Error())
		default:
			v.notes.note("pages-of-a-thousand", NotSeen, "%s", e.Error())
		}
	}
}

// aliases requests the newest and the default versions of all templates with one call.
func (v *visit) aliases(ctx context.Context) {
	const name = "aliases-in-one-list"
	list, err := v.calls.templates(ctx, &ec2.DescribeLaunchTemplatesInput{})
	if v.notes.refused(name, "ec2", "DescribeLaunchTemplates", err) || len(list.LaunchTemplates) == 0 {
		return
	}
	rows := map[string][]int64{}
	in := &ec2.DescribeLaunchTemplateVersionsInput{Versions: []string{"$Latest", "$Default"}}
	for {
		out, err := v.calls.describeVersions(ctx, in)
		if e := sdk.Classify("ec2", "DescribeLaunchTemplateVersions", err); e != nil {
			v.notes.judge(name, e.Kind != observed.Invalid, "%s", e.Error())
			return
		}
		for _, r := range out.LaunchTemplateVersions {
			rows[aws.ToString(r.LaunchTemplateId)] = append(rows[aws.ToString(r.LaunchTemplateId)], aws.ToInt64(r.VersionNumber))
		}
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			break
		}
	}
	two, one := 0, 0
	for _, t := range list.LaunchTemplates {
		id, newest, usual := aws.ToString(t.LaunchTemplateId), aws.ToInt64(t.LatestVersionNumber), aws.ToInt64(t.DefaultVersionNumber)
		got := rows[id]
		if !slices.Contains(got, newest) || !slices.Contains(got, usual) || len(got) > 2 {
			v.notes.note(name, Differs, "template %s has newest version %d and default version %d, and the list has %v of it", id, newest, usual, got)
			return
		}
		if two++; len(got) == 1 {
			two, one = two-1, one+1
		}
	}
	v.notes.note(name, AsAssumed, "templates with two rows: %d, with one: %d", two, one)
}

// existingGroups checks the groups that the account has.
func (v *visit) existingGroups(ctx context.Context) {
	out, err := v.calls.groups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{MaxRecords: aws.Int32(100)})
	if v.notes.refused("refreshes-newest-first", "autoscaling", "DescribeAutoScalingGroups", err) {
		return
	}
	for i, g := range out.AutoScalingGroups {
		v.notes.retained(g)
		if i < looked {
			v.orderOfRefreshes(ctx, aws.ToString(g.AutoScalingGroupName))
		}
	}
}

// retained searches for machines that remain although they no longer belong to their group's capacity.
func (n *notes) retained(g astypes.AutoScalingGroup) {
	for _, m := range g.Instances {
		if state := string(m.LifecycleState); strings.Contains(state, "Retain") {
			n.judge("retained-states", observed.Instance{LifecycleState: state}.Retained(), "a machine is %s", state)
		}
	}
}

// orderOfRefreshes checks the order in which AWS returns a group's refreshes.
func (v *visit) orderOfRefreshes(ctx context.Context, group string) {
	const name = "refreshes-newest-first"
	out, err := v.calls.refreshes(ctx, &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: aws.String(group)})
	if v.notes.refused(name, "autoscaling", "DescribeInstanceRefreshes", err) {
		return
	}
	var starts []time.Time
	for _, r := range out.InstanceRefreshes {
		if r.StartTime != nil {
			starts = append(starts, *r.StartTime)
		}
	}
	if len(starts) > 1 {
		newestFirst := slices.IsSortedFunc(starts, func(a, b time.Time) int { return b.Compare(a) })
		v.notes.judge(name, newestFirst, "%d refreshes of a group, the first began %s and the last %s", len(starts), starts[0].UTC().Format(time.RFC3339), starts[len(starts)-1].UTC().Format(time.RFC3339))
	}
}

// failedLaunches checks the account's failed launches.
func (v *visit) failedLaunches(ctx context.Context) {
	out, err := v.calls.activities(ctx, &autoscaling.DescribeScalingActivitiesInput{MaxRecords: aws.Int32(100)})
	if v.notes.refused("launch-failure-texts", "autoscaling", "DescribeScalingActivities", err) {
		return
	}
	for _, a := range out.Activities {
		v.notes.failedLaunch(a)
	}
}

// failedLaunch judges the message of a failed launch.
func (n *notes) failedLaunch(a astypes.Activity) {
	said := aws.ToString(a.StatusMessage)
	failed := a.StatusCode == astypes.ScalingActivityStatusCodeFailed || a.StatusCode == astypes.ScalingActivityStatusCodeCancelled
	if !strings.HasPrefix(aws.ToString(a.Description), "Launching") || !failed || said == "" {
		return
	}
	_, unknown := observed.FindUnknownName(said)
	n.judge("launch-failure-texts", launch.Hint(said) != "" || unknown || fill.IsMissingVersion(said), "%s: %s", a.StatusCode, said)
}

// existingNodegroups searches for EKS's own lifecycle hook.
func (v *visit) existingNodegroups(ctx context.Context) {
	const name = "nodegroup-launch-hook"
	clusters, err := v.calls.clusters(ctx, &eks.ListClustersInput{})
	if v.notes.refused(name, "eks", "ListClusters", err) {
		return
	}
	seen := 0
	for _, cluster := range clusters.Clusters {
		list, err := v.calls.nodegroups(ctx, &eks.ListNodegroupsInput{ClusterName: aws.String(cluster)})
		if v.notes.refused(name, "eks", "ListNodegroups", err) {
			return
		}
		for _, n := range list.Nodegroups {
			if seen++; seen > looked {
				return
			}
			v.launchHook(ctx, cluster, n)
		}
	}
}

// launchHook checks the hooks of the groups behind a nodegroup.
func (v *visit) launchHook(ctx context.Context, cluster, nodegroup string) {
	const name = "nodegroup-launch-hook"
	out, err := v.calls.nodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: aws.String(cluster), NodegroupName: aws.String(nodegroup)})
	if v.notes.refused(name, "eks", "DescribeNodegroup", err) || out.Nodegroup == nil || out.Nodegroup.Resources == nil {
		return
	}
	for _, g := range out.Nodegroup.Resources.AutoScalingGroups {
		hooks, err := v.calls.hooks(ctx, &autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: g.Name})
		if v.notes.refused(name, "autoscaling", "DescribeLifecycleHooks", err) {
			return
		}
		var names []string
		for _, h := range hooks.LifecycleHooks {
			names = append(names, aws.ToString(h.LifecycleHookName))
		}
		v.notes.judge(name, slices.Contains(names, launch.EKSLaunchHook), "the group behind a nodegroup has the hooks %v", names)
	}
}

// refusals requests resources that do not exist.
func (v *visit) refusals(ctx context.Context) {
	missing := aws.String(Prefix + v.Number + "-missing")
	_, err := v.calls.refreshes(ctx, &autoscaling.DescribeInstanceRefreshesInput{AutoScalingGroupName: missing})
	v.notes.kind("autoscaling", "DescribeInstanceRefreshes", err, observed.NotFound)
	_, err = v.calls.nodegroups(ctx, &eks.ListNodegroupsInput{ClusterName: missing})
	v.notes.kind("eks", "ListNodegroups", err, observed.NotFound)
}

// kind judges whether weir classifies a refusal correctly.
func (n *notes) kind(service, operation string, err error, want observed.ErrorKind) {
	const name = "codes-told-apart-by-text"
	e := sdk.Classify(service, operation, err)
	switch {
	case e == nil:
		n.note(name, Differs, "%s is accepted, a refusal of the kind %s was expected", operation, want)
	case e.Code == "Unknown" || e.Code == "UnreadableAnswer": // not a refusal in AWS's format
		n.note(name, NotSeen, "%s", e.Error())
	case e.Kind == observed.Denied: // says nothing about other refusals
		n.note(name, NotSeen, "%s", e.Error())
	case e.Kind == observed.Transient || e.Kind == observed.Throttled:
		n.judge(name, e.Kind == want, "%s", e.Error())
	default:
		n.judge(name, e.Kind == want, "%s: %s: %s (taken for %s)", operation, e.Code, e.Message, e.Kind)
	}
}

// imageNames checks the names of the images that EKS recommends.
func (v *visit) imageNames(ctx context.Context) {
	const name = "eks-image-names"
	var names []string
	for minor := 30; minor < 40; minor++ { // one call accepts ten names
		names = append(names, fmt.Sprintf("/aws/service/eks/optimized-ami/1.%d/amazon-linux-2023/x86_64/standard/recommended/image_id", minor))
	}
	out, err := v.calls.parameters(ctx, &ssm.GetParametersInput{Names: names})
	if v.notes.refused(name, "ssm", "GetParameters", err) {
		return
	}
	var ids []string
	for _, p := range out.Parameters {
		ids = append(ids, aws.ToString(p.Value))
	}
	if len(ids) == 0 {
		return
	}
	images, err := v.calls.images(ctx, &ec2.DescribeImagesInput{Filters: []types.Filter{{Name: aws.String("image-id"), Values: ids}}})
	if v.notes.refused(name, "ec2", "DescribeImages", err) {
		return
	}
	for _, im := range images.Images {
		words := (&observed.Image{Name: aws.ToString(im.Name)}).Words()
		v.notes.judge(name, words != aws.ToString(im.Name), "%s", aws.ToString(im.Name))
	}
}

// times compares the dates in AWS's answers.
func (n *notes) times(clock *Clock) {
	const name = "answers-tell-the-time"
	if clock == nil {
		return
	}
	clock.mu.Lock()
	defer clock.mu.Unlock()
	var least, most time.Duration
	told := 0
	for i, c := range clock.calls {
		if c.Kind != "" {
			continue
		}
		if c.AWSTime.IsZero() {
			n.note(name, Differs, "the answer to %s:%s has no readable header Date", c.Service, c.Operation)
			return
		}
		ahead := c.AWSTime.Sub(clock.at[i])
		if told++; told == 1 {
			least, most = ahead, ahead
		}
		least, most = min(least, ahead), max(most, ahead)
	}
	if told > 0 {
		n.judge(name, most-least < 10*time.Second, "%d answers told a time between %s and %s from this machine's", told, least.Round(time.Second), most.Round(time.Second))
	}
}
