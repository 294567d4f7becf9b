package coordtest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// ErrWire is the error that a fault returns.
var ErrWire = errors.New("nothing came back")

// Fault changes the outcome of one call; the zero Fault changes nothing.
type Fault struct {
	// Slow is the time that the request takes to reach the engine.
	Slow time.Duration
	// LoseRequest drops the request. LoseAnswer drops the answer, after the engine has done the request.
	LoseRequest, LoseAnswer bool
	// Late returns an error for a missing answer, and delivers the request after that time.
	Late time.Duration
	// Hang delays the error of a lost request or answer until the caller gives up.
	Hang bool
}

// Wire connects one member to its engine.
type Wire struct {
	coord.Store
	// Machine is the member's machine, if it may stand still. It may be nil.
	Machine *Clock

	mu    sync.Mutex
	fault func(call string) Fault
	calls map[string]int
	late  sync.WaitGroup
}

// NewWire makes a wire without faults.
func NewWire(store coord.Store) *Wire { return &Wire{Store: store, calls: map[string]int{}} }

// Arm makes fault decide about each call from now on, by its name in coord.Store. A nil fault means no
// faults.
func (w *Wire) Arm(fault func(call string) Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = fault
}

// Once arms a fault for the next call with a name.
func (w *Wire) Once(name string, f Fault) {
	done := false
	w.Arm(func(call string) Fault {
		if done || call != name {
			return Fault{}
		}
		done = true
		return f
	})
}

// Cut loses every request until Mend.
func (w *Wire) Cut() { w.Arm(func(string) Fault { return Fault{LoseRequest: true, Hang: true} }) }

// Mend ends all faults.
func (w *Wire) Mend() { w.Arm(nil) }

// Calls returns the number of calls with a name.
func (w *Wire) Calls(name string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.calls[name]
}

// Close waits for late requests, and closes the store.
func (w *Wire) Close() error {
	w.late.Wait()
	return w.Store.Close()
}

func through[T any](ctx context.Context, w *Wire, call string, do func(context.Context) (T, error)) (T, error) {
	var none T
	if w.Machine != nil {
		w.Machine.Runs()
		defer w.Machine.Runs()
	}
	w.mu.Lock()
	w.calls[call]++
	f := Fault{}
	if w.fault != nil {
		f = w.fault(call)
	}
	w.mu.Unlock()
	if f.Slow > 0 {
		timer := time.NewTimer(f.Slow)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
	lost := func() (T, error) {
		if f.Hang {
			<-ctx.Done()
		}
		return none, ErrWire
	}
	switch {
	case f.LoseRequest:
		return lost()
	case f.Late > 0:
		w.late.Go(func() {
			time.Sleep(f.Late)
			_, _ = do(context.WithoutCancel(ctx)) // the answer is lost
		})
		return lost()
	}
	if err := ctx.Err(); err != nil {
		return none, err
	}
	v, err := do(ctx)
	if f.LoseAnswer {
		return lost()
	}
	return v, err
}

func (w *Wire) through(ctx context.Context, call string, do func(context.Context) error) error {
	_, err := through(ctx, w, call, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) })
	return err
}

// Enter implements coord.Store.
func (w *Wire) Enter(ctx context.Context, random string, m coord.Member, ttl time.Duration) (coord.Entered, error) {
	return through(ctx, w, "Enter", func(ctx context.Context) (coord.Entered, error) { return w.Store.Enter(ctx, random, m, ttl) })
}

// Renew implements coord.Store.
func (w *Wire) Renew(ctx context.Context, session string, m *coord.Member) (time.Duration, error) {
	return through(ctx, w, "Renew", func(ctx context.Context) (time.Duration, error) { return w.Store.Renew(ctx, session, m) })
}

// End implements coord.Store.
func (w *Wire) End(ctx context.Context, session string) error {
	return w.through(ctx, "End", func(ctx context.Context) error { return w.Store.End(ctx, session) })
}

// Poll implements coord.Store.
func (w *Wire) Poll(ctx context.Context) (coord.Poll, error) {
	return through(ctx, w, "Poll", func(ctx context.Context) (coord.Poll, error) { return w.Store.Poll(ctx) })
}

// Owners implements coord.Store.
func (w *Wire) Owners(ctx context.Context) ([]coord.Owner, error) {
	return through(ctx, w, "Owners", func(ctx context.Context) ([]coord.Owner, error) { return w.Store.Owners(ctx) })
}

// OwnersOf implements coord.Store.
func (w *Wire) OwnersOf(ctx context.Context, keys []string) ([]coord.Owner, error) {
	return through(ctx, w, "OwnersOf", func(ctx context.Context) ([]coord.Owner, error) { return w.Store.OwnersOf(ctx, keys) })
}

// Get implements coord.Store.
func (w *Wire) Get(ctx context.Context, keys []string) ([]coord.Record, error) {
	return through(ctx, w, "Get", func(ctx context.Context) ([]coord.Record, error) { return w.Store.Get(ctx, keys) })
}

// List implements coord.Store.
func (w *Wire) List(ctx context.Context, prefix, after string) ([]coord.Record, string, error) {
	type page struct {
		records []coord.Record
		next    string
	}
	p, err := through(ctx, w, "List", func(ctx context.Context) (p page, err error) {
		p.records, p.next, err = w.Store.List(ctx, prefix, after)
		return p, err
	})
	return p.records, p.next, err
}

// Commit implements coord.Store.
func (w *Wire) Commit(ctx context.Context, t coord.Txn) error {
	return w.through(ctx, "Commit", func(ctx context.Context) error { return w.Store.Commit(ctx, t) })
}
