package asg

import (
	"cmp"
	"slices"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// Hook is a lifecycle hook. Hooks are kept and shown; they hold instances up only by a
// HookFault.
type Hook struct {
	Name       string
	Transition string
	Target     string // notification target ARN
	Role       string
	Metadata   string
	Timeout    int64 // seconds
	Result     string
}

// hookInput is a hook of a request; nil members were not sent.
type hookInput struct {
	name, transition, result string
	target, role, metadata   *string
	timeout                  *int64
}

func parseHookInput(p *wire.Params) hookInput {
	return hookInput{
		name:       p.Text("LifecycleHookName"),
		transition: p.OneOf("LifecycleTransition", "autoscaling:EC2_INSTANCE_LAUNCHING", "autoscaling:EC2_INSTANCE_TERMINATING"),
		result:     p.OneOf("DefaultResult", "CONTINUE", "ABANDON"),
		target:     p.Optional("NotificationTargetARN"), role: p.Optional("RoleARN"), metadata: p.Optional("NotificationMetadata"),
		timeout: between(p, "HeartbeatTimeout", 30, 7200),
	}
}

// apply changes a hook by what was sent.
func (in *hookInput) apply(h *Hook) {
	h.Name = in.name
	h.Transition, h.Result = cmp.Or(in.transition, h.Transition), cmp.Or(in.result, h.Result)
	Set(&h.Target, in.target)
	Set(&h.Role, in.role)
	Set(&h.Metadata, in.metadata)
	Set(&h.Timeout, in.timeout)
}

func newHook() *Hook { return &Hook{Timeout: 3600, Result: "ABANDON"} }

// parseHook reads a hook of CreateAutoScalingGroup.
func parseHook(p *wire.Params) *Hook {
	in := parseHookInput(p)
	h := newHook()
	in.apply(h)
	return h
}

type putHookInput struct {
	group string
	hook  hookInput
}

func parsePutHook(p *wire.Params) putHookInput {
	return putHookInput{group: nameOf(p), hook: parseHookInput(p)}
}

func putLifecycleHook(rq *request, in putHookInput) error {
	g, err := rq.Region.changeableGroup(in.group)
	if err != nil {
		return err
	}
	h := newHook()
	if known := g.Hooks.Get(in.hook.name); known != nil {
		*h = *known
	} else if in.hook.transition == "" {
		return wire.Fail("ValidationError", "LifecycleTransition is required for a new lifecycle hook")
	}
	if !g.Hooks.Has(in.hook.name) && g.Hooks.Len() >= rq.Region.Quota("lifecycle-hooks") {
		return wire.Fail("LimitExceeded", "You've reached the limit on the number of lifecycle hooks: %d", rq.Region.Quota("lifecycle-hooks"))
	}
	in.hook.apply(h)
	g.Hooks.Put(h.Name, h)
	return nil
}

type describeHooksInput struct {
	group string
	names []string
}

func parseDescribeHooks(p *wire.Params) describeHooksInput {
	return describeHooksInput{group: nameOf(p), names: p.Strings("LifecycleHookNames")}
}

func describeLifecycleHooks(rq *request, in describeHooksInput) error {
	g, err := rq.Region.findGroup(in.group)
	if err != nil {
		return err
	}
	w := &rq.XML
	w.Open("LifecycleHooks")
	for _, name := range g.Hooks.Sorted() {
		if len(in.names) > 0 && !slices.Contains(in.names, name) {
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
		w.Integer("GlobalTimeout", min(100*h.Timeout, 172800))
		w.Text("DefaultResult", h.Result)
		w.Close("member")
	}
	w.Close("LifecycleHooks")
	return nil
}

type deleteHookInput struct{ group, hook string }

func parseDeleteHook(p *wire.Params) deleteHookInput {
	return deleteHookInput{group: nameOf(p), hook: p.Text("LifecycleHookName")}
}

func deleteLifecycleHook(rq *request, in deleteHookInput) error {
	g, err := rq.Region.changeableGroup(in.group)
	if err != nil {
		return err
	}
	if !g.Hooks.Has(in.hook) {
		return wire.Fail("ValidationError", "No Lifecycle Hook found for %s", in.hook)
	}
	g.Hooks.Remove(in.hook)
	return nil
}
