package timeline

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Finish returns the timeline of the recorded events. stopped is the reason why it is incomplete, or empty.
func (r *Recorder) Finish(stopped string) *Timeline {
	t := r.t
	t.RateWait = math.Round(t.RateWait*10) / 10
	t.Outcome, t.Why = Converged, stopped
	for _, name := range r.order {
		of := r.targets[name]
		of.Pools = len(of.pools)
		switch {
		case slices.ContainsFunc(slices.Collect(maps.Values(of.pools)), func(p *pool) bool { return p.fails && !p.ended }):
			of.Outcome = Failed
		case len(of.holds) > 0:
			of.Outcome = Waits
		case slices.ContainsFunc(slices.Collect(maps.Values(of.pools)), func(p *pool) bool { return p.touched && !p.ended }):
			of.Outcome = Incomplete
		}
		t.Targets = append(t.Targets, of.Target)
		t.Outcome = graver(t.Outcome, of.Outcome)
		for _, poolName := range slices.Sorted(maps.Keys(of.pools)) {
			if p := of.pools[poolName]; p.touched || len(p.Points) > 1 {
				p.Version = p.version()
				t.Pools = append(t.Pools, p.Pool)
			}
		}
	}
	if stopped != "" {
		t.Outcome = Incomplete
	}
	t.Changed = len(t.Pools)
	t.End = r.at(r.last)
	t.Points = together(t.Pools)
	for _, p := range t.Points {
		if p.above() > t.MostAbove {
			t.MostAbove, t.AboveAt = p.above(), p.At
		}
	}
	t.Points = thin(t.Points, mostPoints, func(p Point) (float64, int32) { return p.At, p.above() })
	for i := range t.Pools {
		t.Pools[i].Points = thin(t.Pools[i].Points, mostPoolPoints, func(p PoolPoint) (float64, int32) { return p.At, p.Starting })
	}
	t.Calls = slices.SortedFunc(func(yield func(Bucket) bool) {
		for _, b := range r.buckets {
			if !yield(*b) {
				return
			}
		}
	}, func(a, b Bucket) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Region, b.Region), cmp.Compare(a.Name, b.Name))
	})
	return &t
}

func graver(a, b string) string {
	order := []string{Converged, Waits, Incomplete, Failed}
	if slices.Index(order, b) > slices.Index(order, a) {
		return b
	}
	return a
}

// version returns the newest version of a pool's machines.
func (p *pool) version() (newest string) {
	for _, point := range p.Points {
		for v := range point.Versions {
			if newest == "" || older(newest, v) {
				newest = v
			}
		}
	}
	return newest
}

func older(a, b string) bool {
	x, errX := strconv.ParseInt(a, 10, 64)
	y, errY := strconv.ParseInt(b, 10, 64)
	if errX != nil || errY != nil {
		return strings.Compare(a, b) < 0
	}
	return x < y
}

// together returns the points of all pools together, one for each moment at which one of them changes.
func together(pools []Pool) []Point {
	type change struct {
		at   float64
		pool int
		of   int
	}
	var changes []change
	for i, p := range pools {
		for j, point := range p.Points {
			changes = append(changes, change{point.At, i, j})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	now := make([]PoolPoint, len(pools))
	out := []Point{}
	for i, c := range changes {
		now[c.pool] = pools[c.pool].Points[c.of]
		if i+1 < len(changes) && changes[i+1].at == c.at {
			continue
		}
		sum := Point{At: c.at}
		for j, p := range now {
			sum.Desired, sum.Starting, sum.Ending = sum.Desired+p.Desired, sum.Starting+p.Starting, sum.Ending+p.Ending
			old, is := pools[j].split(p)
			sum.Old, sum.New = sum.Old+old, sum.New+is
		}
		out = append(out, sum)
	}
	return out
}

// split returns the numbers of old and new machines in service.
func (p Pool) split(at PoolPoint) (old, is int32) {
	all := int32(0)
	for v, n := range at.Versions {
		if all += n; v == p.Version {
			is += n
		}
	}
	if !p.rolls() {
		is = min(all, max(0, at.Replaced-at.Starting))
	}
	return all - is, is
}

// rolls reports whether the pool's machines change to another version, or get their first one.
func (p Pool) rolls() bool {
	if len(p.Points) == 0 {
		return false
	}
	first := p.Points[0]
	if len(first.Versions) == 0 {
		return true
	}
	for _, point := range p.Points {
		for v := range point.Versions {
			if v != p.Version {
				return true
			}
		}
	}
	return false
}

// thin reduces the points to the given number. It keeps the last and the highest point of each interval.
func thin[P any](points []P, most int, of func(P) (at float64, height int32)) []P {
	if len(points) <= most {
		return points
	}
	first, _ := of(points[0])
	last, _ := of(points[len(points)-1])
	width := (last - first) / float64(most/2-1)
	var out []P
	for i := 0; i < len(points); {
		at, _ := of(points[i])
		slot := math.Floor((at - first) / width)
		highest, j := i, i
		for ; j < len(points); j++ {
			at, height := of(points[j])
			if math.Floor((at-first)/width) != slot {
				break
			}
			if _, most := of(points[highest]); height > most {
				highest = j
			}
		}
		if highest < j-1 {
			out = append(out, points[highest])
		}
		out = append(out, points[j-1])
		i = j
	}
	return out
}
