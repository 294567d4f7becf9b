package events

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/intent"
)

// SeenPool is the last seen state of a pool. It is stored across restarts, because a daemon that starts at
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
	// At is the time at which this state was first seen.
	At time.Time `json:"at"`
}

// seenOf returns the state of p at a time. An unchanged state keeps its time, so that a pass without
// changes writes nothing.
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
