package model

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// Adoption selects resources for the target to adopt: resources that somebody else made, or that
// another weir owns. The zero value adopts nothing.
//
// Adopting writes tags and nothing else. One call for each resource sets all of weir's tags
// together. So of two adopters, the last writer owns the whole resource, and no resource ever
// carries the tags of both. The group or nodegroup comes before its template: a former owner that
// still prunes must first lose the resource with the machines. If two adopters end up with one
// resource each, both report a conflict and neither writes again. The next attempt completes a
// partial adoption: it skips the resources that the target already owns.
type Adoption struct {
	// Annotated makes the annotation weir.dev/adopt adopt resources that no weir owns.
	Annotated bool
	// Asked is set in a pass that only adopts and plans no other steps. Pools ("namespace/name")
	// limits the pass to these pools. Nil means all pools.
	Asked bool
	Pools map[string]bool
	// From is another instance whose resources the target also adopts if Asked is set.
	From string
}

// Skips reports whether the pass leaves out the pool.
func (a Adoption) Skips(pool *intent.Pool) bool {
	return a.Asked && a.Pools != nil && !a.Pools[pool.Key.String()]
}

// toolTags lists the prefixes of tag keys by which other tools and AWS services mark their
// resources.
var toolTags = []struct{ prefix, whose string }{
	{"aws:cloudformation:", "a CloudFormation stack"},
	{"karpenter.sh/", "Karpenter"},
	{"karpenter.k8s.aws/", "Karpenter"},
	{"eks:", "EKS"},
}

// neverAdopted explains why nobody may adopt a resource, "" if adoption is allowed. It refuses
// resources of another tool, which would go on changing them, and resources of another cluster.
func neverAdopted(have, want map[string]string) string {
	for _, k := range slices.Sorted(maps.Keys(have)) {
		if why := toolOf(k); why != "" {
			return why
		}
		cluster, isCluster := strings.CutPrefix(k, observed.TagClusterPrefix)
		if !isCluster && have[k] == "owned" {
			cluster, isCluster = strings.CutPrefix(k, tagKubernetesCluster)
		}
		if _, wanted := want[k]; isCluster && !wanted {
			return "it belongs to another cluster, " + observed.Quote(cluster) + ", as its tag " + k + " says"
		}
	}
	return ""
}

// toolOf names the tool that owns a resource with a tag of the key, "" for none.
func toolOf(key string) string {
	for _, t := range toolTags {
		if strings.HasPrefix(key, t.prefix) {
			return "it belongs to " + t.whose + ", as its tag " + key + " says, and is never adopted"
		}
	}
	return ""
}

// OfAnotherTool names the tool that has tagged a resource as its own, "" for none.
func OfAnotherTool(tags map[string]string) string {
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		if why := toolOf(k); why != "" {
			return why
		}
	}
	return ""
}

// MayAdopt decides whether the target may adopt somebody else's resource. If an adoption was
// requested and is not allowed, it puts the reason into o.
func (in Input) MayAdopt(pool *intent.Pool, have, want map[string]string, o *Ownership) bool {
	p, a := in.Policy, in.Policy.Adoption
	owner := have[observed.TagOwner]
	ours := owner == p.Instance && !p.OwnTargetOnly && (have[observed.TagSource] == p.Source || slices.Contains(p.Sources, have[observed.TagSource]))
	never := neverAdopted(have, want)
	if never == "" && !ours {
		o.remedy = p.remedy(owner)
	}
	if p.OnlyShows() && never == "" && !ours {
		return true
	}
	if !a.Asked && (!pool.Adopt || !a.Annotated) {
		if pool.Adopt && owner == "" {
			o.Why += "; annotation weir.dev/adopt has no effect, because the target's configuration does not say allowAdopt"
		}
		return false
	}
	if never != "" {
		o.Why = never
		return false
	}
	// An adoption never moves a resource between targets of this instance; Owns decides about that.
	return owner == "" || !ours && a.Asked && a.From == owner
}

// remedy describes the options for a resource of owner. An empty owner means that no weir owns it.
// The plan of a directory by itself does not suggest adopting a daemon's resource, because both
// would go on changing it.
func (p Policy) remedy(owner string) string {
	if p.OwnTargetOnly && owner != "" && !p.Adoption.Asked {
		return "rename the pool, or plan the directory as the weir that owns it would: weir plan --config FILE --path DIR, or weir plan --server URL --path DIR"
	}
	return "rename the pool, remove the existing resource, or adopt it: " + p.AdoptCommand(owner)
}

// OnlyShows reports whether the plan never runs. It then shows somebody else's resource as it would
// be after its adoption, with its differences from Git.
func (p Policy) OnlyShows() bool { return p.ReportOnly && !p.Adoption.Asked }

// AdoptCommand returns the command that makes the target adopt a resource of owner. An empty owner
// means that no weir owns it. The owner comes from a tag, so it is untrusted text: a value that
// cannot be an instance's name is not printed for people to paste.
func (p Policy) AdoptCommand(owner string) string {
	command := "weir adopt --config FILE " + p.Target
	if p.OwnTargetOnly { // rendered from a directory
		command = "weir adopt PATH --region " + p.Region
	}
	switch {
	case owner == "":
		return command
	case strings.Trim(owner, "abcdefghijklmnopqrstuvwxyz0123456789-") != "":
		return command + " --from OWNER"
	}
	return command + " --from " + owner
}

// Adopt adds the step that adopts a resource by writing its tags. It returns the tags after the
// adoption.
func (c *Work) Adopt(pool *intent.Pool, resource step.Resource, name string, have map[string]string, do step.Action) map[string]string {
	why := "it has no owner"
	switch owner := have[observed.TagOwner]; {
	case owner != "":
		why = "it belongs to the weir instance " + observed.Quote(owner)
	case HasCAPATag(have):
		why = "it belongs to Cluster API Provider AWS"
	}
	c.Adopts = true
	about := do.About()
	s := step.Step{Verb: step.Adopt, Resource: resource, Name: name, Reason: why + "; only its tags change",
		Changes: TagChanges(pool, about.Put, about.Remove, have), Do: do}
	if p := c.In.Policy; p.OnlyShows() {
		s.HeldReason = p.Gates.WhySuspended(p, pool.Key.String()) + "; " + p.AdoptCommand(have[observed.TagOwner]) + " adopts it anyway, which changes only tags"
		s.HeldEnds = p.AdoptCommand(have[observed.TagOwner])
	}
	c.Step(pool, s)
	tags := observed.WithTags(have, about.Put)
	for _, k := range about.Remove {
		delete(tags, k)
	}
	return tags
}

// TagVerb returns the verb of a step that tags the resources behind a nodegroup.
func (c *Work) TagVerb() step.Verb {
	if c.Adopts {
		return step.Adopt
	}
	return step.Update
}

// Adopted orders the steps of a pool: adoptions come first, and all other steps wait for a later
// pass. So a pass with adoptions changes only tags and still shows the steps that will follow.
func (c *Work) Adopted(steps []step.Step) []step.Step {
	if !c.Adopts {
		if c.In.Policy.Adoption.Asked {
			return nil
		}
		return steps
	}
	out := slices.Clone(steps)
	slices.SortStableFunc(out, func(a, b step.Step) int {
		switch {
		case (a.Verb == step.Adopt) == (b.Verb == step.Adopt):
			return 0
		case a.Verb == step.Adopt:
			return -1
		}
		return 1
	})
	for i := range out {
		out[i].Later = out[i].Later || out[i].Verb != step.Adopt
	}
	return out
}
