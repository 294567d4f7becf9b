package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/group"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/plan/nodegroup"
	"github.com/weir-gitops/weir/reconciler/plan/orphan"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// Compute plans one target. It is a pure function: equal input gives an equal plan. needs names
// facts that are missing from the state. A plan with needs is incomplete: the caller reads these
// facts and computes again.
func Compute(in model.Input) (plan *Plan, needs observed.Needs) {
	if in.Index == nil {
		in.Index = model.NewIndex(in.State)
	}
	return gated(in, compute)
}

// compute plans a target without its gates: the shared launch templates, then each pool, then the
// orphans. It then removes the steps that targets and pools on an earlier revision must not do. It
// holds steps that would undo a newer commit, that somebody keeps undoing, or that AWS accepts
// without effect. needs lists the facts that are missing.
func compute(in model.Input) (plan *Plan, needs observed.Needs) {
	c := &computation{
		in: in, pools: model.NewPoolPlans(in.Set), shared: map[string]*template.Shared{},
		replacing: map[string]string{}, resolved: map[string]model.ReviewedImage{}, images: map[intent.Lookup][]byte{},
	}
	for _, s := range template.LaunchConfigsOf(in.Set) {
		c.shared[s.Key()] = s
		c.Take(c.planner(nil, "").PlanShared(s))
	}
	for i := range in.Set.Pools {
		c.addPool(&in.Set.Pools[i])
	}
	c.launchConfigDefaults()
	c.needLaunchTimes()
	c.needWaiting()
	c.Needs.Alarms = in.UnreadAlarms()
	c.nodesUnread()
	if !in.Policy.Adoption.Asked && in.Policy.Fallback == nil {
		c.Take(orphan.Plan(in, c.pools))
	}
	verdict := c.keepEarlier()
	c.keepEarlierPools()
	ahead := c.holdUndoingNewer()
	c.holdContested()
	c.holdIneffective()
	c.markDrift()
	c.dropNeverApplied()
	setStamps(in, c.Steps)
	setClaims(in, c.Steps)
	internChanges(c.Steps)
	c.Needs.Sort()
	p := &Plan{
		Target: in.Policy.Target, Revision: in.Commit.Revision, Account: in.Policy.Account, Region: in.Policy.Region,
		Steps: slices.Clone(c.Steps), Diagnostics: c.Diags.Sorted(), Summary: c.summary(), Secretless: in.Policy.Secretless, Ahead: ahead,
		pools: c.pools, resolved: c.resolved, verdict: verdict,
	}
	for i := range c.pools {
		if g := c.pools[i].Governed; g != nil { // the plan keeps at most MostWaiting machines
			g.Facts.Waiting = g.Facts.Waiting[:min(len(g.Facts.Waiting), rollout.MostWaiting)]
		}
	}
	return p, c.Needs
}

// computation combines the results of a target's pools.
type computation struct {
	in model.Input
	model.Result
	pools model.PoolPlans
	// shared, replacing, resolved and images are the maps that all planners of the target share.
	shared    map[string]*template.Shared
	replacing map[string]string
	resolved  map[string]model.ReviewedImage
	images    map[intent.Lookup][]byte
}

// planner starts work on a pool, or on a template that pools share if pool is nil. hold is the hold
// on its steps.
func (c *computation) planner(pool *model.PoolPlan, hold step.Hold) template.Planner {
	return template.Planner{
		Work:   &model.Work{In: &c.in, Hold: hold, Pool: pool, Pools: c.pools, Replacing: c.replacing, Resolved: c.resolved},
		Shared: c.shared, Images: c.images,
	}
}

// addPool plans one pool and adds the result. A pool that a FleetRollout governs is always reported to it, even
// if it could not be planned.
func (c *computation) addPool(pool *intent.Pool) {
	p := c.pools.Of(pool.Key)
	if !c.in.Policy.Adoption.Skips(pool) {
		r := planPool(c.planner(p, c.in.HoldOf(pool)), pool)
		p.Blocked = r.Blocked
		p.Failing = p.Outstanding != nil
		if n := slices.IndexFunc(r.Diags, func(d diag.Diagnostic) bool { return d.Severity == diag.Error }); n >= 0 {
			p.Failing = true
			if p.Blocked {
				p.Fault = r.Diags[n].Summary
			}
		}
		c.noteHeld(p, &r)
		c.Take(r)
	}
	if _, is := c.in.Policy.Gates.Rollouts[pool.Key.String()]; is && p.Governed == nil {
		g := model.NewGoverned(c.in, pool) // without a hash: the FleetRollout cannot roll it to a version
		g.Fault, p.Governed = p.Fault, &g
	}
}

// planPool plans one pool: first the launch template, then the group or nodegroup that uses it.
func planPool(c template.Planner, pool *intent.Pool) model.Result {
	c.Levels = pool.Group != nil
	for _, d := range pool.Blocked {
		d.Severity = diag.Error
		c.Diags = append(c.Diags, d)
		c.Blocked = true
	}
	for _, claim := range model.Claims(&intent.Set{Pools: []intent.Pool{*pool}}) {
		if others := c.In.Fleet.Contested[claim]; len(others) > 0 {
			wantedTwice(c.Work, pool, claim, others)
		}
	}
	if c.Blocked || awaitsCluster(c.Work, pool) {
		return c.Result
	}
	planParts(c, pool)
	if c.Blocked {
		c.Steps = c.Conflicts
		return c.Result
	}
	steps := c.FirstRollout(pool, c.Adopted(c.Steps))
	holdNewer(c.Work, pool, steps)
	for i := range steps {
		s := &steps[i]
		s.Pool, s.Wanted = pool.Key.String(), pool
		if s.Held == "" {
			s.Held = c.Hold
		}
		if pool.LaunchConfig != nil && s.Held == "" && step.Unmade(s.Do) {
			shared := c.Shared[pool.LaunchConfig.Key.String()]
			s.Held, s.HeldReason = shared.Hold, shared.HoldReason
		}
	}
	c.Steps = steps
	return c.Result
}

// planParts plans the launch template and the group or nodegroup of a pool.
func planParts(c template.Planner, pool *intent.Pool) {
	var want *template.Want
	if pool.LaunchTemplate != nil {
		w, ok := c.TemplateOf(pool)
		if !ok {
			if c.Blocked { // also reports problems of the subnets
				_, _ = c.Answer(pool, model.SubnetsOf(pool))
			}
			return
		}
		want = w
	}
	switch {
	case pool.Group != nil:
		if pool, ok := c.WithForeignOverrides(pool); ok {
			group.Planner{Planner: c}.Plan(pool, want)
		}
	case pool.Nodegroup != nil:
		nodegroup.Planner{Planner: c}.Plan(pool, want)
	}
}

// wantedTwice blocks a pool if another target also wants one of its names. The name of a template
// that pools share derives from the object that declares it.
func wantedTwice(c *model.Work, pool *intent.Pool, claim model.Claim, targets []string) {
	what, detail := "the "+string(claim.Resource)+" "+claim.Name, "give the pools different names, or put them in different accounts or regions"
	var path intent.Path
	if claim.Resource == step.LaunchTemplate && pool.LaunchConfig != nil {
		from := pool.LaunchConfig.Source
		what += ", which has its name from " + from.String() + ","
		path, detail = intent.Path{"spec", "launchConfigRef"}, "give the "+from.Kind+" another name in one of the targets, or move all pools that use it into one target"
	}
	if claim.Resource == step.AutoScalingGroup {
		object, at := model.NameField(pool)
		c.Blocked = true
		c.NoteAt(diag.Error, object, at, "contested-name", what+" is wanted by more than one target: "+strings.Join(targets, ", "), detail)
		return
	}
	c.Blockf(pool, path, "contested-name", what+" is wanted by more than one target: "+strings.Join(targets, ", "), detail)
}

// launchConfigDefaults moves the default version of each shared template to the version that all of
// its pools run. While the pools run different versions, or a rollout has failed or is held, the
// default stays at the previous version, which every pool has run.
func (c *computation) launchConfigDefaults() {
	for _, key := range slices.Sorted(maps.Keys(c.shared)) {
		s := c.shared[key]
		common, ok := s.Common(c.pools)
		if !ok || c.in.Policy.Adoption.Asked {
			continue
		}
		w := c.planner(nil, c.in.HoldOfAll(s.Users))
		w.MoveDefault(s.AsPool(s.Users), common)
		s.Attribute(s.Users, w.Hold, w.Steps, nil)
		c.Take(w.Result)
	}
}

// verbRank orders verbs for the summary, most serious first.
var verbRank = []step.Verb{step.Delete, step.Replace, step.Rollout, step.Create, step.Adopt, step.Update, step.PruneVersion}

// summary counts the pools by the gravest verb of their steps. A pool counts once.
func (c *computation) summary() Summary {
	gravest := map[string]int{}
	count := func(pool string, v step.Verb) {
		rank := slices.Index(verbRank, v)
		if old, ok := gravest[pool]; !ok || rank < old {
			gravest[pool] = rank
		}
	}
	for _, s := range c.Steps {
		if s.LaunchConfig == "" {
			count(s.Pool, s.Verb)
		}
		for _, pool := range s.Pools {
			count(pool, step.Update) // a shared template counts for the pools that use it
		}
	}
	var out Summary
	for _, rank := range gravest {
		switch verbRank[rank] {
		case step.Delete:
			out.Delete++
		case step.Replace:
			out.Replace++
		case step.Rollout:
			out.Rollout++
		case step.Create:
			out.Create++
		default:
			out.Update++
		}
	}
	for i := range c.pools {
		p := &c.pools[i]
		// A pool with an error may differ from Git.
		if _, ok := gravest[p.Key.String()]; !ok && p.Unplanned() == "" && !p.Failing {
			out.Unchanged++
		}
	}
	return out
}

// For Cluster API, a machine is available once it has been ready for minReadySeconds. AWS does not
// return the time since which an instance is in service. So weir remembers when it first saw the
// instance in service. A process that has just started uses the launch time instead, which is too
// early by at most the boot time.

// needLaunchTimes requests the launch times of instances in service. It does so only in the first
// pass of a process, and only for pools with minReadySeconds.
func (c *computation) needLaunchTimes() {
	if c.in.Memory.InService != nil || c.in.Nodes != nil {
		return
	}
	for i := range c.in.Set.Pools {
		if pool := &c.in.Set.Pools[i]; pool.MinReadySeconds > 0 {
			for _, in := range c.in.InstancesOf(pool) {
				if _, read := c.in.State.Launched[in.ID]; in.Ready() && !read {
					c.Needs.Launched = append(c.Needs.Launched, in.ID)
				}
			}
		}
	}
}

// needWaiting requests the launch times of machines of governed pools that are not ready, if gates
// need them now.
func (c *computation) needWaiting() {
	for i := range c.pools {
		g := c.pools[i].Governed
		if g == nil || !g.Watched {
			continue
		}
		for _, m := range g.Facts.Waiting {
			if _, read := c.in.State.Launched[m.Instance]; !read {
				c.Needs.Launched = append(c.Needs.Launched, m.Instance)
			}
		}
	}
}

// nodesUnread reports that weir could not read the nodes of the workload cluster.
func (c *computation) nodesUnread() {
	if c.in.Nodes != nil && c.in.Nodes.Err != nil {
		c.Diags = append(c.Diags, diag.Diagnostic{Severity: diag.Warning, Code: "nodes-unread",
			Summary: "weir could not read the nodes of the workload cluster, so instances in service are counted as ready: " + c.in.Nodes.Err.Error(),
			Detail:  diag.Hint("nodes-unread")})
	}
}
