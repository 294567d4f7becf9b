package fill

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/awscloud/read"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// launchedKept is the time for which an unused launch time is remembered.
const launchedKept = time.Hour

// launchTimes remembers the launch times of instances, which never change.
type launchTimes struct {
	mu sync.Mutex
	of map[string]launchTime
}

type launchTime struct{ at, asked time.Time }

// known passes the remembered launch times to take, and returns the instances without one.
func (l *launchTimes) known(ids []string, now time.Time, take func(id string, at time.Time)) (unknown []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range ids {
		t, is := l.of[id]
		if !is {
			unknown = append(unknown, id)
			continue
		}
		l.of[id] = launchTime{t.at, now}
		take(id, t.at)
	}
	maps.DeleteFunc(l.of, func(_ string, t launchTime) bool { return now.Sub(t.asked) > launchedKept })
	return unknown
}

func (l *launchTimes) keep(id string, at, now time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.of == nil {
		l.of = map[string]launchTime{}
	}
	l.of[id] = launchTime{at, now}
}

// fillLaunched reads the launch times of instances. If AWS refuses, the times are unknown, and weir treats a
// pool's machines as in service from now on.
func (f *Filler) fillLaunched(ctx context.Context, s *observed.State, ids []string) error {
	s.Launched = read.Copied(s.Launched)
	now := f.client.Now()
	unknown := f.launched.known(ids, now, func(id string, at time.Time) { s.Launched[id] = at })
	if len(unknown) == 0 {
		return nil
	}
	for _, id := range unknown {
		if _, known := s.Launched[id]; !known {
			s.Launched[id] = time.Time{}
		}
	}
	err := f.reader.Launched(ctx, unknown, func(id string, at time.Time) {
		s.Launched[id] = at
		f.launched.keep(id, at, now)
	})
	if read.Denied(err) != nil {
		return nil
	}
	return err
}
