// Package waves describes the state of FleetRollouts. The page, the API and the command line all show its
// values. They are computed from the record, which every member of an instance can read, and from the
// owners' last reports of the pools.
package waves

import (
	"strconv"
	"strings"
	"time"

	"github.com/weir-gitops/weir/render/nearest"
)

// List contains the FleetRollouts of all sources.
type List struct {
	Rollouts []Rollout `json:"rollouts"`
	// Turns lists the targets that wait because of dependsOn or maxConcurrentRollouts in the configuration.
	Turns []Turn `json:"turns"`
}

// The phases of a FleetRollout.
const (
	Idle      = "Idle"
	Gathering = "Gathering"
	Running   = "Running"
	Baking    = "Baking"
	Paused    = "Paused"
	Stopped   = "Stopped"
	Done      = "Done"
	// Incomplete means that the rollout of a change has ended, but some pools have not received it.
	Incomplete = "Incomplete"
)

// Rollout is a FleetRollout with its current or last change.
type Rollout struct {
	Source string `json:"source"`
	Name   string `json:"name"`
	// Phase is Idle, Gathering, Running, Baking, Paused, Stopped, Done or Incomplete.
	Phase    string    `json:"phase"`
	Revision string    `json:"revision,omitempty"`
	Began    time.Time `json:"began,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	// Wave is the current wave. Share is the percentage of its pools' machines that may now be replaced.
	Wave  string `json:"wave,omitempty"`
	Share int32  `json:"share,omitempty"`
	// Waits is the reason for a wait, and Do lists possible actions of users.
	Waits string   `json:"waits,omitempty"`
	Do    []string `json:"do,omitempty"`
	// BakesFrom and BakesUntil are the start and end of the current bake time. BakeAhead is the minimum
	// total of all remaining bake time, in seconds.
	BakesFrom  time.Time `json:"bakesFrom,omitzero"`
	BakesUntil time.Time `json:"bakesUntil,omitzero"`
	BakeAhead  int64     `json:"bakeSecondsLeft,omitempty"`
	Paused     *Word     `json:"paused,omitempty"`
	Stopped    *Word     `json:"stopped,omitempty"`
	Machines   Machines  `json:"machines"`
	// MaxMachines is the maximum number of machines that are replaced at the same time, 0 for no limit.
	// Moves is the number of machines that are being replaced, or may be replaced at any time.
	MaxMachines   int32 `json:"maxMachines,omitempty"`
	Moves         int32 `json:"moves"`
	Failed        int   `json:"failedPools"`
	FailureBudget int32 `json:"failureBudget"`
	// Waves lists the waves with pools, in order. Empty lists the names of the waves without pools.
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

// Machines counts machines by version.
type Machines struct {
	All int32 `json:"all"`
	// Old is the number of machines with an earlier version, and New the number with the version of the
	// change. Of the New ones, Starting are not ready yet, and Failed will not become ready.
	Old      int32 `json:"old"`
	New      int32 `json:"new"`
	Starting int32 `json:"starting"`
	Failed   int32 `json:"failed"`
}

func (m *Machines) add(o Machines) {
	m.All, m.Old, m.New, m.Starting, m.Failed = m.All+o.All, m.Old+o.Old, m.New+o.New, m.Starting+o.Starting, m.Failed+o.Failed
}

// Words describes the numbers of machines by version.
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

// The names of parts.
const (
	PartNew      = "new"
	PartStarting = "starting"
	PartFailed   = "failed"
	PartOld      = "old"
)

// Parts returns the parts of the machines. Their sum is All.
func (m Machines) Parts() (out []Part) {
	for _, p := range []Part{{PartNew, m.New - m.Starting - m.Failed}, {PartStarting, m.Starting}, {PartFailed, m.Failed}, {PartOld, m.Old}} {
		if p.Count > 0 {
			out = append(out, p)
		}
	}
	return out
}

// The states of a wave.
const (
	WaveDone    = "done"
	WaveNow     = "now"
	WaveAhead   = "ahead"
	WaveStopped = "stopped"
)

// Wave is a wave with at least one pool.
type Wave struct {
	Name string `json:"name"`
	// State is done, now, ahead or stopped.
	State string `json:"state"`
	Pools int    `json:"pools"`
	// Shares lists the percentages of each pool's machines at which the wave waits.
	Shares   []int32  `json:"shares,omitempty"`
	Machines Machines `json:"machines"`
}

// Pool is a pool in its wave.
type Pool struct {
	Target string `json:"target"`
	Pool   string `json:"pool"`
	Wave   string `json:"wave"`
	// Machines is the number of its machines. The next four fields count them by version. Unseen means that
	// no report about them exists.
	Machines int32 `json:"machines"`
	Old      int32 `json:"old"`
	New      int32 `json:"new"`
	Starting int32 `json:"starting"`
	Broken   int32 `json:"broken"`
	Unseen   bool  `json:"unseen,omitempty"`
	// Nodegroup says that the pool is a nodegroup, which has no shares.
	Nodegroup bool `json:"nodegroup,omitempty"`
	// Rolls says that AWS is replacing machines of the pool, and Left is the number of machines still to be
	// replaced. For a nodegroup, Left is the maximum, because EKS does not report the progress.
	Rolls bool  `json:"rolls,omitempty"`
	Left  int32 `json:"left,omitempty"`
	// Share is the percentage of machines that may be replaced. Moves is the number of machines still to be
	// replaced.
	Share int32 `json:"share"`
	Moves int32 `json:"moves"`
	// Failed is the reason why its rollout failed.
	Failed string `json:"failed,omitempty"`
	Waits  string `json:"waits,omitempty"`
	wave   int
}

// Counts returns the numbers of its machines by version.
func (p Pool) Counts() Machines {
	return Machines{All: p.Machines, Old: p.Old, New: p.New, Starting: p.Starting, Failed: p.Broken}
}

// In reports whether the pool belongs to the wave with index n.
func (p Pool) In(n int) bool { return p.wave == n }

// GateAnswer is the last result of a gate.
type GateAnswer struct {
	Name string `json:"name"`
	// Asks describes the condition of the gate.
	Asks    string `json:"asks"`
	Verdict string `json:"verdict"`
	What    string `json:"what,omitempty"`
	// At is the time at which the gate's data was read.
	At time.Time `json:"at,omitzero"`
}

// BadHash is a change that is no longer rolled out to a pool.
type BadHash struct {
	Target string `json:"target"`
	Pool   string `json:"pool"`
	// Hash identifies the stopped change if it has no Fields. With Fields, it is not shown: it covers user
	// data, so anybody could use it to verify guesses of a secret in the user data.
	Hash string    `json:"hash,omitempty"`
	Why  string    `json:"why"`
	At   time.Time `json:"at,omitzero"`
	// Fields lists the fields that the stopped change set. At least one of them must change before anything
	// is rolled out to the pool again.
	Fields string `json:"fields,omitempty"`
}

// Nearest suggests an existing FleetRollout for an unknown name.
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

// Governs reports whether a pool is in one of the rollout's waves.
func (r Rollout) Governs(target, pool string) (Pool, bool) {
	for _, p := range r.Pools {
		if p.Target == target && p.Pool == pool {
			return p, true
		}
	}
	return Pool{}, false
}

// Redacted returns the rollout with redacted texts from outside.
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

// At describes the progress of the rollout in a few words.
func (r Rollout) At() string {
	if r.Share > 0 && r.Share < 100 {
		return r.Wave + ", " + strconv.Itoa(int(r.Share)) + " % of each pool"
	}
	return r.Wave
}
