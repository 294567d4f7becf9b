package targetspec

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/gates/calendar"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

// Kinds of a window.
const (
	Allow = "allow"
	Deny  = "deny"
)

// Window is a time of the week in which steps may run that replace or end instances, or delete
// something. With kind deny it is a time in which they must not run. Other steps need no window.
type Window struct {
	// Kind is allow (the default) or deny. If any window allows, one of these must be open. An open
	// window that denies always wins.
	Kind string `yaml:"kind"`
	// Days lists the days on which the window starts: mon, tue, wed, thu, fri, sat, sun. An empty
	// list means every day.
	Days []string `yaml:"days"`
	// Start is the time at which the window starts, in the time zone, such as 09:00.
	Start Clock `yaml:"start"`
	// End is the time at which the window ends, up to 24:00. If it is not after the start, the
	// window ends on the next day.
	End Clock `yaml:"end"`
	// Duration is how long the window is open, at most 168h. It replaces end, and is independent of
	// clock changes.
	Duration time.Duration `yaml:"duration"`
	// Timezone is the IANA name of the time zone, such as Europe/Berlin.
	Timezone string `yaml:"timezone"`
}

// Weekdays lists the names of days in a window, in the order of time.Weekday.
var Weekdays = []string{"sun", "mon", "tue", "wed", "thu", "fri", "sat"}

// Clock is a time of day in minutes since midnight.
type Clock int

// ClockPattern matches a Clock.
var ClockPattern = lazyregexp.New(`^([01][0-9]|2[0-3]):[0-5][0-9]$|^24:00$`)

// UnmarshalText implements encoding.TextUnmarshaler.
func (c *Clock) UnmarshalText(b []byte) error {
	text := string(b)
	if !ClockPattern.MatchString(text) {
		return fmt.Errorf("%q is not a time of day; write it like 09:30", text)
	}
	hours, _ := strconv.Atoi(text[:2]) // the pattern guarantees digits
	minutes, _ := strconv.Atoi(text[3:])
	*c = Clock(hours*60 + minutes)
	return nil
}

// String returns the time in the form of the configuration.
func (c Clock) String() string { return fmt.Sprintf("%02d:%02d", int(c)/60, int(c)%60) }

// Words describes the window, such as "allow mon, tue 09:00 to 17:00 Europe/Berlin".
func (w Window) Words() string {
	days := "every day"
	if len(w.Days) > 0 {
		days = strings.Join(w.Days, ", ")
	}
	end := "to " + w.End.String()
	if w.Duration > 0 {
		end = "for " + w.Duration.String()
	}
	return cmp.Or(w.Kind, Allow) + " " + days + " " + w.Start.String() + " " + end + " " + cmp.Or(w.Timezone, "UTC")
}

// Calendar returns the target's windows.
func (t *Target) Calendar() ([]calendar.Window, error) {
	var out []calendar.Window
	for _, w := range t.Windows {
		zone, err := w.Zone()
		if err != nil {
			return nil, err
		}
		c := calendar.Window{Deny: w.Kind == Deny, Start: int(w.Start), End: int(w.End), Length: w.Duration, Zone: zone}
		for _, d := range w.Days {
			c.Days = append(c.Days, time.Weekday(slices.Index(Weekdays, d)))
		}
		out = append(out, c)
	}
	return out, nil
}

// Zone returns the window's time zone. It rejects "Local", because the same configuration would mean another
// time on another machine.
func (w Window) Zone() (*time.Location, error) {
	if w.Timezone == "Local" {
		return nil, errors.New("name the place itself")
	}
	return time.LoadLocation(w.Timezone)
}
