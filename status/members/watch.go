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

// Apart is the difference between clocks from which somebody should check them: leases do not use
// the time of day, but windows, approvals and shown times do.
const Apart = 5 * time.Second

// TooLong bounds the time that something may be unowned: a takeover takes less.
const TooLong = time.Minute

// Watch reads the engine repeatedly, and so knows more than one read shows: since when something is
// unowned, and whose clock differs. The zero Watch has seen nothing. It is safe for concurrent use.
type Watch struct {
	mu sync.Mutex
	// clocks are the times that members gave, and how much they were ahead.
	clocks map[string]said
	// unowned holds the time at which each key was first seen without an owner.
	unowned map[string]time.Time
	seen    bool
	view    View
}

type said struct {
	clock time.Time
	ahead time.Duration
	known bool
}

// See takes in the engine's data of one moment. self is the member that looks, empty for a command. wanted is what somebody should own, nil if
// unknown: then everything that ever had an owner counts.
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

// reference returns the member that all others are compared with: the observing one, or for a
// command the first by name.
func reference(self string, list []coord.Alive) (like coord.Member) {
	for _, a := range list {
		if m := a.Member; m.Name == self || self == "" && m.Config != "" && (like.Name == "" || m.Name < like.Name) {
			like = m
		}
	}
	return like
}

// Differing returns the living members with another configuration than self, independent of the
// engine's record of self: the engine receives a reload a moment later.
func Differing(self coord.Member, list []coord.Alive) (out []Member) {
	for _, a := range list {
		if d := differs(self, a.Member); a.Member.Name != self.Name && len(d) > 0 {
			out = append(out, Member{Name: a.Member.Name, Differs: d})
		}
	}
	return out
}

// differs returns the sections that two configurations have in different ways. Another version may have other sections, and defaults.
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

// heard compares a clock with ours when a new time comes, for only then it is known when the member read it: moments ago. A time ahead of ours cannot
// have been read later.
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

// View returns what the last look saw. Nobody changes it.
func (w *Watch) View() View {
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.view
	if v.Members == nil {
		v.Members, v.Owned = []Member{}, []Owned{}
	}
	return v
}

// Late reports whether the records are too old for an owner: then this member writes nothing.
func (v *View) Late() bool { return v.Engine.Lag > coord.InputsWithin.Seconds() }

// Away reports whether this member has heard nothing of the engine for longer than a lease lasts: it owns nothing.
func (v *View) Away() bool { return v.Engine.Error != "" && v.Engine.Lag > coord.TTL.Seconds() }

// Different returns the members that work by another configuration than the answering one, but for sections that are a machine's own.
func (v *View) Different() (out []Member) {
	for _, m := range v.Members {
		if len(m.Differs) > 0 {
			out = append(out, m)
		}
	}
	return out
}

// DifferText says of one in which sections.
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

// Longest is the longest time for which something has been unowned, 0 if nothing is.
func (v *View) Longest(now time.Time) (longest time.Duration) {
	for _, o := range v.Unowned() {
		longest = max(longest, now.Sub(o.Since))
	}
	return longest
}
