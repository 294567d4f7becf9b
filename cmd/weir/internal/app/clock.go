package app

import "time"

// wrongClock is from where on a clock is so wrong that somebody should know.
const wrongClock = 5 * time.Minute

// checkClock says once that this machine's clock differs from AWS's, and once that it
// is right again.
func (a *App) checkClock() {
	ahead := a.clock.Ahead()
	wrong := ahead.Abs() >= wrongClock
	switch was := a.clockWrong.Swap(wrong); {
	case wrong && !was:
		a.log.Error("this machine's clock differs from AWS's: set it right; suspensions, approvals, windows and join tokens go by AWS's", "ahead", ahead)
	case was && !wrong:
		a.log.Info("this machine's clock is right again")
	}
}

// sinceWhen is what the age of history is measured by: the beginning of time until
// AWS has told what time it is, as a clock that runs ahead would have all of it
// removed.
func (a *App) sinceWhen() time.Time {
	if m := a.clock.Moment(); m.Heard {
		return m.Earliest
	}
	return time.Time{}
}
