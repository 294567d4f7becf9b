// Package orphan plans the future of resources that carry the target's tags and that nothing in Git
// wants: they stay, are drained, or are deleted.
//
// weir deletes a resource only if pruning is on, its tag weir.dev/prune does not forbid it, every
// target of the account and region renders completely, and the number of deleted pools is within
// the target's limit. If one of these is unknown, the resource stays, and a diagnostic explains
// why.
package orphan

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// orphan is a resource with this target's tags that no target wants.
type orphan struct {
	claim model.Claim
	pool  string
	// config is the AWSLaunchConfig of a shared template, empty for other resources.
	config string
	// now is the name in Git of the pool's group or nodegroup, if it differs from the orphan's.
	now  string
	tags map[string]string
	step step.Step
}

// orphans plans resources that nothing in Git wants.
type orphans struct {
	in model.Input
	// pools contains the plans of the set's pools.
	pools model.PoolPlans
	model.Result
}

// Plan plans the future of resources that nothing in Git wants. They are deleted only if pruning is
// on, every render in the account and region is complete, and the target's limit allows it.
//
// A resource that the manifests mention is no orphan, even if the manifests are broken. A target
// with a fault has no orphans either, because the desired state of its followed revision is
// unknown.
func Plan(in model.Input, pools model.PoolPlans) model.Result {
	c := &orphans{in: in, pools: pools}
	if in.Policy.Fault != "" || in.Policy.Prune.Silent {
		return c.Result
	}
	if found := c.findOrphans(); len(found) > 0 {
		c.plan(found)
	}
	return c.Result
}

// stands reports whether the manifests protect a resource. Faults in them are reported elsewhere.
// If there is no fault, a finding explains why the resource stays.
func (c *orphans) stands(claim model.Claim, tags map[string]string) bool {
	if p := c.pools.Named(tags[observed.TagPool]); p != nil && p.Fault != "" {
		return true // the pool is in Git, and the names of its resources are unknown
	}
	u := c.in.Standing(claim, tags)
	if u == nil {
		return false
	}
	if u.Foreign {
		c.Diags = append(c.Diags, diag.Diagnostic{Severity: diag.Info, Code: "kept-in-git", Object: u.Objects[0].String(),
			Summary: "the " + string(claim.Resource) + " " + claim.Name + " stays: " + u.Objects[0].String() + " is in Git, although no pool of AWS uses it", Detail: diag.Hint("kept-in-git")})
	}
	return true
}

// plan plans the deletion of orphans within the prune limit, or reports why they stay.
func (c *orphans) plan(found []orphan) {
	prune := c.in.Policy.Prune
	if !prune.Enabled {
		for _, o := range found {
			c.report(diag.Warning, o, "orphan", o.unwanted()+"; pruning is off, so it stays",
				"turn pruning on for the target, or delete it by hand")
		}
		return
	}
	spared := map[model.Claim]bool{}
	for _, o := range found {
		spared[o.claim] = true
	}
	found = c.keepProtected(found)
	for _, o := range found {
		delete(spared, o.claim)
	}
	kept := prune.Kept
	if !c.in.Fleet.Whole {
		kept = "not every target here renders completely"
	}
	if kept != "" {
		for _, o := range found {
			c.report(diag.Warning, o, "orphan-kept", o.unwanted()+", but "+kept+", so nothing is deleted", "")
		}
		return
	}
	refused := c.beyondLimit(found, spared)
	for _, o := range found {
		c.delete(o, refused)
	}
}

// beyondLimit reports whether more pools would be deleted than the target's limit allows, and adds
// a diagnostic.
func (c *orphans) beyondLimit(found []orphan, spared map[model.Claim]bool) bool {
	prune := c.in.Policy.Prune
	pools, emptied := map[string]bool{}, len(c.in.Set.Pools) == 0
	for _, o := range found {
		if c.limited(o) && (emptied || c.hasMachines(o)) {
			pools[cmp.Or(o.pool, o.claim.Name)] = true // a resource without the tag counts as a pool
		}
	}
	owned := len(c.atStake(spared))
	limit, n := prune.Limit(owned), strconv.Itoa(len(pools))
	if len(pools) <= limit && (!emptied || len(pools) == 0) {
		return false
	}
	d := diag.Diagnostic{Severity: diag.Error, Code: "prune-refused",
		Summary: "nothing is deleted: " + n + " of " + strconv.Itoa(owned) + " pools would be deleted, more than the limit of " + strconv.Itoa(limit),
		Detail: "if the deletion is intended, approve the plan with the command that its held steps show, weir approve DIGEST; " +
			"a commit that is not pushed yet may have the trailer \"Weir-Allow-Prune: " + c.in.Policy.Target + "\" instead"}
	switch {
	case prune.Waits != "":
		d = diag.Diagnostic{Severity: diag.Info, Code: "prune-waits", Summary: n + " pools beyond the limit are not deleted yet: " + prune.Waits, Detail: diag.Hint("prune-waits")}
	case emptied:
		d.Summary = "nothing is deleted: the target renders no pool at all, which no limit allows, not even 100 %, and " + n + " would be deleted"
	}
	c.Diags = append(c.Diags, d)
	return true
}

// delete plans the deletion of an orphan. refused reports whether the limit is exceeded.
func (c *orphans) delete(o orphan, refused bool) {
	s := o.step
	s.Held = c.holdOrphan(o, refused)
	if s.Held == step.HeldPruneLimit && refused && c.in.Policy.Prune.Waits != "" {
		s.Held = step.HeldWaiting
	}
	if s.Allowed = c.in.Policy.Prune.Allowed[o.pool]; s.Allowed {
		s.Reason += "; the commit's trailer allows this beyond the limit"
	}
	s.Later = s.Later || c.replacementNotReady(o)
	if s.Held != "" || s.Later || c.confirmed(o) && c.drain(o, &s) {
		c.Steps = append(c.Steps, s)
	}
}

// confirmed reports whether weir has read in this pass everything that a deletion needs, and
// requests it otherwise: the current owner of a nodegroup, and groups of other owners that launch
// from a template.
func (c *orphans) confirmed(o orphan) bool {
	switch o.claim.Resource {
	case step.ManagedNodegroup:
		name := observed.NodegroupName{Cluster: o.claim.Cluster, Name: o.claim.Name}
		if err := c.in.State.Unread.Nodegroup(name); err != nil {
			c.report(diag.Warning, o, "orphan-kept", o.unwanted()+", but AWS does not let weir read it, so it stays: "+err.Message, "")
			return false
		}
		if !c.in.State.Nodegroups[name].DescribedAtPass {
			c.Needs.Nodegroups = append(c.Needs.Nodegroups, name)
			return false
		}
	case step.LaunchTemplate:
		if c.in.State.TemplateUsers == nil {
			c.Needs.TemplateUsers = true
			return false
		}
		t := c.in.State.Templates[o.claim.Name]
		if users := append(slices.Clone(c.in.State.TemplateUsers[t.ID]), c.in.State.TemplateUsers[t.Name]...); len(users) > 0 {
			c.report(diag.Warning, o, "orphan-kept", o.unwanted()+", but the group "+strings.Join(slices.Compact(slices.Sorted(slices.Values(users))), ", ")+" launches from it, so it stays", "")
			return false
		}
	}
	return true
}

// holdOrphan returns the hold on the deletion of an orphan, "" for none. refused means that the
// deletions exceed the prune limit.
func (c *orphans) holdOrphan(o orphan, refused bool) step.Hold {
	switch {
	case c.in.Policy.Suspended || c.in.Policy.ReportOnly || c.in.Policy.Gates.Pools[o.pool] != "":
		return step.HeldSuspended
	case c.clusterOf(o, func(paused, _ bool) bool { return paused }):
		return step.HeldPaused
	case c.in.Pool(o.pool) != nil && c.in.Pool(o.pool).Paused:
		return step.HeldPaused
	case refused && (c.limited(o) || o.config != ""):
		return step.HeldPruneLimit
	case o.config != "" && len(c.in.Set.Pools) == 0 && len(c.in.Policy.Prune.Allowed)+len(c.in.Policy.Prune.Granted) == 0:
		c.report(diag.Warning, o, "orphan-kept", "the target renders no pool at all, so it stays", "")
		return step.HeldPruneLimit
	}
	return ""
}

// limited reports whether the orphan counts against the limit. An allowed orphan does not count,
// nor does a replaced one, nor a shared template, which is not a pool.
func (c *orphans) limited(o orphan) bool {
	return o.config == "" && !c.in.Policy.Prune.Allowed[o.pool] && !c.in.Policy.Prune.Granted[o.pool] && c.in.Pool(o.pool) == nil
}

// clusterOf reports whether test is true for a cluster of the render whose tag the orphan has.
func (c *orphans) clusterOf(o orphan, test func(paused, topology bool) bool) bool {
	for _, cl := range c.in.Set.Clusters {
		if _, tagged := o.tags[observed.TagClusterPrefix+cl.TagName]; tagged && test(cl.Paused, cl.Topology) {
			return true
		}
		if _, tagged := o.tags["kubernetes.io/cluster/"+cl.TagName]; tagged && test(cl.Paused, cl.Topology) {
			return true
		}
	}
	return false
}

// maybeTopology reports whether the orphan may belong to a cluster of the render that uses a
// ClusterClass. The names in a ClusterClass are unknown, above all the EKS cluster's. So every
// orphan may, unless its tags show another cluster.
func (c *orphans) maybeTopology(o orphan) bool {
	if c.clusterOf(o, func(_, topology bool) bool { return topology }) {
		return true
	}
	return slices.ContainsFunc(c.in.Set.Clusters, func(cl intent.Cluster) bool { return cl.Topology }) &&
		!c.clusterOf(o, func(_, topology bool) bool { return !topology })
}

// keepProtected removes the orphans that must stay regardless of Git.
func (c *orphans) keepProtected(found []orphan) []orphan {
	return slices.DeleteFunc(found, func(o orphan) bool {
		switch {
		case o.tags[observed.TagPrune] == "disabled":
			c.report(diag.Warning, o, "orphan-kept", o.unwanted()+"; it is tagged weir.dev/prune: disabled, so it stays", "")
		case c.keepsRenamed(o):
		case c.protected(o):
		case c.maybeTopology(o):
			c.report(diag.Warning, o, "orphan-kept", "its cluster uses spec.topology, which weir does not expand, so nothing of it is deleted", "")
		default:
			return false
		}
		return true
	})
}

func (c *orphans) report(sev diag.Severity, o orphan, code, summary, detail string) {
	whose := "pool " + observed.Quote(o.pool)
	if o.config != "" {
		whose = "the AWSLaunchConfig " + observed.Quote(o.config)
	}
	c.Diags = append(c.Diags, diag.Diagnostic{Severity: sev, Code: code, Detail: cmp.Or(detail, diag.Hint(code)),
		Summary: "the " + string(o.claim.Resource) + " " + o.claim.Name + " of " + whose + ": " + summary})
}

func (c *orphans) wanted(claim model.Claim) bool {
	_, ok := c.in.Fleet.Wanted[claim]
	return ok
}

// atStake returns the pools that the target owns in AWS. The limit is a fraction of them. Like the
// pools that count against the limit, they exclude pools with only a template left and pools whose
// group is being deleted, as earlier deletions would otherwise raise the limit. They also exclude
// orphans that stay regardless of the limit.
func (c *orphans) atStake(spared map[model.Claim]bool) map[string]bool {
	out := map[string]bool{}
	mine := c.in.Mine()
	for _, name := range mine.Groups {
		g := c.in.State.Groups[name]
		drained := g.Tags[observed.TagDelete].Value == model.DeleteDrain && drainBegun(g)
		if _, behind := g.Tags[observed.TagNodegroup]; !behind && !g.Deleting && !drained && !spared[model.Claim{Resource: step.AutoScalingGroup, Name: name}] {
			out[cmp.Or(g.Tags[observed.TagPool].Value, name)] = true
		}
	}
	for _, name := range mine.Nodegroups {
		if n := c.in.State.Nodegroups[name]; n.Status != "DELETING" && !spared[model.Claim{Resource: step.ManagedNodegroup, Name: name.Name, Cluster: name.Cluster}] {
			out[cmp.Or(n.Tags[observed.TagPool], name.Name)] = true
		}
	}
	return out
}

// UnknownTargets reports the instance's resources whose target or source is no longer in the
// configuration. weir never deletes them, because their desired state is unknown. known is the set
// of the configured targets of the account and region.
func UnknownTargets(s *observed.State, p model.Policy, known map[string]bool) diag.List {
	var out diag.List
	note := func(r step.Resource, name string, tag func(string) string) {
		if tag(observed.TagOwner) != p.Instance {
			return
		}
		if source := tag(observed.TagSource); source != p.Source && !slices.Contains(p.Sources, source) {
			out = append(out, diag.Diagnostic{Severity: diag.Warning, Code: "unknown-source",
				Summary: "the " + string(r) + " " + name + " comes from the source " + observed.Quote(source) + ", which this instance does not have; weir does not change it",
				Detail:  "configure the repository again under its old address, or delete the resource by hand"})
			return
		}
		if known[tag(observed.TagTarget)] {
			return
		}
		out = append(out, diag.Diagnostic{Severity: diag.Warning, Code: "unknown-target",
			Summary: "the " + string(r) + " " + name + " belongs to the target " + observed.Quote(tag(observed.TagTarget)) + ", which the configuration does not name here; weir does not change it",
			Detail:  "configure the target again, or delete the resource by hand"})
	}
	for name, g := range s.Groups {
		if g.Tags[observed.TagNodegroup].Value == "" {
			note(step.AutoScalingGroup, name, func(key string) string { return g.Tags[key].Value })
		}
	}
	for name, n := range s.Nodegroups {
		note(step.ManagedNodegroup, name.String(), func(key string) string { return n.Tags[key] })
	}
	for name, t := range s.Templates {
		note(step.LaunchTemplate, name, func(key string) string { return t.Tags[key] })
	}
	return out.Sorted()
}

// brought reports whether a pool brings the template along. Such a template stays, even with our
// tags.
func brought(in model.Input, t observed.Template) bool {
	if in.Fleet.Brought[t.Name] || in.Fleet.Brought[t.ID] {
		return true
	}
	return slices.ContainsFunc(in.Set.Pools, func(p intent.Pool) bool {
		return slices.ContainsFunc(model.ForeignTemplates(&p), func(f intent.ForeignTemplate) bool { return f.Lookup.Name == t.Name || f.Lookup.Name == t.ID })
	})
}

// Unwanted returns, sorted, the pools for which the target has a group or a nodegroup that nothing
// in Git wants.
func Unwanted(in model.Input) []string {
	c := &orphans{in: in}
	pools := map[string]bool{}
	for _, o := range c.findOrphans() {
		if o.claim.Resource != step.LaunchTemplate {
			pools[o.pool] = true
		}
	}
	return slices.Sorted(maps.Keys(pools))
}
