package group

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// hookMarks returns the value of TagHooks for hooks of these names.
func hookMarks(names []string) string {
	tags := map[string]string{}
	for _, n := range names {
		tags[n] = ""
	}
	return observed.KeyMarks(tags)
}

func hookNames(hooks []intent.LifecycleHook) []string {
	out := make([]string, len(hooks))
	for i, h := range hooks {
		out[i] = h.Name
	}
	return out
}

// UpdateHooks plans the lifecycle hooks of a group. It puts declared hooks that are missing or
// differ, removes hooks that Git declared earlier and no longer does, and leaves all other hooks.
// Reading hooks takes one call per group, so weir reads them only if the pool declares some, and
// again in this pass before it writes any.
func (c Planner) UpdateHooks(pool *intent.Pool, g observed.Group, declared []intent.LifecycleHook) {
	tag, recorded := g.Tags[observed.TagHooks]
	if len(declared) == 0 && !recorded || g.Deleting {
		return
	}
	if c.Unread(pool, "the lifecycle hooks of the group "+g.Name, c.In.State.Unread.Hooks[g.Name]) {
		return
	}
	have, read := c.In.State.Hooks[g.Name]
	steps := hookSteps(pool, g.Name, tag.Value, declared, have.Hooks)
	if !read || len(steps) > 0 && !have.ReadAtPass {
		c.Needs.Hooks = append(c.Needs.Hooks, g.Name)
		return
	}
	for _, s := range steps {
		c.Step(pool, s)
	}
}

// hookSteps returns the steps in an order that can be interrupted anywhere: a hook is recorded
// before it is made, and removed before its record.
func hookSteps(pool *intent.Pool, group, record string, declared, have []intent.LifecycleHook) []step.Step {
	names := hookNames(declared)
	var dropped []intent.LifecycleHook
	for _, h := range have {
		if !slices.Contains(names, h.Name) && observed.Marked(record, h.Name) {
			dropped = append(dropped, h)
		}
	}
	var steps []step.Step
	if slices.ContainsFunc(names, func(n string) bool { return !observed.Marked(record, n) }) {
		both := hookMarks(append(slices.Clone(names), hookNames(dropped)...))
		steps = append(steps, recordHooks(pool, group, record, both))
		record = both
	}
	for _, want := range declared {
		i := slices.IndexFunc(have, func(h intent.LifecycleHook) bool { return h.Name == want.Name })
		if i < 0 {
			steps = append(steps, hookStep(pool, group, "the lifecycle hook "+want.Name+" is missing",
				[]step.Change{hookChange(pool, want.Name, nil, hookValue(want))}, step.PutHook{Group: group, Hook: want}))
			continue
		}
		changes, clears := hookChanges(pool, have[i], observed.HookDefaults(want))
		if len(changes) == 0 {
			continue
		}
		reason := "the lifecycle hook " + want.Name + " differs"
		if clears { // PutLifecycleHook keeps members that the request omits
			steps = append(steps, hookStep(pool, group, reason+" and must be created again",
				[]step.Change{hookChange(pool, want.Name, hookValue(have[i]), nil)}, step.DeleteHook{Group: group, Name: want.Name}))
		}
		steps = append(steps, hookStep(pool, group, reason, changes, step.PutHook{Group: group, Hook: want}))
	}
	for _, h := range dropped {
		steps = append(steps, hookStep(pool, group, "Git has dropped the lifecycle hook "+h.Name,
			[]step.Change{hookChange(pool, h.Name, hookValue(h), nil)}, step.DeleteHook{Group: group, Name: h.Name}))
	}
	final := ""
	if len(names) > 0 {
		final = hookMarks(names)
	}
	if record != final {
		steps = append(steps, recordHooks(pool, group, record, final))
	}
	return steps
}

// RecordingHooks returns want with the record of the declared hooks, if the group has no such
// record yet. An existing record is kept, because it also names hooks that Git no longer declares.
func RecordingHooks(want, have map[string]string, declared []intent.LifecycleHook) map[string]string {
	if _, recorded := have[observed.TagHooks]; recorded || len(declared) == 0 {
		return want
	}
	return observed.WithTags(want, map[string]string{observed.TagHooks: hookMarks(hookNames(declared))})
}

func recordHooks(pool *intent.Pool, group, from, to string) step.Step {
	return recordStep(pool, group, observed.TagHooks, "lifecycleHooks", "the record of weir's lifecycle hooks differs", from, to)
}

// recordStep returns a step that writes the tag of a group in which weir records its own settings
// of a field.
func recordStep(pool *intent.Pool, group, tag, field, why, from, to string) step.Step {
	t := step.TagGroup{Group: group, Remove: []string{tag}}
	if to != "" {
		t.Put, t.Remove = map[string]observed.GroupTag{tag: {Value: to}}, nil
	}
	return hookStep(pool, group, why, []step.Change{{Field: intent.Path{"tags", tag}.String(), From: model.OrNil(from), To: model.OrNil(to),
		Object: pool.Infrastructure, Path: intent.Path{"spec", field}}}, t)
}

func hookStep(pool *intent.Pool, group, why string, changes []step.Change, do step.Action) step.Step {
	return step.Step{Verb: step.Update, Resource: step.AutoScalingGroup, Name: group, Reason: why, Changes: changes, Do: do}
}

func hookChange(pool *intent.Pool, field string, from, to any) step.Change {
	ch := step.Change{Field: "lifecycleHooks." + field, From: from, To: to, Object: pool.Infrastructure, Path: intent.Path{"spec", "lifecycleHooks"}}
	if name, _, _ := strings.Cut(field, "."); name == intent.DrainHook && pool.Options.Kind != "" {
		ch.Object, ch.Path = pool.Options, intent.Path{"spec", "drainer"}
	}
	return ch
}

// checkDrainer refuses a drainer that cannot work: machines would wait for it forever, or lose their pods
// because another cluster has no node for them.
func (c Planner) checkDrainer(pool *intent.Pool) {
	if pool.Group.Drainer == nil {
		return
	}
	if c.In.Policy.JoinTokens.Prefix == "" {
		how := "give the target a kubeconfigFile"
		if c.In.Policy.JoinTokens.Once {
			how = "add --kubeconfig FILE, the kubeconfig of the cluster that they join"
		}
		c.Blockf(pool, intent.Path{"spec", "drainer"}, "drainer-unreachable", "weir cannot drain the machines of pool "+pool.Key.String()+": it has no access to their cluster", how+"; or remove spec.drainer from "+pool.Options.String())
		return
	}
	for i := range c.In.Set.Pools {
		other := &c.In.Set.Pools[i]
		if other.ClusterKey != pool.ClusterKey && other.Group != nil && other.Group.Drainer != nil {
			c.Blockf(pool, intent.Path{"spec", "drainer"}, "drainer-clusters", "weir cannot drain the machines of pool "+pool.Key.String()+": the target has pools with a drainer in cluster "+pool.ClusterKey.String()+" and in cluster "+other.ClusterKey.String()+", and its kubeconfig is of one",
				"give each cluster a target of its own")
			return
		}
	}
}

// hookChanges compares two hooks of the same name, with defaults filled in. clears reports whether
// a member must be cleared, which AWS does only if the hook is recreated.
func hookChanges(pool *intent.Pool, have, want intent.LifecycleHook) (changes []step.Change, clears bool) {
	text := func(member, from, to string) {
		if from != to {
			changes = append(changes, hookChange(pool, want.Name+"."+member, model.OrNil(from), model.OrNil(to)))
			clears = clears || to == ""
		}
	}
	text("lifecycleTransition", have.LifecycleTransition, want.LifecycleTransition)
	text("notificationTargetARN", have.NotificationTargetARN, want.NotificationTargetARN)
	text("roleARN", have.RoleARN, want.RoleARN)
	text("defaultResult", have.DefaultResult, want.DefaultResult)
	text("notificationMetadata", have.NotificationMetadata, want.NotificationMetadata)
	if have.HeartbeatTimeout != want.HeartbeatTimeout {
		changes = append(changes, hookChange(pool, want.Name+".heartbeatTimeout", have.HeartbeatTimeout, want.HeartbeatTimeout))
	}
	return changes, clears
}

// hookValue returns a hook as the JSON value of a Change.
func hookValue(h intent.LifecycleHook) any { return model.PlainJSON(observed.HookDefaults(h)) }
