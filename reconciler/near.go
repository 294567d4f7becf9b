package reconciler

import (
	"maps"
	"slices"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// How many groups and templates AWS gives for a page.
const (
	groupsOfPage    = 100
	templatesOfPage = 200
)

// near lists the groups and templates that a partial read fetches again.
type near struct {
	// read are the groups and templates that are read again.
	read *observed.Near
	// rests holds the idle targets, for which the partial read has nothing new.
	rests map[string]bool
}

// nearby returns the groups and templates that the next partial read with the same wishes fetches
// again: those of all targets that are not idle, wanted or existing. All others had no step, and
// were as Git says. It returns nil if nothing is changing, if a list takes no more pages, or if a
// target has nodegroups, whose groups are EKS's and have any name.
func nearby(targets []Desired, reports []*plan.Report, known map[string]bool, state *observed.State) *near {
	groups, templates, moving, resting := map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}
	draining := waitingGroups(state) // also of pools that Git dropped, which no report names
	note := func(resource step.Resource, name string) {
		switch resource {
		case step.AutoScalingGroup:
			groups[name] = true
		case step.LaunchTemplate:
			templates[name] = true
		}
	}
	for i, r := range reports {
		if len(draining[r.Target]) == 0 && (known[r.Target] || rests(r)) {
			resting[r.Target] = true
			continue
		}
		moving[r.Target] = true
		for _, u := range targets[i].Unplanned {
			if u.IsPool() && u.Kind != intent.GroupPool {
				return nil // nodegroups are no part of a look
			}
		}
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
	if len(moving) == 0 || pages(len(groups), groupsOfPage)+pages(len(templates), templatesOfPage) >= pages(len(state.Groups), groupsOfPage)+pages(len(state.Templates), templatesOfPage) {
		return nil
	}
	return &near{&observed.Near{Groups: slices.Sorted(maps.Keys(groups)), Templates: slices.Sorted(maps.Keys(templates))}, resting}
}

func pages(n, of int) int { return (n + of - 1) / of }

// beyond reports whether a step is about something that was not read again: another image or an
// open window made it due, and it depends on the current state of AWS.
func (n *near) beyond(plans []*plan.Plan) bool {
	if n == nil {
		return false
	}
	return slices.ContainsFunc(plans, func(p *plan.Plan) bool {
		return p != nil && slices.ContainsFunc(p.Steps, func(st step.Step) bool {
			switch st.Resource {
			case step.AutoScalingGroup:
				return !slices.Contains(n.read.Groups, st.Name)
			case step.LaunchTemplate:
				return !slices.Contains(n.read.Templates, st.Name)
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

// still says that a look has nothing new of the target, which is then not planned.
func (n *near) still(t Desired) bool { return n != nil && n.rests[t.Policy.Target] }

// query returns the names to read again; nil for everything.
func (n *near) query() *observed.Near {
	if n == nil {
		return nil
	}
	return n.read
}

// leaveOut marks the targets for which a partial read has nothing new as unknown in this pass:
// their earlier state stays.
func (n *near) leaveOut(targets []Desired, inputs []basis.Input) []Desired {
	if n == nil {
		return targets
	}
	out := slices.Clone(targets)
	for i := range out {
		if n.still(out[i]) {
			out[i].Set, inputs[i].Set = nil, nil
		}
	}
	return out
}

// reported are the reports of the targets that a look was about.
func (n *near) reported(targets []Desired, reports []*plan.Report) []*plan.Report {
	if n == nil {
		return reports
	}
	var out []*plan.Report
	for i, r := range reports {
		if !n.still(targets[i]) {
			out = append(out, r)
		}
	}
	return out
}

// keepNear keeps for the next pass what moves.
func (s *Scope) keepNear(targets []Desired, reports []*plan.Report, n *near, state *observed.State) {
	var known map[string]bool
	if n != nil {
		known = n.rests
	}
	s.near, s.nearOf = nearby(targets, reports, known, state), wishesOf(targets)
	if s.near != nil {
		s.near.read.Listed = s.listed
	}
	s.listed = observed.Listed{}
}

// wish is the part of a target's desired state on which a partial read depends. All other inputs
// wake the loop and lead to a full read.
type wish struct {
	target string
	set    *intent.Set
	whole  bool
	commit content.Commit
	failed bool
}

func wishesOf(targets []Desired) []wish {
	out := make([]wish, len(targets))
	for i, t := range targets {
		out[i] = wish{t.Policy.Target, t.Set, t.Whole, t.Commit, t.Err != nil}
	}
	return out
}

// takeNear returns the names that a pass over targets reads again if it may be a partial read; nil
// if it lists everything.
func (s *Scope) takeNear(b Batch, mode Mode) *near {
	near, of := s.near, s.nearOf
	s.near, s.nearOf = nil, nil // where the pass fails, the next one lists everything
	alike := func(x, y wish) bool { return x == y && !x.failed }
	if !b.Look || mode != Apply || !b.Fresh.IsZero() && b.Fresh.After(s.nearAt) || !slices.EqualFunc(of, wishesOf(b.Targets), alike) {
		return nil
	}
	return near
}
