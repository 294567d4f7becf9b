package reconciler

import (
	"maps"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
)

// clusterGrace is the time for which an EKS cluster is still listed after the last target has named
// it: a nodegroup that was being made then is not in every answer yet.
const clusterGrace = time.Minute

// unreadGrace is that time if AWS does not let weir read whether nodegroups exist.
const unreadGrace = time.Hour

// forget drops memories of things that no target of the pass names and AWS does not
// hold: what was named once would else cost memory, and calls, for as long as the
// process lives.
func (s *Scope) forget(targets []Desired, state *observed.State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, known, tokens, owner := s.now(), make(map[string]bool, len(targets)), make(map[string]bool, len(targets)), ""
	for _, t := range targets {
		known[t.Policy.Target], tokens[t.Policy.Target], owner = true, t.Tokens != nil, t.Policy.Instance
	}
	s.refusals.Forget(known, now)
	maps.DeleteFunc(s.keepers, func(target string, _ tokenKeeper) bool { return !tokens[target] })
	owned := map[string]bool{}
	for name, n := range state.Nodegroups {
		owned[name.Cluster] = owned[name.Cluster] || n.Tags[observed.TagOwner] == owner
	}
	maps.DeleteFunc(s.clusters, func(name string, named time.Time) bool {
		exists, listed := state.Clusters[name]
		switch {
		case owned[name]:
			return false
		case state.Unread.Cluster(name):
			return now.Sub(named) > unreadGrace
		case !listed:
			return false
		case !exists:
			return named.Before(s.queried)
		}
		return now.Sub(named) > clusterGrace
	})
	maps.DeleteFunc(s.memory.Started, func(name observed.NodegroupName, _ basis.StartedUpdate) bool {
		_, there := state.Nodegroups[name]
		_, listed := state.Clusters[name.Cluster]
		return listed && !there && !state.Unread.Cluster(name.Cluster)
	})
}
