package schedule

import (
	"testing"
	"time"
)

func TestRecurrence(t *testing.T) {
	for _, tc := range []struct{ cron, zone, after, want string }{
		{"30 0 1 1,6,12 *", "UTC", "2026-01-01T00:30:00Z", "2026-06-01T00:30:00Z"},
		{"*/15 * * * *", "UTC", "2026-03-01T08:00:00Z", "2026-03-01T08:15:00Z"},
		{"*/15 * * * *", "UTC", "2026-03-01T08:50:30Z", "2026-03-01T09:00:00Z"},
		{"0 8 * * MON-FRI", "UTC", "2026-02-27T08:00:00Z", "2026-03-02T08:00:00Z"},
		{"0 8 * * 7", "UTC", "2026-02-27T08:00:00Z", "2026-03-01T08:00:00Z"},
		{"0 0 13 * 5", "UTC", "2026-03-01T00:00:00Z", "2026-03-06T00:00:00Z"}, // the 13th, or a Friday
		{"0 0 29 2 *", "UTC", "2026-03-01T00:00:00Z", "2028-02-29T00:00:00Z"},
		{"5-10/5 22 * jan *", "UTC", "2026-01-31T22:06:00Z", "2026-01-31T22:10:00Z"},
		{"59 23 31 12 *", "UTC", "2026-12-31T23:59:00Z", "2027-12-31T23:59:00Z"},
		{"0 9 * * *", "America/New_York", "2026-03-07T15:00:00Z", "2026-03-08T13:00:00Z"}, // the clocks went forward
		{"30 2 * * *", "America/New_York", "2026-03-07T08:00:00Z", "2026-03-09T06:30:00Z"},
		{"0 6 * * *", "Asia/Kolkata", "2026-03-01T00:00:00Z", "2026-03-01T00:30:00Z"},
	} {
		zone, err := time.LoadLocation(tc.zone)
		if err != nil {
			t.Fatal(err)
		}
		r, ok := parseRecurrence(tc.cron, zone)
		if !ok {
			t.Errorf("%q is none", tc.cron)
			continue
		}
		if got := r.Next(Time(tc.after)).Format(time.RFC3339); got != tc.want {
			t.Errorf("%q in %s after %s: %s, want %s", tc.cron, tc.zone, tc.after, got, tc.want)
		}
	}
	for _, text := range []string{"", "* * * *", "* * * * * *", "60 * * * *", "* 24 * * *", "* * 0 * *", "* * * 13 *", "* * * * 8", "5-1 * * * *", "*/0 * * * *", "a * * * *", "-1 * * * *", "1, * * * *", "0 0 31 2 *", "+1 * * * *"} {
		if _, ok := parseRecurrence(text, time.UTC); ok {
			t.Errorf("%q is taken", text)
		}
	}
}
