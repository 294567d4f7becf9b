package forge

import "time"

// pull names a pull request of a source.
type pull struct {
	source string
	number int64
}

// heard holds the pull requests that deliveries were about, for as long as another
// one would be too early to be told of.
type heard map[pull]*pendingPull

type pendingPull struct {
	hook Hook
	// told is when somebody was told of it last, due when they are next; zero for not.
	told, due time.Time
}

// maxHeard bounds the pull requests that are waited with. What is left out is seen
// by polling.
const maxHeard = 4096

func (h heard) add(a accepted) {
	key := pull{a.source, a.hint.Number}
	p := h[key]
	if p == nil {
		if len(h) >= maxHeard {
			return
		}
		p = &pendingPull{}
		h[key] = p
	}
	p.hook, p.due = a.hook, p.told.Add(apart)
}

// act tells of those that are due, and returns when there is something to do again.
func (h heard) act(now time.Time) time.Duration {
	next := time.Hour
	for key, p := range h {
		if !p.due.IsZero() && !p.due.After(now) {
			p.hook.Pulls.Heard(key.number)
			p.told, p.due = now, time.Time{}
		}
		switch {
		case !p.due.IsZero():
			next = min(next, p.due.Sub(now))
		case now.Sub(p.told) >= apart:
			delete(h, key)
		default:
			next = min(next, p.told.Add(apart).Sub(now))
		}
	}
	return next
}
