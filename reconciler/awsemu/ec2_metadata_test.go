package awsemu_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

const invalidKey = `'kubernetes.io/cluster/c' is not a valid tag key. Tag keys must match pattern ([0-9a-zA-Z\\-_+=,.@:]{1,255}), and must not be a reserved name ('.', '..', '_index').`

// tagged is a machine with a tag, whose metadata shows tags or not, or says nothing.
func (e *env) tagged(key string, shows ec2types.LaunchTemplateInstanceMetadataTagsState) *ec2types.RequestLaunchTemplateData {
	data := e.machine()
	data.TagSpecifications = []ec2types.LaunchTemplateTagSpecificationRequest{{ResourceType: "instance", Tags: []ec2types.Tag{{Key: aws.String(key), Value: aws.String("owned")}}}}
	data.MetadataOptions = &ec2types.LaunchTemplateInstanceMetadataOptionsRequest{InstanceMetadataTags: shows}
	return data
}

// Instances whose metadata is to show a tag that it cannot are not launched, whoever
// gave them the tag and whoever asked for it to be shown.
func TestMetadataShowsOnlySomeTags(t *testing.T) {
	for name, tc := range map[string]struct {
		key     string
		shows   ec2types.LaunchTemplateInstanceMetadataTagsState
		account ec2types.DefaultInstanceMetadataTagsState
		group   string // a key that the group gives its instances
		refused bool
	}{
		"a slash":                         {key: "kubernetes.io/cluster/c", shows: "enabled", refused: true},
		"a slash, not shown":              {key: "kubernetes.io/cluster/c", shows: "disabled", account: "enabled"},
		"a slash, nothing said":           {key: "kubernetes.io/cluster/c"},
		"a slash, by the account":         {key: "kubernetes.io/cluster/c", account: "enabled", refused: true},
		"a slash, the account has no say": {key: "kubernetes.io/cluster/c", account: "no-preference"},
		"a reserved name":                 {key: "_index", shows: "enabled", refused: true},
		"all that may be shown":           {key: "aA9-_+=,.@:", shows: "enabled"},
		"a slash from the group":          {key: "Name", shows: "enabled", group: "kubernetes.io/cluster/c", refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t, awsemu.Options{})
			if tc.account != "" {
				must(e.ec2().ModifyInstanceMetadataDefaults(ctx, &ec2.ModifyInstanceMetadataDefaultsInput{InstanceMetadataTags: tc.account}))(t)
			}
			id := e.template("web", e.tagged(tc.key, tc.shows))
			in := &autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: aws.String("web"), MinSize: aws.Int32(1), MaxSize: aws.Int32(1),
				LaunchTemplate: spec(id, "1"), VPCZoneIdentifier: e.subnets()}
			if tc.group != "" {
				in.Tags = []asgtypes.Tag{{Key: aws.String(tc.group), Value: aws.String("x"), PropagateAtLaunch: aws.Bool(true)}}
			}
			e.create(in)
			e.wait(2 * time.Second)
			if n := len(e.read("web").Instances); (n == 0) != tc.refused {
				t.Errorf("%d instances", n)
			}
			activities := must(e.autoscaling().DescribeScalingActivities(ctx, &autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: aws.String("web")}))(t).Activities
			a := activities[len(activities)-1]
			if !tc.refused {
				if a.StatusCode == "Failed" {
					t.Errorf("activity %s", aws.ToString(a.StatusMessage))
				}
				return
			}
			want := strings.ReplaceAll(invalidKey, "kubernetes.io/cluster/c", map[bool]string{true: tc.key, false: tc.group}[tc.group == ""]) + " Launching EC2 instance failed."
			if got := aws.ToString(a.StatusMessage); a.StatusCode != "Failed" || got != want {
				t.Errorf("activity %s: %s\nwant %s", a.StatusCode, got, want)
			}
		})
	}
}

func TestMetadataDefaults(t *testing.T) {
	e := start(t, awsemu.Options{})
	modify := func(in *ec2.ModifyInstanceMetadataDefaultsInput) error {
		_, err := e.ec2().ModifyInstanceMetadataDefaults(ctx, in)
		return err
	}
	read := func() *ec2types.InstanceMetadataDefaultsResponse {
		return must(e.ec2().GetInstanceMetadataDefaults(ctx, &ec2.GetInstanceMetadataDefaultsInput{}))(t).AccountLevel
	}
	if d := read(); d.InstanceMetadataTags != "" || d.HttpPutResponseHopLimit != nil {
		t.Errorf("at first %+v", d)
	}
	must(e.ec2().ModifyInstanceMetadataDefaults(ctx, &ec2.ModifyInstanceMetadataDefaultsInput{InstanceMetadataTags: "enabled", HttpPutResponseHopLimit: aws.Int32(2), HttpTokens: "required"}))(t)
	if err := modify(&ec2.ModifyInstanceMetadataDefaultsInput{HttpPutResponseHopLimit: aws.Int32(-1)}); err != nil {
		t.Fatal(err)
	}
	if d := read(); d.InstanceMetadataTags != "enabled" || d.HttpPutResponseHopLimit != nil || d.HttpTokens != "required" {
		t.Errorf("changed %+v", d)
	}
	wantCode(t, modify(&ec2.ModifyInstanceMetadataDefaultsInput{HttpPutResponseHopLimit: aws.Int32(65)}), "InvalidParameterValue")
	wantCode(t, modify(&ec2.ModifyInstanceMetadataDefaultsInput{InstanceMetadataTags: "some"}), "InvalidParameterValue")
}

// EKS tries the user's template, and does not carry the member over to its own, whose
// instances have tags with a slash.
func TestNodegroupMetadataTags(t *testing.T) {
	e := start(t, awsemu.Options{})
	with := func(name, key string, shows ec2types.LaunchTemplateInstanceMetadataTagsState) *eks.CreateNodegroupInput {
		data := e.tagged(key, shows)
		data.ImageId, data.InstanceType = nil, ""
		in := e.nodegroupInput(name)
		in.LaunchTemplate = &ekstypes.LaunchTemplateSpecification{Id: aws.String(e.template("for-"+name, data))}
		return in
	}
	_, err := e.eks().CreateNodegroup(ctx, with("a", "kubernetes.io/cluster/c", "enabled"))
	wantError(t, err, "InvalidRequestException", strings.TrimSuffix(invalidKey, "."))
	e.createNodegroup(with("b", "team", "enabled"))
	e.untilNodegroup("b", ekstypes.NodegroupStatusActive)
	must(e.ec2().ModifyInstanceMetadataDefaults(ctx, &ec2.ModifyInstanceMetadataDefaultsInput{InstanceMetadataTags: "enabled"}))(t)
	_, err = e.eks().CreateNodegroup(ctx, with("c", "kubernetes.io/cluster/c", ""))
	wantError(t, err, "InvalidRequestException", "is not a valid tag key")
	e.createNodegroup(with("d", "kubernetes.io/cluster/c", "disabled"))
	e.createNodegroup(e.nodegroupInput("e"))
	for _, name := range []string{"d", "e"} {
		e.untilNodegroup(name, ekstypes.NodegroupStatusActive)
	}
}
