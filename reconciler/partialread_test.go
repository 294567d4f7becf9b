package reconciler_test

import (
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
	"github.com/weir-gitops/weir/reconciler/plan"
)

// glance makes a pass that looks at what moves, and gives the calls that it made.
func (w *world) glance(targets ...reconciler.Desired) ([]*plan.Report, map[string]int) {
	w.t.Helper()
	w.srv.ResetCalls()
	reports, err := w.scope.PassBatch(w.t.Context(), reconciler.Batch{Targets: targets, Partial: true})
	if err != nil {
		w.t.Fatal(err)
	}
	calls := map[string]int{}
	for _, c := range w.srv.Calls() {
		calls[c.Operation]++
	}
	return reports, calls
}

// manyTargets are targets with a group each.
func manyTargets(n int) []reconciler.Desired {
	out := make([]reconciler.Desired, n)
	for i := range out {
		out[i] = target(fmt.Sprintf("t%03d", i), groupPool(fmt.Sprintf("pool-%03d", i), "m5.large", 1))
	}
	return out
}

// After a change of one of many pools, one page of groups and one of templates is read until it
// has converged, and not all of them again.
func TestWhatMovesAloneIsReadAgain(t *testing.T) {
	w := newWorld(t)
	const many = 250
	all := manyTargets(many)
	w.settle(all...)
	w.must(reconciler.Apply, all...)
	list := map[string]int{"DescribeAutoScalingGroups": 3, "DescribeLaunchTemplates": 2}
	if _, calls := w.glance(all...); cmp.Diff(list, calls) != "" {
		t.Errorf("where all is at rest: %v", calls)
	}
	pool := groupPool("pool-007", "m5.large", 1)
	pool.Group.MaxSize++
	all[7] = target("t007", pool)
	_, calls := w.glance(all...)
	want := maps.Clone(list)
	want["UpdateAutoScalingGroup"] = 1
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Errorf("something else is wanted (-want +got):\n%s", diff)
	}
	reports, calls := w.glance(all...)
	if diff := cmp.Diff(map[string]int{"DescribeAutoScalingGroups": 1, "DescribeLaunchTemplates": 1}, calls); diff != "" || !converged(reports) {
		t.Errorf("a look at what moved (-want +got):\n%s", diff)
	}
	if len(reports) != 1 || reports[0].Target != "t007" || len(reports[0].Pools) != 1 {
		t.Errorf("a look at what moved tells of %d targets: %v", len(reports), reports)
	}
	w.srv.ResetCalls()
	reports = w.must(reconciler.Apply, all...)
	if calls := w.srv.Calls(); len(calls) != 5 || len(reports) != many {
		t.Errorf("the list after looks is of %d targets, and took %v", len(reports), calls)
	}
	if _, calls = w.glance(append(all, target("new", groupPool("new", "m5.large", 1)))...); calls["DescribeAutoScalingGroups"] < 3 || calls["CreateAutoScalingGroup"] != 1 {
		t.Errorf("with a target more: %v", calls)
	}
	w.restart()
	if _, calls = w.glance(all...); calls["DescribeAutoScalingGroups"] != 3 {
		t.Errorf("a process that knows nothing: %v", calls)
	}
}

// What somebody else changes is seen by the next list, and what moves is seen to be gone.
func TestALookKnowsWhatItDoesNotSee(t *testing.T) {
	w := newWorld(t)
	all := manyTargets(150)
	w.settle(all...)
	pool := groupPool("pool-007", "m5.large", 1)
	pool.Group.MaxSize++
	all[7] = target("t007", pool)
	w.must(reconciler.Apply, all...)
	names := func(i int) (group string) { return all[i].Set.Pools[0].Group.Name }
	by := autoscaling.NewFromConfig(w.sdk)
	if _, err := by.UpdateAutoScalingGroup(t.Context(), &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String(names(9)), MaxSize: aws.Int32(77)}); err != nil {
		t.Fatal(err)
	}
	if _, err := by.DeleteAutoScalingGroup(t.Context(), &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String(names(7)), ForceDelete: aws.Bool(true)}); err != nil {
		t.Fatal(err)
	}
	_, calls := w.glance(all...)
	for op := range calls {
		if strings.HasPrefix(op, "Update") {
			t.Errorf("a look at what moves changed what does not: %v", calls)
		}
	}
	w.settle(all...)
	out, err := by.DescribeAutoScalingGroups(t.Context(), &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{names(7), names(9)}})
	if err != nil || len(out.AutoScalingGroups) != 2 || aws.ToInt32(out.AutoScalingGroups[1].MaxSize) == 77 {
		t.Errorf("in the end there is %+v, %v", out, err)
	}
}

// A group that is somebody else's by the time of a look is not weir's to change, and a
// template neither.
func TestALookLeavesAloneWhatIsSomebodyElsesByThen(t *testing.T) {
	for _, wanted := range []bool{true, false} {
		t.Run(fmt.Sprintf("wanted: %v", wanted), func(t *testing.T) {
			w := newWorld(t)
			all := manyTargets(150)
			w.settle(all...)
			name := all[7].Set.Pools[0].Group.Name
			pool := groupPool("pool-007", "m5.large", 1)
			pool.Group.MaxSize++
			all[7] = target("t007", pool)
			if !wanted {
				all[7] = target("t007", groupPool("other", "m5.large", 1))
				all[7].Policy.Prune.Enabled = true
				for i := range all {
					all[i].Whole = i != 3 // so that it stays for now
				}
			}
			w.must(reconciler.Apply, all...)
			by := autoscaling.NewFromConfig(w.sdk)
			if _, err := by.CreateOrUpdateTags(t.Context(), &autoscaling.CreateOrUpdateTagsInput{Tags: []astypes.Tag{{ResourceId: aws.String(name), ResourceType: aws.String("auto-scaling-group"),
				Key: aws.String("weir.dev/owner"), Value: aws.String("someone"), PropagateAtLaunch: aws.Bool(false)}}}); err != nil {
				t.Fatal(err)
			}
			reports, calls := w.glance(all...)
			if calls["DescribeAutoScalingGroups"] > 2 || len(reports) > 2 {
				t.Fatalf("it was no look: %v", calls)
			}
			list := w.must(reconciler.Apply, all...)
			for _, r := range reports {
				i := slices.IndexFunc(list, func(l *plan.Report) bool { return l.Target == r.Target })
				if diff := cmp.Diff(list[i].Diagnostics, r.Diagnostics); diff != "" {
					t.Errorf("%s: a list and a look say different things (-list +look):\n%s", r.Target, diff)
				}
				if diff := cmp.Diff(list[i].Pools, r.Pools); diff != "" {
					t.Errorf("%s: a list and a look find different things (-list +look):\n%s", r.Target, diff)
				}
			}
		})
	}
}

// The machines of a pool that Git dropped are drained in looks as in lists.
func TestALookDrainsWhatGitDropped(t *testing.T) {
	w, drained := drainable(t, fifteen)
	all := append(manyTargets(150), drained)
	w.settle(all...)
	set := *drained.Set
	set.Pools = nil
	all[150].Set, all[150].Policy.Prune.Enabled = &set, false
	pool := groupPool("pool-007", "m5.large", 1)
	pool.Group.MaxSize++
	all[7] = target("t007", pool)
	id := w.shrink()
	w.must(reconciler.Apply, all...)
	w.clock.Advance(31 * time.Second)
	if _, calls := w.glance(all...); calls["DescribeAutoScalingGroups"] != 1 || calls["CompleteLifecycleAction"] != 1 {
		t.Errorf("the machine %s waits, and a look made these calls: %v", id, calls)
	}
}
