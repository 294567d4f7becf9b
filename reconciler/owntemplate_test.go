package reconciler_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

const amazonLinux = "resolve:ssm:/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-"

// golden makes a launch template that is not weir's, with tags as if it were.
func (w *world) golden(name, arch, instanceType string) {
	w.t.Helper()
	_, err := w.ec2().CreateLaunchTemplate(context.Background(), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String(name),
		LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: aws.String(amazonLinux + arch), InstanceType: types.InstanceType(instanceType)}})
	if err != nil {
		w.t.Fatal(err)
	}
}

// anotherVersion makes a further version of a launch template that is not weir's.
func (w *world) anotherVersion(name string) {
	w.t.Helper()
	n := len(w.numbers(name))
	_, err := w.ec2().CreateLaunchTemplateVersion(context.Background(), &ec2.CreateLaunchTemplateVersionInput{LaunchTemplateName: aws.String(name), SourceVersion: aws.String("1"),
		LaunchTemplateData: &types.RequestLaunchTemplateData{KeyName: aws.String(fmt.Sprint("key-", n))}})
	if err != nil {
		w.t.Fatal(err)
	}
}

// bringing is a target with one pool that brings the launch template golden along.
func bringing(t testing.TB, annotations, spec string) reconciler.Desired {
	return target("blue", written(t, "web", "node.k8s.aws/launch-template-name: golden"+annotations, spec))
}

// foreign is what must never change of the templates that others made.
func (w *world) foreign() string {
	w.t.Helper()
	out, err := w.ec2().DescribeLaunchTemplates(context.Background(), &ec2.DescribeLaunchTemplatesInput{})
	if err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for _, t := range out.LaunchTemplates {
		all = append(all, fmt.Sprint(aws.ToString(t.LaunchTemplateName), aws.ToInt64(t.DefaultVersionNumber), len(t.Tags), w.numbers(aws.ToString(t.LaunchTemplateName))))
	}
	return strings.Join(all, "; ")
}

// ec2Writes are the writes to EC2 since the last reset, the tests' own left out.
func ec2Writes(calls []awsemu.Call) (out []string) {
	for _, c := range calls {
		if c.Write && c.Service == "ec2" && c.Operation != "CreateLaunchTemplateVersion" {
			out = append(out, c.Operation)
		}
	}
	return out
}

// From the first group to the last, through versions that move, a rollback and
// a pool that leaves Git with pruning on: the template stays as its owner has it.
func TestAForeignTemplateIsNeverWrittenTo(t *testing.T) {
	w := newWorld(t)
	w.golden("golden", "x86_64", "m5.large")
	w.srv.ResetCalls()
	w.settle(bringing(t, "", ""))
	made := w.foreign()
	for range 2 {
		w.anotherVersion("golden")
		w.clock.Advance(2 * time.Minute)
		before := w.srv.CallCounts()["autoscaling:StartInstanceRefresh"]
		w.settle(bringing(t, "", ""))
		if n := w.srv.CallCounts()["autoscaling:StartInstanceRefresh"] - before; n != 1 {
			t.Errorf("a version that moved: %d refreshes, want 1", n)
		}
	}
	w.settle(bringing(t, ", node.k8s.aws/launch-template-version: Default", ""))
	gone := bringing(t, "", "")
	gone.Set = &intent.Set{Pools: []intent.Pool{groupPool("other", "m5.large", 0)}}
	w.settle(gone)
	if got := ec2Writes(w.srv.Calls()); !slices.Equal(got, []string{"CreateLaunchTemplate"}) { // of the pool other
		t.Errorf("writes to EC2: %v", got)
	}
	if got, want := w.foreign(), strings.Replace(made, "[1]", "[1 2 3]", 1)+"; other"; !strings.HasPrefix(got, want) {
		t.Errorf("templates %s, want %s", got, want)
	}
}

// At rest nothing is written, and nothing beyond a resting fleet's reads is read
// but the templates themselves once a minute.
func TestPoolsWithForeignTemplatesAtRest(t *testing.T) {
	w := newWorld(t)
	w.golden("golden", "x86_64", "m5.large")
	var pools []intent.Pool
	for i := range 30 {
		pools = append(pools, written(t, fmt.Sprintf("web-%02d", i), "node.k8s.aws/launch-template-name: golden", ""))
	}
	all := target("blue", pools...)
	w.settle(all)
	w.must(reconciler.Apply, all)
	for _, tt := range []struct {
		wait time.Duration
		want map[string]int
	}{
		{0, map[string]int{"autoscaling:DescribeAutoScalingGroups": 1, "ec2:DescribeLaunchTemplates": 1}},
		{61 * time.Second, map[string]int{"autoscaling:DescribeAutoScalingGroups": 1, "ec2:DescribeLaunchTemplates": 2,
			"ec2:DescribeSubnets": 1}}, // whether the cluster has subnets by now
		{0, map[string]int{"autoscaling:DescribeAutoScalingGroups": 1, "ec2:DescribeLaunchTemplates": 1}},
	} {
		w.clock.Advance(tt.wait)
		w.srv.ResetCalls()
		w.must(reconciler.Apply, all)
		if d := cmp.Diff(tt.want, w.srv.CallCounts()); d != "" {
			t.Errorf("calls after %s (-want +got):\n%s", tt.wait, d)
		}
	}
}

// Any call fails while weir rolls out a moved template: the group ends on the new version, and the template is unchanged.
func TestFaultsWhileAForeignTemplateIsRolledOut(t *testing.T) {
	t.Parallel()
	spec := "mixedInstancesPolicy: {overrides: [{instanceType: m5.large}, {instanceType: m6g.large}]}"
	after := bringing(t, ", node.k8s.aws/launch-template-name.arm64: golden-arm", spec)
	before := func(t testing.TB) *world {
		w := newWorld(t)
		w.golden("golden", "x86_64", "m5.large")
		w.golden("golden-arm", "arm64", "m6g.large")
		w.settle(after)
		w.anotherVersion("golden")
		w.anotherVersion("golden-arm")
		w.restart()
		w.srv.ResetCalls()
		return w
	}
	calm := before(t)
	calm.settle(after)
	want, all := calm.made()+calm.foreign(), calm.srv.Calls()
	if n := calm.srv.CallCounts()["autoscaling:StartInstanceRefresh"]; n != 1 {
		t.Errorf("undisturbed: %d refreshes, want 1", n)
	}
	for name, fault := range faultKinds {
		t.Run(name, func(t *testing.T) {
			seen := map[string]bool{}
			for _, c := range all {
				key := c.Service + ":" + c.Operation
				if seen[key] {
					continue
				}
				seen[key] = true
				w := before(t)
				f := fault
				f.Service, f.Operation = c.Service, c.Operation
				w.srv.Faults().Add(f)
				w.cut = f.Kind == awsemu.CutBefore
				for range 2 {
					_, _ = w.pass(reconciler.Apply, after) // may fail: that is the point
					w.restart()
				}
				w.settle(after)
				if got := w.made() + w.foreign(); got != want {
					t.Errorf("%s of %s: %s, want %s", name, key, got, want)
				}
			}
		})
	}
}

// A template that weir may not look at blocks its pool and no other.
func TestAForeignTemplateThatMayNotBeReadBlocksItsPool(t *testing.T) {
	w := newWorld(t)
	w.golden("golden", "x86_64", "m5.large")
	both := target("blue", written(t, "web", "node.k8s.aws/launch-template-name: golden", ""), groupPool("own", "m5.large", 1))
	w.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Service: "ec2", Operation: "DescribeLaunchTemplateVersions", Code: "UnauthorizedOperation", Status: 403, Times: 1})
	r := w.must(reconciler.Apply, both)[0]
	if !slices.ContainsFunc(r.Diagnostics, func(d diag.Diagnostic) bool { return d.Code == "access-denied" && strings.Contains(d.Object, "web") }) {
		t.Errorf("diagnostics %v", r.Diagnostics)
	}
	for _, o := range r.Outcomes {
		if o.Step.Pool != "default/own" {
			t.Errorf("step %s %s of %s", o.Step.Verb, o.Step.Name, o.Step.Pool)
		}
	}
}
