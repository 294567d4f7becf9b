package read

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// The tags that EC2 puts on instances launched from a template.
const (
	tagTemplateID      = "aws:ec2launchtemplate:id"
	tagTemplateVersion = "aws:ec2launchtemplate:version"
)

// Launched reads the launch times of instances. It uses a filter: a filter ignores a missing instance, while
// a missing id would make the whole call fail.
func (r *Reader) Launched(ctx context.Context, ids []string, take func(id string, at time.Time)) error {
	for batch := range slices.Chunk(ids, filterValues) {
		err := r.instancePages(ctx, func(i types.Instance) { take(aws.ToString(i.InstanceId), aws.ToTime(i.LaunchTime)) }, filter("instance-id", batch...))
		if err != nil {
			return err
		}
	}
	return nil
}

// LaunchedFrom finds the live instances that were launched from templates, by the tags that EC2 gives them.
// This includes instances without a group.
func (r *Reader) LaunchedFrom(ctx context.Context, templates []string, take func(id string, from observed.TemplateRef)) error {
	for batch := range slices.Chunk(templates, filterValues-5) {
		err := r.instancePages(ctx, func(i types.Instance) {
			tags := Tags(i.Tags)
			take(aws.ToString(i.InstanceId), observed.TemplateRef{ID: tags[tagTemplateID], Version: tags[tagTemplateVersion]})
		}, filter("tag:"+tagTemplateID, batch...), filter("instance-state-name", "pending", "running", "shutting-down", "stopping", "stopped"))
		if err != nil {
			return err
		}
	}
	return nil
}

// instancePages calls take for each instance that matches the filters.
func (r *Reader) instancePages(ctx context.Context, take func(types.Instance), filters ...types.Filter) error {
	in := &ec2.DescribeInstancesInput{MaxResults: aws.Int32(instancesPage), Filters: filters}
	return sdk.EachPage(ctx, "ec2", "DescribeInstances", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		out, err := r.EC2.DescribeInstances(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, reservation := range out.Reservations {
			for _, i := range reservation.Instances {
				take(i)
			}
		}
		return out.NextToken, nil
	})
}

// tagGroup is the tag that Auto Scaling puts on the instances of a group.
const tagGroup = "aws:autoscaling:groupName"

// Machines reads the instances with an id, or with a prefix of an id. It returns none if no instance matches.
func (r *Reader) Machines(ctx context.Context, id string, whole bool) (out []observed.Machine, err error) {
	if !whole {
		id += "*"
	}
	err = r.instancePages(ctx, func(i types.Instance) { out = append(out, machine(&i)) }, filter("instance-id", id))
	if e := sdk.Classify("ec2", "DescribeInstances", err); e != nil {
		return nil, e
	}
	slices.SortFunc(out, func(a, b observed.Machine) int { return strings.Compare(a.ID, b.ID) })
	return out, nil
}

// MachinesOf reads instances by their ids. It leaves out missing instances.
func (r *Reader) MachinesOf(ctx context.Context, ids []string) (out []observed.Machine, err error) {
	for batch := range slices.Chunk(ids, filterValues) {
		err = r.instancePages(ctx, func(i types.Instance) { out = append(out, machine(&i)) }, filter("instance-id", batch...))
		if e := sdk.Classify("ec2", "DescribeInstances", err); e != nil {
			return nil, e
		}
	}
	return out, nil
}

// machine converts an instance of EC2.
func machine(i *types.Instance) observed.Machine {
	tags := Tags(i.Tags)
	out := observed.Machine{
		ID: aws.ToString(i.InstanceId), Type: string(i.InstanceType), ImageID: aws.ToString(i.ImageId), PrivateIP: aws.ToString(i.PrivateIpAddress),
		PrivateDNS: aws.ToString(i.PrivateDnsName), Market: cmp.Or(string(i.InstanceLifecycle), "on-demand"), LaunchedAt: aws.ToTime(i.LaunchTime),
		GroupName: tags[tagGroup], Template: observed.TemplateRef{ID: tags[tagTemplateID], Version: tags[tagTemplateVersion]},
	}
	if i.Placement != nil {
		out.Zone = aws.ToString(i.Placement.AvailabilityZone)
	}
	if i.State != nil {
		out.State = string(i.State.Name)
	}
	if i.StateReason != nil {
		out.StateReason = aws.ToString(i.StateReason.Message)
	}
	if out.StateReason == "" {
		out.StateReason = aws.ToString(i.StateTransitionReason)
	}
	return out
}
