package model

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
)

const (
	// askSoonest is the part of AskEvery that lies between two questions at least.
	askSoonest = 12
	// weir reads a refresh whose machines make progress only every askAnyway times AskEvery. It
	// reads an ended refresh every askEnded times AskEvery, as that stays the same unless another
	// refresh starts.
	askAnyway, askEnded = 5, 10
)

// Watched holds the facts of a group's newest instance refresh from one pass to the
// next: what AWS last said of it, and what the machines have shown since.
type Watched struct {
	Group   string
	Refresh observed.Refresh
	// Left is the number of machines still to be replaced, out of Total. Total is 0 where they do
	// not give it. New counts the machines of the new configuration, whether they are in service yet
	// or not.
	Left, Total, New int32
	// Set says that the group itself is set to the wanted configuration.
	Set bool
	// MovedAt is the time of the machines' last progress. ShownAt is the time when they showed that
	// AWS's last answer is outdated, zero where they show nothing.
	MovedAt, ShownAt time.Time
}

func (in Input) Interval() time.Duration {
	if in.AskEvery <= 0 {
		return observed.DefaultAskEvery
	}
	return in.AskEvery
}

// Due reports whether AWS is to be asked about the refresh again. Progress of the
// machines makes it due at once; while AWS does not report that progress, each wait is
// as long as the delay so far: a warm-up or a bake takes seconds or half an hour.
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

// Shown is a refresh as far as it has come: what AWS said of it, or the machines
// where they are further.
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
