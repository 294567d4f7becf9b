package awsemu

// hook is a lifecycle hook. Hooks are kept and shown; they hold instances up only by a
// HookFault.
type hook struct {
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

func parseHookInput(p *params) hookInput {
	return hookInput{
		name:       p.text("LifecycleHookName"),
		transition: p.oneOf("LifecycleTransition", "autoscaling:EC2_INSTANCE_LAUNCHING", "autoscaling:EC2_INSTANCE_TERMINATING"),
		result:     p.oneOf("DefaultResult", "CONTINUE", "ABANDON"),
		target:     p.optional("NotificationTargetARN"), role: p.optional("RoleARN"), metadata: p.optional("NotificationMetadata"),
		timeout: between(p, "HeartbeatTimeout", 30, 7200),
	}
}

// apply changes a hook by what was sent.
func (in *hookInput) apply(h *hook) {
	h.Name = in.name
	h.Transition, h.Result = first(in.transition, h.Transition), first(in.result, h.Result)
	set(&h.Target, in.target)
	set(&h.Role, in.role)
	set(&h.Metadata, in.metadata)
	set(&h.Timeout, in.timeout)
}

func newHook() *hook { return &hook{Timeout: 3600, Result: "ABANDON"} }

// parseHook reads a hook of CreateAutoScalingGroup.
func parseHook(p *params) *hook {
	in := parseHookInput(p)
	h := newHook()
	in.apply(h)
	return h
}

type putHookInput struct {
	group string
	hook  hookInput
}

func parsePutHook(p *params) putHookInput {
	return putHookInput{group: nameOf(p), hook: parseHookInput(p)}
}

func putLifecycleHook(rq *request, in putHookInput) error {
	g, err := rq.region.changeableGroup(in.group)
	if err != nil {
		return err
	}
	h := newHook()
	if known := g.Hooks.get(in.hook.name); known != nil {
		*h = *known
	} else if in.hook.transition == "" {
		return fail("ValidationError", "LifecycleTransition is required for a new lifecycle hook")
	}
	if !g.Hooks.has(in.hook.name) && g.Hooks.len() >= rq.region.quota("lifecycle-hooks") {
		return fail("LimitExceeded", "You've reached the limit on the number of lifecycle hooks: %d", rq.region.quota("lifecycle-hooks"))
	}
	in.hook.apply(h)
	g.Hooks.put(h.Name, h)
	return nil
}

type describeHooksInput struct {
	group string
	names []string
}

func parseDescribeHooks(p *params) describeHooksInput {
	return describeHooksInput{group: nameOf(p), names: p.strings("LifecycleHookNames")}
}

func describeLifecycleHooks(rq *request, in describeHooksInput) error {
	g, err := rq.region.findGroup(in.group)
	if err != nil {
		return err
	}
	w := &rq.xml
	w.open("LifecycleHooks")
	for _, name := range g.Hooks.sorted() {
		if len(in.names) > 0 && !contains(in.names, name) {
			continue
		}
		h := g.Hooks.get(name)
		w.open("member")
		w.text("LifecycleHookName", h.Name)
		w.text("AutoScalingGroupName", g.Name)
		w.text("LifecycleTransition", h.Transition)
		w.optional("NotificationTargetARN", h.Target)
		w.optional("RoleARN", h.Role)
		w.optional("NotificationMetadata", h.Metadata)
		w.integer("HeartbeatTimeout", h.Timeout)
		w.integer("GlobalTimeout", min(100*h.Timeout, 172800))
		w.text("DefaultResult", h.Result)
		w.close("member")
	}
	w.close("LifecycleHooks")
	return nil
}

type deleteHookInput struct{ group, hook string }

func parseDeleteHook(p *params) deleteHookInput {
	return deleteHookInput{group: nameOf(p), hook: p.text("LifecycleHookName")}
}

func deleteLifecycleHook(rq *request, in deleteHookInput) error {
	g, err := rq.region.changeableGroup(in.group)
	if err != nil {
		return err
	}
	if !g.Hooks.has(in.hook) {
		return fail("ValidationError", "No Lifecycle Hook found for %s", in.hook)
	}
	g.Hooks.remove(in.hook)
	return nil
}
