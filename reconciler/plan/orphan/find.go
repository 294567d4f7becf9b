package orphan

import (
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
)

// findOrphans lists this target's unwanted resources: first groups and nodegroups, then templates.
// The deletion of a template waits until nothing launches from it.
func (c *orphans) findOrphans() []orphan {
	mine := c.in.Mine()
	return slices.Concat(c.groups(mine.Groups), c.nodegroups(mine.Nodegroups), c.templates(mine.Templates))
}

// newOrphan returns an unwanted resource with the step that deletes it.
func (c *orphans) newOrphan(claim model.Claim, tags map[string]string, s step.Step) orphan {
	s.Resource, s.Name, s.Pool, s.Verb, s.Reason = claim.Resource, claim.Name, tags[observed.TagPool], step.Delete, "Git does not want it"
	s.Disruptive = s.Instances > 0
	if s.LaunchConfig = tags[observed.TagLaunchConfig]; s.LaunchConfig != "" {
		s.Pool = ""
	}
	o := orphan{claim: claim, pool: s.Pool, config: s.LaunchConfig, tags: tags, step: s, now: c.renamedTo(claim.Resource, s.Pool)}
	if o.now != "" {
		o.step.Reason = o.unwanted() + ", which replaces it"
	}
	return o
}

func (c *orphans) groups(names []string) (out []orphan) {
	for _, name := range names {
		g := c.in.State.Groups[name]
		claim := model.Claim{Resource: step.AutoScalingGroup, Name: name}
		if _, behind := g.Tags[observed.TagNodegroup]; behind || c.wanted(claim) || g.Deleting {
			continue
		}
		tags := observed.GroupTagValues(g.Tags)
		if c.stands(claim, tags) {
			continue
		}
		out = append(out, c.newOrphan(claim, tags, step.Step{Instances: len(g.Instances), Changes: deletionChanges(g), Seen: step.SeenGroup(g), Do: step.DeleteGroup{Name: name, Force: byForce(g)}}))
	}
	return out
}

func (c *orphans) nodegroups(names []observed.NodegroupName) (out []orphan) {
	for _, name := range names {
		n := c.in.State.Nodegroups[name]
		claim := model.Claim{Resource: step.ManagedNodegroup, Name: name.Name, Cluster: name.Cluster}
		if c.wanted(claim) || n.Status == "DELETING" || replaceable(c.in, name) || c.stands(claim, n.Tags) {
			continue
		}
		// EKS refuses to delete a nodegroup that it is still making or changing.
		busy := n.Status == "CREATING" || n.Status == "UPDATING"
		out = append(out, c.newOrphan(claim, n.Tags, step.Step{Later: busy, Instances: int(n.DesiredSize), Seen: step.SeenNodegroup(n), Do: step.DeleteNodegroup{NodegroupName: name}}))
	}
	return out
}

// templates returns the launch templates of the names that no target wants. A template that is in
// use is deleted in a later pass.
func (c *orphans) templates(names []string) (out []orphan) {
	for _, name := range names {
		t := c.in.State.Templates[name]
		claim := model.Claim{Resource: step.LaunchTemplate, Name: name}
		if c.wanted(claim) || brought(c.in, t) || c.stands(claim, t.Tags) {
			continue
		}
		// The nodegroup behind a template may not be listed yet.
		cluster := t.Tags[observed.TagCluster]
		_, listed := c.in.State.Clusters[cluster]
		later := c.in.Index.InUse[t.ID] || c.in.Index.InUse[t.Name] || cluster != "" && (!listed || c.in.State.Unread.Cluster(cluster))
		out = append(out, c.newOrphan(claim, t.Tags, step.Step{Later: later, Seen: step.SeenTemplate(t), Do: step.DeleteLaunchTemplate{Template: observed.TemplateRef{ID: t.ID, Name: t.Name}}}))
	}
	return out
}
