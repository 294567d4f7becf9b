package commits

import "time"

// maxSuperseded bounds the superseded commits of each source that cannot be posted and do not show as
// pending on the forge. maxTracks bounds all superseded commits that cannot be posted. The oldest are
// dropped first.
const (
	maxSuperseded = 20
	maxTracks     = 500
)

// tidy closes the statuses of an earlier process that this process does not continue, and forgets earlier
// commits that are finished. A commit that the forge may still show as pending stays in the journal until
// that status is closed. tidy returns the forgotten commits. The caller holds mu.
func (s *statuses) tidy(now time.Time) (forgotten []string) {
	kept := s.tracks[:0]
	for i, t := range s.tracks {
		if !t.recovered.IsZero() && now.Sub(t.recovered) >= RecoveryGrace {
			if t.close(s.contexts, Interrupted) {
				s.changed = true
			}
			t.recovered = time.Time{}
		}
		if i < len(s.tracks)-1 && t.finished() {
			forgotten = append(forgotten, t.SHA)
			s.stale = true
			continue
		}
		kept = append(kept, t)
	}
	kept, few := s.evict(kept, s.keep, func(t *track) bool { return !t.shown() })
	kept, old := s.evict(kept, maxTracks, func(*track) bool { return true })
	clear(s.tracks[len(kept):])
	s.tracks = kept
	return append(append(forgotten, few...), old...)
}

// evict drops the oldest of the superseded commits that match, until at most limit of them are left.
func (s *statuses) evict(list []*track, limit int, matches func(*track) bool) (kept []*track, forgotten []string) {
	over := -limit
	for _, t := range list[:max(0, len(list)-1)] {
		if matches(t) {
			over++
		}
	}
	if over <= 0 {
		return list, nil
	}
	kept = list[:0]
	for i, t := range list {
		if over > 0 && i < len(list)-1 && matches(t) {
			over--
			forgotten = append(forgotten, t.SHA)
			s.changed = true
			s.log.Warn("statuses of a superseded commit are given up: too many wait", "source", t.Source, "revision", t.SHA)
			continue
		}
		kept = append(kept, t)
	}
	return kept, forgotten
}
