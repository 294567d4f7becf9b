package schedule

import (
	"math/bits"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Recurrence is the schedule of a recurring action: a cron expression of five fields, in the minutes of a
// time zone. Each field is the set of its values. As in cron, if both day fields are restricted, a match of
// either is enough.
type Recurrence struct {
	minute, hour, day, month, weekday uint64
	anyDay, anyWeekday                bool
	zone                              *time.Location
}

// field defines one of the five fields: its range, and the names of its values.
type field struct {
	low, high int
	names     []string // names of low and the following values
}

var (
	months   = []string{"jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"}
	weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}
)

// parseRecurrence parses a cron expression. ok reports whether it is valid.
func parseRecurrence(text string, zone *time.Location) (r *Recurrence, ok bool) {
	parts := strings.Fields(text)
	fields := []field{{0, 59, nil}, {0, 23, nil}, {1, 31, nil}, {1, 12, months}, {0, 7, weekdays}}
	if len(parts) != len(fields) {
		return nil, false
	}
	var sets [5]uint64
	for i, f := range fields {
		if sets[i] = f.parse(strings.ToLower(parts[i])); sets[i] == 0 {
			return nil, false
		}
	}
	r = &Recurrence{minute: sets[0], hour: sets[1], day: sets[2], month: sets[3], weekday: sets[4] | sets[4]>>7,
		anyDay: strings.HasPrefix(parts[2], "*"), anyWeekday: strings.HasPrefix(parts[4], "*"), zone: zone}
	return r, !r.Next(time.Unix(0, 0)).IsZero()
}

// parse returns the set of a field's values. It is 0 if the text is invalid.
func (f field) parse(text string) uint64 {
	set := uint64(0)
	for part := range strings.SplitSeq(text, ",") {
		span, step, stepped := strings.Cut(part, "/")
		every := 1
		if stepped {
			n, err := strconv.Atoi(step)
			if err != nil || n < 1 {
				return 0
			}
			every = n
		}
		low, high := f.low, f.high
		if span != "*" {
			from, to, ranged := strings.Cut(span, "-")
			low = f.value(from)
			switch {
			case ranged:
				high = f.value(to)
			case !stepped:
				high = low
			}
		}
		if low < f.low || high > f.high || low > high {
			return 0
		}
		for n := low; n <= high; n += every {
			set |= 1 << n
		}
	}
	return set
}

func (f field) value(text string) int {
	if i := slices.Index(f.names, text); i >= 0 {
		return f.low + i
	}
	n, err := strconv.Atoi(text)
	if err != nil || strings.HasPrefix(text, "+") {
		return -1
	}
	return n
}

func has(set uint64, n int) bool { return set&(1<<n) != 0 }

// onDay reports whether the action runs on a day.
func (r *Recurrence) onDay(t time.Time) bool {
	day, weekday := has(r.day, t.Day()), has(r.weekday, int(t.Weekday()))
	if r.anyDay || r.anyWeekday {
		return day && weekday
	}
	return day || weekday
}

// Next returns the first time after t at which the action runs, or a zero time. In an hour that a clock
// change skips, the action does not run.
func (r *Recurrence) Next(t time.Time) time.Time {
	t = t.In(r.zone).Truncate(time.Minute).Add(time.Minute)
	for last := t.Year() + 8; t.Year() <= last; { // the next February 29 is at most 8 years away
		switch {
		case !has(r.month, int(t.Month())):
			t = time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, r.zone)
		case !r.onDay(t):
			t = time.Date(t.Year(), t.Month(), t.Day()+1, 0, 0, 0, 0, r.zone)
		case !has(r.hour, t.Hour()):
			t = t.Add(time.Duration(60-t.Minute()) * time.Minute)
		case !has(r.minute, t.Minute()):
			later := r.minute >> t.Minute() << t.Minute()
			if later == 0 {
				t = t.Add(time.Duration(60-t.Minute()) * time.Minute)
			} else {
				t = t.Add(time.Duration(bits.TrailingZeros64(later)-t.Minute()) * time.Minute)
			}
		default:
			return t.UTC()
		}
	}
	return time.Time{}
}
