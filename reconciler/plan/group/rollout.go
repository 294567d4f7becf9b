package group

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/plan/launch"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// updatesDirectly reports whether a new launch configuration is written to the
// group itself: where rollouts are off, and where nothing runs that could roll.
// Everywhere else the refresh carries it, because AWS then writes it to the
// group only on success, and a rollback returns to what ran before.
// Nor is there anything to return to where the version that the group is set to
// exists no more: until it is set to another, it can launch nothing.
func (c Planner) updatesDirectly(pool *intent.Pool, have observed.Group, version template.Version) bool {
	if pool.Group.Refresh.Disable || len(have.Instances) == 0 {
		return true
	}
	if !version.Outlived(have.Template) {
		return false
	}
	running, read := c.In.State.Refreshes[have.Name]
	if !read && c.In.State.Unread.Refreshes[have.Name] == nil {
		c.Needs.Refreshes = append(c.Needs.Refreshes, have.Name)
	}
	return read && !running.Active()
}

// runsWanted reports whether the group is set to the wanted launch configuration.
func (c Planner) runsWanted(pool *intent.Pool, have observed.Group, version template.Version) bool {
	return version.Resolves(have.Template) && !have.UnknownPolicy && have.MixedInstancesPolicy.Same(pool.Group.MixedInstancesPolicy)
}

// stale counts the instances that a refresh would replace: those that do not run
// the wanted version and those of an instance type that is no longer wanted, which
// skip matching replaces too. An adopted group keeps what it had before.
// Assumed of AWS: skip-matching-types.
func (c Planner) stale(pool *intent.Pool, have observed.Group, version template.Version) (versions, types int) {
	policy := pool.Group.MixedInstancesPolicy
	wanted := wantedTypes(pool)
	if (version.TakenOver || version.Foreign && pool.ForeignTemplate == nil) && have.MixedInstancesPolicy.Same(policy) {
		wanted = nil
	}
	for _, i := range have.Instances {
		switch {
		case i.Leaving():
		case !runs(policy, version, i):
			versions++
		case len(wanted) > 0 && !slices.Contains(wanted, i.Type):
			types++
		}
	}
	return versions, types
}

// rollGroup decides whether a rollout is due, from what the instances run: so
// no crash between making a version and starting its refresh loses the refresh.
func (c Planner) rollGroup(pool *intent.Pool, have observed.Group, version template.Version) {
	set := c.runsWanted(pool, have, version)
	versions, types := c.stale(pool, have, version)
	left := versions + types
	latest, read := c.In.State.Refreshes[have.Name]
	same := latest.ID != "" && version.Resolves(latest.Template) && latest.Brings(pool.Group.MixedInstancesPolicy)
	governed := c.govern(pool, have, version, left, set, same)
	g := &governed
	if g.Governed {
		defer func() { report := g.report; c.Pool.Governed = &report }()
	}
	if set && (left == 0 || pool.Group.Refresh.Disable) && !g.Stopped() {
		switch {
		case latest.Moving() && !same && left == 0:
			// It was started for a configuration that is no longer wanted, and has
			// replaced nothing yet.
			c.watch(have, latest, progress{set: true})
			c.supersede(pool, have, latest, version, true)
		case latest.Active():
			// The group says that the refresh is done; how it ended, AWS has yet to say.
			c.watch(have, latest, progress{set: true, left: left, measured: same, ends: true})
		default:
			c.PlanDefault(pool, version)
		}
		return
	}
	if !g.Stopped() && c.updatesDirectly(pool, have, version) {
		return
	}
	if c.Unread(pool, "the instance refreshes of the group "+have.Name, c.In.State.Unread.Refreshes[have.Name]) {
		return
	}
	if !read {
		c.Needs.Refreshes = append(c.Needs.Refreshes, have.Name)
		return
	}
	c.watch(have, latest, c.progressOf(pool, have, latest, version, progress{set: set, left: left, measured: same}))
	switch {
	case g.Stopped():
		c.stop(pool, have, version, g, same, set)
		if set && left == 0 || pool.Group.Refresh.Disable || len(have.Instances) == 0 {
			return
		}
	case same && latest.Moving():
		c.noteProtected(pool, have, version)
		if why := g.over(pool, latest); why != "" {
			c.Step(pool, step.Step{Verb: step.Rollout, Resource: step.AutoScalingGroup, Name: have.Name, Disruptive: true, Stops: true, Reason: why,
				Seen: c.seenToRoll(pool, have), Do: step.CancelRefresh{Group: have.Name, RefreshID: latest.ID}})
		}
		return
	case c.undone(pool, have, latest, version, g):
		g.report.Failed = "it was rolled to what Git wants again and again, and each time something changed it back"
		return
	case latest.Active():
		// Also one to the wanted version that is being cancelled: wanted again
		// after something else was wanted in between.
		c.supersede(pool, have, latest, version, same || set)
		return
	case same && c.tried(pool, latest, g) && !c.In.Memory.Retry[pool.Key.String()] && c.parked(pool, have, latest, set, left):
		if g.report.Pending = latest.Status != "Successful"; g.report.Pending {
			g.report.Failed = "the instance refresh " + latest.ID + " ended as " + latest.Status + ": " + cmp.Or(latest.Reason, "AWS gives no reason")
		}
		return
	}
	c.noteProtected(pool, have, version)
	changes := c.launchChanges(pool, have, version)
	if left == 0 && !g.Stopped() && !have.UnknownPolicy && (observed.Refresh{MixedInstancesPolicy: have.MixedInstancesPolicy}).Brings(pool.Group.MixedInstancesPolicy) {
		// The group was set to another version, and nothing runs it yet; or it has overrides
		// that Git dropped, which only an update removes.
		c.Step(pool, step.Step{Verb: step.Update, Resource: step.AutoScalingGroup, Name: have.Name, Reason: basis.Reason(changes), Changes: changes, Toward: toward(pool, version),
			Do: step.UpdateGroup{Name: have.Name, Template: new(version.Ref), MixedInstancesPolicy: pool.Group.MixedInstancesPolicy}})
		// Before the group grows: what it launches until then would have to be replaced.
		last := len(c.Steps) - 1
		c.Steps = slices.Concat(c.Steps[last:], c.Steps[:last])
		return
	}
	replaced, ends, how := c.replaces(pool, have, g, left)
	why := whyRoll(have, version, versions, types) + how
	preferences := pool.Group.Refresh
	if preferences.Strategy == replaceRootVolume {
		strategy, note := c.strategy(pool, have, version, g)
		preferences.Strategy = strategy
		if ends {
			why += note
		}
	}
	c.Step(pool, c.shared(pool, step.Step{
		Verb: step.Rollout, Resource: step.AutoScalingGroup, Name: have.Name, Disruptive: ends, Instances: replaced,
		Reason:  why,
		Changes: append(changes, preferenceChanges(pool, preferences)...), Rollout: toward(pool, version), Toward: toward(pool, version),
		Seen: c.seenToRoll(pool, have),
		Do: step.StartRefresh{
			Group: have.Name, Template: version.Ref, MixedInstancesPolicy: pool.Group.MixedInstancesPolicy, Preferences: preferences,
		},
	}, g))
}

// toward stands for what the machines of a group are to be.
func toward(pool *intent.Pool, version template.Version) string {
	return version.Refreshed(pool.Group.MixedInstancesPolicy)
}

// supersede cancels a running refresh whose configuration is no longer wanted;
// the new one starts once AWS says that the old one has ended. One that AWS rolls
// back is left to end where that is as good as it gets: the wanted configuration is
// the one that failed, or the one that the group returns to, which settled says.
// Assumed of AWS: rollback-is-cancelled.
func (c Planner) supersede(pool *intent.Pool, have observed.Group, running observed.Refresh, version template.Version, settled bool) {
	rollback := running.Status == "RollbackInProgress"
	if running.Status == "Cancelling" || rollback && settled {
		c.Note(diag.Info, pool, nil, "refresh-ending", "the instance refresh "+running.ID+" of "+have.Name+" is ending ("+running.Status+"); the next one waits for it", "")
		return
	}
	versions, types := c.stale(pool, have, version)
	what := "instance refresh"
	if rollback {
		what = "rollback of the instance refresh"
	}
	c.Step(pool, step.Step{
		Verb: step.Rollout, Resource: step.AutoScalingGroup, Name: have.Name, Disruptive: true, Instances: versions + types,
		Reason:  "the running " + what + " to version " + running.Template.Version + " is superseded",
		Changes: c.launchChanges(pool, have, version), Toward: toward(pool, version),
		Seen: c.seenToRoll(pool, have),
		Do:   step.CancelRefresh{Group: have.Name, RefreshID: running.ID},
	})
}

// parked reports whether the newest refresh already tried this very
// configuration and ended: trying again by itself would loop for ever. AWS keeps
// the history, so a restart does not forget.
func (c Planner) parked(pool *intent.Pool, have observed.Group, latest observed.Refresh, set bool, left int) bool {
	switch {
	case latest.Failed():
		c.Note(diag.Error, pool, observed.FieldNamed(pool, latest.Reason), "rollout-failed", "the instance refresh "+latest.ID+" of "+have.Name+" ended as "+latest.Status+": "+cmp.Or(latest.Reason, "AWS gives no reason"),
			cmp.Or(launch.Hint(latest.Reason), "mend what keeps the machines from coming")+Again(c.In, "the pool's launch configuration"))
		return true
	case latest.Status == "Cancelled" && c.In.Memory.Cancelled[latest.ID]:
		return false // weir did that, for something that is no longer wanted
	case latest.Status == "Cancelled":
		c.Note(diag.Error, pool, nil, "rollout-cancelled", "the instance refresh "+latest.ID+" of "+have.Name+" was cancelled outside weir",
			"find out who did it and why"+Again(c.In, "the pool's launch configuration"))
		return true
	case set:
		c.Note(diag.Warning, pool, nil, "rollout-incomplete",
			strconv.Itoa(left)+" instances of "+have.Name+" do not have the wanted version and type although the refresh "+latest.ID+" succeeded",
			"standby or protected instances are left alone by a refresh: end them by hand")
		c.Pool.Outstands("Warning", "RolloutIncomplete", strconv.Itoa(left)+" instances do not have the wanted version and type, and the last refresh left them alone")
		return true
	}
	return false
}

// Again says what makes weir try a second time what ended badly: a change of what, or a
// command.
func Again(in basis.Input, what string) string {
	if in.Policy.OwnTargetOnly {
		return "; a change of " + what + " tries again, and so does weir apply PATH --retry"
	}
	return "; a change of " + what + " in Git tries again, and so does weir reconcile " + in.Policy.Target + " --retry"
}

// triedWith reports whether a refresh ran with the preferences that Git writes
// now. It does not compare preferences that Git leaves to AWS.
func triedWith(tried, want intent.Refresh) bool {
	same := func(a, b *int32) bool { return b == nil || a != nil && *a == *b }
	return same(tried.MinHealthyPercentage, want.MinHealthyPercentage) &&
		same(tried.MaxHealthyPercentage, want.MaxHealthyPercentage) && same(tried.InstanceWarmup, want.InstanceWarmup) && field.Holds(reflect.ValueOf(rest(want)), reflect.ValueOf(rest(tried)), reflect.Value{})
}

// launchChanges says what of the launch configuration changes.
func (c Planner) launchChanges(pool *intent.Pool, have observed.Group, version template.Version) []step.Change {
	var out []step.Change
	if !version.Resolves(have.Template) {
		out = append(out, template.VersionChanges(pool, have.Template, version)...)
	}
	if have.UnknownPolicy {
		out = append(out, basis.InfraChange(pool, "mixedInstancesPolicy", "members that weir does not know", nil))
	}
	return append(out, policyChanges(pool, have.MixedInstancesPolicy, pool.Group.MixedInstancesPolicy)...)
}
