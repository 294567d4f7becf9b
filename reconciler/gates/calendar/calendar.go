// Package calendar says when windows for changes are open: by local time, also on the
// days when local clocks go forward or back.
//
// Alertmanager's timeinterval, the library that is at hand, says whether a time lies
// within; a plan that is held also says when the window opens next, and a window that
// begins in an hour that a clock leaves out or repeats opens once.
package calendar

import (
	"slices"
	"time"
	_ "time/tzdata" // places are known on machines that lack the database
)

// Longest is the longest that a window may stay open.
const Longest = 7 * 24 * time.Hour

// Window is a stretch of time that comes again each week.
type Window struct {
	// Deny makes it a time in which nothing may happen.
	Deny bool
	// Days are those on which it begins; none means all.
	Days []time.Weekday
	// Start and End are minutes since midnight by the wall's clock; an End that
	// is not after Start is on the next day. Length, where it is not 0, replaces End
	// and is the time that passes, whatever the clock shows.
	Start, End int
	Length     time.Duration
	// Zone is the time zone.
	Zone *time.Location
}

// Open reports whether something may happen at the moment now: within one of the
// windows that allow it, where there are any, and within none that denies it.
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

// horizon is the number of days in which the next opening is searched: two weeks, in which every
// weekday comes twice, and the days that a window takes.
const horizon = 22

// Next is the first moment from now on at which it is open. ok is false for none.
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
			// It opens where an allowing window begins or a denying one ends.
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

// reach is the number of days back at which a window that is still open may have begun.
const reach = 8

func (w Window) contains(t time.Time) bool {
	for day := -reach; day <= 0; day++ {
		if from, to, begins := w.on(t, day); begins && !t.Before(from) && t.Before(to) {
			return true
		}
	}
	return false
}

// on is the window that begins so many days after the one in which t is.
func (w Window) on(t time.Time, day int) (from, to time.Time, begins bool) {
	year, month, today := t.In(w.Zone).Date()
	noon := time.Date(year, month, today+day, 12, 0, 0, 0, time.UTC) // a date alone
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

// wall returns the moments when the clock shows so many minutes since midnight on a date. If the
// clock is put back over that time, it shows it twice, first and last. If the clock is put forward
// over that time, wall returns the moment of the change.
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
	// The other of two moments lies on the other side of a change of the clock.
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
