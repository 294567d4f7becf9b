// Package group plans Auto Scaling groups: their members, hooks, processes and tags, and instance
// refreshes.
//
// Settings that Git does not name, and settings of other owners, stay as they are in AWS. A new
// launch configuration reaches machines by an instance refresh, and AWS writes it to the group only
// if the refresh succeeds. Whether a refresh is due follows from the configurations that the
// instances run, so no crash loses one (roll.go).
package group

import (
	"reflect"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// Planner plans Auto Scaling groups.
type Planner struct{ template.Planner }

// Plan plans the Auto Scaling group of a pool and its template.
func (c Planner) Plan(pool *intent.Pool, want *template.Want) {
	g := pool.Group
	subnets, ok := c.Answer(pool, g.Subnets)
	if !ok {
		return
	}
	c.OneVPC(pool, subnets)
	c.checkDrainer(pool)
	have, found := c.find(pool)
	made := c.Fork()
	version, ok := made.Plan(pool, want, c.In.InUse(have))
	if !ok || c.Blocked || made.Blocked {
		c.Take(made.Result)
		return
	}
	adopted := have.Tags[observed.TagAdopted].Value
	undecided := adopted != "" && adopted == model.AdoptedFor(pool)
	pool = withImages(pool, version.Image)
	part := Planner{c.Fork()}
	switch {
	case !found && c.In.State.Absent.Groups[g.Name]:
		part.createGroup(pool, version, subnets.Subnets)
	case !found:
	case have.Deleting:
		part.Note(diag.Info, pool, nil, "group-deleting", "the group "+g.Name+" is being deleted; weir creates it again afterwards", "")
	default:
		if subnets.Discovered && len(have.SubnetIDs) > 0 {
			subnets.Subnets = have.SubnetIDs // no manifest names subnets, so the group keeps its own
		}
		own := adoption{part.Planner, want, have}
		own.keepMachines(pool, &version)
		if undecided && want != nil {
			own.keepAlike(&version)
		}
		l := launching{part.Planner, pool, have, version}
		part.updateGroup(l, subnets.Subnets)
		part.rollGroup(l)
	}
	if part.Contested {
		made.Steps = model.WithoutVersions(made.Steps)
	}
	if found && !have.Deleting {
		steps := slices.Concat(made.Steps, part.Steps)
		rolls := c.In.State.Refreshes[g.Name].Active() || starts(steps)
		made.Steps, part.Steps = part.pinned(pool, have, version, steps), nil
		part.noteBeside(pool, have)
		part.nameSuspensions(pool, have, rolls)
	}
	c.Take(made.Result)
	c.Take(part.Result)
}

// find returns the group with the pool's name, and requests it if it is not read yet. It blocks the
// pool if the target must not change the group.
func (c Planner) find(pool *intent.Pool) (have observed.Group, found bool) {
	name := pool.Group.Name
	have, found = c.In.State.Groups[name]
	switch {
	case found:
		claim := model.Claim{Resource: step.AutoScalingGroup, Name: name}
		if o := c.In.GroupOwnership(have, c.In.Fleet.Wanted[claim]); !o.Ours && !c.adoptGroup(pool, &have, &o) {
			c.Conflict(pool, step.AutoScalingGroup, name, o)
		}
		c.RefuseTaken(pool, have)
	case c.In.State.Absent.Groups[name]:
		c.RefuseRenamed(pool)
	default:
		c.Needs.GroupNames = append(c.Needs.GroupNames, name)
	}
	return have, found
}

// noteBeside reports machines that run outside their group's capacity.
func (c Planner) noteBeside(pool *intent.Pool, have observed.Group) {
	var retained, standby []string
	for _, i := range have.Instances {
		switch {
		case i.Retained():
			retained = append(retained, i.ID)
		case i.StandsBy():
			standby = append(standby, i.ID)
		}
	}
	if len(retained) > 0 {
		c.Note(diag.Warning, pool, nil, "machines-retained", "the machines "+strings.Join(retained, ", ")+" of "+have.Name+
			" are retained because their termination hook was abandoned: they run outside the pool until somebody ends them",
			"end each with aws autoscaling terminate-instance-in-auto-scaling-group --no-should-decrement-desired-capacity --instance-id ID")
	}
	if len(standby) > 0 {
		c.Note(diag.Warning, pool, nil, "machines-on-standby", "the machines "+strings.Join(standby, ", ")+" of "+have.Name+
			" are on standby, because somebody put them there. They are not in service, and rollouts handle them as refreshPreferences.standbyInstances configures",
			"take them back with aws autoscaling exit-standby --auto-scaling-group-name "+observed.ShellWord(have.Name)+" --instance-ids "+strings.Join(standby, " "))
	}
}

// desiredSize returns the wanted size, within the bounds.
func desiredSize(pool *intent.Pool) int32 {
	return min(max(pool.Replicas.Value, pool.Group.MinSize), pool.Group.MaxSize)
}

// firstSize returns the size of a new group. If something else manages the size and no manifest
// sets one, it is the minimum, which is also Auto Scaling's default.
func firstSize(pool *intent.Pool) int32 {
	if pool.ReplicasManagedExternally && !pool.Replicas.Written {
		return pool.Group.MinSize
	}
	return desiredSize(pool)
}

func groupTags(in model.Input, pool *intent.Pool) map[string]string {
	tags := in.Policy.AllTags(pool, pool.Group.Tags)
	if pool.Drain {
		tags[observed.TagDelete] = model.DeleteDrain
	}
	if d := pool.Group.Drainer; d != nil {
		tags[observed.TagDrainer] = d.Text()
	}
	return tags
}

// createGroup plans the creation of a pool's group. It leaves settings that AWS accepts only later
// to steps of their own.
func (c Planner) createGroup(pool *intent.Pool, version template.Version, subnets []string) {
	g := pool.Group
	if c.Lost(pool, "the group "+g.Name) {
		return
	}
	group := observed.Group{
		Name: g.Name, MinSize: g.MinSize, MaxSize: g.MaxSize, DesiredCapacity: firstSize(pool),
		SubnetIDs: subnets, GroupSettings: g.GroupSettings, Template: version.Ref, MixedInstancesPolicy: g.MixedInstancesPolicy,
		Tags: map[string]observed.GroupTag{},
	}
	for _, m := range field.GroupMembers() {
		if !m.OfCreation() { // its own step sets it
			m.Of(&group.GroupSettings).SetZero()
		}
	}
	for k, v := range groupTags(*c.In, pool) {
		group.Tags[k] = observed.GroupTag{Value: v}
	}
	if len(g.LifecycleHooks) > 0 {
		group.Tags[observed.TagHooks] = observed.GroupTag{Value: hookMarks(hookNames(g.LifecycleHooks))}
	}
	if suspend := declaredSuspended(g); len(suspend) > 0 {
		group.Tags[observed.TagSuspended] = observed.GroupTag{Value: suspendedMarks(suspend)}
	}
	var mixed []step.Change
	if g.MixedInstancesPolicy != nil {
		mixed = policyChanges(pool, nil, g.MixedInstancesPolicy)
	}
	changes := slices.Concat([]step.Change{
		model.InfraChange(pool, "minSize", nil, g.MinSize),
		model.InfraChange(pool, "maxSize", nil, g.MaxSize),
		model.ReplicasChange(pool, nil, group.DesiredCapacity),
		model.InfraChange(pool, "subnets", nil, subnets),
	}, template.VersionChanges(pool, observed.TemplateRef{}, version), mixed, c.newMembers(pool, group), newSettings(pool, false))
	c.Step(pool, step.Step{
		Verb: step.Create, Resource: step.AutoScalingGroup, Name: g.Name, Reason: "it does not exist",
		Instances: int(group.DesiredCapacity), Changes: changes, Rollout: model.Made,
		Do: step.CreateGroup{Group: group, LifecycleHooks: g.LifecycleHooks},
	})
	if suspend := declaredSuspended(g); len(suspend) > 0 {
		c.Step(pool, step.Step{
			Verb: step.Update, Resource: step.AutoScalingGroup, Name: g.Name, Reason: "processes are declared suspended",
			Changes: []step.Change{model.InfraChange(pool, "suspendProcesses", nil, suspend)},
			Do:      step.SetProcesses{Group: g.Name, Suspend: suspend},
		})
	}
	if g.Options.WarmPool != nil {
		c.putWarmPool(pool, observed.Group{})
	}
	c.updateMetrics(pool, observed.Group{})
}

// updateGroup plans all changes of an existing group except its launch configuration. Fields
// that weir does not own keep their observed values.
func (c Planner) updateGroup(l launching, subnets []string) {
	pool, have, version, g := l.pool, l.have, l.version, l.pool.Group
	u := step.UpdateGroup{Name: g.Name}
	var changes []step.Change
	set := func(field string, from, to int32, dst **int32) {
		if from != to {
			*dst = new(to)
			changes = append(changes, model.InfraChange(pool, field, from, to))
		}
	}
	set("minSize", have.MinSize, g.MinSize, &u.MinSize)
	set("maxSize", have.MaxSize, g.MaxSize, &u.MaxSize)
	// weir corrects a size that Git writes. A default sets the size only at creation.
	if want := desiredSize(pool); pool.Replicas.Written && !pool.ReplicasManagedExternally && want != have.DesiredCapacity {
		u.DesiredCapacity = new(want)
		changes = append(changes, model.ReplicasChange(pool, have.DesiredCapacity, want))
	}
	if !slices.Equal(have.SubnetIDs, subnets) {
		u.SubnetIDs = subnets
		changes = append(changes, model.InfraChange(pool, "subnets", have.SubnetIDs, subnets))
	}
	direct := l.updatesDirectly() && !l.runsWanted()
	way := l.wayOf()
	mends := !way.Stopped() && len(have.Instances) > 0 && !pool.Group.Refresh.Disable // the version of the group no longer exists
	if direct && way.Share() < 100 && !mends {
		held := l.launchChanges()
		c.Step(pool, way.Hold(step.Step{Verb: step.Update, Resource: step.AutoScalingGroup, Name: g.Name, Reason: model.Reason(held), Changes: held, Toward: toward(pool, version),
			Do: step.UpdateGroup{Name: g.Name, Template: new(version.Ref), MixedInstancesPolicy: g.MixedInstancesPolicy}}))
	} else if direct {
		u.Template, u.MixedInstancesPolicy = new(version.Ref), g.MixedInstancesPolicy
		changes = append(changes, l.launchChanges()...)
	}
	changes = append(changes, changedSettings(pool, &have, &u)...)
	if len(changes) > 0 {
		ends, n := u.EndsMachines(have)
		s := step.Step{Verb: step.Update, Resource: step.AutoScalingGroup, Name: g.Name, Reason: model.Reason(changes), Disruptive: ends, Instances: n, Changes: changes, Do: u}
		if u.Template != nil {
			s.Toward = toward(pool, version)
		}
		if ends {
			s.Seen = step.SeenGroup(have).ToRoll(nil, nil) // the tag steps come later
		}
		c.Step(pool, s)
	}
	c.updateSeparately(pool, have)
	c.UpdateHooks(pool, have, g.LifecycleHooks)
	c.updateProcesses(pool, have)
	c.updateGroupTags(pool, have)
}

func (c Planner) updateGroupTags(pool *intent.Pool, have observed.Group) {
	put, remove := model.MissingGroupTags(groupTags(*c.In, pool), have.Tags)
	if len(put)+len(remove) == 0 {
		return
	}
	c.Step(pool, step.Step{Verb: step.Update, Resource: step.AutoScalingGroup, Name: have.Name, Reason: "tags differ",
		Changes: model.TagChanges(pool, put, remove, observed.GroupTagValues(have.Tags)), Do: step.TagGroup{Group: have.Name, Put: observed.GroupTags(put), Remove: remove}})
}

// seenToRoll returns the state that the group must have right before machines are replaced. Tags
// are corrected before that.
func (r *roll) seenToRoll() *step.Seen {
	return step.SeenGroup(r.have).ToRoll(model.MissingGroupTags(groupTags(*r.In, r.pool), r.have.Tags))
}

// A step's changes show the values that it sends from the manifests. People approve these values.
// They also distinguish a request that AWS refused from one that was corrected in Git. Members with
// the usual value are not shown.

// usualStrategy is the strategy of a refresh if no manifest sets one.
const usualStrategy = "Rolling"

// newMembers returns the changes for a new group, except its sizes, subnets and launch
// configuration.
func (c Planner) newMembers(pool *intent.Pool, group observed.Group) []step.Change {
	g := pool.Group
	out := newSettings(pool, true)
	for _, h := range g.LifecycleHooks {
		out = append(out, hookChange(pool, h.Name, nil, hookValue(h)))
	}
	tags := observed.GroupTagValues(group.Tags)
	return append(out, model.NewTags(pool, c.In.UsualTags(pool, g.Name, tags), tags)...)
}

// preferenceChanges returns the refresh preferences in Git as a change, nil if Git sets none.
func preferenceChanges(pool *intent.Pool, r intent.Refresh) []step.Change {
	r.Disable = false
	if r.Strategy == usualStrategy {
		r.Strategy = ""
	}
	if reflect.ValueOf(r).IsZero() {
		return nil
	}
	value, _ := model.PlainJSON(r).(map[string]any)
	if r.Strategy == "" {
		delete(value, "strategy")
	}
	return []step.Change{model.InfraChange(pool, "refreshPreferences", nil, value)}
}
