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
	// longestWait bounds the waiting of one operation, however much comes.
	longestWait = time.Hour
)

// Deadline bounds the time that an operation waits for servers. A single bound on the whole
// operation would fail twice: a large repository could never be read, and a server that sends
// slowly would always delay what comes next. So a server that sends gets more time, a second for
// each slowest bytes. It is never ahead by more than the time that a silent server gets.
type Deadline struct {
	base time.Duration
	end  func() // ends the operation

	mu       sync.Mutex
	timer    *time.Timer
	began    time.Time
	until    time.Time
	bytes    int64 // that came
	paused   bool
	finished bool
}

type deadlineKey struct{}

// WithDeadline gives a context that ends like one with a deadline when the servers
// are not to be waited for any longer.
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

// deadlined says DeadlineExceeded where its cause is that.
type deadlined struct{ context.Context }

func (d deadlined) Err() error {
	if d.Context.Err() == nil {
		return nil
	}
	return context.Cause(d.Context)
}

// DeadlineOf returns the deadline of ctx, nil for none.
func DeadlineOf(ctx context.Context) *Deadline {
	d, _ := ctx.Value(deadlineKey{}).(*Deadline)
	return d
}

// check ends the operation if its time is over, and else runs again at that time.
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

// extend notes that a server sent so many bytes of its answer.
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

// Received returns the number of bytes that arrived.
func (d *Deadline) Received() int64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.bytes
}

// Pause says that no server is waited for until the function is called that it gives.
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
