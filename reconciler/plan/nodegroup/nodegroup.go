// Package nodegroup plans EKS managed nodegroups: their updates, which EKS runs one at a time, and
// their replacement if EKS cannot change a field in place.
//
// Of the groups that EKS makes behind a nodegroup, weir writes only tags and lifecycle hooks
// (package group).
package nodegroup

import (
	"cmp"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/group"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// Planner plans EKS nodegroups.
type Planner struct{ template.Planner }

// Plan plans the EKS nodegroup of a pool and, if any, its launch template.
func (c Planner) Plan(pool *intent.Pool, want *template.Want) {
	w, ok := c.wanted(pool)
	if !ok || c.unreadNodegroups(pool) {
		return
	}
	standing := c.standing(pool)
	name := observed.NodegroupName{Cluster: pool.Nodegroup.ClusterName, Name: pool.Nodegroup.Name}
	absent := c.In.State.Absent.Nodegroups[name]
	if len(standing) == 0 {
		c.askBehind(pool)
		if !absent {
			c.Needs.Nodegroups = append(c.Needs.Nodegroups, name)
		}
	}
	made := c.Fork()
	known := Planner{made}.versionOf(&w, want, standing)
	if known && len(standing) == 0 {
		c.RefuseRenamed(pool)
	}
	if !known || c.Blocked || made.Blocked || len(standing) == 0 && !absent {
		c.Take(made.Result)
		return
	}
	c.Levels = w.hasImage
	part := Planner{c.Fork()}
	if !w.hasTemplate {
		w.access = part.remoteAccess(w)
	}
	switch {
	case part.Blocked:
	case len(standing) == 0:
		part.createNodegroup(w)
	default:
		part.existingNodegroups(w, standing)
		part.nameBehind(w, standing)
		if len(c.Needs.Nodegroups)+len(part.Needs.Nodegroups) > 0 {
			part.Steps = nil // planned once these are read
		}
	}
	if part.Contested {
		made.Steps = model.WithoutVersions(made.Steps)
	}
	part.reportGoverned(w, standing)
	c.Take(made.Result)
	c.Take(part.Result)
}

// wanted returns the wanted nodegroup with its lookups answered, except for its launch template.
func (c Planner) wanted(pool *intent.Pool) (w wantNodegroup, ok bool) {
	n := pool.Nodegroup
	cluster, ok := c.Answer(pool, n.Cluster)
	if !ok {
		return w, false
	}
	subnets, ok1 := c.Answer(pool, n.Subnets)
	role, ok2 := c.Answer(pool, n.Role)
	if !ok1 || !ok2 {
		return w, false
	}
	for _, l := range n.RoleChecks {
		c.Answer(pool, l) // Answer reports differences as warnings
	}
	c.OneVPC(pool, subnets)
	return wantNodegroup{pool: pool, role: role.RoleARN, subnets: subnets.Subnets, discovered: subnets.Discovered, cluster: cluster.Cluster}, !c.Blocked
}

// versionOf adds the version of the launch template to w, if there is one. known is false while the
// version is unknown.
func (c Planner) versionOf(w *wantNodegroup, want *template.Want, standing []observed.Nodegroup) (known bool) {
	if want == nil && w.pool.ForeignTemplate == nil {
		return true
	}
	inUse := make([]observed.TemplateRef, 0, len(standing))
	for _, n := range standing {
		inUse = append(inUse, c.In.NodegroupInUse(n)...)
	}
	w.version, known = c.Planner.Plan(w.pool, want, inUse)
	w.hasTemplate = want != nil || w.version.Foreign
	w.hasImage = want != nil && want.Data.ImageID != "" || w.version.HasImage
	return known
}

// nameBehind reports suspended processes of the groups behind nodegroups. It also requests
// nodegroups again that a step is about to change, because the cached ones may be outdated,
// including their owners.
func (c Planner) nameBehind(w wantNodegroup, standing []observed.Nodegroup) {
	for _, n := range standing {
		group.Planner{Planner: c.Planner}.NameBehind(w.pool, n)
		if !n.DescribedAtPass && slices.ContainsFunc(c.Steps, func(s step.Step) bool { return c.MayRun(w.pool, s) }) {
			c.Needs.Nodegroups = append(c.Needs.Nodegroups, n.NodegroupName)
		}
	}
}

// standing returns the pool's nodegroups. It blocks the pool if the target must not change one of
// them.
func (c Planner) standing(pool *intent.Pool) []observed.Nodegroup {
	claim := model.Claim{Resource: step.ManagedNodegroup, Name: pool.Nodegroup.Name, Cluster: pool.Nodegroup.ClusterName}
	out := c.In.NodegroupsOf(pool)
	for i := range out {
		if o := c.In.Policy.Owns(out[i].Tags, c.In.Fleet.Wanted[claim], c.In.Fleet.Whole); !o.Ours && !c.adoptNodegroup(pool, &out[i], &o) {
			c.Conflict(pool, step.ManagedNodegroup, out[i].Name, o)
		}
	}
	return out
}

// existingNodegroups plans a pool that has nodegroups. The nodegroup that matches Git is the
// pool's, and it has replaced all others. If none matches, one must be replaced.
func (c Planner) existingNodegroups(w wantNodegroup, standing []observed.Nodegroup) {
	serving := standing[0]
	c.Pool.Release = model.Release{Version: serving.Version, Name: serving.ReleaseVersion}
	var differs []immutable
	for i, have := range standing {
		d := w.immutables(have)
		if len(d) == 0 && have.Status != "DELETING" {
			others := slices.Delete(slices.Clone(standing), i, i+1)
			c.Pool.Nodegroup = have.NodegroupName
			c.updateNodegroup(w, have)
			if !c.Blocked {
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
		c.updateNodegroup(w, serving) // it is changing; weir waits for EKS
		return
	}
	c.replace(w, standing, differs)
}

// wantNodegroup is a wanted nodegroup with its lookups answered.
type wantNodegroup struct {
	pool                  *intent.Pool
	version               template.Version
	hasTemplate, hasImage bool
	role                  string
	subnets               []string
	cluster               *observed.EKSCluster
	// discovered is set if no manifest names the subnets.
	discovered bool
	// access contains the keys and security groups that may log in. It is used only without a
	// launch template.
	access *intent.RemoteAccess
}

// writtenSubnets returns the subnets that a nodegroup must have. It is nil if no manifest names
// them; an existing nodegroup then keeps its subnets.
func (w wantNodegroup) writtenSubnets() []string {
	if w.discovered {
		return nil
	}
	return w.subnets
}

// instanceTypes returns the types that the nodegroup itself names.
func (w wantNodegroup) instanceTypes() []string {
	if t := w.pool.Nodegroup.InstanceType; t != "" {
		return []string{t}
	}
	return w.pool.Nodegroup.InstanceTypes
}

func (w wantNodegroup) tags(p model.Policy) map[string]string {
	return p.AllTags(w.pool, w.pool.Nodegroup.Tags)
}

// updateNodegroup plans the config and version updates of an existing nodegroup. EKS runs one
// update at a time, so if both are due, only the first runs in this pass.
func (c Planner) updateNodegroup(w wantNodegroup, have observed.Nodegroup) {
	pool := w.pool
	put, remove := model.MissingTags(w.tags(c.In.Policy), have.Tags)
	if len(put)+len(remove) > 0 {
		c.Step(pool, step.Step{Verb: step.Update, Resource: step.ManagedNodegroup, Name: have.Name, Reason: "tags differ",
			Changes: model.TagChanges(pool, put, remove, have.Tags),
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
		return // it is changing; a later pass plans it again
	}
	if have.Status == "DEGRADED" {
		text := "the nodegroup " + have.Name + " is DEGRADED: " + HealthText(have.HealthIssues)
		c.Note(diag.Warning, pool, nil, "nodegroup-degraded", text, healthHint(have.HealthIssues))
		if hint := healthHint(have.HealthIssues); hint != "" {
			text = strings.TrimSuffix(text, ".") + "; " + hint
		}
		c.Pool.Outstands("Warning", "NodegroupDegraded", text)
		c.Pool.Fails("nodegroup-degraded", healthCause(have.HealthIssues))
	}
	version := c.allowed(w, c.versionSteps(w, have))
	steps := append(w.configStep(have), version...)
	if len(steps) == 0 || steps[0].Held == step.HeldControlPlane {
		c.PlanDefault(pool, w.version)
	}
	if len(steps) == 0 || c.failedBefore(w, have) || len(version) > 0 && c.Undone(pool, "the nodegroup "+have.Name, version[0].Rollout, 0) {
		return
	}
	for i := range steps {
		steps[i].Later = i > 0 && steps[i].Held == ""
		if steps[i].Disrupts() {
			steps[i].Seen = step.SeenNodegroup(have).ToRoll(put, remove)
		}
		c.Step(pool, steps[i])
	}
}

// fingerprint identifies the wanted nodegroup of a pool, for the memory of failed updates.
func (w wantNodegroup) fingerprint() string {
	return content.ShortHash(content.Canonical(w.pool.Nodegroup), content.Canonical(w.pool.Replicas), []byte(w.version.Version()))
}

// failedBefore reports whether weir already tried the update for exactly this intent and it failed.
// EKS then shows the old values again, and weir would retry forever.
func (c Planner) failedBefore(w wantNodegroup, have observed.Nodegroup) bool {
	started, tried := c.In.Memory.Started[have.NodegroupName]
	if !tried || started.Fingerprint != w.fingerprint() || c.In.Memory.Refusals.Retry[w.pool.Key.String()] {
		return false
	}
	u, read := c.In.State.Updates[have.NodegroupName]
	switch {
	case !read && c.Unread(w.pool, "the updates of the nodegroup "+have.Name, c.In.State.Unread.Updates[have.NodegroupName]):
		return true
	case !read:
		c.Needs.Updates = append(c.Needs.Updates, have.NodegroupName)
		return true
	case u.ID != started.UpdateID:
		return false
	case u.Status == "Failed" || u.Status == "Cancelled":
		c.Note(diag.Error, w.pool, nil, "nodegroup-update-failed", "the update "+u.ID+" of the nodegroup "+have.Name+" ended as "+u.Status+": "+HealthText(u.Errors),
			cmp.Or(healthHint(u.Errors), "correct what the message names")+group.Again(*c.In, "the pool"))
		return true
	}
	if u.Status == "InProgress" { // the description of the nodegroup is older than its update
		c.Pool.Outstands("Info", "InProgress", "the update "+u.ID+" of the nodegroup "+have.Name+" is under way")
		return true
	}
	return false
}

func HealthText(issues []observed.HealthIssue) string {
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

// tagGroupsBehind puts weir's and CAPA's tags on the groups that EKS made for the nodegroup, so
// that the read of groups by owner finds them. It also plans their lifecycle hooks. weir changes
// nothing else of such a group. The owner's tags come first, in one call with the record of the
// hooks: an IAM policy that allows writes only to resources with these tags then allows the later
// writes.
// Assumed of AWS: groups-behind-nodegroups.
func (c Planner) tagGroupsBehind(w wantNodegroup, have observed.Nodegroup) {
	if have.Status == "DELETING" {
		return
	}
	hooks := w.pool.Nodegroup.LifecycleHooks
	for _, name := range have.GroupNames {
		g, ok := c.In.State.Groups[name]
		if !ok {
			if !c.In.State.Absent.Groups[name] {
				c.Needs.GroupNames = append(c.Needs.GroupNames, name)
			}
			continue
		}
		if g.Deleting {
			continue
		}
		values := observed.GroupTagValues(g.Tags)
		want := group.RecordingHooks(w.tags(c.In.Policy), values, hooks)
		if put, remove := model.MissingTags(want, values); len(put)+len(remove) > 0 {
			t := step.TagGroup{Group: name, Put: map[string]observed.GroupTag{}, Remove: remove}
			for k, v := range put {
				// CAPA propagates the tags of a nodegroup's group at launch. weir's own tags mark
				// only the group.
				t.Put[k] = observed.GroupTag{Value: v, PropagateAtLaunch: !strings.HasPrefix(k, observed.OwnTagPrefix)}
			}
			if a := c.In.Policy.Adoption; a.Asked && a.From != "" && values[observed.TagOwner] == a.From {
				c.Adopts = true // the last attempt ended after the nodegroup
			}
			c.Step(w.pool, step.Step{Verb: c.TagVerb(), Resource: step.AutoScalingGroup, Name: name, Reason: "the group behind the nodegroup is missing tags",
				Changes: model.TagChanges(w.pool, put, remove, values), Do: t})
			g.Tags = t.Tags(g.Tags)
		}
		group.Planner{Planner: c.Planner}.UpdateHooks(w.pool, g, hooks)
	}
}

// updated identifies the result of an update of a nodegroup. One commit may need several updates,
// one for each minor version of Kubernetes.
func (w wantNodegroup) updated(u step.UpdateNodegroupVersion) string {
	return content.ShortHash([]byte(w.sum()), content.Canonical([]any{w.pool.Nodegroup, u.Version, u.ReleaseVersion, u.Template != nil}))
}

// toward identifies the wanted configuration of the nodegroup's machines.
func (w wantNodegroup) toward() string {
	return content.ShortHash([]byte(w.sum()), content.Canonical(w.pool.Nodegroup))
}

func (w wantNodegroup) sum() string {
	if w.hasTemplate {
		return w.version.Sum()
	}
	return ""
}

// adoptNodegroup plans the adoption of a nodegroup. It requests the nodegroup again unless this
// pass has read it, because cached tags may be outdated.
func (c Planner) adoptNodegroup(pool *intent.Pool, n *observed.Nodegroup, o *model.Ownership) bool {
	want := c.In.Policy.AllTags(pool, pool.Nodegroup.Tags)
	if n.Status == "DELETING" || !c.In.MayAdopt(pool, n.Tags, want, o) {
		return false
	}
	if !n.DescribedAtPass && !c.In.Policy.OnlyShows() {
		c.Needs.Nodegroups = append(c.Needs.Nodegroups, n.NodegroupName)
	}
	put, remove := model.MissingTags(observed.WithTags(want, map[string]string{observed.TagAdopted: model.AdoptedFor(pool)}), n.Tags)
	n.Tags = c.Adopt(pool, step.ManagedNodegroup, n.Name, n.Tags, step.TagNodegroup{NodegroupName: n.NodegroupName, ARN: n.ARN, Put: put, Remove: remove})
	return true
}
