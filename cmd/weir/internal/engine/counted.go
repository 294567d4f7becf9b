package engine

import (
	"context"
	"errors"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// counted reports each call to Called.
type counted struct {
	coord.Store
	called Called
}

func through[T any](c *counted, operation string, do func() (T, error)) (T, error) {
	began := time.Now()
	out, err := do()
	result := "success"
	var moved *coord.Moved
	switch {
	case errors.As(err, &moved), errors.Is(err, coord.ErrLost), errors.Is(err, coord.ErrConflict), errors.Is(err, coord.ErrHeld):
		result = "refused"
	case err != nil:
		result = "error"
	}
	c.called(operation, result, time.Since(began))
	return out, err
}

func (c *counted) Enter(ctx context.Context, random string, m coord.Member, ttl time.Duration) (coord.Entered, error) {
	return through(c, "Enter", func() (coord.Entered, error) { return c.Store.Enter(ctx, random, m, ttl) })
}

func (c *counted) Renew(ctx context.Context, session string, m *coord.Member) (time.Duration, error) {
	return through(c, "Renew", func() (time.Duration, error) { return c.Store.Renew(ctx, session, m) })
}

func (c *counted) End(ctx context.Context, session string) error {
	_, err := through(c, "End", func() (struct{}, error) { return struct{}{}, c.Store.End(ctx, session) })
	return err
}

func (c *counted) Poll(ctx context.Context) (coord.Poll, error) {
	return through(c, "Poll", func() (coord.Poll, error) { return c.Store.Poll(ctx) })
}

func (c *counted) Owners(ctx context.Context) ([]coord.Owner, error) {
	return through(c, "Owners", func() ([]coord.Owner, error) { return c.Store.Owners(ctx) })
}

func (c *counted) OwnersOf(ctx context.Context, keys []string) ([]coord.Owner, error) {
	return through(c, "OwnersOf", func() ([]coord.Owner, error) { return c.Store.OwnersOf(ctx, keys) })
}

func (c *counted) Get(ctx context.Context, keys []string) ([]coord.Record, error) {
	return through(c, "Get", func() ([]coord.Record, error) { return c.Store.Get(ctx, keys) })
}

func (c *counted) List(ctx context.Context, prefix, after string) (page []coord.Record, next string, err error) {
	page, err = through(c, "List", func() (page []coord.Record, err error) {
		page, next, err = c.Store.List(ctx, prefix, after)
		return page, err
	})
	return page, next, err
}

func (c *counted) Commit(ctx context.Context, t coord.Txn) error {
	_, err := through(c, "Commit", func() (struct{}, error) { return struct{}{}, c.Store.Commit(ctx, t) })
	return err
}
