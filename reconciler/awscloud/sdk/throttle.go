package sdk

import (
	"context"
	"math"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// DefaultShare is the part of AWS's rate limits that weir takes for its writes, for as long
// as no answer says that somebody else takes of them too: they belong to the whole account
// and region.
const DefaultShare = 1

// unlimited as a share turns the waiting off.
const unlimited = math.MaxFloat64

// LimitOptions say how much of AWS's rate limits to take, and by which clock.
type LimitOptions struct {
	// Share is the part of AWS's limits for writes, DefaultShare if 0.
	Share float64
	Now   func() time.Time // nil: time.Now
	// Sleep waits, or returns the context's error; nil waits in real time.
	Sleep func(context.Context, time.Duration) error
}

// Limits are token buckets on the client's side, for all accounts and regions
// that are opened with them: who reaches one account by several roles shares
// them. It is safe for concurrent use.
type Limits struct {
	o         LimitOptions
	mu        sync.Mutex
	throttles map[limitKey]*throttle
	users     map[limitKey]int // of those that are open
}

// limitKey is the account, region and endpoint whose calls AWS counts together.
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

func (l *Limits) of(p limitKey) *throttle {
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

// SetShare changes the part of AWS's limits that is taken, 0 for DefaultShare.
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

// leave gives back the limits that of gave: they are forgotten with the last user.
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

// writeLimits holds AWS's own limits for weir's writing calls; weir takes its fraction of them. EC2
// publishes them, a bucket for each action ("Request throttling for the Amazon EC2 API"). Auto
// Scaling has one allowance over all actions and does not publish its size, nor does EKS: for both,
// this table has half of the presumed limit.
// Assumed of AWS: unpublished-limits.
var writeLimits = map[string]limit{
	"ec2:*":                           {50, 5},
	"ec2:CreateLaunchTemplateVersion": {100, 5},
	"ec2:ModifyLaunchTemplate":        {100, 5},
	"ec2:CreateTags":                  {100, 10},
	"ec2:DeleteTags":                  {100, 10},
	"ec2:RunInstances":                {5, 2}, // AWS counts dry runs too; advisory says how many of them weir makes
	"autoscaling:*":                   {40, 5},
	"eks:*":                           {5, 1},
	// EKS makes roles and profiles for each new nodegroup, and IAM throttles it
	// when many are made at once.
	"eks:CreateNodegroup": {4, 1},
	// Three writes of parameters a second are documented for an account.
	"ssm:PutParameter":    {10, 3},
	"ssm:DeleteParameter": {10, 3},
}

// readLimits are the tokens that weir takes for its reads, which are few: a page for
// each hundred pools. So they take all that EC2 documents, and have buckets of their own: a
// wave of the one never waits for the other.
var readLimits = map[string]limit{
	"ec2:*":         {100, 20}, // weir's reads are filtered, or in pages
	"autoscaling:*": {60, 6},
	"eks:*":         {100, 10},
	"ssm:*":         {30, 20},
	"iam:*":         {30, 10},
	"cloudwatch:*":  {8, 3}, // AWS takes 9 a second
}

// advisory are writes that weir makes as dry runs only, with the fraction of AWS's limit that
// they may take beside aws.shareOfLimits. The rest stays for those who launch machines, such
// as an autoscaler: without a dry run a plan misses a finding, without a launch pods wait.
var advisory = map[string]float64{"ec2:RunInstances": 0.4}

// otherLimit is for what the lists do not name.
var otherLimit = limit{40, 10}

// together are the services with one limit for all of their actions.
var together = map[string]bool{"autoscaling": true}

// urgent lists rare calls that must be on time: they end the replacement of machines, and keep or
// end the wait of a machine. They take their token without waiting for it, so the calls behind them
// wait longer.
var urgent = map[string]bool{"CancelInstanceRefresh": true, "RollbackInstanceRefresh": true, "RecordLifecycleActionHeartbeat": true, "CompleteLifecycleAction": true}

func isRead(operation string) bool {
	for _, prefix := range []string{"Describe", "List", "Get"} {
		if strings.HasPrefix(operation, prefix) {
			return true
		}
	}
	return false
}

// throttle holds the token buckets of one account and region. An answer that
// says "too fast" halves what flows into the call's bucket; each success
// afterwards gives a little back.
type throttle struct {
	o LimitOptions

	mu      sync.Mutex
	buckets map[string]*bucket
}

type bucket struct {
	limiter *rate.Limiter
	of      limit      // AWS's
	shared  bool       // weir takes a share of it
	full    rate.Limit // what flows in when AWS does not complain
	// halvings counts how often the flow was halved or the bucket emptied, halved is when
	// the flow was last.
	halvings int
	halved   time.Time
	// complained is the time of AWS's last complaint.
	complained time.Time
}

const (
	// shrinkTo is the part of a full flow below which no throttling pushes.
	shrinkTo = 1.0 / 32
	// recoverBy is the amount that one success gives back, as a part of the present flow. From half
	// to whole takes ninety successes. So if others leave weir less than its fraction, about one
	// call of ninety finds that out.
	recoverBy = 1.0 / 128
	// calmAfter is the time after the last complaint when the flow is whole again.
	calmAfter = time.Hour
)

func newThrottle(o LimitOptions) *throttle {
	return &throttle{o: o, buckets: map[string]*bucket{}}
}

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

// setShare resizes the buckets. A flow that AWS's complaints have reduced stays.
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

// acquire waits for a token, first come first served, and returns how often the flow
// had been halved then. Where ctx ends before it would have one, it takes none.
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

// owe takes a token that the bucket may not hold yet.
func (t *throttle) owe(b *bucket) (halvings int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	b.limiter.ReserveN(t.o.Now(), 1)
	return b.halvings
}

// trySpare takes a token that no other call may want soon, and reports whether it got one:
// above half of what the bucket can hold.
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

// until returns the time until a bucket holds so many tokens, if no call takes any.
func (t *throttle) until(b *bucket, tokens float64) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if missing := tokens - b.limiter.TokensAt(t.o.Now()); missing > 0 && b.full != rate.Inf {
		return time.Duration(missing / float64(b.limiter.Limit()) * float64(time.Second))
	}
	return 0
}

// slower halves the flow and takes what the bucket still holds: AWS's own is
// empty. The answer to a call that was sent before the last halving halves nothing.
// Reads that began with a fuller bucket than AWS's have shown that and no more, if it is
// the first complaint for long: then only the bucket is emptied.
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
