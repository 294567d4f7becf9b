package read

import (
	"context"
	"errors"
	"maps"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// Each reads several things in parallel, with one call each.
func Each[K any](ctx context.Context, keys []K, read func(context.Context, K) error) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(sdk.Parallel)
	for _, key := range keys {
		g.Go(func() error { return read(gctx, key) })
	}
	return g.Wait()
}

// Noting is a read for Each and for sdk.Poll: what came is taken by one at a time, and
// what may not be read is noted as unread.
func Noting[K comparable, V any](unread *map[K]*observed.Error, read func(context.Context, K) (V, error), take func(K, V)) func(context.Context, K) error {
	var mu sync.Mutex
	return func(ctx context.Context, key K) error {
		v, err := read(ctx, key)
		mu.Lock()
		defer mu.Unlock()
		if e := Denied(err); e != nil {
			*unread = Note(*unread, key, e)
			return nil
		}
		if err == nil {
			take(key, v)
		}
		return err
	}
}

// Denied returns a read's error if AWS denied it for want of a permission: what
// was to be read is then noted as unread, and reading continues. Any other
// failure ends the pass.
func Denied(err error) *observed.Error {
	var e *observed.Error
	if errors.As(err, &e) && e.Kind == observed.Denied {
		return e
	}
	return nil
}

// Note puts a refusal into a map of an Unread. The map may belong to a state that
// was handed out, so it is copied.
func Note[K comparable](m map[K]*observed.Error, key K, err *observed.Error) map[K]*observed.Error {
	m = Copied(m)
	m[key] = err
	return m
}

// Copied is a copy of a map that can be written to.
func Copied[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	return maps.Clone(m)
}
