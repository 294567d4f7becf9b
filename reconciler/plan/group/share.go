package group

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// A share of a group that a FleetRollout governs is an instance refresh of its own. It skips
// what matches, and the last of its checkpoints is the share, so AWS ends it there: while
// nobody allows more, nothing moves, whether weir runs or not. AWS then sets the group to
// the new version, so machines that it launches from then on, to grow or in place of
// unhealthy ones, are of that version.
// Assumed of AWS: refresh-ends-at-its-last-checkpoint.
// Assumed of AWS: checkpoints-count-the-group.
//
// Where AWS takes no refresh that ends below 100 %, the adapter starts one that waits at the
// share for as long as AWS can wait, and weir ends it there.

// wayOf is how far a pool may be rolled. The hash is that of the launch body and of the
// mixed instances policy: another policy replaces machines as well.
func (c Planner) wayOf(pool *intent.Pool, version template.Version) basis.Way {
	return c.In.WayTo(pool, func() string { return hashOf(version.Body(), pool.Group.MixedInstancesPolicy) }, func() []rollout.Field { return c.values(pool, version) })
}

func hashOf(body string, policy *intent.MixedInstances) string {
	if policy == nil {
		return body
	}
	return content.ShortHash([]byte(body), content.Canonical(policy))
}

// preferences are those of a refresh up to a share.
func (c Planner) preferences(pool *intent.Pool, way basis.Way) intent.Refresh {
	r, share := pool.Group.Refresh, way.Share()
	if !way.Governed {
		return r
	}
	r.SkipMatching = new(true)
	r.AlarmSpecification = c.alarms(r.AlarmSpecification, way)
	if share < 100 {
		r.CheckpointPercentages = slices.DeleteFunc(slices.Clone(r.CheckpointPercentages), func(p int32) bool { return p >= share })
		if len(r.CheckpointPercentages) == 0 {
			r.CheckpointDelay = nil
		}
		r.CheckpointPercentages = append(r.CheckpointPercentages, share)
	}
	return r
}

// mostAlarms is how many alarms a refresh may name.
const mostAlarms = 10

// alarms are those that end a refresh: Git's, and those that gates ask about, which so stop
// the change while nobody conducts it. AWS refuses the name of one that there is not.
func (c Planner) alarms(own *intent.AlarmSpecification, way basis.Way) *intent.AlarmSpecification {
	var names []string
	if own != nil {
		names = slices.Clone(own.Alarms)
	}
	for _, name := range way.Permit.Alarms {
		if c.In.State.Alarms[name] != "" && !slices.Contains(names, name) && len(names) < mostAlarms {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return own
	}
	return &intent.AlarmSpecification{Alarms: names}
}

// shareOf is how far a refresh goes, and whether it waits there, and would go on.
func shareOf(pool *intent.Pool, r intent.Refresh) (share int32, waits bool) {
	switch n := len(r.CheckpointPercentages); {
	case n == 0:
		return 100, false
	case n > 1 && r.CheckpointPercentages[n-1] == 100 && r.CheckpointDelay != nil && *r.CheckpointDelay == step.LongestDelay && !slices.Contains(pool.Group.Refresh.CheckpointPercentages, r.CheckpointPercentages[n-2]):
		return r.CheckpointPercentages[n-2], true
	default:
		return r.CheckpointPercentages[n-1], false
	}
}

// governed is what a governed group's rollout goes by.
type governed struct {
	basis.Way
	report rollout.Pool
	// serving counts the machines of what Git wants that are in service.
	serving int32
}

// govern sees how a group stands in its waves.
func (c Planner) govern(pool *intent.Pool, have observed.Group, version template.Version, left int, set, same bool) (g governed) {
	g.Way = c.wayOf(pool, version)
	if !g.Governed {
		return g
	}
	wanted := wantedTypes(pool)
	fresh := func(i observed.Instance) bool {
		return runs(pool.Group.MixedInstancesPolicy, version, i) && (len(wanted) == 0 || slices.Contains(wanted, i.Type))
	}
	for _, i := range have.Instances {
		if i.Ready() && fresh(i) {
			g.serving++
		}
	}
	p := g.Report(c.In, pool, have.Instances, fresh)
	p.Machines, p.Whole, p.Keeps = have.DesiredInstances(), pool.Group.Refresh.Disable, pool.Group.Refresh.Disable
	p.Pending = left > 0 && !pool.Group.Refresh.Disable || !set
	if p.Pending {
		if before := c.earlier(pool, have, version, set); len(before) > 0 {
			p.Earlier, p.Others, p.Change = &before[0], before[1:], c.change(pool, have, version, before[0])
		}
	}
	if r := c.In.State.Refreshes[have.Name]; r.Active() {
		share, _ := shareOf(pool, r.Preferences)
		p.Moving = &rollout.Move{ID: r.ID, Share: share, Since: r.StartedAt, Cancelling: r.Status == "Cancelling", Left: p.New}
		if same {
			p.Moving.Hash, p.Moving.Left = g.Hash, max(0, rollout.Need(p.Machines, share)-g.serving)
		}
	}
	g.report = p
	return g
}

func (c Planner) templateOf(name string, version template.Version) observed.Template {
	if version.Found && version.Template.Name == name {
		return version.Template
	}
	return c.In.State.Templates[name]
}

// reached reports whether as many machines as the permit allows are of what Git wants.
func (g *governed) reached() bool {
	share := g.Share()
	return g.Governed && share < 100 && g.report.New >= rollout.Need(g.report.Machines, share)
}

// over says why a refresh that leads to what Git wants ends now, "" to let it be: it waits
// at its share, or goes beyond it.
func (g *governed) over(pool *intent.Pool, r observed.Refresh) string {
	if !g.Governed {
		return ""
	}
	share, waits := shareOf(pool, r.Preferences)
	need := rollout.Need(g.report.Machines, share)
	switch {
	case share >= 100:
		return ""
	case waits && g.serving >= need:
		return "the instance refresh " + r.ID + " has come to its share of " + strconv.Itoa(int(share)) + " % and would go on after a while"
	case g.report.New > need:
		return "the instance refresh " + r.ID + " has replaced " + strconv.Itoa(int(g.report.New)) + " machines, and its share is " + strconv.Itoa(int(need))
	}
	return ""
}

// cancelled reports whether a refresh was cancelled because it had come to its share.
func (g *governed) cancelled(pool *intent.Pool, r observed.Refresh) bool {
	share, _ := shareOf(pool, r.Preferences)
	return g.Governed && r.Status == "Cancelled" && share < 100 && g.report.New >= rollout.Need(g.report.Machines, share)
}

// tried reports whether a refresh ran with the preferences that Git writes now, whatever
// its share was.
func (c Planner) tried(pool *intent.Pool, r observed.Refresh, g *governed) bool {
	want := c.preferences(pool, g.Way)
	if g.Governed {
		want.CheckpointPercentages, want.CheckpointDelay = nil, nil
		if own, had := pool.Group.Refresh.AlarmSpecification, r.Preferences.AlarmSpecification; own == nil || had != nil && !slices.ContainsFunc(own.Alarms, func(name string) bool { return !slices.Contains(had.Alarms, name) }) {
			want.AlarmSpecification = had // gates ask about others at other times
		}
		share, _ := shareOf(pool, r.Preferences)
		if r.Status == "Successful" && share < 100 || g.cancelled(pool, r) {
			return false
		}
	}
	return triedWith(r.Preferences, want)
}

// shared narrows the start of a refresh to the share that is allowed, or holds it.
func (c Planner) shared(pool *intent.Pool, s step.Step, g *governed) step.Step {
	if !g.Governed {
		return s
	}
	share := g.Share()
	if share == 0 || g.reached() {
		return g.Hold(s)
	}
	start := s.Do.(step.StartRefresh)
	strategy := start.Preferences.Strategy
	start.Preferences = c.preferences(pool, g.Way)
	start.Preferences.Strategy = strategy
	s.Do = start
	if share < 100 {
		s.Instances = int(rollout.Need(g.report.Machines, share) - g.report.New)
		s.Reason = strconv.Itoa(s.Instances) + " of these, up to " + strconv.Itoa(int(share)) + " % of the group: " + s.Reason
		s.Rollout += " " + strconv.Itoa(int(share))
	}
	return s
}

// stop plans what becomes of a group whose wanted launch configuration was found bad: its
// refresh ends, and where the FleetRollout says so its machines go back to what they were.
func (c Planner) stop(pool *intent.Pool, have observed.Group, version template.Version, g *governed, same, set bool) {
	latest := c.In.State.Refreshes[have.Name]
	bad, wanted := 0, wantedTypes(pool)
	for _, i := range have.Instances {
		wants := runs(pool.Group.MixedInstancesPolicy, version, i) && (len(wanted) == 0 || slices.Contains(wanted, i.Type))
		if i.Counts() && (wants || c.stoppedBefore(pool, have, version, g, i.Template)) {
			bad++
		}
	}
	same = same || c.stoppedBefore(pool, have, version, g, latest.Template)
	set = set || c.stoppedBefore(pool, have, version, g, have.Template)
	back, returns := c.back(pool, have, version, g.Permit.Back)
	s := step.Step{Verb: step.Rollout, Resource: step.AutoScalingGroup, Name: have.Name, Disruptive: true, Stops: true, Seen: c.seenToRoll(pool, have)}
	toBack := returns && sameRef(latest.Template, back.Template) && latest.Brings(back.MixedInstancesPolicy)
	switch {
	case latest.Moving() && same:
		s.Reason, s.Do = "the change is stopped: the instance refresh "+latest.ID+" ends", step.CancelRefresh{Group: have.Name, RefreshID: latest.ID}
		if returns && sameRef(have.Template, back.Template) && have.MixedInstancesPolicy.Same(back.MixedInstancesPolicy) {
			s.Reason, s.Instances = "the change is stopped: the instance refresh "+latest.ID+" takes its machines back to version "+back.Template.Version, bad
			s.Do = step.RollbackRefresh{Group: have.Name, RefreshID: latest.ID}
		}
		c.Step(pool, s)
	case latest.Active():
		c.Note(diag.Info, pool, nil, "refresh-ending", "the instance refresh "+latest.ID+" of "+have.Name+" is on its way ("+latest.Status+"); what else the stop asks for comes after it", "")
	case !returns || bad == 0 && !set:
	case toBack && latest.Failed() && !c.In.Memory.Retry[pool.Key.String()]:
		c.Note(diag.Error, pool, nil, "rollout-failed", "the way back of "+have.Name+" to version "+back.Template.Version+" ended as "+latest.Status+": "+cmp.Or(latest.Reason, "AWS gives no reason"),
			"mend what keeps the machines from coming"+Again(c.In, "the pool's launch configuration"))
	case c.Undone(pool, "the group "+have.Name, "back "+g.Hash, 0):
	case bad == 0 || pool.Group.Refresh.Disable:
		c.Step(pool, step.Step{Verb: step.Update, Resource: step.AutoScalingGroup, Name: have.Name, Stops: true, Rollout: "back " + g.Hash,
			Reason: "the change is stopped: machines are launched of version " + back.Template.Version + " again",
			Do:     step.UpdateGroup{Name: have.Name, Template: &back.Template, MixedInstancesPolicy: back.MixedInstancesPolicy}})
	default:
		back.Group, back.Preferences = have.Name, pool.Group.Refresh
		back.Preferences.SkipMatching, back.Preferences.Strategy = new(true), usualStrategy
		s.Reason, s.Instances, s.Rollout, s.Do = "the change is stopped: "+strconv.Itoa(bad)+" machines go back to version "+back.Template.Version, bad, "back "+g.Hash, back
		c.Step(pool, s)
	}
	c.noteStopped(pool, have, version, g, bad, set)
}

// back is the configuration to which machines of a stopped change go.
func (c Planner) back(pool *intent.Pool, have observed.Group, version template.Version, to *rollout.Version) (step.StartRefresh, bool) {
	if to == nil {
		return step.StartRefresh{}, false
	}
	t := c.templateOf(to.Template, version)
	if t.ID == "" || t.Missing[to.Number] {
		c.Note(diag.Warning, pool, nil, "rollout-stopped", "version "+strconv.FormatInt(to.Number, 10)+" of the launch template "+to.Template+", to which "+have.Name+" would go back, exists no more; its machines stay as they are",
			"revert the commit, or push one that mends it")
		return step.StartRefresh{}, false
	}
	out := step.StartRefresh{Template: observed.TemplateRef{ID: t.ID, Name: t.Name, Version: strconv.FormatInt(to.Number, 10)}, MixedInstancesPolicy: pool.Group.MixedInstancesPolicy}
	switch {
	case to.Plain || to.Policy != nil:
		out.MixedInstancesPolicy = to.Policy
	case sameRef(have.Template, out.Template):
		out.MixedInstancesPolicy = have.MixedInstancesPolicy
	}
	return out, true
}

func sameRef(a, b observed.TemplateRef) bool { return a.ID == b.ID && a.Version == b.Version }

// noteStopped says how a group of a stopped change stands, and what it launches.
func (c Planner) noteStopped(pool *intent.Pool, have observed.Group, version template.Version, g *governed, bad int, set bool) {
	text := "version " + version.Version() + " of " + have.Name + " " + g.Wait()
	if bad > 0 || set {
		text += "; " + strconv.Itoa(bad) + " of its " + strconv.Itoa(len(have.Instances)) + " machines run it"
	}
	if set && g.Permit.Back == nil {
		text += ", and so will those that the group launches to grow or in place of unhealthy ones"
	}
	c.Note(diag.Warning, pool, nil, "rollout-stopped", text, "")
	c.Pool.Outstands("Warning", "RolloutStopped", text)
	c.Pool.Fails("rollout-stopped", "rollout-stopped")
}
