package asg

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// The lifecycle states of members that wait for hooks, or continued after them.
const (
	suffixWait        = ":Wait"
	memberWaiting     = memberPending + suffixWait
	memberEndWaiting  = memberTerminating + suffixWait
	memberEndProceeds = "Terminating:Proceed"
	memberRetained    = "Terminating:Retained"
)

// The transitions of hooks, and the results of lifecycle actions.
const (
	transitionLaunching   = "autoscaling:EC2_INSTANCE_LAUNCHING"
	transitionTerminating = "autoscaling:EC2_INSTANCE_TERMINATING"
	resultContinue        = "CONTINUE"
	resultAbandon         = "ABANDON"
)

const completedAbandon = "Lifecycle Action Completed with ABANDON Result"

// HookListener completes the lifecycle actions of groups as soon as they start, like a program that Auto
// Scaling notifies. The zero value of a selector matches every group and both transitions.
type HookListener struct {
	Group      string `json:"group"`
	Transition string `json:"transition"`
	Result     string `json:"result"` // defaults to CONTINUE
}

// lifecycleAction is a hook that a member waits for.
type lifecycleAction struct {
	Hook    string
	Token   string
	Timeout int64     // seconds that a heartbeat adds
	Until   time.Time // end without another heartbeat
	Latest  time.Time // latest end
	Result  string    // result if nobody completes it
}

// hooked is a member that passes through the lifecycle hooks of its group. All hooks of a transition start
// together. The first ABANDON ends them all, and after the last CONTINUE the member continues.
type hooked struct {
	*Region
	g *Group
	m *Member
}

// startWait makes the member wait for the hooks of a transition, and reports whether hooks exist. If
// listeners complete them all, the member has continued already.
func (h *hooked) startWait(transition string) bool {
	hooks := h.g.hooks(transition)
	if len(hooks) == 0 {
		return false
	}
	h.m.Lifecycle += suffixWait
	if a := h.g.openActivity(transition == transitionTerminating, h.m.ID); a != nil {
		a.Status = "MidLifecycleAction"
	}
	h.m.Actions = nil
	for _, hook := range hooks {
		timeout := time.Duration(hook.Timeout) * time.Second
		a := lifecycleAction{Hook: hook.Name, Token: h.NewUUID("hook"), Timeout: hook.Timeout, Result: hook.Result,
			Until: h.Now().Add(timeout), Latest: h.Now().Add(time.Duration(hook.globalTimeout()) * time.Second)}
		h.m.Actions = append(h.m.Actions, a)
		h.After(timeout, timerHook, h.timerKey(a))
	}
	if l := h.listener(h.g.Name, transition); l != nil {
		for _, a := range h.m.Actions {
			h.complete(a, cmp.Or(l.Result, resultContinue), completedAbandon)
			if l.Result == resultAbandon {
				break // ends all actions
			}
		}
	}
	return true
}

// hooks returns the group's hooks for a transition.
func (g *Group) hooks(transition string) []*Hook {
	var out []*Hook
	for _, name := range g.Hooks.Sorted() {
		if h := g.Hooks.Get(name); h.Transition == transition && !h.Answered {
			out = append(out, h)
		}
	}
	return out
}

func (h *hooked) timerKey(a lifecycleAction) string {
	return h.g.key() + "\x00" + h.m.ID + "\x00" + a.Token
}

// listener finds the listener that completes the actions of a transition, or returns nil.
func (r *Region) listener(group, transition string) *HookListener {
	for _, l := range r.listeners.List() {
		if (l.Group == "" || l.Group == group) && (l.Transition == "" || l.Transition == transition) {
			return l
		}
	}
	return nil
}

// complete ends one of the member's actions. why is the reason of an abandonment.
func (h *hooked) complete(a lifecycleAction, result, why string) {
	h.m.Actions = slices.DeleteFunc(slices.Clone(h.m.Actions), func(o lifecycleAction) bool { return o.Token == a.Token })
	if result != resultAbandon && len(h.m.Actions) > 0 {
		return
	}
	h.m.Actions = nil
	in := h.ec2.Instances.Get(h.m.ID)
	warm := h.g.warmMember(h.m.ID) != nil
	failure := "Instance failed to complete user's Lifecycle Action: Lifecycle Action with token " + a.Token + " was abandoned: " + why
	switch {
	case strings.HasSuffix(h.m.Lifecycle, memberEndWaiting):
		h.endProceeds(result == resultAbandon)
	case result == resultAbandon:
		h.g.LastFailure = failure
		h.launchFailed(h.g)
		h.cancelLaunch(h.g, h.m, failure)
		if warm {
			Warm(h.Region, h.g).End(h.m)
		} else {
			h.EndMember(h.g, h.m, "an instance was taken out of service in response to a lifecycle action that was abandoned.")
		}
		h.Touch(h.g)
	case warm:
		Warm(h.Region, h.g).ready(h.m, in)
	default:
		h.serves(h.g, h.m)
	}
}

// hookGone ends an action of a deleted hook. A launch is abandoned, and a termination continues.
func (h *hooked) hookGone(a lifecycleAction) {
	result := resultAbandon
	if strings.HasSuffix(h.m.Lifecycle, memberEndWaiting) {
		result = resultContinue
	}
	h.complete(a, result, "Lifecycle Hook was deleted")
}

// endProceeds terminates the instance of a member after its terminating hooks. If a hook was abandoned and
// the group's policy retains such instances, it keeps the instance outside the capacity until a call ends
// it.
func (h *hooked) endProceeds(abandoned bool) {
	if abandoned && !h.g.Deleting && h.g.keepsAbandoned() {
		h.m.Lifecycle = strings.TrimSuffix(h.m.Lifecycle, suffixWait) + ":Retained"
		if a := h.g.openActivity(true, h.m.ID); a != nil {
			a.Status, a.Progress, a.End = "Cancelled", 100, h.Now()
			a.Message = "The instance was retained because the lifecycle action of its termination was abandoned."
		}
		h.Touch(h.g)
		return
	}
	h.m.Lifecycle, h.m.Actions = strings.TrimSuffix(h.m.Lifecycle, suffixWait)+":Proceed", nil
	if a := h.g.openActivity(true, h.m.ID); a != nil {
		a.Status = "InProgress"
	}
	h.ec2.TerminateInstance(h.m.ID, "User initiated")
}

// runHook applies the default result to an action that nobody completed in time.
func runHook(r *Region, key string) {
	parts := strings.Split(key, "\x00")
	g := r.groupByKey(parts[0])
	if g == nil {
		return
	}
	m := cmp.Or(g.Member(parts[1]), g.warmMember(parts[1]))
	if m == nil {
		return
	}
	for _, a := range m.Actions {
		if a.Token == parts[2] && !r.Now().Before(a.Until) {
			(&hooked{r, g, m}).complete(a, a.Result, "Heartbeat Timeout")
			return
		}
	}
}

// keepsAbandoned reports whether the group's policy retains instances.
func (g *Group) keepsAbandoned() bool {
	return g.LifecyclePolicy.Sub("RetentionTriggers").Text("TerminateHookAbandon") == "retain"
}

// actionInput names a lifecycle action by its token, or by its instance.
type actionInput struct {
	groupName
	LifecycleHookName, LifecycleActionToken, InstanceID string
}

// find finds the action and the member that waits for it.
func (in *actionInput) find(r *Region) (*hooked, lifecycleAction, error) {
	g, err := r.findGroup(in.AutoScalingGroupName)
	if err != nil {
		return nil, lifecycleAction{}, err
	}
	if in.LifecycleActionToken == "" && in.InstanceID == "" {
		return nil, lifecycleAction{}, invalid("Either LifecycleActionToken or InstanceId must be specified.")
	}
	for _, m := range append(slices.Clone(g.Members), g.WarmMembers...) {
		for _, a := range m.Actions {
			if a.Hook == in.LifecycleHookName && (in.InstanceID == "" || in.InstanceID == m.ID) && (in.LifecycleActionToken == "" || in.LifecycleActionToken == a.Token) {
				return &hooked{r, g, m}, a, nil
			}
		}
	}
	if in.LifecycleActionToken != "" {
		return nil, lifecycleAction{}, invalid("No active Lifecycle Action found with token %s", in.LifecycleActionToken)
	}
	return nil, lifecycleAction{}, invalid("No active Lifecycle Action found with instance ID %s", in.InstanceID)
}

type completeActionInput struct {
	actionInput
	LifecycleActionResult string
}

func completeLifecycleAction(rq *request, in completeActionInput) error {
	if res := in.LifecycleActionResult; res != resultContinue && res != resultAbandon {
		return invalid("Lifecycle Action Result must be either CONTINUE or ABANDON: %s", res)
	}
	work, a, err := in.find(rq.Region)
	if err != nil {
		return err
	}
	work.complete(a, in.LifecycleActionResult, completedAbandon)
	return nil
}

// recordHeartbeat restarts the timeout of an action, within the global timeout.
func recordHeartbeat(rq *request, in actionInput) error {
	work, a, err := in.find(rq.Region)
	if err != nil {
		return err
	}
	for i := range work.m.Actions {
		if open := &work.m.Actions[i]; open.Token == a.Token {
			open.Until = rq.Region.Now().Add(time.Duration(a.Timeout) * time.Second)
			if open.Until.After(a.Latest) {
				open.Until = a.Latest
			}
			rq.Region.After(open.Until.Sub(rq.Region.Now()), timerHook, work.timerKey(a))
		}
	}
	return nil
}

func describeHookTypes(rq *request, _ struct{}) error {
	rq.XML.Texts("LifecycleHookTypes", "member", []string{transitionLaunching, transitionTerminating})
	return nil
}

// globalTimeout is the maximum duration of an action, with any number of heartbeats.
func (h *Hook) globalTimeout() int64 { return min(100*h.Timeout, 172800) }
