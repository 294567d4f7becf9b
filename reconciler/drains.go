package reconciler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/drain"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"golang.org/x/sync/errgroup"
)

// drainTimeout limits the draining of one target in a pass: a cluster that does not answer must not
// delay the pass. AWS waits for a heartbeat for far longer.
const drainTimeout = 20 * time.Second

// drain continues to drain the machines that wait for weir's lifecycle hook, even if steps of their
// pools are held: AWS ends these machines anyway.
func (ps *passState) drain(ctx context.Context) error {
	waiting := waitingGroups(ps.state)
	var g errgroup.Group
	g.SetLimit(parallelTokens)
	drains := map[string]*drain.Drainer{}
	for i := range ps.targets {
		t, r := &ps.targets[i], ps.reports[i]
		if t.Set == nil || r.Plan == nil || t.Policy.Suspended || t.Policy.ReportOnly || t.Policy.Adoption.Asked {
			continue
		}
		machines := leaving(ps.inputs[i], waiting[t.Policy.Target])
		if len(machines) == 0 {
			continue
		}
		if t.Drains == nil {
			for _, m := range machines {
				noteDraining(r, drain.Standing{Machine: m, Why: "weir has no access to the cluster, so AWS ends the machine with its pods"})
			}
			continue
		}
		drainer := ps.memory.drainers[t.Policy.Target]
		if drainer == nil {
			drainer = &drain.Drainer{Now: ps.now, Clock: ps.clock}
		}
		drains[t.Policy.Target] = drainer
		g.Go(func() error {
			ctx, cancel := context.WithTimeout(ctx, drainTimeout)
			defer cancel()
			for _, st := range drainer.Advance(ctx, machines, drainNodes(ps.inputs[i].Nodes), t.Drains, hookActions{ps.applier}) {
				tellDraining(r, t.Set, st)
			}
			return nil
		})
	}
	_ = g.Wait() // failures are in the reports
	ps.memory.drainers = drains
	return nil
}

// waitingGroups returns the groups with machines that wait for weir's hook, sorted, by target.
// Their tags configure the drain, even if the pool is no longer in Git.
func waitingGroups(state *observed.State) map[string][]observed.Group {
	out := map[string][]observed.Group{}
	for _, g := range state.Groups {
		if _, marked := g.Tags[observed.TagDrainer]; marked && !g.Deleting && slices.ContainsFunc(g.Instances, observed.Instance.AwaitsEnd) {
			target := g.Tags[observed.TagTarget].Value
			out[target] = append(out[target], g)
		}
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b observed.Group) int { return strings.Compare(a.Name, b.Name) })
	}
	return out
}

// leaving returns the machines of a target's groups that weir may drain.
func leaving(in model.Input, groups []observed.Group) (out []drain.Machine) {
	for _, g := range groups {
		drainer, ok := intent.DrainerOf(g.Tags[observed.TagDrainer].Value)
		owner := in.GroupOwnership(g, in.Fleet.Wanted[model.Claim{Resource: step.AutoScalingGroup, Name: g.Name}])
		if !ok || !owner.Ours {
			continue
		}
		key := g.Tags[observed.TagPool].Value
		if pool := in.Set.Pool(key); in.Policy.Gates.Pools[key] != "" || pool != nil && in.HoldOf(pool) != "" {
			continue // weir writes nothing of the pool
		}
		for _, m := range g.Instances {
			if m.AwaitsEnd() {
				out = append(out, drain.Machine{Pool: key, Group: g.Name, Instance: m.ID, Heartbeat: time.Duration(drainer.Heartbeat()) * time.Second,
					Timeout: time.Duration(drainer.Timeout) * time.Second, Abandon: drainer.Abandon})
			}
		}
	}
	return out
}

func drainNodes(n *model.Nodes) drain.Nodes {
	if n == nil {
		return drain.Nodes{Err: errors.New("weir did not read them in this pass")}
	}
	out := drain.Nodes{ByInstance: make(map[string]drain.Node, len(n.ByInstance)), Unnamed: n.Unnamed, Err: n.Err}
	for id, node := range n.ByInstance {
		out.ByInstance[id] = drain.Node{Name: node.Name, UID: node.UID, Cordoned: node.Cordoned, Draining: node.Draining}
	}
	return out
}

// hookActions answers lifecycle hooks with the same checks as steps: the fence, and a new read if
// other weirs may own the scope.
type hookActions struct{ applier *applier }

// Hold implements drain.Actions.
func (a hookActions) Hold(ctx context.Context, m drain.Machine) error {
	return a.execute(ctx, step.HoldMachine{Group: m.Group, Hook: intent.DrainHook, Instance: m.Instance})
}

// Release implements drain.Actions.
func (a hookActions) Release(ctx context.Context, m drain.Machine, abandon bool) error {
	return a.execute(ctx, step.ReleaseMachine{Group: m.Group, Hook: intent.DrainHook, Instance: m.Instance, Result: intent.Drainer{Abandon: abandon}.Result()})
}

// execute answers a lifecycle hook. It waits for AWS's answer even if ctx ends, but for at most
// drainTimeout. It returns drain.ErrGone if AWS reports that no lifecycle action is open.
func (a hookActions) execute(ctx context.Context, action step.Action) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := forCall(ctx)
	defer cancel()
	ctx, cancelTimeout := context.WithTimeout(ctx, drainTimeout)
	defer cancelTimeout()
	_, err := a.applier.execute(ctx, step.Step{Do: action}, nil)
	var e *observed.Error
	if errors.As(err, &e) && (e.Kind == observed.Invalid || e.Kind == observed.NotFound) {
		return fmt.Errorf("%w: %w", drain.ErrGone, err)
	}
	return err
}

// shownPods is the number of a machine's pods that a report names.
const shownPods = 10

// noteDraining adds the progress of a machine's drain to the pool's status.
func noteDraining(r *plan.Report, st drain.Standing) {
	for i := range r.Pools {
		p := &r.Pools[i]
		if p.Namespace+"/"+p.Name != st.Pool {
			continue
		}
		d := plan.Draining{Instance: st.Instance, Node: st.Node, Since: st.Since, Until: st.Until, Why: st.Why, PodsLeft: len(st.Left)}
		for _, left := range st.Left[:min(len(st.Left), shownPods)] {
			d.Pods = append(d.Pods, plan.DrainingPod{Name: left.Pod, Why: left.Why})
		}
		p.Draining = append(p.Draining, d)
	}
}

// tellDraining adds the result of a drain step for a machine to a report.
func tellDraining(r *plan.Report, set *intent.Set, st drain.Standing) {
	if st.Ended == "" {
		noteDraining(r, st)
	} else {
		r.Milestones = append(r.Milestones, drained(st))
	}
	var call *observed.Error
	if st.Err == nil || errors.As(st.Err, &call) && call.Passes() {
		return
	}
	d := diag.Diagnostic{Severity: diag.Warning, Code: "drain-failed", Summary: "the machine " + st.Instance + " of pool " + st.Pool + " cannot be drained: " + st.Err.Error(), Detail: diag.Hint("drain-failed")}
	for i := range set.Pools {
		if p := &set.Pools[i]; p.Key.String() == st.Pool {
			d.Object = p.Options.String()
		}
	}
	r.Plan.Diagnostics = append(slices.Clone(r.Plan.Diagnostics), d).Sorted()
	r.Diagnostics = r.Plan.Diagnostics
}

// drained returns the event for a machine that was released.
func drained(st drain.Standing) step.Milestone {
	m := step.Milestone{Pool: st.Pool, Reason: string(st.Ended), Facts: map[string]string{"group": st.Group, "instance": st.Instance}}
	if st.Node != "" {
		m.Facts["node"] = st.Node
	}
	var pods []string
	for _, left := range st.Left[:min(len(st.Left), shownPods)] {
		pods = append(pods, left.Pod+" ("+left.Why+")")
	}
	named := strings.Join(pods, ", ")
	if more := len(st.Left) - len(pods); more > 0 {
		named += " and " + strconv.Itoa(more) + " more"
	}
	left := "remaining pods: " + named
	if named == "" {
		left = st.Why
	}
	switch st.Ended {
	case drain.Drained:
		m.Kind, m.Text = "machine-drained", "the machine "+st.Instance+" was drained and is terminated"
	case drain.WithoutAny:
		m.Kind, m.Text = "machine-not-drained", "the machine "+st.Instance+" has no node in the cluster to drain, and is terminated"
	case drain.GivenUp:
		m.Kind, m.Text = "drain-deadline", "the machine "+st.Instance+" could not be drained in "+st.Timeout.String()+", and is retained: "+left
	case drain.WithPods:
		m.Kind, m.Text = "drain-deadline", "the machine "+st.Instance+" could not be drained in "+st.Timeout.String()+", and is terminated anyway: "+left
	}
	return m
}
