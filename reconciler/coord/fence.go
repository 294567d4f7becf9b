package coord

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"
)

// FencedError says that a write to AWS must not start, because too little of the lease is left. The next
// owner of the key does the work.
type FencedError struct {
	Key  string
	Left time.Duration
}

// Error names the key and the remaining time of its lease.
func (e *FencedError) Error() string {
	if e.Left <= 0 {
		return fmt.Sprintf("nothing is written for %s: its lease has ended", e.Key)
	}
	return fmt.Sprintf("nothing is written for %s: %s of its lease are left, and writing takes %s", e.Key, e.Left.Round(time.Millisecond), FenceBegin)
}

// Is reports that a FencedError is an ErrLost.
func (e *FencedError) Is(target error) bool { return target == ErrLost }

// Fence bounds writes to AWS by a lease. Callers check it right before each attempt, after the request is
// signed. A daemon alone has a nil Fence, which allows everything.
type Fence struct {
	key  string
	held *holdings
	over atomic.Bool
	// cut ends when attempts must be cut off.
	cut     context.Context
	cutting context.CancelFunc
}

func newFence(key string, held *holdings) *Fence {
	f := &Fence{key: key, held: held}
	f.cut, f.cutting = context.WithCancel(context.Background())
	return f
}

// end forbids further attempts, and cuts off those in flight.
func (f *Fence) end() {
	f.over.Store(true)
	f.cutting()
}

func (f *Fence) left() time.Duration {
	if f.over.Load() || f.held.void() {
		return 0
	}
	return f.held.session.Left()
}

// MayBegin returns a *FencedError unless an attempt may start now.
func (f *Fence) MayBegin() error {
	if f == nil {
		return nil
	}
	if left := f.left(); left < FenceBegin {
		return &FencedError{f.key, max(0, left)}
	}
	return nil
}

// Until returns the time at which the fence cuts off an attempt that starts now, unless the lease is renewed.
func (f *Fence) Until() time.Time {
	if f == nil {
		return time.Now().Add(365 * 24 * time.Hour)
	}
	const most = 365 * 24 * time.Hour // bounds the leases of tests, which may be of any length
	return time.Now().Add(min(most, f.left()-FenceCut))
}

// Attempt is MayBegin with a context that ends FenceCut before the lease, which may be renewed meanwhile. An
// attempt that is cut off counts as a lost answer.
func (f *Fence) Attempt(ctx context.Context) (context.Context, context.CancelFunc, error) {
	if err := f.MayBegin(); err != nil {
		return ctx, func() {}, err
	}
	if f == nil {
		return ctx, func() {}, nil
	}
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(f.cut, func() { cancel(&FencedError{Key: f.key}) })
	return ctx, func() { stop(); cancel(nil) }, nil
}
