package coord

import "net/url"

// stuckKeys is the prefix of the records that name the members whose work on a key was stuck.
const stuckKeys = "coord/stuck/"

// stuckRecords remember when this member first read that another one was stuck on a key. The records have no
// times, because the clocks of members may differ.
type stuckRecords struct {
	member string // this one
	seen   map[string]firstSeen
}

// firstSeen is a version of a record, and when this member first read it.
type firstSeen struct {
	version int64
	at      Instant
}

// read reads the records of a snapshot.
func (s *stuckRecords) read(now *Snapshot, instant Instant) {
	seen := map[string]firstSeen{}
	for _, r := range now.List(stuckKeys) {
		first := firstSeen{r.Version, instant}
		if old := s.seen[r.Key]; old.version == r.Version {
			first = old
		}
		seen[r.Key] = first
	}
	s.seen = seen
}

// everywhere reports whether all other members were recently stuck on a key, as when a Git server is down.
// Then no member should give the key up: moving it around would help nobody.
func (s *stuckRecords) everywhere(now *Snapshot, key string, instant Instant) bool {
	others := 0
	for _, a := range now.Alive {
		if a.Member.Draining || a.Member.Name == s.member {
			continue
		}
		others++
		if first, ok := s.seen[stuckKey(key, a.Member.Name)]; !ok || instant.AtLeast(first.at) > avoidFor {
			return false
		}
	}
	return others > 0
}

// note records that this member was stuck on a key.
func (s *stuckRecords) note(key string) Op { return Op{Key: stuckKey(key, s.member), If: Any} }

func stuckKey(key, member string) string { return stuckKeys + key + "/" + url.PathEscape(member) }
