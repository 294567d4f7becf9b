package forge

import (
	"context"
	"time"
)

// spacing is the minimum time between two fetches of a source caused by deliveries. All deliveries in
// between cause one fetch.
const spacing = time.Second

// again lists the delays before another fetch, if a source has not reached the commit of a delivery: large
// forges answer from replicas that lag behind.
var again = []time.Duration{3 * time.Second, 10 * time.Second}

// pending is the scheduled work for a source.
type pending struct {
	// nudged is the time of the source's last nudge, and due the time of the next one.
	nudged, due time.Time
	commit      string
	tries       int
}

// Run acts on queued deliveries until ctx ends: it makes sources fetch, with a minimum gap between two
// fetches of a source, and notifies the watchers of pull requests.
func (r *Receiver) Run(ctx context.Context) error {
	sources := map[string]*pending{}
	pulls := reportedPulls{}
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case a := <-r.queue:
			if a.heard {
				if p := r.hook(a.source).Pulls; p != nil && a.hint.Comment.ID != 0 {
					p.Heard(a.hint.Number, a.hint.Comment)
				}
				pulls.add(a)
			}
			if !a.fetch {
				break
			}
			p := sources[a.source]
			if p == nil {
				p = &pending{}
				sources[a.source] = p
			}
			p.commit, p.tries = a.hint.Commit, 0
			p.due = p.nudged.Add(spacing)
		case <-timer.C:
		}
		now, next := time.Now(), time.Hour
		for name, p := range sources {
			p.act(now, r.hook(name).Source)
			if !p.due.IsZero() {
				next = min(next, p.due.Sub(now))
			}
		}
		timer.Reset(min(next, pulls.act(now, r.hook)))
	}
}

// act nudges the source if that is due, and returns the time until the next call.
func (p *pending) act(now time.Time, source Source) {
	if p.due.IsZero() || p.due.After(now) {
		return
	}
	p.due = time.Time{}
	if source == nil || p.tries > 0 && source.At() == p.commit {
		return
	}
	source.Nudge()
	p.nudged = now
	if p.commit != "" && p.tries < len(again) {
		p.due = now.Add(again[p.tries])
		p.tries++
	}
}
