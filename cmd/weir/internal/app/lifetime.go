package app

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// signal wakes its receiver once, however often it is sent before the receiver looks.
type signal chan struct{}

func newSignal() signal { return make(signal, 1) }

// send never blocks.
func (s signal) send() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// spawner starts a goroutine, as lifetime.spawn does.
type spawner func(ctx context.Context, name string, run func(context.Context) error) (stop func(context.Context) error)

// lifetime starts goroutines, and ends what was started and closes what was opened, the last first.
type lifetime struct {
	cleanups []cleanup
	// fatal gets the errors of goroutines that ended by themselves.
	fatal chan error
}

// cleanup is a named step of Stop.
type cleanup struct {
	name  string
	share time.Duration
	run   func(context.Context) error
}

// onStop adds a step that Stop runs before the steps that were added earlier.
func (l *lifetime) onStop(name string, share time.Duration, run func(context.Context) error) {
	l.cleanups = append(l.cleanups, cleanup{name, share, run})
}

// spawn starts a goroutine and returns what ends it and waits for it. A
// goroutine that ends with an error by itself ends the daemon. Several may wait.
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

// Stop ends what Start started and closes what New opened, the last first. It continues after a
// failure, returns all failures, and does nothing the second time.
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

// boundOf is the context of a step of Stop: it leaves the steps after it their
// shares, and has its own though ctx may have ended.
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
