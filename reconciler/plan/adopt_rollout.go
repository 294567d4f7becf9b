package plan

import (
	"encoding/json"
	"slices"

	"github.com/weir-gitops/weir/render/intent"
)

// TagAdopted stands on a group or nodegroup that was taken over, and holds what Git
// wanted of the pool then. Taking over changes tags alone; what machines would be
// replaced for is a decision of its own. While Git wants the same, each such step is
// held until somebody lets it run. The tag goes right before the first that does, or
// once a commit has changed the pool. It stands in AWS, so that no lost state and no
// second weir begins what nobody decided.
const TagAdopted = "weir.dev/adopted"

// adoptedFor is what TagAdopted holds: a hash over what decides about a pool's
// machines. Members that are empty or zero are left out, so that a weir that knows
// more of them gives the same.
func adoptedFor(pool *intent.Pool) string {
	var wanted struct {
		Template  string                   `json:"template"`
		Foreign   *intent.ForeignTemplate  `json:"foreign"`
		Overrides []intent.ForeignTemplate `json:"overrides"`
		Groups    []intent.Lookup          `json:"groups"`
		UserData  string                   `json:"userData"`
		Subnets   intent.Lookup            `json:"subnets"`
		Mixed     *intent.MixedInstances   `json:"mixed"`
		Nodegroup *intent.Nodegroup        `json:"nodegroup"`
	}
	if t := pool.LaunchTemplate; t != nil {
		wanted.Template, wanted.Groups = SourceHash(t.Data, t.Image), t.SecurityGroups
		if t.UserData.Text != "" {
			wanted.UserData = shortHash([]byte(t.UserData.Text))
		}
	}
	wanted.Foreign, wanted.Overrides = pool.ForeignTemplate, pool.ForeignOverrides
	if g := pool.Group; g != nil {
		wanted.Subnets, wanted.Mixed = g.Subnets, g.MixedInstancesPolicy
	}
	if n := pool.Nodegroup; n != nil {
		plain := *n
		plain.Tags, plain.MinSize, plain.MaxSize = nil, intent.Number{}, intent.Number{} // sizes replace nothing
		wanted.Nodegroup = &plain
	}
	var generic any
	if err := json.Unmarshal(canonical(wanted), &generic); err != nil {
		panic("what a pool wants: " + err.Error()) // canonical made it
	}
	some, _ := strip(generic)
	return shortHash(canonical(some))
}

// adoptedTag is TagAdopted on the pool's group or nodegroup as the plan sees it, "" for
// none, and the step that takes it away.
func (in Input) adoptedTag(pool *intent.Pool) (tag string, gone Step) {
	gone = Step{Verb: Update, Reason: "its first rollout since it was adopted is decided"}
	if pool.Group != nil {
		have := in.State.Groups[pool.Group.Name]
		gone.Resource, gone.Name, gone.Do = AutoScalingGroup, have.Name, TagGroup{Group: have.Name, Remove: []string{TagAdopted}}
		tag = have.Tags[TagAdopted].Value
	}
	if pool.Nodegroup != nil {
		for _, have := range in.nodegroupsOf(pool) {
			if tag = have.Tags[TagAdopted]; tag != "" {
				gone.Resource, gone.Name = ManagedNodegroup, have.Name
				gone.Do = TagNodegroup{NodegroupName: have.NodegroupName, ARN: have.ARN, Remove: []string{TagAdopted}}
				break
			}
		}
	}
	gone.Changes = tagChanges(pool, nil, []string{TagAdopted}, map[string]string{TagAdopted: tag})
	return tag, gone
}

// firstRollout marks the steps of a pool that would be the first to replace machines
// since the pool was taken over.
func (c *work) firstRollout(pool *intent.Pool, steps []Step) []Step {
	tag, gone := c.in.adoptedTag(pool)
	first := slices.IndexFunc(steps, Step.disrupts)
	decided := tag != adoptedFor(pool)
	switch {
	case tag == "" || c.adopts || c.in.Policy.Adoption.Asked || first < 0 && !decided:
		return steps
	case first < 0:
		first = len(steps)
	}
	gone.Pool = pool.Key.String()
	out := slices.Insert(slices.Clone(steps), first, gone)
	for i := first; i < len(out) && !decided; i++ {
		if s := &out[i]; i == first || s.disrupts() {
			s.First = true
		}
	}
	return out
}

// holdMarks holds the steps that take TagAdopted away where the step is held that they
// make way for: what decided about that one may be gone by the time it runs.
func (p *Plan) holdMarks() {
	for i := range p.Steps {
		mark := &p.Steps[i]
		if mark.Held != "" || !takesAdopted(*mark) {
			continue
		}
		after := p.Steps[i+1:]
		if n := slices.IndexFunc(after, func(s Step) bool { return s.Pool == mark.Pool && s.disrupts() }); n >= 0 {
			mark.Held, mark.HeldReason = after[n].Held, after[n].HeldReason
		}
	}
}

// takesAdopted reports whether the step takes TagAdopted away and does nothing else. It
// is about weir's own mark, and so no drift.
func takesAdopted(s Step) bool {
	a := s.about()
	return len(a.Put) == 0 && len(a.Remove) == 1 && a.Remove[0] == TagAdopted
}

// undecided says why a step waits that would be the first to replace machines of a pool
// since it was taken over.
func (p Policy) undecided(digest string) string {
	why := "it would be the first to replace machines since the pool was adopted: "
	switch {
	case p.OwnTargetOnly:
		return why + "apply it on a terminal, or with --yes"
	case digest == "":
		return why + "it was planned without the target's secrets and cannot be approved"
	}
	return why + "weir approve " + digest + ", or a commit that changes what its machines are"
}
