package reconciler

import (
	"maps"
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/step"
)

// How many groups and templates AWS gives for a page.
const (
	groupsOfPage    = 100
	templatesOfPage = 200
)

// nearby are the groups and templates that the next look at the same wishes reads again:
// those of all targets that are not at rest, whether they are wanted or there. All others had
// no step, and were as Git says. It is nil where a list takes no more pages, and where a
// target has nodegroups, whose groups are EKS's and have any name.
func nearby(targets []Desired, reports []*plan.Report, state *observed.State) *observed.Near {
	groups, templates, moving := map[string]bool{}, map[string]bool{}, map[string]bool{}
	note := func(resource step.Resource, name string) {
		switch resource {
		case step.AutoScalingGroup:
			groups[name] = true
		case step.LaunchTemplate:
			templates[name] = true
		}
	}
	for i, r := range reports {
		if rests(r) {
			continue
		}
		moving[r.Target] = true
		if targets[i].Set != nil {
			for _, c := range basis.Claims(targets[i].Set) {
				if c.Resource == step.ManagedNodegroup {
					return nil
				}
				note(c.Resource, c.Name)
			}
		}
		if r.Plan != nil {
			for _, st := range r.Plan.Steps {
				if st.Resource == step.ManagedNodegroup {
					return nil
				}
				note(st.Resource, st.Name)
			}
		}
	}
	for name, g := range state.Groups {
		if moving[g.Tags[observed.TagTarget].Value] {
			groups[name] = true
		}
	}
	for name, t := range state.Templates {
		if moving[t.Tags[observed.TagTarget]] {
			templates[name] = true
		}
	}
	if pages(len(groups), groupsOfPage)+pages(len(templates), templatesOfPage) >= pages(len(state.Groups), groupsOfPage)+pages(len(state.Templates), templatesOfPage) {
		return nil
	}
	return &observed.Near{Groups: slices.Sorted(maps.Keys(groups)), Templates: slices.Sorted(maps.Keys(templates))}
}

func pages(n, of int) int { return (n + of - 1) / of }

// beyond reports whether a step is about something that was not read again: another image or
// an open window made it due, and it goes by what AWS has now.
func beyond(plans []*plan.Plan, near *observed.Near) bool {
	if near == nil {
		return false
	}
	return slices.ContainsFunc(plans, func(p *plan.Plan) bool {
		return p != nil && slices.ContainsFunc(p.Steps, func(st step.Step) bool {
			switch st.Resource {
			case step.AutoScalingGroup:
				return !slices.Contains(near.Groups, st.Name)
			case step.LaunchTemplate:
				return !slices.Contains(near.Templates, st.Name)
			default:
				return true
			}
		})
	})
}

// rests reports whether a pass found all of a target as Git says, and did nothing.
func rests(r *plan.Report) bool {
	return r.Err == nil && r.Plan != nil && len(r.Plan.Steps)+len(r.Outcomes) == 0 &&
		!slices.ContainsFunc(r.Pools, func(p plan.PoolStatus) bool { return !p.Converged || p.Rollout != nil || len(p.Draining) > 0 })
}

// keepNear keeps for the next pass what moves.
func (s *Scope) keepNear(targets []Desired, reports []*plan.Report, state *observed.State) {
	s.near, s.nearOf = nearby(targets, reports, state), targets
}

// takeNear is what a pass over targets reads again where it is a look at what moves; nil where
// it lists everything.
func (s *Scope) takeNear(b Batch, mode Mode) *observed.Near {
	near, of := s.near, s.nearOf
	s.near, s.nearOf = nil, nil // where the pass fails, the next one lists everything
	alike := func(x, y Desired) bool {
		return x.Policy.Target == y.Policy.Target && x.Set == y.Set && x.Whole == y.Whole && x.Commit == y.Commit && x.Err == nil && y.Err == nil
	}
	if !b.Look || mode != Apply || !b.Fresh.IsZero() && b.Fresh.After(s.nearAt) || !slices.EqualFunc(of, b.Targets, alike) {
		return nil
	}
	return near
}
