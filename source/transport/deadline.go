package transport

import (
	"context"
	"sync"
	"time"
)

const (
	// slowest is the average rate in bytes per second that a server must reach if an operation
	// takes longer than Options.Timeout.
	slowest = 32 << 10
	// longestWait bounds the time of an operation, however much data arrives.
	longestWait = time.Hour
)

// Deadline bounds the time that an operation waits for servers. A fixed limit for the whole operation would
// not work: reading a large repository would always exceed it, and a slow server would always delay the next
// operation for the full time. So a server that sends gets more time, one second for every slowest bytes. The
// remaining time never exceeds the time for a silent server.
type Deadline struct {
	base time.Duration
	end  func() // ends the operation

	mu       sync.Mutex
	timer    *time.Timer
	began    time.Time
	until    time.Time
	bytes    int64 // received bytes
	paused   bool
	finished bool
}

type deadlineKey struct{}

// WithDeadline returns a context that ends with context.DeadlineExceeded when the operation must no longer
// wait for servers.
func WithDeadline(ctx context.Context, base time.Duration) (context.Context, context.CancelFunc) {
	now := time.Now()
	inner, cancel := context.WithCancelCause(ctx)
	d := &Deadline{base: base, began: now, until: now.Add(base), end: func() { cancel(context.DeadlineExceeded) }}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.timer = time.AfterFunc(base, d.check)
	return deadlined{context.WithValue(inner, deadlineKey{}, d)}, func() {
		d.stop()
		cancel(context.Canceled)
	}
}

// deadlined returns DeadlineExceeded from Err if that is the cause.
type deadlined struct{ context.Context }

func (d deadlined) Err() error {
	if d.Context.Err() == nil {
		return nil
	}
	return context.Cause(d.Context)
}

// DeadlineOf returns the deadline of ctx, or nil.
func DeadlineOf(ctx context.Context) *Deadline {
	d, _ := ctx.Value(deadlineKey{}).(*Deadline)
	return d
}

// check ends the operation if its time is over. Otherwise it sets the timer again.
func (d *Deadline) check() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.paused || d.finished {
		return
	}
	if left := time.Until(d.until); left > 0 {
		d.timer.Reset(left)
		return
	}
	d.end()
}

// extend records that a server sent the given number of bytes.
func (d *Deadline) extend(bytes int) {
	if d == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.bytes += int64(bytes)
	d.until = earliest(
		d.until.Add(time.Duration(bytes)*time.Second/slowest),
		time.Now().Add(d.base),
		d.began.Add(longestWait),
	)
}

// Received returns the number of received bytes.
func (d *Deadline) Received() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bytes
}

// Pause stops the time while the operation waits for no server. resume continues it.
func (d *Deadline) Pause() (resume func()) {
	if d == nil {
		return func() {}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.paused = true
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.paused = false
		d.until = time.Now().Add(d.base)
		d.timer.Reset(d.base)
	}
}

func (d *Deadline) stop() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.finished = true
	d.timer.Stop()
}

func earliest(first time.Time, others ...time.Time) time.Time {
	for _, t := range others {
		if t.Before(first) {
			first = t
		}
	}
	return first
}
