package disruption

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/reconciler/workload"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// Codes of findings.
const (
	codeBlocks  = "budget-blocks"
	codeUnasked = "budgets-unasked"
	codeNothing = "nothing-drains"
)

const (
	// shownPods is the number of pods that a finding names for each budget, shownPools the number of pools,
	// and shownBudgets the number of budgets that are reported for one pool.
	shownPods    = 3
	shownPools   = 5
	shownBudgets = 5
)

// rollout is a rollout that is due.
type rollout struct {
	pool *intent.Pool
	// force says that EKS terminates pods despite their budgets.
	force bool
}

// rollouts returns the rollouts of a plan that replace machines and are about to start, or wait for time,
// people or other rollouts.
func rollouts(p *plan.Plan, in model.Input) (out []rollout) {
	for i := range p.Steps {
		s := &p.Steps[i]
		r := rollout{}
		switch do := s.Do.(type) {
		case step.StartRefresh:
		case step.UpdateNodegroupVersion:
			r.force = do.Force
		default:
			continue
		}
		if r.pool = in.Set.Pool(s.Pool); r.pool == nil || !s.Disruptive || s.Stops || s.Held.Stays() {
			continue
		}
		if !slices.ContainsFunc(out, func(o rollout) bool { return o.pool == r.pool }) {
			out = append(out, r)
		}
	}
	return out
}

// Due reports whether a plan has a rollout for which the budgets matter.
func Due(p *plan.Plan, in model.Input) bool { return len(rollouts(p, in)) > 0 }

// Undrained reports the groups of a plan's rollouts that nothing drains, for targets without access
// to the cluster. Git alone shows this.
func Undrained(p *plan.Plan, in model.Input) diag.List {
	return nothingDrains(undrained(in, rollouts(p, in)), nil)
}

// Of returns the budgets that obstruct a plan's rollouts. The input has the state and the nodes from which
// the plan was made. A nil answer means that this plan does not read the cluster.
func Of(p *plan.Plan, in model.Input, a *Answer) (found diag.List) {
	due := rollouts(p, in)
	if len(due) == 0 {
		return nil
	}
	bare := undrained(in, due)
	why := ""
	switch {
	case a == nil:
		why = "this plan does not read the workload cluster"
	case in.Nodes == nil:
		why = "the nodes of the cluster were not read"
	case in.Nodes.Err != nil:
		why = "the nodes of the cluster could not be read: " + in.Nodes.Err.Error()
	}
	if why != "" {
		return append(nothingDrains(bare, nil), unasked(why))
	}
	var budgets []string // budgets with pods on machines that nothing drains
	for _, r := range due {
		on := r.onMachines(in, a.Blocked)
		if slices.Contains(bare, r) && (len(bare) > 1 || len(on) == 0) { // reported for all of them together
			for _, b := range on {
				budgets = append(budgets, b.Budget.String())
			}
			continue
		}
		bare = slices.DeleteFunc(bare, func(o rollout) bool { return o == r })
		found = append(found, r.blocked(in, on)...)
	}
	found = append(found, nothingDrains(bare, budgets)...)
	switch {
	case a.Err != nil:
		found = append(found, unasked(a.Err.Error()))
	case a.Unread > 0:
		found = append(found, unasked(fmt.Sprintf("%d more budgets allow no disruption, and weir did not read their pods", a.Unread)))
	}
	return found
}

func unasked(why string) diag.Diagnostic {
	return diag.Diagnostic{Severity: diag.Info, Code: codeUnasked, Summary: "weir does not know for all disruption budgets whether they allow disruptions: " + why, Detail: diag.Hint(codeUnasked)}
}

// undrained returns the rollouts of groups for whose machines Git declares nothing that evicts their pods
// first.
func undrained(in model.Input, due []rollout) (out []rollout) {
	for _, r := range due {
		if g := r.pool.Group; g != nil && g.Drainer == nil && terminating(in, r.pool) == "" {
			out = append(out, r)
		}
	}
	return out
}

// nothingDrains returns one finding about all of these rollouts, with the budgets of the pods on
// their machines.
func nothingDrains(bare []rollout, budgets []string) diag.List {
	if len(bare) == 0 {
		return nil
	}
	d := diag.Diagnostic{Severity: diag.Info, Code: codeNothing, Detail: drainIt}
	var pools []string
	for _, r := range bare {
		pools = append(pools, r.pool.Key.String())
	}
	of := "pool "
	if d.Object = bare[0].pool.MachinePool.String(); len(bare) > 1 {
		d.Object, of = "", strconv.Itoa(len(bare))+" pools that roll: "
	}
	d.Summary = "nothing in Git drains the machines of " + of + some(pools, shownPools) + ": unless another tool's hook drains them, their pods are terminated with them"
	if slices.Sort(budgets); len(budgets) > 0 {
		d.Severity = diag.Warning
		d.Summary += ", including pods of disruption budgets that allow no disruption: " + some(slices.Compact(budgets), shownBudgets)
	}
	return diag.List{d}
}

// some returns the first items of a list, as text.
func some(list []string, most int) string {
	text := strings.Join(list[:min(len(list), most)], ", ")
	if left := len(list) - most; left > 0 {
		text += " and " + strconv.Itoa(left) + " more"
	}
	return text
}

// here is a budget with its pods that run on a pool's machines.
type here struct {
	Budget workload.DisruptionBudget
	pods   []string
}

// onMachines returns the blocked budgets with the pods that run on machines of the rollout's pool. It leaves
// out budgets without such pods.
func (r rollout) onMachines(in model.Input, blocked []Blocked) (out []here) {
	nodes := map[string]bool{}
	for _, i := range in.InstancesOf(r.pool) {
		if n, joined := in.Nodes.ByInstance[i.ID]; joined {
			nodes[n.Name] = true
		}
	}
	for _, b := range blocked {
		h := here{Budget: b.Budget}
		for _, p := range b.Pods {
			if nodes[p.Node] {
				h.pods = append(h.pods, strings.TrimPrefix(p.String(), b.Budget.Namespace+"/"))
			}
		}
		if len(h.pods) > 0 {
			out = append(out, h)
		}
	}
	return out
}

// blocked returns the findings about one pool.
func (r rollout) blocked(in model.Input, on []here) (found diag.List) {
	for _, b := range on[:min(len(on), shownBudgets)] {
		follows, advice := r.follows(in)
		found = append(found, diag.Diagnostic{
			Severity: diag.Warning, Code: codeBlocks, Object: r.pool.MachinePool.String(), Detail: advice,
			Summary: "the disruption budget " + b.Budget.String() + " " + why(b.Budget) + ", and " + names(b.pods) + " on the machines of the pool: " + follows,
		})
	}
	if more := len(on) - shownBudgets; more > 0 {
		found[len(found)-1].Summary += fmt.Sprintf("; %d more budgets keep pods there", more)
	}
	return found
}

// names returns the names of pods as the subject of a sentence.
func names(pods []string) string {
	slices.Sort(pods)
	shown := strings.Join(pods[:min(len(pods), shownPods)], ", ")
	switch left := len(pods) - shownPods; {
	case len(pods) == 1:
		return "its pod " + shown + " is"
	case left > 0:
		return "its pods " + shown + " and " + strconv.Itoa(left) + " more are"
	}
	return "its pods " + shown + " are"
}

// why explains with numbers why a budget allows no eviction.
func why(b workload.DisruptionBudget) string {
	switch {
	case b.Why != "":
		return "allows no disruption, because the cluster cannot count its pods (" + b.Why + ")"
	case !b.Counted:
		return "allows no disruption before the cluster has counted its pods"
	case b.Needed >= b.Expected:
		return fmt.Sprintf("never allows a disruption, because it requires all %d pods to be healthy", b.Expected)
	}
	return fmt.Sprintf("allows no disruption now, because it requires %d healthy pods, and %d of %d are healthy", b.Needed, b.Healthy, b.Expected)
}

const drainIt = "write spec.drainer in the PoolOptions of such a pool, so that weir evicts pods as budgets let it; or the hook of the tool that drains, in spec.lifecycleHooks"

const mendBudget = "let the budget allow a disruption (kubectl get poddisruptionbudgets -A shows them), or run more of its pods, before the rollout starts"

// follows returns the consequence for the machines and pods, and advice.
func (r rollout) follows(in model.Input) (what, advice string) {
	g := r.pool.Group
	switch {
	case g == nil && r.force:
		return "EKS terminates them anyway, because the pool forces its updates", mendBudget
	case g == nil:
		return "EKS stops the update with PodEvictionFailure if a machine has not drained within 15 minutes", mendBudget
	case g.Drainer != nil:
		t := duration(g.Drainer.Timeout)
		if g.Drainer.Abandon {
			return "weir's drainer waits up to " + t + " for each such machine, which then keeps running beside the group", mendBudget
		}
		return "weir's drainer waits up to " + t + " for each such machine, which then ends with them", mendBudget
	}
	if hook := terminating(in, r.pool); hook != "" {
		return "the program that answers the lifecycle hook " + hook + " decides what happens to them", mendBudget
	}
	return "nothing in Git respects the budget: unless another tool's hook drains the machines, their pods are terminated with them", drainIt
}

// terminating returns the name of a lifecycle hook for which machines of a group wait before they end, or an
// empty string. weir reads hooks only for groups that declare some.
func terminating(in model.Input, pool *intent.Pool) string {
	for _, list := range [][]intent.LifecycleHook{pool.Group.LifecycleHooks, in.State.Hooks[pool.Group.Name].Hooks} {
		for _, h := range list {
			if h.LifecycleTransition == intent.Terminating {
				return h.Name
			}
		}
	}
	return ""
}

// duration formats seconds, such as 10m instead of 10m0s.
func duration(seconds int32) string {
	text := (time.Duration(seconds) * time.Second).String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}
