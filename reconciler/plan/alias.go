package plan

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// pinned are the steps of a pool's group, with one before them that has the group launch
// the versions that it launches now, where a version is made or a rollout starts. An
// alias that Git writes for an override stays.
func (c groups) pinned(pool *intent.Pool, have observed.Group, version wantedVersion, steps []step.Step) []step.Step {
	if !version.made() && c.madeBeside(pool) == nil && !starts(steps) {
		return steps
	}
	u := step.UpdateGroup{Name: have.Name, Template: &have.Template}
	var changes []step.Change
	number := func(ref observed.TemplateRef, field string) string {
		if !ref.Alias() {
			return ref.Version
		}
		n := c.means(ref, version)
		if n == 0 {
			return ref.Version
		}
		changes = append(changes, step.Change{Field: field, From: cmp.Or(ref.Version, "$Default"), To: strconv.FormatInt(n, 10)})
		return strconv.FormatInt(n, 10)
	}
	u.Template = &observed.TemplateRef{ID: have.Template.ID, Name: have.Template.Name, Version: number(have.Template, "launchTemplate.version")}
	if have.MixedInstancesPolicy != nil {
		policy := *have.MixedInstancesPolicy
		policy.Overrides = slices.Clone(policy.Overrides)
		for i, o := range policy.Overrides {
			if t := o.LaunchTemplate; t != nil && !writes(pool.Group.MixedInstancesPolicy, o) {
				pinned := *t
				pinned.Version = number(observed.TemplateRef{ID: t.ID, Name: t.Name, Version: t.Version},
					"mixedInstancesPolicy.overrides"+intent.Index(i)+".launchTemplateSpecification.version")
				policy.Overrides[i].LaunchTemplate = &pinned
			}
		}
		u.MixedInstancesPolicy = &policy
	}
	if len(changes) == 0 {
		return steps
	}
	if c.in.State.Refreshes[have.Name].Active() {
		// AWS lets nobody set a group to a version while a refresh with a
		// configuration of its own moves: that one ends first.
		for i := range steps {
			steps[i].Later = steps[i].About().Refresh != step.CancelsRefresh
		}
	}
	return slices.Insert(steps, 0, step.Step{
		Verb: step.Update, Resource: step.AutoScalingGroup, Pool: pool.Key.String(), Name: have.Name, Later: len(steps) > 0 && steps[0].Later,
		Reason: "it follows a version that is about to change; it keeps the one that it launches now", Changes: changes, Do: u,
	})
}

// starts reports whether one of the steps starts an instance refresh.
func starts(steps []step.Step) bool {
	return slices.ContainsFunc(steps, func(s step.Step) bool { return s.About().Refresh == step.StartsRefresh })
}

// means is the number of the version that an alias stands for, 0 where that cannot be
// told or has yet to be read.
func (c groups) means(ref observed.TemplateRef, version wantedVersion) int64 {
	if n := versionOf(version.template, ref); version.found && n != 0 {
		return n
	}
	t, known := c.in.State.Templates[ref.Name]
	if !known && ref.Name != "" && !c.in.State.Absent.Templates[ref.Name] {
		c.needs.TemplateNames = append(c.needs.TemplateNames, ref.Name)
	}
	return versionOf(t, ref)
}

// writes reports whether Git writes an override's launch template as AWS has it.
func writes(policy *intent.MixedInstances, have intent.Override) bool {
	return policy != nil && slices.ContainsFunc(policy.Overrides, func(o intent.Override) bool {
		return o.InstanceType == have.InstanceType && o.LaunchTemplate != nil && o.LaunchTemplate.Same(*have.LaunchTemplate)
	})
}

// madeBeside is the template that a pool shares where a version of it is about to be
// made for whichever pool, nil elsewhere.
func (c groups) madeBeside(pool *intent.Pool) *observed.Template {
	if pool.LaunchConfig == nil {
		return nil
	}
	return c.shared[pool.LaunchConfig.Key.String()].about()
}

// about is the template, where it is there and a version of it is to be made.
func (s *sharedTemplate) about() *observed.Template {
	for _, x := range s.contents {
		if x.known && x.version.found && x.version.made() {
			return &x.version.template
		}
	}
	return nil
}

// awaitPins has new versions of a template that pools share wait until none of their
// groups follows an alias of it. Each pool pins its own group; where one is held, so
// are the versions, and what waits for them.
func (c templates) awaitPins(s *sharedTemplate, steps []step.Step) {
	t := s.about()
	if t == nil {
		return
	}
	for _, u := range s.users {
		if u.Group == nil || !c.in.follows(u, *t) {
			continue
		}
		hold := c.in.holdOf(u)
		for i := range steps {
			makes := steps[i].Makes() != ""
			if makes && hold == "" {
				steps[i].Later = true
			} else if makes && (steps[i].Held == "" || steps[i].Held == s.hold) {
				s.hold, s.holdReason = hold, "the group "+u.Group.Name+" follows the newest version of the template, and its pool "+u.Key.String()+" is "+string(hold)
				steps[i].Held, steps[i].HeldReason = s.hold, s.holdReason
			}
		}
	}
}

// follows reports whether the pool's own group launches what an alias of the template
// means, by itself or by an override that Git does not write.
func (in Input) follows(pool *intent.Pool, t observed.Template) bool {
	g, found := in.State.Groups[pool.Group.Name]
	if !found || g.Deleting || !in.groupOwnership(g, in.Fleet.Wanted[Claim{Resource: step.AutoScalingGroup, Name: g.Name}]).ours {
		return false
	}
	if g.Template.Alias() && versionOf(t, g.Template) != 0 {
		return true
	}
	return g.MixedInstancesPolicy != nil && slices.ContainsFunc(g.MixedInstancesPolicy.Overrides, func(o intent.Override) bool {
		if o.LaunchTemplate == nil || writes(pool.Group.MixedInstancesPolicy, o) {
			return false
		}
		ref := observed.TemplateRef{ID: o.LaunchTemplate.ID, Name: o.LaunchTemplate.Name, Version: o.LaunchTemplate.Version}
		return ref.Alias() && versionOf(t, ref) != 0
	})
}
