package sdk

import (
	"context"
	"math"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// DefaultShare is the fraction of AWS's rate limits that weir uses for its writes, as long as no answer
// shows that other clients use them too. The limits apply to the whole account and region.
const DefaultShare = 1

// unlimited is the share that turns waiting off.
const unlimited = math.MaxFloat64

// LimitOptions configure Limits.
type LimitOptions struct {
	// Share is the fraction of AWS's limits for writes. Zero means DefaultShare.
	Share float64
	Now   func() time.Time // nil: time.Now
	// Sleep waits, or returns the context's error. It defaults to waiting in real time.
	Sleep func(context.Context, time.Duration) error
}

// Limits are client-side token buckets for all accounts and regions that are opened with them. Clients that
// use one account with several roles share its buckets. It is safe for concurrent use.
type Limits struct {
	o         LimitOptions
	mu        sync.Mutex
	throttles map[limitKey]*throttle
	users     map[limitKey]int // number of open clients
}

// limitKey is the account, region and endpoint to which AWS applies its limits.
type limitKey struct{ account, region, endpoint string }

// NewLimits returns unused limits.
func NewLimits(o LimitOptions) *Limits {
	if o.Share == 0 {
		o.Share = DefaultShare
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Sleep == nil {
		o.Sleep = sleep
	}
	return &Limits{o: o, throttles: map[limitKey]*throttle{}, users: map[limitKey]int{}}
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

func (l *Limits) throttleOf(p limitKey) *throttle {
	l.mu.Lock()
	defer l.mu.Unlock()
	t, ok := l.throttles[p]
	if !ok {
		t = newThrottle(l.o)
		l.throttles[p] = t
	}
	l.users[p]++
	return t
}

// SetShare changes the fraction of AWS's limits. Zero means DefaultShare.
func (l *Limits) SetShare(share float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if share == 0 {
		share = DefaultShare
	}
	l.o.Share = share
	for _, t := range l.throttles {
		t.setShare(share)
	}
}

// leave ends one use of limits that the method of returned. The limits are dropped with their last user.
func (l *Limits) leave(p limitKey) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.users[p]--; l.users[p] <= 0 {
		delete(l.users, p)
		delete(l.throttles, p)
	}
}

// limit is a token bucket: its size, and the tokens added every second.
type limit struct{ burst, refill float64 }

// writeLimits has AWS's own limits for weir's writes; weir uses its fraction of them. EC2 publishes them,
// with a bucket for each action ("Request throttling for the Amazon EC2 API"). Auto Scaling has one limit
// for all actions. Neither Auto Scaling nor EKS publishes its limits, so this table has half of the presumed
// ones.
// Assumed of AWS: unpublished-limits.
var writeLimits = map[string]limit{
	"ec2:*":                           {50, 5},
	"ec2:CreateLaunchTemplateVersion": {100, 5},
	"ec2:ModifyLaunchTemplate":        {100, 5},
	"ec2:CreateTags":                  {100, 10},
	"ec2:DeleteTags":                  {100, 10},
	"ec2:RunInstances":                {5, 2}, // AWS counts dry runs too; advisory bounds weir's
	"autoscaling:*":                   {40, 5},
	"eks:*":                           {5, 1},
	// EKS makes roles and profiles for each new nodegroup, and IAM throttles that.
	"eks:CreateNodegroup": {4, 1},
	// AWS documents three writes of parameters per second and account.
	"ssm:PutParameter":    {10, 3},
	"ssm:DeleteParameter": {10, 3},
}

// readLimits has the limits for weir's reads, which are few: a page for every hundred pools. So weir uses
// everything that EC2 documents. Reads have their own buckets, so that they and writes never wait for each
// other.
var readLimits = map[string]limit{
	"ec2:*":         {100, 20}, // weir's reads have filters or pages
	"autoscaling:*": {60, 6},
	"eks:*":         {100, 10},
	"ssm:*":         {30, 20},
	"iam:*":         {30, 10},
	"cloudwatch:*":  {8, 3}, // AWS allows 9 per second
}

// advisory lists writes that weir makes only as dry runs, with the fraction of AWS's limit that they may use
// regardless of aws.shareOfLimits. The rest stays for clients that launch machines, such as an autoscaler:
// without a dry run a plan misses a finding, but without a launch pods wait.
var advisory = map[string]float64{"ec2:RunInstances": 0.4}

// otherLimit is the limit for operations that are not listed.
var otherLimit = limit{40, 10}

// together lists the services with one limit for all of their actions.
var together = map[string]bool{"autoscaling": true}

// urgent lists rare calls that must not be delayed: they end the replacement of machines, or extend or end
// the wait of a machine. They take a token without waiting, so later calls wait longer.
var urgent = map[string]bool{"CancelInstanceRefresh": true, "RollbackInstanceRefresh": true, "RecordLifecycleActionHeartbeat": true, "CompleteLifecycleAction": true}

// throttle has the token buckets of one account and region. A throttling error halves the flow into the
// call's bucket, and each later success restores a little.
type throttle struct {
	o LimitOptions

	mu      sync.Mutex
	buckets map[string]*bucket
}

type bucket struct {
	limiter *rate.Limiter
	of      limit      // AWS's limit
	shared  bool       // weir uses a fraction of it
	full    rate.Limit // flow if AWS does not throttle
	// halvings counts how often the flow was halved or the bucket emptied. halved is the time of the last
	// halving of the flow.
	halvings int
	halved   time.Time
	// complained is the time of AWS's last throttling error.
	complained time.Time
}

const (
	// shrinkTo is the minimum flow under throttling, as a fraction of the full flow.
	shrinkTo = 1.0 / 32
	// recoverBy is the amount that one success restores, as a fraction of the current flow. From half to
	// full takes ninety successes. So if other clients leave weir less than its fraction, about one call in
	// ninety is throttled.
	recoverBy = 1.0 / 128
	// calmAfter is the time after the last throttling error at which the flow is full again.
	calmAfter = time.Hour
)

func newThrottle(o LimitOptions) *throttle {
	return &throttle{o: o, buckets: map[string]*bucket{}}
}

// bucket returns the token bucket of an operation, and makes it at first use. Operations that share a limit
// of AWS share a bucket.
func (t *throttle) bucket(service, operation string) *bucket {
	key, l, shared := service+":"+operation, otherLimit, !isRead(operation)
	limits := writeLimits
	if !shared {
		limits = readLimits
	}
	if named, ok := limits[key]; ok {
		l = named
	} else if all, ok := limits[service+":*"]; ok {
		l = all
	}
	if part, ok := advisory[key]; ok {
		l.burst, l.refill = l.burst*part, l.refill*part
	}
	if together[service] {
		key = service + ":write"
		if isRead(operation) {
			key = service + ":read"
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	b, ok := t.buckets[key]
	if !ok {
		b = &bucket{of: l, shared: shared}
		full, burst := b.sized(t.o.Share)
		b.limiter, b.full = rate.NewLimiter(full, burst), full
		t.buckets[key] = b
	}
	return b
}

// sized returns the flow into a bucket at a share, and the bucket's size.
func (b *bucket) sized(share float64) (full rate.Limit, burst int) {
	switch {
	case share == unlimited:
		return rate.Inf, 1
	case !b.shared:
		share = 1
	}
	return rate.Limit(b.of.refill * share), int(max(1, b.of.burst*share))
}

// setShare resizes the buckets. A flow that throttling has reduced stays reduced.
func (t *throttle) setShare(share float64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.o.Share = share
	now := t.o.Now()
	for _, b := range t.buckets {
		full, burst := b.sized(share)
		if have := b.limiter.Limit(); have == b.full || have > full {
			b.limiter.SetLimitAt(now, full)
		}
		b.limiter.SetBurstAt(now, burst)
		b.full = full
	}
}

// acquire waits for a token, first come first served, and returns how often the flow had been halved by
// then. If ctx would end first, it takes none.
func (t *throttle) acquire(ctx context.Context, b *bucket) (halvings int, err error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	t.mu.Lock()
	now := t.o.Now()
	if b.limiter.Limit() < b.full && now.Sub(b.halved) >= calmAfter {
		b.limiter.SetLimitAt(now, b.full)
	}
	turn := b.limiter.ReserveN(now, 1)
	delay := turn.DelayFrom(now)
	t.mu.Unlock()
	if delay > 0 {
		deadline, limited := ctx.Deadline()
		if limited && time.Until(deadline) < delay {
			err = context.DeadlineExceeded
		} else {
			err = t.o.Sleep(ctx, delay)
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		turn.CancelAt(t.o.Now())
	}
	return b.halvings, err
}

// forceToken takes a token even if the bucket is empty.
func (t *throttle) forceToken(b *bucket) (halvings int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b.limiter.ReserveN(t.o.Now(), 1)
	return b.halvings
}

// trySpare takes a token if the bucket is more than half full, and reports whether it did.
func (t *throttle) trySpare(b *bucket) (halvings int, ok bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.o.Now()
	kept := float64(b.limiter.Burst() / 2)
	return b.halvings, b.full == rate.Inf || b.limiter.TokensAt(now) >= kept+1 && b.limiter.AllowN(now, 1)
}

// awaitSpare waits for a spare token.
func (t *throttle) awaitSpare(ctx context.Context, b *bucket) (halvings int, err error) {
	for {
		halvings, ok := t.trySpare(b)
		if ok {
			return halvings, nil
		}
		if err := t.o.Sleep(ctx, max(t.until(b, 1+float64(b.limiter.Burst()/2)), time.Millisecond)); err != nil {
			return 0, err
		}
	}
}

// until returns the time until a bucket has the given number of tokens, if no call takes any.
func (t *throttle) until(b *bucket, tokens float64) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if missing := tokens - b.limiter.TokensAt(t.o.Now()); missing > 0 && b.full != rate.Inf {
		return time.Duration(missing / float64(b.limiter.Limit()) * float64(time.Second))
	}
	return 0
}

// slower halves the flow and empties the bucket, because AWS's own bucket is empty. The answer to a call
// that was sent before the last halving has no effect. If reads are throttled for the first time in a long
// time, their bucket may only have been fuller than AWS's at the start. Then the bucket is emptied, and the
// flow stays.
func (t *throttle) slower(b *bucket, sentAt int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if b.full == rate.Inf || sentAt != b.halvings {
		return
	}
	now := t.o.Now()
	held := int(b.limiter.TokensAt(now))
	first := now.Sub(b.complained) >= calmAfter
	b.halvings++
	if b.complained = now; b.shared || held < 1 || !first {
		b.halved = now
		b.limiter.SetLimitAt(now, max(b.limiter.Limit()/2, b.full*shrinkTo))
	}
	if held > 0 {
		b.limiter.AllowN(now, held)
	}
}

func (t *throttle) faster(b *bucket) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if have := b.limiter.Limit(); have < b.full {
		b.limiter.SetLimitAt(t.o.Now(), min(b.full, have*(1+recoverBy)))
	}
}
