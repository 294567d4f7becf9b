package awscloud

import (
	"context"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/aws/smithy-go/middleware"
	"github.com/weir-gitops/weir/reconciler/plan"
	"golang.org/x/time/rate"
)

// unlimited as a share turns the waiting off.
const unlimited = math.MaxFloat64

// limit is a token bucket: its size, and what flows in each second.
type limit struct{ burst, refill float64 }

// writeLimits are AWS's own limits for the calls that weir writes with, of which
// it takes its share. EC2 publishes them ("Request throttling for the Amazon EC2
// API"); those of Auto Scaling and EKS are unpublished and estimated low.
var writeLimits = map[string]limit{
	"ec2:CreateLaunchTemplate":        {50, 5},
	"ec2:DeleteLaunchTemplate":        {50, 5},
	"ec2:CreateLaunchTemplateVersion": {100, 5},
	"ec2:ModifyLaunchTemplate":        {100, 5},
	"ec2:CreateTags":                  {100, 10},
	"ec2:DeleteTags":                  {100, 10},
	// EKS makes roles and profiles for each new nodegroup, and IAM throttles it
	// when many are made at once.
	"eks:CreateNodegroup": {8, 4},
	// Three writes of parameters a second are documented for an account.
	"ssm:PutParameter":    {10, 3},
	"ssm:DeleteParameter": {10, 3},
}

// Limits where writeLimits has none. Reads are weir's batches: a page each for a
// hundred pools, so they may take more than a share.
var (
	otherWrites = limit{80, 20}
	reads       = limit{200, 20}
)

func isRead(operation string) bool {
	for _, prefix := range []string{"Describe", "List", "Get"} {
		if strings.HasPrefix(operation, prefix) {
			return true
		}
	}
	return false
}

// throttle holds a token bucket for each API. An answer that says "too fast"
// halves what flows into the bucket; each success afterwards gives a little back.
type throttle struct {
	share float64
	now   func() time.Time

	mu      sync.Mutex
	buckets map[string]*bucket
}

type bucket struct {
	limiter *rate.Limiter
	full    rate.Limit // what flows in when AWS does not complain
}

const (
	// shrinkTo is the part of a full flow below which no throttling pushes.
	shrinkTo = 1.0 / 32
	// recoverBy is what one success gives back, as a part of the full flow.
	recoverBy = 1.0 / 50
)

func newThrottle(share float64, now func() time.Time) *throttle {
	return &throttle{share: share, now: now, buckets: map[string]*bucket{}}
}

func (t *throttle) bucket(service, operation string) *bucket {
	key := service + ":" + operation
	t.mu.Lock()
	defer t.mu.Unlock()
	b, ok := t.buckets[key]
	if !ok {
		l, share := reads, 1.0
		if !isRead(operation) {
			l, share = otherWrites, t.share
			if w, listed := writeLimits[key]; listed {
				l = w
			}
		}
		full := rate.Limit(l.refill * share)
		burst := int(max(1, l.burst*share))
		if t.share == unlimited {
			full, burst = rate.Inf, 1
		}
		b = &bucket{limiter: rate.NewLimiter(full, burst), full: full}
		t.buckets[key] = b
	}
	return b
}

// slower halves the flow and takes what the bucket still holds: AWS's own is empty.
func (t *throttle) slower(b *bucket) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if b.full == rate.Inf {
		return
	}
	b.limiter.SetLimitAt(now, max(b.limiter.Limit()/2, b.full*shrinkTo))
	if held := int(b.limiter.TokensAt(now)); held > 0 {
		b.limiter.AllowN(now, held)
	}
}

func (t *throttle) faster(b *bucket) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if have := b.limiter.Limit(); have < b.full {
		b.limiter.SetLimitAt(t.now(), min(b.full, have+b.full*recoverBy))
	}
}

// install puts the bucket behind the retryer, so each attempt takes a token.
func (t *throttle) install(stack *middleware.Stack) error {
	return stack.Finalize.Insert(middleware.FinalizeMiddlewareFunc("weir:throttle", t.handle), "weir:count-attempts", middleware.Before)
}

func (t *throttle) handle(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
	service, operation := names(ctx)
	b := t.bucket(service, operation)
	if err := b.limiter.Wait(ctx); err != nil {
		return middleware.FinalizeOutput{}, middleware.Metadata{}, &waitError{err}
	}
	out, meta, err := next.HandleFinalize(ctx, in)
	switch {
	case err == nil:
		t.faster(b)
	case classify(service, operation, err).Kind == plan.Throttled:
		t.slower(b)
	}
	return out, meta, err
}

// waitError says that a call was never sent, because its turn would have come
// after the context's end.
type waitError struct{ err error }

func (e *waitError) Error() string { return "wait for the rate limit: " + e.err.Error() }
func (e *waitError) Unwrap() error { return e.err }
