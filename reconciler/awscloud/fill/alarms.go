package fill

import (
	"context"
	"errors"
	"maps"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// alarmsKept is the time for which the state of an alarm is cached. An alarm must stop a rollout within a
// minute, and passes may follow each other faster than that.
const alarmsKept = 10 * time.Second

// alarms remembers the last states from CloudWatch.
type alarms struct {
	mu    sync.Mutex
	known map[string]alarm
}

type alarm struct {
	state string
	at    time.Time
}

// fillAlarms reads the states of alarms with spare calls. An error has no other effect: an unknown or
// outdated state is missing from the result, with the reason.
func (f *Filler) fillAlarms(ctx context.Context, s *observed.State, names []string) error {
	if len(names) == 0 {
		return nil
	}
	due := f.alarms.due(names, f.client.Now())
	if len(due) > 0 {
		var failed error
		if err := sdk.PollSpare(ctx, f.client, "cloudwatch", "DescribeAlarms", [][]string{due}, func(ctx context.Context, names []string) error {
			began := f.client.Now()
			states, err := f.reader.Alarms(ctx, names)
			if failed = err; err == nil {
				f.alarms.record(names, states, began)
			}
			return err
		}); err != nil {
			return err
		}
		s.AlarmsUnknown = ""
		var e *observed.Error
		if errors.As(failed, &e) {
			s.AlarmsUnknown = e.Error()
		}
	}
	s.Alarms = f.alarms.recent(names, f.client.Now())
	if len(s.Alarms) < len(names) && s.AlarmsUnknown == "" {
		s.AlarmsUnknown = "AWS's rate limits allow no call for them now"
	}
	return nil
}

// due returns all names if any of them was not read recently, else none.
func (a *alarms) due(names []string, now time.Time) []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, name := range names {
		if one, known := a.known[name]; !known || now.Sub(one.at) >= alarmsKept {
			return names
		}
	}
	return nil
}

// record stores an answer, and forgets alarms that were unused for an hour.
func (a *alarms) record(names []string, states map[string]string, at time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	maps.DeleteFunc(a.known, func(_ string, one alarm) bool { return at.Sub(one.at) > time.Hour })
	if a.known == nil {
		a.known = map[string]alarm{}
	}
	for _, name := range names {
		a.known[name] = alarm{states[name], at}
	}
}

// recent returns the states that are recent enough to use.
func (a *alarms) recent(names []string, now time.Time) map[string]string {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := map[string]string{}
	for _, name := range names {
		if one, known := a.known[name]; known && now.Sub(one.at) < alarmsKept {
			out[name] = one.state
		}
	}
	return out
}
