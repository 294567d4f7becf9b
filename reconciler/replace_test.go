package reconciler_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// spotPool is nodegroupPool with what EKS cannot change: its nodes are bought as
// capacity says.
func spotPool(name, capacity string, replicas int32) intent.Pool {
	p := nodegroupPool(name, replicas)
	p.Nodegroup.CapacityType, p.AllowReplace = capacity, true
	return p
}

// nodegroups lists those of the cluster with their capacity type and status.
func (w *world) nodegroups() []string {
	w.t.Helper()
	list, err := w.eks().ListNodegroups(w.t.Context(), &eks.ListNodegroupsInput{ClusterName: aws.String("demo")})
	w.check(list, err)
	var out []string
	for _, name := range list.Nodegroups {
		n, err := w.eks().DescribeNodegroup(w.t.Context(), &eks.DescribeNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: aws.String(name)})
		w.check(n, err)
		out = append(out, fmt.Sprintf("%s %s %s", name, n.Nodegroup.CapacityType, n.Nodegroup.Status))
	}
	return out
}

// only fails unless the cluster has one nodegroup for each of the pools, of the
// capacity type.
func (w *world) only(capacity string, pools ...string) {
	w.t.Helper()
	got := w.nodegroups()
	ok := len(got) == len(pools)
	for i, pool := range pools {
		ok = ok && strings.HasPrefix(got[i], pool) && strings.HasSuffix(got[i], capacity+" ACTIVE")
	}
	if !ok {
		w.t.Errorf("nodegroups are %v, want one of %s for each of %v", got, capacity, pools)
	}
}

func verbsOf(r *plan.Report) []string {
	var out []string
	for _, s := range r.Plan.Steps {
		out = append(out, string(s.Verb)+" "+s.Name)
	}
	return out
}

// whole is all that the diagnostics of a report say.
func whole(r *plan.Report) string {
	text := ""
	for _, d := range r.Diagnostics {
		text += fmt.Sprintf("%s %s %s\n", d.Code, d.Summary, d.Detail)
	}
	return text
}

func TestWhatEKSCannotChangeIsReplaced(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", spotPool("ng", "ON_DEMAND", 2)))
	w.srv.ResetCalls()
	spot := target("blue", spotPool("ng", "SPOT", 2))
	spot.Policy.Prune.Enabled = false // being replaced is not being pruned
	r := w.must(reconciler.Apply, spot)[0]
	if got := verbsOf(r); len(got) != 2 || !strings.HasPrefix(got[0], "replace ng-") || got[1] != "replace ng" || r.Plan.Summary.Replace != 1 {
		t.Fatalf("steps %v, summary %+v", got, r.Plan.Summary)
	}
	if ch := r.Plan.Steps[0].Changes; len(ch) != 1 || ch[0].Field != "capacityType" || ch[0].From != "ON_DEMAND" || ch[0].To != "SPOT" {
		t.Errorf("changes %+v", ch)
	}
	// The old one serves until the new one is ACTIVE.
	r = w.must(reconciler.Apply, spot)[0]
	if p := r.Pools[0]; p.ReadyReplicas != 2 || p.Converged || p.Nodegroup == nil || p.Nodegroup.Status != "CREATING" || !slices.Equal(p.Nodegroup.Replaces, []string{"ng"}) {
		t.Errorf("while it is replaced: %+v, nodegroup %+v", p, p.Nodegroup)
	}
	if n := w.srv.CallCounts()["eks:DeleteNodegroup"]; n != 0 {
		t.Error("the old nodegroup went before the new one was ACTIVE")
	}
	w.settle(spot)
	w.only("SPOT", "ng-")
	n := w.srv.CallCounts()
	if n["eks:CreateNodegroup"] != 1 || n["eks:DeleteNodegroup"] != 1 || n["ec2:CreateLaunchTemplateVersion"] != 0 {
		t.Errorf("calls %v", n)
	}
	// At rest: the reads of the formula and no write, after a restart as well.
	for range 2 {
		w.srv.ResetCalls()
		w.must(reconciler.Apply, spot)
		if reads, writes := w.calls(); writes != 0 || w.srv.CallCounts()["eks:ListNodegroups"] != 1 || w.srv.CallCounts()["eks:DescribeNodegroup"] != 1 {
			t.Errorf("at rest: %d reads, %d writes: %v", reads, writes, w.srv.CallCounts())
		}
		w.restart()
	}
	// The derived name is a pool like any other: it is changed, replaced again, and
	// deleted with its pool.
	w.settle(target("blue", spotPool("ng", "SPOT", 3)))
	w.only("SPOT", "ng-")
	w.settle(target("blue", spotPool("ng", "ON_DEMAND", 3)))
	w.only("ON_DEMAND", "ng-")
	gone := target("blue", groupPool("web", "m5.large", 1))
	w.settle(gone)
	if got := w.nodegroups(); len(got) != 0 {
		t.Errorf("left over: %v", got)
	}
}

func TestAReplacementNeedsItsAnnotation(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", spotPool("ng", "ON_DEMAND", 1)))
	pool := spotPool("ng", "SPOT", 1)
	pool.AllowReplace = false
	w.srv.ResetCalls()
	r := w.must(reconciler.Apply, target("blue", pool))[0]
	if _, writes := w.calls(); writes != 0 {
		t.Errorf("calls %v", w.srv.CallCounts())
	}
	text := whole(r)
	for _, want := range []string{"nodegroup-immutable", "capacityType", "weir.dev/replace"} {
		if !strings.Contains(text, want) {
			t.Errorf("diagnostics lack %s: %s", want, text)
		}
	}
}

// A revert half way returns to the old nodegroup, which weir never deleted, and needs no annotation: the revert removes that too.
func TestAReplacementTurnsBack(t *testing.T) {
	for passes := range 4 {
		t.Run(fmt.Sprint(passes), func(t *testing.T) {
			w := newWorld(t)
			before := target("blue", nodegroupPool("ng", 1))
			w.settle(before)
			after := target("blue", spotPool("ng", "SPOT", 1))
			for range passes {
				w.must(reconciler.Apply, after)
				w.clock.Advance(2e9)
			}
			if passes == 3 { // the old one is going already: that needs the annotation
				back := target("blue", spotPool("ng", "ON_DEMAND", 1))
				w.settle(back)
			} else {
				w.settle(before)
			}
			w.only("ON_DEMAND", "ng")
		})
	}
}

// A third wish while the second is being made: the first one serves on, and there
// are never three.
func TestAReplacementOfAReplacement(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", spotPool("ng", "ON_DEMAND", 1)))
	w.must(reconciler.Apply, target("blue", spotPool("ng", "SPOT", 1)))
	third := spotPool("ng", "SPOT", 1)
	third.Nodegroup.AMIType, third.LaunchTemplate.Data.InstanceType = "AL2023_ARM_64_STANDARD", "m6g.large"
	for range 60 {
		r := w.must(reconciler.Apply, target("blue", third))
		if got := w.nodegroups(); len(got) > 2 || len(got) == 0 {
			t.Fatalf("nodegroups %v", got)
		}
		if converged(r) {
			break
		}
		w.clock.Advance(2e9)
	}
	w.only("SPOT", "ng-")
}

func TestOneReplacementAtATime(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", spotPool("a", "ON_DEMAND", 1), spotPool("b", "ON_DEMAND", 1)))
	both := target("blue", spotPool("a", "SPOT", 1), spotPool("b", "SPOT", 1))
	for range 60 {
		r := w.must(reconciler.Apply, both)
		if got := w.nodegroups(); len(got) > 3 {
			t.Fatalf("nodegroups %v", got)
		}
		if converged(r) {
			break
		}
		w.clock.Advance(2e9)
	}
	w.only("SPOT", "a-", "b-")
}

// The size that somebody else holds goes over to the replacement.
func TestAReplacementKeepsTheSize(t *testing.T) {
	w := newWorld(t)
	pool := spotPool("ng", "ON_DEMAND", 1)
	pool.Replicas.Written, pool.Nodegroup.MaxSize = false, intent.Number{Value: 5, Written: true}
	w.settle(target("blue", pool))
	four := int32(4)
	if _, err := w.scope.Cloud.Execute(t.Context(), step.UpdateNodegroupConfig{NodegroupName: observed.NodegroupName{Cluster: "demo", Name: "ng"}, DesiredSize: &four}); err != nil {
		t.Fatal(err)
	}
	w.settle(target("blue", pool))
	spot := pool
	n := *pool.Nodegroup
	n.CapacityType = "SPOT"
	spot.Nodegroup = &n
	w.settle(target("blue", spot))
	w.only("SPOT", "ng-")
	if r := w.must(reconciler.PlanOnly, target("blue", spot))[0]; r.Pools[0].Replicas != 4 {
		t.Errorf("%d replicas, want 4", r.Pools[0].Replicas)
	}
}

// A replacement that EKS cannot make leaves the old nodegroup alone.
func TestAReplacementThatFails(t *testing.T) {
	w := newWorld(t)
	before := target("blue", spotPool("ng", "ON_DEMAND", 2))
	w.settle(before)
	remove := w.srv.Faults().Launches.Add(ec2.LaunchFault{Code: "InsufficientInstanceCapacity"})
	after := target("blue", spotPool("ng", "SPOT", 2))
	var r *plan.Report
	for range 40 {
		r = w.must(reconciler.Apply, after)[0]
		w.clock.Advance(30e9)
	}
	remove()
	if n := w.srv.CallCounts()["eks:DeleteNodegroup"]; n != 0 {
		t.Error("the old nodegroup was deleted")
	}
	if text := whole(r); !strings.Contains(text, "nodegroup-failed") || !strings.Contains(text, "EC2 has no such machine free") {
		t.Errorf("diagnostics: %s", text)
	}
	w.settle(before)
	w.only("ON_DEMAND", "ng")
}

// Any call of a replacement fails in any way, and weir stops there: the next passes end the same way, with nothing doubled or left over.
func TestAReplacementStoppedAtAnyCall(t *testing.T) {
	t.Parallel()
	before, after := target("blue", spotPool("ng", "ON_DEMAND", 1)), target("blue", spotPool("ng", "SPOT", 1))
	calm := newWorld(t)
	calm.settle(before)
	calm.srv.ResetCalls()
	calm.settle(after)
	all := calm.srv.Calls()
	for name, fault := range map[string]awsemu.Fault{
		"refused":     {Kind: awsemu.FailBefore, Code: "ServerException", Status: 500},
		"cut before":  {Kind: awsemu.CutBefore},
		"answer lost": {Kind: awsemu.LoseAnswer},
		"throttled":   {Kind: awsemu.Throttled},
		"busy":        {Kind: awsemu.FailBefore, Code: "ResourceInUseException", Status: 409},
	} {
		t.Run(name, func(t *testing.T) {
			seen := map[string]int{}
			for _, c := range all {
				n := seen[c.Operation]
				seen[c.Operation]++
				if !c.Write && n > 0 || name == "busy" && (!c.Write || c.Service != "eks") {
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
				w.only("SPOT", "ng-")
			}
		})
	}
}

// Two instances of one owner that know nothing of each other make one replacement.
func TestTwoThatReplaceAtOnce(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", spotPool("ng", "ON_DEMAND", 1)))
	after := target("blue", spotPool("ng", "SPOT", 1))
	w.srv.ResetCalls()
	a, b := w.scope, newScope(w)
	for range 60 {
		done := 0
		for _, s := range []*reconciler.Scope{a, b} {
			r, err := s.Pass(t.Context(), []reconciler.Desired{after}, reconciler.Apply)
			if err == nil && converged(r) {
				done++
			}
		}
		if done == 2 {
			break
		}
		w.clock.Advance(2e9)
	}
	w.only("SPOT", "ng-")
	made := 0
	for _, c := range w.srv.Calls() {
		if c.Operation == "CreateNodegroup" && c.ErrorCode == "" {
			made++
		}
	}
	if made != 1 {
		t.Errorf("%d nodegroups were made", made)
	}
}

// A MachinePool that is renamed keeps its replaced nodegroup, whose name is not the
// one in Git.
func TestAReplacedNodegroupKeepsItsPool(t *testing.T) {
	w := newWorld(t)
	w.settle(target("blue", spotPool("ng", "ON_DEMAND", 1)))
	w.settle(target("blue", spotPool("ng", "SPOT", 1)))
	renamed := spotPool("ng", "SPOT", 1)
	renamed.Key.Name, renamed.MachinePool = "other", object("MachinePool", "other")
	w.srv.ResetCalls()
	w.settle(target("blue", renamed))
	w.only("SPOT", "ng-")
	if n := w.srv.CallCounts(); n["eks:CreateNodegroup"]+n["eks:DeleteNodegroup"] != 0 {
		t.Errorf("calls %v", n)
	}
	// Another target takes it over as it is.
	green := target("green", renamed)
	w.settle(target("blue", groupPool("web", "m5.large", 1)), green)
	w.only("SPOT", "ng-")
	if n := w.srv.CallCounts(); n["eks:CreateNodegroup"]+n["eks:DeleteNodegroup"] != 0 {
		t.Errorf("calls %v", n)
	}
}

// Git changes its mind at any moment, and the process forgets as often: in the end each pool has one nodegroup, as Git wanted it last, and nothing
// else is left.
func TestReplacementsInAnyOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a test's choices
			w := newWorld(t)
			wish := func() reconciler.Desired {
				pool := spotPool("ng", []string{"SPOT", "ON_DEMAND"}[rnd.IntN(2)], 1+rnd.Int32N(3))
				pool.LaunchTemplate.Data = intent.TemplateData{BlockDeviceMappings: []intent.BlockDeviceMapping{{DeviceName: "/dev/xvda", Ebs: intent.Ebs{VolumeSize: 40, VolumeType: "gp3"}}}}
				if rnd.IntN(3) > 0 {
					pool.Nodegroup.InstanceTypes = [][]string{{"m5.large"}, {"m5.large", "m5a.large"}}[rnd.IntN(2)]
				}
				if rnd.IntN(3) == 0 {
					pool.LaunchTemplate, pool.Nodegroup.DiskSize = nil, 30+10*rnd.Int32N(2)
				}
				return target("blue", pool)
			}
			var last reconciler.Desired
			for range 6 {
				last = wish()
				for range rnd.IntN(6) {
					if rnd.IntN(3) == 0 {
						w.srv.Faults().Add(awsemu.Fault{Kind: []awsemu.FaultKind{awsemu.CutBefore, awsemu.LoseAnswer, awsemu.Throttled}[rnd.IntN(3)], WritesOnly: true, After: rnd.IntN(2)})
					}
					_, _ = w.pass(reconciler.Apply, last) // may fail: that is the point
					w.clock.Advance(time.Duration(rnd.IntN(4)) * time.Second)
					if rnd.IntN(3) == 0 {
						w.restart()
					}
				}
			}
			w.srv.Faults().Clear()
			w.settle(last)
			w.only(last.Set.Pools[0].Nodegroup.CapacityType, "ng")
			w.restart()
			if r := w.must(reconciler.PlanOnly, last)[0]; !r.Plan.Empty() || !r.Converged() {
				t.Errorf("afterwards: %v", r.Plan.Steps)
			}
		})
	}
}
