package intent

import (
	"context"
	"sync/atomic"
)

type spareKey struct{}

// Sparing returns a context that limits the number of renders that may be built again to answer Questions.
// Without a build, a Question is answered only from remembered places.
func Sparing(ctx context.Context, builds int32) context.Context {
	left := &atomic.Int32{}
	left.Store(builds)
	return context.WithValue(ctx, spareKey{}, left)
}

// Spare takes one of the builds. It returns false if none is left.
func Spare(ctx context.Context) bool {
	left, bounded := ctx.Value(spareKey{}).(*atomic.Int32)
	return !bounded || left.Add(-1) >= 0
}
