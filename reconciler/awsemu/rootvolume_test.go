package awsemu_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

const otherImage = "ami-0123456789abcdef1"

// imagePolicy is a mixed instances policy of two types with an image.
func imagePolicy(id, version, image string) *asgtypes.MixedInstancesPolicy {
	p := &asgtypes.MixedInstancesPolicy{LaunchTemplate: &asgtypes.LaunchTemplate{LaunchTemplateSpecification: spec(id, version)}}
	for _, kind := range []string{"m5.large", "m5.xlarge"} {
		o := asgtypes.LaunchTemplateOverrides{InstanceType: aws.String(kind)}
		if image != "" {
			o.ImageId = aws.String(image)
		}
		p.LaunchTemplate.Overrides = append(p.LaunchTemplate.Overrides, o)
	}
	return p
}

// imageGroup is a group of four with a policy, and the versions 1 of its image, 2 of another
// image, 3 of another key.
func imageGroup(t *testing.T, image string) (e *env, id string) {
	e = start(t, awsemu.Options{})
	if err := e.srv.Seed(strings.NewReader(`{"regions": {"eu-west-1": {"keyPairs": ["ours"], "images": [{"id": "` + otherImage + `", "name": "other", "architecture": "x86_64", "created": "2025-11-01T00:00:00Z"}]}}}`)); err != nil {
		t.Fatal(err)
	}
	id = e.template("web", e.machine())
	e.version(id, &ec2types.RequestLaunchTemplateData{ImageId: aws.String(otherImage), InstanceType: "m5.large"})
	e.version(id, &ec2types.RequestLaunchTemplateData{ImageId: aws.String(otherImage), InstanceType: "m5.large", KeyName: aws.String("ours")})
	e.create(&autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: aws.String("web"), MinSize: aws.Int32(0), MaxSize: aws.Int32(9), DesiredCapacity: aws.Int32(4), VPCZoneIdentifier: e.subnets(), MixedInstancesPolicy: imagePolicy(id, "1", image)})
	e.wait(time.Minute)
	return e, id
}

func (e *env) replaceVolumes(p *asgtypes.MixedInstancesPolicy, prefs *asgtypes.RefreshPreferences) error {
	in := &autoscaling.StartInstanceRefreshInput{AutoScalingGroupName: aws.String("web"), Strategy: "ReplaceRootVolume", Preferences: prefs}
	if p != nil {
		in.DesiredConfiguration = &asgtypes.DesiredConfiguration{MixedInstancesPolicy: p}
	}
	_, err := e.autoscaling().StartInstanceRefresh(ctx, in)
	return err
}

// machinesOf are the ids of a group's machines, and how many have an image, by EC2 and by the group.
func (e *env) machinesOf() (ids []string, images map[string]int) {
	images = map[string]int{}
	for _, i := range e.read("web").Instances {
		ids = append(ids, *i.InstanceId)
		m := must(e.ec2().DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{*i.InstanceId}}))(e.t).Reservations[0].Instances[0]
		images[fmt.Sprintf("%s v%s %s", i.LifecycleState, aws.ToString(i.LaunchTemplate.Version), aws.ToString(m.ImageId))]++
		if i.ImageId != nil && *i.ImageId != *m.ImageId {
			e.t.Errorf("the group says %s, EC2 %s", *i.ImageId, *m.ImageId)
		}
	}
	slices.Sort(ids)
	return ids, images
}

// TestRootVolumesAreReplaced: the machines stay, some at a time are out of service, and end
// with the new image; a rollback gives them the old one again.
func TestRootVolumesAreReplaced(t *testing.T) {
	for _, back := range []bool{false, true} {
		image := ""
		e, id := imageGroup(t, "ami-0123456789abcdef1")
		image = e.image("x86_64")
		if err := e.replaceVolumes(imagePolicy(id, "2", image), &asgtypes.RefreshPreferences{MinHealthyPercentage: aws.Int32(50), SkipMatching: aws.Bool(true)}); err != nil {
			t.Fatal(err)
		}
		before, _ := e.machinesOf()
		most := 0
		for i := range 40 {
			if i == 6 && back {
				must(e.autoscaling().RollbackInstanceRefresh(ctx, &autoscaling.RollbackInstanceRefreshInput{AutoScalingGroupName: aws.String("web")}))(t)
			}
			e.advance(500 * time.Millisecond)
			out := 0
			for _, m := range e.read("web").Instances {
				if m.LifecycleState == "ReplacingRootVolume" {
					out++
				}
			}
			most = max(most, out)
		}
		wanted, status := "InService v2 "+image, asgtypes.InstanceRefreshStatusSuccessful
		if back {
			wanted, status = "InService v1 "+otherImage, asgtypes.InstanceRefreshStatusRollbackSuccessful
		}
		f := e.until("web", status)
		after, images := e.machinesOf()
		if most != 2 || !slices.Equal(before, after) || images[wanted] != 4 || f.Strategy != "ReplaceRootVolume" {
			t.Errorf("back %v: at most %d at once, %v became %v, %v, by %s", back, most, before, after, images, f.Strategy)
		}
	}
}

// TestRootVolumesThatAreNotReplaced: AWS refuses what its guide says, and a machine whose new
// image does not exist is launched anew.
func TestRootVolumesThatAreNotReplaced(t *testing.T) {
	e, id := imageGroup(t, "")
	wantCode(t, e.replaceVolumes(imagePolicy(id, "2", otherImage), nil), "ValidationError") // the group's overrides name none
	e, id = imageGroup(t, otherImage)
	for name, p := range map[string]*asgtypes.MixedInstancesPolicy{
		"no desired configuration": nil, "no images": imagePolicy(id, "2", ""), "an alias": imagePolicy(id, "$Latest", otherImage), "more than the image": imagePolicy(id, "3", otherImage),
	} {
		t.Log(name)
		wantCode(t, e.replaceVolumes(p, nil), "ValidationError")
	}
	others := imagePolicy(id, "2", otherImage)
	others.LaunchTemplate.Overrides = others.LaunchTemplate.Overrides[1:]
	wantCode(t, e.replaceVolumes(others, nil), "ValidationError")
	image := e.image("x86_64")
	if err := e.replaceVolumes(imagePolicy(id, "2", image), nil); err != nil {
		t.Fatal(err)
	}
	e.advance(2 * time.Second)
	must(e.autoscaling().CancelInstanceRefresh(ctx, &autoscaling.CancelInstanceRefreshInput{AutoScalingGroupName: aws.String("web")}))(t)
	e.until("web", asgtypes.InstanceRefreshStatusCancelled)
	if _, images := e.machinesOf(); len(images) != 2 || images["InService v1 "+otherImage]+images["InService v2 "+image] != 4 {
		t.Errorf("once it was cancelled: %v", images)
	}
	wantCode(t, e.replaceVolumes(imagePolicy(id, "2", image), nil), "ValidationError") // some run something else now
	id = e.group("plain", 1)
	_, err := e.autoscaling().StartInstanceRefresh(ctx, &autoscaling.StartInstanceRefreshInput{AutoScalingGroupName: aws.String("plain"), Strategy: "ReplaceRootVolume", DesiredConfiguration: &asgtypes.DesiredConfiguration{MixedInstancesPolicy: imagePolicy(id, "1", otherImage)}})
	wantCode(t, err, "ValidationError")
}
