package intent

import (
	"strings"
	"time"
)

// Drainer asks weir to move the pods off the machines that Auto Scaling ends.
type Drainer struct {
	// Timeout is the time that pods have to terminate, in seconds.
	Timeout int32 `json:"timeout"`
	// Abandon says that a machine whose pods did not go in time is given up: its lifecycle
	// action is answered with ABANDON, and the group's policy retains it. Otherwise it
	// ends with them.
	Abandon bool `json:"abandon,omitempty"`
}

// DrainHook is the name of the lifecycle hook that weir keeps on a group with a Drainer.
const DrainHook = "weir-drain"

// The transitions of a lifecycle hook, and the results of its actions.
const (
	Terminating = "autoscaling:EC2_INSTANCE_TERMINATING"
	Continue    = "CONTINUE"
	Abandon     = "ABANDON"
)

// AWS waits for a heartbeat for the time in the hook, and for 100 times that, or 48 hours, with
// heartbeats. If weir is down for longer than one heartbeat, AWS stops waiting.
const (
	shortestHeartbeat = 300 // seconds: a weir that is replaced is back by then
	heartbeats        = 90  // of the 100, with some to spare
)

// Heartbeat returns the time in seconds that AWS waits for a heartbeat.
func (d Drainer) Heartbeat() int32 {
	return max(shortestHeartbeat, (d.Timeout+heartbeats-1)/heartbeats)
}

// Result returns the answer to the lifecycle action of a machine whose pods were not gone in time.
// AWS uses the same result if nobody answers.
func (d Drainer) Result() string {
	if d.Abandon {
		return Abandon
	}
	return Continue
}

// Hook is the lifecycle hook that makes machines wait for the drainer.
func (d Drainer) Hook() LifecycleHook {
	return LifecycleHook{Name: DrainHook, LifecycleTransition: Terminating, HeartbeatTimeout: d.Heartbeat(), DefaultResult: d.Result()}
}

// Text returns the drainer in the form of a group's tag: weir uses it to drain a group that Git has
// dropped, and a group whose new settings are not in AWS yet.
func (d Drainer) Text() string {
	return (time.Duration(d.Timeout) * time.Second).String() + " " + d.Result()
}

// DrainerOf reads what Text writes.
func DrainerOf(text string) (d Drainer, ok bool) {
	timeout, result, _ := strings.Cut(text, " ")
	t, err := time.ParseDuration(timeout)
	if err != nil || t < LeastDrain || t > MostDrain || result != Continue && result != Abandon {
		return Drainer{}, false
	}
	return Drainer{Timeout: int32(t / time.Second), Abandon: result == Abandon}, true
}

// Bounds of the time that pods have.
const (
	LeastDrain = time.Minute
	MostDrain  = 24 * time.Hour
)
