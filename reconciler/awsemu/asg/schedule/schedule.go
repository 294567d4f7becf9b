// Package schedule implements the scheduled actions of Auto Scaling groups: their times, and the rules for
// requests. An [Action] runs once, at its start, or repeatedly according to a cron expression in a time
// zone, from its start to its end. An action without further runs is not described. The code of the group
// implements the effect of an action.
package schedule

import (
	"time"
	_ "time/tzdata" // for machines without a time zone database

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// The limits of AWS.
const (
	MaxActions = 125 // per group
	MaxBatch   = 50  // per call
)

// Action is a scheduled action.
type Action struct {
	Name, ARN            string
	ID                   string // changes with each update, so that older timers are void
	Min, Max, Desired    *int64
	Recurrence, TimeZone string
	Next, End            time.Time // End may be zero
}

// Input is a scheduled action in a request.
type Input struct {
	ScheduledActionName                      string
	StartTime, EndTime, Recurrence, TimeZone string
	MinSize, MaxSize, DesiredCapacity        *int64
}

func invalid(format string, args ...any) *wire.Error {
	return wire.Fail("ValidationError", format, args...)
}

// Time parses a time in a request that was checked against the model. It returns a zero time for "".
func Time(text string) time.Time {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}
	}
	return t.UTC()
}

// Action returns the action in the request.
func (in *Input) Action(now time.Time) (*Action, *wire.Error) {
	a := &Action{Name: in.ScheduledActionName, Min: in.MinSize, Max: in.MaxSize, Desired: in.DesiredCapacity,
		Recurrence: in.Recurrence, TimeZone: in.TimeZone, Next: Time(in.StartTime), End: Time(in.EndTime)}
	if err := in.checkSizes(); err != nil {
		return nil, err
	}
	zone, err := time.LoadLocation(in.TimeZone)
	_, cron := parseRecurrence(in.Recurrence, time.UTC)
	switch {
	case err != nil || in.TimeZone == "Local":
		return nil, invalid("The time zone %s is not valid", in.TimeZone)
	case in.TimeZone != "" && in.Recurrence == "":
		return nil, invalid("A time zone can only be specified with a recurrence")
	case in.Recurrence != "" && !cron:
		return nil, invalid("Given recurrence string: %s is invalid", in.Recurrence)
	case in.Recurrence == "" && a.Next.IsZero():
		return nil, invalid("Either the start time or the recurrence must be specified")
	case !a.Next.IsZero() && a.Next.Before(now):
		return nil, invalid("Given start time is in the past")
	case !a.End.IsZero() && a.End.Before(now):
		return nil, invalid("Given end time is in the past")
	case !a.End.IsZero() && a.End.Before(a.Next):
		return nil, invalid("Given end time is before the start time")
	}
	if a.Next.IsZero() {
		r, _ := parseRecurrence(in.Recurrence, zone)
		a.Next = r.Next(now)
	}
	return a, nil
}

func (in *Input) checkSizes() *wire.Error {
	if in.MinSize == nil && in.MaxSize == nil && in.DesiredCapacity == nil {
		return invalid("At least one of the minimum size, the maximum size and the desired capacity must be specified")
	}
	for _, n := range []*int64{in.MinSize, in.MaxSize, in.DesiredCapacity} {
		if n != nil && *n < 0 {
			return invalid("Sizes must not be negative: %d", *n)
		}
	}
	switch {
	case in.MinSize != nil && in.MaxSize != nil && *in.MinSize > *in.MaxSize:
		return invalid("Max bound, %d, must be greater than or equal to min bound, %d", *in.MaxSize, *in.MinSize)
	case in.DesiredCapacity != nil && (in.MinSize != nil && *in.DesiredCapacity < *in.MinSize || in.MaxSize != nil && *in.DesiredCapacity > *in.MaxSize):
		return invalid("Desired capacity:%d must be between the specified min size and max size", *in.DesiredCapacity)
	}
	return nil
}

// Advance sets the next run of the action after now, and reports whether there is one.
func (a *Action) Advance(now time.Time) bool {
	if a.Recurrence == "" {
		return false
	}
	zone, err := time.LoadLocation(a.TimeZone)
	if err != nil {
		zone = time.UTC // it was valid when the action was made
	}
	r, ok := parseRecurrence(a.Recurrence, zone)
	if !ok {
		return false
	}
	a.Next = r.Next(now)
	return !a.Next.IsZero() && (a.End.IsZero() || !a.Next.After(a.End))
}

// Write writes the action for a Describe call.
func (a *Action) Write(w *wire.XML, group string) {
	w.Text("AutoScalingGroupName", group)
	w.Text("ScheduledActionName", a.Name)
	w.Text("ScheduledActionARN", a.ARN)
	w.Time("Time", a.Next)
	w.Time("StartTime", a.Next)
	w.OptionalTime("EndTime", a.End)
	w.Optional("Recurrence", a.Recurrence)
	w.OptionalInt("MinSize", a.Min)
	w.OptionalInt("MaxSize", a.Max)
	w.OptionalInt("DesiredCapacity", a.Desired)
	w.Optional("TimeZone", a.TimeZone)
}
