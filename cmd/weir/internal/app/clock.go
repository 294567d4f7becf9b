package app

import "time"

// wrongClock is the difference from which on the log says that the clock is wrong.
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

// sinceWhen is what the age of history is measured by: the beginning of time until AWS
// has said what time it is, because a clock that runs ahead would remove all of it.
func (a *App) sinceWhen() time.Time {
	if m := a.clock.Moment(); m.Heard {
		return m.Earliest
	}
	return time.Time{}
}
