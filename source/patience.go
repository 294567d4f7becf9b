package source

import (
	"context"
	"sync"
	"time"
)

const (
	// slowest is how many bytes have to come in a second, on average, from a server
	// that is waited for longer than Options.Timeout.
	slowest = 32 << 10
	// longestWait bounds the waiting of one operation, however much comes.
	longestWait = time.Hour
)

// patience bounds how long an operation waits for servers. A bound on the whole
// alone would be too short for a large repository and too long for one that drips:
// it could never be read, or always hold up what comes next. So whoever sends gets
// more time, a second for each of the slowest bytes, and never more ahead than the
// time that one gets who sends nothing.
type patience struct {
	base time.Duration
	end  func() // ends the operation

	mu       sync.Mutex
	timer    *time.Timer
	began    time.Time
	until    time.Time
	bytes    int64 // that came
	rests    bool
	finished bool
}

type patienceKey struct{}

// withPatience gives a context that ends like one with a deadline when the servers
// are not to be waited for any longer.
func withPatience(ctx context.Context, base time.Duration) (context.Context, context.CancelFunc) {
	now := time.Now()
	inner, cancel := context.WithCancelCause(ctx)
	p := &patience{base: base, began: now, until: now.Add(base), end: func() { cancel(context.DeadlineExceeded) }}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.timer = time.AfterFunc(base, p.look)
	return patient{context.WithValue(inner, patienceKey{}, p)}, func() {
		p.stop()
		cancel(context.Canceled)
	}
}

// patient says DeadlineExceeded where its cause is that.
type patient struct{ context.Context }

func (p patient) Err() error {
	if p.Context.Err() == nil {
		return nil
	}
	return context.Cause(p.Context)
}

func patienceOf(ctx context.Context) *patience {
	p, _ := ctx.Value(patienceKey{}).(*patience)
	return p
}

// look ends the operation if its time is over, and else comes back then.
func (p *patience) look() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.rests || p.finished {
		return
	}
	if left := time.Until(p.until); left > 0 {
		p.timer.Reset(left)
		return
	}
	p.end()
}

// came says that a server sent so many bytes of what it was asked for.
func (p *patience) came(bytes int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bytes += int64(bytes)
	p.until = earliest(
		p.until.Add(time.Duration(bytes)*time.Second/slowest),
		time.Now().Add(p.base),
		p.began.Add(longestWait),
	)
}

// brought is how much came.
func (p *patience) brought() int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bytes
}

// rest says that no server is waited for until the function is called that it gives.
func (p *patience) rest() (resume func()) {
	if p == nil {
		return func() {}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.rests = true
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.rests = false
		p.until = time.Now().Add(p.base)
		p.timer.Reset(p.base)
	}
}

func (p *patience) stop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.finished = true
	p.timer.Stop()
}

func earliest(first time.Time, others ...time.Time) time.Time {
	for _, t := range others {
		if t.Before(first) {
			first = t
		}
	}
	return first
}
