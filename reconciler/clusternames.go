package reconciler

import (
	"maps"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// clusterGrace is the time for which an EKS cluster is still listed after the last target has named
// it: a nodegroup that was being made then is not in every answer yet.
const clusterGrace = time.Minute

// unreadGrace is that time if AWS does not let weir read whether nodegroups exist.
const unreadGrace = time.Hour

// clusterNames holds the EKS clusters whose nodegroups a pass lists, and when a target last named
// them. A cluster stays for a while after the last target has dropped its nodegroups.
type clusterNames map[string]time.Time

// query adds the clusters of the targets and returns all of them, sorted.
func (c *clusterNames) query(targets []Desired, now time.Time) []string {
	if *c == nil {
		*c = clusterNames{}
	}
	for _, t := range targets {
		for i := range t.Unplanned {
			if u := &t.Unplanned[i]; u.Kind == intent.NodegroupPool && u.EKSName != "" {
				(*c)[u.EKSName] = now
			}
		}
		if t.Set == nil {
			continue
		}
		for i := range t.Set.Pools {
			if n := t.Set.Pools[i].Nodegroup; n != nil {
				(*c)[n.ClusterName] = now
			}
		}
	}
	return slices.Sorted(maps.Keys(*c))
}

// forget drops the clusters that no target names any more and that have no nodegroup of the owner.
// observedAt is the start of the read that gave the state.
func (c clusterNames) forget(state *observed.State, owner string, observedAt, now time.Time) {
	owned := map[string]bool{}
	for name, n := range state.Nodegroups {
		owned[name.Cluster] = owned[name.Cluster] || n.Tags[observed.TagOwner] == owner
	}
	maps.DeleteFunc(c, func(name string, named time.Time) bool {
		exists, listed := state.Clusters[name]
		switch {
		case owned[name]:
			return false
		case state.Unread.Cluster(name):
			return now.Sub(named) > unreadGrace
		case !listed:
			return false
		case !exists:
			return named.Before(observedAt)
		}
		return now.Sub(named) > clusterGrace
	})
}
