package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/lastgood"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// A pool with a fault in Git stays in every view. It is Failed, and shows its resources in AWS and
// the position of the fault. So does every other pool with resources in AWS if its target has a
// fault: Git may or may not still want it.

// ReasonKept is the reason of the condition Ready for a pool that is not in the followed revision
// and that weir keeps because its target has a fault.
const ReasonKept = "KeptAsTargetHasFault"

// ReasonNotOfAWS is the reason of the condition Ready for a MachinePool whose infrastructure is
// another provider's, although AWS has a resource with its tag.
const ReasonNotOfAWS = "NotOfAWS"

// WithFaults adds to the statuses of a target's pools the faults of broken pools, and the pools
// that are not in the plan. held maps the pools that use an earlier revision to their Fallback. It
// is nil if the target uses one as a whole or not at all. in.Set may be nil.
func WithFaults(in model.Input, statuses []PoolStatus, held map[string]*Fallback, target *Fallback) []PoolStatus {
	if len(in.Unplanned) == 0 && in.Policy.Fault == "" {
		return statuses
	}
	if in.Index == nil {
		in.Index = model.NewIndex(in.State)
	}
	if in.Set == nil {
		in.Set = &intent.Set{}
	}
	v := &faulty{in: in, out: slices.Clone(statuses), at: map[string]int{}, taken: map[model.Claim]bool{}, held: held, target: target}
	for i, s := range v.out {
		v.at[s.Namespace+"/"+s.Name] = i
	}
	for _, c := range model.Claims(in.Set) {
		v.taken[c] = true
	}
	v.all = v.resources()
	for i := range in.Unplanned {
		if u := &in.Unplanned[i]; u.IsPool() {
			v.broken(u)
		}
	}
	if in.Policy.Fault != "" {
		v.heldAsWhole()
		v.kept()
	}
	slices.SortStableFunc(v.out, func(a, b PoolStatus) int {
		return cmp.Or(strings.Compare(a.Namespace, b.Namespace), strings.Compare(a.Name, b.Name))
	})
	return v.out
}

// faulty computes the statuses of a target with faults.
type faulty struct {
	in  model.Input
	out []PoolStatus
	// at contains the index of each pool in out. taken is the set of resources that have a status.
	at     map[string]int
	taken  map[model.Claim]bool
	all    []resource
	held   map[string]*Fallback
	target *Fallback
}

// broken shows a pool that could not be planned.
func (v *faulty) broken(u *intent.Unplanned) {
	for _, key := range u.Pools {
		if i, known := v.at[key]; known { // planned according to an earlier revision
			if !u.Foreign {
				v.fail(&v.out[i], u.Fault, v.doesOf(key))
			}
			return
		}
	}
	pool := v.resourceOf(u)
	if u.Foreign && pool == nil {
		return
	}
	if pool == nil {
		pool = &intent.Pool{Kind: u.Kind}
	}
	pool.Key, pool.ClusterKey = u.Key, u.ClusterKey
	s := v.status(pool)
	if u.Foreign {
		s.Converged = true // weir has nothing to do about it
		s.Conditions[0] = Condition{Type: conditionReady, Status: "True", Reason: ReasonNotOfAWS, Message: u.Objects[0].String() + " is in Git and has no pool of AWS; weir does not change its resources in AWS"}
	} else {
		v.fail(&s, u.Fault, v.doesOf(u.Key.String()))
	}
	v.add(s)
}

// heldAsWhole shows the pools of a target that uses an earlier revision because the followed commit
// cannot be rendered. Their desired state in that commit is unknown.
func (v *faulty) heldAsWhole() {
	if v.in.Policy.Fallback == nil {
		return
	}
	for i := range v.out {
		s := &v.out[i]
		key, was := s.Namespace+"/"+s.Name, s.FailureMessage
		if slices.ContainsFunc(v.in.Unplanned, func(u intent.Unplanned) bool { return slices.Contains(u.Pools, key) }) {
			continue // its own fault is shown already
		}
		fault := v.in.Policy.Fault
		if was != "" { // another problem of its machines
			fault += "; " + was
		}
		does := v.doesOf(key)
		if ready := s.Ready(); ready.Reason == ReasonHeld && strings.HasPrefix(ready.Message, doesHold) {
			does = ready.Message // keep the text about the missing part
		}
		v.fail(s, diag.Diagnostic{Summary: fault}, does)
	}
}

// KeptMessage describes what weir does with a pool with a fault in Git until a commit fixes the fault.
// It is empty for every other pool. The text is the message of the condition Ready, without the fault.
func (s *PoolStatus) KeptMessage() string {
	ready := s.Ready()
	if ready.Reason == ReasonKept {
		return ready.Message
	}
	does, ok := strings.CutPrefix(ready.Message, s.FailureMessage+"; ")
	if !ok || !strings.HasPrefix(does, doesNothing) && !strings.HasPrefix(does, doesHold) {
		return ""
	}
	return does
}

// The start of the texts of doesOf.
const (
	doesNothing = "weir changes nothing of the pool"
	doesHold    = "the pool is held to "
)

// doesOf describes what weir does with a broken pool for now.
func (v *faulty) doesOf(pool string) string {
	h := v.held[pool]
	if h == nil {
		h = v.target
	}
	switch {
	case h == nil || h.Revision == "":
		return doesNothing + " until a commit fixes it"
	case h.Verdict.Answer == lastgood.Fits:
		return doesHold + rollout.ShortRevision(h.Revision) + ": weir corrects drift, and does nothing else until a commit fixes it"
	case h.Verdict.Answer == lastgood.Unclear:
		return doesNothing + "; whether it can be held to " + rollout.ShortRevision(h.Revision) + " is unknown: " + h.Verdict.Why
	}
	return doesNothing + " until a commit fixes it; " + rollout.ShortRevision(h.Revision) + " does not match AWS: " + h.Verdict.Why
}

// fail shows a fault of the manifests in a status. The observed values of the status stay.
func (v *faulty) fail(s *PoolStatus, d diag.Diagnostic, does string) {
	s.Phase, s.Converged = PhaseFailed, false
	s.FailureReason, s.FailureCause, s.FailureMessage = cmp.Or(d.Code, "build-failed"), "", d.Located()
	ready := Condition{Type: conditionReady, Status: "False", Severity: "Error", Reason: s.FailureReason, Message: s.FailureMessage + "; " + does}
	i := slices.IndexFunc(s.Conditions, func(c Condition) bool { return c.Type == conditionReady })
	if i < 0 {
		s.Conditions = append([]Condition{ready}, s.Conditions...)
		return
	}
	s.Conditions = slices.Clone(s.Conditions)
	s.Conditions[i] = ready
}

// resourceOf finds the resource of a pool in AWS, as a pool with nothing but names. A resource with
// the pool's tag takes precedence over a resource with only its name.
func (v *faulty) resourceOf(u *intent.Unplanned) *intent.Pool {
	i := slices.IndexFunc(v.all, func(r resource) bool { return !v.taken[r.claim] && slices.Contains(u.Pools, r.pool) })
	if i < 0 {
		i = slices.IndexFunc(v.all, func(r resource) bool {
			return !v.taken[r.claim] && model.Bears(u, r.claim, r.tags) && !v.tagged(r.pool)
		})
	}
	if i < 0 {
		return nil
	}
	v.taken[v.all[i].claim] = true
	return &v.all[i].as
}

// tagged reports whether Git contains the pool.
func (v *faulty) tagged(pool string) bool {
	_, known := v.at[pool]
	return known || slices.ContainsFunc(v.in.Unplanned, func(u intent.Unplanned) bool { return slices.Contains(u.Pools, pool) })
}

// resource is a group or a nodegroup of the target.
type resource struct {
	claim model.Claim
	pool  string
	tags  map[string]string
	as    intent.Pool
}

// resources returns the target's groups and nodegroups that have no status yet and are not being
// deleted.
func (v *faulty) resources() []resource {
	var out []resource
	mine := v.in.Mine()
	for _, name := range mine.Groups {
		g := v.in.State.Groups[name]
		claim := model.Claim{Resource: step.AutoScalingGroup, Name: name}
		if _, behind := g.Tags[observed.TagNodegroup]; behind || g.Deleting || v.taken[claim] {
			continue
		}
		tags := observed.GroupTagValues(g.Tags)
		out = append(out, resource{claim, tags[observed.TagPool], tags, intent.Pool{Kind: intent.GroupPool, Group: &intent.Group{Name: name}}})
	}
	for _, name := range mine.Nodegroups {
		n := v.in.State.Nodegroups[name]
		claim := model.Claim{Resource: step.ManagedNodegroup, Name: name.Name, Cluster: name.Cluster}
		if n.Status == "DELETING" || v.taken[claim] {
			continue
		}
		out = append(out, resource{claim, n.Tags[observed.TagPool], n.Tags, intent.Pool{Kind: intent.NodegroupPool, Nodegroup: &intent.Nodegroup{Name: name.Name, ClusterName: name.Cluster}}})
	}
	return out
}

// status returns the status of a pool if weir knows only its resources in AWS.
func (v *faulty) status(pool *intent.Pool) PoolStatus {
	s := PoolStatus{
		Name: pool.Key.Name, Namespace: pool.Key.Namespace, Cluster: pool.ClusterKey.Name, Target: v.in.Policy.Target,
		Kind: pool.Kind, ReadyFrom: "InService", ProviderIDList: []string{}, Conditions: []Condition{{Type: conditionReady, Status: "False"}},
	}
	if v.in.Nodes != nil && v.in.Nodes.Err == nil {
		s.ReadyFrom = "nodes"
	}
	var kind string
	switch {
	case pool.Group != nil:
		s.LaunchTemplateID, kind = v.in.State.Groups[pool.Group.Name].Template.ID, conditionGroup
		s.fromGroup(v.in, pool, nil)
	case pool.Nodegroup != nil:
		n := v.in.State.Nodegroups[observed.NodegroupName{Cluster: pool.Nodegroup.ClusterName, Name: pool.Nodegroup.Name}]
		s.LaunchTemplateID, kind = n.Template.ID, conditionNodegroup
		s.fromNodegroup(v.in, pool, []observed.Nodegroup{n})
		s.Cluster = cmp.Or(s.Cluster, n.Cluster)
	}
	if kind != "" {
		s.Conditions = append(s.Conditions, Condition{Type: kind, Status: conditionStatus(s.InfrastructureReady)})
	}
	s.BootstrapReady = s.InfrastructureReady
	s.UnavailableReplicas = max(0, s.DesiredReplicas-s.AvailableReplicas)
	s.Phase = s.phase(pool, false)
	return s
}

func (v *faulty) add(s PoolStatus) {
	v.at[s.Namespace+"/"+s.Name] = len(v.out)
	v.out = append(v.out, s)
}

// kept shows all other pools that have resources in AWS.
func (v *faulty) kept() {
	does := "the target has a fault, so weir keeps the pool as it is: " + v.in.Policy.Fault
	for _, r := range v.all {
		if _, known := v.at[r.pool]; known || r.pool == "" || v.taken[r.claim] {
			continue
		}
		pool := r.as
		pool.Key.Namespace, pool.Key.Name, _ = strings.Cut(r.pool, "/")
		pool.ClusterKey.Name = ClusterIn(r.tags)
		s := v.status(&pool)
		if v.wanted() {
			s.Conditions[0] = Condition{Type: conditionReady, Status: "False", Severity: "Warning", Reason: ReasonKept, Message: "the followed commit does not have the pool; " + does}
		} else {
			v.fail(&s, diag.Diagnostic{Summary: v.in.Policy.Fault}, v.doesOf(r.pool))
		}
		v.add(s)
	}
}

// wanted reports whether weir could read the objects of the followed commit, so that its list of
// pools is known.
func (v *faulty) wanted() bool {
	return len(v.in.Unplanned) > 0 || v.target == nil && len(v.in.Set.Pools) > 0
}

// ClusterIn returns the cluster that tags name.
func ClusterIn(tags map[string]string) string {
	out := ""
	for k := range tags {
		if name, ok := strings.CutPrefix(k, observed.TagClusterPrefix); ok && (out == "" || name < out) {
			out = name
		}
	}
	return out
}
