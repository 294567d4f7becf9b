package asg

import (
	"cmp"
	"slices"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// Hook is a lifecycle hook. lifecycle.go implements the waits.
type Hook struct {
	Name       string
	Transition string
	Target     string // notification target ARN
	Role       string
	Metadata   string
	Timeout    int64 // seconds
	Result     string
	// Answered says that EKS completes the actions of this hook as soon as they start.
	Answered bool `json:",omitempty"`
}

// AddNodegroupHooks adds the hooks that EKS puts on the group of a managed nodegroup.
func (g *Group) AddNodegroupHooks(topic, role string) {
	for name, transition := range map[string]string{"Launch-LC-Hook": transitionLaunching, "Terminate-LC-Hook": transitionTerminating} {
		g.Hooks.Put(name, &Hook{Name: name, Transition: transition, Target: topic, Role: role, Timeout: 1800, Result: resultContinue, Answered: true})
	}
}

// hookInput is a hook in a request. Members that were not sent are nil.
type hookInput struct {
	LifecycleHookName, LifecycleTransition, DefaultResult string
	NotificationTargetARN, RoleARN, NotificationMetadata  *string
	HeartbeatTimeout                                      *int64
}

func (in *hookInput) Check() error {
	if t := in.LifecycleTransition; t != "" && t != transitionLaunching && t != transitionTerminating {
		return badValue("LifecycleTransition", t, "Member must satisfy enum value set: [autoscaling:EC2_INSTANCE_LAUNCHING, autoscaling:EC2_INSTANCE_TERMINATING]")
	}
	if res := in.DefaultResult; res != "" && res != resultContinue && res != resultAbandon {
		return badValue("DefaultResult", res, "Member must satisfy enum value set: [CONTINUE, ABANDON]")
	}
	return inRange("HeartbeatTimeout", in.HeartbeatTimeout, 30, 7200)
}

// apply changes a hook by the members that were sent.
func (in *hookInput) apply(h *Hook) {
	h.Name = in.LifecycleHookName
	h.Transition, h.Result = cmp.Or(in.LifecycleTransition, h.Transition), cmp.Or(in.DefaultResult, h.Result)
	Set(&h.Target, in.NotificationTargetARN)
	Set(&h.Role, in.RoleARN)
	Set(&h.Metadata, in.NotificationMetadata)
	Set(&h.Timeout, in.HeartbeatTimeout)
}

func newHook() *Hook { return &Hook{Timeout: 3600, Result: resultAbandon} }

type putHookInput struct {
	groupName
	hookInput
}

func putLifecycleHook(rq *request, in putHookInput) error {
	g, err := rq.Region.changeableGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	h := newHook()
	if known := g.Hooks.Get(in.LifecycleHookName); known != nil {
		*h = *known
	} else if in.LifecycleTransition == "" {
		return invalid("LifecycleTransition is required for a new lifecycle hook")
	}
	if !g.Hooks.Has(in.LifecycleHookName) && g.Hooks.Len() >= rq.Region.Quota("lifecycle-hooks") {
		return wire.Fail("LimitExceeded", "You've reached the limit on the number of lifecycle hooks: %d", rq.Region.Quota("lifecycle-hooks"))
	}
	in.apply(h)
	g.Hooks.Put(h.Name, h)
	return nil
}

type describeHooksInput struct {
	groupName
	LifecycleHookNames []string
}

func describeLifecycleHooks(rq *request, in describeHooksInput) error {
	g, err := rq.Region.findGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	w := &rq.XML
	w.Open("LifecycleHooks")
	for _, name := range g.Hooks.Sorted() {
		if len(in.LifecycleHookNames) > 0 && !slices.Contains(in.LifecycleHookNames, name) {
			continue
		}
		h := g.Hooks.Get(name)
		w.Open("member")
		w.Text("LifecycleHookName", h.Name)
		w.Text("AutoScalingGroupName", g.Name)
		w.Text("LifecycleTransition", h.Transition)
		w.Optional("NotificationTargetARN", h.Target)
		w.Optional("RoleARN", h.Role)
		w.Optional("NotificationMetadata", h.Metadata)
		w.Integer("HeartbeatTimeout", h.Timeout)
		w.Integer("GlobalTimeout", h.globalTimeout())
		w.Text("DefaultResult", h.Result)
		w.Close("member")
	}
	w.Close("LifecycleHooks")
	return nil
}

type deleteHookInput struct {
	groupName
	LifecycleHookName string
}

func deleteLifecycleHook(rq *request, in deleteHookInput) error {
	g, err := rq.Region.changeableGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	if !g.Hooks.Has(in.LifecycleHookName) {
		return invalid("No Lifecycle Hook found for %s", in.LifecycleHookName)
	}
	g.Hooks.Remove(in.LifecycleHookName)
	for _, m := range slices.Concat(g.Members, g.WarmMembers) {
		for _, a := range m.Actions {
			if a.Hook == in.LifecycleHookName {
				(&hooked{rq.Region, g, m}).hookGone(a)
			}
		}
	}
	return nil
}
