// Package waves says how FleetRollouts stand. The page, the API and the command line show
// its values, so that all say the same. They are made of the record, which any member of an
// instance reads, and of what owners last reported of the pools.
package waves

import (
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/render/nearest"
)

// List are the FleetRollouts of all sources.
type List struct {
	Rollouts []Rollout `json:"rollouts"`
	// Turns are the targets that wait by the configuration: dependsOn and
	// maxConcurrentRollouts.
	Turns []Turn `json:"turns"`
}

// Phases.
const (
	Idle      = "Idle"
	Gathering = "Gathering"
	Running   = "Running"
	Baking    = "Baking"
	Paused    = "Paused"
	Stopped   = "Stopped"
	Done      = "Done"
	// Incomplete is a change that has ended and that some pools have not received.
	Incomplete = "Incomplete"
)

// Rollout is a FleetRollout with the change that it rolls out, or rolled out last.
type Rollout struct {
	Source string `json:"source"`
	Name   string `json:"name"`
	// Phase is Idle, Gathering, Running, Baking, Paused, Stopped, Done or Incomplete.
	Phase    string    `json:"phase"`
	Revision string    `json:"revision,omitempty"`
	Began    time.Time `json:"began,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	// Wave is the wave that runs, Share the percentage of its pools' machines that it
	// replaces now.
	Wave  string `json:"wave,omitempty"`
	Share int32  `json:"share,omitempty"`
	// Waits says what it waits for, Do what people can do about that.
	Waits string   `json:"waits,omitempty"`
	Do    []string `json:"do,omitempty"`
	// BakesFrom and BakesUntil bound the current bake time; BakeAhead is the least remaining time
	// of all bake times together, in seconds.
	BakesFrom  time.Time `json:"bakesFrom,omitzero"`
	BakesUntil time.Time `json:"bakesUntil,omitzero"`
	BakeAhead  int64     `json:"bakeSecondsLeft,omitempty"`
	Paused     *Word     `json:"paused,omitempty"`
	Stopped    *Word     `json:"stopped,omitempty"`
	Machines   Machines  `json:"machines"`
	// MaxMachines bounds the machines that are replaced at a time, 0 for any number. Moves counts
	// those that are being replaced, or may be without a further word.
	MaxMachines   int32 `json:"maxMachines,omitempty"`
	Moves         int32 `json:"moves"`
	Failed        int   `json:"failedPools"`
	FailureBudget int32 `json:"failureBudget"`
	// Waves lists the waves with pools, in their order, Empty the names of those without.
	Waves []Wave       `json:"waves"`
	Empty []string     `json:"emptyWaves,omitempty"`
	Pools []Pool       `json:"pools"`
	Gates []GateAnswer `json:"gates"`
	Bad   []BadHash    `json:"bad"`
}

// Word is a decision of a person, or of weir.
type Word struct {
	By  string    `json:"by"`
	Why string    `json:"why,omitempty"`
	At  time.Time `json:"at"`
}

// Machines counts machines by what they run.
type Machines struct {
	All int32 `json:"all"`
	// Old run what was there before, New what is rolled out; of these, Starting are not
	// ready yet, and Failed will not be.
	Old      int32 `json:"old"`
	New      int32 `json:"new"`
	Starting int32 `json:"starting"`
	Failed   int32 `json:"failed"`
}

func (m *Machines) add(o Machines) {
	m.All, m.Old, m.New, m.Starting, m.Failed = m.All+o.All, m.Old+o.Old, m.New+o.New, m.Starting+o.Starting, m.Failed+o.Failed
}

// Words say how many machines run what.
func (m Machines) Words() string {
	var out []string
	for _, part := range m.Parts() {
		out = append(out, strconv.Itoa(int(part.Count))+" "+part.What)
	}
	if len(out) == 0 {
		return "none"
	}
	return strings.Join(out, ", ")
}

// Part is the number of machines in one state.
type Part struct {
	What  string
	Count int32
}

// What machines run.
const (
	PartNew      = "new"
	PartStarting = "starting"
	PartFailed   = "failed"
	PartOld      = "old"
)

// Parts returns the parts of the machines: together All.
func (m Machines) Parts() (out []Part) {
	for _, p := range []Part{{PartNew, m.New - m.Starting - m.Failed}, {PartStarting, m.Starting}, {PartFailed, m.Failed}, {PartOld, m.Old}} {
		if p.Count > 0 {
			out = append(out, p)
		}
	}
	return out
}

// States of waves.
const (
	WaveDone    = "done"
	WaveNow     = "now"
	WaveAhead   = "ahead"
	WaveStopped = "stopped"
)

// Wave is a wave that has pools.
type Wave struct {
	Name string `json:"name"`
	// State is done, now, ahead or stopped.
	State string `json:"state"`
	Pools int    `json:"pools"`
	// Shares are the percentages of each pool's machines at which it waits.
	Shares   []int32  `json:"shares,omitempty"`
	Machines Machines `json:"machines"`
}

// Pool is a pool in its wave.
type Pool struct {
	Target string `json:"target"`
	Pool   string `json:"pool"`
	Wave   string `json:"wave"`
	// Machines is the number of its machines, the next four split them by what they run; Unseen
	// says that nobody has reported on them.
	Machines int32 `json:"machines"`
	Old      int32 `json:"old"`
	New      int32 `json:"new"`
	Starting int32 `json:"starting"`
	Broken   int32 `json:"broken"`
	Unseen   bool  `json:"unseen,omitempty"`
	// Nodegroup says that it has no shares.
	Nodegroup bool `json:"nodegroup,omitempty"`
	// Rolls says that AWS replaces machines of it now, Left how many that still are: of a
	// nodegroup at most, as EKS does not tell how far it has come.
	Rolls bool  `json:"rolls,omitempty"`
	Left  int32 `json:"left,omitempty"`
	// Share is the share that may roll, Moves the number of machines that it still replaces.
	Share int32 `json:"share"`
	Moves int32 `json:"moves"`
	// Failed says why its rollout failed.
	Failed string `json:"failed,omitempty"`
	Waits  string `json:"waits,omitempty"`
	wave   int
}

// Counts are its machines by what they run.
func (p Pool) Counts() Machines {
	return Machines{All: p.Machines, Old: p.Old, New: p.New, Starting: p.Starting, Failed: p.Broken}
}

// In reports whether the pool is of the n-th of the Rollout's waves.
func (p Pool) In(n int) bool { return p.wave == n }

// GateAnswer is the last answer of a gate.
type GateAnswer struct {
	Name string `json:"name"`
	// Asks says what the gate asks.
	Asks    string `json:"asks"`
	Verdict string `json:"verdict"`
	What    string `json:"what,omitempty"`
	// At is the time at which its data was read.
	At time.Time `json:"at,omitzero"`
}

// BadHash is a change that is no longer rolled out to a pool.
type BadHash struct {
	Target string `json:"target"`
	Pool   string `json:"pool"`
	// Hash stands for the stopped change where it has no Fields. It is not shown beside
	// them: with a hash over user data, anybody could try which secret that holds.
	Hash string    `json:"hash,omitempty"`
	Why  string    `json:"why"`
	At   time.Time `json:"at,omitzero"`
	// Fields lists the fields that the stopped change set: one of them has to change before
	// anything is rolled out to the pool again.
	Fields string `json:"fields,omitempty"`
}

// Nearest says what is likely meant by a name that no FleetRollout has.
func (l List) Nearest(name string) string {
	var names []string
	for _, r := range l.Rollouts {
		names = append(names, r.Name)
		if _, last, cut := strings.Cut(r.Name, "/"); cut {
			names = append(names, last)
		}
	}
	if near := nearest.Word(name, names); near != "" {
		return "did you mean " + near + "?"
	}
	if len(l.Rollouts) == 0 {
		return "no source has a FleetRollout, or weir has not read it yet"
	}
	return "weir rollout list names them"
}

// Governs reports whether a pool is in one of its waves.
func (r Rollout) Governs(target, pool string) (Pool, bool) {
	for _, p := range r.Pools {
		if p.Target == target && p.Pool == pool {
			return p, true
		}
	}
	return Pool{}, false
}

// Redacted is the rollout without what must not be shown of what others said.
func (r Rollout) Redacted(text func(string) string) Rollout {
	r.Waits = text(r.Waits)
	for _, w := range []**Word{&r.Paused, &r.Stopped} {
		if *w != nil {
			one := **w
			one.Why = text(one.Why)
			*w = &one
		}
	}
	for i := range r.Pools {
		r.Pools[i].Waits, r.Pools[i].Failed = text(r.Pools[i].Waits), text(r.Pools[i].Failed)
	}
	for i := range r.Gates {
		r.Gates[i].What = text(r.Gates[i].What)
	}
	for i := range r.Bad {
		r.Bad[i].Why = text(r.Bad[i].Why)
	}
	return r
}

// At says where it stands, in few words.
func (r Rollout) At() string {
	if r.Share > 0 && r.Share < 100 {
		return r.Wave + ", " + strconv.Itoa(int(r.Share)) + " % of each pool"
	}
	return r.Wave
}
