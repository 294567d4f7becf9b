// Package clock returns the time of AWS's clock, which each answer contains. Between answers, this machine's
// clock measures the time that has passed. This machine's clock alone is not reliable: it may be set at any
// moment, by days and in either direction. Suspensions would then end early, approvals would not expire, and
// windows would open at the wrong time. weir writes nothing before AWS has answered, so AWS's time is always
// available when it matters.
package clock

import (
	"sync"
	"time"
)

const (
	// jump is the minimum difference between two clocks that counts. AWS's times are whole seconds, and an
	// answer may have been delayed.
	jump = time.Minute
	// otherValid is the time for which a clock stays valid beside another one that differs from it.
	otherValid = 10 * time.Minute
)

// Moment is the time as an interval: Earliest and Latest are equal unless clocks were set, or this machine
// has slept, since AWS's last answer. A person's hold lasts until Earliest is past its end. A permission
// ends when Latest is past its end.
type Moment struct {
	Earliest, Latest time.Time
	// Heard says that this process has received AWS's time.
	Heard bool
	// Ticks is the running time of this process, without the time that the machine slept or was suspended.
	// HeardAt is the value of Ticks at AWS's last answer.
	Ticks, HeardAt time.Duration
	// Wall is the time of this machine's own clock.
	Wall time.Time
}

// At returns a function that makes moments from a correct clock.
func At(now func() time.Time) func() Moment {
	return func() Moment {
		t := now()
		ticks := t.Sub(time.Unix(0, 0))
		return Moment{Earliest: t, Latest: t, Heard: true, Ticks: ticks, HeardAt: ticks, Wall: t}
	}
}

// sample is a time from AWS, and the readings of this machine's clocks at that moment.
type sample struct {
	aws, wall time.Time
	ticks     time.Duration
}

// Clock tracks AWS's time. It is safe for concurrent use.
type Clock struct {
	wall  func() time.Time
	ticks func() time.Duration // since some moment, not counting sleep

	mu sync.Mutex
	// last is the last sample. other is the one before it, if it is from another clock.
	last, other sample
}

// New returns a clock that follows this machine's until it receives AWS's time.
func New() *Clock { return By(time.Now) }

// By is like New, with wall as this machine's clock, which may be set at any time.
func By(wall func() time.Time) *Clock {
	start := time.Now()
	return &Clock{wall: wall, ticks: func() time.Duration { return time.Since(start) }}
}

// Hear sets AWS's current time.
func (c *Clock) Hear(aws time.Time) {
	if aws.IsZero() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	now := sample{aws, c.wall().Round(0), c.ticks()}
	// Two endpoints other than AWS may have different clocks.
	if byTicks, byWall := c.last.carriedTo(now); !c.last.aws.IsZero() && differ(byTicks, aws) && differ(byWall, aws) {
		c.other = c.last
	}
	c.last = now
}

// carriedTo returns a sample's time now, according to the ticks and to the wall clock since then.
func (s sample) carriedTo(now sample) (byTicks, byWall time.Time) {
	return s.aws.Add(now.ticks - s.ticks), s.aws.Add(now.wall.Sub(s.wall))
}

func differ(a, b time.Time) bool { return a.Sub(b).Abs() > jump }

// Earliest returns the moment's Earliest, for callers that wait until a duration has passed.
func (c *Clock) Earliest() time.Time { return c.Moment().Earliest }

// Moment returns the current time, with its uncertainty.
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

// Ahead returns the lead of this machine's clock over AWS's at AWS's last answer. It is negative if this
// clock was behind, and 0 if they agreed.
func (c *Clock) Ahead() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.last.aws.IsZero() || !differ(c.last.wall, c.last.aws) {
		return 0
	}
	return c.last.wall.Sub(c.last.aws).Round(time.Second)
}
