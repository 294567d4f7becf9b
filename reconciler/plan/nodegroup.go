package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// nodegroups plans EKS nodegroups.
type nodegroups struct{ templates }

// planNodegroup plans the EKS nodegroup of a pool and, where it has one, its
// launch template.
func (c nodegroups) planNodegroup(pool *intent.Pool, want *wantTemplate) {
	n := pool.Nodegroup
	name := observed.NodegroupName{Cluster: n.ClusterName, Name: n.Name}
	cluster, ok := c.answer(pool, n.Cluster)
	if !ok {
		return
	}
	subnets, ok1 := c.answer(pool, n.Subnets)
	role, ok2 := c.answer(pool, n.Role)
	if !ok1 || !ok2 {
		return
	}
	if c.oneVPC(pool, subnets); c.blocked {
		return
	}
	if c.unreadNodegroups(pool) {
		return
	}
	standing := c.standing(pool)
	absent := c.in.State.Absent.Nodegroups[name]
	if len(standing) == 0 && (c.behindUnseen(pool) || !absent) {
		if !absent {
			c.needs.Nodegroups = append(c.needs.Nodegroups, name)
		}
	}
	made := c.fork()
	var version wantedVersion
	if want != nil || pool.ForeignTemplate != nil {
		inUse := make([]observed.TemplateRef, 0, len(standing))
		for _, n := range standing {
			inUse = append(inUse, n.Template)
		}
		v, known := made.planTemplate(pool, want, inUse)
		if !known {
			c.take(made.result)
			return
		}
		version = v
	}
	if c.blocked || made.blocked || len(standing) == 0 && !absent {
		c.take(made.result)
		return
	}
	w := wantNodegroup{pool: pool, version: version, hasTemplate: want != nil || version.foreign, hasImage: want != nil && want.data.ImageID != "" || version.hasImage,
		role: role.RoleARN, subnets: subnets.Subnets, cluster: *cluster.Cluster}
	w.discovered, c.levels = subnets.Discovered, w.hasImage
	part := nodegroups{c.fork()}
	if !w.hasTemplate {
		w.access = part.remoteAccess(w)
	}
	switch {
	case part.blocked:
	case len(standing) == 0:
		part.createNodegroup(w)
	default:
		part.existingNodegroups(w, standing)
		for _, n := range standing {
			groups{templates: part.templates}.nameBehind(pool, n)
			if !n.DescribedAtPass && slices.ContainsFunc(part.steps, func(s step.Step) bool { return c.mayRun(pool, s) }) {
				// What is remembered may be out of date, its owner included.
				part.needs.Nodegroups = append(part.needs.Nodegroups, n.NodegroupName)
			}
		}
		if len(c.needs.Nodegroups)+len(part.needs.Nodegroups) > 0 {
			part.steps = nil // planned once these are read
		}
	}
	if part.contested {
		made.steps = withoutVersions(made.steps)
	}
	c.take(made.result)
	c.take(part.result)
}

// standing returns the pool's nodegroups and blocks the pool where one of them is
// not the target's to change.
func (c nodegroups) standing(pool *intent.Pool) []observed.Nodegroup {
	claim := Claim{Resource: step.ManagedNodegroup, Name: pool.Nodegroup.Name, Cluster: pool.Nodegroup.ClusterName}
	out := c.in.nodegroupsOf(pool)
	for i := range out {
		if o := c.in.Policy.owns(out[i].Tags, c.in.Fleet.Wanted[claim], c.in.Fleet.Whole); !o.ours && !c.adoptNodegroup(pool, &out[i], &o) {
			c.conflict(pool, step.ManagedNodegroup, out[i].Name, o)
		}
	}
	return out
}

// existingNodegroups plans a pool that has nodegroups: the one that is what Git
// wants is the pool's, and the others have been replaced by it. Where none is, one
// has to be replaced.
func (c nodegroups) existingNodegroups(w wantNodegroup, standing []observed.Nodegroup) {
	serving := standing[0]
	var differs []immutable
	for i, have := range standing {
		d := w.immutables(have)
		if len(d) == 0 && have.Status != "DELETING" {
			others := slices.Delete(slices.Clone(standing), i, i+1)
			c.home = have.NodegroupName
			c.updateNodegroup(w, have)
			if !c.blocked {
				c.leave(w, others, have.Status == "ACTIVE", have.Name)
			}
			return
		}
		if i == 0 {
			differs = d
		}
	}
	switch {
	case serving.Status == "ACTIVE", serving.Status == "DEGRADED":
	case (serving.Status == "CREATE_FAILED" || serving.Status == "DELETE_FAILED") && w.pool.AllowReplace:
	default:
		c.updateNodegroup(w, serving) // it moves: what EKS makes of it comes first
		return
	}
	c.replace(w, standing, differs)
}

// wantNodegroup is a wanted nodegroup with its lookups answered.
type wantNodegroup struct {
	pool                  *intent.Pool
	version               wantedVersion
	hasTemplate, hasImage bool
	role                  string
	subnets               []string
	cluster               observed.EKSCluster
	// discovered says that nobody wrote the subnets.
	discovered bool
	// access is who may log in, without a launch template.
	access *intent.RemoteAccess
}

// writtenSubnets are the subnets that a nodegroup must have, nil where nobody wrote
// them: those that it has stay then.
func (w wantNodegroup) writtenSubnets() []string {
	if w.discovered {
		return nil
	}
	return w.subnets
}

// instanceTypes are those that the nodegroup itself names.
func (w wantNodegroup) instanceTypes() []string {
	if t := w.pool.Nodegroup.InstanceType; t != "" {
		return []string{t}
	}
	return w.pool.Nodegroup.InstanceTypes
}

func (w wantNodegroup) tags(p Policy) map[string]string {
	return p.allTags(w.pool, w.pool.Nodegroup.Tags)
}

// updateNodegroup plans the config and version updates of an existing
// nodegroup. EKS runs one update at a time, so of two only the first runs in
// this pass.
func (c nodegroups) updateNodegroup(w wantNodegroup, have observed.Nodegroup) {
	pool := w.pool
	if put, remove := missingTags(w.tags(c.in.Policy), have.Tags); len(put)+len(remove) > 0 {
		c.step(pool, step.Step{Verb: step.Update, Resource: step.ManagedNodegroup, Name: have.Name, Reason: "tags differ",
			Changes: tagChanges(pool, put, remove, have.Tags),
			Do:      step.TagNodegroup{NodegroupName: have.NodegroupName, ARN: have.ARN, Put: put, Remove: remove}})
	}
	c.tagGroupsBehind(w, have)
	switch have.Status {
	// Assumed of AWS: degraded-takes-updates.
	case "ACTIVE", "DEGRADED":
	case "CREATE_FAILED", "DELETE_FAILED":
		c.failedNodegroup(w, have)
		return
	default:
		return // it moves: looked at again after a delay
	}
	if have.Status == "DEGRADED" {
		text := "the nodegroup " + have.Name + " is DEGRADED: " + healthText(have.HealthIssues)
		c.note(diag.Warning, pool, nil, "nodegroup-degraded", text, healthHint(have.HealthIssues))
		if hint := healthHint(have.HealthIssues); hint != "" {
			text = strings.TrimSuffix(text, ".") + "; " + hint
		}
		c.outstands("Warning", "NodegroupDegraded", text)
		c.fails("nodegroup-degraded", healthCause(have.HealthIssues))
	}
	version := c.versionSteps(w, have)
	steps := append(c.configStep(w, have), version...)
	if len(steps) == 0 || steps[0].Held != "" {
		c.planDefault(pool, w.version)
	}
	if len(steps) == 0 || c.failedBefore(w, have) || c.undone(w, have, version) {
		return
	}
	for i := range steps {
		steps[i].Later = i > 0 && steps[i].Held == ""
		c.step(pool, steps[i])
	}
}

// Fingerprint identifies what a pool wants its nodegroup to be, for the memory
// of failed updates.
func (w wantNodegroup) fingerprint() string {
	return content.ShortHash(content.Canonical(w.pool.Nodegroup), content.Canonical(w.pool.Replicas), []byte(w.version.version()))
}

// failedBefore reports whether the update that is due was tried for this very
// intent and failed: EKS then shows the old values again, and trying on would
// never end.
func (c nodegroups) failedBefore(w wantNodegroup, have observed.Nodegroup) bool {
	started, tried := c.in.Memory.Started[have.NodegroupName]
	if !tried || started.Fingerprint != w.fingerprint() || c.in.Memory.Retry[w.pool.Key.String()] {
		return false
	}
	u, read := c.in.State.Updates[have.NodegroupName]
	switch {
	case !read && c.unread(w.pool, "the updates of the nodegroup "+have.Name, c.in.State.Unread.Updates[have.NodegroupName]):
		return true
	case !read:
		c.needs.Updates = append(c.needs.Updates, have.NodegroupName)
		return true
	case u.ID != started.UpdateID:
		return false
	case u.Status == "Failed" || u.Status == "Cancelled":
		c.note(diag.Error, w.pool, nil, "nodegroup-update-failed", "the update "+u.ID+" of the nodegroup "+have.Name+" ended as "+u.Status+": "+healthText(u.Errors),
			cmp.Or(healthHint(u.Errors), "mend what the message names")+c.in.again("the pool"))
		return true
	}
	if u.Status == "InProgress" { // the description of the nodegroup is older than its update
		c.outstands("Info", "InProgress", "the update "+u.ID+" of the nodegroup "+have.Name+" is under way")
		return true
	}
	return false
}

func healthText(issues []observed.HealthIssue) string {
	var out []string
	for _, i := range issues {
		text := i.Code
		if i.Message != "" {
			text += ": " + i.Message
		}
		out = append(out, text)
	}
	if len(out) == 0 {
		return "EKS gives no reason"
	}
	return strings.Join(out, ", ")
}

// tagGroupsBehind puts weir's and CAPA's tags on the groups that EKS made for
// the nodegroup, so that the owner read of groups finds them, and keeps the
// lifecycle hooks. Nothing else of such a group is ever touched. The owner's tags
// come first, in one call with the record of the hooks: who may write only what is
// theirs may write the rest then.
// Assumed of AWS: groups-behind-nodegroups.
func (c nodegroups) tagGroupsBehind(w wantNodegroup, have observed.Nodegroup) {
	if have.Status == "DELETING" {
		return
	}
	hooks := w.pool.Nodegroup.LifecycleHooks
	for _, name := range have.GroupNames {
		g, ok := c.in.State.Groups[name]
		if !ok {
			if !c.in.State.Absent.Groups[name] {
				c.needs.GroupNames = append(c.needs.GroupNames, name)
			}
			continue
		}
		if g.Deleting {
			continue
		}
		values := observed.GroupTagValues(g.Tags)
		want := recordingHooks(w.tags(c.in.Policy), values, hooks)
		if put, remove := missingTags(want, values); len(put)+len(remove) > 0 {
			t := step.TagGroup{Group: name, Put: map[string]observed.GroupTag{}, Remove: remove}
			for k, v := range put {
				// CAPA propagates the tags of a nodegroup's group at launch;
				// weir's own mark the group only.
				t.Put[k] = observed.GroupTag{Value: v, PropagateAtLaunch: !strings.HasPrefix(k, observed.OwnTagPrefix)}
			}
			if a := c.in.Policy.Adoption; a.Asked && a.From != "" && values[observed.TagOwner] == a.From {
				c.adopts = true // the last attempt ended after the nodegroup
			}
			c.step(w.pool, step.Step{Verb: c.tagVerb(), Resource: step.AutoScalingGroup, Name: name, Reason: "the group behind the nodegroup lacks tags",
				Changes: tagChanges(w.pool, put, remove, values), Do: t})
			g.Tags = t.Tags(g.Tags)
		}
		groups{templates: c.templates}.updateHooks(w.pool, g, hooks)
	}
}
