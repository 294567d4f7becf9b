package reconciler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// keeping is a pool that keeps so many versions; step makes its content another.
func keeping(keep int32, step int) reconciler.Desired {
	pool := groupPool("web", "m5.large", 1)
	pool.KeepVersions = keep
	pool.LaunchTemplate.Data.KeyName = fmt.Sprintf("key-%d", step)
	return target("blue", pool)
}

// copies makes n further versions that nobody uses, by hand.
func (w *world) copies(n int) {
	w.t.Helper()
	for i := range n {
		w.check(w.ec2().CreateLaunchTemplateVersion(context.Background(), &ec2.CreateLaunchTemplateVersionInput{
			LaunchTemplateName: aws.String("web"), SourceVersion: aws.String("1"),
			LaunchTemplateData: &types.RequestLaunchTemplateData{KeyName: aws.String(fmt.Sprintf("by-hand-%d", i))},
		}))
	}
}

func TestVersionsBeyondTheKeptNumberAreDeletedOldestFirst(t *testing.T) {
	w := newWorld(t)
	for i := range 6 {
		w.settle(keeping(2, i))
	}
	if d := cmp.Diff([]int64{4, 5, 6}, w.numbers("web")); d != "" {
		t.Errorf("versions (-want +got):\n%s", d)
	}
	// Each further version costs one deletion, and with nothing moving a pass
	// reads no more than ever.
	if n := w.srv.CallCounts()["ec2:DeleteLaunchTemplateVersions"]; n != 3 {
		t.Errorf("deletions: got %d, want 3", n)
	}
	w.srv.ResetCalls()
	w.must(reconciler.Apply, keeping(2, 5))
	if reads, writes := w.calls(); reads != 2 || writes != 0 {
		t.Errorf("a steady pass: %v", w.srv.CallCounts())
	}
	w.restart()
	w.srv.ResetCalls()
	w.must(reconciler.Apply, keeping(2, 5))
	if n := w.srv.CallCounts()["ec2:DescribeLaunchTemplateVersions"]; n != 1 {
		t.Errorf("a new process: %v", w.srv.CallCounts())
	}
}

func TestALowerNumberPrunesAtOnce(t *testing.T) {
	for name, lower := range map[string]func() reconciler.Desired{
		"annotation": func() reconciler.Desired { return keeping(3, 0) },
		"configuration": func() reconciler.Desired {
			d := keeping(0, 0)
			d.Policy.KeepVersions = 3
			return d
		},
		"annotation dropped": func() reconciler.Desired { return keeping(0, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			before, want, left := keeping(0, 0), 8, 4 // three, and the one that is wanted
			if name == "annotation dropped" {
				before, want, left = keeping(20, 0), 15, 11
			}
			w.settle(before)
			w.copies(want - 1)
			w.restart()
			if r := w.must(reconciler.PlanOnly, before)[0]; !r.Plan.Empty() {
				t.Fatalf("nothing is to be pruned: %v", r.Plan.Steps)
			}
			r := w.must(reconciler.PlanOnly, lower())[0]
			if len(r.Plan.Steps) != 2 || r.Plan.Steps[0].Verb != step.PruneVersion || !strings.Contains(r.Plan.Steps[0].Reason, "versions 2-5") {
				t.Errorf("plan: got %v", r.Plan.Steps)
			}
			w.settle(lower())
			if got := w.numbers("web"); len(got) != left || got[0] != 1 || got[left-1] != int64(want) {
				t.Errorf("versions: got %v, want the first, which is in use, and the newest %d", got, left-1)
			}
			w.srv.ResetCalls()
			w.restart()
			w.must(reconciler.Apply, lower())
			if _, writes := w.calls(); writes != 0 || w.srv.CallCounts()["ec2:DescribeLaunchTemplateVersions"] > 1 {
				t.Errorf("afterwards: %v", w.srv.CallCounts())
			}
		})
	}
}

// Every user of a version keeps it: weir's group, somebody else's group, an override in one, the refresh of one, a nodegroup of a cluster that no
// target names, and anything that takes the default or the newest version.
func TestWhatAnybodyUsesIsNotPruned(t *testing.T) {
	ctx := context.Background()
	w := newWorld(t)
	w.settle(keeping(0, 0))
	w.copies(4)
	w.check(w.ec2().CreateLaunchTemplateVersion(ctx, &ec2.CreateLaunchTemplateVersionInput{LaunchTemplateName: aws.String("web"),
		LaunchTemplateData: &types.RequestLaunchTemplateData{InstanceType: types.InstanceTypeM5Large}})) // as EKS wants one
	w.copies(4)
	subnets := w.group("web").VPCZoneIdentifier
	spec := func(n int) *astypes.LaunchTemplateSpecification {
		return &astypes.LaunchTemplateSpecification{LaunchTemplateName: aws.String("web"), Version: aws.String(fmt.Sprint(n))}
	}
	foreign := func(name string, size int32, change func(*autoscaling.CreateAutoScalingGroupInput)) {
		in := &autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: aws.String(name), MinSize: aws.Int32(0), MaxSize: aws.Int32(4), DesiredCapacity: aws.Int32(size), VPCZoneIdentifier: subnets}
		change(in)
		w.check(w.groups().CreateAutoScalingGroup(ctx, in))
	}
	state, err := w.scope.Cloud.Observe(ctx, observed.Query{Owner: testInstance, Templates: true})
	if err != nil {
		t.Fatal(err)
	}
	full := func(name string) string { // a template that launches
		data := groupPool("other", "m5.large", 0).LaunchTemplate.Data
		data.ImageID = aws.ToString(w.versions("web").LaunchTemplateVersions[9].LaunchTemplateData.ImageId)
		data.BlockDeviceMappings = nil
		res, err := w.scope.Cloud.Execute(ctx, step.CreateLaunchTemplate{Name: name, Data: data})
		if err != nil {
			t.Fatal(err)
		}
		return res.Template.ID
	}
	foreign("group", 0, func(in *autoscaling.CreateAutoScalingGroupInput) { in.LaunchTemplate = spec(2) })
	other := full("other")
	foreign("override", 0, func(in *autoscaling.CreateAutoScalingGroupInput) {
		in.MixedInstancesPolicy = &astypes.MixedInstancesPolicy{LaunchTemplate: &astypes.LaunchTemplate{
			LaunchTemplateSpecification: &astypes.LaunchTemplateSpecification{LaunchTemplateId: aws.String(other), Version: aws.String("1")},
			Overrides:                   []astypes.LaunchTemplateOverrides{{InstanceType: aws.String("m5.large"), LaunchTemplateSpecification: spec(3)}},
		}}
	})
	// Version 1 again, as one that launches, for a refresh that is under way.
	v := w.byHand("web", func(d *types.RequestLaunchTemplateData) {
		d.InstanceType, d.ImageId = types.InstanceTypeM5Large, aws.String(state.Templates["web"].Versions[1].Data.ImageID)
	})
	foreign("refresh", 2, func(in *autoscaling.CreateAutoScalingGroupInput) { in.LaunchTemplate = spec(1) })
	w.clock.Advance(1e10)
	w.check(w.groups().StartInstanceRefresh(ctx, &autoscaling.StartInstanceRefreshInput{AutoScalingGroupName: aws.String("refresh"),
		DesiredConfiguration: &astypes.DesiredConfiguration{LaunchTemplate: spec(int(v))}}))
	w.check(w.ec2().ModifyLaunchTemplate(ctx, &ec2.ModifyLaunchTemplateInput{LaunchTemplateName: aws.String("web"), DefaultVersion: aws.String("5")}))
	w.nodegroupElsewhere("web", "6")
	w.copies(3)

	paused := keeping(1, 1)
	r := w.must(reconciler.PlanOnly, paused)[0]
	var prune []step.Step
	for _, s := range r.Plan.Steps {
		if s.Verb == step.PruneVersion {
			prune = append(prune, s)
		}
	}
	if len(prune) != 1 {
		t.Fatalf("prunes: got %v", r.Plan.Steps)
	}
	got := prune[0].Do.(step.DeleteLaunchTemplateVersions).Versions
	// 1 is weir's group's, 2 and 3 foreign groups', 5 the default, 6 a
	// nodegroup's, 11 a refresh's, 14 the newest.
	if d := cmp.Diff([]int64{4, 7, 8, 9, 10, 12, 13}, got); d != "" {
		t.Errorf("pruned (-want +got):\n%s", d)
	}
	w.must(reconciler.Apply, paused)
	if left := w.numbers("web"); !slices.Equal(left, []int64{1, 2, 3, 5, 6, 11, 14, 15}) {
		t.Errorf("left: got %v", left)
	}
}

// nodegroupElsewhere makes a nodegroup from a template's version in a cluster that
// no target names.
func (w *world) nodegroupElsewhere(template, version string) {
	w.t.Helper()
	ctx, client := context.Background(), w.eks()
	demo, err := client.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("demo")})
	if err != nil {
		w.t.Fatal(err)
	}
	subnets := demo.Cluster.ResourcesVpcConfig.SubnetIds
	w.check(client.CreateCluster(ctx, &eks.CreateClusterInput{Name: aws.String("elsewhere"), RoleArn: demo.Cluster.RoleArn,
		ResourcesVpcConfig: &ekstypes.VpcConfigRequest{SubnetIds: subnets}}))
	w.clock.Advance(1e12)
	role, err := iam.NewFromConfig(w.sdk).GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String("eks-nodegroup.cluster-api-provider-aws.sigs.k8s.io")})
	if err != nil {
		w.t.Fatal(err)
	}
	w.check(client.CreateNodegroup(ctx, &eks.CreateNodegroupInput{ClusterName: aws.String("elsewhere"), NodegroupName: aws.String("ng"), NodeRole: role.Role.Arn, Subnets: subnets,
		LaunchTemplate: &ekstypes.LaunchTemplateSpecification{Name: aws.String(template), Version: aws.String(version)}}))
}

func TestAtTheQuotaOfVersionsRoomIsMadeFirst(t *testing.T) {
	for _, quota := range []int{450, 10_000} {
		t.Run(fmt.Sprint(quota), func(t *testing.T) {
			if quota == 10_000 {
				soaks(t, "EC2's own quota takes 10,000 calls to reach")
			}
			w := newWorldWith(t, map[string]int{"launch-template-versions": quota})
			w.settle(keeping(0, 0))
			w.copies(quota - 1)
			w.srv.ResetCalls()
			w.settle(keeping(0, 1))
			counts := w.srv.CallCounts()
			deletions := (quota + 199) / 200
			if counts["ec2:DeleteLaunchTemplateVersions"] != deletions || counts["ec2:CreateLaunchTemplateVersion"] != 1 {
				t.Errorf("calls: got %v, want %d deletions of up to 200 versions and one new version", counts, deletions)
			}
			// Version 1 was in use when room was made.
			if got := w.numbers("web"); len(got) != 12 || got[0] != 1 || got[11] != int64(quota+1) {
				t.Errorf("versions: got %v", got)
			}
		})
	}
}

func TestADeniedOrPartlyRefusedPruningIsInNobodysWay(t *testing.T) {
	t.Run("deletion denied", func(t *testing.T) {
		w := newWorld(t)
		w.settle(keeping(1, 0))
		w.settle(keeping(1, 1))
		w.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "DeleteLaunchTemplateVersions", Code: "UnauthorizedOperation", Status: 403, Times: -1})
		r := w.must(reconciler.Apply, keeping(1, 2))[0]
		if f := r.Failures(); len(f) != 1 || f[0].Err.Kind != observed.Denied || f[0].Step.Verb != step.PruneVersion {
			t.Errorf("failures: got %v", r.Failures())
		}
		w.settle(keeping(1, 2))
		if d := cmp.Diff([]int64{1, 2, 3}, w.numbers("web")); d != "" {
			t.Errorf("versions (-want +got):\n%s", d)
		}
	})
	t.Run("users unreadable", func(t *testing.T) {
		w := newWorld(t)
		w.settle(keeping(1, 0))
		w.settle(keeping(1, 1))
		w.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "DescribeInstances", Code: "UnauthorizedOperation", Status: 403, Times: -1})
		r := w.must(reconciler.Apply, keeping(1, 2))[0]
		if !hasCode(r, "versions-kept") || len(r.Failures()) != 0 {
			t.Errorf("got %v, failures %v", r.Diagnostics, r.Failures())
		}
		w.settle(keeping(1, 2))
		if got := w.numbers("web"); len(got) != 3 {
			t.Errorf("versions: got %v", got)
		}
	})
	t.Run("a version refused", func(t *testing.T) {
		w := newWorld(t)
		w.settle(keeping(0, 0))
		w.copies(5)
		w.scope.Cloud = &movesDefault{w.scope.Cloud, w}
		r := w.must(reconciler.Apply, keeping(1, 1))[0]
		if f := r.Failures(); len(f) != 1 || !strings.Contains(f[0].Err.Message, "version 3 stays") {
			t.Errorf("failures: got %v", r.Failures())
		}
		// 1 was in use, 3 had become the default, 6 is kept.
		if d := cmp.Diff([]int64{1, 3, 6, 7}, w.numbers("web")); d != "" {
			t.Errorf("versions (-want +got):\n%s", d)
		}
		w.restart()
		w.settle(keeping(1, 1))
	})
}

// movesDefault has somebody move the default version right before versions are
// deleted.
type movesDefault struct {
	reconciler.Cloud
	w *world
}

func (c *movesDefault) Execute(ctx context.Context, a step.Action) (step.Result, error) {
	if _, ok := a.(step.DeleteLaunchTemplateVersions); ok {
		c.w.check(c.w.ec2().ModifyLaunchTemplate(ctx, &ec2.ModifyLaunchTemplateInput{LaunchTemplateName: aws.String("web"), DefaultVersion: aws.String("3")}))
	}
	return c.Cloud.Execute(ctx, a)
}

// A pool that is held is planned with its pruning, and neither reads of the whole
// account nor writes are made for it.
func TestAHeldPoolPrunesNothing(t *testing.T) {
	w := newWorld(t)
	w.settle(keeping(0, 0))
	w.copies(5)
	pool := groupPool("web", "m5.large", 1)
	pool.LaunchTemplate.Data.KeyName, pool.KeepVersions, pool.Paused = "key-0", 2, true
	w.srv.ResetCalls()
	r := w.must(reconciler.Apply, target("blue", []intent.Pool{pool}...))[0]
	if len(r.Plan.Steps) == 0 || r.Plan.Steps[0].Verb != step.PruneVersion || r.Plan.Steps[0].Held != step.HeldPaused {
		t.Errorf("steps: got %v", r.Plan.Steps)
	}
	counts := w.srv.CallCounts()
	if _, writes := w.calls(); writes != 0 || counts["ec2:DescribeInstances"] != 0 {
		t.Errorf("calls: got %v", counts)
	}
}
