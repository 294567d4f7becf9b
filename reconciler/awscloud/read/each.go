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

// Each makes one call for each key, several in parallel.
func Each[K any](ctx context.Context, keys []K, read func(context.Context, K) error) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(sdk.Parallel)
	for _, key := range keys {
		g.Go(func() error { return read(gctx, key) })
	}
	return g.Wait()
}

// Noting returns a read function for Each and sdk.PollSpare. It passes results to take one at a time, and notes
// denied reads as unread.
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

// Denied returns the error of a read if AWS denied the permission. The resource is then noted as unread, and
// reading continues. Any other error ends the pass.
func Denied(err error) *observed.Error {
	var e *observed.Error
	if errors.As(err, &e) && e.Kind == observed.Denied {
		return e
	}
	return nil
}

// Note adds an error to a map of an Unread. It copies the map, because a returned state may share it.
func Note[K comparable](m map[K]*observed.Error, key K, err *observed.Error) map[K]*observed.Error {
	m = Copied(m)
	m[key] = err
	return m
}

// Copied returns a copy of a map, never nil.
func Copied[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		return map[K]V{}
	}
	return maps.Clone(m)
}
