// Package calendar decides when windows for changes are open. Windows follow local time, also on days when
// local clocks are put forward or back.
//
// Alertmanager's timeinterval only decides whether a time is in a window. weir also needs the next opening,
// and a window must open once if it starts in an hour that the clock skips or repeats.
package calendar

import (
	"slices"
	"time"
	_ "time/tzdata" // for machines without a time zone database
)

// Longest is the maximum length of a window.
const Longest = 7 * 24 * time.Hour

// Window is a period of time that repeats every week.
type Window struct {
	// Deny forbids changes during the window.
	Deny bool
	// Days lists the weekdays on which the window starts. Empty means every day.
	Days []time.Weekday
	// Start and End are minutes since midnight, local time. An End that is not after Start is on the next
	// day. Length, if not zero, replaces End. It is elapsed time, whatever the clock shows.
	Start, End int
	Length     time.Duration
	// Zone is the time zone.
	Zone *time.Location
}

// Open reports whether changes are allowed at now: in no window that denies them and, if any window allows
// them, in one that does.
func Open(windows []Window, now time.Time) bool {
	allows, allowed := false, false
	for _, w := range windows {
		in := w.contains(now)
		if w.Deny && in {
			return false
		}
		allows, allowed = allows || !w.Deny, allowed || !w.Deny && in
	}
	return allowed || !allows
}

// horizon is the number of days in which Next searches: two weeks, so that every weekday occurs twice, and
// the days that a window takes.
const horizon = 22

// Next returns the first moment, not before now, at which changes are allowed. ok is false if it finds none.
func Next(windows []Window, now time.Time) (at time.Time, ok bool) {
	if Open(windows, now) {
		return now, true
	}
	var moments []time.Time
	for _, w := range windows {
		for day := -reach; day < horizon; day++ {
			from, to, begins := w.on(now, day)
			if !begins {
				continue
			}
			// The calendar opens at the start of an allowing window or the end of a denying one.
			if w.Deny {
				from = to
			}
			if from.After(now) {
				moments = append(moments, from)
			}
		}
	}
	slices.SortFunc(moments, time.Time.Compare)
	for _, m := range moments {
		if Open(windows, m) {
			return m, true
		}
	}
	return time.Time{}, false
}

// reach is the number of days back at which a window that is still open may have started.
const reach = 8

func (w Window) contains(t time.Time) bool {
	for day := -reach; day <= 0; day++ {
		if from, to, begins := w.on(t, day); begins && !t.Before(from) && t.Before(to) {
			return true
		}
	}
	return false
}

// on returns the window that starts the given number of days after the date of t.
func (w Window) on(t time.Time, day int) (from, to time.Time, begins bool) {
	year, month, today := t.In(w.Zone).Date()
	noon := time.Date(year, month, today+day, 12, 0, 0, 0, time.UTC) // stands for the date only
	if len(w.Days) > 0 && !slices.Contains(w.Days, noon.Weekday()) {
		return from, to, false
	}
	from, _ = wall(noon, w.Start, w.Zone)
	if w.Length > 0 {
		return from, from.Add(w.Length), true
	}
	if w.End <= w.Start {
		noon = noon.AddDate(0, 0, 1)
	}
	_, to = wall(noon, w.End, w.Zone)
	return from, to, true
}

// wall returns the moments at which the clock shows the given minutes since midnight on a date. If the clock
// is put back over that time, it shows the time twice, at first and at last. If the clock is put forward
// over that time, both are the moment of the change.
func wall(date time.Time, minutes int, zone *time.Location) (first, last time.Time) {
	year, month, day := date.Date()
	t := time.Date(year, month, day, 0, minutes, 0, 0, zone)
	want := time.Date(year, month, day, 0, minutes, 0, 0, time.UTC)
	shows := func(t time.Time) time.Time {
		y, m, d := t.Date()
		return time.Date(y, m, d, t.Hour(), t.Minute(), 0, 0, time.UTC)
	}
	begins, ends := t.ZoneBounds()
	switch got := shows(t); {
	case got.After(want):
		return begins, begins
	case got.Before(want):
		return ends, ends
	}
	first, last = t, t
	// The second moment is on the other side of a clock change.
	if !begins.IsZero() {
		before := begins.Add(-time.Second)
		if other := t.Add(offset(t) - offset(before)); other.Before(begins) && shows(other).Equal(want) {
			first = other
		}
	}
	if !ends.IsZero() {
		if other := t.Add(offset(t) - offset(ends)); !other.Before(ends) && shows(other).Equal(want) {
			last = other
		}
	}
	return first, last
}

func offset(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}
