package commits

import (
	"cmp"
	"slices"
	"time"

	"github.com/weir-gitops/weir/status/forge"
	"github.com/weir-gitops/weir/status/wording"
)

// HeadStatus is the status that a pull request wants for its head.
type HeadStatus struct {
	Sha, Text, Link string
	State           forge.CommitState
	// Waits says that the pull request waits for a person. Fork says that it comes from a fork. Anybody can
	// open such a pull request with any commit.
	Waits, Fork bool
}

// rank orders the statuses that several pull requests want for one head. The lowest rank wins: failed
// plans, then other plans, then plans in progress, then the same for forks, then pull requests that wait.
func (h HeadStatus) rank() int {
	rank := 2
	switch {
	case h.Waits:
		return 8
	case h.State == forge.Failure:
		rank = 0
	case h.State.Final():
		rank = 1
	}
	if h.Fork {
		rank += 4
	}
	return rank
}

// heads contains the statuses that the open pull requests of a source want for their heads, by number.
type heads map[int64]HeadStatus

// best returns the pull request that determines the status of a commit, 0 if no pull request has the commit
// as its head.
func (h heads) best(sha string) (number int64, best HeadStatus) {
	for n, one := range h {
		if one.Sha == sha && (number == 0 || cmp.Or(cmp.Compare(one.rank(), best.rank()), cmp.Compare(n, number)) < 0) {
			number, best = n, one
		}
	}
	return number, best
}

// setHead sets the status that a pull request wants for its head. See Commits.SetHead.
func (s *statuses) setHead(number int64, want HeadStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.heads[number]
	if want.State == forge.Pending && !want.Waits {
		want.Fork = last.Fork // the plan sets it again
	}
	s.heads[number] = want
	s.leaveHeads(number, last.Sha, want.Sha, "superseded by "+wording.Short(want.Sha))
	s.choose(want.Sha)
}

// endHead records that a pull request ended.
func (s *statuses) endHead(number int64, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.heads[number]
	delete(s.heads, number)
	s.leaveHeads(number, last.Sha, "", why)
}

// leaveHeads removes a pull request's status from all commits except now: from its last head, and
// from the heads to which an earlier process wrote it. The caller holds mu.
func (s *statuses) leaveHeads(number int64, last, now, why string) {
	for _, t := range s.tracks {
		if t.Pull == number && t.SHA != now {
			if !s.choose(t.SHA) && t.close(s.contexts, why) {
				s.changed = true
			}
			t.recovered = time.Time{}
		}
	}
	if last != "" && last != now {
		s.choose(last) // the commit may no longer have a track
	}
}

// choose gives a commit the status of the pull request with the lowest rank, and reports whether
// there is one. The caller holds mu.
func (s *statuses) choose(sha string) bool {
	number, best := s.heads.best(sha)
	if number == 0 {
		return false
	}
	i := slices.IndexFunc(s.tracks, func(t *track) bool { return t.SHA == sha })
	if i < 0 {
		i = len(s.tracks)
		s.tracks = append(s.tracks, newTrack(s.source, sha))
	}
	t, status := s.tracks[i], s.contexts.ofHead(best)
	t.Pull, t.recovered = number, time.Time{}
	if t.want(status) {
		s.changed = true
	}
	if ct := t.Contexts[status.Context]; ct.Stays != best.Waits {
		ct.Stays, s.changed = best.Waits, true
	}
	return true
}
