// Package timeline is what a change does over time, as a value: machines by version, what
// begins and ends when, which calls that takes, and what waits for whom. A Recorder folds
// it from what passes saw and did; it knows neither AWS nor a simulation, and what it makes
// is bounded in size however large the fleet is and however long the change takes.
package timeline

import "time"

// Schema names the form of a Timeline as JSON.
const Schema = "weir.dev/simulation/v1"

// Outcomes of a timeline or a target.
const (
	Converged  = "converged"  // all matches Git
	Waits      = "waits"      // what is left waits for somebody
	Failed     = "failed"     // something fails, and nothing is left that may go on by itself
	Incomplete = "incomplete" // the simulation was cut short
)

// Timeline shows what a change does over time. All moments within it are seconds since Began.
type Timeline struct {
	Schema string `json:"schema"`
	// Began is the time when AWS was read, zero if that is left out.
	Began time.Time `json:"began,omitzero"`
	// End is the time of the last event that belongs to the change.
	End float64 `json:"end"`
	// Outcome is one of Converged, Waits, Failed and Incomplete, Why says more.
	Outcome string `json:"outcome"`
	Why     string `json:"why,omitempty"`
	// Changed is the number of pools that something is done to.
	Changed int `json:"changedPools"`
	// MostAbove is the maximum number of machines above the desired number, reached at AboveAt.
	MostAbove int32   `json:"mostAboveDesired"`
	AboveAt   float64 `json:"mostAboveAt"`
	// Launched is the number of machines that AWS starts.
	Launched int `json:"launched"`
	// Waves are those of FleetRollouts, and the targets that wait for others, in the
	// order in which they begin.
	Waves      []Wave      `json:"waves"`
	Milestones []Milestone `json:"milestones"`
	// MilestonesLeft is the number of milestones that were left out.
	MilestonesLeft int      `json:"milestonesLeftOut,omitempty"`
	Targets        []Target `json:"targets"`
	Pools          []Pool   `json:"pools"`
	Points         []Point  `json:"points"`
	// Calls are those that weir makes, by AWS's token buckets.
	Calls []Bucket `json:"calls"`
	// RateWait is for how many seconds calls wait for AWS's rates, one after another.
	RateWait float64 `json:"rateWait"`
	Waiting  []Wait  `json:"waiting"`
	// Assumptions lists the facts that were assumed, Doubts what may make the timeline untrue.
	Assumptions []Assumption `json:"assumptions"`
	Doubts      []string     `json:"doubts,omitempty"`
	// Passes is the number of simulated passes.
	Passes int `json:"passes"`
}

// Assumption is something that was taken for granted, with the flag that says it otherwise.
type Assumption struct {
	What  string `json:"what"`
	Value string `json:"value,omitempty"`
	Flag  string `json:"flag,omitempty"`
}

// Wave is a part of a change that begins after another.
type Wave struct {
	Name string  `json:"name"`
	At   float64 `json:"at"`
}

// Milestone is something that happens.
type Milestone struct {
	At float64 `json:"at"`
	// Kind is pool-begins, pool-ends, pool-fails, target-converges, wave, or hold.
	Kind   string `json:"kind"`
	Target string `json:"target,omitempty"`
	Pool   string `json:"pool,omitempty"`
	Text   string `json:"text"`
}

// Target is the result for a target.
type Target struct {
	Name    string `json:"name"`
	Account string `json:"account,omitempty"`
	Region  string `json:"region"`
	Outcome string `json:"outcome"`
	// Begins and Ends are of its first and last change; both 0 where nothing is done.
	Begins float64 `json:"begins"`
	Ends   float64 `json:"ends"`
	Pools  int     `json:"pools"`
}

// Pool is a pool that changes.
type Pool struct {
	Target string `json:"target"`
	// Name is "namespace/name".
	Name      string  `json:"name"`
	Begins    float64 `json:"begins"`
	Ends      float64 `json:"ends"` // 0 where it does not converge
	MostAbove int32   `json:"mostAboveDesired"`
	// Version is the version of the launch template to which its machines change.
	Version string      `json:"version,omitempty"`
	Points  []PoolPoint `json:"points"`
	// Replaced is the number of machines that replaced others. Grows is the number of additional
	// machines at the end, negative for fewer. Only a Brief, which has no Points, sets them.
	Replaced int32 `json:"replaced,omitempty"`
	Grows    int32 `json:"grows,omitempty"`
}

// PoolPoint is the number of a pool's machines from a moment on.
type PoolPoint struct {
	At      float64 `json:"at"`
	Desired int32   `json:"desired"`
	// Versions are the machines in service, by the version of the launch template.
	Versions map[string]int32 `json:"versions"`
	Starting int32            `json:"starting,omitempty"`
	Ending   int32            `json:"ending,omitempty"`
	// Replaced is the number of all machines that were not there at first.
	Replaced int32 `json:"replaced,omitempty"`
}

// Point is the number of machines from a moment on, in all pools that change.
type Point struct {
	At      float64 `json:"at"`
	Desired int32   `json:"desired"`
	// New machines in service are of the version that their pool comes to, or where the
	// version says nothing, such as in a nodegroup, were not there at first. Old are others.
	Old int32 `json:"old"`
	New int32 `json:"new"`
	// Starting machines are not in service yet, Ending ones not any more.
	Starting int32 `json:"starting"`
	Ending   int32 `json:"ending"`
}

// above returns the number of machines above the desired number that run or start.
func (p Point) above() int32 { return max(0, p.Old+p.New+p.Starting-p.Desired) }

// Bucket is the use of one of AWS's token buckets.
type Bucket struct {
	Account string `json:"account,omitempty"`
	Region  string `json:"region"`
	// Name is the service and the action, or "all" where all actions share one.
	Name      string `json:"name"`
	Calls     int    `json:"calls"`
	Writes    int    `json:"writes"`
	Throttled int    `json:"throttled"`
	// Least is the least that it holds.
	Least float64 `json:"least"`
}

// Wait is a wait of a target, at the end or for a while.
type Wait struct {
	Target string `json:"target"`
	// Pools is the number of its pools that wait so.
	Pools int `json:"pools"`
	// Hold is the plan's word, such as approval or window, and Why says more.
	Hold string `json:"hold"`
	Why  string `json:"why,omitempty"`
	// From is the start of the wait, Until its end; 0 if only a person ends it.
	From  float64 `json:"from"`
	Until float64 `json:"until,omitempty"`
	// Person says that somebody has to end it.
	Person bool `json:"person"`
}
