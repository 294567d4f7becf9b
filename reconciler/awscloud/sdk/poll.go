package sdk

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// Parallel is the number of calls of one kind that run concurrently.
const Parallel = 8

const (
	// pollsFor is the time in which a pass starts polls of one kind. Steps wait until they end.
	pollsFor = time.Second
	// PollLate bounds the time for which other calls delay a poll. After that, a pass reads one late poll
	// like any other call, so that no poll waits forever.
	PollLate = 3 * time.Minute
)

// PollSpare reads as many things, in order, as spare calls allow. It never waits, and does not fail if AWS cannot
// answer now: things that it does not read keep their known state, and a later pass reads them.
func PollSpare[T any](ctx context.Context, c *Client, service, operation string, about []T, ask func(context.Context, T) error) error {
	var g errgroup.Group
	g.SetLimit(Parallel)
	began := c.Now()
	for _, one := range about {
		if c.Now().Sub(began) >= pollsFor || ctx.Err() != nil {
			break
		}
		paid, spare := c.TakeSpare(ctx, service, operation)
		if !spare {
			break
		}
		g.Go(func() error {
			err := ask(paid, one)
			var e *observed.Error
			if errors.As(err, &e) && e.Kind != observed.Credentials && e.Kind != observed.Cancelled {
				return nil
			}
			return err
		})
	}
	return g.Wait()
}
