package status

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/intent"
)

// SeenPool is how a pool was seen last. It outlives the process: a daemon that starts at
// a commit that does not render has nothing else to show.
type SeenPool struct {
	Cluster   string          `json:"cluster,omitempty"`
	Kind      intent.PoolKind `json:"kind,omitempty"`
	Phase     plan.Phase      `json:"phase,omitempty"`
	Replicas  int32           `json:"replicas,omitempty"`
	Ready     int32           `json:"ready,omitempty"`
	Available int32           `json:"available,omitempty"`
	Desired   int32           `json:"desired,omitempty"`
	Min       int32           `json:"min,omitempty"`
	Max       int32           `json:"max,omitempty"`
	Template  string          `json:"template,omitempty"`
	Version   string          `json:"version,omitempty"`
	// At is since when it was seen so.
	At time.Time `json:"at"`
}

// seenOf is how p is seen at a time; one that is as before keeps its time, so that a
// pass that finds nothing new writes nothing.
func seenOf(before *SeenPool, p plan.PoolStatus, at time.Time) *SeenPool {
	now := SeenPool{
		Cluster: p.Cluster, Kind: p.Kind, Phase: p.Phase, Replicas: p.Replicas, Ready: p.ReadyReplicas, Available: p.AvailableReplicas,
		Desired: p.DesiredReplicas, Min: p.MinReplicas, Max: p.MaxReplicas, Template: p.LaunchTemplateID, Version: p.LaunchTemplateVersion, At: at.UTC().Truncate(time.Second),
	}
	if before != nil {
		same := now
		if same.At = before.At; same == *before {
			return before
		}
	}
	return &now
}

// lastSeen are the pools of a target whose pass could not tell, as they were before: those
// of this process, or those that were written down.
func lastSeen(old TargetState, target string, told Told) (pools []plan.PoolStatus, at time.Time) {
	if len(old.Pools) > 0 {
		pools = slices.Clone(old.Pools)
		for i := range pools {
			if pools[i].LastSeen.IsZero() {
				pools[i].LastSeen = old.PoolsAt
			}
		}
		return pools, old.PoolsAt
	}
	for _, key := range slices.Sorted(maps.Keys(told.Pools)) {
		s := told.Pools[key].Seen
		if s == nil {
			continue
		}
		namespace, name, _ := strings.Cut(key, "/")
		pools = append(pools, plan.PoolStatus{
			Name: name, Namespace: namespace, Cluster: s.Cluster, Target: target, Kind: s.Kind, Phase: s.Phase,
			Replicas: s.Replicas, ReadyReplicas: s.Ready, AvailableReplicas: s.Available, UnavailableReplicas: max(0, s.Desired-s.Available),
			DesiredReplicas: s.Desired, MinReplicas: s.Min, MaxReplicas: s.Max, ProviderIDList: []string{}, Conditions: []plan.Condition{},
			LaunchTemplateID: s.Template, LaunchTemplateVersion: s.Version, Converged: told.Pools[key].Converged, LastSeen: s.At,
		})
		if s.At.After(at) {
			at = s.At
		}
	}
	return pools, at
}
