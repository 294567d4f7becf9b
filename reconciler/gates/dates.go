package gates

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/state"
)

// suspends reports whether a suspension is in force. An unsure suspension lasts for its requested duration,
// counted from the request to this process. If another process received the request, it lasts until AWS
// gives the time.
func (b *Recorder) suspends(s Suspension, now clock.Moment) bool {
	if now.Earliest.Before(s.Until) || s.Unsure == 0 {
		return now.Earliest.Before(s.Until)
	}
	past, mine := b.past(s, now)
	return !mine || past < s.Unsure
}

// asking is the moment of a request, as the suspension's start and as this process's tick count.
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

// dated sets the end of an unsure suspension as soon as AWS gave its time at least 5 minutes after the
// request. Earlier answers may be older than the request. dated never shortens a suspension. A date from
// another process of this machine is wrong by at most the lag of the machine's clock. The error of another
// machine's date is unknown, so such a suspension lasts its full duration from now.
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

// keepDates stores the ends of suspensions, except those that have ended or were requested again. If it
// cannot write an end, the next reader determines it again.
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
