package plan

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// groups plans Auto Scaling groups.
type groups struct{ templates }

// planGroup plans the Auto Scaling group of a pool and its template.
func (c groups) planGroup(pool *intent.Pool, want *wantTemplate) {
	g := pool.Group
	subnets, ok := c.answer(pool, g.Subnets)
	if !ok {
		return
	}
	c.oneVPC(pool, subnets)
	observed, found := c.in.State.Groups[g.Name]
	if !found && !c.in.State.Absent.Groups[g.Name] {
		c.needs.GroupNames = append(c.needs.GroupNames, g.Name)
	} else if found {
		claim := Claim{Resource: step.AutoScalingGroup, Name: g.Name}
		if o := c.in.groupOwnership(observed, c.in.Fleet.Wanted[claim]); !o.ours && !c.adoptGroup(pool, &observed, &o) {
			c.conflict(pool, step.AutoScalingGroup, g.Name, o)
		}
	}
	made := c.fork()
	version, ok := made.planTemplate(pool, want, c.in.inUse(observed))
	if !ok || c.blocked || made.blocked {
		c.take(made.result)
		return
	}
	absent := !found && c.in.State.Absent.Groups[g.Name]
	part := groups{c.fork()}
	switch {
	case absent:
		part.createGroup(pool, version, subnets.Subnets)
	case !found:
	case observed.Deleting:
		part.note(diag.Info, pool, nil, "group-deleting", "the group "+g.Name+" is being deleted; it is made anew once it is gone", "")
	default:
		if subnets.Discovered && len(observed.SubnetIDs) > 0 {
			subnets.Subnets = observed.SubnetIDs // nobody wrote them, so those it has stay
		}
		part.spare(pool, want, observed, &version)
		part.updateGroup(pool, observed, version, subnets.Subnets)
		part.rollGroup(pool, observed, version)
	}
	if part.contested {
		made.steps = withoutVersions(made.steps)
	}
	if found && !observed.Deleting {
		steps := slices.Concat(made.steps, part.steps)
		rolls := c.in.State.Refreshes[g.Name].Active() || starts(steps)
		made.steps, part.steps = part.pinned(pool, observed, version, steps), nil
		part.noteRetained(pool, observed)
		part.nameSuspensions(pool, observed, rolls)
	}
	c.take(made.result)
	c.take(part.result)
}

// noteRetained tells of machines that run on outside their group's capacity.
func (c groups) noteRetained(pool *intent.Pool, have observed.Group) {
	var ids []string
	for _, i := range have.Instances {
		if i.Retained() {
			ids = append(ids, i.ID)
		}
	}
	if len(ids) > 0 {
		c.note(diag.Warning, pool, nil, "machines-retained", "the machines "+strings.Join(ids, ", ")+" of "+have.Name+
			" are retained because their termination hook was abandoned: they run beside the pool until somebody ends them",
			"end each with aws autoscaling terminate-instance-in-auto-scaling-group --no-should-decrement-desired-capacity --instance-id ID")
	}
}

// inUse lists the template versions that a group is set to, is being refreshed
// to, or still runs, in that order.
func (in Input) inUse(g observed.Group) []observed.TemplateRef {
	refs := []observed.TemplateRef{g.Template}
	// A refresh that moves holds content that AWS already took: a read that
	// does not show its version yet must not make weir cancel its own rollout.
	if r := in.State.Refreshes[g.Name]; r.Active() {
		refs = []observed.TemplateRef{r.Template, g.Template}
	}
	for _, i := range g.Instances {
		if !i.Leaving() && !slices.Contains(refs, i.Template) && len(refs) < maxCandidates {
			refs = append(refs, i.Template)
		}
	}
	return refs
}

// groupOwnership is owns, and besides no group behind a nodegroup is ever
// taken for a pool's own.
func (in Input) groupOwnership(g observed.Group, wantedBy string) ownership {
	if t, behind := g.Tags[observed.TagNodegroup]; behind {
		return ownership{why: "it is the group behind the EKS nodegroup " + t.Value}
	}
	return in.Policy.owns(observed.GroupTagValues(g.Tags), wantedBy, in.Fleet.Whole)
}

// desiredSize is the wanted size inside the bounds.
func desiredSize(pool *intent.Pool) int32 {
	return min(max(pool.Replicas.Value, pool.Group.MinSize), pool.Group.MaxSize)
}

// firstSize is the size that a group is made with: where somebody else manages it
// and nobody wrote one, the smallest, as Auto Scaling takes it.
func firstSize(pool *intent.Pool) int32 {
	if pool.ReplicasManagedExternally && !pool.Replicas.Written {
		return pool.Group.MinSize
	}
	return desiredSize(pool)
}

func (in Input) groupTags(pool *intent.Pool) map[string]string {
	tags := in.Policy.allTags(pool, pool.Group.Tags)
	if pool.Drain {
		tags[observed.TagDelete] = deleteDrain
	}
	return tags
}

func (c groups) createGroup(pool *intent.Pool, version wantedVersion, subnets []string) {
	g := pool.Group
	if c.lost(pool, "the group "+g.Name) {
		return
	}
	group := observed.Group{
		Name: g.Name, MinSize: g.MinSize, MaxSize: g.MaxSize, DesiredCapacity: firstSize(pool),
		SubnetIDs: subnets, GroupSettings: g.GroupSettings, Template: version.ref, MixedInstancesPolicy: g.MixedInstancesPolicy,
		Tags: map[string]observed.GroupTag{},
	}
	for _, m := range field.GroupMembers() {
		if !m.OfCreation() { // it has a step of its own
			m.Of(&group.GroupSettings).SetZero()
		}
	}
	for k, v := range c.in.groupTags(pool) {
		group.Tags[k] = observed.GroupTag{Value: v}
	}
	if len(g.LifecycleHooks) > 0 {
		group.Tags[observed.TagHooks] = observed.GroupTag{Value: hookMarks(hookNames(g.LifecycleHooks))}
	}
	if suspend := declaredSuspended(g); len(suspend) > 0 {
		group.Tags[observed.TagSuspended] = observed.GroupTag{Value: suspendedMarks(suspend)}
	}
	changes := []step.Change{
		infraChange(pool, "minSize", nil, g.MinSize),
		infraChange(pool, "maxSize", nil, g.MaxSize),
		replicasChange(pool, nil, group.DesiredCapacity),
		infraChange(pool, "subnets", nil, subnets),
	}
	changes = append(changes, versionChanges(pool, observed.TemplateRef{}, version)...)
	if g.MixedInstancesPolicy != nil {
		changes = append(changes, policyChanges(pool, nil, g.MixedInstancesPolicy)...)
	}
	changes = append(changes, c.newMembers(pool, group)...)
	changes = append(changes, newSettings(pool, false)...)
	c.step(pool, step.Step{
		Verb: step.Create, Resource: step.AutoScalingGroup, Name: g.Name, Reason: "it does not exist",
		Instances: int(group.DesiredCapacity), Changes: changes, Rollout: made,
		Do: step.CreateGroup{Group: group, LifecycleHooks: g.LifecycleHooks},
	})
	if suspend := declaredSuspended(g); len(suspend) > 0 {
		c.step(pool, step.Step{
			Verb: step.Update, Resource: step.AutoScalingGroup, Name: g.Name, Reason: "processes are declared suspended",
			Changes: []step.Change{infraChange(pool, "suspendProcesses", nil, suspend)},
			Do:      step.SetProcesses{Group: g.Name, Suspend: suspend},
		})
	}
	if g.Options.WarmPool != nil {
		c.putWarmPool(pool, observed.Group{})
	}
	c.updateMetrics(pool, observed.Group{})
}

// updateGroup plans everything of an existing group but its launch
// configuration. What weir does not own keeps its observed value.
func (c groups) updateGroup(pool *intent.Pool, have observed.Group, version wantedVersion, subnets []string) {
	g := pool.Group
	u := step.UpdateGroup{Name: g.Name}
	var changes []step.Change
	set := func(field string, from, to int32, dst **int32) {
		if from != to {
			*dst = &to
			changes = append(changes, infraChange(pool, field, from, to))
		}
	}
	set("minSize", have.MinSize, g.MinSize, &u.MinSize)
	set("maxSize", have.MaxSize, g.MaxSize, &u.MaxSize)
	// A written number is held; a default set the size at creation only.
	if want := desiredSize(pool); pool.Replicas.Written && !pool.ReplicasManagedExternally && want != have.DesiredCapacity {
		u.DesiredCapacity = &want
		changes = append(changes, replicasChange(pool, have.DesiredCapacity, want))
	}
	if !slices.Equal(have.SubnetIDs, subnets) {
		u.SubnetIDs = subnets
		changes = append(changes, infraChange(pool, "subnets", have.SubnetIDs, subnets))
	}
	if c.updatesDirectly(pool, have, version) && !c.runsWanted(pool, have, version) {
		u.Template, u.MixedInstancesPolicy = &version.ref, g.MixedInstancesPolicy
		changes = append(changes, c.launchChanges(pool, have, version)...)
	}
	changes = append(changes, changedSettings(pool, have, &u)...)
	if len(changes) > 0 {
		ends, n := u.EndsMachines(have)
		c.step(pool, step.Step{Verb: step.Update, Resource: step.AutoScalingGroup, Name: g.Name, Reason: reason(changes), Disruptive: ends, Instances: n, Changes: changes, Do: u})
	}
	c.updateApart(pool, have)
	c.updateHooks(pool, have, g.LifecycleHooks)
	c.updateProcesses(pool, have)
	c.updateGroupTags(pool, have)
}

func (c groups) updateGroupTags(pool *intent.Pool, have observed.Group) {
	put, remove := missingTags(c.in.groupTags(pool), observed.GroupTagValues(have.Tags))
	if len(put)+len(remove) == 0 {
		return
	}
	t := step.TagGroup{Group: have.Name, Put: map[string]observed.GroupTag{}, Remove: remove}
	for k, v := range put {
		t.Put[k] = observed.GroupTag{Value: v}
	}
	c.step(pool, step.Step{Verb: step.Update, Resource: step.AutoScalingGroup, Name: have.Name, Reason: "tags differ",
		Changes: tagChanges(pool, put, remove, observed.GroupTagValues(have.Tags)), Do: t})
}

func infraChange(pool *intent.Pool, field string, from, to any) step.Change {
	return step.Change{Field: field, From: from, To: to, Object: pool.Infrastructure, Path: intent.Path{"spec"}.Join(fieldPath(field)...)}
}

func replicasChange(pool *intent.Pool, from, to any) step.Change {
	return step.Change{Field: "replicas", From: from, To: to, Object: pool.MachinePool, Path: intent.Path{"spec", "replicas"}}
}

// reason says in a few words which fields a step changes.
func reason(changes []step.Change) string {
	var fields []string
	for _, ch := range changes {
		fields = append(fields, ch.Field)
	}
	if len(fields) > 3 {
		fields = append(fields[:3], "…")
	}
	if len(fields) == 1 {
		return fields[0] + " differs"
	}
	return strings.Join(fields, ", ") + " differ"
}

// samePolicy compares mixed instances policies, which hold AWS's defaults on both sides.
func samePolicy(a, b *intent.MixedInstances) bool { return a.Same(b) }
