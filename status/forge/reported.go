package forge

import "time"

// pull identifies a pull request of a source.
type pull struct {
	source string
	number int64
}

// reportedPulls contains the pull requests with recent deliveries, until another report to the watcher
// would be allowed immediately.
type reportedPulls map[pull]*pendingPull

type pendingPull struct {
	// reported is the time of the last report to the watcher, and due the time of the next; zero if there
	// is none.
	reported, due time.Time
}

// maxReported is the maximum number of pull requests in the map. Polling finds changes of any others.
const maxReported = 4096

func (h reportedPulls) add(a accepted) {
	key := pull{a.source, a.hint.Number}
	p := h[key]
	if p == nil {
		if len(h) >= maxReported {
			return
		}
		p = &pendingPull{}
		h[key] = p
	}
	p.due = p.reported.Add(spacing)
}

// act reports the pull requests that are due, and returns the time until the next call.
func (h reportedPulls) act(now time.Time, hook func(source string) Hook) time.Duration {
	next := time.Hour
	for key, p := range h {
		if !p.due.IsZero() && !p.due.After(now) {
			if pulls := hook(key.source).Pulls; pulls != nil {
				pulls.Changed(key.number)
			}
			p.reported, p.due = now, time.Time{}
		}
		switch {
		case !p.due.IsZero():
			next = min(next, p.due.Sub(now))
		case now.Sub(p.reported) >= spacing:
			delete(h, key)
		default:
			next = min(next, p.reported.Add(spacing).Sub(now))
		}
	}
	return next
}
