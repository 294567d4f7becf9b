package kinds

import (
	"time"

	"github.com/weir-gitops/weir/render/intent"
)

// FleetRolloutSpec is FleetRollout.spec: the waves in which pools are rolled out, and the conditions for
// the next wave. It only delays rollouts: it starts none that Git does not require.
type FleetRolloutSpec struct {
	// The pools of the repository that it governs. Empty selects all.
	Selector intent.PoolSelector `json:"selector"`
	// The waves, in order. Pools that no wave selects come after the last one.
	Waves []intent.Wave `json:"waves"`
	// The minimum age of the machines of a share before the next share starts.
	BakeTime time.Duration `json:"bakeTime"`
	// The maximum number of machines that are replaced at the same time. Absent means no limit.
	MaxMachines int32 `json:"maxMachines" check:"min=1"`
	// The number of pools that may fail before the change stops everywhere.
	FailureBudget int32 `json:"failureBudget" check:"min=0"`
	// What happens to replaced machines when a change is stopped. hold leaves them.
	// rollback restores what most machines of the pool ran before, but nothing that was
	// stopped earlier.
	OnFailure string `json:"onFailure" enum:"hold|rollback" default:"hold"`
	// Conditions that must be true before the next share or wave starts.
	Gates []intent.RolloutGate `json:"gates"`
}

func (s *FleetRolloutSpec) Intent(ref intent.ObjectRef) intent.FleetRollout {
	return intent.FleetRollout{
		Key: KeyOf(ref), Object: ref, Selector: s.Selector, Waves: s.Waves, BakeTime: s.BakeTime, MaxMachines: s.MaxMachines,
		FailureBudget: s.FailureBudget, Rollback: s.OnFailure == "rollback", Gates: s.Gates,
	}
}
