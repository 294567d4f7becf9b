package reconciler_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/reconciler/workload/workloadtest"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// kept is a world of two machines whose pods a disruption budget keeps, and its target.
func kept(t *testing.T) (*drainWorld, reconciler.Desired) {
	t.Helper()
	w := newDrainWorld(t)
	target := target("blue", groupPool("web", "m5.large", 2))
	w.settle(target, second(target))
	w.joinAll()
	w.server.AddBudget("shop", "cart", "app", "cart", 0)
	w.server.AddBudget("shop", "free", "app", "free", 1)
	target.Workload, target.Policy.JoinTokens = w.cluster, model.JoinTokens{Prefix: "/weir"}
	w.settle(target)
	w.server.Log()
	return w, target
}

// rolls makes a pool's machines of another type.
func rolls(t reconciler.Desired) reconciler.Desired {
	set := *t.Set
	set.Pools = slices.Clone(set.Pools)
	lt := *set.Pools[0].LaunchTemplate
	lt.Data.InstanceType = "m5.xlarge"
	lt.Image.InstanceType = "m5.xlarge"
	set.Pools[0].LaunchTemplate = &lt
	t.Set = &set
	return t
}

// ofBudgets are the findings about budgets, and how often the cluster was asked about
// budgets and their pods.
func (w *drainWorld) ofBudgets(r *plan.Report) (found diag.List, budgets, pods int) {
	for _, d := range r.Diagnostics {
		if strings.HasPrefix(d.Code, "budget") {
			found = append(found, d)
		}
	}
	for _, line := range w.server.Log() {
		switch line {
		case "GET /apis/policy/v1/poddisruptionbudgets":
			budgets++
		case "GET /api/v1/namespaces/shop/pods":
			pods++
		}
	}
	return found, budgets, pods
}

func (w *drainWorld) plans(targets ...reconciler.Desired) *plan.Report {
	return w.must(reconciler.PlanOnly, targets...)[0]
}

// TestABudgetIsToldBeforeTheRollout: the plan of a rollout names the budget, pods and what
// follows; the cluster is asked once, and at rest not at all.
func TestABudgetIsToldBeforeTheRollout(t *testing.T) {
	w, target := kept(t)
	if found, budgets, pods := w.ofBudgets(w.plans(target)); len(found)+budgets+pods != 0 {
		t.Fatalf("at rest: %v, asked %d and %d times", found, budgets, pods)
	}
	next := rolls(target)
	found, budgets, pods := w.ofBudgets(w.plans(next, rolls(second(next))))
	if budgets != 1 || pods != 1 || len(found) != 1 {
		t.Fatalf("%v, asked %d and %d times", found, budgets, pods)
	}
	d := found[0]
	for _, want := range []string{"the disruption budget shop/cart", "its pods cart-i-", " are on the machines of the pool: nothing in Git respects the budget"} {
		if !strings.Contains(d.Summary, want) {
			t.Errorf("%q lacks %q", d.Summary, want)
		}
	}
	if d.Severity != diag.Warning || d.Code != "budget-blocks" || d.Object != "MachinePool default/web" {
		t.Errorf("got %+v", d)
	}
	// It is kept for a minute, also where the finding changes with the plan.
	drained := next
	set := *next.Set
	set.Pools = slices.Clone(set.Pools)
	group := *set.Pools[0].Group
	group.Drainer = &intent.Drainer{Timeout: 900}
	group.LifecycleHooks = []intent.LifecycleHook{group.Drainer.Hook()}
	set.Pools[0].Group, drained.Set = &group, &set
	found, budgets, _ = w.ofBudgets(w.plans(drained))
	if budgets != 0 || len(found) != 1 || !strings.Contains(found[0].Summary, "weir's drainer waits up to 15m") {
		t.Errorf("%v, asked %d times", found, budgets)
	}
	w.server.AddBudget("shop", "cart", "app", "cart", 1)
	w.clock.Advance(time.Minute)
	if found, budgets, pods = w.ofBudgets(w.plans(next)); len(found)+pods != 0 || budgets != 1 {
		t.Errorf("%v, asked %d and %d times", found, budgets, pods)
	}
	// A finding holds nothing; and once all has rolled, nothing is asked.
	w.server.AddBudget("shop", "cart", "app", "cart", 0)
	w.must(reconciler.Apply, next)
	bare := next
	bare.Workload = nil
	w.settle(bare)
	w.joinAll()
	w.settle(next)
	w.clock.Advance(time.Hour)
	w.server.Log()
	if found, budgets, pods = w.ofBudgets(w.plans(next)); len(found)+budgets+pods != 0 {
		t.Errorf("at rest: %v, asked %d and %d times", found, budgets, pods)
	}
}

// second is another target with a rollout in the same cluster.
func second(t reconciler.Desired) reconciler.Desired {
	pool := groupPool("other", "m5.large", 1)
	t.Set, t.Policy.Target = &intent.Set{Pools: []intent.Pool{pool}}, "green"
	return t
}

// TestABudgetThatEKSHeeds: the machines of a nodegroup are those of the groups behind it.
func TestABudgetThatEKSHeeds(t *testing.T) {
	w := newDrainWorld(t)
	target := target("blue", nodegroupPool("ng", 2))
	w.settle(target)
	out, err := w.groups().DescribeAutoScalingGroups(context.Background(), &autoscaling.DescribeAutoScalingGroupsInput{})
	w.check(nil, err)
	for _, g := range out.AutoScalingGroups {
		for _, i := range g.Instances {
			w.server.AddNode("n-"+*i.InstanceId, "aws:///eu-west-1a/"+*i.InstanceId, "True")
			w.server.AddPod(workloadtest.Pod{Namespace: "shop", Name: "cart-" + *i.InstanceId, Node: "n-" + *i.InstanceId, Owner: "ReplicaSet", Labels: map[string]string{"app": "cart"}})
		}
	}
	w.server.AddBudget("shop", "cart", "app", "cart", 0)
	target.Workload = w.cluster
	found, _, _ := w.ofBudgets(w.plans(rolls(target)))
	if len(found) != 1 || !strings.Contains(found[0].Summary, "are on the machines of the pool: EKS stops the update with PodEvictionFailure") {
		t.Errorf("got %v", found)
	}
}

// TestBudgetsThatAreNotKnown: whatever keeps weir from reading them is said, as information,
// and holds up neither the plan nor each pass.
func TestBudgetsThatAreNotKnown(t *testing.T) {
	for name, tt := range map[string]struct {
		fault  workloadtest.Fault
		change func(*reconciler.Desired)
		want   string
		// again is whether the next pass, a minute later, asks again.
		again bool
	}{
		"budgets forbidden": {fault: workloadtest.Fault{Path: "/apis/policy", Status: 403}, want: "list poddisruptionbudgets: 403 Forbidden"},
		"pods forbidden":    {fault: workloadtest.Fault{Path: "/api/v1/namespaces", Status: 403}, want: "list pods in shop: 403 Forbidden"},
		"a broken server":   {fault: workloadtest.Fault{Path: "/apis/policy", Status: 500}, want: "500", again: true},
		"nodes forbidden":   {fault: workloadtest.Fault{Path: "/api/v1/nodes", Status: 403}, want: "the nodes of the cluster could not be read", again: true},
		"another's plan":    {change: func(d *reconciler.Desired) { d.Workload = nil }, want: "this plan does not read the workload cluster"},
		"no kubeconfig":     {change: func(d *reconciler.Desired) { d.Workload, d.Policy.JoinTokens = nil, model.JoinTokens{} }},
	} {
		t.Run(name, func(t *testing.T) {
			w, target := kept(t)
			next := rolls(target)
			if tt.fault.Status != 0 {
				w.server.Fail(tt.fault)
			}
			if tt.change != nil {
				tt.change(&next)
			}
			r := w.plans(next)
			if !slices.ContainsFunc(r.Plan.Steps, func(s step.Step) bool { return s.StartsRollout() }) {
				t.Error("the plan rolls nothing")
			}
			found, _, _ := w.ofBudgets(r)
			if tt.want == "" {
				if len(found) > 0 || !slices.ContainsFunc(r.Diagnostics, func(d diag.Diagnostic) bool { return d.Code == "nothing-drains" && d.Severity == diag.Info }) {
					t.Errorf("got %v of %v", found, r.Diagnostics)
				}
				return
			}
			if len(found) != 1 || found[0].Severity != diag.Info || !strings.Contains(found[0].Summary, tt.want) {
				t.Errorf("got %v, want %q", found, tt.want)
			}
			w.clock.Advance(time.Minute)
			if found, budgets, _ := w.ofBudgets(w.plans(next)); len(found) != 1 || (budgets > 0) != tt.again {
				t.Errorf("later: %v, asked %d times", found, budgets)
			}
		})
	}
}
