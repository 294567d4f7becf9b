package timeline

import "time"

// The maximum lengths of a brief's lists.
const (
	briefPools      = 50
	briefMilestones = 40
	briefLists      = 30
)

// Brief returns the part of a timeline that is stored with a plan: some tens of kilobytes at most. It leaves
// out the time at which AWS was read, so that the same change of the same fleet always has the same brief.
func (t *Timeline) Brief() *Timeline {
	b := *t
	b.Began = time.Time{}
	b.Pools = make([]Pool, 0, min(len(t.Pools), briefPools))
	for _, p := range t.Pools[:min(len(t.Pools), briefPools)] {
		p.Replaced, p.Grows, p.Points = p.Replacements(), p.Growth(), []PoolPoint{}
		b.Pools = append(b.Pools, p)
	}
	if left := len(t.Milestones) - briefMilestones; left > 0 {
		b.Milestones, b.MilestonesLeft = t.Milestones[:briefMilestones], t.MilestonesLeft+left
	}
	b.Waves, b.Targets, b.Waiting, b.Doubts = first(t.Waves), first(t.Targets), first(t.Waiting), first(t.Doubts)
	if len(t.Calls) > briefLists { // merged into one entry, so that the sums stay
		rest := Bucket{Name: "others"}
		for _, c := range t.Calls[briefLists-1:] {
			rest.Calls, rest.Writes, rest.Throttled = rest.Calls+c.Calls, rest.Writes+c.Writes, rest.Throttled+c.Throttled
		}
		b.Calls = append(append([]Bucket{}, t.Calls[:briefLists-1]...), rest)
	}
	return &b
}

// Replacements returns the number of machines that replaced others. Machines by which the pool grew
// do not count.
func (p Pool) Replacements() (n int32) {
	if len(p.Points) == 0 {
		return p.Replaced
	}
	for _, point := range p.Points {
		n = max(n, point.Replaced)
	}
	return max(0, n-max(0, p.Growth()))
}

// Growth returns the change of the pool's number of machines at the end, negative for fewer.
// Machines above its desired size for a while do not count.
func (p Pool) Growth() int32 {
	if len(p.Points) == 0 {
		return p.Grows
	}
	last := p.Points[len(p.Points)-1]
	return min(last.machines(), last.Desired) - p.Points[0].machines()
}

// machines returns the number of machines that run or start.
func (p PoolPoint) machines() int32 {
	n := p.Starting
	for _, count := range p.Versions {
		n += count
	}
	return n
}

func first[T any](list []T) []T { return list[:min(len(list), briefLists)] }
