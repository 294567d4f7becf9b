package intent

import (
	"strings"
	"time"
)

// Drainer makes weir move the pods off machines that Auto Scaling terminates.
type Drainer struct {
	// Timeout is the time that pods have to terminate, in seconds.
	Timeout int32 `json:"timeout"`
	// Abandon gives a machine up if its pods did not go in time. weir answers its lifecycle action with
	// ABANDON, and the group's policy retains it. If false, the machine ends together with its pods.
	Abandon bool `json:"abandon,omitempty"`
}

// DrainHook is the name of the lifecycle hook that weir puts on a group with a Drainer.
const DrainHook = "weir-drain"

// The transitions of a lifecycle hook, and the results of its actions.
const (
	Terminating = "autoscaling:EC2_INSTANCE_TERMINATING"
	Continue    = "CONTINUE"
	Abandon     = "ABANDON"
)

// AWS waits for the heartbeat timeout of the hook. With heartbeats it waits for up to 100 times that, or 48
// hours. If weir is down for longer than one heartbeat timeout, AWS stops waiting.
const (
	shortestHeartbeat = 300 // seconds: a restarted or replaced weir is back within this time
	heartbeats        = 90  // of the 100; the others are a reserve
)

// Heartbeat returns the time in seconds that AWS waits for a heartbeat.
func (d Drainer) Heartbeat() int32 {
	return max(shortestHeartbeat, (d.Timeout+heartbeats-1)/heartbeats)
}

// Result returns the answer to the lifecycle action of a machine whose pods did not go in time. It is also
// the hook's default result, which AWS uses if nobody answers.
func (d Drainer) Result() string {
	if d.Abandon {
		return Abandon
	}
	return Continue
}

// Hook returns the lifecycle hook that makes machines wait for the drainer.
func (d Drainer) Hook() LifecycleHook {
	return LifecycleHook{Name: DrainHook, LifecycleTransition: Terminating, HeartbeatTimeout: d.Heartbeat(), DefaultResult: d.Result()}
}

// Text returns the drainer as the value of a tag of the group. weir reads the tag to drain a group that was
// removed from Git, or a group that does not have its new settings in AWS yet.
func (d Drainer) Text() string {
	return (time.Duration(d.Timeout) * time.Second).String() + " " + d.Result()
}

// DrainerOf parses the output of Text.
func DrainerOf(text string) (d Drainer, ok bool) {
	timeout, result, _ := strings.Cut(text, " ")
	t, err := time.ParseDuration(timeout)
	if err != nil || t < LeastDrain || t > MostDrain || result != Continue && result != Abandon {
		return Drainer{}, false
	}
	return Drainer{Timeout: int32(t / time.Second), Abandon: result == Abandon}, true
}

// Bounds of Timeout.
const (
	LeastDrain = time.Minute
	MostDrain  = 24 * time.Hour
)
