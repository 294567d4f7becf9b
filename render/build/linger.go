package build

import (
	"context"
	"fmt"
	"sync"
)

// maxAbandoned is how many builds may go on after they were given up. kustomize
// cannot be stopped, only left: its goroutine ends when it reads a file or is
// done. While so many are left, no new build starts, so that a repository that
// is slow on purpose takes no more than their memory and time, however often it
// changes. The cost bounds keep honest and hostile trees away from here; this is
// for what they miss.
const maxAbandoned = 4

// abandoned are the builds of the process that were given up and still run.
var abandoned = newLingering(maxAbandoned)

// errCrowded is that errTooSlow is the fault of other builds.
var errCrowded = fmt.Errorf("%w: builds that were given up still run", errTooSlow)

// lingering counts what goes on after it was given up.
type lingering struct {
	limit int

	mu    sync.Mutex
	count int
	fewer chan struct{} // closed and made anew when count falls
}

func newLingering(limit int) *lingering {
	return &lingering{limit: limit, fewer: make(chan struct{})}
}

// wait returns as soon as fewer than the limit go on, or with the cause of ctx's
// end.
func (l *lingering) wait(ctx context.Context) error {
	for {
		l.mu.Lock()
		free, fewer := l.count < l.limit, l.fewer
		l.mu.Unlock()
		if free {
			return nil
		}
		select {
		case <-fewer:
		case <-ctx.Done():
			if isTooSlow(context.Cause(ctx)) {
				return errCrowded
			}
			return context.Cause(ctx)
		}
	}
}

func (l *lingering) add() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count++
}

func (l *lingering) remove() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.count--
	close(l.fewer)
	l.fewer = make(chan struct{})
}
