package rollout

import (
	"slices"
	"strings"
	"time"
)

// Record holds the decisions about the pools of a source. Its values do not change once the record
// is passed on.
type Record struct {
	// Seq increases with every changed record.
	Seq int64 `json:"seq"`
	// Runs are the changes that are rolled out, or were last, by Name.
	Runs []Run `json:"runs,omitempty"`
	// Permits holds the permits of all governed pools, in order of target and pool.
	Permits []Permit `json:"permits,omitempty"`
	// Bad are the hashes that were stopped, the oldest first.
	Bad []Bad `json:"bad,omitempty"`
}

// Run is one change on its way through the waves of a FleetRollout.
type Run struct {
	// Name is that of the FleetRollout, "namespace/name".
	Name string `json:"name"`
	// Spec is the spec that the run uses. While machines are changing, it stays the earlier spec if
	// Git holds another one, which then is Next. Gone says that Git no longer holds one.
	Spec Spec  `json:"spec"`
	Next *Spec `json:"next,omitempty"`
	Gone bool  `json:"gone,omitempty"`
	// Revision is the commit that began it. Began is zero where nothing was rolled yet.
	Revision string    `json:"revision,omitempty"`
	Began    time.Time `json:"began,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	// Gathers says that the members are not fixed yet: targets have to report.
	Gathers bool `json:"gathers,omitempty"`
	// Members are the pools that it rolls, which are fixed at its start, in order of target
	// and pool.
	Members []Member `json:"members,omitempty"`
	// Left holds pools that an earlier change may still be changing, whose owners have been silent
	// since.
	Left []Member `json:"left,omitempty"`
	// Unproven lists earlier changes that pools began and that no run has ended.
	Unproven []Unproven `json:"unproven,omitempty"`
	// Wave is the wave that runs, Share which of its shares; Since is when that began.
	Wave  int       `json:"wave"`
	Share int       `json:"share"`
	Since time.Time `json:"since,omitzero"`
	// Baked is the time since which all machines of the share are there; zero while they are not.
	Baked time.Time `json:"baked,omitzero"`
	// Wait says what the run waits for.
	Wait string `json:"wait,omitempty"`
	// Gated says that it is a gate.
	Gated bool `json:"gated,omitempty"`
	// Unheard are the targets that had not reported what Revision makes of their pools when
	// the run ended, each with the revision that they had reported last.
	Unheard map[string]string `json:"unheard,omitempty"`
	// Failed holds the members whose rollout failed.
	Failed []ID   `json:"failed,omitempty"`
	Gates  []Gate `json:"gates,omitempty"`
	Paused *Word  `json:"paused,omitempty"`
	// Stopped is set once the change is bad.
	Stopped *Word `json:"stopped,omitempty"`
}

// Member is a pool in a wave.
type Member struct {
	ID
	Wave int    `json:"wave"`
	Hash string `json:"hash"`
	// Machines is the number of its machines when the run began.
	Machines int32 `json:"machines"`
	// Whole says that it is rolled in one step. Idle says that none of its machines was to
	// be replaced: it makes no wave count.
	Whole   bool     `json:"whole,omitempty"`
	Idle    bool     `json:"idle,omitempty"`
	Earlier *Version `json:"earlier,omitempty"`
	// Change lists what the change sets, as Bad keeps it.
	Change []Field `json:"change,omitempty"`
	// Granted is the share that it was last allowed, Reserved how many machines that
	// still replaces.
	Granted  int32 `json:"granted,omitempty"`
	Reserved int32 `json:"reserved,omitempty"`
}

// Gate is the last answer of a gate.
type Gate struct {
	Name string `json:"name"`
	Answer
}

// Word is a decision of a person or of weir.
type Word struct {
	By  string    `json:"by"`
	Why string    `json:"why,omitempty"`
	At  time.Time `json:"at"`
}

// Active reports whether the run is on its way through the waves.
func (r *Run) Active() bool { return !r.Began.IsZero() && r.Ended.IsZero() && r.Stopped == nil }

// PermitOf is the permit of a pool; false where no FleetRollout governs it.
func (r *Record) PermitOf(id ID) (Permit, bool) {
	i, ok := slices.BinarySearchFunc(r.Permits, id, func(p Permit, id ID) int { return compare(p.ID, id) })
	if !ok {
		return Permit{}, false
	}
	return r.Permits[i], true
}

// everBad reports whether something was stopped for a pool.
func (r *Record) everBad(id ID) bool {
	return slices.ContainsFunc(r.Bad, func(b Bad) bool { return b.ID == id })
}

// Gathers returns the time since which runs gather the wanted changes of a target's pools, zero if
// no run does. AWS must have answered the target's lookups after that time. Otherwise waves would
// start with the first target that asks.
func (r *Record) Gathers(target string) (since time.Time) {
	for i := range r.Runs {
		if run := &r.Runs[i]; run.Gathers && run.Spec.Concerns(target) && run.Began.After(since) {
			since = run.Began
		}
	}
	return since
}

// BadOf is why a hash is rolled out no more to a pool; nil if it may be.
func (r *Record) BadOf(id ID, hash string) *Bad {
	for i := range r.Bad {
		if b := &r.Bad[i]; b.ID == id && b.Hash == hash {
			return b
		}
	}
	return nil
}

func compare(a, b ID) int {
	if c := strings.Compare(a.Target, b.Target); c != 0 {
		return c
	}
	return strings.Compare(a.Pool, b.Pool)
}
