package rollout

import (
	"slices"
	"strings"
	"time"
)

// Record contains the decisions about the pools of a source. A record is never changed after it is
// passed on.
type Record struct {
	// Seq increases with every changed record.
	Seq int64 `json:"seq"`
	// Runs lists the changes that are being rolled out, or were last, by Name.
	Runs []Run `json:"runs,omitempty"`
	// Permits lists the permits of all governed pools, in order of target and pool.
	Permits []Permit `json:"permits,omitempty"`
	// Bad lists the stopped hashes, oldest first.
	Bad []Bad `json:"bad,omitempty"`
}

// Run is one change on its way through the waves of a FleetRollout.
type Run struct {
	// Name is the name of the FleetRollout, "namespace/name".
	Name string `json:"name"`
	// Spec is the FleetRollout that the run uses. While machines are changing, it stays even if Git
	// has another one, which is then Next. Gone is set if Git no longer has one.
	Spec Spec  `json:"spec"`
	Next *Spec `json:"next,omitempty"`
	Gone bool  `json:"gone,omitempty"`
	// Revision is the commit that started the run. Began is zero if nothing was rolled yet.
	Revision string    `json:"revision,omitempty"`
	Began    time.Time `json:"began,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	// Gathers is set while the members are not fixed yet, because targets have to report.
	Gathers bool `json:"gathers,omitempty"`
	// Members lists the pools that the run rolls, in order of target and pool. They are fixed at
	// its start.
	Members []Member `json:"members,omitempty"`
	// Left lists pools that an earlier change may still be changing, and whose owners have not
	// reported since.
	Left []Member `json:"left,omitempty"`
	// Unproven lists earlier changes that pools started to run and that no run has completed.
	Unproven []Unproven `json:"unproven,omitempty"`
	// Wave is the running wave, and Share the index of its running share. Since is the start of
	// that share.
	Wave  int       `json:"wave"`
	Share int       `json:"share"`
	Since time.Time `json:"since,omitzero"`
	// Baked is the time since which all machines of the share have been replaced, zero until then.
	Baked time.Time `json:"baked,omitzero"`
	// Wait explains why the run waits.
	Wait string `json:"wait,omitempty"`
	// Gated is set if the run waits for a gate.
	Gated bool `json:"gated,omitempty"`
	// Unheard maps the targets that had not reported the effect of Revision on their pools when the
	// run ended to their last reported revision.
	Unheard map[string]string `json:"unheard,omitempty"`
	// Failed lists the members whose rollout failed.
	Failed []ID      `json:"failed,omitempty"`
	Gates  []Gate    `json:"gates,omitempty"`
	Paused *Decision `json:"paused,omitempty"`
	// Stopped is set once the change was found bad.
	Stopped *Decision `json:"stopped,omitempty"`
}

// Member is a pool in a wave.
type Member struct {
	ID
	Wave int    `json:"wave"`
	Hash string `json:"hash"`
	// Machines is the number of its machines at the start of the run.
	Machines int32 `json:"machines"`
	// Whole is set if the pool is rolled in one step. Idle is set if none of its machines had to be
	// replaced. Such a pool does not make a wave count.
	Whole   bool     `json:"whole,omitempty"`
	Idle    bool     `json:"idle,omitempty"`
	Earlier *Version `json:"earlier,omitempty"`
	// Change lists the fields that the change sets, in the form of Bad.Fields.
	Change []Field `json:"change,omitempty"`
	// Granted is the last permitted share. Reserved is the number of machines that it still
	// replaces.
	Granted  int32 `json:"granted,omitempty"`
	Reserved int32 `json:"reserved,omitempty"`
}

// Gate is the last answer of a gate.
type Gate struct {
	Name string `json:"name"`
	Answer
}

// Decision is a decision of a person or of weir.
type Decision struct {
	By  string    `json:"by"`
	Why string    `json:"why,omitempty"`
	At  time.Time `json:"at"`
}

// Active reports whether the run is on its way through the waves.
func (r *Run) Active() bool { return !r.Began.IsZero() && r.Ended.IsZero() && r.Stopped == nil }

// PermitOf returns the permit of a pool. It returns false if no FleetRollout governs the pool.
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
// no run does. The target's lookups must be answered after that time. Otherwise waves would start
// with the first target that sends a request.
func (r *Record) Gathers(target string) (since time.Time) {
	for i := range r.Runs {
		if run := &r.Runs[i]; run.Gathers && run.Spec.Concerns(target) && run.Began.After(since) {
			since = run.Began
		}
	}
	return since
}

// BadOf returns the reason why a hash is not rolled out to a pool again, nil if it may be.
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
