package awsemu

import (
	"slices"
	"strings"
	"time"
)

// HookFault has the lifecycle action of a group's terminating instances abandoned,
// as a listener does that failed, where the group has a hook for terminations. The
// zero value of a selector matches every group.
type HookFault struct {
	Group string
	// Unanswered has nobody complete the action of launching instances instead: they
	// wait for as long as the group's hook says.
	Unanswered bool
}

// AddHook arms a fault of lifecycle hooks and returns a function that removes it.
func (f *Faults) AddHook(fault HookFault) (remove func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	armed := &fault
	f.hooks = append(f.hooks, armed)
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.hooks = slices.DeleteFunc(slices.Clone(f.hooks), func(h *HookFault) bool { return h == armed })
	}
}

func (f *Faults) ofHooks(group string, unanswered bool) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.hooks, func(h *HookFault) bool {
		return h.Unanswered == unanswered && (h.Group == "" || h.Group == group)
	})
}

const memberRetained = "Terminating:Retained"

// hookFor finds the first hook of a transition, nil for none.
func (g *asgGroup) hookFor(transition string) *hook {
	for _, name := range g.Hooks.sorted() {
		if h := g.Hooks.get(name); h.Transition == transition {
			return h
		}
	}
	return nil
}

// waits has a member wait for a launching hook that nobody completes, and reports
// whether it does.
func (r *region) waits(g *asgGroup, m *member) bool {
	h := g.hookFor("autoscaling:EC2_INSTANCE_LAUNCHING")
	if h == nil || !r.srv.faults.ofHooks(g.Name, true) {
		return false
	}
	m.Lifecycle = memberWaiting
	if a := g.openActivity("Launching", m.ID); a != nil {
		a.Status = "MidLifecycleAction"
	}
	r.after(time.Duration(h.Timeout)*time.Second, timerHook, g.key()+"\x00"+m.ID+"\x00"+h.Result)
	return true
}

// runHook does what the hook says of a member for which nobody did anything.
func runHook(r *region, key string) {
	parts := strings.Split(key, "\x00")
	g := r.groupByKey(parts[0])
	if g == nil {
		return
	}
	m := g.member(parts[1])
	switch {
	case m == nil || m.Lifecycle != memberWaiting:
	case parts[2] == "CONTINUE":
		r.serves(g, m)
	default:
		g.LastFailure = "Instance failed to complete user's Lifecycle Action: Lifecycle Action with token " + r.newUUID("hook") + " was abandoned: Heartbeat Timeout"
		r.launchFailed(g)
		r.cancelLaunch(g, m, g.LastFailure)
		r.endMember(g, m, "an instance was taken out of service in response to a lifecycle action that was abandoned.")
		r.touch(g)
	}
}

// retains says whether the group keeps an instance that it was about to end: its
// termination hook was abandoned, and its policy says so.
func (r *region) retains(g *asgGroup) bool {
	return !g.Deleting && g.keepsAbandoned() && r.srv.faults.ofHooks(g.Name, false) && g.hookFor("autoscaling:EC2_INSTANCE_TERMINATING") != nil
}

// keepsAbandoned says whether the group's policy retains instances.
func (g *asgGroup) keepsAbandoned() bool {
	return g.LifecyclePolicy.sub("RetentionTriggers").text("TerminateHookAbandon") == "retain"
}

// retain keeps a member beside the capacity, until somebody ends it.
func (r *region) retain(g *asgGroup, m *member) {
	m.Lifecycle = memberRetained
	if a := g.openActivity("Terminating", m.ID); a != nil {
		a.Status, a.Progress, a.End = "Cancelled", 100, r.now()
		a.Message = "The instance was retained because the lifecycle action of its termination was abandoned."
	}
	r.touch(g)
}
