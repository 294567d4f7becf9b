package coordtest

import (
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// Clock simulates the clocks of one machine, which may be wrong. They add an offset to the clock of package
// time, which is right for all other machines.
type Clock struct {
	mu      sync.Mutex
	start   time.Time
	off     coord.Instant
	stopped chan struct{} // nil while the machine runs
	stops   int
}

// NewClock returns correct clocks.
func NewClock() *Clock { return &Clock{start: time.Now()} }

// Stop makes the machine stand still. Reads of its clock and calls over its Wire then block.
func (c *Clock) Stop() (resume func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.stops++; c.stopped == nil {
		c.stopped = make(chan struct{})
	}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.stops--; c.stops == 0 {
			close(c.stopped)
			c.stopped = nil
		}
	}
}

// Stopped reports whether the machine stands still.
func (c *Clock) Stopped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopped != nil
}

// Runs waits until the machine runs.
func (c *Clock) Runs() {
	for {
		c.mu.Lock()
		stopped := c.stopped
		c.mu.Unlock()
		if stopped == nil {
			return
		}
		<-stopped
	}
}

// Now implements coord.Clock.
func (c *Clock) Now() coord.Instant {
	c.Runs()
	c.mu.Lock()
	defer c.mu.Unlock()
	passed := time.Since(c.start)
	return coord.Instant{Mono: passed + c.off.Mono, Boot: passed + c.off.Boot, Wall: time.Now().Round(0).Add(c.off.Wall.Sub(time.Time{}))}
}

// SetWall shifts the wall clock.
func (c *Clock) SetWall(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off.Wall = c.off.Wall.Add(by)
}

// Slept simulates that the machine slept for the last d: its monotonic clock stood still.
func (c *Clock) Slept(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off.Mono -= d
}

// Paused makes the machine have been suspended for the last d. Only its wall clock shows that, because
// something else sets it.
func (c *Clock) Paused(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off.Mono -= d
	c.off.Boot -= d
}
