package current

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/events"
)

// lastSeen returns the last state of a target's pools that was read, for a pass that could not read them.
// If this process has not read them yet, the state comes from the archive.
func lastSeen(old TargetState, target string, known events.Known) (pools []plan.PoolStatus, at time.Time) {
	if len(old.Pools) > 0 {
		pools = slices.Clone(old.Pools)
		for i := range pools {
			if pools[i].LastSeen.IsZero() {
				pools[i].LastSeen = old.PoolsAt
			}
		}
		return pools, old.PoolsAt
	}
	for _, key := range slices.Sorted(maps.Keys(known.Pools)) {
		s := known.Pools[key].Seen
		if s == nil {
			continue
		}
		namespace, name, _ := strings.Cut(key, "/")
		pools = append(pools, plan.PoolStatus{
			Name: name, Namespace: namespace, Cluster: s.Cluster, Target: target, Kind: s.Kind, Phase: s.Phase,
			Replicas: s.Replicas, ReadyReplicas: s.Ready, AvailableReplicas: s.Available, UnavailableReplicas: max(0, s.Desired-s.Available),
			DesiredReplicas: s.Desired, MinReplicas: s.Min, MaxReplicas: s.Max, ProviderIDList: []string{}, Conditions: []plan.Condition{},
			LaunchTemplateID: s.Template, LaunchTemplateVersion: s.Version, Converged: known.Pools[key].Converged, LastSeen: s.At,
		})
		if s.At.After(at) {
			at = s.At
		}
	}
	return pools, at
}
