package access

import (
	"maps"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// The rate limits: a burst, and then one attempt per interval. failedLimit applies to wrong
// tokens and secrets by address, actionLimit to actions by caller, and networkLimit to actions by address.
var (
	failedLimit  = limit{10, 6 * time.Second}
	actionLimit  = limit{30, 2 * time.Second}
	networkLimit = limit{60, time.Second}
)

// maxBuckets is the maximum number of buckets in memory. Beyond that, new keys share one bucket.
const maxBuckets = 10_000

type limit struct {
	burst int
	every time.Duration
}

// limiter counts attempts by key.
type limiter struct {
	limit
	now func() time.Time

	mu      sync.Mutex
	buckets map[string]*rate.Limiter
	// sweepAbove is the number of buckets above which idle buckets are deleted.
	sweepAbove int
}

// leastSweep is the minimum of sweepAbove.
const leastSweep = 100

func newLimiter(l limit, now func() time.Time) *limiter {
	return &limiter{limit: l, now: now, buckets: map[string]*rate.Limiter{}, sweepAbove: leastSweep}
}

// idle reports whether a bucket is full again, so that it counts as unused.
func (l *limiter) idle(b *rate.Limiter, now time.Time) bool {
	return b.TokensAt(now) >= float64(l.burst)
}

// bucket returns the bucket of a key, and creates it if needed. If there are too many buckets, new keys
// share one. The caller holds the lock.
func (l *limiter) bucket(key string) *rate.Limiter {
	if b := l.buckets[key]; b != nil {
		return b
	}
	if len(l.buckets) >= l.sweepAbove {
		now := l.now()
		maps.DeleteFunc(l.buckets, func(_ string, b *rate.Limiter) bool { return l.idle(b, now) })
		l.sweepAbove = min(max(leastSweep, 2*len(l.buckets)), maxBuckets)
	}
	if len(l.buckets) >= maxBuckets && key != "" {
		return l.bucket("") // the shared bucket
	}
	b := rate.NewLimiter(rate.Every(l.every), l.burst)
	l.buckets[key] = b
	return b
}

// left returns the time that a caller must wait before the next attempt, or 0.
func (l *limiter) left(key string) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	have := l.bucket(key).TokensAt(l.now())
	if have >= 1 {
		return 0
	}
	return time.Duration((1 - have) * float64(l.every))
}

// count counts an attempt.
func (l *limiter) count(key string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.bucket(key).AllowN(l.now(), 1)
}

// try counts an attempt and returns 0, or returns the time to wait if there were too many.
func (l *limiter) try(key string) time.Duration {
	if wait := l.left(key); wait > 0 {
		return wait
	}
	l.count(key)
	return 0
}

// network returns the address under which attempts are counted. For IPv6 it is the /64 network, because one
// machine can use all of its addresses.
func network(ip netip.Addr) string {
	if ip.Is6() {
		if p, err := ip.Prefix(64); err == nil {
			return p.String()
		}
	}
	return ip.String()
}
