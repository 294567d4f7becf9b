package members

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/coord"
)

// Apart is the clock difference above which a person should check the clocks. Leases do not use the time of
// day, but windows, approvals and displayed times do.
const Apart = 5 * time.Second

// TooLong is the maximum normal time without an owner: a takeover is faster.
const TooLong = time.Minute

// Watch collects repeated reads of the engine, and derives facts that one read does not show: how long
// something has been unowned, and whose clock differs. The zero Watch is ready to use. It is safe for
// concurrent use.
type Watch struct {
	mu sync.Mutex
	// clocks contains the times that members reported, and by how much they were ahead.
	clocks map[string]said
	// unowned contains the time at which each key was first seen without an owner.
	unowned map[string]time.Time
	seen    bool
	view    View
}

type said struct {
	clock time.Time
	ahead time.Duration
	known bool
}

// See processes one read of the engine. self is the member that reads, empty for a command. wanted lists
// the scopes and sources that should have an owner. If it is nil, everything that ever had an owner counts.
func (w *Watch) See(now time.Time, self string, list []coord.Alive, owners []coord.Owner, wanted []Wanted) {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := View{Members: []Member{}, Owned: w.owned(now, list, owners, wanted)}
	clocks, like := map[string]said{}, reference(self, list)
	for _, a := range list {
		m := Member{Name: a.Member.Name, Version: a.Member.Version, Address: a.Member.Address, Draining: a.Member.Draining, Answers: a.Member.Name == self, Differs: differs(like, a.Member)}
		for _, o := range v.Owned {
			switch {
			case o.Owner != m.Name:
			case o.Kind == Source:
				m.Sources++
			default:
				m.Scopes++
			}
		}
		clocks[a.Session] = w.heard(now, a)
		if s := clocks[a.Session]; s.known && !m.Answers {
			seconds := math.Round(s.ahead.Seconds()*10) / 10
			m.Clock = &seconds
		}
		v.Members = append(v.Members, m)
	}
	slices.SortFunc(v.Members, func(a, b Member) int { return cmp.Compare(a.Name, b.Name) })
	w.clocks, w.seen, w.view = clocks, true, v
}

// reference returns the member that the other members are compared with: self, or for a command the first
// by name.
func reference(self string, list []coord.Alive) (like coord.Member) {
	for _, a := range list {
		if m := a.Member; m.Name == self || self == "" && m.Config != "" && (like.Name == "" || m.Name < like.Name) {
			like = m
		}
	}
	return like
}

// Differing returns the living members with a different configuration than self. It does not use the
// engine's record of self, because the engine receives a reload a moment later.
func Differing(self coord.Member, list []coord.Alive) (out []Member) {
	for _, a := range list {
		if d := differs(self, a.Member); a.Member.Name != self.Name && len(d) > 0 {
			out = append(out, Member{Name: a.Member.Name, Differs: d})
		}
	}
	return out
}

// differs returns the sections that differ between two configurations. It compares only equal versions,
// because another version may have other sections and defaults.
func differs(a, b coord.Member) (sections []string) {
	if a.Config == "" || b.Config == "" || a.Version != b.Version || a.Config == b.Config {
		return nil
	}
	had := strings.Fields(a.Config)
	for _, word := range strings.Fields(b.Config) {
		if name, _, _ := strings.Cut(word, "="); !slices.Contains(had, word) {
			sections = append(sections, name)
		}
	}
	return sections
}

// heard compares a clock with ours when a new time arrives, because only then do we know that the member
// read it moments ago. If its time is ahead of ours, the difference is certain: the member cannot have read
// it later than now.
func (w *Watch) heard(now time.Time, a coord.Alive) said {
	before, known := w.clocks[a.Session]
	s := said{clock: a.Member.Clock, ahead: a.Member.Clock.Sub(now)}
	switch {
	case a.Member.Clock.IsZero():
		return said{}
	case known && before.clock.Equal(s.clock):
		return before
	case w.seen, s.ahead > 0:
		s.known = true
	}
	return s
}

// owned returns the owner of each wanted scope and source, or since when it has had none. The caller holds
// the lock.
func (w *Watch) owned(now time.Time, list []coord.Alive, owners []coord.Owner, wanted []Wanted) []Owned {
	names, by := alive(list), map[string]coord.Owner{}
	for _, o := range owners {
		by[o.Key] = o
	}
	all := wanted
	if wanted == nil {
		for _, key := range slices.Sorted(maps.Keys(by)) {
			all = append(all, Wanted{Key: key})
		}
	}
	unowned, out := map[string]time.Time{}, []Owned{}
	for _, want := range all {
		o, last := owned(want.Key), by[want.Key]
		o.Targets = append(o.Targets, want.Targets...)
		if name := names[last.Session]; name != "" && !last.Released {
			o.Owner, o.Since, o.Epoch = name, last.Since, last.Epoch.String()
		} else {
			o.Last, unowned[o.Key] = last.Member, now
			if since, ok := w.unowned[o.Key]; ok {
				unowned[o.Key] = since
			}
			o.Since = unowned[o.Key]
		}
		out = append(out, o)
	}
	w.unowned = unowned
	slices.SortFunc(out, byKind)
	return out
}

// View returns the result of the last See. It must not be changed.
func (w *Watch) View() View {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.view
	if v.Members == nil {
		v.Members, v.Owned = []Member{}, []Owned{}
	}
	return v
}

// Late reports whether the records are too old for an owner. This member then writes nothing.
func (v *View) Late() bool { return v.Engine.Lag > coord.InputsWithin.Seconds() }

// Away reports whether the engine has not answered this member for longer than a lease is valid. The member
// then owns nothing.
func (v *View) Away() bool { return v.Engine.Error != "" && v.Engine.Lag > coord.TTL.Seconds() }

// Different returns the members whose configuration differs from the answering member's. Sections that are
// specific to a machine do not count.
func (v *View) Different() (out []Member) {
	for _, m := range v.Members {
		if len(m.Differs) > 0 {
			out = append(out, m)
		}
	}
	return out
}

// DifferText describes the sections that differ.
func (m Member) DifferText() string {
	return "its configuration differs in " + strings.Join(m.Differs, ", ")
}

// Far returns the members whose clock differs by more than Apart.
func (v *View) Far() (out []Member) {
	for _, m := range v.Members {
		if m.Clock != nil && math.Abs(*m.Clock) > Apart.Seconds() {
			out = append(out, m)
		}
	}
	return out
}

// Longest returns the longest time for which anything has been unowned, 0 if nothing is.
func (v *View) Longest(now time.Time) (longest time.Duration) {
	for _, o := range v.Unowned() {
		longest = max(longest, now.Sub(o.Since))
	}
	return longest
}
