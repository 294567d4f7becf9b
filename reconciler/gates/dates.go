package gates

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/state"
)

// suspends reports whether a suspension is in force. An unsure suspension lasts for its requested
// time, counted from the request to this process. If another process got the request, it lasts
// until AWS gives the time.
func (b *Recorder) suspends(s Suspension, now clock.Moment) bool {
	if now.Earliest.Before(s.Until) || s.Unsure == 0 {
		return now.Earliest.Before(s.Until)
	}
	past, mine := b.past(s, now)
	return !mine || past < s.Unsure
}

// asking is a moment by a suspension's clock, and by this process's ticks.
type asking struct {
	since time.Time
	ticks time.Duration
}

// past returns the time since an unsure suspension was requested, false if another process received
// the request.
func (b *Recorder) past(s Suspension, now clock.Moment) (time.Duration, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	mine := b.asked[s.key()]
	return now.Ticks - mine.ticks, !mine.since.IsZero() && mine.since.Equal(s.Since)
}

// dated gives a suspension that is unsure its end, once AWS was heard some time after it was
// asked for, as answers that come before may be older than it. It is never made shorter.
// A date from another process of this machine is wrong by at most as much as the machine's
// clock is behind. The error of another machine's date is unknown, so such a suspension
// lasts from now on.
func (b *Recorder) dated(s *Suspension, now clock.Moment) bool {
	past, mine := b.past(*s, now)
	if !now.Heard || mine && now.HeardAt-now.Ticks+past < early {
		return false
	}
	_, alone := b.db.(*state.DB)
	end := now.Latest.Add(s.Unsure)
	switch {
	case mine:
		end = end.Add(-past)
	case alone:
		end = s.Until.Add(now.Latest.Sub(now.Wall))
	}
	if end.Sub(s.Until) > time.Minute {
		s.Until = end
	}
	s.Unsure = 0
	return true
}

// keepDates records the ends of suspensions, except suspensions that have ended or were requested
// again. If it cannot write an end, the next reader finds it out again.
func (b *Recorder) keepDates(all []Suspension) {
	if len(all) == 0 {
		return
	}
	_ = b.db.Update(func(tx *state.Tx) error {
		for _, s := range all {
			have, ok, err := suspensions.Get(tx, s.key())
			if err != nil {
				return err
			}
			if !ok || !have.Since.Equal(s.Since) {
				continue
			}
			if err := suspensions.Put(tx, s.key(), s); err != nil {
				return err
			}
		}
		return nil
	})
}
