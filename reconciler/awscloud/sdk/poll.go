package sdk

import (
	"context"
	"errors"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// Parallel is how many calls of one kind run beside each other.
const Parallel = 8

const (
	// pollsFor is how long a pass begins with polls of one kind: steps wait behind
	// them.
	pollsFor = time.Second
	// PollLate is how long a poll is put off at most for other calls. Then one a pass
	// is read like all else, however little AWS leaves, so that none waits for ever.
	PollLate = 3 * time.Minute
)

// Poll asks about as many things, in their order, as spare calls allow. It waits for
// none and fails for none that AWS cannot answer now: what it does not read stays as it
// is known, and a later pass asks for it.
func Poll[T any](ctx context.Context, c *Client, service, operation string, about []T, ask func(context.Context, T) error) error {
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
