// Package clock gives the time by AWS's clock, which each answer carries; between
// answers this machine's clock carries it on. This machine's own may be set at any
// moment, by days and in either direction: then suspensions would end early, approvals
// go on, and windows open in the middle of the day. Nothing is written before AWS has
// answered, so its clock is known by the time that it matters.
package clock

import (
	"sync"
	"time"
)

const (
	// jump is the difference between two clocks from which on it means anything. AWS
	// tells whole seconds, and an answer may have been on its way for a while.
	jump = time.Minute
	// otherValid is the time for which a clock stays valid in addition to another one that differs
	// from it.
	otherValid = 10 * time.Minute
)

// Moment is the time, as precisely as it is known: Earliest and Latest are the same unless clocks
// were set, or this machine has slept, since AWS's last answer. A person's hold lasts until
// Earliest is past its end; a permission ends with Latest.
type Moment struct {
	Earliest, Latest time.Time
	// Heard says that this process has heard the time from AWS.
	Heard bool
	// Ticks is the running time of this process, without the time that the machine slept or was
	// suspended. HeardAt is the value of Ticks at AWS's last answer.
	Ticks, HeardAt time.Duration
	// Wall is the time by this machine's own clock.
	Wall time.Time
}

// At makes moments of a clock that is right.
func At(now func() time.Time) func() Moment {
	return func() Moment {
		t := now()
		ticks := t.Sub(time.Unix(0, 0))
		return Moment{Earliest: t, Latest: t, Heard: true, Ticks: ticks, HeardAt: ticks, Wall: t}
	}
}

// sample is the time that AWS gave, and the times on this machine's clocks then.
type sample struct {
	aws, wall time.Time
	ticks     time.Duration
}

// Clock is safe for concurrent use.
type Clock struct {
	wall  func() time.Time
	ticks func() time.Duration // since some moment; not while the machine sleeps

	mu sync.Mutex
	// last is the last sample, other the one before it from another clock.
	last, other sample
}

// New makes a clock that goes as this machine's until it hears of AWS's.
func New() *Clock { return By(time.Now) }

// By is New on a machine whose clock, which may be set at any time, is wall.
func By(wall func() time.Time) *Clock {
	start := time.Now()
	return &Clock{wall: wall, ticks: func() time.Duration { return time.Since(start) }}
}

// Hear takes in what time it is by AWS.
func (c *Clock) Hear(aws time.Time) {
	if aws.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := sample{aws, c.wall().Round(0), c.ticks()}
	// Two endpoints may have two clocks, where they are not AWS's.
	if byTicks, byWall := c.last.carriedTo(now); !c.last.aws.IsZero() && differ(byTicks, aws) && differ(byWall, aws) {
		c.other = c.last
	}
	c.last = now
}

// carriedTo is a sample's time now, by the ticks and by the wall clock since then.
func (s sample) carriedTo(now sample) (byTicks, byWall time.Time) {
	return s.aws.Add(now.ticks - s.ticks), s.aws.Add(now.wall.Sub(s.wall))
}

func differ(a, b time.Time) bool { return a.Sub(b).Abs() > jump }

// Earliest is that of the moment: for who waits until something has lasted.
func (c *Clock) Earliest() time.Time { return c.Moment().Earliest }

// Moment is the time, and how sure that is.
func (c *Clock) Moment() Moment {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := sample{time.Time{}, c.wall().Round(0), c.ticks()}
	if c.last.aws.IsZero() {
		return Moment{Earliest: now.wall, Latest: now.wall, Ticks: now.ticks, Wall: now.wall}
	}
	byTicks, byWall := c.last.carriedTo(now)
	m := Moment{Earliest: byTicks, Latest: byTicks, Heard: true, Ticks: now.ticks, HeardAt: c.last.ticks, Wall: now.wall}
	if differ(byTicks, byWall) {
		m.include(byWall)
	}
	if !c.other.aws.IsZero() && now.ticks-c.other.ticks < otherValid {
		byTicks, _ = c.other.carriedTo(now)
		m.include(byTicks)
	}
	return m
}

func (m *Moment) include(t time.Time) {
	if t.Before(m.Earliest) {
		m.Earliest = t
	}
	if t.After(m.Latest) {
		m.Latest = t
	}
}

// Ahead is by how much this machine's clock was ahead of AWS's when that was heard
// last: negative where it was behind, 0 where they agreed.
func (c *Clock) Ahead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.aws.IsZero() || !differ(c.last.wall, c.last.aws) {
		return 0
	}
	return c.last.wall.Sub(c.last.aws).Round(time.Second)
}
