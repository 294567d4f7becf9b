package reconciler_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu/asg"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

const (
	terminating = "autoscaling:EC2_INSTANCE_TERMINATING"
	launching   = "autoscaling:EC2_INSTANCE_LAUNCHING"
)

func drainHook(timeout int32) intent.LifecycleHook {
	return intent.LifecycleHook{Name: "drain", LifecycleTransition: terminating, HeartbeatTimeout: timeout, DefaultResult: "CONTINUE"}
}

// hooked is a target of one pool of each kind with these hooks.
func hooked(hooks ...intent.LifecycleHook) reconciler.Desired {
	web, ng := groupPool("web", "m5.large", 1), nodegroupPool("ng", 1)
	web.Group.LifecycleHooks, ng.Nodegroup.LifecycleHooks = hooks, hooks
	return target("blue", web, ng)
}

// completeHooks has a program listen that lets every machine go on.
func (w *world) completeHooks() { w.srv.Faults().Hooks.Add(asg.HookListener{Result: "CONTINUE"}) }

// hooks are those of a group as somebody else reads them, and in short, without those that EKS
// keeps on the group of a nodegroup.
func (w *world) hooks(group string) []string {
	w.t.Helper()
	out, err := w.groups().DescribeLifecycleHooks(context.Background(), &autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: aws.String(group)})
	if err != nil {
		w.t.Fatal(err)
	}
	var text []string
	for _, h := range out.LifecycleHooks {
		if strings.HasSuffix(aws.ToString(h.LifecycleHookName), "-LC-Hook") {
			continue
		}
		text = append(text, strings.TrimRight(fmt.Sprintf("%s %d %s %s", aws.ToString(h.LifecycleHookName), aws.ToInt32(h.HeartbeatTimeout), aws.ToString(h.DefaultResult),
			aws.ToString(h.NotificationMetadata)), " "))
	}
	slices.Sort(text)
	return text
}

func (w *world) putHook(group, name string, timeout int32) {
	w.t.Helper()
	w.check(w.groups().PutLifecycleHook(context.Background(), &autoscaling.PutLifecycleHookInput{AutoScalingGroupName: aws.String(group),
		LifecycleHookName: aws.String(name), LifecycleTransition: aws.String(launching), HeartbeatTimeout: aws.Int32(timeout)}))
}

func (w *world) deleteHook(group, name string) {
	w.t.Helper()
	w.check(w.groups().DeleteLifecycleHook(context.Background(), &autoscaling.DeleteLifecycleHookInput{AutoScalingGroupName: aws.String(group), LifecycleHookName: aws.String(name)}))
}

// behind is the group of the nodegroup ng.
func (w *world) behind() string {
	w.t.Helper()
	out, err := w.groups().DescribeAutoScalingGroups(context.Background(), &autoscaling.DescribeAutoScalingGroupsInput{
		Filters: []astypes.Filter{{Name: aws.String("tag:eks:nodegroup-name"), Values: []string{"ng"}}}})
	if err != nil || len(out.AutoScalingGroups) != 1 {
		w.t.Fatalf("the group behind ng: %v, %v", out, err)
	}
	return aws.ToString(out.AutoScalingGroups[0].AutoScalingGroupName)
}

// Declared hooks are kept as Git says, on a pool's own group and on the one behind
// a nodegroup; what somebody else puts there stays.
func TestLifecycleHooksFollowGit(t *testing.T) {
	boot := intent.LifecycleHook{Name: "boot", LifecycleTransition: launching}
	noted := drainHook(60)
	noted.NotificationMetadata = "note"
	tests := map[string]struct {
		before, after []intent.LifecycleHook
		drift         func(w *world, group string)
		want          []string
		writes        map[string]int // of one of the two groups
	}{
		"made with the group": {after: []intent.LifecycleHook{drainHook(60)}, before: []intent.LifecycleHook{drainHook(60)}, want: []string{"drain 60 CONTINUE"}},
		"declared later":      {after: []intent.LifecycleHook{drainHook(60)}, want: []string{"drain 60 CONTINUE"}, writes: map[string]int{"PutLifecycleHook": 1, "CreateOrUpdateTags": 1}},
		"with AWS's defaults": {after: []intent.LifecycleHook{boot}, want: []string{"boot 3600 ABANDON"}, writes: map[string]int{"PutLifecycleHook": 1, "CreateOrUpdateTags": 1}},
		"another timeout": {before: []intent.LifecycleHook{drainHook(60)}, after: []intent.LifecycleHook{drainHook(90)}, want: []string{"drain 90 CONTINUE"},
			writes: map[string]int{"PutLifecycleHook": 1}},
		"a member taken away": {before: []intent.LifecycleHook{noted}, after: []intent.LifecycleHook{drainHook(60)}, want: []string{"drain 60 CONTINUE"},
			writes: map[string]int{"PutLifecycleHook": 1, "DeleteLifecycleHook": 1}},
		"dropped": {before: []intent.LifecycleHook{boot, drainHook(60)}, after: []intent.LifecycleHook{drainHook(60)}, want: []string{"drain 60 CONTINUE"},
			writes: map[string]int{"DeleteLifecycleHook": 1, "CreateOrUpdateTags": 1}},
		"all dropped": {before: []intent.LifecycleHook{boot, drainHook(60)}, writes: map[string]int{"DeleteLifecycleHook": 2, "DeleteTags": 1}},
		"one for another": {before: []intent.LifecycleHook{boot}, after: []intent.LifecycleHook{drainHook(60)}, want: []string{"drain 60 CONTINUE"},
			writes: map[string]int{"DeleteLifecycleHook": 1, "PutLifecycleHook": 1, "CreateOrUpdateTags": 2}},
		"one of somebody else's": {before: []intent.LifecycleHook{boot}, drift: func(w *world, g string) { w.putHook(g, "foreign", 100) }, want: []string{"foreign 100 ABANDON"},
			writes: map[string]int{"DeleteLifecycleHook": 1, "DeleteTags": 1}},
		"removed by hand": {before: []intent.LifecycleHook{drainHook(60)}, after: []intent.LifecycleHook{drainHook(60)}, want: []string{"drain 60 CONTINUE"},
			drift: func(w *world, g string) { w.deleteHook(g, "drain") }, writes: map[string]int{"PutLifecycleHook": 1}},
		"changed by hand": {before: []intent.LifecycleHook{drainHook(60)}, after: []intent.LifecycleHook{drainHook(60)}, want: []string{"drain 60 CONTINUE"},
			drift: func(w *world, g string) { w.putHook(g, "drain", 300) }, writes: map[string]int{"PutLifecycleHook": 1}},
		"dropped and removed by hand": {before: []intent.LifecycleHook{drainHook(60)}, drift: func(w *world, g string) { w.deleteHook(g, "drain") },
			writes: map[string]int{"DeleteTags": 1}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.completeHooks()
			w.settle(hooked(tt.before...))
			groups := []string{"web", w.behind()}
			for _, g := range groups {
				if tt.drift != nil {
					tt.drift(w, g)
				}
			}
			w.restart()
			w.srv.ResetCalls()
			w.settle(hooked(tt.after...))
			got := map[string]int{}
			for _, op := range w.wrote() {
				got[op]++
			}
			want := map[string]int{}
			for op, n := range tt.writes {
				want[op] = n * len(groups)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("writes (-want +got):\n%s", d)
			}
			for _, g := range groups {
				if d := cmp.Diff(tt.want, w.hooks(g)); d != "" {
					t.Errorf("hooks of %s (-want +got):\n%s", g, d)
				}
			}
			w.srv.ResetCalls()
			w.must(reconciler.Apply, hooked(tt.after...))
			if wrote := w.wrote(); len(wrote) > 0 {
				t.Errorf("writes after convergence: %v", wrote)
			}
		})
	}
}

// Hooks cost one read for each group that declares some in ten minutes, counted
// apart, and one more where Git changes them.
func TestHooksAreReadEachTenMinutesAndWhenGitChanges(t *testing.T) {
	w := newWorld(t)
	plain := groupPool("plain", "m5.large", 1)
	with := func(timeout int32) reconciler.Desired {
		web := groupPool("web", "m5.large", 1)
		web.Group.LifecycleHooks = []intent.LifecycleHook{drainHook(timeout)}
		return target("blue", web, plain)
	}
	reads := func() int { return w.srv.CallCounts()["autoscaling:DescribeLifecycleHooks"] }
	w.settle(with(60))
	w.clock.Advance(11 * time.Minute)
	w.srv.ResetCalls()
	for range 30 {
		if r := w.must(reconciler.Apply, with(60))[0]; !r.Converged() {
			t.Fatalf("not converged: %v", r.Plan.Steps)
		}
		w.clock.Advance(time.Minute)
	}
	if n := reads(); n != 3 {
		t.Errorf("reads in 30 minutes: got %d, want 3", n)
	}
	counts := w.srv.CallCounts()
	if _, writes := w.calls(); writes != 0 || counts["autoscaling:DescribeAutoScalingGroups"] != 30 || counts["ec2:DescribeLaunchTemplates"] != 30 {
		t.Errorf("calls: got %v, want 30 pages of groups, 30 of templates and no write", counts)
	}
	w.must(reconciler.Apply, with(60))
	w.srv.ResetCalls()
	w.must(reconciler.Apply, with(90))
	if n := reads(); n != 1 {
		t.Errorf("reads when Git changed: got %d, want 1", n)
	}
	if d := cmp.Diff([]string{"drain 90 CONTINUE"}, w.hooks("web")); d != "" {
		t.Errorf("hooks (-want +got):\n%s", d)
	}
}

func TestAPoolWhoseHooksCannotBeReadSaysWhichActionIsMissing(t *testing.T) {
	w := newWorld(t)
	w.settle(hooked(drainHook(60)))
	w.restart()
	allow := w.deny("autoscaling", "DescribeLifecycleHooks", "")
	w.srv.ResetCalls()
	r := w.must(reconciler.Apply, hooked(drainHook(90)))[0]
	want := map[string]string{"AWSMachinePool default/web": "autoscaling:DescribeLifecycleHooks", "AWSManagedMachinePool default/ng": "autoscaling:DescribeLifecycleHooks"}
	if d := cmp.Diff(want, blocked(r)); d != "" {
		t.Errorf("blocked (-want +got):\n%s", d)
	}
	if wrote := w.wrote(); len(wrote) > 0 {
		t.Errorf("written: %v", wrote)
	}
	allow()
	w.settle(hooked(drainHook(90)))
}

// Adopting records which hooks Git declares, so that the plan afterwards is empty.
func TestAdoptedHooksAreNotMadeAnew(t *testing.T) {
	w := newWorld(t)
	d := capaGroupTarget(t, secretBootstrap, "", "m5.large")
	w.capaGroup(d, capaSecret)
	w.putHook("web", "boot", 60)
	d.Set.Pools[0].Group.LifecycleHooks = []intent.LifecycleHook{{Name: "boot", LifecycleTransition: launching, HeartbeatTimeout: 60}}
	w.srv.ResetCalls()
	w.must(reconciler.Apply, adopting(d, ""))
	if diff := cmp.Diff([]string{"CreateOrUpdateTags", "CreateTags"}, w.wrote()); diff != "" {
		t.Errorf("adopting wrote (-want +got):\n%s", diff)
	}
	w.restart()
	if r := w.must(reconciler.PlanOnly, d)[0]; !r.Plan.Empty() {
		t.Errorf("the plan after adopting: %+v\n%v", r.Plan.Steps, r.Diagnostics)
	}
	d.Set.Pools[0].Group.LifecycleHooks = nil
	w.settle(d)
	if got := w.hooks("web"); len(got) != 0 {
		t.Errorf("hooks: got %v", got)
	}
}

// Any call of a change of hooks fails in any way: the next passes end with the same hooks, and somebody else's hook survives.
func TestHooksConvergeWhateverCallIsLost(t *testing.T) {
	t.Parallel()
	before := hooked(intent.LifecycleHook{Name: "boot", LifecycleTransition: launching, NotificationMetadata: "x"}, drainHook(60))
	after := hooked(intent.LifecycleHook{Name: "late", LifecycleTransition: launching}, drainHook(90), intent.LifecycleHook{Name: "x", LifecycleTransition: terminating})
	want := []string{"drain 90 CONTINUE", "foreign 100 ABANDON", "late 3600 ABANDON", "x 3600 ABANDON"}
	prepare := func() *world {
		w := newWorld(t)
		w.completeHooks()
		w.settle(before)
		w.putHook("web", "foreign", 100)
		w.putHook(w.behind(), "foreign", 100)
		w.srv.ResetCalls()
		return w
	}
	calm := prepare()
	calm.settle(after)
	seen := map[string]int{}
	for _, c := range calm.srv.Calls() {
		if strings.Contains(c.Operation, "Hook") || strings.Contains(c.Operation, "Tags") {
			seen[c.Operation]++
		}
	}
	if len(seen) != 4 {
		t.Fatalf("operations: got %v", seen)
	}
	for op, times := range seen {
		for n := range times {
			for i, kind := range slices.Sorted(maps.Keys(faultKinds)) {
				f := faultKinds[kind]
				if !sampled(2, n, i) {
					continue
				}
				w := prepare()
				f.Operation, f.After = op, n
				w.srv.Faults().Add(f)
				_, _ = w.pass(reconciler.Apply, after) // may fail: that is the point
				w.restart()
				if _, trouble := w.settled(after); trouble != "" {
					t.Fatalf("%s %d of %s: %s", kind, n, op, trouble)
				}
				if w.srv.Faults().Pending() > 0 {
					t.Errorf("%s %d of %s never struck", kind, n, op)
				}
				for _, g := range []string{"web", w.behind()} {
					if d := cmp.Diff(want, w.hooks(g)); d != "" {
						t.Errorf("%s %d of %s: hooks of %s (-want +got):\n%s", kind, n, op, g, d)
					}
					if tag := w.groupTag(g, observed.TagHooks); tag == "" {
						t.Errorf("%s %d of %s: %s has no record of its hooks", kind, n, op, g)
					}
				}
			}
		}
	}
}

// groupTag is the value of a group's tag.
func (w *world) groupTag(group, key string) string {
	w.t.Helper()
	for _, t := range w.group(group).Tags {
		if aws.ToString(t.Key) == key {
			return aws.ToString(t.Value)
		}
	}
	return ""
}
