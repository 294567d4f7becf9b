package commits

import "time"

// maxSuperseded bounds the superseded commits of each source that cannot be posted and show nothing
// pending on the forge, maxTracks all superseded commits that cannot be posted. The oldest go
// first.
const (
	maxSuperseded = 20
	maxTracks     = 500
)

// tidy closes what an earlier process left and this one does not continue, and
// forgets earlier commits that are finished. One on which the forge may still show
// something pending stays in the journal until that is closed.
func (c *Commits) tidy(source string, q *queue, now time.Time) {
	list := c.tracks[source]
	kept := list[:0]
	for i, t := range list {
		if !t.recovered.IsZero() && now.Sub(t.recovered) >= RecoveryGrace {
			c.close(t, Interrupted)
			t.recovered = time.Time{}
		}
		if i < len(list)-1 && t.finished() {
			q.forget(t.SHA)
			c.stale = true
			continue
		}
		kept = append(kept, t)
	}
	kept = c.evict(kept, q, c.keep, func(t *track) bool { return !t.shown() })
	kept = c.evict(kept, q, maxTracks, func(*track) bool { return true })
	clear(list[len(kept):])
	c.tracks[source] = kept
}

// evict drops the oldest of the superseded commits that count, down to limit.
func (c *Commits) evict(list []*track, q *queue, limit int, matches func(*track) bool) []*track {
	over := -limit
	for _, t := range list[:max(0, len(list)-1)] {
		if matches(t) {
			over++
		}
	}
	if over <= 0 {
		return list
	}
	kept := list[:0]
	for i, t := range list {
		if over > 0 && i < len(list)-1 && matches(t) {
			over--
			q.forget(t.SHA)
			c.changed = true
			c.o.Logger.Warn("statuses of a superseded commit are given up: too many wait", "source", t.Source, "revision", t.SHA)
			continue
		}
		kept = append(kept, t)
	}
	return kept
}

// noteShown records whether a forge may show a context as pending, independent of the wanted
// status.
func (c *Commits) noteShown(source string, j job, shown bool) {
	for _, t := range c.tracks[source] {
		if ct := t.Contexts[j.want.Context]; t.SHA == j.sha && ct != nil && ct.Shown != shown {
			ct.Shown, c.stale = shown, true
		}
	}
}

// Retry makes weir post again now all that was refused or given up: the token, the
// permissions or the way to the forge may have changed.
func (c *Commits) Retry() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for source, q := range c.queues {
		for _, t := range c.tracks[source] {
			for _, ct := range t.Contexts {
				if !ct.Delivered {
					ct.entry.Reset()
				}
			}
		}
		q.box.TryToken()
	}
}
