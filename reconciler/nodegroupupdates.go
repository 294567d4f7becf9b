package reconciler

import (
	"maps"
	"sync"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
)

// nodegroupUpdates remembers the last update of each nodegroup that this process started: EKS does
// not say for which intent.
type nodegroupUpdates struct {
	mu      sync.Mutex
	started map[observed.NodegroupName]model.StartedUpdate
}

func (u *nodegroupUpdates) note(name observed.NodegroupName, started model.StartedUpdate) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.started == nil {
		u.started = map[observed.NodegroupName]model.StartedUpdate{}
	}
	u.started[name] = started
}

// forget drops the updates of nodegroups that do not exist any more.
func (u *nodegroupUpdates) forget(state *observed.State) {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.started, func(name observed.NodegroupName, _ model.StartedUpdate) bool {
		_, there := state.Nodegroups[name]
		_, listed := state.Clusters[name.Cluster]
		return listed && !there && !state.Unread.Cluster(name.Cluster)
	})
}

func (u *nodegroupUpdates) view() map[observed.NodegroupName]model.StartedUpdate {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.started)
}
