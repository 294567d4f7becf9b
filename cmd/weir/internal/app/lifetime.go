package app

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// signal wakes its receiver once, even if it is sent several times before it is received.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

// send sends the signal. It never blocks.
func (s signal) send() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// spawner starts a goroutine, like lifetime.spawn.
type spawner func(ctx context.Context, name string, run func(context.Context) error) (stop func(context.Context) error)

// lifetime starts goroutines. It ends started goroutines and closes opened resources, the last first.
type lifetime struct {
	cleanups []cleanup
	// fatal receives the errors of goroutines that ended by themselves.
	fatal chan error
}

// cleanup is a step of Stop.
type cleanup struct {
	name  string
	share time.Duration
	run   func(context.Context) error
}

// onStop adds a step that Stop runs before all earlier steps.
func (l *lifetime) onStop(name string, share time.Duration, run func(context.Context) error) {
	l.cleanups = append(l.cleanups, cleanup{name, share, run})
}

// spawn starts a goroutine, and returns a function that ends it and waits for it. A goroutine that ends
// with an error by itself ends the daemon. Several callers may wait.
func (l *lifetime) spawn(ctx context.Context, name string, run func(context.Context) error) (stop func(context.Context) error) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	var err error
	go func() {
		defer close(done)
		err = run(ctx)
		if err != nil && ctx.Err() == nil {
			l.fatal <- fmt.Errorf("%s: %w", name, err)
		}
	}()
	return func(bound context.Context) error {
		cancel()
		select {
		case <-done:
			return err
		case <-bound.Done():
			return fmt.Errorf("%s did not stop in time: %w", name, bound.Err())
		}
	}
}

// Stop runs the cleanups, the last first. It continues after a failure, returns all failures, and does
// nothing when called again.
func (l *lifetime) Stop(ctx context.Context) error {
	var errs []error
	for i := len(l.cleanups) - 1; i >= 0; i-- {
		bound, cancel := l.boundOf(ctx, i)
		err := l.cleanups[i].run(bound)
		cancel()
		if err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", l.cleanups[i].name, err))
		}
	}
	l.cleanups = nil
	return errors.Join(errs...)
}

// boundOf returns the context of a step of Stop. It leaves later steps their shares. The step has its own
// share even if ctx has ended.
func (l *lifetime) boundOf(ctx context.Context, step int) (context.Context, context.CancelFunc) {
	deadline, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	for _, later := range l.cleanups[:step] {
		deadline = deadline.Add(-later.share)
	}
	if least := time.Now().Add(max(l.cleanups[step].share, leastShare)); deadline.Before(least) {
		deadline = least
	}
	return context.WithDeadline(context.WithoutCancel(ctx), deadline)
}
