package model

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// Adoption selects resources that somebody else made, or that another weir owns, for the target to
// adopt. The zero value adopts nothing.
//
// Adopting writes tags and nothing else, one call for each resource, in which all of weir's tags are
// set together: of two adopters, the last writer owns the whole resource, and no resource ever
// carries the tags of both. The group or nodegroup comes before its template, because a former owner
// that still prunes must lose what holds machines first. Where two adopters end with one of the two
// each, both report a conflict and neither writes again. The next attempt completes a partial
// adoption: it skips the resources that the target already owns.
type Adoption struct {
	// Annotated lets the annotation weir.dev/adopt take over what no weir owns.
	Annotated bool
	// Asked makes it a pass for adopting alone: other steps are not planned. All pools
	// are meant, or Pools ("namespace/name").
	Asked bool
	Pools map[string]bool
	// From is another instance whose resources the target also adopts, with Asked.
	From string
}

// Skips reports whether the pass is not about the pool.
func (a Adoption) Skips(pool *intent.Pool) bool {
	return a.Asked && a.Pools != nil && !a.Pools[pool.Key.String()]
}

// toolTags begin the keys that other tools and services of AWS mark as theirs.
var toolTags = []struct{ prefix, whose string }{
	{"aws:cloudformation:", "a CloudFormation stack"},
	{"karpenter.sh/", "Karpenter"},
	{"karpenter.k8s.aws/", "Karpenter"},
	{"eks:", "EKS"},
}

// neverAdopted says why nobody may take a resource over, "" if that is allowed: it is
// another tool's, which would go on changing it, or another cluster's.
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

// toolOf says whose a resource with a tag of the key is, "" for no other tool's.
func toolOf(key string) string {
	for _, t := range toolTags {
		if strings.HasPrefix(key, t.prefix) {
			return "it belongs to " + t.whose + ", as its tag " + key + " says, and is never adopted"
		}
	}
	return ""
}

// OfAnotherTool says which tool has marked a resource as its own, "" for none.
func OfAnotherTool(tags map[string]string) string {
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		if why := toolOf(k); why != "" {
			return why
		}
	}
	return ""
}

// MayAdopt decides whether another's resource may become the target's. Where it may not
// although it was asked for, o says why.
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
	// For our own resources, this is a matter between targets of this instance.
	return owner == "" || !ours && a.Asked && a.From == owner
}

// remedy describes what to do about a resource of owner; an empty owner means no weir. The plan of a
// directory by itself does not advise to adopt a daemon's resource: both would go on changing it.
func (p Policy) remedy(owner string) string {
	if p.OwnTargetOnly && owner != "" && !p.Adoption.Asked {
		return "rename the pool, or plan the directory as the weir would that has it: weir plan --config FILE --path DIR, or weir plan --server URL --path DIR"
	}
	return "rename the pool, remove the existing resource, or adopt it: " + p.AdoptCommand(owner)
}

// OnlyShows reports whether the plan is for looking at: then the plan shows another's
// resource as it would be after its adoption, with its differences from Git.
func (p Policy) OnlyShows() bool { return p.ReportOnly && !p.Adoption.Asked }

// AdoptCommand returns the command that makes the target adopt what owner has. An empty owner means
// no weir. The owner comes from a tag, so it is untrusted text: a value that cannot be an instance's
// name is not printed for people to paste.
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

// Adopt plans that a resource becomes the target's by an action that writes its tags, which
// it returns as they then are.
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

// TagVerb is the verb of a step that tags the resources behind a nodegroup.
func (c *Work) TagVerb() step.Verb {
	if c.Adopts {
		return step.Adopt
	}
	return step.Update
}

// Adopted arranges the steps of a pool: adoptions come first, and all else waits for a
// later pass, so that a pass with adoptions changes only tags and still shows what will
// follow.
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
