package nodegroup

import (
	"cmp"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// unreadNodegroups blocks the pool if a nodegroup that AWS does not let weir read may be one of the
// pool's.
func (c Planner) unreadNodegroups(pool *intent.Pool) bool {
	n := pool.Nodegroup
	name := observed.NodegroupName{Cluster: n.ClusterName, Name: n.Name}
	if c.Unread(pool, "the nodegroup "+name.String(), c.In.State.Unread.Nodegroup(name)) {
		return true
	}
	for other, err := range c.In.State.Unread.Nodegroups {
		if other.Cluster == n.ClusterName && model.StandsFor(other.Name, n.Name) {
			return c.Unread(pool, "the nodegroup "+other.String(), err)
		}
	}
	return false
}

// askBehind requests nodegroups of the pool that are missing from the state although a group behind
// them exists. A list of nodegroups may be outdated.
func (c Planner) askBehind(pool *intent.Pool) {
	for _, group := range c.In.Index.Behind[pool.Key.String()] {
		g := c.In.State.Groups[group]
		name := observed.NodegroupName{Cluster: pool.Nodegroup.ClusterName, Name: g.Tags[observed.TagNodegroup].Value}
		_, found := c.In.State.Nodegroups[name]
		if g.Deleting || found || c.In.State.Absent.Nodegroups[name] || !model.StandsFor(name.Name, pool.Nodegroup.Name) {
			continue
		}
		c.Needs.Nodegroups = append(c.Needs.Nodegroups, name)
	}
}

// replace plans the next steps if no nodegroup of the pool matches Git. standing contains all its
// nodegroups, the serving one first.
func (c Planner) replace(w wantNodegroup, standing []observed.Nodegroup, differs []immutable) {
	serving := standing[0]
	if !w.pool.AllowReplace {
		c.refuseImmutable(w, serving, differs)
		return
	}
	name := replacementName(c.In, w, differs)
	if have, taken := c.In.State.Nodegroups[name]; taken {
		c.Conflict(w.pool, step.ManagedNodegroup, name.Name, model.Ownership{Why: "it is not the pool's: its tag weir.dev/pool is " + observed.Quote(have.Tags[observed.TagPool])})
		return
	}
	if !c.In.State.Absent.Nodegroups[name] {
		c.Needs.Nodegroups = append(c.Needs.Nodegroups, name)
		return
	}
	ng, ok := c.newNodegroup(w, name.Name, &serving)
	if !ok {
		return
	}
	later := len(standing) > 1
	why := immutableReason(differs)
	if other := c.replacing(w.pool); other != "" {
		later, why = true, why+"; it waits until the nodegroup of the pool "+other+" is replaced"
	}
	c.leave(w, standing[1:], true, name.Name)
	for _, s := range c.allowed(w, []step.Step{{Verb: step.Replace, Resource: step.ManagedNodegroup, Name: name.Name, Reason: why, Instances: int(ng.DesiredSize), Changes: w.replaceChanges(serving, ng, differs),
		Later: later, Do: step.CreateNodegroup{Nodegroup: ng}}}) {
		c.Step(w.pool, s)
	}
	c.leave(w, standing[:1], false, name.Name)
}

// leave plans the deletion of nodegroups that another nodegroup of the pool has replaced, or will
// replace once it is ACTIVE.
func (c Planner) leave(w wantNodegroup, old []observed.Nodegroup, up bool, by string) {
	why := "it is deleted once " + by + " is ACTIVE"
	if up {
		why = "Git no longer wants it"
	}
	for _, n := range old {
		if n.Status == "DELETING" {
			continue
		}
		// EKS refuses to delete a nodegroup that it is still making or changing.
		busy := n.Status == "CREATING" || n.Status == "UPDATING"
		for _, s := range c.allowed(w, []step.Step{{Verb: step.Replace, Resource: step.ManagedNodegroup, Name: n.Name, Reason: why,
			Disruptive: n.DesiredSize > 0, Instances: int(n.DesiredSize), Later: !up || busy, Seen: step.SeenNodegroup(n), Do: step.DeleteNodegroup{NodegroupName: n.NodegroupName}}}) {
			c.Step(w.pool, s)
		}
	}
}

// replacing names another pool of the set in the same cluster that is being replaced, "" for none. A
// replacement doubles a pool for a while, so weir runs one at a time. The first pool that needs one
// and is not held goes first.
func (c Planner) replacing(pool *intent.Pool) string {
	cluster := pool.Nodegroup.ClusterName
	other := c.Replacing[cluster]
	for i := range c.In.Set.Pools {
		p := &c.In.Set.Pools[i]
		if p.Nodegroup != nil && p.Nodegroup.ClusterName == cluster && len(c.In.NodegroupsOf(p)) > 1 {
			other = p.Key.String()
			break
		}
	}
	switch {
	case other == pool.Key.String():
		return ""
	case other == "" && c.Hold == "": // a held pool makes no progress
		c.Replacing[cluster] = pool.Key.String()
	}
	return other
}

// replacementName returns the name of a nodegroup with the wanted immutable fields. It skips a name
// that the pool already uses for a nodegroup that differs.
func replacementName(in *model.Input, w wantNodegroup, differs []immutable) observed.NodegroupName {
	n := w.pool.Nodegroup
	fields := w.immutableFields()
	fields["differs"] = len(differs) > 0
	wanted := content.Canonical(fields)
	for salt := int64(0); ; salt++ {
		name := observed.NodegroupName{Cluster: n.ClusterName, Name: model.ReplacementBase(n.Name) + "-" + content.ShortHash(wanted, []byte(strconv.FormatInt(salt, 10)))[:6]}
		if have, taken := in.State.Nodegroups[name]; !taken || have.Tags[observed.TagPool] != w.pool.Key.String() {
			return name
		}
	}
}

// immutableFields returns the wanted fields of a nodegroup that EKS cannot change in place.
func (w wantNodegroup) immutableFields() map[string]any {
	n := w.pool.Nodegroup
	return map[string]any{
		"role": w.role, "subnets": w.writtenSubnets(), "capacity": n.CapacityType, "ami": n.AMIType, "image": w.hasImage, "types": w.instanceTypes(),
		"disk": n.DiskSize, "access": accessText(w.access), "template": w.version.Ref.Name,
	}
}

// refuseImmutable reports each field that would need a replacement.
func (c Planner) refuseImmutable(w wantNodegroup, have observed.Nodegroup, differs []immutable) {
	for _, d := range differs {
		summary := "EKS cannot change " + d.field + " of the nodegroup " + have.Name + " in place (it is " + observed.Quote(d.from) + ", wanted " + observed.Quote(d.to) + ")"
		c.Blockf(w.pool, d.path, model.CodeImmutable, summary,
			"restore the old value, or write the annotation weir.dev/replace: allowed on the pool; weir then creates a new nodegroup and deletes this one")
	}
}

// failedNodegroup reports a nodegroup that EKS could not make or delete.
func (c Planner) failedNodegroup(w wantNodegroup, have observed.Nodegroup) {
	c.Note(diag.Error, w.pool, observed.FieldNamed(w.pool, HealthText(have.HealthIssues)), "nodegroup-failed", "the nodegroup "+have.Name+" is "+have.Status+": "+HealthText(have.HealthIssues),
		cmp.Or(healthHint(have.HealthIssues), "correct the cause")+"; then delete the nodegroup in EKS so that weir can create it again")
}
