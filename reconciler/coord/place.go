package coord

import (
	"cmp"
	"hash/fnv"
	"slices"
)

// Scope is a key that somebody should own, for Place.
type Scope struct {
	Key string
	// Weight is its work in pools; less than 1 counts as 1.
	Weight int
	// Owner names the member that owns it, or did last.
	Owner string
	// Pinned names the member that a person chose.
	Pinned string
}

// slack is the part of the mean by which a member's load may differ from it when keys are placed.
const slack = 4 // a quarter

// Place proposes an owner for each key, by name, of the members that there are. It is rendezvous hashing with bounded
// loads that moves nothing without a reason. A key stays with its owner; one without goes to the member with the
// highest score for it that has room. Then, where loads are uneven, keys move, those with the highest scores first,
// from members that have too much or to members that have too little, as long as that brings both nearer to each
// other. So when a member goes, its own keys move and hardly any other; a new one gets its share, and all members
// that see the same propose the same.
func Place(scopes []Scope, members []string) map[string]string {
	if len(members) == 0 {
		return map[string]string{}
	}
	p := &placing{loads: map[string]int{}, at: map[string]string{}}
	p.members = slices.Compact(slices.Sorted(slices.Values(members)))
	scopes = slices.Clone(scopes)
	// An order that depends on no name, the same for all.
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
	// If a member went, only its keys move: later moves even the rest, if they must.
	most := len(scopes) * len(scopes)
	if slices.ContainsFunc(homeless, func(s Scope) bool { return s.Owner != "" }) {
		most = max(1, len(scopes)/20)
	}
	for uneven := p.uneven(); uneven && most > 0; most-- {
		uneven = p.even()
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

// uneven reports whether loads differ so much that moving keys pays: when one of three or more members stops, the remaining loads stay even.
func (p *placing) uneven() bool {
	return slices.ContainsFunc(p.members, func(m string) bool {
		load := p.loads[m] * len(p.members) * 2
		return load < p.total || load > 3*p.total
	})
}

func (p *placing) large(s Scope) bool { return s.Weight*len(p.members)*slack > p.total }

// best is the member for a key without one: the highest score of those that have too little, else of those that have room. A key that is a large part
// of a load goes to the member with least, because evening that out later would move other keys for nothing.
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

// even moves one key, or returns false. Each move brings two loads nearer to each other, so it ends.
func (p *placing) even() bool {
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

// move is the key to move from one member to another: that with the highest score.
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
	_, _ = h.Write([]byte(member)) // it never fails
	_, _ = h.Write([]byte{0})
	_, _ = h.Write([]byte(key))
	// FNV's high bits hardly depend on the last bytes: mix them (MurmurHash3's finalizer).
	x := h.Sum64()
	x = (x ^ x>>33) * 0xff51afd7ed558ccd
	x = (x ^ x>>33) * 0xc4ceb9fe1a85ec53
	return x ^ x>>33
}
