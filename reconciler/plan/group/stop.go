package group

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
)

// stopSituation is the state of a group whose wanted launch configuration was found bad.
type stopSituation string

const (
	endsRefresh stopSituation = "the refresh to the change goes on, so it ends"
	awaitsEnd   stopSituation = "a refresh is active, and all else comes after it"
	nothingBack stopSituation = "nothing goes back, or there is nothing to go back to"
	backFailed  stopSituation = "the refresh back failed"
	backUndone  stopSituation = "something undoes each refresh back"
	setBack     stopSituation = "the group is set back; no machine is replaced"
	rollBack    stopSituation = "machines are replaced by what they were before"
)

// stopFacts contains the facts that decide the situation of a stopped group.
type stopFacts struct {
	// latest is the newest refresh. same reports whether it leads to the stopped change.
	latest observed.Refresh
	same   bool
	// set reports whether the group is set to the change. bad counts the machines that run it.
	set bool
	bad int
	// returns reports whether there is a version to go back to. triedBack reports whether the
	// newest refresh led to that version and nobody has requested another attempt.
	returns, triedBack bool
	// undone reports whether something undid the way back too often.
	undone bool
	// disabled reports whether Git disables refreshes.
	disabled bool
}

// situation returns the first situation that matches the facts.
func (f stopFacts) situation() stopSituation {
	switch {
	case f.latest.Moving() && f.same:
		return endsRefresh
	case f.latest.Active():
		return awaitsEnd
	case !f.returns || f.bad == 0 && !f.set:
		return nothingBack
	case f.triedBack && f.latest.Failed():
		return backFailed
	case f.undone:
		return backUndone
	case f.bad == 0 || f.disabled:
		return setBack
	}
	return rollBack
}

// stop plans the steps for a group whose wanted launch configuration was found bad: its refresh
// ends and, if the FleetRollout requires it, its machines return to the previous version.
func (r *roll) stop() {
	f := stopFacts{latest: r.latest, disabled: r.disabled, bad: r.bad()}
	f.same = r.same || r.stoppedBefore(&r.g, f.latest.Template)
	f.set = r.set || r.stoppedBefore(&r.g, r.have.Template)
	back, returns := r.back(r.g.Permit.Back)
	f.returns = returns
	f.triedBack = returns && sameRef(f.latest.Template, back.Template) && f.latest.Brings(back.MixedInstancesPolicy) && !r.In.Memory.Refusals.Retry[r.pool.Key.String()]
	id := "back " + r.g.Hash
	f.undone = r.In.TimesUndone(r.pool, id, 0) > 0
	toVersion := "version " + back.Template.Version
	switch f.situation() {
	case endsRefresh:
		r.endRefresh(f, back)
	case awaitsEnd:
		r.Note(diag.Info, r.pool, nil, "refresh-ending", "the instance refresh "+f.latest.ID+" of "+r.have.Name+" is on its way ("+f.latest.Status+"); the other steps of the stop come after it", "")
	case nothingBack:
	case backFailed:
		r.Note(diag.Error, r.pool, nil, "rollout-failed", "the rollback of "+r.have.Name+" to "+toVersion+" ended as "+f.latest.Status+": "+cmp.Or(f.latest.Reason, "AWS gives no reason"),
			"correct what prevents the machines from starting"+Again(*r.In, "the pool's launch configuration"))
	case backUndone:
		r.Undone(r.pool, "the group "+r.have.Name, id, 0)
	case setBack:
		r.Step(r.pool, step.Step{Verb: step.Update, Resource: step.AutoScalingGroup, Name: r.have.Name, Stops: true, Rollout: id,
			Reason: "the change is stopped: new machines use " + toVersion + " again",
			Do:     step.UpdateGroup{Name: r.have.Name, Template: &back.Template, MixedInstancesPolicy: back.MixedInstancesPolicy}})
	case rollBack:
		back.Group, back.Preferences = r.have.Name, r.pool.Group.Refresh
		back.Preferences.SkipMatching, back.Preferences.Strategy = new(true), usualStrategy
		s := r.stopStep("the change is stopped: "+strconv.Itoa(f.bad)+" machines go back to "+toVersion, back)
		s.Instances, s.Rollout = f.bad, id
		r.Step(r.pool, s)
	}
	r.noteStopped(f.bad, f.set)
}

// stopStep returns a step that belongs to the stop of the change.
func (r *roll) stopStep(reason string, do step.Action) step.Step {
	return step.Step{Verb: step.Rollout, Resource: step.AutoScalingGroup, Name: r.have.Name, Disruptive: true, Stops: true, Seen: r.seenToRoll(), Reason: reason, Do: do}
}

// endRefresh ends the refresh to the change. AWS rolls the machines back itself if the group is
// still set to the version to which they return.
func (r *roll) endRefresh(f stopFacts, back step.StartRefresh) {
	why := "the change is stopped: the instance refresh " + f.latest.ID
	if f.returns && sameRef(r.have.Template, back.Template) && r.have.MixedInstancesPolicy.Same(back.MixedInstancesPolicy) {
		s := r.stopStep(why+" takes its machines back to version "+back.Template.Version, step.RollbackRefresh{Group: r.have.Name, RefreshID: f.latest.ID})
		s.Instances = f.bad
		r.Step(r.pool, s)
		return
	}
	r.Step(r.pool, r.stopStep(why+" ends", step.CancelRefresh{Group: r.have.Name, RefreshID: f.latest.ID}))
}

// bad counts the machines that run the stopped change.
func (r *roll) bad() (n int) {
	wanted := wantedTypes(r.pool)
	for _, i := range r.have.Instances {
		wants := runs(r.pool.Group.MixedInstancesPolicy, r.version, i) && (len(wanted) == 0 || slices.Contains(wanted, i.Type))
		if i.Counts() && (wants || r.stoppedBefore(&r.g, i.Template)) {
			n++
		}
	}
	return n
}

// back returns the configuration to which machines of a stopped change return.
func (r *roll) back(to *rollout.Version) (step.StartRefresh, bool) {
	if to == nil {
		return step.StartRefresh{}, false
	}
	t := r.templateOf(to.Template)
	if t.ID == "" || t.Missing[to.Number] {
		r.Note(diag.Warning, r.pool, nil, "rollout-stopped", "version "+strconv.FormatInt(to.Number, 10)+" of the launch template "+to.Template+", to which "+r.have.Name+" would go back, no longer exists; its machines stay as they are",
			"revert the commit, or push one that fixes it")
		return step.StartRefresh{}, false
	}
	out := step.StartRefresh{Template: observed.TemplateRef{ID: t.ID, Name: t.Name, Version: strconv.FormatInt(to.Number, 10)}, MixedInstancesPolicy: r.pool.Group.MixedInstancesPolicy}
	switch {
	case to.Plain || to.Policy != nil:
		out.MixedInstancesPolicy = to.Policy
	case sameRef(r.have.Template, out.Template):
		out.MixedInstancesPolicy = r.have.MixedInstancesPolicy
	}
	return out, true
}

func sameRef(a, b observed.TemplateRef) bool { return a.ID == b.ID && a.Version == b.Version }

// noteStopped reports the state of a group with a stopped change, and which version it launches.
func (r *roll) noteStopped(bad int, set bool) {
	text := "version " + r.version.Version() + " of " + r.have.Name + " " + r.g.Wait()
	if bad > 0 || set {
		text += "; " + strconv.Itoa(bad) + " of its " + strconv.Itoa(len(r.have.Instances)) + " machines run it"
	}
	if set && r.g.Permit.Back == nil {
		text += ", and so will machines that the group launches to grow or to replace unhealthy ones"
	}
	r.Note(diag.Warning, r.pool, nil, "rollout-stopped", text, "")
	r.Pool.Outstands("Warning", "RolloutStopped", text)
	r.Pool.Fails("rollout-stopped", "rollout-stopped")
}
