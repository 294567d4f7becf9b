package coord

import "time"

// assignment decides for each key whether this member takes it, keeps it or hands it over. Placement proposes
// an owner for each key; assignment adds the waiting times, so that members that come and go move nothing.
// Only the goroutine of the steps uses it.
type assignment struct {
	member string // this one
	// random adds to the grace, so that members do not all try to take a key at the same time.
	random func(n int64) int64
	// vacant has the keys without a living owner. moving has the keys that placement gives to another member
	// than their owner.
	vacant map[string]vacancy
	moving map[string]move
	// observed is the time of the last step.
	observed Instant
}

// vacancy is the last owner of a key without a living owner, and the time at which this member first saw the
// key vacant.
type vacancy struct {
	last  Owner
	since Instant
}

// move is the member that placement chose for a key, and the time at which this member first saw the choice.
type move struct {
	to    string
	since Instant
}

// situation describes one key as this member sees it.
type situation struct {
	owner    ownership
	proposed candidate
	// draining says that this member must own nothing, avoided that it leaves this key to other members for a
	// while.
	draining, avoided bool
	// pinned says that a person chose the proposed owner.
	pinned bool
	// ownedFor is the time for which this member has owned the key. movingFor is the time for which placement
	// has named another owner. vacantFor is the time for which the key has had no living owner.
	ownedFor, movingFor, vacantFor time.Duration
	// random is added to Grace.
	random time.Duration
}

// ownership classifies the owner of a key from this member's view.
type ownership string

const (
	ownedHere      ownership = "this member owns it and works on it"
	stoppingHere   ownership = "this member owns it, and its work is stopping"
	ownedElsewhere ownership = "another living member owns it"
	vacant         ownership = "no living member owns it"
)

// candidate is the owner that placement proposes.
type candidate string

const (
	noMember    candidate = "no member"
	thisMember  candidate = "this member"
	otherMember candidate = "another member"
)

// decision is the action of a member on a key.
type decision string

const (
	leave      decision = "do nothing"
	take       decision = "take the key"
	handOver   decision = "hand the key over to the proposed member"
	pollSooner decision = "poll more often, because the owner is about to hand the key over to this member"
)

// decide chooses the action of this member on a key.
func decide(s situation) decision {
	switch s.owner {
	case ownedHere:
		if s.proposed == otherMember && s.movingFor >= Steady && (s.ownedFor >= Settle || s.pinned) {
			return handOver
		}
	case ownedElsewhere:
		if s.proposed == thisMember && !s.draining && s.movingFor < Steady+StopWithin {
			return pollSooner
		}
	case vacant:
		if !s.draining && s.vacantFor >= s.grace() {
			return take
		}
	case stoppingHere:
	}
	return leave
}

// grace returns the minimum time that a key must be vacant before this member takes it.
func (s situation) grace() time.Duration {
	switch {
	case s.avoided:
		return avoidGrace
	case s.proposed == thisMember:
		return 0
	default:
		return Grace + s.random
	}
}

// start notes a step. If nothing was observed for the length of a lease, other members may have owned vacant
// keys meanwhile, so their waiting times start again.
func (a *assignment) start(now Instant, ttl time.Duration) {
	if now.Longest(a.observed) >= ttl {
		clear(a.vacant)
	}
	a.observed = now
}

// observe adds the waiting times to the situation of a key. o is the key's owner, living or not. The
// parameter to is the member that placement proposes.
func (a *assignment) observe(s situation, o Owner, to string, now Instant) situation {
	switch to {
	case "":
		s.proposed = noMember
	case a.member:
		s.proposed = thisMember
	default:
		s.proposed = otherMember
	}
	if s.owner == vacant {
		v, known := a.vacant[o.Key]
		if !known || !v.last.Is(o) {
			v = vacancy{o, now}
			a.vacant[o.Key] = v
		}
		s.vacantFor, s.random = now.AtLeast(v.since), time.Duration(a.random(int64(PollEvery)))
		return s
	}
	delete(a.vacant, o.Key)
	moves := s.owner == ownedHere && s.proposed == otherMember || s.owner == ownedElsewhere && s.proposed == thisMember && !s.draining
	if !moves {
		delete(a.moving, o.Key)
		return s
	}
	if a.moving[o.Key].to != to {
		a.moving[o.Key] = move{to, now}
	}
	s.movingFor = now.AtLeast(a.moving[o.Key].since)
	return s
}

// took notes that this member has taken a key.
func (a *assignment) took(key string) { delete(a.vacant, key) }

// gaveUp notes that this member hands a key over.
func (a *assignment) gaveUp(key string) { delete(a.moving, key) }
