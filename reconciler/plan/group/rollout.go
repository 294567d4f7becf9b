package group

import (
	"reflect"
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// updatesDirectly reports whether an update writes a new launch configuration to the group itself:
// if rollouts are off, or if no machine runs. Otherwise a refresh carries the configuration,
// because AWS then writes it to the group only on success, and a rollback returns to the previous
// one. A rollback is also impossible if the group's version no longer exists. Such a group can
// launch nothing until it is set to another version.
func (l launching) updatesDirectly() bool {
	if l.pool.Group.Refresh.Disable || len(l.have.Instances) == 0 {
		return true
	}
	if !l.version.Outlived(l.have.Template) {
		return false
	}
	running, read := l.planner.In.State.Refreshes[l.have.Name]
	if !read && l.planner.In.State.Unread.Refreshes[l.have.Name] == nil {
		l.planner.Needs.Refreshes = append(l.planner.Needs.Refreshes, l.have.Name)
	}
	return read && !running.Active()
}

// runsWanted reports whether the group is set to the wanted launch configuration.
func (l launching) runsWanted() bool {
	return l.version.Resolves(l.have.Template) && !l.have.UnknownPolicy && l.have.MixedInstancesPolicy.Same(l.pool.Group.MixedInstancesPolicy)
}

// stale counts the instances that a refresh would replace: instances that do not run the wanted
// version, and instances whose type is no longer wanted, which skip matching replaces too. An
// adopted group keeps its instance types.
// Assumed of AWS: skip-matching-types.
func (l launching) stale() (versions, types int) {
	policy := l.pool.Group.MixedInstancesPolicy
	wanted := wantedTypes(l.pool)
	if (l.version.TakenOver || l.version.Foreign && l.pool.ForeignTemplate == nil) && l.have.MixedInstancesPolicy.Same(policy) {
		wanted = nil
	}
	for _, i := range l.have.Instances {
		switch {
		case i.Leaving():
		case !runs(policy, l.version, i):
			versions++
		case len(wanted) > 0 && !slices.Contains(wanted, i.Type):
			types++
		}
	}
	return versions, types
}

// toward identifies the wanted configuration of a group's machines.
func toward(pool *intent.Pool, version template.Version) string {
	return version.Refreshed(pool.Group.MixedInstancesPolicy)
}

// supersede cancels a running refresh whose configuration is no longer wanted. The new refresh
// starts once AWS reports that the old one has ended. A rollback by AWS runs to its end only if
// nothing better is possible: settled reports that the wanted configuration is the failed one, or
// the one to which the group returns.
// Assumed of AWS: rollback-is-cancelled.
func (r *roll) supersede(running observed.Refresh, settled bool) {
	rollback := running.Status == "RollbackInProgress"
	if running.Status == "Cancelling" || rollback && settled {
		r.Note(diag.Info, r.pool, nil, "refresh-ending", "the instance refresh "+running.ID+" of "+r.have.Name+" is ending ("+running.Status+"); the next one waits for it", "")
		return
	}
	versions, types := r.stale()
	what := "instance refresh"
	if rollback {
		what = "rollback of the instance refresh"
	}
	r.Step(r.pool, step.Step{
		Verb: step.Rollout, Resource: step.AutoScalingGroup, Name: r.have.Name, Disruptive: true, Instances: versions + types,
		Reason:  "the running " + what + " to version " + running.Template.Version + " is superseded",
		Changes: r.launchChanges(), Toward: toward(r.pool, r.version),
		Seen: r.seenToRoll(),
		Do:   step.CancelRefresh{Group: r.have.Name, RefreshID: running.ID},
	})
}

// Again returns the text that a change of what, or a command, makes weir try again after a failure.
func Again(in model.Input, what string) string {
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

// launchChanges returns the changes of the launch configuration.
func (l launching) launchChanges() []step.Change {
	var out []step.Change
	if !l.version.Resolves(l.have.Template) {
		out = append(out, template.VersionChanges(l.pool, l.have.Template, l.version)...)
	}
	if l.have.UnknownPolicy {
		out = append(out, model.InfraChange(l.pool, "mixedInstancesPolicy", "members that weir does not know", nil))
	}
	return append(out, policyChanges(l.pool, l.have.MixedInstancesPolicy, l.pool.Group.MixedInstancesPolicy)...)
}
