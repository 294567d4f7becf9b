package timeline

import (
	"maps"
	"math"
	"slices"
	"time"
)

// The maximum lengths of a recorder's lists.
const (
	mostPoints     = 240
	mostPoolPoints = 60
	mostMilestones = 400
)

// Seen is the state of a pool in a pass.
type Seen struct {
	Name    string
	Desired int32
	// Versions has the number of machines in service by launch template version.
	Versions         map[string]int32
	Starting, Ending int32
	// Machines lists the ids of all machines.
	Machines []string
	// Moves says that the pool is changing, Converged that nothing is left to do.
	Moves, Converged bool
	// Failed is the reason of a failure, or empty.
	Failed string
}

// Held is a hold of a target's steps.
type Held struct {
	Hold, Why string
	Pools     int
	Person    bool
}

// Recorder builds a Timeline. Its methods must be called in the order of time.
type Recorder struct {
	t       Timeline
	targets map[string]*target
	order   []string
	buckets map[string]*Bucket
	last    time.Time
}

type target struct {
	Target
	pools map[string]*pool
	holds map[string]int // index in Waiting
	done  bool
}

type pool struct {
	Pool
	touched, ended, fails bool
	machines, first       map[string]bool
}

// New returns a recorder that starts at a moment.
func New(began time.Time) *Recorder {
	return &Recorder{t: Timeline{Schema: Schema, Began: began.UTC(), Waves: []Wave{}, Milestones: []Milestone{}, Targets: []Target{}, Pools: []Pool{}, Points: []Point{}, Calls: []Bucket{}, Waiting: []Wait{}},
		targets: map[string]*target{}, buckets: map[string]*Bucket{}, last: began}
}

func (r *Recorder) at(now time.Time) float64 {
	return math.Round(max(0, now.Sub(r.t.Began).Seconds())*10) / 10
}

// Target adds a target.
func (r *Recorder) Target(name, account, region string) {
	if r.targets[name] == nil {
		r.targets[name] = &target{Target: Target{Name: name, Account: account, Region: region, Outcome: Converged}, pools: map[string]*pool{}, holds: map[string]int{}}
		r.order = append(r.order, name)
	}
}

// Saw records the states of a target's pools.
func (r *Recorder) Saw(now time.Time, name string, seen []Seen, converged bool) {
	t := r.targets[name]
	for _, s := range seen {
		p := t.pools[s.Name]
		if p == nil {
			p = &pool{Pool: Pool{Target: name, Name: s.Name}, machines: map[string]bool{}}
			t.pools[s.Name] = p
		}
		r.saw(now, p, s)
	}
	if changes := t.Begins > 0 || slices.ContainsFunc(slices.Collect(maps.Values(t.pools)), func(p *pool) bool { return p.touched }); changes && converged != t.done {
		if t.done = converged; converged {
			t.Ends = r.at(now)
			r.note(now, Milestone{Kind: "target-converges", Target: name, Text: "all targets match Git"})
		}
	}
}

func (s Seen) machines() (n int32) {
	for _, count := range s.Versions {
		n += count
	}
	return n + s.Starting
}

// point adds a point to a pool if it differs from the last one, and counts launches.
func (r *Recorder) point(now time.Time, p *pool, s Seen) {
	if len(p.Points) == 0 {
		p.first = map[string]bool{}
		for _, id := range s.Machines {
			p.first[id] = true
		}
	}
	replaced := int32(0)
	for _, id := range s.Machines {
		if !p.first[id] {
			replaced++
		}
	}
	next := PoolPoint{At: r.at(now), Replaced: replaced, Desired: s.Desired, Versions: s.Versions, Starting: s.Starting, Ending: s.Ending}
	if n := len(p.Points); n == 0 || !next.same(p.Points[n-1]) {
		if n > 0 {
			r.last = now
		}
		p.Points = append(p.Points, next)
	}
	for _, id := range s.Machines {
		if !p.machines[id] && len(p.Points) > 1 {
			r.t.Launched++
		}
		p.machines[id] = true
	}
}

// saw records the state of a pool at a time, with the milestones that it reaches.
func (r *Recorder) saw(now time.Time, p *pool, s Seen) {
	r.point(now, p, s)
	p.MostAbove = max(p.MostAbove, s.machines()-s.Desired)
	if s.Moves && !p.touched {
		r.Touched(now, p.Target, p.Name, "begins")
	}
	switch {
	case s.Failed != "" && !p.fails:
		p.fails = true
		r.note(now, Milestone{Kind: "pool-fails", Target: p.Target, Pool: p.Name, Text: s.Failed})
	case p.touched && !p.ended && s.Converged && !s.Moves:
		p.ended, p.Ends, r.last = true, r.at(now), now
		r.note(now, Milestone{Kind: "pool-ends", Target: p.Target, Pool: p.Name, Text: "matches Git"})
	case p.ended && !s.Converged:
		p.ended, p.Ends = false, 0
	}
}

func (p PoolPoint) same(o PoolPoint) bool {
	return p.Desired == o.Desired && p.Starting == o.Starting && p.Ending == o.Ending && p.Replaced == o.Replaced && maps.Equal(p.Versions, o.Versions)
}

// Touched records an action on a pool, even on a pool that was not seen yet.
func (r *Recorder) Touched(now time.Time, name, poolName, what string) {
	t := r.targets[name]
	p := t.pools[poolName]
	if p == nil {
		p = &pool{Pool: Pool{Target: name, Name: poolName}, machines: map[string]bool{}}
		t.pools[poolName] = p
	}
	r.last = now
	if p.ended { // more is done to the pool
		p.ended, p.Ends = false, 0
	}
	if p.touched {
		return
	}
	p.touched, p.Begins = true, r.at(now)
	if t.Begins == 0 {
		t.Begins = p.Begins
	}
	r.note(now, Milestone{Kind: "pool-begins", Target: name, Pool: poolName, Text: what})
}

// Wave records the start of a wave.
func (r *Recorder) Wave(now time.Time, name string) {
	r.t.Waves = append(r.t.Waves, Wave{Name: name, At: r.at(now)})
	r.note(now, Milestone{Kind: "wave", Text: name})
}

// Fact records any other fact about a rollout.
func (r *Recorder) Fact(now time.Time, text string) {
	r.note(now, Milestone{Kind: "rollout", Text: text})
}

// Holds records what currently holds the steps of a target. It may be nil.
func (r *Recorder) Holds(now time.Time, name string, holds []Held) {
	t := r.targets[name]
	still := map[string]bool{}
	for _, h := range holds {
		key := h.Hold
		still[key] = true
		if i, known := t.holds[key]; known {
			w := &r.t.Waiting[i]
			w.Pools, w.Why = max(w.Pools, h.Pools), h.Why
			continue
		}
		t.holds[key] = len(r.t.Waiting)
		r.t.Waiting = append(r.t.Waiting, Wait{Target: name, Pools: h.Pools, Hold: h.Hold, Why: h.Why, From: r.at(now), Person: h.Person})
	}
	for key, i := range t.holds {
		if !still[key] {
			r.t.Waiting[i].Until = r.at(now)
			delete(t.holds, key)
		}
	}
}

// Call is a call to AWS, or several equal calls.
type Call struct {
	Account, Region, Bucket string
	Write, Throttled        bool
	Left                    float64
	Times                   int
}

// Called records a call.
func (r *Recorder) Called(c Call) {
	key := c.Account + "\x00" + c.Region + "\x00" + c.Bucket
	b := r.buckets[key]
	if b == nil {
		b = &Bucket{Account: c.Account, Region: c.Region, Name: c.Bucket, Least: c.Left}
		r.buckets[key] = b
	}
	b.Calls += c.Times
	if c.Write {
		b.Writes += c.Times
	}
	if c.Throttled {
		b.Throttled += c.Times
	}
	b.Least = math.Round(min(b.Least, c.Left)*10) / 10
}

// Waited records a wait for AWS's rates.
func (r *Recorder) Waited(d time.Duration) { r.t.RateWait += d.Seconds() }

// Passed counts a pass.
func (r *Recorder) Passed() { r.t.Passes++ }

func (r *Recorder) note(now time.Time, m Milestone) {
	if len(r.t.Milestones) >= mostMilestones {
		r.t.MilestonesLeft++
		return
	}
	m.At = r.at(now)
	r.t.Milestones = append(r.t.Milestones, m)
}
