package plan

import (
	"github.com/weir-gitops/weir/render/diag"
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

// unreadOrphan says that an orphan stays because it cannot be looked at.
func (c *orphans) unreadOrphan(o orphan, err *Error) bool {
	if err == nil {
		return false
	}
	c.say(diag.Warning, o, "orphan-kept", "nothing in Git wants it any more, but AWS does not let weir read it, so it stays: "+err.Message, "")
	return true
}
