package app

import (
	"os"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/state"
	"github.com/weir-gitops/weir/status/board"
)

// measure registers functions with the metrics for the figures that are in no report.
func (a *App) measure() {
	if a.dispatcher != nil {
		a.metrics.Coordination(a.dispatcher.View, func() time.Duration {
			if s := a.crew.Keeper().Session(); s != nil {
				return s.Left()
			}
			return 0
		})
	}
	a.metrics.Queue("history", a.board.Unwritten)
	a.metrics.Queue("statuses", func() int {
		if c := a.gen.Load().commits; c != nil {
			return c.Pending()
		}
		return 0
	})
	a.metrics.Queue("notifications", func() int {
		if n := a.gen.Load().notifier; n != nil {
			return n.Waiting()
		}
		return 0
	})
	count := func(is func(board.TargetState) bool) func() int {
		return func() int {
			return len(slices.DeleteFunc(a.board.Targets(), func(t board.TargetState) bool { return !is(t) }))
		}
	}
	a.metrics.Queue("renders", count(func(t board.TargetState) bool { return !t.Rendering.Since.IsZero() }))
	a.metrics.Queue("passes", count(func(t board.TargetState) bool { return !t.Unanswered.IsZero() }))
	a.metrics.HistorySize(func() int64 {
		info, err := os.Stat(a.state.path(state.File))
		if err != nil {
			return 0
		}
		return info.Size()
	})
}

// know registers the names of sources and targets with the metrics.
func (g *generation) know(sources []board.Source, targets []board.Target) {
	var s, t []string
	for _, source := range sources {
		s = append(s, source.Name)
	}
	for _, target := range targets {
		t = append(t, target.Name)
	}
	g.app.metrics.Know(s, t)
}

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

// sinceWhen returns the time that the age of history is measured from. Until AWS has reported the
// time, it returns the zero time, because a clock that runs ahead would remove the whole history.
func (a *App) sinceWhen() time.Time {
	if m := a.clock.Moment(); m.Heard {
		return m.Earliest
	}
	return time.Time{}
}
