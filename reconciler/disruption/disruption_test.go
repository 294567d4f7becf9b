package disruption_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/disruption"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/reconciler/workload"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// rolling is a plan that rolls the pool web, whose machine i-1 is the node n-1.
func rolling(change func(p *intent.Pool, s *step.Step)) (*plan.Plan, model.Input) {
	pool := intent.Pool{Key: intent.Key{Namespace: "default", Name: "web"}, MachinePool: intent.ObjectRef{Kind: "MachinePool", Namespace: "default", Name: "web"}, Group: &intent.Group{Name: "web"}}
	s := step.Step{Verb: step.Rollout, Pool: "default/web", Disruptive: true, Do: step.StartRefresh{Group: "web"}}
	if change != nil {
		change(&pool, &s)
	}
	in := model.Input{
		Set: &intent.Set{Pools: []intent.Pool{pool}}, Nodes: &model.Nodes{ByInstance: map[string]model.Node{"i-1": {Name: "n-1"}}},
		State: &observed.State{Groups: map[string]observed.Group{"web": {Name: "web", Instances: []observed.Instance{{ID: "i-1"}, {ID: "i-2"}}}, "eks-web": {Name: "eks-web", Instances: []observed.Instance{{ID: "i-1"}}}}},
	}
	if n := pool.Nodegroup; n != nil {
		name := observed.NodegroupName{Cluster: n.ClusterName, Name: n.Name}
		in.State.Nodegroups = map[observed.NodegroupName]observed.Nodegroup{name: {NodegroupName: name, GroupNames: []string{"eks-web"}}}
	}
	return &plan.Plan{Steps: []step.Step{s}}, in
}

func asNodegroup(force bool) func(*intent.Pool, *step.Step) {
	return func(p *intent.Pool, s *step.Step) {
		p.Group, p.Nodegroup = nil, &intent.Nodegroup{Name: "web", ClusterName: "demo"}
		s.Do = step.UpdateNodegroupVersion{Force: force}
	}
}

func drained(d intent.Drainer) func(*intent.Pool, *step.Step) {
	return func(p *intent.Pool, _ *step.Step) {
		p.Group.Drainer, p.Group.LifecycleHooks = &d, []intent.LifecycleHook{d.Hook()}
	}
}

func held(h step.Hold) func(*intent.Pool, *step.Step) {
	return func(_ *intent.Pool, s *step.Step) { s.Held = h }
}

var full = workload.DisruptionBudget{Namespace: "shop", Name: "cart", Counted: true, Healthy: 2, Needed: 2, Expected: 3}

func pods(nodes ...string) (out []workload.Pod) {
	for i, n := range nodes {
		out = append(out, workload.Pod{Namespace: "shop", Name: fmt.Sprintf("cart-%d", i), Node: n, Ready: true, Owner: "ReplicaSet"})
	}
	return out
}

func TestFindings(t *testing.T) {
	const now = "warning budget-blocks MachinePool default/web: the disruption budget shop/cart allows no disruption now, because it requires 2 healthy pods, and 2 of 3 are healthy, and its pod cart-0 is on the machines of the pool: "
	blocked := func(b workload.DisruptionBudget, nodes ...string) *disruption.Answer {
		return &disruption.Answer{Blocked: []disruption.Blocked{{Budget: b, Pods: pods(nodes...)}}}
	}
	here := blocked(full, "n-1")
	with := func(change func(*workload.DisruptionBudget)) *disruption.Answer {
		b := full
		change(&b)
		return blocked(b, "n-1", "n-1", "n-1", "n-1", "n-1")
	}
	const five = "and its pods cart-0, cart-1, cart-2 and 2 more are on the machines of the pool: nothing in Git respects the budget: unless another tool's hook drains the machines, their pods are terminated with them"
	const unasked = "info budgets-unasked : weir does not know for all disruption budgets whether they allow disruptions: "
	const bare = "info nothing-drains MachinePool default/web: nothing in Git drains the machines of pool default/web: unless another tool's hook drains them, their pods are terminated with them"
	for name, tt := range map[string]struct {
		change func(*intent.Pool, *step.Step)
		answer *disruption.Answer
		want   []string
	}{
		"nothing drains":       {nil, here, []string{now + "nothing in Git respects the budget: unless another tool's hook drains the machines, their pods are terminated with them"}},
		"a drainer":            {drained(intent.Drainer{Timeout: 5430}), here, []string{now + "weir's drainer waits up to 1h30m30s for each such machine, which then ends with them"}},
		"a drainer that keeps": {drained(intent.Drainer{Timeout: 3600, Abandon: true}), here, []string{now + "weir's drainer waits up to 1h for each such machine, which then keeps running beside the group"}},
		"another's hook": {func(p *intent.Pool, _ *step.Step) {
			p.Group.LifecycleHooks = []intent.LifecycleHook{{Name: "in", LifecycleTransition: "autoscaling:EC2_INSTANCE_LAUNCHING"}, {Name: "nth", LifecycleTransition: intent.Terminating}}
		}, here, []string{now + "the program that answers the lifecycle hook nth decides what happens to them"}},
		"a nodegroup":            {asNodegroup(false), here, []string{now + "EKS stops the update with PodEvictionFailure if a machine has not drained within 15 minutes"}},
		"a nodegroup with force": {asNodegroup(true), here, []string{now + "EKS terminates them anyway, because the pool forces its updates"}},
		"pods elsewhere":         {nil, blocked(full, "n-2", ""), []string{bare}},
		"a machine without node": {nil, blocked(full, "i-2"), []string{bare}},
		"never":                  {nil, with(func(b *workload.DisruptionBudget) { b.Needed = 3 }), []string{"warning budget-blocks MachinePool default/web: the disruption budget shop/cart never allows a disruption, because it requires all 3 pods to be healthy, " + five}},
		"not counted":            {nil, with(func(b *workload.DisruptionBudget) { b.Counted = false }), []string{"warning budget-blocks MachinePool default/web: the disruption budget shop/cart allows no disruption before the cluster has counted its pods, " + five}},
		"cannot be counted":      {nil, with(func(b *workload.DisruptionBudget) { b.Why = "found no controllers" }), []string{"warning budget-blocks MachinePool default/web: the disruption budget shop/cart allows no disruption, because the cluster cannot count its pods (found no controllers), " + five}},
		"waits for a window":     {held(step.HeldWindow), here, []string{now + "nothing in Git respects the budget: unless another tool's hook drains the machines, their pods are terminated with them"}},
		"waits for a wave":       {held(step.HeldWave), here, []string{now + "nothing in Git respects the budget: unless another tool's hook drains the machines, their pods are terminated with them"}},
		"is paused":              {held(step.HeldPaused), here, nil},
		"was stopped":            {held(step.HeldStopped), here, nil},
		"takes a rollout back":   {func(_ *intent.Pool, s *step.Step) { s.Stops = true }, here, nil},
		"no rollout":             {func(_ *intent.Pool, s *step.Step) { s.Do = step.UpdateGroup{} }, here, nil},
		"replaces no machine":    {func(_ *intent.Pool, s *step.Step) { s.Disruptive = false }, here, nil},
		"not asked":              {nil, nil, []string{unasked + "this plan does not read the workload cluster", bare}},
		"a nodegroup, not asked": {asNodegroup(false), nil, []string{unasked + "this plan does not read the workload cluster"}},
		"no rollout, not asked":  {func(_ *intent.Pool, s *step.Step) { s.Do = step.UpdateGroup{} }, nil, nil},
		"some not known":         {nil, &disruption.Answer{Blocked: here.Blocked, Err: errors.New("forbidden")}, []string{unasked + "forbidden", now + "nothing in Git respects the budget: unless another tool's hook drains the machines, their pods are terminated with them"}},
		"very many":              {nil, &disruption.Answer{Unread: 7}, []string{unasked + "7 more budgets allow no disruption, and weir did not read their pods", bare}},
		"nothing is in the way":  {drained(intent.Drainer{Timeout: 60}), &disruption.Answer{}, nil},
		"nothing but no drainer": {nil, &disruption.Answer{}, []string{bare}},
	} {
		t.Run(name, func(t *testing.T) {
			p, in := rolling(tt.change)
			if d := cmp.Diff(tt.want, lines(disruption.Of(p, in, tt.answer))); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestWhatDrainsIsKnownWithoutACluster: what is written in Git needs no kubeconfig.
func TestWhatDrainsIsKnownWithoutACluster(t *testing.T) {
	const bare = "info nothing-drains MachinePool default/web: nothing in Git drains the machines of pool default/web: unless another tool's hook drains them, their pods are terminated with them"
	hook := func(p *intent.Pool, _ *step.Step) {
		p.Group.LifecycleHooks = []intent.LifecycleHook{{Name: "nth", LifecycleTransition: intent.Terminating}}
	}
	for name, tt := range map[string]struct {
		change func(*intent.Pool, *step.Step)
		want   []string
	}{
		"nothing": {nil, []string{bare}}, "a drainer": {drained(intent.Drainer{Timeout: 60}), nil}, "another's hook": {hook, nil}, "a nodegroup": {asNodegroup(false), nil},
		"is paused": {held(step.HeldPaused), nil}, "no rollout": {func(_ *intent.Pool, s *step.Step) { s.Do = step.UpdateGroup{} }, nil},
	} {
		p, in := rolling(tt.change)
		in.Nodes = nil
		if d := cmp.Diff(tt.want, lines(disruption.Undrained(p, in))); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

func lines(l diag.List) (out []string) {
	for _, d := range l {
		if d.Detail == "" {
			out = append(out, "no advice")
		}
		out = append(out, d.Severity.String()+" "+d.Code+" "+d.Object+": "+d.Summary)
	}
	slices.Sort(out)
	return out
}

// TestNodesThatAreNotKnown: without them no pod can be told to be on the pool's machines,
// and that is said.
func TestNodesThatAreNotKnown(t *testing.T) {
	for want, nodes := range map[string]*model.Nodes{"were not read": nil, "could not be read: slow": {Err: errors.New("slow")}} {
		p, in := rolling(nil)
		in.Nodes = nodes
		if got := lines(disruption.Of(p, in, &disruption.Answer{Blocked: []disruption.Blocked{{Budget: full, Pods: pods("n-1")}}})); len(got) != 2 || !strings.Contains(got[0], want) {
			t.Errorf("%s: %v", want, got)
		}
	}
}

func TestManyBudgetsAreFewFindings(t *testing.T) {
	a := &disruption.Answer{}
	for i := range 9 {
		b := full
		b.Name = fmt.Sprintf("b%d", i)
		a.Blocked = append(a.Blocked, disruption.Blocked{Budget: b, Pods: pods("n-1")})
	}
	p, in := rolling(nil)
	got := disruption.Of(p, in, a)
	if len(got) != 5 || !strings.HasSuffix(got[4].Summary, "; 4 more budgets keep pods there") {
		t.Errorf("got %v", lines(got))
	}
}

// Of many pools that nothing drains it is said once, with the budgets that are in the way of any
// of them; a pool that something drains has its own findings beside that.
func TestNothingDrainsIsOneLine(t *testing.T) {
	p, in := rolling(nil)
	in.Set.Pools = nil
	p.Steps = nil
	for i, name := range []string{"a", "b", "c", "d", "e", "f", "g", "drained"} {
		pool := intent.Pool{Key: intent.Key{Namespace: "default", Name: name}, MachinePool: intent.ObjectRef{Kind: "MachinePool", Namespace: "default", Name: name}, Group: &intent.Group{Name: name}}
		if name == "drained" {
			pool.Group.Drainer = &intent.Drainer{Timeout: 60}
		}
		in.Set.Pools = append(in.Set.Pools, pool)
		id := fmt.Sprintf("i-%d", i)
		in.State.Groups[name] = observed.Group{Name: name, Instances: []observed.Instance{{ID: id}}}
		in.Nodes.ByInstance[id] = model.Node{Name: "n-" + id}
		p.Steps = append(p.Steps, step.Step{Verb: step.Rollout, Pool: "default/" + name, Disruptive: true, Do: step.StartRefresh{Group: name}})
	}
	in.Set.Sort()
	const bare = "nothing-drains : nothing in Git drains the machines of 7 pools that roll: default/a, default/b, default/c, default/d, default/e and 2 more: unless another tool's hook drains them, their pods are terminated with them"
	if d := cmp.Diff([]string{"info " + bare}, lines(disruption.Of(p, in, &disruption.Answer{}))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	got := lines(disruption.Of(p, in, &disruption.Answer{Blocked: []disruption.Blocked{{Budget: full, Pods: pods("n-i-0", "n-i-1", "n-i-7")}}}))
	if len(got) != 2 || got[1] != "warning "+bare+", including pods of disruption budgets that allow no disruption: shop/cart" || !strings.Contains(got[0], "budget-blocks MachinePool default/drained: ") {
		t.Errorf("got %q", got)
	}
}

// cluster answers from memory, and counts.
type cluster struct {
	mu      sync.Mutex
	budgets []workload.DisruptionBudget
	pods    []workload.Pod
	asked   []string
	fails   map[string]bool
}

func (c *cluster) DisruptionBudgets(context.Context) ([]workload.DisruptionBudget, error) {
	if c.fails[""] {
		return nil, errors.New("no budgets")
	}
	return slices.Clone(c.budgets), nil
}

func (c *cluster) PodsOf(_ context.Context, b workload.DisruptionBudget) ([]workload.Pod, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked = append(c.asked, b.Name)
	if c.fails[b.Name] {
		return nil, errors.New("no pods")
	}
	return slices.Clone(c.pods), nil
}

func TestOnlyPodsOfBudgetsThatLetNoneGoAreRead(t *testing.T) {
	named := func(name string, change func(*workload.DisruptionBudget)) workload.DisruptionBudget {
		b := full
		b.Name = name
		change(&b)
		return b
	}
	c := &cluster{budgets: []workload.DisruptionBudget{
		named("full", func(*workload.DisruptionBudget) {}),
		named("free", func(b *workload.DisruptionBudget) { b.Allowed = 1 }),
		named("empty", func(b *workload.DisruptionBudget) { b.Expected, b.Needed, b.Healthy = 0, 0, 0 }),
		named("lost", func(b *workload.DisruptionBudget) { b.Expected, b.Why = 0, "no controller" }),
		named("new", func(b *workload.DisruptionBudget) { b.Expected, b.Counted = 0, false }),
		named("fails", func(*workload.DisruptionBudget) {}),
	}, fails: map[string]bool{"fails": true}}
	c.pods = []workload.Pod{
		{Namespace: "shop", Name: "goes", Ready: true}, {Namespace: "shop", Name: "agent", Owner: "DaemonSet", Ready: true}, {Namespace: "shop", Name: "static", Mirror: true, Ready: true},
		{Namespace: "shop", Name: "done", Finished: true}, {Namespace: "shop", Name: "waits", Pending: true},
	}
	got := disruption.Read(t.Context(), c)
	slices.Sort(c.asked)
	if d := cmp.Diff([]string{"fails", "full", "lost", "new"}, c.asked); d != "" {
		t.Errorf("asked (-want +got):\n%s", d)
	}
	if len(got.Blocked) != 3 || got.Err == nil || got.Unread != 0 {
		t.Fatalf("got %+v", got)
	}
	for _, b := range got.Blocked {
		if len(b.Pods) != 1 || b.Pods[0].Name != "goes" {
			t.Errorf("%s: %v", b.Budget, b.Pods)
		}
	}
	c.fails[""] = true
	if got := disruption.Read(t.Context(), c); got.Err == nil || len(got.Blocked) > 0 {
		t.Errorf("got %+v", got)
	}
}

func TestReadsAreBounded(t *testing.T) {
	c := &cluster{}
	for i := range 120 {
		b := full
		b.Name = fmt.Sprintf("b%03d", i)
		c.budgets = append(c.budgets, b)
	}
	if got := disruption.Read(t.Context(), c); len(c.asked) != 50 || got.Unread != 70 {
		t.Errorf("%d reads, %d unread", len(c.asked), got.Unread)
	}
}
