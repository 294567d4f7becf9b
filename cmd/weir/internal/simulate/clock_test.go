package simulate

import (
	"math/rand/v2"
	"time"
)

// skewed is AWS's clock: the machine's of the world, and what that one is behind.
type skewed struct{ w *World }

// Now implements awsemu.Clock.
func (s skewed) Now() time.Time { return s.w.aheadOf() }

// aheadOf is what time it is by AWS.
func (w *World) aheadOf() time.Time { return time.Now().Add(w.ahead).UTC() }

// skew is what the machine's clock is wrong by at first: not at all, or up to some hours.
func (w *World) skew() time.Duration {
	r := rand.New(rand.NewPCG(w.o.Seed, 1<<43)) //nolint:gosec // It is repeated on purpose.
	most := []time.Duration{0, 0, 10 * time.Minute, 5 * time.Hour}[r.IntN(4)]
	return time.Duration((2*r.Float64() - 1) * float64(most)).Round(time.Second)
}

// freeze has all machines of daemons stand still for a while, as virtual machines do that
// are moved or suspended: their processes go on as if nothing were, and their clocks are
// behind from then on. AWS, Git and people do not wait for them.
func (w *World) freeze(d time.Duration) {
	w.ahead += d
	w.frozen = true
	defer func() { w.frozen = false }()
	for len(w.events) > 0 && w.events[0].at.Before(time.Now().Add(d)) {
		e := w.nextEvent()
		e.do()
	}
	for i := range w.events {
		w.events[i].at = w.events[i].at.Add(-d)
	}
}

// set has somebody set the machine's clock while its processes run: right, or back or ahead
// by minutes or hours.
func (w *World) set(r *rand.Rand) {
	most := []time.Duration{0, 10 * time.Minute, 10 * time.Hour}[r.IntN(3)]
	w.wall = w.ahead + time.Duration((2*r.Float64()-1)*float64(most)).Round(time.Second)
	w.trace("the machine's clock is %v ahead of AWS's", w.wall-w.ahead)
}
