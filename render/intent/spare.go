package intent

import (
	"context"
	"sync/atomic"
)

type spareKey struct{}

// Sparing bounds for how many renders the Questions that are asked with the context may be
// answered by a build: all others stay unknown, unless the answer is remembered.
func Sparing(ctx context.Context, builds int32) context.Context {
	left := &atomic.Int32{}
	left.Store(builds)
	return context.WithValue(ctx, spareKey{}, left)
}

// Spare takes one of the builds, and reports whether there was one left.
func Spare(ctx context.Context) bool {
	left, bounded := ctx.Value(spareKey{}).(*atomic.Int32)
	return !bounded || left.Add(-1) >= 0
}
