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
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// Clean deletes the remains of earlier visits: of the visit with o.Number, or of all. Without a number, it
// leaves resources that a running visit elsewhere may have made. It returns what it could not delete, with
// the reasons.
func Clean(ctx context.Context, client *sdk.Client, o Options) []string {
	o = o.withDefaults()
	v := &visit{Options: o, notes: notes{client: client}, calls: callsOf(client)}
	cleaner{v}.run(ctx)
	return v.left
}

const (
	// cleaning bounds the time for each kind of resource.
	cleaning = nodegroupMoves + time.Minute
	// visitLasts is longer than any visit.
	visitLasts = 3 * time.Hour
	// settling is the time after which a visit searches once more for its resources: a read may be older
	// than the creation, and a creation whose call was given up may still take effect.
	settling = 15 * time.Second
)

// cleaner deletes the resources of visits.
type cleaner struct{ *visit }

// thing is a resource that a visit made.
type thing struct {
	name, id string
	made     time.Time
}

// run deletes resources with the visit's number, or of any visit without a number. The group costs most, so
// it goes before the nodegroups, which take longest.
func (v cleaner) run(ctx context.Context) {
	for _, clean := range []func(context.Context){v.cleanGroups, v.cleanNodegroups, v.cleanTemplates} {
		one, cancel := context.WithTimeout(ctx, cleaning)
		clean(one)
		cancel()
	}
}

// remains notes a resource that could not be deleted.
func (v cleaner) remains(what, service, operation string, err error) {
	v.left = append(v.left, v.notes.format("%s: %s", what, sdk.Classify(service, operation, err).Error()))
}

// suffixes lists the endings of resource names.
var suffixes = []string{"template", "nodes", "group", "plain", "templated"}

// marked reports whether a resource belongs to the cleaned visits. A copy that somebody made of it has its
// tags, but another name.
func (v cleaner) marked(name string, tags map[string]string) bool {
	number := tags[Tag]
	return number != "" && (v.Number == "" || v.Number == number) && tags[observed.TagOwner] == Instance &&
		slices.ContainsFunc(suffixes, func(suffix string) bool { return name == Prefix+number+"-"+suffix })
}

// cleanGroups deletes the Auto Scaling groups that runs of the doctor left, of one run if Number is set.
func (v cleaner) cleanGroups(ctx context.Context) {
	filter := astypes.Filter{Name: aws.String("tag-key"), Values: []string{Tag}}
	if v.Number != "" {
		filter = astypes.Filter{Name: aws.String("tag:" + Tag), Values: []string{v.Number}}
	}
	find := func() (found []thing, err error) {
		in := &autoscaling.DescribeAutoScalingGroupsInput{Filters: []astypes.Filter{filter}}
		err = sdk.EachPage(ctx, "autoscaling", "DescribeAutoScalingGroups", func(ctx context.Context, token *string) (*string, error) {
			in.NextToken = token
			out, err := v.calls.groups(ctx, in)
			if err != nil {
				return nil, err
			}
			for _, g := range out.AutoScalingGroups {
				tags := map[string]string{}
				for _, t := range g.Tags {
					tags[aws.ToString(t.Key)] = aws.ToString(t.Value)
				}
				if name := aws.ToString(g.AutoScalingGroupName); v.marked(name, tags) {
					found = append(found, thing{name, name, aws.ToTime(g.CreatedTime)})
				}
			}
			return out.NextToken, nil
		})
		return found, err
	}
	v.remove(ctx, "Auto Scaling group", "autoscaling", "DescribeAutoScalingGroups", find, "DeleteAutoScalingGroup", func(name string) error {
		_, err := v.calls.deleteGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String(name), ForceDelete: aws.Bool(true)})
		return err
	})
}

// cleanTemplates deletes the launch templates that runs of the doctor left, of one run if Number is set.
func (v cleaner) cleanTemplates(ctx context.Context) {
	filter := ec2types.Filter{Name: aws.String("tag-key"), Values: []string{Tag}}
	if v.Number != "" {
		filter = ec2types.Filter{Name: aws.String("tag:" + Tag), Values: []string{v.Number}}
	}
	find := func() (found []thing, err error) {
		in := &ec2.DescribeLaunchTemplatesInput{Filters: []ec2types.Filter{filter}}
		err = sdk.EachPage(ctx, "ec2", "DescribeLaunchTemplates", func(ctx context.Context, token *string) (*string, error) {
			in.NextToken = token
			out, err := v.calls.templates(ctx, in)
			if err != nil {
				return nil, err
			}
			for _, t := range out.LaunchTemplates {
				tags := map[string]string{}
				for _, tag := range t.Tags {
					tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
				}
				if name := aws.ToString(t.LaunchTemplateName); v.marked(name, tags) {
					found = append(found, thing{name, aws.ToString(t.LaunchTemplateId), aws.ToTime(t.CreateTime)})
				}
			}
			return out.NextToken, nil
		})
		return found, err
	}
	v.remove(ctx, "launch template", "ec2", "DescribeLaunchTemplates", find, "DeleteLaunchTemplate", func(id string) error {
		_, err := v.calls.deleteTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: aws.String(id)})
		return err
	})
}

// cleanNodegroups searches the visit's cluster. When earlier visits are cleaned without a cluster name, it
// searches all clusters.
func (v cleaner) cleanNodegroups(ctx context.Context) {
	clusters := []string{v.Cluster}
	if v.Cluster == "" {
		if v.Apply {
			return
		}
		clusters = nil
		in := &eks.ListClustersInput{}
		err := sdk.EachPage(ctx, "eks", "ListClusters", func(ctx context.Context, token *string) (*string, error) {
			in.NextToken = token
			out, err := v.calls.clusters(ctx, in)
			if err != nil {
				return nil, err
			}
			clusters = append(clusters, out.Clusters...)
			return out.NextToken, nil
		})
		if err != nil {
			v.remains("nodegroups could not be looked for", "eks", "ListClusters", err)
		}
	}
	for _, cluster := range clusters {
		find := func() (found []thing, err error) {
			in := &eks.ListNodegroupsInput{ClusterName: aws.String(cluster)}
			err = sdk.EachPage(ctx, "eks", "ListNodegroups", func(ctx context.Context, token *string) (*string, error) {
				in.NextToken = token
				out, err := v.calls.nodegroups(ctx, in)
				if err != nil {
					return nil, err
				}
				for _, name := range out.Nodegroups {
					if !strings.HasPrefix(name, Prefix+v.Number) {
						continue
					}
					n, err := v.calls.nodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: aws.String(cluster), NodegroupName: aws.String(name)})
					if e := sdk.Classify("eks", "DescribeNodegroup", err); e != nil && e.Kind != observed.NotFound {
						return nil, err
					}
					if err == nil && v.marked(name, n.Nodegroup.Tags) {
						found = append(found, thing{name, name, aws.ToTime(n.Nodegroup.CreatedAt)})
					}
				}
				return out.NextToken, nil
			})
			return found, err
		}
		v.remove(ctx, "nodegroup of cluster "+cluster, "eks", "ListNodegroups", find, "DeleteNodegroup", func(name string) error {
			_, err := v.calls.deleteNodegroup(ctx, &eks.DeleteNodegroupInput{ClusterName: aws.String(cluster), NodegroupName: aws.String(name)})
			return err
		})
	}
}

// mayRun reports whether the visit that made a resource may still run elsewhere.
func (v cleaner) mayRun(t thing) bool { return v.Number == "" && v.Now().Sub(t.made) < visitLasts }

// remove deletes the resources that find returns until none is left, and notes the rest. EKS at first
// refuses to delete a nodegroup that is changing.
func (v cleaner) remove(ctx context.Context, what, service, read string, find func() ([]thing, error), write string, drop func(id string) error) {
	last := map[string]error{}
	var found, young []thing
	began := v.Now()
	gone := v.until(ctx, nodegroupMoves, func() bool {
		all, err := find()
		if err != nil {
			last[""] = err
			return sdk.Classify(service, read, err).Kind == observed.Denied
		}
		delete(last, "")
		found, young = nil, nil
		for _, t := range all {
			if v.mayRun(t) {
				young = append(young, t)
				continue
			}
			found = append(found, t)
			v.Progress("deleting " + what + " " + t.name)
			if err := drop(t.id); err != nil && sdk.Classify(service, write, err).Kind != observed.NotFound {
				last[t.name] = err
			} else {
				delete(last, t.name)
			}
		}
		return len(found) == 0
	})
	if err := last[""]; err != nil {
		v.remains(what+" "+Prefix+v.Number+"…: could not be looked for", service, read, err)
		return
	}
	for _, t := range young {
		number, _, _ := strings.Cut(strings.TrimPrefix(t.name, Prefix), "-")
		v.left = append(v.left, fmt.Sprintf("%s %s: it was made %s ago, and the visit %s may be under way; --clean --visit %s deletes it", what, t.name, v.Now().Sub(t.made).Round(time.Second), number, number))
	}
	if gone {
		return
	}
	for _, t := range found {
		if err := last[t.name]; err != nil {
			v.remains(what+" "+t.name, service, write, err)
		} else {
			v.left = append(v.left, fmt.Sprintf("%s %s: its deletion had not ended after %s", what, t.name, v.Now().Sub(began).Round(time.Second)))
		}
	}
}
