package coord

import "time"

// Instant is a moment on three clocks of a machine. Mono stops while the machine sleeps, Boot does not, and
// people and time servers set Wall. Any of them may be the only clock that shows how long a process, a
// virtual machine or a laptop stood still.
type Instant struct {
	Mono, Boot time.Duration
	Wall       time.Time
}

// Longest returns the time since an instant by the clock that advanced most. An owner uses it, because it
// must stop in time.
func (i Instant) Longest(since Instant) time.Duration {
	return max(i.Mono-since.Mono, i.Boot-since.Boot, i.Wall.Round(0).Sub(since.Wall.Round(0)))
}

// AtLeast returns the time that has surely passed since an instant. A member that waits for the end of
// another one uses it: neither sleep nor a wall clock that somebody sets makes it longer.
func (i Instant) AtLeast(since Instant) time.Duration { return i.Mono - since.Mono }

// Clock reads the clocks of a machine.
type Clock interface{ Now() Instant }

// started is the time at which Machine's Mono is zero.
var started = time.Now()

// Machine is the clock of this machine.
type Machine struct{}

// Now implements Clock.
func (Machine) Now() Instant {
	now := time.Now()
	return Instant{Mono: now.Sub(started), Boot: sinceBoot(), Wall: now}
}
