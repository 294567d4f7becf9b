package model

import (
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// CodeRenamed is the diagnostic code for a pool whose group or nodegroup has another name in AWS
// than in Git. AWS cannot rename either.
const CodeRenamed = "pool-renamed"

// Renamed returns the target's groups or nodegroups, in order, that have the pool's tag but another
// name than the pool has in Git. It skips resources that some target wants or that AWS is deleting.
func (in Input) Renamed(pool *intent.Pool) (out []string) {
	mine := func(tag func(string) string) bool {
		return tag(observed.TagOwner) == in.Policy.Instance && tag(observed.TagSource) == in.Policy.Source && tag(observed.TagTarget) == in.Policy.Target
	}
	wanted := func(c Claim) bool { _, ok := in.Fleet.Wanted[c]; return ok }
	index := in.Index
	if index == nil {
		index = NewIndex(in.State)
	}
	switch key := pool.Key.String(); {
	case pool.Group != nil:
		for _, name := range index.groupsOf[key] {
			g := in.State.Groups[name]
			if name != pool.Group.Name && !g.Deleting && mine(func(key string) string { return g.Tags[key].Value }) && !wanted(Claim{Resource: step.AutoScalingGroup, Name: name}) {
				out = append(out, name)
			}
		}
	case pool.Nodegroup != nil:
		for _, name := range index.ofPool[key] {
			n := in.State.Nodegroups[name]
			if name.Cluster == pool.Nodegroup.ClusterName && !StandsFor(name.Name, pool.Nodegroup.Name) && n.Status != "DELETING" && mine(func(key string) string { return n.Tags[key] }) &&
				!wanted(Claim{Resource: step.ManagedNodegroup, Name: name.Name, Cluster: name.Cluster}) {
				out = append(out, name.Name)
			}
		}
	}
	return out
}

// NameField returns the field that names the group or nodegroup of a pool, and the field's object.
func NameField(pool *intent.Pool) (intent.ObjectRef, intent.Path) {
	switch {
	case pool.Nodegroup != nil:
		return pool.Infrastructure, intent.Path{"spec", "eksNodegroupName"}
	case pool.Options.Kind != "" && pool.Group.Name != pool.Infrastructure.Name:
		return pool.Options, intent.Path{"spec", "autoScalingGroup", "name"}
	}
	return pool.Infrastructure, intent.Path{"metadata", "name"}
}

// RefuseRenamed blocks a pool if its resource in AWS has another name than in Git. To make weir
// create the pool under the new name and delete the old resource, the pool needs the annotation
// weir.dev/replace: allowed.
func (c *Work) RefuseRenamed(pool *intent.Pool) {
	old := c.In.Renamed(pool)
	if len(old) == 0 || pool.AllowReplace {
		return
	}
	what, now, field := string(step.AutoScalingGroup), "", "spec.autoScalingGroup.name in its PoolOptions"
	if pool.Nodegroup != nil {
		what, now, field = string(step.ManagedNodegroup), pool.Nodegroup.Name, "spec.eksNodegroupName"
	} else {
		now = pool.Group.Name
	}
	object, at := NameField(pool)
	c.Blocked = true
	c.NoteAt(diag.Error, object, at, CodeRenamed,
		"the pool has the "+what+" "+old[0]+" in AWS, which cannot be renamed to "+now+", so nothing of the pool is changed",
		"to keep the name, set "+field+": "+old[0]+"; or write the annotation weir.dev/replace: allowed in the pool, which makes weir create "+now+", and delete "+old[0]+" once the machines of "+now+" are in service")
}

// RefuseTaken blocks a pool to which Git gives the name of another pool's group, for example if two
// pools swap their names. Otherwise weir would turn the machines of one pool into those of the
// other. It blocks only if the other pool is in Git, or if this pool still has a group of its own.
func (c *Work) RefuseTaken(pool *intent.Pool, have observed.Group) {
	of, tag := have.Tags[observed.TagPool].Value, func(key string) string { return have.Tags[key].Value }
	if of == "" || of == pool.Key.String() || tag(observed.TagOwner) != c.In.Policy.Instance || tag(observed.TagSource) != c.In.Policy.Source || tag(observed.TagTarget) != c.In.Policy.Target {
		return
	}
	if c.In.Pool(of) == nil && len(c.In.Renamed(pool)) == 0 {
		return
	}
	object, at := NameField(pool)
	c.Blocked = true
	c.NoteAt(diag.Error, object, at, CodeRenamed, "the auto-scaling-group "+have.Name+" in AWS belongs to the pool "+of+", so nothing of the pool is changed",
		"give the pool a name that no group has; or remove the pool "+of+" from Git, and let weir delete its group, before another pool takes the name")
}
