package rollout

import (
	"maps"
	"slices"
	"strings"
)

// Demand is what a target asks of the FleetRollouts that select its pools. 0 asks nothing.
type Demand struct{ MinWaves, MaxMachines int32 }

// Lacks says what FleetRollouts, by name, lack for a pool; empty where they do. Each of
// those that select the pool holds it, so what one of them lacks another may have.
func (d Demand) Lacks(specs map[string]Spec, p Pool) string {
	var names []string
	waves, bound := 0, int32(0)
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		s := specs[name]
		if !Selects(s.Selector, p) {
			continue
		}
		names, waves = append(names, name), max(waves, s.written())
		if s.MaxMachines > 0 && (bound == 0 || s.MaxMachines < bound) {
			bound = s.MaxMachines
		}
	}
	who := "the FleetRollout " + strings.Join(names, " or ")
	switch {
	case len(names) == 0:
		return "no FleetRollout of the source selects the pool"
	case waves < int(d.MinWaves):
		return who + " has " + count(waves, "wave") + ", and " + itoa(int(d.MinWaves)) + " are the least"
	case d.MaxMachines > 0 && bound == 0:
		return who + " has no maxMachines, and " + itoa(int(d.MaxMachines)) + " is the most"
	case d.MaxMachines > 0 && bound > d.MaxMachines:
		return who + " replaces up to " + count(int(bound), "machine") + " at a time, and " + itoa(int(d.MaxMachines)) + " is the most"
	}
	return ""
}

// written is how many waves there are up to the first that takes all pools that are left.
func (s Spec) written() int {
	for i, w := range s.Waves {
		all := w.Selector != nil && len(w.Selector.Namespaces)+len(w.Selector.Labels) == 0 && (len(w.Selector.Targets) == 0 || slices.Contains(w.Selector.Targets, "*"))
		if all || w.Percent == 100 {
			return i + 1
		}
	}
	return len(s.Waves)
}
