package membership

import (
	"context"
	"time"
)

// outbox runs the senders of this member's publications in the background.
type outbox struct {
	due chan struct{}
	// senders send waiting publications. They return false if something must be sent again later.
	senders []func(context.Context) (done bool)
}

func newOutbox() *outbox { return &outbox{due: make(chan struct{}, 1)} }

// wake starts the senders.
func (o *outbox) wake() {
	select {
	case o.due <- struct{}{}:
	default:
	}
}

// againAfter is the delay before a failed publication is retried.
const againAfter = time.Second

// run runs the senders until ctx ends.
func (o *outbox) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.due:
		}
		done := true
		for _, send := range o.senders {
			done = send(ctx) && done
		}
		if !done {
			sleep(ctx, againAfter)
			o.wake()
		}
	}
}
