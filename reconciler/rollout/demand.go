package rollout

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// Demand contains the requirements in a target's configuration for the FleetRollouts that select
// its pools. Zero values require nothing.
//
// MinWaves is checked twice. Unmet checks the FleetRollouts in Git, which any plan can do.
// UnmetPlaced counts the waves with machines of a change. These are certain once the conductor has
// fixed the members of a run: waves without machines separate nothing.
type Demand struct {
	MinWaves, MaxMachines int32
	// Counts is the set of targets whose machines make a wave count: targets of the source that
	// also require waves. Nil means all.
	Counts map[string]bool
}

// Place is a pool of a change in its wave.
type Place struct {
	ID
	Wave int
	// Machines, Whole and Idle are the same as in Member.
	Machines    int32
	Whole, Idle bool
}

// Unmet explains which requirement the FleetRollouts, by name, do not meet for a pool. It is empty
// if they meet all. Every FleetRollout that selects the pool restricts it, so it is enough if one
// of them meets a requirement. filled reports which of their waves can contain pools. Without it,
// all can.
func (d Demand) Unmet(specs map[string]Spec, filled map[string]Filled, p Pool) string {
	var names []string
	most, bound := waveCount{}, int32(0)
	for _, name := range slices.Sorted(maps.Keys(specs)) {
		s := specs[name]
		if !Selects(s.Selector, p) {
			continue
		}
		names = append(names, name)
		if c := s.written(filled[name], int(d.MinWaves)); len(names) == 1 || c.waves > most.waves {
			most = c
		}
		if s.MaxMachines > 0 && (bound == 0 || s.MaxMachines < bound) {
			bound = s.MaxMachines
		}
	}
	who := "the FleetRollout " + strings.Join(names, " or ")
	switch {
	case len(names) == 0:
		return "no FleetRollout of the source selects the pool"
	case most.waves < int(d.MinWaves):
		return who + " has " + count(most.waves, "wave") + ", and " + itoa(int(d.MinWaves)) + " are required" + most.emptyText("no pool that counts can be in ")
	case d.MaxMachines > 0 && bound == 0:
		return who + " has no maxMachines, and " + itoa(int(d.MaxMachines)) + " is the maximum"
	case d.MaxMachines > 0 && bound > d.MaxMachines:
		return who + " replaces up to " + count(int(bound), "machine") + " at a time, and " + itoa(int(d.MaxMachines)) + " is the maximum"
	}
	return ""
}

// UnmetTogether names the FleetRollouts that together may replace more machines of a target at the
// same time than its configuration allows, although each of them is within the limit: each counts
// only its own machines. pools are the pools of the target.
func (d Demand) UnmetTogether(specs map[string]Spec, pools []Pool) string {
	if d.MaxMachines == 0 {
		return ""
	}
	within := map[string][]ID{}
	open := map[ID]bool{}
	for name, s := range specs {
		for _, p := range pools {
			if s.MaxMachines > 0 && s.MaxMachines <= d.MaxMachines && Selects(s.Selector, p) {
				within[name], open[p.ID] = append(within[name], p.ID), true
			}
		}
	}
	var names []string
	sum := int32(0)
	for len(open) > 0 { // picks the bound that covers most of the remaining pools
		adds := func(name string) (n int) {
			for _, id := range within[name] {
				if open[id] {
					n++
				}
			}
			return n
		}
		best := slices.MinFunc(slices.Collect(maps.Keys(within)), func(a, b string) int {
			return cmp.Or(cmp.Compare(adds(b), adds(a)), cmp.Compare(specs[a].MaxMachines, specs[b].MaxMachines), strings.Compare(a, b))
		})
		names, sum = append(names, best), sum+specs[best].MaxMachines
		for _, id := range within[best] {
			delete(open, id)
		}
	}
	if sum <= d.MaxMachines {
		return ""
	}
	slices.Sort(names)
	return "the FleetRollouts " + strings.Join(names, " and ") + " count only their own machines, and replace up to " + itoa(int(sum)) + " at a time in total, and " +
		itoa(int(d.MaxMachines)) + " is the maximum: select all pools of the target in one of them"
}

// UnmetPlaced explains which requirement the waves of a FleetRollout do not meet for the pools of a
// change in them. It is empty if they meet all. Only machines that are replaced count. A change
// with fewer pools than MinWaves cannot fill that many waves. Then the shares of its waves count as
// well, if each replaces a machine.
func (d Demand) UnmetPlaced(name string, s Spec, places []Place) string {
	in := map[int][]Place{}
	pools, machines := 0, 0
	for _, p := range places {
		if p.Machines <= 0 || p.Idle || d.Counts != nil && !d.Counts[p.Target] {
			continue
		}
		in[p.Wave] = append(in[p.Wave], p)
		if pools++; p.Whole {
			machines++ // it is rolled in one step, regardless of its size
		} else {
			machines += int(p.Machines)
		}
	}
	steps := 0
	for n, of := range in {
		steps += s.sharesWithWork(n, of)
	}
	least := int(d.MinWaves)
	if len(in) >= min(least, pools) && steps >= min(least, machines) {
		return ""
	}
	c := waveCount{waves: len(in)}
	var holds []string
	for n := range len(s.Waves) + 1 {
		switch {
		case len(in[n]) > 0:
			holds = append(holds, s.WaveName(n))
		case n < len(s.Waves):
			c.empty = append(c.empty, s.WaveName(n))
		}
	}
	text := "the FleetRollout " + name + " has " + count(c.waves, "wave") + " with machines of this change (" + strings.Join(holds, ", ") + "), and " + itoa(least) + " are required" +
		c.emptyText("no counted machine is in ")
	if pools < least {
		text += "; the change is of " + count(pools, "pool") + ", so the shares of its waves count too, in total " + count(steps, "step") + ": write more shares"
	}
	return text
}

// Says returns the reason for the hold on a pool that does not meet a requirement, and who ends the
// hold.
func (d Demand) Says(target, lacks string) string {
	return "the configuration of " + target + " requires waves (targets[].rollout): " + lacks + "; released by: a commit with such a FleetRollout, or a change of the configuration"
}

// waveCount is the number of waves that count, and the names of the empty waves, which do not.
type waveCount struct {
	waves int
	empty []string
}

func (c waveCount) emptyText(what string) string {
	if len(c.empty) == 0 {
		return ""
	}
	return "; " + what + strings.Join(c.empty, ", ")
}

// written counts waves up to the first that takes all remaining pools. A wave that can contain no
// pool does not count, unless there are fewer pools than required waves: then shares decide, which
// UnmetPlaced counts.
func (s Spec) written(filled Filled, least int) (c waveCount) {
	for i, w := range s.Waves {
		if filled.Pools >= least && filled.Pools > 0 && !filled.Waves[i] {
			c.empty = append(c.empty, s.WaveName(i))
			continue
		}
		c.waves++
		all := w.Selector != nil && len(w.Selector.Namespaces)+len(w.Selector.Labels) == 0 && (len(w.Selector.Targets) == 0 || slices.Contains(w.Selector.Targets, "*"))
		if all || w.Percent == 100 {
			break
		}
	}
	return c
}

// sharesWithWork counts the shares of a wave that replace at least one machine.
func (s Spec) sharesWithWork(wave int, of []Place) (n int) {
	shares := slices.Clone(s.wave(wave).Shares)
	if len(shares) == 0 || shares[len(shares)-1] != 100 {
		shares = append(shares, 100)
	}
	before := int32(0)
	for _, share := range shares {
		if slices.ContainsFunc(of, func(p Place) bool {
			if p.Whole {
				return share == 100
			}
			return Need(p.Machines, share) > Need(p.Machines, before)
		}) {
			n++
		}
		before = share
	}
	return n
}

// Filled reports for each wave of a FleetRollout whether any change can put a pool into it. Pools
// is the number of pools.
type Filled struct {
	Waves []bool
	Pools int
}

// Filled returns that for the pools of the source that count. The number of pools in a percentage
// is unknown before machines are counted, so such a wave counts as filled as long as a pool is
// left.
func (s Spec) Filled(pools []Pool) (f Filled) {
	out := make([]bool, len(s.Waves))
	free := 0
	for _, p := range pools {
		if !Selects(s.Selector, p) {
			continue
		}
		f.Pools++
		if i := s.selecting(p); i >= 0 {
			out[i] = true
		} else {
			free++
		}
	}
	for i, w := range s.Waves {
		if w.Selector != nil || free == 0 {
			continue
		}
		out[i] = true
		free -= max(1, min(free, int(w.Pools)))
	}
	f.Waves = out
	return f
}

// Foresee puts the pools of a change into waves, like the start of a run.
func (s Spec) Foresee(pools []Pool) []Place {
	at := s.place(pools)
	out := make([]Place, len(pools))
	for i, p := range pools {
		out[i] = Place{ID: p.ID, Wave: at[i], Machines: p.Machines, Whole: p.Whole, Idle: p.idle()}
	}
	return out
}

// Places returns the members of a run in their waves.
func (r *Run) Places() []Place {
	out := make([]Place, len(r.Members))
	for i, m := range r.Members {
		out[i] = Place{ID: m.ID, Wave: m.Wave, Machines: m.Machines, Whole: m.Whole, Idle: m.Idle}
	}
	return out
}

// Unmet maps pools of a target ("namespace/name") to the requirement that their waves in runs of
// the record do not meet. It is nil if all are met. It omits pools without a wave yet, as these
// roll nothing.
func (g *Governor) Unmet(d Demand, target string, permits map[string]Permit) map[string]string {
	if d.MinWaves == 0 {
		return nil
	}
	lacks := map[int]string{}
	for i := range g.record.Runs {
		if r := &g.record.Runs[i]; r.Active() && !r.Gathers {
			lacks[i] = d.UnmetPlaced(r.Name, r.Spec, r.Places())
		}
	}
	var out map[string]string
	for pool, permit := range permits {
		text, placed, met := "", false, false
		for i := range g.record.Runs {
			why, runs := lacks[i]
			r := &g.record.Runs[i]
			if k, is := r.member(ID{Target: target, Pool: pool}); !runs || !is || r.Members[k].Hash != permit.Hash {
				continue
			}
			placed, met, text = true, met || why == "", cmp.Or(text, why)
		}
		if placed && !met {
			if out == nil {
				out = map[string]string{}
			}
			out[pool] = d.Says(target, text)
		}
	}
	return out
}
