package coord

import (
	"cmp"
	"hash/fnv"
	"slices"
)

// Scope is a key that some member should own, for Place.
type Scope struct {
	Key string
	// Weight is its work in pools. Values below 1 count as 1.
	Weight int
	// Owner names the current or last owner.
	Owner string
	// Pinned names the member that a person chose.
	Pinned string
}

// slack is the part of the mean by which a member's load may differ from it when keys are placed.
const slack = 4 // a quarter

// Place proposes an owner for each key, by name, among the living members. It uses rendezvous hashing with
// bounded loads, and moves keys only for a reason. A key stays with its owner. A key without an owner goes
// to the member with the highest score that has room. If loads are uneven, keys then move from members with
// too much load or to members with too little, the highest scores first, as long as each move brings both
// loads closer together. So if a member stops, hardly any key but its own moves, and a new member gets its
// fraction. All members with the same input propose the same.
func Place(scopes []Scope, members []string) map[string]string {
	if len(members) == 0 {
		return map[string]string{}
	}
	p := &placing{loads: map[string]int{}, at: map[string]string{}}
	p.members = slices.Compact(slices.Sorted(slices.Values(members)))
	scopes = slices.Clone(scopes)
	// The order is the same on all members, and independent of the order of names.
	slices.SortFunc(scopes, func(a, b Scope) int {
		return cmp.Or(cmp.Compare(score("", b.Key), score("", a.Key)), cmp.Compare(a.Key, b.Key))
	})
	for i := range scopes {
		scopes[i].Weight = max(1, scopes[i].Weight)
		p.total += scopes[i].Weight
	}
	var homeless []Scope
	for _, s := range scopes {
		switch {
		case p.knows(s.Pinned):
			p.put(s, s.Pinned)
		case p.knows(s.Owner):
			p.put(s, s.Owner)
			p.movable = append(p.movable, s)
		default:
			homeless = append(homeless, s)
			p.movable = append(p.movable, s)
		}
	}
	slices.SortStableFunc(homeless, func(a, b Scope) int { return cmp.Compare(b.Weight, a.Weight) })
	for _, s := range homeless {
		p.put(s, p.best(s))
	}
	// If a member stopped, move little else now. Later calls even out the remaining differences if
	// necessary.
	most := len(scopes) * len(scopes)
	if slices.ContainsFunc(homeless, func(s Scope) bool { return s.Owner != "" }) {
		most = max(1, len(scopes)/20)
	}
	for uneven := p.uneven(); uneven && most > 0; most-- {
		uneven = p.balance()
	}
	return p.at
}

type placing struct {
	members []string // by name
	total   int
	loads   map[string]int
	at      map[string]string
	movable []Scope
}

func (p *placing) knows(member string) bool {
	_, ok := slices.BinarySearch(p.members, member)
	return ok
}

func (p *placing) put(s Scope, member string) {
	if before, ok := p.at[s.Key]; ok {
		p.loads[before] -= s.Weight
	}
	p.at[s.Key] = member
	p.loads[member] += s.Weight
}

// low and high report whether a load is too small or too large.
func (p *placing) low(load int) bool  { return load*len(p.members)*slack < p.total*(slack-1) }
func (p *placing) high(load int) bool { return load*len(p.members)*slack > p.total*(slack+1) }

// uneven reports whether loads differ so much that moving keys is worth it. It is false after one of three
// or more evenly loaded members stops.
func (p *placing) uneven() bool {
	return slices.ContainsFunc(p.members, func(m string) bool {
		load := p.loads[m] * len(p.members) * 2
		return load < p.total || load > 3*p.total
	})
}

func (p *placing) large(s Scope) bool { return s.Weight*len(p.members)*slack > p.total }

// best returns the member for a key without an owner: the highest score among members with too little load,
// else among members with room. A key that is a large part of a load goes to the member with the smallest
// load, because evening that out later would move other keys unnecessarily.
func (p *placing) best(s Scope) string {
	rank := func(m string) int {
		switch load := p.loads[m]; {
		case p.low(load):
			return 0
		case !p.high(load + s.Weight):
			return 1
		default:
			return 2
		}
	}
	return slices.MinFunc(p.members, func(a, b string) int {
		ra, rb := rank(a), rank(b)
		if ra != rb {
			return cmp.Compare(ra, rb)
		}
		if (ra == 2 || p.large(s)) && p.loads[a] != p.loads[b] {
			return cmp.Compare(p.loads[a], p.loads[b])
		}
		return cmp.Or(cmp.Compare(score(b, s.Key), score(a, s.Key)), cmp.Compare(a, b))
	})
}

// balance moves one key, or returns false. Each move brings two loads closer together, so repeated calls end.
func (p *placing) balance() bool {
	byLoad := slices.Clone(p.members)
	slices.SortFunc(byLoad, func(a, b string) int {
		return cmp.Or(cmp.Compare(p.loads[a], p.loads[b]), cmp.Compare(a, b))
	})
	for i := len(byLoad) - 1; i > 0; i-- { // from the largest load
		from := byLoad[i]
		for _, to := range byLoad[:i] { // to the smallest
			if !p.high(p.loads[from]) && !p.low(p.loads[to]) {
				break
			}
			if s, ok := p.move(from, to); ok {
				p.put(s, to)
				return true
			}
		}
	}
	return false
}

// move returns the key with the highest score to move from one member to another.
func (p *placing) move(from, to string) (best Scope, ok bool) {
	for _, s := range p.movable {
		if p.at[s.Key] != from || p.loads[to]+s.Weight >= p.loads[from] {
			continue
		}
		if !ok || score(to, s.Key) > score(to, best.Key) {
			best, ok = s, true
		}
	}
	return best, ok
}

// score is the rendezvous hash of a member and a key.
func score(member, key string) uint64 {
	h := fnv.New64a()
	_, _ = h.Write([]byte(member)) // never fails
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(key))
	// FNV's high bits hardly depend on the last bytes, so mix them with MurmurHash3's finalizer.
	x := h.Sum64()
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
