package plan

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/group"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/plan/nodegroup"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// Statuses returns the status of each pool of the input, from the observed state and the plan for
// it.
func Statuses(in model.Input, p *Plan) []PoolStatus {
	out := make([]PoolStatus, 0, len(in.Set.Pools))
	f := findingsOf(p)
	if in.Index == nil {
		in.Index = model.NewIndex(in.State)
	}
	for i := range in.Set.Pools {
		s := f.status(in, &in.Set.Pools[i])
		s.Conditions = f.withDrift(s.Conditions, &in.Set.Pools[i])
		out = append(out, s)
	}
	return append(out, deleting(in, p)...)
}

// findings groups the diagnostics and steps of a plan by pool and by object.
type findings struct {
	pending map[string]bool             // pools with steps
	waits   map[string]string           // why pools wait for their control plane
	errors  map[string]*diag.Diagnostic // the first error of an object
	drifts  map[string]*diag.Diagnostic // the first drift of an object
	stopped map[string][]string         // effects of suspended processes, by object
	rolls   map[string]*step.Step       // held rollouts of groups, by pool; nil for none
	pools   model.PoolPlans             // the facts of the plan
}

// findingsOf sorts the steps and diagnostics of a plan by pool, for the statuses of pools.
func findingsOf(p *Plan) findings {
	f := findings{pools: p.pools, pending: map[string]bool{}, waits: map[string]string{}, errors: map[string]*diag.Diagnostic{}, drifts: map[string]*diag.Diagnostic{}, stopped: map[string][]string{}}
	for i, s := range p.Steps {
		f.pending[s.Pool] = true
		if s.Verb == step.Rollout && s.Held != "" && s.Resource == step.AutoScalingGroup {
			if f.rolls == nil {
				f.rolls = map[string]*step.Step{}
			}
			f.rolls[s.Pool] = &p.Steps[i]
		}
		if s.Held == step.HeldControlPlane {
			f.waits[s.Pool] = s.HeldReason
		}
		for _, pool := range s.Pools {
			f.pending[pool] = true
		}
	}
	for i, d := range p.Diagnostics {
		if _, known := f.errors[d.Object]; d.Severity == diag.Error && d.Object != "" && !known {
			f.errors[d.Object] = &p.Diagnostics[i]
		}
		if _, known := f.drifts[d.Object]; d.Code == "drift" && !known {
			f.drifts[d.Object] = &p.Diagnostics[i]
		}
		if d.Code == group.CodeProcessSuspended {
			f.stopped[d.Object] = append(f.stopped[d.Object], d.Summary+"; "+d.Detail)
		}
	}
	return f
}

// of returns the plan's facts of a pool.
func (f findings) of(pool *intent.Pool) model.PoolPlan {
	if known := f.pools.Of(pool.Key); known != nil {
		return *known
	}
	return model.PoolPlan{}
}

// status returns the status of a pool from the plan and the observed state.
func (f findings) status(in model.Input, pool *intent.Pool) PoolStatus {
	s := PoolStatus{
		Name: pool.Key.Name, Namespace: pool.Key.Namespace, Cluster: pool.ClusterKey.Name, Target: in.Policy.Target,
		Kind: pool.Kind, DesiredReplicas: pool.Replicas.Value, ReadyFrom: "InService", ProviderIDList: []string{},
		BootstrapReady: len(pool.Blocked) == 0,
	}
	if in.Nodes != nil && in.Nodes.Err == nil {
		s.ReadyFrom = "nodes"
	}
	if f := pool.ForeignTemplate; f != nil && in.Answers[f.Lookup].Template != nil {
		s.LaunchTemplateID = in.Answers[f.Lookup].Template.ID
	}
	if t := pool.LaunchTemplate; t != nil {
		if have, ok := in.State.Templates[t.Name]; ok {
			s.LaunchTemplateID = have.ID
		}
	}
	known := f.of(pool)
	failure := s.failure(f, pool)
	pool = asInAWS(in, pool, s.FailureReason)
	nodegroups := nodegroupsFor(in, pool, known.Nodegroup)
	moving := false
	switch {
	case s.FailureReason == model.CodeConflict:
		// The group with the name belongs to somebody else, and so do its machines.
		s.LaunchTemplateID = ""
	case pool.Group != nil:
		moving = s.fromGroup(in, pool, known.Watched)
	case pool.Nodegroup != nil:
		moving = s.fromNodegroup(in, pool, nodegroups)
	}
	s.notes(in, pool)
	s.awaits(f.rolls[pool.Key.String()])
	s.UnavailableReplicas = max(0, s.DesiredReplicas-s.AvailableReplicas)
	if f.waits[pool.Key.String()] != "" && !s.InfrastructureReady {
		s.BootstrapReady = false
	}
	ready := f.ready(in, &s, pool, moving, failure)
	s.Converged = ready.Status == conditionStatus(true)
	s.Phase = s.phase(pool, failure != nil)
	s.Conditions = s.conditions(in, pool, nodegroups, ready, failure)
	if stopped := f.stopped[pool.Infrastructure.String()]; !s.Converged && failure == nil && len(stopped) > 0 {
		ready := &s.Conditions[0]
		ready.Severity, ready.Reason, ready.Message = "Warning", group.CodeProcessSuspended, strings.Join(stopped, "; ")
	}
	return s
}

// asInAWS returns the pool with the name of its actual group or nodegroup, if weir refuses the name
// in Git. The status shows the actual resource.
func asInAWS(in model.Input, pool *intent.Pool, failure string) *intent.Pool {
	if failure != model.CodeRenamed {
		return pool
	}
	was, out := in.Renamed(pool), *pool
	switch {
	case len(was) == 0:
	case out.Group != nil:
		g := *out.Group
		g.Name, out.Group = was[0], &g
	case out.Nodegroup != nil:
		n := *out.Nodegroup
		n.Name, out.Nodegroup = was[0], &n
	}
	return &out
}

// failure returns the first error that concerns the pool, nil for none.
func (s *PoolStatus) failure(f findings, pool *intent.Pool) *diag.Diagnostic {
	if len(f.errors) == 0 {
		return nil
	}
	for _, ref := range []intent.ObjectRef{pool.Infrastructure, pool.MachinePool, pool.Bootstrap, pool.Options} {
		if d := f.errors[ref.String()]; d != nil && ref.Kind != "" {
			s.FailureReason, s.FailureMessage = d.Code, d.Located()
			return d
		}
	}
	return nil
}

// fromGroup fills in the facts of the pool's group. moving reports whether the group is still
// changing, or is being deleted.
func (s *PoolStatus) fromGroup(in model.Input, pool *intent.Pool, watched *model.Watched) (moving bool) {
	g, ok := in.State.Groups[pool.Group.Name]
	if !ok || g.Deleting {
		return ok
	}
	s.InfrastructureReady = true
	s.LaunchTemplateVersion = g.Template.Version
	s.DesiredReplicas = g.DesiredInstances()
	if s.DesiredReplicas == g.DesiredCapacity {
		s.bounds(g.MinSize, g.MaxSize)
	}
	s.count(in, pool, g.Instances, launchSettingsOf(in, g, "pool"))
	if r, read := in.State.Refreshes[g.Name]; read && r.ID != "" {
		if watched != nil {
			r = watched.Shown(r)
		}
		s.LastRollout = &RolloutStatus{ID: r.ID, Status: r.Status, Percentage: r.Percentage, InstancesLeft: r.InstancesLeft, Message: r.Reason,
			StartedAt: r.StartedAt, MinHealthy: r.Preferences.MinHealthyPercentage, MaxHealthy: r.Preferences.MaxHealthyPercentage}
		if r.Active() {
			s.Rollout, moving = s.LastRollout, true
		}
	}
	return moving || s.Replicas != s.DesiredReplicas || s.ReadyReplicas != s.DesiredReplicas
}

// count lists and counts instances and, if the workload cluster answered, their nodes.
func (s *PoolStatus) count(in model.Input, pool *intent.Pool, instances []observed.Instance, want launchSettings) {
	template := ""
	if pool.LaunchTemplate != nil {
		template = pool.LaunchTemplate.Name
	}
	s.addInstances(in, template, instances, want)
	for _, i := range instances {
		if i.Retained() || i.StandsBy() {
			continue // AWS fills the capacity without it
		}
		s.Replicas++
		s.ProviderIDList = append(s.ProviderIDList, "aws:///"+i.Zone+"/"+i.ID)
		ready, available := in.Machine(pool, i)
		if ready {
			s.ReadyReplicas++
		}
		if available {
			s.AvailableReplicas++
		}
		if in.Nodes != nil {
			if n, joined := in.Nodes.ByInstance[i.ID]; joined {
				s.NodeRefs = append(s.NodeRefs, NodeRef{APIVersion: "v1", Kind: "Node", Name: n.Name, UID: n.UID})
			}
		}
	}
	s.sortInstances()
	slices.Sort(s.ProviderIDList)
	slices.SortFunc(s.NodeRefs, func(a, b NodeRef) int { return strings.Compare(a.Name, b.Name) })
}

// fromNodegroup fills the status from the pool's nodegroups. The one that matches Git comes first.
// During a replacement, the machines of all of them are the pool's.
func (s *PoolStatus) fromNodegroup(in model.Input, pool *intent.Pool, all []observed.Nodegroup) (moving bool) {
	s.Nodegroup = nodegroupStatus(all)
	if len(all) == 0 {
		return false
	}
	n := all[0]
	s.DesiredReplicas = n.DesiredSize
	s.bounds(n.MinSize, n.MaxSize)
	s.LaunchTemplateVersion = n.Template.Version
	groups := 0
	for i, one := range all {
		s.InfrastructureReady = s.InfrastructureReady || model.NodegroupRank(one) == 0
		for _, g := range one.GroupNames {
			have, known := in.State.Groups[g]
			if !known {
				continue
			}
			if i == 0 {
				groups++
			}
			s.count(in, pool, have.Instances, launchSettingsOf(in, have, "nodegroup"))
		}
	}
	u, read := in.State.Updates[n.NodegroupName]
	if read && u.ID != "" {
		s.LastRollout = &RolloutStatus{ID: u.ID, Status: u.Status, Message: nodegroup.HealthText(u.Errors), StartedAt: u.CreatedAt}
	}
	if n.Status == "UPDATING" {
		s.Rollout = &RolloutStatus{ID: u.ID, Status: n.Status, Message: u.Type, StartedAt: u.CreatedAt}
	}
	switch n.Status {
	case "CREATING", "UPDATING", "DELETING":
		return true
	}
	return len(all) > 1 || groups == 0 || s.ReadyReplicas != n.DesiredSize
}
