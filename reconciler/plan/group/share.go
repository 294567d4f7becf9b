package group

import (
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// The share of a group that a FleetRollout permits is rolled out by a separate instance refresh.
// The refresh skips matching machines, and its last checkpoint is the share, so AWS ends it there.
// Until more is permitted, nothing changes, whether weir runs or not. AWS then sets the group to
// the new version, so machines that it launches later, to grow or to replace unhealthy ones, run
// that version.
// Assumed of AWS: refresh-ends-at-its-last-checkpoint.
// Assumed of AWS: checkpoints-count-the-group.
//
// AWS may not accept a refresh that ends below 100 %. The adapter then starts one that waits at the
// share for as long as AWS can wait, and weir ends it there.

// wayOf returns how much of the pool may be rolled. The hash covers the launch body and the mixed
// instances policy, because another policy replaces machines as well.
func (l launching) wayOf() model.Way {
	return l.planner.In.WayTo(l.pool, func() string { return hashOf(l.version.Body(), l.pool.Group.MixedInstancesPolicy) }, func() []rollout.Field { return l.searchedFields() })
}

func hashOf(body string, policy *intent.MixedInstances) string {
	if policy == nil {
		return body
	}
	return content.ShortHash([]byte(body), content.Canonical(policy))
}

// preferences returns the preferences of a refresh up to the permitted share.
func (l launching) preferences(way model.Way) intent.Refresh {
	r, share := l.pool.Group.Refresh, way.Share()
	if !way.Governed {
		return r
	}
	r.SkipMatching = new(true)
	r.AlarmSpecification = l.alarms(r.AlarmSpecification, way)
	if share < 100 {
		r.CheckpointPercentages = slices.DeleteFunc(slices.Clone(r.CheckpointPercentages), func(p int32) bool { return p >= share })
		if len(r.CheckpointPercentages) == 0 {
			r.CheckpointDelay = nil
		}
		r.CheckpointPercentages = append(r.CheckpointPercentages, share)
	}
	return r
}

// mostAlarms is the number of alarms that a refresh may name.
const mostAlarms = 10

// alarms returns the alarms that end a refresh: the alarms in Git, and the alarms that gates read.
// So these stop the change even while no conductor runs. AWS refuses names of alarms that do not
// exist.
func (l launching) alarms(own *intent.AlarmSpecification, way model.Way) *intent.AlarmSpecification {
	var names []string
	if own != nil {
		names = slices.Clone(own.Alarms)
	}
	for _, name := range way.Permit.Alarms {
		if l.planner.In.State.Alarms[name] != "" && !slices.Contains(names, name) && len(names) < mostAlarms {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return own
	}
	return &intent.AlarmSpecification{Alarms: names}
}

// shareOf returns the share at which a refresh ends, and whether it waits there instead of ending.
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

// governed contains the facts that decide a governed group's rollout.
type governed struct {
	model.Way
	report rollout.Pool
	// serving counts the machines with the wanted configuration that are in service.
	serving int32
}

// govern determines the state of a group in its waves.
func (l launching) govern(left int, set, same bool) (g governed) {
	g.Way = l.wayOf()
	if !g.Governed {
		return g
	}
	wanted := wantedTypes(l.pool)
	fresh := func(i observed.Instance) bool {
		return runs(l.pool.Group.MixedInstancesPolicy, l.version, i) && (len(wanted) == 0 || slices.Contains(wanted, i.Type))
	}
	for _, i := range l.have.Instances {
		if i.Ready() && fresh(i) {
			g.serving++
		}
	}
	p := g.Report(*l.planner.In, l.pool, l.have.Instances, fresh)
	p.Machines, p.Whole, p.Keeps = l.have.DesiredInstances(), l.pool.Group.Refresh.Disable, l.pool.Group.Refresh.Disable
	p.Pending = left > 0 && !l.pool.Group.Refresh.Disable || !set
	if p.Pending {
		if before := l.earlier(set); len(before) > 0 {
			p.Earlier, p.Others, p.Change = &before[0], before[1:], l.change(before[0])
		}
	}
	if r := l.planner.In.State.Refreshes[l.have.Name]; r.Active() {
		share, _ := shareOf(l.pool, r.Preferences)
		p.Moving = &rollout.Move{ID: r.ID, Share: share, Since: r.StartedAt, Cancelling: r.Status == "Cancelling", Left: p.New}
		if same {
			p.Moving.Hash, p.Moving.Left = g.Hash, max(0, rollout.Need(p.Machines, share)-g.serving)
		}
	}
	g.report = p
	return g
}

func (l launching) templateOf(name string) observed.Template {
	if l.version.Found && l.version.Template.Name == name {
		return l.version.Template
	}
	return l.planner.In.State.Templates[name]
}

// reached reports whether as many machines as the permit allows run the wanted configuration.
func (g *governed) reached() bool {
	share := g.Share()
	return g.Governed && share < 100 && g.report.New >= rollout.Need(g.report.Machines, share)
}

// over explains why a refresh to the wanted configuration must end now, "" if it may continue: it
// waits at its share, or has exceeded it.
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
		return "the instance refresh " + r.ID + " has reached its share of " + strconv.Itoa(int(share)) + " % and would continue after a delay"
	case g.report.New > need:
		return "the instance refresh " + r.ID + " has replaced " + strconv.Itoa(int(g.report.New)) + " machines, and its share is " + strconv.Itoa(int(need))
	}
	return ""
}

// cancelled reports whether a refresh was cancelled because it had reached its share.
func (g *governed) cancelled(pool *intent.Pool, r observed.Refresh) bool {
	share, _ := shareOf(pool, r.Preferences)
	return g.Governed && r.Status == "Cancelled" && share < 100 && g.report.New >= rollout.Need(g.report.Machines, share)
}

// tried reports whether a refresh ran with the preferences that are now in Git, whatever its share
// was.
func (l launching) tried(r observed.Refresh, g *governed) bool {
	want := l.preferences(g.Way)
	if g.Governed {
		want.CheckpointPercentages, want.CheckpointDelay = nil, nil
		if own, had := l.pool.Group.Refresh.AlarmSpecification, r.Preferences.AlarmSpecification; own == nil || had != nil && !slices.ContainsFunc(own.Alarms, func(name string) bool { return !slices.Contains(had.Alarms, name) }) {
			want.AlarmSpecification = had // gates read different alarms at different times
		}
		share, _ := shareOf(l.pool, r.Preferences)
		if r.Status == "Successful" && share < 100 || g.cancelled(l.pool, r) {
			return false
		}
	}
	return triedWith(r.Preferences, want)
}

// shared limits the start of a refresh to the permitted share, or holds it.
func (l launching) shared(s step.Step, g *governed) step.Step {
	if !g.Governed {
		return s
	}
	share := g.Share()
	if share == 0 || g.reached() {
		return g.Hold(s)
	}
	start := s.Do.(step.StartRefresh)
	strategy := start.Preferences.Strategy
	start.Preferences = l.preferences(g.Way)
	start.Preferences.Strategy = strategy
	s.Do = start
	if share < 100 {
		s.Instances = int(rollout.Need(g.report.Machines, share) - g.report.New)
		s.Reason = strconv.Itoa(s.Instances) + " of these, up to " + strconv.Itoa(int(share)) + " % of the group: " + s.Reason
		s.Rollout += " " + strconv.Itoa(int(share))
	}
	return s
}
