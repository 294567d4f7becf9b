package coord

import (
	"maps"
	"slices"
	"sync"
)

// holdings are the leases that a member has under one session. They end with the session.
type holdings struct {
	session *Session
	// mirror counts the replacements of the engine. replaced is their number when the session started.
	mirror   *Mirror
	replaced int

	mu     sync.Mutex
	ended  bool
	leases map[string]*Lease
	// released is the epoch of each key's last release.
	released map[string]int64
}

func newHoldings(s *Session, m *Mirror, replaced int) *holdings {
	return &holdings{session: s, mirror: m, replaced: replaced, leases: map[string]*Lease{}, released: map[string]int64{}}
}

// void reports whether the engine was replaced since the session started. The leases are then not valid any
// more, even before the keeper's next step ends them: the step may be waiting for the engine, and people's
// requests may be missing from the records already.
func (h *holdings) void() bool { return h.mirror.Replaced() != h.replaced }

// add adds a lease. It returns false if the session has ended.
func (h *holdings) add(l *Lease) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.ended {
		h.leases[l.Owner.Key] = l
	}
	return !h.ended
}

// get returns the lease of a key, or nil if this member has no lease. The work under the lease may be stopping.
func (h *holdings) get(key string) *Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.leases[key]
}

// all returns all leases.
func (h *holdings) all() []*Lease {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Collect(maps.Values(h.leases))
}

// remove removes a lease. released says that the engine has recorded the release of its key.
func (h *holdings) remove(l *Lease, released bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.leases[l.Owner.Key] != l {
		return
	}
	delete(h.leases, l.Owner.Key)
	if released {
		h.released[l.Owner.Key] = l.Owner.Epoch.N
	}
}

// unused reports whether the session owns a key according to the engine, but has no lease of it. This happens
// if the answer to a taking or to a release was lost.
func (h *holdings) unused(o Owner) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return o.Session == h.session.id && !o.Released && h.leases[o.Key] == nil && o.Epoch.N > h.released[o.Key]
}

// end ends the session and all leases.
func (h *holdings) end() {
	h.mu.Lock()
	leases := h.leases
	h.ended, h.leases = true, map[string]*Lease{}
	h.mu.Unlock()
	h.session.end()
	for _, l := range leases {
		l.end()
	}
}
