package app

import (
	"log/slog"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/status/current"
	"github.com/weir-gitops/weir/status/metrics"
)

// measure registers functions for the metrics that are not based on reports. file contains the records.
func measure(m *metrics.Metrics, on *current.State, now *currentGeneration, file string) {
	m.Queue("history", on.Activity.Unwritten)
	m.Queue("statuses", func() int { return now.publisher().unposted() })
	m.Queue("notifications", func() int { return now.publisher().unsent() })
	count := func(is func(current.TargetState) bool) func() int {
		return func() int {
			return len(slices.DeleteFunc(on.Targets.All(), func(t current.TargetState) bool { return !is(t) }))
		}
	}
	m.Queue("renders", count(func(t current.TargetState) bool { return !t.Rendering.Since.IsZero() }))
	m.Queue("passes", count(func(t current.TargetState) bool { return !t.Unanswered.IsZero() }))
	m.HistorySize(func() int64 {
		info, err := os.Stat(file)
		if err != nil {
			return 0
		}
		return info.Size()
	})
}

// registerNames registers the names of sources and targets with the metrics.
func registerNames(m *metrics.Metrics, sources []current.Source, targets []current.Target) {
	var s, t []string
	for _, source := range sources {
		s = append(s, source.Name)
	}
	for _, target := range targets {
		t = append(t, target.Name)
	}
	m.Know(s, t)
}

// wrongClock is the difference above which weir logs that the clock is wrong.
const wrongClock = 5 * time.Minute

// clockCheck compares this machine's clock with AWS's.
type clockCheck struct {
	clock *clock.Clock
	log   *slog.Logger
	// wrong says that weir has logged that the clocks differ.
	wrong atomic.Bool
}

// check logs once when this machine's clock differs from AWS's, and once when it is correct again.
func (c *clockCheck) check() {
	ahead := c.clock.Ahead()
	wrong := ahead.Abs() >= wrongClock
	switch was := c.wrong.Swap(wrong); {
	case wrong && !was:
		c.log.Error("this machine's clock differs from AWS's clock, which suspensions, approvals, windows and join tokens use; correct it", "ahead", ahead)
	case was && !wrong:
		c.log.Info("this machine's clock is right again")
	}
}

// since returns the reference time for the age of history. Until AWS has reported the time, it returns the
// zero time, because a clock that is ahead would remove the whole history.
func since(c *clock.Clock) time.Time {
	if m := c.Moment(); m.Heard {
		return m.Earliest
	}
	return time.Time{}
}
