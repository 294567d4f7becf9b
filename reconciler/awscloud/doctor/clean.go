package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// Clean deletes what earlier visits left: all of them, or one number. It returns what could
// not be deleted, with the reason.
func Clean(ctx context.Context, client *sdk.Client, o Options) []string {
	if o.Progress == nil {
		o.Progress = func(string) {}
	}
	if o.Wait == nil {
		o.Wait = wait
	}
	v := &visit{Options: o, client: client, calls: callsOf(client)}
	cleaner{v}.run(ctx, o.Number)
	return v.left
}

// cleaner deletes what visits made.
type cleaner struct{ *visit }

// run deletes what carries a visit's number, or that of any visit where it is empty. What
// has the tag and another name is not a visit's.
func (v cleaner) run(ctx context.Context, number string) {
	prefix := Prefix
	if number != "" {
		prefix += number + "-"
	}
	v.cleanNodegroups(ctx, prefix, number)
	v.cleanGroups(ctx, prefix, number)
	v.cleanTemplates(ctx, prefix, number)
}

// remains notes what could not be deleted.
func (v cleaner) remains(what, service, operation string, err error) {
	v.left = append(v.left, fmt.Sprintf("%s: %s", what, sdk.Classify(service, operation, err).Error()))
}

// marked reports whether a resource is of the visit that is cleaned.
func marked(name, prefix, tag, number string) bool {
	return strings.HasPrefix(name, prefix) && tag != "" && (number == "" || tag == number)
}

func (v cleaner) cleanGroups(ctx context.Context, prefix, number string) {
	filter := astypes.Filter{Name: aws.String("tag-key"), Values: []string{Tag}}
	if number != "" {
		filter = astypes.Filter{Name: aws.String("tag:" + Tag), Values: []string{number}}
	}
	find := func() (found []string, err error) {
		in := &autoscaling.DescribeAutoScalingGroupsInput{Filters: []astypes.Filter{filter}}
		err = sdk.EachPage(ctx, "autoscaling", "DescribeAutoScalingGroups", func(ctx context.Context, token *string) (*string, error) {
			in.NextToken = token
			out, err := v.calls.groups(ctx, in)
			if err != nil {
				return nil, err
			}
			for _, g := range out.AutoScalingGroups {
				for _, t := range g.Tags {
					if aws.ToString(t.Key) == Tag && marked(aws.ToString(g.AutoScalingGroupName), prefix, aws.ToString(t.Value), number) {
						found = append(found, aws.ToString(g.AutoScalingGroupName))
					}
				}
			}
			return out.NextToken, nil
		})
		return found, err
	}
	v.remove(ctx, "Auto Scaling groups", "autoscaling", "DescribeAutoScalingGroups", find, "DeleteAutoScalingGroup", func(name string) error {
		_, err := v.calls.deleteGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String(name), ForceDelete: aws.Bool(true)})
		return err
	})
}

func (v cleaner) cleanTemplates(ctx context.Context, prefix, number string) {
	filter := ec2types.Filter{Name: aws.String("tag-key"), Values: []string{Tag}}
	if number != "" {
		filter = ec2types.Filter{Name: aws.String("tag:" + Tag), Values: []string{number}}
	}
	find := func() (found []string, err error) {
		in := &ec2.DescribeLaunchTemplatesInput{Filters: []ec2types.Filter{filter}}
		err = sdk.EachPage(ctx, "ec2", "DescribeLaunchTemplates", func(ctx context.Context, token *string) (*string, error) {
			in.NextToken = token
			out, err := v.calls.templates(ctx, in)
			if err != nil {
				return nil, err
			}
			for _, t := range out.LaunchTemplates {
				for _, tag := range t.Tags {
					if aws.ToString(tag.Key) == Tag && marked(aws.ToString(t.LaunchTemplateName), prefix, aws.ToString(tag.Value), number) {
						found = append(found, aws.ToString(t.LaunchTemplateId))
					}
				}
			}
			return out.NextToken, nil
		})
		return found, err
	}
	v.remove(ctx, "launch templates", "ec2", "DescribeLaunchTemplates", find, "DeleteLaunchTemplate", func(id string) error {
		_, err := v.calls.deleteTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: aws.String(id)})
		return err
	})
}

// cleanNodegroups looks in the visit's cluster. Where all visits are cleaned and no
// cluster is named it looks in all of them.
func (v cleaner) cleanNodegroups(ctx context.Context, prefix, number string) {
	clusters := []string{v.Cluster}
	if v.Cluster == "" {
		if number != "" {
			return
		}
		out, err := v.calls.clusters(ctx, &eks.ListClustersInput{})
		if err != nil {
			v.remains("nodegroups could not be looked for", "eks", "ListClusters", err)
			return
		}
		clusters = out.Clusters
	}
	for _, cluster := range clusters {
		find := func() (found []string, err error) {
			in := &eks.ListNodegroupsInput{ClusterName: aws.String(cluster)}
			err = sdk.EachPage(ctx, "eks", "ListNodegroups", func(ctx context.Context, token *string) (*string, error) {
				in.NextToken = token
				out, err := v.calls.nodegroups(ctx, in)
				if err != nil {
					return nil, err
				}
				for _, name := range out.Nodegroups {
					if !strings.HasPrefix(name, prefix) {
						continue
					}
					n, err := v.calls.nodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: aws.String(cluster), NodegroupName: aws.String(name)})
					if e := sdk.Classify("eks", "DescribeNodegroup", err); e != nil && e.Kind != observed.NotFound {
						return nil, err
					}
					if err == nil && marked(name, prefix, n.Nodegroup.Tags[Tag], number) {
						found = append(found, name)
					}
				}
				return out.NextToken, nil
			})
			return found, err
		}
		v.remove(ctx, "nodegroups of cluster "+cluster, "eks", "ListNodegroups", find, "DeleteNodegroup", func(name string) error {
			_, err := v.calls.deleteNodegroup(ctx, &eks.DeleteNodegroupInput{ClusterName: aws.String(cluster), NodegroupName: aws.String(name)})
			return err
		})
	}
}

// remove deletes what find finds until it finds nothing, and notes what stays. A
// nodegroup in the middle of a change is refused at first.
func (v cleaner) remove(ctx context.Context, what, service, read string, find func() ([]string, error), write string, drop func(string) error) {
	last := map[string]error{}
	var found []string
	gone := v.until(ctx, nodegroupMoves, func() bool {
		var err error
		if found, err = find(); err != nil {
			last[""] = err
			return sdk.Classify(service, read, err).Kind == observed.Denied
		}
		delete(last, "")
		for _, name := range found {
			v.Progress("deleting of the " + what + ": " + name)
			if err := drop(name); err != nil && sdk.Classify(service, write, err).Kind != observed.NotFound {
				last[name] = err
			} else {
				delete(last, name)
			}
		}
		return len(found) == 0
	})
	if err := last[""]; err != nil {
		v.remains(what+" could not be looked for", service, read, err)
		return
	}
	if gone {
		return
	}
	for _, name := range found {
		if err := last[name]; err != nil {
			v.remains(what+": "+name, service, write, err)
		} else {
			v.left = append(v.left, fmt.Sprintf("%s: %s: its deletion had not ended after %s", what, name, nodegroupMoves.Round(time.Minute)))
		}
	}
}
