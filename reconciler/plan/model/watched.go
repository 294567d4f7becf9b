package model

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
)

const (
	// askSoonest divides AskEvery: weir waits at least AskEvery/12 between two reads of a refresh.
	askSoonest = 12
	// If the machines make progress, weir reads their refresh only every askAnyway times AskEvery.
	// It reads an ended refresh every askEnded times AskEvery, as that stays the same unless
	// another refresh starts.
	askAnyway, askEnded = 5, 10
)

// Watched contains the facts of a group's newest instance refresh from one pass to the next: AWS's
// last answer about it, and the progress of the machines since.
type Watched struct {
	Group   string
	Refresh observed.Refresh
	// Left is the number of machines that are still to be replaced, out of Total. Total is 0 if the
	// machines do not show that. New counts the machines of the new configuration, including those
	// that are not in service yet.
	Left, Total, New int32
	// Set reports whether the group itself is set to the wanted configuration.
	Set bool
	// MovedAt is the time of the machines' last progress. ShownAt is the time when they showed that
	// AWS's last answer is outdated. It is zero if they do not show that.
	MovedAt, ShownAt time.Time
}

func (in Input) Interval() time.Duration {
	if in.AskEvery <= 0 {
		return observed.DefaultAskEvery
	}
	return in.AskEvery
}

// Due reports whether weir must read the refresh again. Progress of the machines makes a read due
// at once. While AWS does not report that progress, each wait is as long as the delay so far,
// because a warm-up or a bake takes seconds or half an hour.
func (w Watched) Due(now time.Time, every time.Duration) bool {
	r := w.Refresh
	since, shown := now.Sub(r.ReadAt), !w.ShownAt.IsZero()
	switch news := shown && r.ReadAt.Before(w.ShownAt); {
	case !r.Active():
		return news && since >= every || since >= askEnded*every
	case news:
		return since >= every/askSoonest
	case shown && since >= min(every, max(every/askSoonest, r.ReadAt.Sub(w.ShownAt))):
		return true
	}
	quiet := min(since, now.Sub(w.MovedAt))
	return quiet >= every || since >= askAnyway*every
}

// Shown returns a refresh with its progress: according to AWS, or to the machines if they are
// further.
func (w Watched) Shown(r observed.Refresh) observed.Refresh {
	if !r.Moving() || w.Total <= 0 {
		return r
	}
	if r.Status == "Pending" && w.Left < w.Total {
		r.Status = "InProgress"
	}
	r.Percentage, r.InstancesLeft = max(r.Percentage, (w.Total-w.Left)*100/w.Total), w.Left
	return r
}
