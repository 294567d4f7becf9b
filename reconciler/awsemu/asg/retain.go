package asg

import (
	"slices"
	"strings"
	"time"
)

// HookFault abandons the lifecycle action of a group's terminating instances, as a
// failed listener does, where the group has a termination hook. The zero value of a
// selector matches every group.
type HookFault struct {
	Group string `json:"group"`
	// Unanswered leaves the action of launching instances open instead: they
	// wait for as long as the group's hook says.
	Unanswered bool `json:"unanswered"`
}

const memberRetained = "Terminating:Retained"

// hookFor finds the first hook of a transition, nil for none.
func (g *Group) hookFor(transition string) *Hook {
	for _, name := range g.Hooks.Sorted() {
		if h := g.Hooks.Get(name); h.Transition == transition {
			return h
		}
	}
	return nil
}

// hookFault says whether a fault strikes the hooks of a group.
func (r *Region) hookFault(group string, unanswered bool) bool {
	return slices.ContainsFunc(r.hookFaults.List(), func(h *HookFault) bool {
		return h.Unanswered == unanswered && (h.Group == "" || h.Group == group)
	})
}

// waits makes a member wait for a launching hook that no call completes, and reports
// whether it does.
func (r *Region) waits(g *Group, m *Member) bool {
	h := g.hookFor("autoscaling:EC2_INSTANCE_LAUNCHING")
	if h == nil || !r.hookFault(g.Name, true) {
		return false
	}
	m.Lifecycle = memberWaiting
	if a := g.openActivity("Launching", m.ID); a != nil {
		a.Status = "MidLifecycleAction"
	}
	r.After(time.Duration(h.Timeout)*time.Second, timerHook, g.key()+"\x00"+m.ID+"\x00"+h.Result)
	return true
}

// runHook applies the hook's default result to a member whose hook no call completed.
func runHook(r *Region, key string) {
	parts := strings.Split(key, "\x00")
	g := r.groupByKey(parts[0])
	if g == nil {
		return
	}
	m := g.Member(parts[1])
	switch {
	case m == nil || m.Lifecycle != memberWaiting:
	case parts[2] == "CONTINUE":
		r.serves(g, m)
	default:
		g.LastFailure = "Instance failed to complete user's Lifecycle Action: Lifecycle Action with token " + r.NewUUID("hook") + " was abandoned: Heartbeat Timeout"
		r.launchFailed(g)
		r.cancelLaunch(g, m, g.LastFailure)
		r.EndMember(g, m, "an instance was taken out of service in response to a lifecycle action that was abandoned.")
		r.Touch(g)
	}
}

// retains says whether the group keeps an instance that it was about to end: its
// termination hook was abandoned, and its policy says so.
func (r *Region) retains(g *Group) bool {
	return !g.Deleting && g.keepsAbandoned() && r.hookFault(g.Name, false) && g.hookFor("autoscaling:EC2_INSTANCE_TERMINATING") != nil
}

// keepsAbandoned says whether the group's policy retains instances.
func (g *Group) keepsAbandoned() bool {
	return g.LifecyclePolicy.Sub("RetentionTriggers").Text("TerminateHookAbandon") == "retain"
}

// retain keeps a member beside the capacity, until a call ends it.
func (r *Region) retain(g *Group, m *Member) {
	m.Lifecycle = memberRetained
	if a := g.openActivity("Terminating", m.ID); a != nil {
		a.Status, a.Progress, a.End = "Cancelled", 100, r.Now()
		a.Message = "The instance was retained because the lifecycle action of its termination was abandoned."
	}
	r.Touch(g)
}
