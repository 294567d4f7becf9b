package kinds

import (
	"time"

	"github.com/weir-gitops/weir/render/intent"
)

// FleetRolloutSpec is FleetRollout.spec: in which waves pools are rolled, and what must be
// true before the next one begins. It only ever holds: it begins no rollout that Git does
// not ask for.
type FleetRolloutSpec struct {
	// Which pools of the repository it governs; all of them where it is empty.
	Selector intent.PoolSelector `json:"selector"`
	// The waves, one after another. Pools that no wave selects come after the last.
	Waves []intent.Wave `json:"waves"`
	// How long the machines of a share must have been there before the next one begins.
	BakeTime time.Duration `json:"bakeTime"`
	// How many machines are replaced at a time, at most. Unwritten is no bound.
	MaxMachines int32 `json:"maxMachines" check:"min=1"`
	// How many pools may fail before the change is stopped everywhere.
	FailureBudget int32 `json:"failureBudget" check:"min=0"`
	// What becomes of machines that were replaced when a change is stopped: hold leaves
	// them, rollback brings back what most machines of the pool ran before, and nothing that
	// was stopped.
	OnFailure string `json:"onFailure" enum:"hold|rollback" default:"hold"`
	// Questions that must be answered with yes before the next share or wave begins.
	Gates []intent.RolloutGate `json:"gates"`
}

func (s *FleetRolloutSpec) Intent(ref intent.ObjectRef) intent.FleetRollout {
	return intent.FleetRollout{
		Key: KeyOf(ref), Object: ref, Selector: s.Selector, Waves: s.Waves, BakeTime: s.BakeTime, MaxMachines: s.MaxMachines,
		FailureBudget: s.FailureBudget, Rollback: s.OnFailure == "rollback", Gates: s.Gates,
	}
}
