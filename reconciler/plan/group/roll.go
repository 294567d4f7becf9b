package group

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/launch"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// situation is the state of a group and its newest instance refresh relative to the wanted launch
// configuration.
type situation string

const (
	inSync       situation = "the group and its machines are as Git wants"
	obsolete     situation = "a refresh to something else has started and has replaced nothing yet"
	finishing    situation = "the group is as Git wants, and AWS has not said yet how the refresh ended"
	direct       situation = "an update writes the configuration to the group; no refresh is needed"
	unreadable   situation = "AWS does not let weir read the refreshes"
	unknown      situation = "the refreshes are not read yet"
	stopped      situation = "the change was found bad"
	underWay     situation = "a refresh to the wanted configuration replaces machines"
	undoneOften  situation = "something undoes each rollout"
	otherRefresh situation = "another refresh is active"
	failed       situation = "the refresh to the wanted configuration failed"
	cancelled    situation = "somebody cancelled the refresh to the wanted configuration"
	incomplete   situation = "the refresh to the wanted configuration succeeded and left machines alone"
	unused       situation = "the group is set to something else, and no machine runs that"
	due          situation = "machines have to be replaced"
)

// facts contains the facts that decide the situation of a group. They follow from the
// configurations that the instances run, so a crash between making a version and starting its
// refresh does not lose the refresh.
type facts struct {
	// set reports whether the group is set to the wanted launch configuration. versions and types
	// count the machines that do not run it (see stale).
	set             bool
	versions, types int
	// disabled reports whether Git disables refreshes, and stopped whether the change was found
	// bad.
	disabled, stopped bool
	// direct reports whether an update writes the configuration to the group.
	direct bool
	// unreadable and read report whether weir could read the refreshes. latest is the newest
	// refresh. same reports whether it leads to the wanted configuration.
	unreadable, read, same bool
	latest                 observed.Refresh
	// undone reports whether something undid rollouts to the wanted configuration too often.
	undone bool
	// ended is the end of a refresh that weir does not try again, empty if it may.
	ended situation
	// updatable reports whether an update alone can set the group to the wanted configuration.
	updatable bool
}

// left counts the machines that a refresh would replace.
func (f facts) left() int { return f.versions + f.types }

// synced reports whether the group needs no further change of its configuration or machines.
func (f facts) synced() bool { return f.set && (f.left() == 0 || f.disabled) && !f.stopped }

// situation returns the first situation that matches the facts.
func (f facts) situation() situation {
	switch {
	case f.synced() && f.latest.Moving() && !f.same && f.left() == 0:
		return obsolete
	case f.synced() && f.latest.Active():
		return finishing
	case f.synced():
		return inSync
	case !f.stopped && f.direct:
		return direct
	case f.unreadable:
		return unreadable
	case !f.read:
		return unknown
	case f.stopped:
		return stopped
	case f.same && f.latest.Moving():
		return underWay
	case f.undone:
		return undoneOften
	case f.latest.Active():
		return otherRefresh
	case f.ended != "":
		return f.ended
	case f.left() == 0 && f.updatable:
		return unused
	}
	return due
}

// launching combines the launch configuration that Git wants for a group's machines with the actual
// group.
type launching struct {
	planner template.Planner
	pool    *intent.Pool
	have    observed.Group
	version template.Version
}

// roll plans the change of a group's launch configuration.
type roll struct {
	Planner
	facts
	launching
	g governed
}

// rollGroup decides whether machines of the group are replaced, and plans the steps for that.
func (c Planner) rollGroup(l launching) {
	r := c.newRoll(l)
	r.act(r.situation())
	if r.g.Governed {
		report := r.g.report
		c.Pool.Governed = &report
	}
}

// newRoll collects the facts that decide how a group gets its wanted version. If the group has it
// already, the other facts stay empty.
func (c Planner) newRoll(l launching) roll {
	pool, have, version := l.pool, l.have, l.version
	f := facts{set: l.runsWanted(), disabled: pool.Group.Refresh.Disable}
	f.versions, f.types = l.stale()
	f.latest, f.read = c.In.State.Refreshes[have.Name]
	f.same = f.latest.ID != "" && version.Resolves(f.latest.Template) && f.latest.Brings(pool.Group.MixedInstancesPolicy)
	g := l.govern(f.left(), f.set, f.same)
	r := roll{Planner: c, facts: f, launching: l, g: g}
	if r.stopped = g.Stopped(); r.synced() {
		return r // nothing else matters
	}
	r.direct = l.updatesDirectly()
	r.unreadable = c.In.State.Unread.Refreshes[have.Name] != nil
	r.undone = c.In.TimesUndone(pool, r.rolloutID(), r.displaced()) > 0
	if r.same && l.tried(r.latest, &r.g) && !c.In.Memory.Refusals.Retry[pool.Key.String()] {
		r.ended = r.endOf(r.latest)
	}
	r.updatable = !have.UnknownPolicy && (observed.Refresh{MixedInstancesPolicy: have.MixedInstancesPolicy}).Brings(pool.Group.MixedInstancesPolicy)
	return r
}

// endOf returns how a refresh to the wanted configuration ended, empty if weir may try again.
// Repeating a failed refresh without a reason would never end. AWS keeps the history, so a restart
// does not forget the failure.
func (r *roll) endOf(latest observed.Refresh) situation {
	switch {
	case latest.Failed():
		return failed
	case latest.Status == "Cancelled" && r.In.Memory.Cancelled[latest.ID]:
		return "" // weir cancelled it because another configuration was wanted
	case latest.Status == "Cancelled":
		return cancelled
	case r.set:
		return incomplete
	}
	return ""
}

// act plans the steps for a situation.
func (r *roll) act(is situation) {
	switch is {
	case inSync:
		r.PlanDefault(r.pool, r.version)
	case obsolete:
		r.watch(progress{set: true})
		r.supersede(r.latest, true)
	case finishing:
		r.watch(progress{set: true, left: r.left(), measured: r.same, ends: true})
	case direct: // updateGroup plans the update
	case unreadable:
		r.Unread(r.pool, "the instance refreshes of the group "+r.have.Name, r.In.State.Unread.Refreshes[r.have.Name])
	case unknown:
		r.Needs.Refreshes = append(r.Needs.Refreshes, r.have.Name)
	default:
		r.watch(r.progressOf(r.latest, progress{set: r.set, left: r.left(), measured: r.same}))
		r.actOnMachines(is)
	}
}

// actOnMachines plans the steps for a situation in which machines do not run the wanted
// configuration.
func (r *roll) actOnMachines(is situation) {
	switch is {
	case stopped:
		r.stop()
		if (!r.set || r.left() > 0) && !r.disabled && len(r.have.Instances) > 0 {
			r.start() // the step is held
		}
	case underWay:
		r.noteProtected()
		if why := r.g.over(r.pool, r.latest); why != "" {
			r.Step(r.pool, step.Step{Verb: step.Rollout, Resource: step.AutoScalingGroup, Name: r.have.Name, Disruptive: true, Stops: true, Reason: why,
				Seen: r.seenToRoll(), Do: step.CancelRefresh{Group: r.have.Name, RefreshID: r.latest.ID}})
		}
	case undoneOften:
		r.Undone(r.pool, "the group "+r.have.Name, r.rolloutID(), r.displaced())
		r.g.report.Failed = "it was rolled to what Git wants repeatedly, and something changed it back every time"
	case otherRefresh:
		// It may also be a refresh to the wanted version that is being cancelled, because another
		// version was wanted in between.
		r.supersede(r.latest, r.same || r.set)
	case failed, cancelled, incomplete:
		r.noteEnd(is)
		if r.g.report.Pending = r.latest.Status != "Successful"; r.g.report.Pending {
			r.g.report.Failed = "the instance refresh " + r.latest.ID + " ended as " + r.latest.Status + ": " + cmp.Or(r.latest.Reason, "AWS gives no reason")
		}
	case unused:
		r.noteProtected()
		r.setGroup()
	default:
		r.start()
	}
}

// noteEnd reports the end of a refresh that weir does not try again.
func (r *roll) noteEnd(is situation) {
	of := "the instance refresh " + r.latest.ID + " of " + r.have.Name
	again := Again(*r.In, "the pool's launch configuration")
	switch is {
	case failed:
		r.Note(diag.Error, r.pool, observed.FieldNamed(r.pool, r.latest.Reason), "rollout-failed", of+" ended as "+r.latest.Status+": "+cmp.Or(r.latest.Reason, "AWS gives no reason"),
			cmp.Or(launch.Hint(r.latest.Reason), "correct what prevents the machines from starting")+again)
	case cancelled:
		r.Note(diag.Error, r.pool, nil, "rollout-cancelled", of+" was cancelled outside weir", "find out who did it and why"+again)
	default:
		left := strconv.Itoa(r.left()) + " instances"
		r.Note(diag.Warning, r.pool, nil, "rollout-incomplete", left+" of "+r.have.Name+" do not have the wanted version and type although the refresh "+r.latest.ID+" succeeded",
			"standby or protected instances are left alone by a refresh: end them by hand")
		r.Pool.Outstands("Warning", "RolloutIncomplete", left+" do not have the wanted version and type, and the last refresh left them alone")
	}
}

// setGroup sets the group to the wanted configuration by an update. The group is set to a version
// that no machine runs, or it has overrides that are no longer in Git, which only an update
// removes.
func (r *roll) setGroup() {
	changes := r.launchChanges()
	r.Step(r.pool, step.Step{Verb: step.Update, Resource: step.AutoScalingGroup, Name: r.have.Name, Reason: model.Reason(changes), Changes: changes, Toward: toward(r.pool, r.version),
		Do: step.UpdateGroup{Name: r.have.Name, Template: new(r.version.Ref), MixedInstancesPolicy: r.pool.Group.MixedInstancesPolicy}})
	// This step comes before the group grows. Otherwise the machines launched in between would have
	// to be replaced.
	last := len(r.Steps) - 1
	r.Steps = slices.Concat(r.Steps[last:], r.Steps[:last])
}

// start starts an instance refresh to the wanted configuration.
func (r *roll) start() {
	r.noteProtected()
	replaced, ends, how := r.replaces(&r.g, r.left())
	why := whyRoll(r.have, r.version, r.versions, r.types) + how
	preferences := r.pool.Group.Refresh
	if preferences.Strategy == replaceRootVolume {
		strategy, note := r.strategy(&r.g)
		preferences.Strategy = strategy
		if ends {
			why += note
		}
	}
	r.Step(r.pool, r.shared(step.Step{
		Verb: step.Rollout, Resource: step.AutoScalingGroup, Name: r.have.Name, Disruptive: ends, Instances: replaced,
		Reason:  why,
		Changes: append(r.launchChanges(), preferenceChanges(r.pool, preferences)...), Rollout: toward(r.pool, r.version), Toward: toward(r.pool, r.version),
		Seen: r.seenToRoll(),
		Do: step.StartRefresh{
			Group: r.have.Name, Template: r.version.Ref, MixedInstancesPolicy: r.pool.Group.MixedInstancesPolicy, Preferences: preferences,
		},
	}, &r.g))
}

// rolloutID identifies the rollout to the wanted configuration, or to the permitted share of it.
func (r *roll) rolloutID() string {
	id := toward(r.pool, r.version)
	if share := r.g.Share(); r.g.Governed && share < 100 {
		id += " " + strconv.Itoa(int(share))
	}
	return id
}

// displaced counts the refreshes to the wanted configuration that were followed by a refresh to
// another one.
func (r *roll) displaced() int {
	wanted := func(one observed.Refresh) bool {
		return r.version.Resolves(one.Template) && one.Brings(r.pool.Group.MixedInstancesPolicy)
	}
	n, later := 0, wanted(r.latest)
	for _, one := range r.latest.Earlier {
		if wanted(one) && !later && r.In.Now.Sub(one.StartedAt) < observed.Lately {
			n++
		}
		later = wanted(one)
	}
	return n
}
