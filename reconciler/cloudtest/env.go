package cloudtest

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"github.com/weir-gitops/weir/reconciler/awscloud"
	"github.com/weir-gitops/weir/reconciler/awscloud/httpbody"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
)

// env holds the tools of a case: groups, nodegroups, parameters and weir's adapter, in addition to those for
// templates and the endpoint.
type env struct{ *templates }

// templates creates and reads launch templates of a case.
type templates struct{ *endpoint }

// endpoint is one case's access to the endpoint: its clients, its time, and checks of answers.
type endpoint struct {
	*testing.T
	h   Harness
	cfg aws.Config
	ctx context.Context

	ec2 *ec2.Client
	asg *autoscaling.Client
	eks *eks.Client
	ssm *ssm.Client
	iam *iam.Client
	sts *sts.Client

	// mark is part of every name and of a tag, so that cases do not affect each other.
	mark string
}

// tagMark is the tag that contains a case's mark.
const tagMark = "weir-contract"

func newEnv(t *testing.T, h Harness) *env {
	t.Helper()
	ctx := t.Context()
	options := []func(*config.LoadOptions) error{
		config.WithRegion(h.Region),
		// Use one attempt, because a case needs to see each answer.
		config.WithRetryer(func() aws.Retryer { return retry.AddWithMaxAttempts(retry.NewStandard(), 1) }),
	}
	if !h.Environment {
		t.Setenv("AWS_CONFIG_FILE", "/dev/null")
		t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
		options = append(options, config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("weir", "weir", "")))
	}
	cfg, err := config.LoadDefaultConfig(ctx, options...)
	if err != nil {
		t.Fatal(err)
	}
	cfg.BaseEndpoint = aws.String(h.Endpoint)
	transport := &http.Transport{MaxIdleConnsPerHost: 8}
	t.Cleanup(transport.CloseIdleConnections)
	cfg.HTTPClient = httpbody.Client{Next: &http.Client{Transport: transport, Timeout: time.Minute}}
	return &env{&templates{&endpoint{
		T: t, h: h, cfg: cfg, ctx: ctx, mark: "c" + strings.ToLower(rand.Text()[:10]),
		ec2: ec2.NewFromConfig(cfg), asg: autoscaling.NewFromConfig(cfg), eks: eks.NewFromConfig(cfg), ssm: ssm.NewFromConfig(cfg),
		iam: iam.NewFromConfig(cfg), sts: sts.NewFromConfig(cfg),
	}}}
}

// cloud opens weir's adapter on the endpoint.
func (e *endpoint) cloud() *awscloud.Cloud {
	e.Helper()
	c, err := awscloud.Open(e.ctx, sdk.Options{Region: e.h.Region, EndpointURL: e.h.Endpoint, Embedded: !e.h.Environment})
	if err != nil {
		e.Fatal(err)
	}
	e.Cleanup(c.Close)
	return c
}

// name returns a name that is unique to the case.
func (e *endpoint) name(suffix string) string { return "weir-" + e.mark + "-" + suffix }

// pass advances the endpoint's time by d.
func (e *endpoint) pass(d time.Duration) {
	if e.h.Advance != nil {
		e.h.Advance(d)
		return
	}
	time.Sleep(d)
}

// The time limit of eventually if the endpoint uses real time, and the length of a step. If the endpoint has
// its own clock, their quotient limits the number of steps.
const (
	patience  = 90 * time.Second
	tickEvery = time.Second
)

// eventually waits until done returns true.
func (e *endpoint) eventually(what string, done func() bool) {
	e.Helper()
	for range int(patience / tickEvery) {
		if done() {
			return
		}
		e.pass(tickEvery)
	}
	e.Fatalf("timed out waiting for: %s", what)
}

// must ends the case on an error.
func (e *endpoint) must(err error) {
	e.Helper()
	if err != nil {
		e.Fatal(err)
	}
}

// refused checks that a call failed with one of the codes.
func (e *endpoint) refused(err error, codes ...string) {
	e.Helper()
	if got := code(err); !slices.Contains(codes, got) {
		e.Errorf("got the error %q (%v), want %s", got, err, strings.Join(codes, " or "))
	}
}

func code(err error) string {
	var api smithy.APIError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &api):
		return api.ErrorCode()
	}
	return "no AWS error"
}

// background returns a context that outlives a case, for its cleanups.
func (e *endpoint) background() context.Context { return context.WithoutCancel(e.ctx) }

// template creates a launch template that is deleted after the case.
func (e *templates) template(suffix string, tags ...string) *types.LaunchTemplate {
	e.Helper()
	return e.templateWith(suffix, e.data("m5.large"), tags...)
}

// imageless creates a template without an image, so that EKS chooses it. imagelessVersion adds a version to
// it.
func (e *templates) imageless(suffix string) *types.LaunchTemplate {
	e.Helper()
	return e.templateWith(suffix, &types.RequestLaunchTemplateData{EbsOptimized: aws.Bool(true)})
}

func (e *templates) imagelessVersion(t *types.LaunchTemplate) {
	e.Helper()
	_, err := e.ec2.CreateLaunchTemplateVersion(e.ctx, &ec2.CreateLaunchTemplateVersionInput{
		LaunchTemplateId: t.LaunchTemplateId, LaunchTemplateData: &types.RequestLaunchTemplateData{EbsOptimized: aws.Bool(false)},
	})
	e.must(err)
}

func (e *templates) templateWith(suffix string, data *types.RequestLaunchTemplateData, tags ...string) *types.LaunchTemplate {
	e.Helper()
	out, err := e.ec2.CreateLaunchTemplate(e.ctx, &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String(e.name(suffix)), VersionDescription: aws.String("one"), LaunchTemplateData: data,
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate, Tags: e.tags(tags...)}},
	})
	e.must(err)
	e.Cleanup(func() {
		// The case may have deleted it already.
		_, _ = e.ec2.DeleteLaunchTemplate(e.background(), &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: out.LaunchTemplate.LaunchTemplateId})
	})
	return out.LaunchTemplate
}

// version adds a version to a template and returns its number.
func (e *templates) version(t *types.LaunchTemplate, instanceType string) int64 {
	e.Helper()
	out, err := e.ec2.CreateLaunchTemplateVersion(e.ctx, &ec2.CreateLaunchTemplateVersionInput{
		LaunchTemplateId: t.LaunchTemplateId, VersionDescription: aws.String(instanceType), LaunchTemplateData: e.data(instanceType),
	})
	e.must(err)
	return aws.ToInt64(out.LaunchTemplateVersion.VersionNumber)
}

func (e *templates) data(instanceType string) *types.RequestLaunchTemplateData {
	return &types.RequestLaunchTemplateData{ImageId: aws.String(e.image()), InstanceType: types.InstanceType(instanceType)}
}

// tags returns the case's mark and the given pairs.
func (e *endpoint) tags(pairs ...string) []types.Tag {
	out := []types.Tag{{Key: aws.String(tagMark), Value: aws.String(e.mark)}}
	for i := 0; i+1 < len(pairs); i += 2 {
		out = append(out, types.Tag{Key: aws.String(pairs[i]), Value: aws.String(pairs[i+1])})
	}
	return out
}

// image returns a public image, which every endpoint names in the same parameter.
func (e *endpoint) image() string {
	e.Helper()
	out, err := e.ssm.GetParameter(e.ctx, &ssm.GetParameterInput{Name: aws.String("/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-x86_64")})
	e.must(err)
	return aws.ToString(out.Parameter.Value)
}

// subnets returns the subnets of the default VPC.
func (e *endpoint) subnets() []string {
	e.Helper()
	out, err := e.ec2.DescribeSubnets(e.ctx, &ec2.DescribeSubnetsInput{Filters: []types.Filter{{Name: aws.String("default-for-az"), Values: []string{"true"}}}})
	e.must(err)
	var ids []string
	for _, s := range out.Subnets {
		ids = append(ids, aws.ToString(s.SubnetId))
	}
	if len(ids) == 0 {
		e.Fatal("the default VPC has no subnets")
	}
	slices.Sort(ids)
	return ids
}

// group creates an Auto Scaling group that is deleted after the case.
func (e *env) group(suffix string, change ...func(*autoscaling.CreateAutoScalingGroupInput)) string {
	e.Helper()
	name, err := e.tryGroup(suffix, change...)
	e.must(err)
	return name
}

func (e *env) tryGroup(suffix string, change ...func(*autoscaling.CreateAutoScalingGroupInput)) (string, error) {
	e.Helper()
	in := &autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName: aws.String(e.name(suffix)), MinSize: aws.Int32(0), MaxSize: aws.Int32(4), DesiredCapacity: aws.Int32(0),
		VPCZoneIdentifier: aws.String(strings.Join(e.subnets(), ",")), Tags: e.groupTags(e.name(suffix)),
	}
	for _, c := range change {
		c(in)
	}
	if in.LaunchTemplate == nil && in.MixedInstancesPolicy == nil {
		in.LaunchTemplate = spec(e.template("lt-"+suffix), 1)
	}
	_, err := e.asg.CreateAutoScalingGroup(e.ctx, in)
	e.Cleanup(func() {
		// The case may have deleted it already.
		_, _ = e.asg.DeleteAutoScalingGroup(e.background(), &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: in.AutoScalingGroupName, ForceDelete: aws.Bool(true)})
	})
	return aws.ToString(in.AutoScalingGroupName), err
}

func (e *env) groupTags(name string, pairs ...string) []astypes.Tag {
	var out []astypes.Tag
	for _, t := range e.tags(pairs...) {
		out = append(out, astypes.Tag{Key: t.Key, Value: t.Value, PropagateAtLaunch: aws.Bool(false), ResourceId: aws.String(name), ResourceType: aws.String("auto-scaling-group")})
	}
	return out
}

func spec(t *types.LaunchTemplate, version int64) *astypes.LaunchTemplateSpecification {
	return &astypes.LaunchTemplateSpecification{LaunchTemplateId: t.LaunchTemplateId, Version: aws.String(fmt.Sprint(version))}
}

// describe returns a group, or nil if it does not exist.
func (e *env) describe(name string) *astypes.AutoScalingGroup {
	e.Helper()
	out, err := e.asg.DescribeAutoScalingGroups(e.ctx, &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{name}})
	e.must(err)
	if len(out.AutoScalingGroups) == 0 {
		return nil
	}
	return &out.AutoScalingGroups[0]
}

// inService waits until a group has n instances in service.
func (e *env) inService(name string, n int) *astypes.AutoScalingGroup {
	e.Helper()
	var g *astypes.AutoScalingGroup
	e.eventually(fmt.Sprintf("%d instances of %s InService", n, name), func() bool {
		g = e.describe(name)
		serving := 0
		for _, in := range g.Instances {
			if in.LifecycleState == astypes.LifecycleStateInService {
				serving++
			}
		}
		return serving == n && len(g.Instances) == n
	})
	return g
}
