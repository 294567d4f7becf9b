package plan

import (
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// Unread holds what AWS would not let weir read in this pass, with its refusals.
// What is in it is neither known nor absent: pools that need it are not planned,
// nothing is deleted that might still be in use by it, and all else goes on.
type Unread struct {
	// Clusters are EKS clusters whose nodegroups could not be listed.
	Clusters   map[string]*Error
	Nodegroups map[NodegroupName]*Error
	// Updates are nodegroups whose updates could not be read, Refreshes groups
	// whose instance refreshes, Versions templates whose versions, by name.
	Updates   map[NodegroupName]*Error
	Refreshes map[string]*Error
	// Hooks are groups whose lifecycle hooks could not be read.
	Hooks    map[string]*Error
	Versions map[string]*Error
	// VersionUsers are templates of which it could not be read which versions
	// there are or who uses them, by name.
	VersionUsers map[string]*Error
}

// nodegroup is why a nodegroup could not be read, nil if it could.
func (u Unread) nodegroup(name NodegroupName) *Error {
	if err := u.Nodegroups[name]; err != nil {
		return err
	}
	return u.Clusters[name.Cluster]
}

// Cluster reports whether anything of a cluster's nodegroups could not be read.
func (u Unread) Cluster(name string) bool {
	for n := range u.Nodegroups {
		if n.Cluster == name {
			return true
		}
	}
	return u.Clusters[name] != nil
}

// unread blocks the pool where err says that something of it could not be read.
func (c *computation) unread(pool *intent.Pool, what string, err *Error) bool {
	if err == nil {
		return false
	}
	c.blockf(pool, nil, "read-denied", "AWS does not let weir read "+what+", so nothing of the pool is changed: "+err.Message,
		"allow weir the action that the message names; it looks again at the next pass")
	return true
}

// unreadOrphan says that an orphan stays because it cannot be looked at.
func (c *computation) unreadOrphan(o orphan, err *Error) bool {
	if err == nil {
		return false
	}
	c.orphanNote(diag.Warning, o, "orphan-kept", "nothing in Git wants it any more, but AWS does not let weir read it, so it stays: "+err.Message, "")
	return true
}
