package reconciler_test

import (
	"context"
	"fmt"
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
