package rollout

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/render/intent"
)

// Selects reports whether a selector matches a pool.
func Selects(s intent.PoolSelector, p Pool) bool {
	return (len(s.Targets) == 0 || slices.ContainsFunc(s.Targets, func(pattern string) bool { return fits(pattern, p.Target) })) &&
		(len(s.Namespaces) == 0 || slices.Contains(s.Namespaces, p.Namespace)) &&
		!slices.ContainsFunc(slices.Collect(maps.Keys(s.Labels)), func(key string) bool { have, ok := p.Labels[key]; return !ok || have != s.Labels[key] })
}

// fits reports whether a name matches a pattern, in which * matches any text.
func fits(pattern, name string) bool {
	first, rest, some := strings.Cut(pattern, "*")
	if !some {
		return pattern == name
	}
	name, ok := strings.CutPrefix(name, first)
	for i := 0; ok && i <= len(name); i++ {
		if fits(rest, name[i:]) {
			return true
		}
	}
	return false
}

// Need returns the number of machines in a share of a pool, rounded up.
func Need(machines, share int32) int32 { return int32((int64(machines)*int64(share) + 99) / 100) }

// wave returns the wave with a number. The wave after the last one contains the pools that no wave
// selects.
func (s Spec) wave(n int) intent.Wave {
	if n < len(s.Waves) {
		return s.Waves[n]
	}
	return intent.Wave{Name: "rest"}
}

// share returns the percentage of a wave's share, and whether it is the last share.
func (s Spec) share(wave, n int) (share int32, last bool) {
	shares := s.wave(wave).Shares
	if n >= len(shares) {
		return 100, true
	}
	return shares[n], n == len(shares)-1 && shares[n] == 100
}

// Shares returns the percentages at which a wave waits. It is empty for a wave with a single share
// of 100.
func (s Spec) Shares(wave int) []int32 { return s.wave(wave).Shares }

// Bake returns the time for which each share of a wave bakes.
func (s Spec) Bake(wave int) time.Duration {
	if own := s.wave(wave).BakeTime; own != nil {
		return *own
	}
	return s.BakeTime
}

// WaveName returns the name of a wave for people.
func (s Spec) WaveName(n int) string { return cmp.Or(s.wave(n).Name, "wave "+itoa(n+1)) }

// selecting returns the wave whose selector matches a pool, -1 for none.
func (s Spec) selecting(p Pool) int {
	return slices.IndexFunc(s.Waves, func(w intent.Wave) bool { return w.Selector != nil && Selects(*w.Selector, p) })
}

// place finds the wave of each pool. Pools that a selector matches are in that wave. Waves with a
// number or a percentage take from all other pools, spread over as many clusters and zones as
// possible.
func (s Spec) place(pools []Pool) []int {
	at := make([]int, len(pools))
	var free []int
	total := int64(0)
	for i, p := range pools {
		total += int64(p.Machines)
		if at[i] = s.selecting(p); at[i] < 0 {
			at[i] = len(s.Waves)
			free = append(free, i)
		}
	}
	free = spread(pools, free)
	taken := int64(0)
	for number, w := range s.Waves {
		for i := range pools {
			if w.Selector != nil && at[i] == number {
				taken += int64(pools[i].Machines)
			}
		}
		if w.Selector != nil {
			continue
		}
		for k := int32(0); len(free) > 0; k++ {
			size := int64(pools[free[0]].Machines)
			if w.Percent > 0 && (taken+size)*100 > int64(w.Percent)*total || w.Percent == 0 && k >= w.Pools {
				break
			}
			at[free[0]], taken, free = number, taken+size, free[1:]
		}
	}
	return at
}

// members puts pools into their waves.
func (n *next) members(r *Run, pools []Pool) []Member {
	out := make([]Member, 0, len(pools))
	for i, wave := range r.Spec.place(pools) {
		out = append(out, n.newMember(r, pools[i], wave))
	}
	slices.SortFunc(out, func(a, b Member) int { return compare(a.ID, b.ID) })
	return out
}

// spread orders pools so that the first ones are in many clusters, and within each cluster in many
// zones.
func spread(pools []Pool, which []int) []int {
	type place struct{ key string }
	queues := map[place][]int{}
	for _, i := range which {
		key := place{pools[i].Account + "/" + pools[i].Region + "/" + pools[i].Target + "/" + pools[i].Cluster}
		queues[key] = append(queues[key], i)
	}
	keys := slices.SortedFunc(maps.Keys(queues), func(a, b place) int { return cmp.Compare(a.key, b.key) })
	zones := map[string]int{}
	var out []int
	for len(out) < len(which) {
		for _, key := range keys {
			q := queues[key]
			if len(q) == 0 {
				continue
			}
			best := slices.MinFunc(q, func(a, b int) int {
				return cmp.Or(cmp.Compare(zones[zonesOf(pools[a])], zones[zonesOf(pools[b])]), compare(pools[a].ID, pools[b].ID))
			})
			zones[zonesOf(pools[best])]++
			out = append(out, best)
			queues[key] = slices.DeleteFunc(q, func(i int) bool { return i == best })
		}
	}
	return out
}

func zonesOf(p Pool) string { return strings.Join(p.Zones, ",") }
