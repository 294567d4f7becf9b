package reconciler_test

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	emueks "github.com/weir-gitops/weir/reconciler/awsemu/eks"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/intent"
	"pgregory.net/rapid"
)

func ptr[T any](v T) *T { return &v }

// fullNodegroup has all that a nodegroup without a launch template can have.
func fullNodegroup() intent.Pool {
	p := nodegroupPool("ng", 2)
	p.LaunchTemplate, p.AllowReplace, p.Options = nil, true, object("PoolOptions", "ng")
	n := p.Nodegroup
	n.MinSize, n.MaxSize = intent.Number{Value: 1, Written: true}, intent.Number{Value: 4, Written: true}
	n.InstanceTypes, n.DiskSize, n.RemoteAccess = []string{"m5.large", "m5a.large"}, 40, &intent.RemoteAccess{EC2SSHKey: "fleet"}
	n.Labels, n.Tags = map[string]string{"tier": "front"}, map[string]string{"team": "web"}
	n.Taints = []intent.Taint{{Key: "a", Value: "1", Effect: "NO_SCHEDULE"}}
	n.UpdateConfig = intent.UpdateConfig{MaxUnavailablePercentage: 50, UpdateStrategy: "MINIMAL"}
	n.NodeRepair = ptr(true)
	n.RepairOptions = &intent.RepairOptions{MaxParallelNodesRepairedCount: 2, MaxUnhealthyNodeThresholdPercentage: 20,
		NodeRepairConfigOverrides: []intent.RepairOverride{{MinRepairWaitTimeMins: 5, NodeMonitoringCondition: "NetworkingReady", NodeUnhealthyReason: "InterfaceNotUp", RepairAction: "Reboot"}}}
	n.WarmPool = &intent.NodegroupWarmPool{Enabled: ptr(true), MinSize: ptr(int32(1)), MaxGroupPreparedCapacity: ptr(int32(4)), PoolState: "STOPPED", ReuseOnScaleIn: ptr(false)}
	return p
}

// nodegroupWishes change one field of a full nodegroup each, by the name of the
// field; the way of the change is the other half of the table.
var nodegroupWishes = map[string]struct {
	change func(*intent.Nodegroup)
	call   string
}{
	"Role":           {func(n *intent.Nodegroup) { n.Role.Name = "nodes.cluster-api-provider-aws.sigs.k8s.io" }, "CreateNodegroup"},
	"Subnets":        {func(n *intent.Nodegroup) { n.Subnets.Zones = "eu-west-1a" }, "CreateNodegroup"},
	"MinSize":        {func(n *intent.Nodegroup) { n.MinSize.Value = 2 }, "UpdateNodegroupConfig"},
	"MaxSize":        {func(n *intent.Nodegroup) { n.MaxSize.Value = 9 }, "UpdateNodegroupConfig"},
	"AMIType":        {func(n *intent.Nodegroup) { n.AMIType = "BOTTLEROCKET_x86_64" }, "CreateNodegroup"},
	"ReleaseVersion": {nil, ""}, // depends on what EKS publishes: tested where versions are planned
	"Version":        {nil, ""}, // depends on the control plane: TestATemplateChangeDoesNotUpgrade
	"CapacityType":   {func(n *intent.Nodegroup) { n.CapacityType = "SPOT" }, "CreateNodegroup"},
	"InstanceType":   {func(n *intent.Nodegroup) { n.InstanceType, n.InstanceTypes = "m5.xlarge", nil }, "CreateNodegroup"},
	"InstanceTypes":  {func(n *intent.Nodegroup) { n.InstanceTypes = []string{"m5a.large", "m5.large"} }, "CreateNodegroup"},
	"DiskSize":       {func(n *intent.Nodegroup) { n.DiskSize = 60 }, "CreateNodegroup"},
	"Labels":         {func(n *intent.Nodegroup) { n.Labels = map[string]string{"tier": "back"} }, "UpdateNodegroupConfig"},
	"Taints":         {func(n *intent.Nodegroup) { n.Taints = nil }, "UpdateNodegroupConfig"},
	"RemoteAccess":   {func(n *intent.Nodegroup) { n.RemoteAccess = nil }, "CreateNodegroup"},
	"UpdateConfig":   {func(n *intent.Nodegroup) { n.UpdateConfig.UpdateStrategy = "DEFAULT" }, "UpdateNodegroupConfig"},
	"NodeRepair":     {func(n *intent.Nodegroup) { n.NodeRepair = ptr(false) }, "UpdateNodegroupConfig"},
	"RepairOptions":  {func(n *intent.Nodegroup) { n.RepairOptions = &intent.RepairOptions{MaxParallelNodesRepairedCount: 3} }, "UpdateNodegroupConfig"},
	"WarmPool":       {func(n *intent.Nodegroup) { n.WarmPool = &intent.NodegroupWarmPool{Enabled: ptr(false)} }, "UpdateNodegroupConfig"},
	"Tags":           {func(n *intent.Nodegroup) { n.Tags = map[string]string{"team": "api"} }, "TagResource"},
	"Force":          {nil, ""}, // says how, not what: TestAForcedUpdate
	"Name":           {nil, ""}, // another name is another nodegroup
	"Cluster":        {nil, ""},
	"ClusterName":    {nil, ""},
	// RemoteAccessGroups fill RemoteAccess, hooks are the group's, and RoleChecks compare a role that weir never changes.
	"RemoteAccessGroups": {nil, ""},
	"LifecycleHooks":     {nil, ""},
	"RoleChecks":         {nil, ""},
}

// Every field is asked for at creation, seen to be there, and changed in the way
// that EKS has for it; then nothing is left to do.
func TestEveryFieldOfANodegroupIsHeld(t *testing.T) {
	t.Parallel()
	for _, f := range reflect.VisibleFields(reflect.TypeFor[intent.Nodegroup]()) {
		if f.Anonymous {
			continue
		}
		name := f.Name
		wish, listed := nodegroupWishes[name]
		if !listed {
			t.Errorf("%s is not in the table", name)
		}
		if wish.change == nil {
			continue
		}
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.settle(target("blue", fullNodegroup()))
			if r := w.must(reconciler.PlanOnly, target("blue", fullNodegroup()))[0]; !r.Plan.Empty() {
				t.Fatalf("after its creation: %+v", r.Plan.Steps)
			}
			pool := fullNodegroup()
			wish.change(pool.Nodegroup)
			w.srv.ResetCalls()
			w.settle(target("blue", pool))
			if n := w.srv.CallCounts(); n["eks:"+wish.call] != 1 {
				t.Errorf("calls %v, want one %s", n, wish.call)
			}
			w.restart()
			if r := w.must(reconciler.PlanOnly, target("blue", pool))[0]; !r.Plan.Empty() {
				t.Errorf("afterwards: %+v", r.Plan.Steps)
			}
		})
	}
}

// nodegroupDrifts are changes that somebody makes by hand.
var nodegroupDrifts = map[string]func(*eks.UpdateNodegroupConfigInput){
	"sizes": func(in *eks.UpdateNodegroupConfigInput) {
		in.ScalingConfig = &ekstypes.NodegroupScalingConfig{MinSize: aws.Int32(0), MaxSize: aws.Int32(8), DesiredSize: aws.Int32(3)}
	},
	"labels": func(in *eks.UpdateNodegroupConfigInput) {
		in.Labels = &ekstypes.UpdateLabelsPayload{AddOrUpdateLabels: map[string]string{"extra": "1"}, RemoveLabels: []string{"tier"}}
	},
	"taints": func(in *eks.UpdateNodegroupConfigInput) {
		in.Taints = &ekstypes.UpdateTaintsPayload{AddOrUpdateTaints: []ekstypes.Taint{{Key: aws.String("b"), Effect: ekstypes.TaintEffectNoExecute}}}
	},
	"update config": func(in *eks.UpdateNodegroupConfigInput) {
		in.UpdateConfig = &ekstypes.NodegroupUpdateConfig{MaxUnavailable: aws.Int32(3)}
	},
	"node repair": func(in *eks.UpdateNodegroupConfigInput) {
		in.NodeRepairConfig = &ekstypes.NodeRepairConfig{Enabled: aws.Bool(false)}
	},
	"warm pool": func(in *eks.UpdateNodegroupConfigInput) {
		in.WarmPoolConfig = &ekstypes.WarmPoolConfig{Enabled: aws.Bool(true), MinSize: aws.Int32(2)}
	},
}

// Pass after pass puts any mixture of drifts right, with one update at a time, until nothing is left to do.
func TestNodegroupDrifts(t *testing.T) {
	t.Parallel()
	names := slices.Sorted(func(yield func(string) bool) {
		for n := range nodegroupDrifts {
			if !yield(n) {
				return
			}
		}
	})
	w := newWorld(t)
	blue := target("blue", fullNodegroup())
	w.settle(blue)
	rapid.Check(t, func(rt *rapid.T) {
		w.restart() // a process corrects a field three times
		in := &eks.UpdateNodegroupConfigInput{ClusterName: aws.String("demo"), NodegroupName: aws.String("ng")}
		chosen := rapid.SliceOfNDistinct(rapid.SampledFrom(names), 1, len(names), rapid.ID).Draw(rt, "drifts")
		for _, name := range chosen {
			nodegroupDrifts[name](in)
		}
		if _, err := w.eks().UpdateNodegroupConfig(t.Context(), in); err != nil {
			rt.Fatal(err)
		}
		w.srv.ResetCalls()
		if _, trouble := w.settled(blue); trouble != "" {
			rt.Fatal(trouble)
		}
		if n := w.srv.CallCounts(); n["eks:UpdateNodegroupConfig"] != 1 || n["eks:UpdateNodegroupVersion"] != 0 || n["eks:CreateNodegroup"] != 0 {
			rt.Fatalf("%v: calls %v", chosen, n)
		}
	})
}

// EKS takes the control plane's version where a call names none, so an update to
// another template version names the one that Git wants.
func TestATemplateChangeDoesNotUpgrade(t *testing.T) {
	w := newWorld(t)
	var ids []string
	demo, err := w.eks().DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("demo")})
	w.check(demo, err)
	ids = demo.Cluster.ResourcesVpcConfig.SubnetIds
	_, err = w.eks().CreateCluster(t.Context(), &eks.CreateClusterInput{Name: aws.String("c1"), Version: aws.String("1.32"), RoleArn: demo.Cluster.RoleArn, ResourcesVpcConfig: &ekstypes.VpcConfigRequest{SubnetIds: ids}})
	w.check(nil, err)
	w.clock.Advance(5e9)
	pool := func(instanceType, version string) reconciler.Desired {
		p := nodegroupPool("ng", 1)
		p.Nodegroup.ClusterName, p.Nodegroup.Cluster.Name, p.Nodegroup.Version = "c1", "c1", version
		p.Nodegroup.AMIType = "BOTTLEROCKET_x86_64"
		p.LaunchTemplate.Data.InstanceType = instanceType
		return target("blue", p)
	}
	w.settle(pool("m5.large", "1.32"))
	_, err = w.eks().UpdateClusterVersion(t.Context(), &eks.UpdateClusterVersionInput{Name: aws.String("c1"), Version: aws.String("1.33")})
	w.check(nil, err)
	w.clock.Advance(20 * 60e9)
	w.settle(pool("m5.xlarge", "1.32"))
	has := func() string {
		n, err := w.eks().DescribeNodegroup(t.Context(), &eks.DescribeNodegroupInput{ClusterName: aws.String("c1"), NodegroupName: aws.String("ng")})
		w.check(n, err)
		return aws.ToString(n.Nodegroup.Version)
	}
	if got := has(); got != "1.32" {
		t.Errorf("the nodegroup is on %s, want 1.32", got)
	}
	w.srv.ResetCalls()
	w.settle(pool("m5.xlarge", "1.33"))
	if got := has(); got != "1.33" || w.srv.CallCounts()["eks:UpdateNodegroupVersion"] != 1 {
		t.Errorf("the nodegroup is on %s after %v", got, w.srv.CallCounts())
	}
}

// A warm pool's capacity that Git drops is taken away, once: EKS keeps what a request
// leaves out, and says -1 where there is none.
func TestAWarmPoolsCapacityGoesWithItsField(t *testing.T) {
	w := newWorld(t)
	warm := func(most *int32) reconciler.Desired {
		p := nodegroupPool("ng", 2)
		p.Nodegroup.WarmPool = &intent.NodegroupWarmPool{Enabled: ptr(true), MaxGroupPreparedCapacity: most}
		return target("blue", p)
	}
	for _, step := range []struct {
		most    *int32
		updates int
	}{{ptr(int32(4)), 0}, {nil, 1}, {ptr(int32(-1)), 0}, {ptr(int32(3)), 1}} {
		w.srv.ResetCalls()
		w.settle(warm(step.most))
		w.must(reconciler.Apply, warm(step.most))
		if n := w.srv.CallCounts()["eks:UpdateNodegroupConfig"]; n != step.updates {
			t.Errorf("to %v: %d updates, want %d", step.most, n, step.updates)
		}
	}
}

// An update that a disruption budget stops is told with what to do, not tried again
// by itself, and tried with force once Git says so.
func TestAForcedUpdate(t *testing.T) {
	w := newWorld(t)
	pool := nodegroupPool("ng", 2)
	w.settle(target("blue", pool))
	w.srv.Faults().Nodegroups.Add(emueks.NodegroupFault{Evictions: true})
	after := func(force bool) reconciler.Desired {
		p := nodegroupPool("ng", 2)
		p.LaunchTemplate.Data.InstanceType, p.Nodegroup.Force = "m5.xlarge", force
		return target("blue", p)
	}
	w.srv.ResetCalls()
	var r *plan.Report
	for range 12 {
		r = w.must(reconciler.Apply, after(false))[0]
		w.clock.Advance(5e9)
	}
	text := whole(r)
	if n := w.srv.CallCounts()["eks:UpdateNodegroupVersion"]; n != 1 || !strings.Contains(text, "nodegroup-update-failed") || !strings.Contains(text, "spec.nodegroup.force") {
		t.Fatalf("%d updates; %s", n, text)
	}
	w.settle(after(true))
	if n := w.srv.CallCounts()["eks:UpdateNodegroupVersion"]; n != 2 {
		t.Errorf("%d updates, want 2", n)
	}
}

// Health issues come with what to do about them, in the plan and in the status.
func TestHealthOfANodegroup(t *testing.T) {
	w := newWorld(t)
	blue := target("blue", nodegroupPool("ng", 1))
	w.settle(blue)
	remove := w.srv.Faults().Nodegroups.Add(emueks.NodegroupFault{Issue: "InsufficientFreeAddresses", Message: "no addresses left", Resources: []string{"subnet-1"}})
	r := w.must(reconciler.Apply, blue)[0]
	n := r.Pools[0].Nodegroup
	if n == nil || n.Status != "DEGRADED" || len(n.Health) != 1 || n.Health[0].Code != "InsufficientFreeAddresses" || !strings.Contains(n.Health[0].Hint, "free addresses") {
		t.Errorf("status %+v", n)
	}
	if text := whole(r); !strings.Contains(text, "nodegroup-degraded") || !strings.Contains(text, "too few free addresses") {
		t.Errorf("diagnostics %s", text)
	}
	s := r.Pools[0]
	if c := s.Ready(); s.FailureReason != "nodegroup-degraded" || s.FailureCause == "" || !strings.Contains(s.FailureMessage, "no addresses left; a subnet has too few") || c.Message != s.FailureMessage || s.Converged {
		t.Errorf("%+v", s)
	}
	// A step that is held beside it hides nothing.
	held := target("blue", nodegroupPool("ng", 1))
	held.Set.Pools[0].Nodegroup.MaxSize.Value, held.Set.Pools[0].Paused = 9, true
	if s = w.must(reconciler.Apply, held)[0].Pools[0]; s.FailureReason != "nodegroup-degraded" || !strings.Contains(s.Ready().Message, "no addresses left") {
		t.Errorf("beside a held step: %+v", s)
	}
	remove()
	w.settle(blue)
}

// A pool with an image of its own goes to another one by its template's version.
func TestAPoolWithItsOwnImageIsUpgraded(t *testing.T) {
	w := newWorld(t)
	pool := func(version string) reconciler.Desired {
		p := nodegroupPool("ng", 1)
		p.Nodegroup.AMIType = ""
		p.LaunchTemplate.Image = intent.Lookup{Kind: intent.ImageForEKS, Name: "AmazonLinux2023", Version: version, InstanceType: "m5.large"}
		p.LaunchTemplate.Data.UserData = ""
		return target("blue", p)
	}
	w.settle(pool("1.33"))
	w.srv.ResetCalls()
	w.settle(pool("1.34"))
	n := w.srv.CallCounts()
	if n["eks:UpdateNodegroupVersion"] != 1 || n["ec2:CreateLaunchTemplateVersion"] != 1 || n["eks:CreateNodegroup"] != 0 {
		t.Errorf("calls %v", n)
	}
}

// A version update that is stopped at any call, however, ends the same way.
func TestAVersionUpdateStoppedAtAnyCall(t *testing.T) {
	t.Parallel()
	before := target("blue", nodegroupPool("ng", 1))
	pool := nodegroupPool("ng", 1)
	pool.LaunchTemplate.Data.InstanceType = "m5.xlarge"
	pool.Nodegroup.Labels = map[string]string{"a": "1"}
	after := target("blue", pool)
	calm := newWorld(t)
	calm.settle(before)
	calm.srv.ResetCalls()
	calm.settle(after)
	all := calm.srv.Calls()
	for name, fault := range map[string]awsemu.Fault{
		"cut before":  {Kind: awsemu.CutBefore},
		"answer lost": {Kind: awsemu.LoseAnswer},
		"throttled":   {Kind: awsemu.Throttled},
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[string]int{}
			for _, c := range all {
				n := seen[c.Operation]
				seen[c.Operation]++
				if !c.Write {
					continue
				}
				w := newWorld(t)
				w.settle(before)
				f := fault
				f.Service, f.Operation, f.After = c.Service, c.Operation, n
				w.srv.Faults().Add(f)
				w.srv.ResetCalls()
				for range 3 {
					_, _ = w.pass(reconciler.Apply, after) // may fail: that is the point
					w.restart()
				}
				w.settle(after)
				counts := map[string]int{}
				for _, c := range w.srv.Calls() {
					if c.ErrorCode == "" && (!c.Lost || name != "cut before") {
						counts[c.Operation]++
					}
				}
				if got := fmt.Sprint(counts["CreateLaunchTemplateVersion"], counts["UpdateNodegroupConfig"], counts["UpdateNodegroupVersion"]); got != "1 1 1" {
					t.Errorf("%s at %s: versions, config and version updates %s", name, c.Operation, got)
				}
			}
		})
	}
}

// Where the account has instance metadata show tags, EKS refuses a nodegroup whose
// template says nothing of it: the pool says what the cause is and the way out, and
// the way out is one.
func TestTheAccountsMetadataDefaultIsExplained(t *testing.T) {
	w := newWorld(t)
	modified, err := w.ec2().ModifyInstanceMetadataDefaults(t.Context(), &ec2.ModifyInstanceMetadataDefaultsInput{InstanceMetadataTags: "enabled"})
	w.check(modified, err)
	pool := nodegroupPool("ng", 1)
	pool.LaunchTemplate.Data.TagSpecifications = []intent.TemplateTagSpecification{{ResourceType: "instance", Tags: []intent.Tag{{Key: "kubernetes.io/cluster/demo", Value: "owned"}}}}
	for range 2 {
		w.must(reconciler.Apply, target("blue", pool))
	}
	if f := w.must(reconciler.Apply, target("blue", pool))[0].Failures(); len(f) != 1 || f[0].Err.Kind != observed.Invalid || !strings.Contains(f[0].Err.Message, "the account's default in the region") {
		t.Errorf("failures: %v", f)
	}
	pool.LaunchTemplate.Data.MetadataOptions = &intent.MetadataOptions{InstanceMetadataTags: "disabled"}
	w.settle(target("blue", pool))
}
