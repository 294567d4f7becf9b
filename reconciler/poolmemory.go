package reconciler

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
)

// poolMemory remembers what pools wanted when they had last converged, and since when their
// instances are in service.
type poolMemory struct {
	// settled is replaced as a whole and never changed. Its keys are those of model.SettledKey.
	settled map[string]model.Settled
	// inService is nil before the first pass, and has instance ids as keys.
	inService map[string]time.Time
}

// settledElsewhere returns what is known of the targets that are unknown in this pass.
func (m *poolMemory) settledElsewhere(targets []Desired) map[string]model.Settled {
	next := make(map[string]model.Settled, len(m.settled))
	unknown := map[string]bool{}
	for _, t := range targets {
		if t.Set == nil {
			unknown[t.Policy.Target] = true
		}
	}
	for key, then := range m.settled {
		if model.SettledOf(key, unknown) {
			next[key] = then
		}
	}
	return next
}

// update takes what a pass found. The times of instances that belong to a target without a plan stay
// while the instances are in service.
func (m *poolMemory) update(settled map[string]model.Settled, inService map[string]time.Time, state *observed.State) {
	m.settled = settled
	if len(m.inService) > 0 {
		for _, g := range state.Groups {
			for _, i := range g.Instances {
				if since, known := m.inService[i.ID]; known && inService[i.ID].IsZero() && i.LifecycleState == "InService" {
					inService[i.ID] = since
				}
			}
		}
	}
	m.inService = inService
}
