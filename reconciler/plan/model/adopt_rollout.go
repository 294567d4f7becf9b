package model

import (
	"encoding/json"
	"slices"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// AdoptedFor returns the value of TagAdopted: a hash over everything in the pool that decides about
// its machines. It leaves out empty and zero members, so a later weir with more members computes
// the same hash.
func AdoptedFor(pool *intent.Pool) string {
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
		wanted.Template, wanted.Groups = content.SourceHash(t.Data, t.Image), t.SecurityGroups
		if t.UserData.Text != "" {
			wanted.UserData = content.ShortHash([]byte(t.UserData.Text))
		}
	}
	wanted.Foreign, wanted.Overrides = pool.ForeignTemplate, pool.ForeignOverrides
	if g := pool.Group; g != nil {
		wanted.Subnets, wanted.Mixed = g.Subnets, g.MixedInstancesPolicy
	}
	if n := pool.Nodegroup; n != nil {
		plain := *n
		plain.Tags, plain.MinSize, plain.MaxSize = nil, intent.Number{}, intent.Number{} // sizes replace no machine
		wanted.Nodegroup = &plain
	}
	var generic any
	if err := json.Unmarshal(content.Canonical(wanted), &generic); err != nil {
		panic("what a pool wants: " + err.Error()) // canonical made it
	}
	some, _ := Strip(generic)
	return content.ShortHash(content.Canonical(some))
}

// adoptedTag returns TagAdopted of the pool's group or nodegroup, "" for none, and the step that
// removes it.
func (in Input) adoptedTag(pool *intent.Pool) (tag string, gone step.Step) {
	gone = step.Step{Verb: step.Update, Reason: "its first rollout since it was adopted is decided"}
	if pool.Group != nil {
		have := in.State.Groups[pool.Group.Name]
		gone.Resource, gone.Name, gone.Do = step.AutoScalingGroup, have.Name, step.TagGroup{Group: have.Name, Remove: []string{observed.TagAdopted}}
		tag = have.Tags[observed.TagAdopted].Value
	}
	if pool.Nodegroup != nil {
		for _, have := range in.NodegroupsOf(pool) {
			if tag = have.Tags[observed.TagAdopted]; tag != "" {
				gone.Resource, gone.Name = step.ManagedNodegroup, have.Name
				gone.Do = step.TagNodegroup{NodegroupName: have.NodegroupName, ARN: have.ARN, Remove: []string{observed.TagAdopted}}
				break
			}
		}
	}
	if tag != "" {
		gone.Changes = TagChanges(pool, nil, []string{observed.TagAdopted}, map[string]string{observed.TagAdopted: tag})
	}
	return tag, gone
}

// FirstRollout marks the steps of a pool that would be the first to replace machines since its
// adoption.
func (c *Work) FirstRollout(pool *intent.Pool, steps []step.Step) []step.Step {
	tag, gone := c.In.adoptedTag(pool)
	if tag == "" || c.Adopts || c.In.Policy.Adoption.Asked {
		return steps
	}
	decided := tag != AdoptedFor(pool)
	first := slices.IndexFunc(steps, step.Step.Disrupts)
	switch {
	case first < 0 && !decided:
		return steps
	case first < 0:
		first = len(steps)
	}
	gone.Pool = pool.Key.String()
	out := slices.Insert(slices.Clone(steps), first, gone)
	for i := first; i < len(out) && !decided; i++ {
		if s := &out[i]; i == first || s.Disrupts() {
			s.First = true
		}
	}
	return out
}

// TakesAdopted reports whether the step removes TagAdopted and does nothing else. Such a step
// concerns weir's own tag, so it is no drift.
func TakesAdopted(s step.Step) bool {
	a := s.About()
	return len(a.Put) == 0 && len(a.Remove) == 1 && a.Remove[0] == observed.TagAdopted
}
