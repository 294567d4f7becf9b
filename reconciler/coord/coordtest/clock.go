package coordtest

import (
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// Clock is the clocks of a machine that is not alone in going wrong. Its own setting
// comes on top of package time's clock, which goes on for everybody else.
type Clock struct {
	mu      sync.Mutex
	start   time.Time
	off     coord.Instant
	stopped chan struct{} // nil while the machine runs
	stops   int
}

// NewClock makes clocks that are right.
func NewClock() *Clock { return &Clock{start: time.Now()} }

// Stop makes the machine stand still: who reads its clock, or uses a Wire of its, waits.
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

// Stopped says whether the machine stands still.
func (c *Clock) Stopped() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stopped != nil
}

// Runs waits until the machine does.
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

// SetWall moves the wall clock.
func (c *Clock) SetWall(by time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off.Wall = c.off.Wall.Add(by)
}

// Slept says that d of the time that passed was slept through: the monotonic clock stood still.
func (c *Clock) Slept(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off.Mono -= d
}

// Paused says that the machine was not there for d: only the wall clock, set again by
// somebody else, shows it.
func (c *Clock) Paused(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off.Mono -= d
	c.off.Boot -= d
}
