package commits

import (
	"encoding/json"
	"errors"
	"iter"
	"log/slog"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/outbox"
	"github.com/weir-gitops/weir/status/report"
	"github.com/weir-gitops/weir/status/wording"
)

// statuses contains the wanted statuses of the commits of one source. Its poster writes them to the forge,
// and the journal stores them.
type statuses struct {
	source   string
	contexts contexts
	redact   report.Redact
	log      *slog.Logger
	now      func() time.Time
	// keep bounds the waiting superseded commits without a visible pending status.
	keep int

	mu     sync.Mutex // guards the fields below
	tracks []*track   // the current commit last
	heads  heads
	// changed says that a change must be stored in the journal before the next write to the forge. stale
	// says that any change is missing in the journal.
	changed, stale bool
}

// current returns the commit that the source reached last, nil before the first. The caller holds mu.
func (s *statuses) current() *track {
	if len(s.tracks) > 0 {
		return s.tracks[len(s.tracks)-1]
	}
	return nil
}

// restore replaces all commits with the commits in the journal.
func (s *statuses) restore(tracks []*track, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tracks = tracks
	for _, t := range tracks {
		t.recovered = now
		for _, ct := range t.Contexts {
			// The journal may be older than the last writes to the forge.
			ct.Shown = ct.Shown || ct.Want.State == forge.Pending
			if !ct.Delivered { // the previous process may have ended during a write
				ct.late = lateUntil(now)
			}
		}
	}
}

// startRevision records that the source reached a revision. See Commits.Begin.
func (s *statuses) startRevision(r Revision) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cur := s.current()
	// A commit that was rejected as a whole has no targets until it is applied later.
	if cur == nil || cur.SHA != r.SHA || cur.Fault != "" && r.Err == nil && len(cur.Targets) == 0 {
		cur = s.supersede(cur, r)
	}
	cur.recovered = time.Time{}
	cur.Fault = ""
	if r.Err != nil {
		cur.Fault = s.redact.Text(r.Err.Error())
	}
	if cur.wantAll(s.contexts) {
		s.changed = true
	}
}

// supersede makes a revision the current commit, and closes the statuses of the earlier ones. The
// caller holds mu.
func (s *statuses) supersede(cur *track, r Revision) *track {
	next := newTrack(s.source, r.SHA)
	for _, name := range append(failed(cur), r.Touched...) {
		next.Targets[name] = &targetTrack{State: forge.Pending, Description: "planning", Pools: unfinished(cur, name)}
	}
	for _, name := range r.Removed {
		next.Targets[name] = &targetTrack{State: forge.Success, Description: removedText, Removed: true}
	}
	next.inheritUnfinished(cur)
	for _, old := range s.tracks {
		if old.SHA == r.SHA {
			continue
		}
		if old.close(s.contexts, "superseded by "+wording.Short(r.SHA)) {
			s.changed = true
		}
		old.Targets = nil // no report changes it any more
	}
	// A branch that is moved back reaches a commit again, with a new verdict.
	var again *track
	if s.tracks, again = drop(s.tracks, r.SHA); again != nil {
		next.Contexts = again.Contexts
	}
	s.tracks = append(s.tracks, next)
	return next
}

// report processes the results of a pass, and reports whether statuses may have changed. See
// Commits.Report.
func (s *statuses) report(r *plan.Report) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	cur := s.current()
	if cur == nil {
		return false
	}
	t := cur.Targets[r.Target]
	if t == nil {
		cur.dropConverged(r)
		return false
	}
	if cur.SHA != r.Revision {
		if t.State != forge.Success {
			t.touch(r)
		}
		return false
	}
	cur.recovered = time.Time{}
	if t.State == forge.Success {
		return false
	}
	t.observe(s.redact.Report(r), s.now())
	if cur.wantTarget(s.contexts, r.Target) {
		s.changed = true
	}
	cur.unsummed = true
	return true
}

// unfinished returns the targets of the current commit that have not converged.
func (s *statuses) unfinished() (names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if cur := s.current(); cur != nil {
		for name, t := range cur.Targets {
			if t.State != forge.Success {
				names = append(names, name)
			}
		}
	}
	return names
}

// forget records that a target is no longer configured, and reports whether the current commit had
// not converged on it.
func (s *statuses) forget(target string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	cur := s.current()
	if cur == nil || cur.Targets[target] == nil || cur.Targets[target].State == forge.Success {
		return false
	}
	changed := cur.Targets[target].State == forge.Pending && cur.want(s.contexts.ofTarget(target, forge.Errored, "the target is no longer configured"))
	delete(cur.Targets, target)
	if cur.wantAggregate(s.contexts) || changed {
		s.changed = true
	}
	return true
}

// interrupt ends the pending statuses of all commits, because weir stops.
func (s *statuses) interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tracks {
		if t.close(s.contexts, Interrupted) {
			s.changed = true
		}
	}
}

// sum sets the statuses over all targets that reports may have changed. The caller holds mu.
func (s *statuses) sum() {
	for _, t := range s.tracks {
		if t.sum(s.contexts) {
			s.changed = true
		}
	}
}

// count returns the number of contexts for which is returns true.
func (s *statuses) count(is func(*contextTrack) bool) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum()
	for _, t := range s.tracks {
		for _, ct := range t.Contexts {
			if is(ct) {
				n++
			}
		}
	}
	return n
}

// retry resets all statuses that were refused or given up, so that they are tried again.
func (s *statuses) retry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tracks {
		for _, ct := range t.Contexts {
			if !ct.Delivered {
				ct.entry.Reset()
			}
		}
	}
}

// job is one status to post.
type job struct {
	sha  string
	want forge.CommitStatus
	// keep says that a verdict on the forge stays unchanged: weir writes nothing. It is used before the
	// next verdict, or instead of one.
	keep bool
}

// next returns the status to post now. If nothing is due, wait is the time until there may be one, 0 if no
// status is wanted. It also returns the commits that it has forgotten.
func (s *statuses) next(box *outbox.Outbox, before func(a, b job) bool) (found job, wait time.Duration, ok bool, forgotten []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum()
	forgotten = s.tidy(s.now())
	found, wait, ok = outbox.Pick(box, s.jobs(), before)
	return found, wait, ok, forgotten
}

// jobs iterates over the statuses that are not delivered. The caller holds mu.
func (s *statuses) jobs() iter.Seq2[*outbox.Entry, job] {
	return func(yield func(*outbox.Entry, job) bool) {
		for _, t := range s.tracks {
			for _, ct := range t.Contexts {
				j := job{sha: t.SHA, want: ct.Want, keep: t.Pull != 0 && (ct.Want.State == forge.Pending && !ct.Stays || ct.Want.State == forge.Errored)}
				if !ct.Delivered && !yield(&ct.entry, j) {
					return
				}
			}
		}
	}
}

// posted calls end with the context of a job. The context is nil if it now wants another status. shown says
// that the forge shows the status.
func (s *statuses) posted(j job, shown bool, end func(ct *contextTrack) (stale bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found *contextTrack
	for _, t := range s.tracks {
		ct := t.Contexts[j.want.Context]
		if t.SHA != j.sha || ct == nil {
			continue
		}
		// Whether the forge shows a context as pending does not depend on the wanted status.
		if pending := j.want.State == forge.Pending; shown && ct.Shown != pending {
			ct.Shown, s.stale = pending, true
		}
		if found == nil && ct.Want == j.want {
			found = ct
		}
	}
	if end(found) {
		s.stale = true
	}
}

// unsaved reports whether a change must be stored in the journal before the next write to the forge, or
// with all, whether any change is missing in the journal.
func (s *statuses) unsaved(all bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum()
	return s.changed || all && s.stale
}

// records adds the wanted records of the journal. The statuses then count as saved.
func (s *statuses) records(into map[string]json.RawMessage, turn *int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sum()
	s.changed, s.stale = false, false
	return records(s.tracks, into, turn)
}

// records adds the records of tracks. Tracks that are not in order get new turns after the last one.
func records(tracks []*track, into map[string]json.RawMessage, turn *int) (err error) {
	for i, t := range tracks {
		if t.Turn == 0 || i > 0 && t.Turn <= tracks[i-1].Turn {
			*turn++
			t.Turn = *turn
		}
		err = errors.Join(err, t.records(into))
	}
	return err
}
