package awscloud

import (
	"context"
	"sync"

	"github.com/weir-gitops/weir/reconciler/observed"
	"golang.org/x/sync/errgroup"
)

// each reads several things beside each other, each with a call of its own.
func each[K any](ctx context.Context, keys []K, read func(context.Context, K) error) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallel)
	for _, key := range keys {
		g.Go(func() error { return read(gctx, key) })
	}
	return g.Wait()
}

// noting is a read for each and for poll: what came is taken by one at a time, and
// what may not be read is noted as unread.
func noting[K comparable, V any](unread *map[K]*observed.Error, read func(context.Context, K) (V, error), take func(K, V)) func(context.Context, K) error {
	var mu sync.Mutex
	return func(ctx context.Context, key K) error {
		v, err := read(ctx, key)
		mu.Lock()
		defer mu.Unlock()
		if e := refused(err); e != nil {
			*unread = note(*unread, key, e)
			return nil
		}
		if err == nil {
			take(key, v)
		}
		return err
	}
}
