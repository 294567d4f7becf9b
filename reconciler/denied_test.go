package reconciler_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// deny refuses a read, of all resources or of one, until remove is called.
func (w *world) deny(service, operation, resource string) (remove func()) {
	code := map[string]string{"eks": "AccessDeniedException", "ec2": "UnauthorizedOperation"}[service]
	if code == "" {
		code = "AccessDenied"
	}
	return w.srv.Faults().Add(awsemu.Fault{
		Kind: awsemu.FailBefore, Service: service, Operation: operation, Resource: resource, Times: -1,
		Code: code, Message: "User: arn:aws:iam::000000000000:user/weir is not authorized to perform: " + service + ":" + operation,
	})
}

// blocked are the pools that a report says are not planned for want of a
// permission, with the action that is missing.
func blocked(r *plan.Report) map[string]string {
	out := map[string]string{}
	for _, d := range r.Diagnostics {
		if d.Code == "read-denied" {
			_, action, _ := strings.Cut(d.Summary, "changed: needs ")
			action, _, _ = strings.Cut(action, ": ")
			out[d.Object] = action
		}
	}
	return out
}

// settleStep is longer than anything takes that a pass starts.
const settleStep = 10 * time.Minute

// writes are the calls that changed something since the last reset.
func (w *world) writes() map[string]int {
	out := map[string]int{}
	for _, c := range w.srv.Calls() {
		if c.Write {
			out[c.Service+":"+c.Operation]++
		}
	}
	return out
}

// TestADeniedReadBlocksOnlyWhatNeedsIt: the pools that need it say which action
// is missing and stay as they are, whatever Git wants of them; the others, and
// other targets, go on; nothing is deleted or rolled twice; and once the action
// is allowed all converge.
func TestADeniedReadBlocksOnlyWhatNeedsIt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		service, operation, resource string
		objects                      []string
		action                       string
		writes                       []string // while it is denied
	}{
		"instance refreshes": {"autoscaling", "DescribeInstanceRefreshes", "", []string{"AWSMachinePool default/web"}, "autoscaling:DescribeInstanceRefreshes",
			[]string{"autoscaling:UpdateAutoScalingGroup", "eks:UpdateNodegroupConfig"}},
		"one nodegroup": {"eks", "DescribeNodegroup", "ng", []string{"AWSManagedMachinePool default/ng"}, "eks:DescribeNodegroup",
			[]string{"autoscaling:StartInstanceRefresh", "autoscaling:UpdateAutoScalingGroup", "ec2:CreateLaunchTemplateVersion", "eks:UpdateNodegroupConfig"}},
		"all nodegroups": {"eks", "DescribeNodegroup", "", []string{"AWSManagedMachinePool default/mate", "AWSManagedMachinePool default/ng"}, "eks:DescribeNodegroup",
			[]string{"autoscaling:StartInstanceRefresh", "autoscaling:UpdateAutoScalingGroup", "ec2:CreateLaunchTemplateVersion"}},
		"the list of nodegroups": {"eks", "ListNodegroups", "", []string{"AWSManagedMachinePool default/mate", "AWSManagedMachinePool default/ng"}, "eks:ListNodegroups",
			[]string{"autoscaling:StartInstanceRefresh", "autoscaling:UpdateAutoScalingGroup", "ec2:CreateLaunchTemplateVersion"}},
	} {
		for _, restarted := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", after a restart", false: ""}[restarted], func(t *testing.T) {
				w := newWorld(t)
				blue := target("blue", groupPool("web", "m5.large", 2), nodegroupPool("ng", 2), nodegroupPool("mate", 1))
				green := target("green", groupPool("api", "m5.large", 1))
				w.settle(blue, green)
				if restarted {
					w.restart()
				}
				remove := w.deny(tc.service, tc.operation, tc.resource)
				defer remove()
				// All pools of blue change, and the one of green.
				api := groupPool("api", "m5.large", 1)
				api.Group.MaxSize = 12
				blue = target("blue", groupPool("web", "m5.xlarge", 2), nodegroupPool("ng", 3), nodegroupPool("mate", 2))
				green = target("green", api)
				w.srv.ResetCalls()
				for range 5 {
					reports := w.must(reconciler.Apply, blue, green)
					got := blocked(reports[0])
					if !slices.Equal(slices.Sorted(maps.Keys(got)), tc.objects) || got[tc.objects[0]] != tc.action {
						t.Fatalf("blocked: %v; want %v by %s; %v", got, tc.objects, tc.action, reports[0].Diagnostics)
					}
					if got := blocked(reports[1]); len(got) > 0 {
						t.Fatalf("the other target: %v", got)
					}
					w.clock.Advance(settleStep)
				}
				writes := w.writes()
				if got := slices.Sorted(maps.Keys(writes)); !slices.Equal(without(got, "ec2:ModifyLaunchTemplate"), tc.writes) {
					t.Errorf("writes while it is denied: %v, want %v", writes, tc.writes)
				}
				remove()
				w.settle(blue, green)
				writes = w.writes()
				if writes["autoscaling:StartInstanceRefresh"] != 1 || writes["ec2:CreateLaunchTemplateVersion"] != 1 || writes["eks:UpdateNodegroupConfig"] != 2 {
					t.Errorf("in all: %v", writes)
				}
			})
		}
	}
}

func without(list []string, name string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return s == name })
}

// TestADeniedReadStartsNoSecondRollout: while a refresh is under way that weir
// may not see, and Git wants something else.
func TestADeniedReadStartsNoSecondRollout(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", groupPool("web", "m5.large", 4)))
	w.srv.ResetCalls()
	w.must(reconciler.Apply, target("blue", groupPool("web", "m5.xlarge", 4)))
	w.restart()
	remove := w.deny("autoscaling", "DescribeInstanceRefreshes", "")
	defer remove()
	for _, size := range []string{"m5.xlarge", "m5.2xlarge", "m5.xlarge"} {
		w.must(reconciler.Apply, target("blue", groupPool("web", size, 4)))
	}
	if n := w.writes(); n["autoscaling:StartInstanceRefresh"] != 1 || n["autoscaling:CancelInstanceRefresh"] != 0 || n["ec2:CreateLaunchTemplateVersion"] != 1 {
		t.Errorf("got %v", n)
	}
	remove()
	w.settle(target("blue", groupPool("web", "m5.xlarge", 4)))
	if n := w.writes(); n["autoscaling:StartInstanceRefresh"] != 1 {
		t.Errorf("in the end: %v", n)
	}
}

// TestADeniedReadDeletesNothing: neither a nodegroup that cannot be read, nor the
// template that its nodes launch from.
func TestADeniedReadDeletesNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		operation string
		restarted bool
	}{
		"describe":                  {"DescribeNodegroup", false},
		"describe, after a restart": {"DescribeNodegroup", true},
		"list":                      {"ListNodegroups", false},
		"list, after a restart":     {"ListNodegroups", true},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			web := groupPool("web", "m5.large", 1)
			w.settle(target("blue", web, nodegroupPool("ng", 1)))
			if tc.restarted {
				w.restart()
			}
			remove := w.deny("eks", tc.operation, "")
			defer remove()
			gone := target("blue", web)
			gone.Policy.Prune.Percent = 100
			w.srv.ResetCalls()
			for range 3 {
				w.must(reconciler.Apply, gone)
				w.clock.Advance(settleStep)
			}
			if n := w.writes(); len(n) > 0 {
				t.Errorf("while it is denied: %v", n)
			}
			remove()
			w.settle(gone)
			if n := w.writes(); n["eks:DeleteNodegroup"] != 1 || n["ec2:DeleteLaunchTemplate"] != 1 {
				t.Errorf("in the end: %v", n)
			}
		})
	}
}

// TestDeniedVersionsBlockTheirTemplates: nothing is made twice for want of a look
// at what is there.
func TestDeniedVersionsBlockTheirTemplates(t *testing.T) {
	w := newWorld(t)
	blue := target("blue", groupPool("web", "m5.large", 2))
	w.settle(blue)
	w.restart()
	remove := w.deny("ec2", "DescribeLaunchTemplateVersions", "")
	defer remove()
	w.srv.ResetCalls()
	r := w.must(reconciler.Apply, blue, target("green", groupPool("api", "m5.large", 1)))
	if got := blocked(r[0]); got["AWSMachinePool default/web"] != "ec2:DescribeLaunchTemplateVersions" {
		t.Errorf("blocked: %v, %v", got, r[0].Diagnostics)
	}
	if n := w.writes(); n["ec2:CreateLaunchTemplateVersion"] != 0 || n["autoscaling:CreateAutoScalingGroup"] != 1 {
		t.Errorf("writes: %v", n)
	}
	remove()
	w.settle(blue)
}

// TestADeniedUpdateListBlocksItsNodegroup: whether the last update failed is not
// known, so it is not tried again.
func TestADeniedUpdateListBlocksItsNodegroup(t *testing.T) {
	w := newWorld(t)
	web := groupPool("web", "m5.large", 1)
	w.settle(target("blue", web, nodegroupPool("ng", 2)))
	want := target("blue", web, nodegroupPool("ng", 4))
	w.settle(want)
	// Somebody sets it back by hand: the same update is due again.
	two := int32(2)
	if _, err := newScope(w).Cloud.Execute(t.Context(), step.UpdateNodegroupConfig{
		NodegroupName: observed.NodegroupName{Cluster: "demo", Name: "ng"}, DesiredSize: &two, MaxSize: &two, Token: "by-hand",
	}); err != nil {
		t.Fatal(err)
	}
	w.clock.Advance(settleStep)
	remove := w.deny("eks", "ListUpdates", "")
	defer remove()
	w.srv.ResetCalls()
	r := w.must(reconciler.Apply, want)[0]
	if got := blocked(r); len(got) != 1 || got["AWSManagedMachinePool default/ng"] != "eks:ListUpdates" {
		t.Errorf("blocked: %v, %v", got, r.Diagnostics)
	}
	if n := w.writes(); len(n) > 0 {
		t.Errorf("writes: %v", n)
	}
	remove()
	w.settle(want)
}

// TestAGroupWhoseClusterMayNotBeReadGoesOn, and its report says which action is missing
// and what is not held back for want of it, until the action is allowed.
func TestAGroupWhoseClusterMayNotBeReadGoesOn(t *testing.T) {
	w := newWorld(t)
	pool := groupPool("web", "m5.large", 2)
	pool.Version, pool.ControlPlane = "v1.34.0", intent.Lookup{Kind: intent.EKSCluster, Name: "demo"}
	allow := w.deny("eks", "DescribeCluster", "")
	d := target("blue", pool)
	w.settle(d)
	r := w.must(reconciler.PlanOnly, d)[0]
	said := slices.IndexFunc(r.Diagnostics, func(d diag.Diagnostic) bool { return d.Code == "control-plane-unread" })
	if said < 0 || r.Diagnostics[said].Severity != diag.Warning || !strings.Contains(r.Diagnostics[said].Summary, "eks:DescribeCluster") {
		t.Errorf("%v", r.Diagnostics)
	}
	allow()
	w.clock.Advance(time.Hour)
	if r = w.must(reconciler.PlanOnly, d)[0]; hasCode(r, "control-plane-unread") {
		t.Errorf("%v", r.Diagnostics)
	}
}
