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
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/awsemu/asg"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// drained is a pool that goes by draining.
func drained(name string, replicas int32) intent.Pool {
	p := groupPool(name, "m5.large", replicas)
	p.Drain = true
	return p
}

// held is everything in the account that could leak: groups, templates and
// nodegroups, whoever owns them.
func (w *world) held() []string {
	w.t.Helper()
	ctx := context.Background()
	var out []string
	for p := autoscaling.NewDescribeAutoScalingGroupsPaginator(w.groups(), &autoscaling.DescribeAutoScalingGroupsInput{}); p.HasMorePages(); {
		groups, err := p.NextPage(ctx)
		w.check(nil, err)
		for _, g := range groups.AutoScalingGroups {
			out = append(out, fmt.Sprintf("group %s of %d", aws.ToString(g.AutoScalingGroupName), len(g.Instances)))
		}
	}
	templates, err := w.ec2().DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{})
	w.check(nil, err)
	for _, t := range templates.LaunchTemplates {
		out = append(out, "template "+aws.ToString(t.LaunchTemplateName))
	}
	nodegroups, err := w.eks().ListNodegroups(ctx, &eks.ListNodegroupsInput{ClusterName: aws.String("demo")})
	w.check(nil, err)
	for _, n := range nodegroups.Nodegroups {
		out = append(out, "nodegroup "+n)
	}
	slices.Sort(out)
	return out
}

// causes are why machines of a group were ended, in AWS's words.
func (w *world) causes(group string) string {
	w.t.Helper()
	out, err := w.groups().DescribeScalingActivities(context.Background(), &autoscaling.DescribeScalingActivitiesInput{
		AutoScalingGroupName: aws.String(group), IncludeDeletedGroups: aws.Bool(true)})
	w.check(nil, err)
	text := ""
	for _, a := range out.Activities {
		if strings.HasPrefix(aws.ToString(a.Description), "Terminating") {
			text += aws.ToString(a.Cause) + "\n"
		}
	}
	return text
}

// A group is deleted with its machines, or scaled to zero first where the pool
// says so; either way without a pass that waits, and its template after it.
func TestAGroupIsDeletedAtOnceOrDrainedFirst(t *testing.T) {
	for name, tt := range map[string]struct {
		drain       bool
		first       []string // writes of the first pass
		then, cause string
	}{
		"force": {false, []string{"DeleteAutoScalingGroup"}, "DeleteLaunchTemplate", "a user request force deleted AutoScalingGroup"},
		"drain": {true, []string{"UpdateAutoScalingGroup"}, "DeleteAutoScalingGroup DeleteLaunchTemplate", "a difference between desired and actual capacity"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			old := groupPool("old", "m5.large", 2)
			old.Drain = tt.drain
			web := groupPool("web", "m5.large", 1)
			w.settle(target("blue", web, old))
			blue := target("blue", web)
			w.restart()
			w.srv.ResetCalls()
			r := w.must(reconciler.Apply, blue)[0]
			if d := cmp.Diff(tt.first, w.wrote()); d != "" {
				t.Errorf("the first pass wrote (-want +got):\n%s", d)
			}
			if s := r.Plan.Steps[0]; s.Verb != step.Delete || !s.Disruptive || s.Instances != 2 {
				t.Errorf("the step: got %+v", s)
			}
			w.srv.ResetCalls()
			for range 3 { // the clock stands still, and so do the machines
				w.restart()
				w.must(reconciler.Apply, blue)
			}
			if wrote := w.wrote(); len(wrote) > 0 {
				t.Errorf("while the machines go, weir wrote %v", wrote)
			}
			w.settle(blue)
			if d := cmp.Diff(tt.then, strings.Join(w.wrote(), " ")); d != "" {
				t.Errorf("afterwards it wrote (-want +got):\n%s", d)
			}
			if got := w.causes("old"); strings.Count(got, tt.cause) != 2 {
				t.Errorf("the machines ended because:\n%s", got)
			}
			if d := cmp.Diff([]string{"group web of 1", "template web"}, w.held()); d != "" {
				t.Errorf("left (-want +got):\n%s", d)
			}
		})
	}
}

// AWS deletes a group by force whatever protects its machines; draining waits and says for what.
func TestWhatStandsInTheWayOfADeletion(t *testing.T) {
	ctx := context.Background()
	protect := func(w *world) {
		w.check(w.groups().UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String("old"), NewInstancesProtectedFromScaleIn: aws.Bool(true)}))
		w.replaceInstances("old")
	}
	suspend := func(w *world) {
		w.check(w.groups().SuspendProcesses(ctx, &autoscaling.SuspendProcessesInput{AutoScalingGroupName: aws.String("old"), ScalingProcesses: []string{"Terminate"}}))
	}
	warm := func(w *world) {
		w.check(w.groups().PutWarmPool(ctx, &autoscaling.PutWarmPoolInput{AutoScalingGroupName: aws.String("old"), MinSize: aws.Int32(1)}))
	}
	retain := func(w *world) {
		w.check(w.groups().PutLifecycleHook(ctx, &autoscaling.PutLifecycleHookInput{AutoScalingGroupName: aws.String("old"), LifecycleHookName: aws.String("h"), LifecycleTransition: aws.String("autoscaling:EC2_INSTANCE_TERMINATING")}))
		w.check(w.groups().UpdateAutoScalingGroup(ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String("old"),
			InstanceLifecyclePolicy: &astypes.InstanceLifecyclePolicy{RetentionTriggers: &astypes.RetentionTriggers{TerminateHookAbandon: "retain"}}}))
		w.srv.Faults().Hooks.Add(asg.HookListener{Group: "old", Result: "ABANDON"})
	}
	end := func(w *world) {
		for _, in := range w.group("old").Instances {
			w.check(w.groups().TerminateInstanceInAutoScalingGroup(ctx, &autoscaling.TerminateInstanceInAutoScalingGroupInput{InstanceId: in.InstanceId, ShouldDecrementDesiredCapacity: aws.Bool(false)}))
		}
	}
	untag := func(w *world) {
		w.check(w.groups().DeleteTags(ctx, &autoscaling.DeleteTagsInput{Tags: []astypes.Tag{{Key: aws.String(observed.TagDelete), ResourceId: aws.String("old"), ResourceType: aws.String("auto-scaling-group")}}}))
	}
	resume := func(w *world) {
		w.check(w.groups().ResumeProcesses(ctx, &autoscaling.ResumeProcessesInput{AutoScalingGroupName: aws.String("old"), ScalingProcesses: []string{"Terminate"}}))
	}
	for name, tt := range map[string]struct {
		drain   bool
		prepare func(*world)
		waits   string // what the report says while it waits
		mend    func(*world)
	}{
		"protected, by force":                {prepare: protect},
		"Terminate suspended, by force":      {prepare: suspend},
		"a warm pool, by force":              {prepare: warm},
		"a warm pool, drained":               {drain: true, prepare: warm},
		"protected, drained":                 {drain: true, prepare: protect, waits: "are protected from scale-in", mend: untag},
		"Terminate suspended, drained":       {drain: true, prepare: suspend, waits: "process Terminate is suspended", mend: resume},
		"retained, drained":                  {drain: true, prepare: retain, waits: "are retained until somebody ends them", mend: end},
		"Terminate suspended, tag taken off": {drain: true, prepare: suspend, waits: "process Terminate is suspended", mend: untag},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			old := groupPool("old", "m5.large", 2)
			old.Drain = tt.drain
			web := groupPool("web", "m5.large", 1)
			w.settle(target("blue", web, old))
			tt.prepare(w)
			blue := target("blue", web)
			if tt.waits != "" {
				for range 4 {
					w.must(reconciler.Apply, blue)
					w.clock.Advance(time.Minute)
				}
				w.srv.ResetCalls()
				r := w.must(reconciler.Apply, blue)[0]
				if !strings.Contains(fmt.Sprint(r.Diagnostics), tt.waits) || !hasCode(r, "drain-waits") {
					t.Errorf("diagnostics: got %v", r.Diagnostics)
				}
				if wrote := w.wrote(); len(wrote) > 0 {
					t.Errorf("while it waits, weir wrote %v", wrote)
				}
				if n := len(w.group("old").Instances); n != 2 {
					t.Errorf("machines: got %d, want 2", n)
				}
				tt.mend(w)
			}
			w.settle(blue)
			if d := cmp.Diff([]string{"group web of 1", "template web"}, w.held()); d != "" {
				t.Errorf("left (-want +got):\n%s", d)
			}
		})
	}
}

// AWS's own protection against deletion is not lowered. A group that AWS would not let
// go is refused by name before anything of it is changed; one that it lets go without
// machines goes that way where the pool says so.
func TestDeletionProtectionIsRespected(t *testing.T) {
	type update = autoscaling.UpdateAutoScalingGroupInput
	all, force := update{DeletionProtection: "prevent-all-deletion"}, update{DeletionProtection: "prevent-force-deletion"}
	retain := update{InstanceLifecyclePolicy: &astypes.InstanceLifecyclePolicy{RetentionTriggers: &astypes.RetentionTriggers{TerminateHookAbandon: "retain"}}}
	free := update{DeletionProtection: "none", InstanceLifecyclePolicy: &astypes.InstanceLifecyclePolicy{RetentionTriggers: &astypes.RetentionTriggers{TerminateHookAbandon: "terminate"}}}
	for name, tt := range map[string]struct {
		update  update
		drain   bool
		size    int32
		refused string
	}{
		"all, by force":           {all, false, 1, "prevent-all-deletion"},
		"all, drained":            {all, true, 1, "prevent-all-deletion"},
		"all, empty":              {all, false, 0, "prevent-all-deletion"},
		"force, by force":         {force, false, 1, "prevent-force-deletion"},
		"force, drained":          {force, true, 2, ""},
		"force, empty":            {force, false, 0, ""},
		"retained, by force":      {retain, false, 1, "lifecycle policy retains"},
		"retained, drained":       {retain, true, 2, ""},
		"retained, without any":   {retain, false, 0, ""},
		"no protection, by force": {free, false, 1, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			web, old := groupPool("web", "m5.large", 1), groupPool("old", "m5.large", tt.size)
			old.Drain = tt.drain
			w.settle(target("blue", web, old))
			protect := func(in update) {
				in.AutoScalingGroupName = aws.String("old")
				w.check(w.groups().UpdateAutoScalingGroup(context.Background(), &in))
			}
			protect(tt.update)
			if tt.refused != "" {
				w.srv.ResetCalls()
				for range 3 {
					r := w.must(reconciler.Apply, target("blue", web))[0]
					if !hasCode(r, "deletion-protected") || !strings.Contains(fmt.Sprint(r.Diagnostics), tt.refused) || r.Converged() {
						t.Errorf("nobody is told: %v", r.Diagnostics)
					}
					w.clock.Advance(time.Minute)
				}
				if wrote := w.wrote(); len(wrote) > 0 {
					t.Errorf("weir wrote %v", wrote)
				}
				protect(free)
			}
			w.settle(target("blue", web))
			if d := cmp.Diff([]string{"group web of 1", "template web"}, w.held()); d != "" {
				t.Errorf("left (-want +got):\n%s", d)
			}
		})
	}
}

// An approval to delete an empty group does not cover machines: with some in it, it is
// another plan.
func TestTheDigestTellsWhetherADeletionEndsMachines(t *testing.T) {
	w := newWorld(t)
	web, old := groupPool("web", "m5.large", 1), groupPool("old", "m5.large", 0)
	w.settle(target("blue", web, old))
	empty := w.must(reconciler.PlanOnly, target("blue", web))[0].Plan
	w.check(w.groups().SetDesiredCapacity(context.Background(), &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: aws.String("old"), DesiredCapacity: aws.Int32(2)}))
	if full := w.must(reconciler.PlanOnly, target("blue", web))[0].Plan; full.Digest() == empty.Digest() {
		t.Errorf("one digest for %+v and %+v", empty.Steps, full.Steps)
	}
	w.settle(target("blue", web))
}

// A pool that comes back to Git while it is drained gets its size and its machines.
func TestAPoolThatComesBackWhileItIsDrained(t *testing.T) {
	w := newWorld(t)
	web, old := groupPool("web", "m5.large", 1), drained("old", 2)
	w.settle(target("blue", web, old))
	w.must(reconciler.Apply, target("blue", web))
	w.clock.Advance(time.Second)
	w.settle(target("blue", web, old))
	if n := w.srv.CallCounts()["autoscaling:DeleteAutoScalingGroup"]; n != 0 {
		t.Errorf("deletions: got %d", n)
	}
	if g := w.group("old"); len(g.Instances) != 2 || aws.ToInt32(g.MaxSize) != 10 {
		t.Errorf("the group has %d machines and a maximum of %d", len(g.Instances), aws.ToInt32(g.MaxSize))
	}
}

// One that is drained was within its target's limit when that began: it goes on,
// and neither it nor what is left of it stands in the way of the next.
func TestWhatGoesDoesNotCountAgain(t *testing.T) {
	for name, drain := range map[string]bool{"force": false, "drain": true} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			pools := make([]intent.Pool, 5) // of which one may go at a time
			for i := range pools {
				pools[i] = groupPool(fmt.Sprintf("pool-%d", i), "m5.large", 1)
				pools[i].Drain = drain
			}
			w.settle(target("blue", pools...))
			w.must(reconciler.Apply, target("blue", pools[1:]...))
			// The first is on its way, and stays so: the clock stands still.
			if r := w.must(reconciler.Apply, target("blue", pools[2:]...))[0]; hasCode(r, "prune-refused") {
				t.Errorf("the second is refused: %v", r.Diagnostics)
			}
			if r := w.must(reconciler.PlanOnly, target("blue", pools[4:]...))[0]; !hasCode(r, "prune-refused") {
				t.Errorf("two more at once are not refused: %v", r.Diagnostics)
			}
			w.settle(target("blue", pools[2:]...))
			if d := cmp.Diff([]string{"group pool-2 of 1", "group pool-3 of 1", "group pool-4 of 1", "template pool-2", "template pool-3", "template pool-4"}, w.held()); d != "" {
				t.Errorf("left (-want +got):\n%s", d)
			}
		})
	}
}

// A resource that is marked to stay does so although its manifest is gone, whatever the
// process remembers and whoever allows what.
func TestAPoolThatIsNotPrunedStaysWithoutItsManifest(t *testing.T) {
	w := newWorld(t)
	web, old, ng := groupPool("web", "m5.large", 1), groupPool("old", "m5.large", 1), nodegroupPool("ng", 1)
	old.PruneDisabled, ng.PruneDisabled = true, true
	w.settle(target("blue", web, old, ng))
	blue := target("blue", web)
	blue.Policy.Prune.Count = 10
	blue.Policy.Prune.Allowed = map[string]bool{"default/old": true, "default/ng": true}
	w.restart()
	w.srv.ResetCalls()
	for range 3 {
		if r := w.must(reconciler.Apply, blue)[0]; !hasCode(r, "orphan-kept") || r.Plan.Runnable() > 0 {
			t.Errorf("steps %v, diagnostics %v", r.Plan.Steps, r.Diagnostics)
		}
		w.clock.Advance(time.Minute)
	}
	if wrote := w.wrote(); len(wrote) > 0 {
		t.Errorf("weir wrote %v", wrote)
	}
	// Without the mark they go.
	old.PruneDisabled, ng.PruneDisabled = false, false
	w.settle(target("blue", web, old, ng))
	blue.Policy.Prune.Allowed = nil
	w.settle(blue)
	if d := cmp.Diff([]string{"group web of 1", "template web"}, w.held()); d != "" {
		t.Errorf("left (-want +got):\n%s", d)
	}
}

// Pools, their nodegroups and a shared declaration go in any order, one by one or
// all at once, and the end is the same.
func TestTheOrderInWhichThingsLeaveGitDoesNotMatter(t *testing.T) {
	stays := groupPool("web", "m5.large", 1)
	all := map[string]intent.Pool{"force": groupPool("force", "m5.large", 1), "drain": drained("drain", 1), "ng": nodegroupPool("ng", 1)}
	orders := [][]string{{"force", "drain", "ng"}, {"ng", "force", "drain"}, {"drain", "ng", "force"}, {"force,drain", "ng"}, {"ng,drain", "force"}, {"force,drain,ng"}}
	for _, order := range orders {
		for _, wait := range []bool{true, false} {
			t.Run(strings.Join(order, " ")+fmt.Sprintf(" wait=%v", wait), func(t *testing.T) {
				w := newWorld(t)
				left := maps.Clone(all)
				wish := func() reconciler.Desired {
					d := target("blue", append(slices.Collect(maps.Values(left)), stays)...)
					d.Policy.Prune.Count = 10
					return d
				}
				w.settle(wish())
				for _, step := range order {
					for _, name := range strings.Split(step, ",") {
						delete(left, name)
					}
					if wait {
						w.settle(wish())
					} else {
						w.must(reconciler.Apply, wish())
						w.restart()
					}
				}
				w.settle(wish())
				if d := cmp.Diff([]string{"group web of 1", "template web"}, w.held()); d != "" {
					t.Errorf("left (-want +got):\n%s", d)
				}
			})
		}
	}
}

// Any call of a deletion fails in any way: the next passes, by a process that remembers nothing, delete the rest and touch nothing else.
func TestADeletionStoppedAtAnyCallGoesOn(t *testing.T) {
	web := groupPool("web", "m5.large", 1)
	before := target("blue", web, groupPool("force", "m5.large", 1), drained("drain", 2), nodegroupPool("ng", 1))
	after := target("blue", web)
	after.Policy.Prune.Count = 10
	calm := newWorld(t)
	calm.settle(before)
	calm.srv.ResetCalls()
	calm.settle(after)
	calls := calm.srv.Calls()
	faults := map[string]awsemu.Fault{
		"refused": {Kind: awsemu.FailBefore, Code: "InternalError", Status: 500}, "cut before": {Kind: awsemu.CutBefore},
		"answer lost": {Kind: awsemu.LoseAnswer}, "throttled": {Kind: awsemu.Throttled},
	}
	tried := 0
	seen := map[string]int{}
	for _, c := range calls {
		key := c.Service + ":" + c.Operation
		n := seen[key]
		seen[key]++
		if !c.Write {
			continue
		}
		for name, f := range faults {
			tried++
			w := newWorld(t)
			w.settle(before)
			f.Service, f.Operation, f.After = c.Service, c.Operation, n
			w.srv.Faults().Add(f)
			for range 12 {
				_, _ = w.pass(reconciler.Apply, after) // may fail: that is the point
				w.restart()
				w.clock.Advance(2 * time.Second)
			}
			if _, trouble := w.settled(after); trouble != "" {
				t.Fatalf("%s %d of %s: %s", name, n, key, trouble)
			}
			if w.srv.Faults().Pending() > 0 {
				t.Errorf("%s %d of %s never struck", name, n, key)
			}
			if d := cmp.Diff([]string{"group web of 1", "template web"}, w.held()); d != "" {
				t.Errorf("%s %d of %s: left (-want +got):\n%s", name, n, key, d)
			}
			if n := w.srv.CallCounts()["autoscaling:UpdateAutoScalingGroup"]; n > 2 {
				t.Errorf("%s %d of %s: %d updates of groups", name, n, key, n)
			}
		}
	}
	// Two groups and a nodegroup, their three templates, and one group drained.
	if tried != 7*len(faults) {
		t.Errorf("tried %d faults, want %d: %v", tried, 7*len(faults), seen)
	}
}
