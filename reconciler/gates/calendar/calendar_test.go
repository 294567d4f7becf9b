package calendar

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	l, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func at(t testing.TB, text string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

const hour = 60

func TestOpenAndNext(t *testing.T) {
	berlin, york := zone(t, "Europe/Berlin"), zone(t, "America/New_York")
	work := Window{Days: []time.Weekday{time.Monday, time.Tuesday, time.Wednesday, time.Thursday, time.Friday}, Start: 9 * hour, End: 17 * hour, Zone: berlin}
	night := Window{Start: 22 * hour, End: 6 * hour, Zone: berlin}
	weekend := Window{Deny: true, Days: []time.Weekday{time.Saturday}, Length: 48 * time.Hour, Zone: york}
	always := Window{Deny: true, End: 24 * hour, Zone: berlin}
	early := Window{Start: 2*hour + 30, End: 4 * hour, Zone: berlin}
	skipped := Window{Start: 2 * hour, End: 3 * hour, Zone: berlin}
	tests := map[string]struct {
		windows []Window
		now     string
		open    bool
		next    string // of a closed one; empty for never
	}{
		"no windows":                        {nil, "2026-03-02T03:00:00Z", true, ""},
		"at its start":                      {[]Window{work}, "2026-03-02T08:00:00Z", true, ""},
		"just before":                       {[]Window{work}, "2026-03-02T07:59:59Z", false, "2026-03-02T08:00:00Z"},
		"at its end":                        {[]Window{work}, "2026-03-02T16:00:00Z", false, "2026-03-03T08:00:00Z"},
		"over a weekend":                    {[]Window{work}, "2026-03-06T18:00:00Z", false, "2026-03-09T08:00:00Z"},
		"over a weekend in which the clock": {[]Window{work}, "2026-03-27T18:00:00Z", false, "2026-03-30T07:00:00Z"},
		"before midnight":                   {[]Window{night}, "2026-03-02T21:30:00Z", true, ""},
		"after midnight":                    {[]Window{night}, "2026-03-03T04:59:00Z", true, ""},
		"in the day":                        {[]Window{night}, "2026-03-03T05:00:00Z", false, "2026-03-03T21:00:00Z"},
		"either of two":                     {[]Window{work, night}, "2026-03-03T04:00:00Z", true, ""},
		"denied at a weekend":               {[]Window{weekend}, "2026-03-07T05:00:00Z", false, "2026-03-09T05:00:00Z"},
		"denied until the clock is put on":  {[]Window{{Deny: true, Days: []time.Weekday{time.Saturday}, Start: 0, Length: 48 * time.Hour, Zone: york}}, "2026-03-08T12:00:00Z", false, "2026-03-09T05:00:00Z"},
		"after a weekend":                   {[]Window{weekend}, "2026-03-09T05:00:00Z", true, ""},
		"allowed and denied":                {[]Window{night, weekend}, "2026-03-07T22:00:00Z", false, "2026-03-09T21:00:00Z"},
		"never":                             {[]Window{work, always}, "2026-03-02T10:00:00Z", false, ""},
		// On 29 March 2026 the clock in Berlin goes from 2 to 3, at 01:00 UTC.
		"begins in the hour that is left out": {[]Window{early}, "2026-03-29T00:59:59Z", false, "2026-03-29T01:00:00Z"},
		"and ends by the clock":               {[]Window{early}, "2026-03-29T02:00:00Z", false, "2026-03-30T00:30:00Z"},
		"lies in the hour that is left out":   {[]Window{skipped}, "2026-03-29T00:59:00Z", false, "2026-03-30T00:00:00Z"},
		// On 25 October 2026 it goes from 3 back to 2, at 01:00 UTC.
		"the hour that comes twice, first":  {[]Window{skipped}, "2026-10-25T00:30:00Z", true, ""},
		"the hour that comes twice, again":  {[]Window{skipped}, "2026-10-25T01:30:00Z", true, ""},
		"after the hour that comes twice":   {[]Window{skipped}, "2026-10-25T02:00:00Z", false, "2026-10-26T01:00:00Z"},
		"before the hour that comes twice":  {[]Window{skipped}, "2026-10-24T23:59:00Z", false, "2026-10-25T00:00:00Z"},
		"a length is time that passes":      {[]Window{{Start: hour, Length: 2 * time.Hour, Zone: berlin}}, "2026-10-25T00:59:00Z", true, ""},
		"a length is over in time":          {[]Window{{Start: hour, Length: 2 * time.Hour, Zone: berlin}}, "2026-10-25T01:00:00Z", false, "2026-10-26T00:00:00Z"},
		"ends in the hour that comes twice": {[]Window{{Start: hour, End: 2*hour + 30, Zone: berlin}}, "2026-10-25T01:29:00Z", true, ""},
	}
	for name, tc := range tests {
		now := at(t, tc.now)
		if got := Open(tc.windows, now); got != tc.open {
			t.Errorf("%s: open is %v", name, got)
		}
		next, ok := Next(tc.windows, now)
		switch {
		case tc.open:
			if !ok || !next.Equal(now) {
				t.Errorf("%s: next is %v, %v", name, next, ok)
			}
		case tc.next == "":
			if ok {
				t.Errorf("%s: next is %v", name, next)
			}
		case !ok || !next.Equal(at(t, tc.next)):
			t.Errorf("%s: next is %v, %v", name, next.UTC(), ok)
		}
	}
}

// TestNextIsTheFirstOpening looks at every quarter of an hour before it.
func TestNextIsTheFirstOpening(t *testing.T) {
	zones := []*time.Location{time.UTC, zone(t, "Europe/Berlin"), zone(t, "America/New_York"), zone(t, "Australia/Lord_Howe"), zone(t, "Asia/Kathmandu")}
	rapid.Check(t, func(rt *rapid.T) {
		var windows []Window
		for range rapid.IntRange(1, 3).Draw(rt, "windows") {
			w := Window{Deny: rapid.Bool().Draw(rt, "deny"), Zone: rapid.SampledFrom(zones).Draw(rt, "zone")}
			for d := range 7 {
				if rapid.Bool().Draw(rt, "day") {
					w.Days = append(w.Days, time.Weekday(d))
				}
			}
			w.Start = 15 * rapid.IntRange(0, 95).Draw(rt, "start")
			w.End = 15 * rapid.IntRange(0, 96).Draw(rt, "end")
			if rapid.Bool().Draw(rt, "length") {
				w.Length = time.Duration(rapid.IntRange(1, 168).Draw(rt, "hours")) * time.Hour
			}
			windows = append(windows, w)
		}
		// Around a change of the clock, more often than not.
		now := at(t, rapid.SampledFrom([]string{"2026-03-28T20:00:00Z", "2026-10-24T20:00:00Z", "2026-03-07T20:00:00Z", "2026-10-31T20:00:00Z", "2026-07-01T00:00:00Z"}).Draw(rt, "day"))
		now = now.Add(time.Duration(rapid.IntRange(0, 4*48).Draw(rt, "quarters")) * 15 * time.Minute)
		next, ok := Next(windows, now)
		end := next
		if !ok {
			end = now.AddDate(0, 0, 14)
		}
		for m := now; m.Before(end); m = m.Add(15 * time.Minute) {
			if Open(windows, m) {
				rt.Fatalf("open at %v, next is %v, %v", m, next, ok)
			}
		}
		if ok && !Open(windows, next) {
			rt.Fatalf("closed at %v", next)
		}
	})
}
