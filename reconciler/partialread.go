package reconciler

import (
	"maps"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// The numbers of groups and templates in a page of AWS's lists.
const (
	groupsOfPage    = 100
	templatesOfPage = 200
)

// partialRead lists the groups and templates that a read fetches again: the changing ones. A nil
// partialRead means a full read.
type partialRead struct {
	read *observed.MovingSet
	// idle is the set of targets that the read skips.
	idle map[string]bool
}

// nextPartialRead returns the next partial read after a pass: the groups and templates, desired and
// observed, of all targets that are not idle. idle is the set of targets that the pass itself
// skipped. It returns nil if nothing is changing, if a full read takes no more pages, or if a
// changing target has nodegroups, because EKS chooses the names of their groups.
func nextPartialRead(targets []Desired, reports []*plan.Report, idle map[string]bool, state *observed.State) *partialRead {
	c := changing{targets: map[string]bool{}, groups: map[string]bool{}, templates: map[string]bool{}}
	next := map[string]bool{}
	draining := waitingGroups(state) // includes pools that are no longer in Git and in no report
	for i, r := range reports {
		if len(draining[r.Target]) == 0 && (idle[r.Target] || isIdle(r)) {
			next[r.Target] = true
		} else if !c.add(&targets[i], r) {
			return nil
		}
	}
	c.addExisting(state)
	partial := pages(len(c.groups), groupsOfPage) + pages(len(c.templates), templatesOfPage)
	if len(c.targets) == 0 || partial >= pages(len(state.Groups), groupsOfPage)+pages(len(state.Templates), templatesOfPage) {
		return nil
	}
	return &partialRead{&observed.MovingSet{Groups: slices.Sorted(maps.Keys(c.groups)), Templates: slices.Sorted(maps.Keys(c.templates))}, next}
}

// changing collects the changing targets, and the names of their groups and templates.
type changing struct{ targets, groups, templates map[string]bool }

// add adds a target. It returns false if the target has nodegroups.
func (c *changing) add(t *Desired, r *plan.Report) bool {
	c.targets[r.Target] = true
	for _, u := range t.Unplanned {
		if u.IsPool() && u.Kind != intent.GroupPool {
			return false
		}
	}
	if t.Set != nil {
		for _, claim := range model.Claims(t.Set) {
			if !c.name(claim.Resource, claim.Name) {
				return false
			}
		}
	}
	if r.Plan != nil {
		for _, st := range r.Plan.Steps {
			if !c.name(st.Resource, st.Name) {
				return false
			}
		}
	}
	return true
}

func (c *changing) name(resource step.Resource, name string) bool {
	switch resource {
	case step.ManagedNodegroup:
		return false
	case step.AutoScalingGroup:
		c.groups[name] = true
	case step.LaunchTemplate:
		c.templates[name] = true
	}
	return true
}

// addExisting adds the existing resources of the added targets.
func (c *changing) addExisting(state *observed.State) {
	for name, g := range state.Groups {
		if c.targets[g.Tags[observed.TagTarget].Value] {
			c.groups[name] = true
		}
	}
	for name, t := range state.Templates {
		if c.targets[t.Tags[observed.TagTarget]] {
			c.templates[name] = true
		}
	}
}

func pages(n, of int) int { return (n + of - 1) / of }

// beyond reports whether a step changes a resource that the partial read skipped, for example after
// a new image was published or a window opened.
func (n *partialRead) beyond(plans []*plan.Plan) bool {
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

// isIdle reports whether a pass found the whole target in sync, and did nothing.
func isIdle(r *plan.Report) bool {
	return r.Err == nil && r.Plan != nil && len(r.Plan.Steps)+len(r.Outcomes) == 0 &&
		!slices.ContainsFunc(r.Pools, func(p plan.PoolStatus) bool { return !p.Converged || p.Rollout != nil || len(p.Draining) > 0 })
}

// skips reports whether the read skips a target, which is then not planned.
func (n *partialRead) skips(t Desired) bool { return n != nil && n.idle[t.Policy.Target] }

// names returns the names to read again, nil for everything.
func (n *partialRead) names() *observed.MovingSet {
	if n == nil {
		return nil
	}
	return n.read
}

// leaveOut marks the skipped targets as unknown in this pass: their earlier state stays.
func (n *partialRead) leaveOut(targets []Desired, inputs []model.Input) []Desired {
	if n == nil {
		return targets
	}
	out := slices.Clone(targets)
	for i := range out {
		if n.skips(out[i]) {
			out[i].Set, inputs[i].Set = nil, nil
		}
	}
	return out
}

// reported returns the reports of the targets that the read did not skip.
func (n *partialRead) reported(targets []Desired, reports []*plan.Report) []*plan.Report {
	if n == nil {
		return reports
	}
	var out []*plan.Report
	for i, r := range reports {
		if !n.skips(targets[i]) {
			out = append(out, r)
		}
	}
	return out
}

// partialReads decides which passes read AWS partially. That is safe only if the inputs are the
// same as in the last pass, so it remembers them.
type partialReads struct {
	// next is the next partial read, nil if the next read must be a full one. targets are the
	// targets of the last pass, and at is its start.
	next    *partialRead
	targets []targetInput
	at      time.Time
}

// due returns the partial read for the pass that starts now, nil for a full read. If the pass
// fails, the next one reads everything.
func (p *partialReads) due(b *Batch, mode Mode, now time.Time) *partialRead {
	last := *p
	*p = partialReads{at: now}
	alike := func(x, y targetInput) bool { return x == y && !x.failed }
	if !b.Partial || mode != Apply || !b.Fresh.IsZero() && b.Fresh.After(last.at) || !slices.EqualFunc(last.targets, inputsOf(b.Targets), alike) {
		return nil
	}
	return last.next
}

// keep computes and stores the next partial read. listed is the first observation of that pass.
func (p *partialReads) keep(targets []Desired, reports []*plan.Report, n *partialRead, state *observed.State, listed observed.Listed) {
	var idle map[string]bool
	if n != nil {
		idle = n.idle
	}
	p.next, p.targets = nextPartialRead(targets, reports, idle, state), inputsOf(targets)
	if p.next != nil {
		p.next.read.Listed = listed
	}
}

// targetInput is the part of a target's desired state on which a partial read depends. All other
// inputs wake the loop and lead to a full read.
type targetInput struct {
	target string
	set    *intent.Set
	whole  bool
	commit content.Commit
	failed bool
}

func inputsOf(targets []Desired) []targetInput {
	out := make([]targetInput, len(targets))
	for i, t := range targets {
		out[i] = targetInput{t.Policy.Target, t.Set, t.Whole, t.Commit, t.Err != nil}
	}
	return out
}
