package template

import (
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// Writes reports whether Git writes an override's launch template in the form in AWS.
func Writes(policy *intent.MixedInstances, have intent.Override) bool {
	return policy != nil && slices.ContainsFunc(policy.Overrides, func(o intent.Override) bool {
		return o.InstanceType == have.InstanceType && o.LaunchTemplate != nil && o.LaunchTemplate.Same(*have.LaunchTemplate)
	})
}

// About returns the template if it exists and a new version of it will be made, else nil.
func (s *Shared) About() *observed.Template {
	for _, x := range s.contents {
		if x.Known && x.Version.Found && x.Version.Made() {
			return &x.Version.Template
		}
	}
	return nil
}

// awaitPins makes new versions of a shared template wait until none of the pools' groups follows an
// alias of it. Each pool pins its own group. If such a pool is held, the versions and the steps
// that need them are held too.
func (c Planner) awaitPins(s *Shared, steps []step.Step) {
	t := s.About()
	if t == nil {
		return
	}
	for _, u := range s.Users {
		if u.Group == nil || !follows(*c.In, u, *t) {
			continue
		}
		hold := c.In.HoldOf(u)
		for i := range steps {
			makes := steps[i].Makes() != ""
			if makes && hold == "" {
				steps[i].Later = true
			} else if makes && (steps[i].Held == "" || steps[i].Held == s.Hold) {
				s.Hold, s.HoldReason = hold, "the group "+u.Group.Name+" follows the newest version of the template, and its pool "+u.Key.String()+" is "+string(hold)
				steps[i].Held, steps[i].HeldReason = s.Hold, s.HoldReason
			}
		}
	}
}

// follows reports whether the pool's own group launches from an alias of the template, directly or
// in an override that Git does not write.
func follows(in model.Input, pool *intent.Pool, t observed.Template) bool {
	g, found := in.State.Groups[pool.Group.Name]
	if !found || g.Deleting || !in.GroupOwnership(g, in.Fleet.Wanted[model.Claim{Resource: step.AutoScalingGroup, Name: g.Name}]).Ours {
		return false
	}
	if g.Template.Alias() && model.VersionOf(t, g.Template) != 0 {
		return true
	}
	return g.MixedInstancesPolicy != nil && slices.ContainsFunc(g.MixedInstancesPolicy.Overrides, func(o intent.Override) bool {
		if o.LaunchTemplate == nil || Writes(pool.Group.MixedInstancesPolicy, o) {
			return false
		}
		ref := observed.TemplateRef{ID: o.LaunchTemplate.ID, Name: o.LaunchTemplate.Name, Version: o.LaunchTemplate.Version}
		return ref.Alias() && model.VersionOf(t, ref) != 0
	})
}
