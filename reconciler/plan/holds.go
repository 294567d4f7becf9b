package plan

import (
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
)

// holdMarks holds a step that removes TagAdopted if the step right after it that replaces machines
// is held. Otherwise the tag would be gone before that step is decided.
func (p *Plan) holdMarks() {
	for i := range p.Steps {
		mark := &p.Steps[i]
		if mark.Held != "" || !model.TakesAdopted(*mark) {
			continue
		}
		after := p.Steps[i+1:]
		if n := slices.IndexFunc(after, func(s step.Step) bool { return s.Pool == mark.Pool && s.Disrupts() }); n >= 0 {
			mark.Held, mark.HeldReason, mark.HeldEnds = after[n].Held, after[n].HeldReason, after[n].HeldEnds
		}
	}
}

// AgreementOf returns the agreement of a person who confirms a plan. Held steps stay held.
func AgreementOf(p *Plan) model.Agreement {
	a := model.Agreement{Digest: p.Digest(), First: true, Deletes: map[string]bool{}}
	for _, s := range p.Steps {
		if s.Verb == step.Delete {
			a.Deletes[s.Pool] = true
		}
	}
	return a
}

// Waiting names a rollout that waits for its turn.
type Waiting struct{ Target, Owner string }

// LimitRollouts holds the rollouts that exceed the limit of the account and region, across all
// plans there. Rollouts in progress count too. A limit of 0 means no limit. Rollouts in queue go
// first, in the order of their arrival, then all others in the order of the plans, so none starves.
// refused is the set of rollouts that AWS refused a short while ago; they start nothing and take no
// slot. LimitRollouts returns the queue for the next call.
func LimitRollouts(plans []*Plan, limit, moving int, queue []Waiting, refused map[Waiting]bool) []Waiting {
	if limit <= 0 {
		return nil
	}
	type candidate struct {
		Waiting
		step *step.Step
	}
	var all []candidate
	for _, p := range plans {
		if p == nil {
			continue
		}
		for i := range p.Steps {
			w := Waiting{p.Target, p.Steps[i].Owner()}
			if p.Steps[i].StartsRollout() && !refused[w] {
				all = append(all, candidate{w, &p.Steps[i]})
			}
		}
	}
	position := func(c candidate) int {
		if n := slices.Index(queue, c.Waiting); n >= 0 {
			return n
		}
		return len(queue)
	}
	slices.SortStableFunc(all, func(a, b candidate) int { return position(a) - position(b) })
	free := max(0, limit-moving)
	if free >= len(all) {
		return nil
	}
	var waiting []Waiting
	for n, c := range all[free:] {
		c.step.Held = step.HeldRolloutLimit
		c.step.HeldReason = strconv.Itoa(moving+free) + " of at most " + strconv.Itoa(limit) + " rollouts are under way in the account and region; " + strconv.Itoa(n) + " wait before this one"
		waiting = append(waiting, c.Waiting)
	}
	for _, p := range plans {
		if p != nil {
			p.holdMarks()
		}
	}
	return waiting
}

// RolloutsMoving counts the instance refreshes, nodegroup updates and nodegroup replacements of an
// instance that are in progress in an account and region. A replacement is in progress until the
// nodes of the previous nodegroup are drained.
func RolloutsMoving(s *observed.State, instance string) int {
	type pool struct{ cluster, key string }
	stays := map[pool]bool{}
	for name, g := range s.Nodegroups {
		if model.NodegroupRank(g) == 0 {
			stays[pool{name.Cluster, g.Tags[observed.TagPool]}] = true
		}
	}
	n := 0
	for name, r := range s.Refreshes {
		if r.Active() && s.Groups[name].Tags[observed.TagOwner].Value == instance {
			n++
		}
	}
	for name, g := range s.Nodegroups {
		_, _, replaces := model.CutSuffix(name.Name)
		replaced := g.Status == "DELETING" && stays[pool{name.Cluster, g.Tags[observed.TagPool]}]
		if (g.Status == "UPDATING" || g.Status == "CREATING" && replaces || replaced) && g.Tags[observed.TagOwner] == instance {
			n++
		}
	}
	return n
}
