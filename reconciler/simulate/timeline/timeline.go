// Package timeline represents the effect of a change over time as a value: machines by version, starts and
// ends, calls, and waits. A Recorder builds it from the results of passes. The package does not depend on
// AWS or on a simulation. The size of a timeline is bounded, whatever the size of the fleet and the duration
// of the change.
package timeline

import "time"

// Schema is the version of a Timeline's JSON.
const Schema = "weir.dev/simulation/v1"

// The outcomes of a timeline or a target.
const (
	Converged  = "converged"  // everything matches Git
	Waits      = "waits"      // the remaining steps wait for a person
	Failed     = "failed"     // something fails, and nothing else can continue by itself
	Incomplete = "incomplete" // the simulation was cut short
)

// Timeline shows the effect of a change over time. All times in it are seconds since Began.
type Timeline struct {
	Schema string `json:"schema"`
	// Began is the time of the read of AWS. It is zero if left out.
	Began time.Time `json:"began,omitzero"`
	// End is the time of the last event that belongs to the change.
	End float64 `json:"end"`
	// Outcome is one of Converged, Waits, Failed and Incomplete. Why explains it.
	Outcome string `json:"outcome"`
	Why     string `json:"why,omitempty"`
	// Changed is the number of pools that change.
	Changed int `json:"changedPools"`
	// MostAbove is the maximum number of machines above the desired number, reached at AboveAt.
	MostAbove int32   `json:"mostAboveDesired"`
	AboveAt   float64 `json:"mostAboveAt"`
	// Launched is the number of machines that AWS launches.
	Launched int `json:"launched"`
	// Waves lists the waves of FleetRollouts, and the targets that wait for other targets, in the order of
	// their starts.
	Waves      []Wave      `json:"waves"`
	Milestones []Milestone `json:"milestones"`
	// MilestonesLeft is the number of milestones that were left out.
	MilestonesLeft int      `json:"milestonesLeftOut,omitempty"`
	Targets        []Target `json:"targets"`
	Pools          []Pool   `json:"pools"`
	Points         []Point  `json:"points"`
	// Calls lists weir's calls by AWS's token buckets.
	Calls []Bucket `json:"calls"`
	// RateWait is the total time in seconds that calls wait for AWS's rates.
	RateWait float64 `json:"rateWait"`
	Waiting  []Wait  `json:"waiting"`
	// Assumptions lists the assumed facts. Doubts lists reasons why the timeline may be wrong.
	Assumptions []Assumption `json:"assumptions"`
	Doubts      []string     `json:"doubts,omitempty"`
	// Passes is the number of simulated passes.
	Passes int `json:"passes"`
}

// Assumption is an assumed fact, with the flag that changes it.
type Assumption struct {
	What  string `json:"what"`
	Value string `json:"value,omitempty"`
	Flag  string `json:"flag,omitempty"`
}

// Wave is a part of a change that starts after another part.
type Wave struct {
	Name string  `json:"name"`
	At   float64 `json:"at"`
}

// Milestone is an event.
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
	// Begins and Ends are the times of its first and last change. Both are 0 if nothing changes.
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
	Ends      float64 `json:"ends"` // 0 if it does not converge
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
	// Versions has the number of machines in service by launch template version.
	Versions map[string]int32 `json:"versions"`
	Starting int32            `json:"starting,omitempty"`
	Ending   int32            `json:"ending,omitempty"`
	// Replaced is the total number of machines that did not exist at the start.
	Replaced int32 `json:"replaced,omitempty"`
}

// Point is the number of machines from a moment on, in all pools that change.
type Point struct {
	At      float64 `json:"at"`
	Desired int32   `json:"desired"`
	// Old and New are the numbers of machines in service. New ones have the final version of their pool. If
	// the version says nothing, as in a nodegroup, they did not exist at the start.
	Old int32 `json:"old"`
	New int32 `json:"new"`
	// Starting is the number of machines that are not in service yet, and Ending the number that no longer
	// are.
	Starting int32 `json:"starting"`
	Ending   int32 `json:"ending"`
}

// above returns the number of machines above the desired number that run or start.
func (p Point) above() int32 { return max(0, p.Old+p.New+p.Starting-p.Desired) }

// Bucket is the use of one of AWS's token buckets.
type Bucket struct {
	Account string `json:"account,omitempty"`
	Region  string `json:"region"`
	// Name is the service and the action, or "all" if all actions share one bucket.
	Name      string `json:"name"`
	Calls     int    `json:"calls"`
	Writes    int    `json:"writes"`
	Throttled int    `json:"throttled"`
	// Least is the minimum number of tokens in it.
	Least float64 `json:"least"`
}

// Wait is a wait of a target, at the end or for a while.
type Wait struct {
	Target string `json:"target"`
	// Pools is the number of its pools with this wait.
	Pools int `json:"pools"`
	// Hold is the plan's name of the hold, such as approval or window. Why explains it.
	Hold string `json:"hold"`
	Why  string `json:"why,omitempty"`
	// From is the start of the wait and Until its end, which is 0 if only a person ends it.
	From  float64 `json:"from"`
	Until float64 `json:"until,omitempty"`
	// Person says that a person must end it.
	Person bool `json:"person"`
}
