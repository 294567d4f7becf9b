package coord

import "time"

// Instant is one moment on three clocks of a machine: Mono stops while the machine sleeps, Boot does not, and people and time servers set Wall. Each
// may be the only one that shows how long a process, a virtual machine or a laptop stood still.
type Instant struct {
	Mono, Boot time.Duration
	Wall       time.Time
}

// Longest is the time since an instant by the clock that advanced most, for an owner that must stop in time.
func (i Instant) Longest(since Instant) time.Duration {
	return max(i.Mono-since.Mono, i.Boot-since.Boot, i.Wall.Round(0).Sub(since.Wall.Round(0)))
}

// AtLeast is the time that has surely passed since an instant, for a successor that waits until an owner has stopped. A sleep, or a wall clock that
// somebody sets, does not lengthen it.
func (i Instant) AtLeast(since Instant) time.Duration { return i.Mono - since.Mono }

// Clock reads the clocks of a machine.
type Clock interface{ Now() Instant }

// started is the zero of Machine's Mono.
var started = time.Now()

// Machine is the clock of this machine.
type Machine struct{}

// Now implements Clock.
func (Machine) Now() Instant {
	now := time.Now()
	return Instant{Mono: now.Sub(started), Boot: sinceBoot(), Wall: now}
}
