package awsemu

import "slices"

// HookFault has the lifecycle action of a group's terminating instances abandoned,
// as a listener does that failed, where the group has a hook for terminations. The
// zero value of a selector matches every group.
type HookFault struct {
	Group string
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

func (f *Faults) abandons(group string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.hooks, func(h *HookFault) bool { return h.Group == "" || h.Group == group })
}

const memberRetained = "Terminating:Retained"

// retains says whether the group keeps an instance that it was about to end: its
// termination hook was abandoned, and its policy says so.
func (r *region) retains(g *asgGroup) bool {
	if g.Deleting || !g.keepsAbandoned() || !r.srv.faults.abandons(g.Name) {
		return false
	}
	return slices.ContainsFunc(g.Hooks.sorted(), func(name string) bool {
		return g.Hooks.get(name).Transition == "autoscaling:EC2_INSTANCE_TERMINATING"
	})
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
