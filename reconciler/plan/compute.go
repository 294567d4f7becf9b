package plan

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/plan/group"
	"github.com/weir-gitops/weir/reconciler/plan/nodegroup"
	"github.com/weir-gitops/weir/reconciler/plan/orphan"
	"github.com/weir-gitops/weir/reconciler/plan/template"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// Compute plans one target. It is a pure function: equal input gives an equal
// plan. needs names what the state lacks; a plan with needs is not whole, and the
// caller reads the named facts and computes again.
func Compute(in basis.Input) (plan *Plan, needs observed.Needs) {
	if in.Index == nil {
		in.Index = basis.NewIndex(in.State)
	}
	return gated(in, compute)
}

// compute plans without regard to the gates.
func compute(in basis.Input) (plan *Plan, needs observed.Needs) {
	c := &computation{
		in: in, shared: map[string]*template.Shared{}, others: map[string]string{}, images: map[intent.Lookup][]byte{}, stuck: map[string]bool{}, faults: map[string]string{},
		outstanding: map[string]basis.Outstanding{}, matching: map[string]observed.NodegroupName{}, settled: map[intent.Key]bool{}, moved: map[string]string{}, wantedImages: map[string]string{}, releases: map[string]basis.Release{},
		differing: map[string]bool{}, foreign: map[string]bool{}, failing: map[string]bool{}, undone: map[string]bool{}, unclear: map[string]string{},
	}
	for _, s := range template.LaunchConfigsOf(in.Set) {
		c.shared[s.Key()] = s
		c.Take(c.begin("").PlanShared(s))
	}
	for i := range in.Set.Pools {
		c.pool(&in.Set.Pools[i])
	}
	c.launchConfigDefaults()
	c.needLaunchTimes()
	c.needWaiting()
	c.Needs.Alarms = in.UnreadAlarms()
	c.nodesUnread()
	if !in.Policy.Adoption.Asked && in.Policy.Held == nil {
		c.Take(orphan.Plan(in, c.stuck, c.faults, c.matching))
	}
	candidate := c.hold()
	verdicts := c.holdPools()
	ahead := c.fence()
	c.contested()
	c.notTaken()
	c.drift()
	c.leaveUndone()
	stamp(in, c.Steps)
	claim(in, c.Steps)
	share(c.Steps)
	c.Needs.Sort()
	p := &Plan{
		Target: in.Policy.Target, Revision: in.Commit.Revision, Account: in.Policy.Account, Region: in.Policy.Region,
		Steps: slices.Clone(c.Steps), Diagnostics: c.Diags.Sorted(), Secretless: in.Policy.Secretless,
	}
	p.matching, p.watched, p.outstanding, p.wants, p.Summary = c.matching, c.Watched, c.outstanding, c.sharedWants(), c.summary()
	p.wantedImages, p.releases, p.resolved, p.reviewed, p.behind = c.wantedImages, c.releases, c.Resolved, c.Reviewed, c.Behind
	p.Ahead, p.governed, p.undone, p.unplanned = ahead, c.governed(), c.undone, map[string]string{}
	for pool := range c.stuck {
		p.unplanned[pool] = cmp.Or(c.faults[pool], "it cannot be planned now")
	}
	p.verdicts = verdicts
	if candidate != nil {
		p.verdict = judge(candidate, p.governed)
	}
	return p, c.Needs
}

// governed are the pools that FleetRollouts govern. One that could not be planned has no
// hash, and so rolls to nothing.
func (c *computation) governed() []rollout.Pool {
	var out []rollout.Pool
	planned := make(map[string]int, len(c.Governed))
	for i := range slices.Backward(c.Governed) { // the first of a pool counts
		planned[c.Governed[i].Pool] = i
	}
	for i := range c.in.Set.Pools {
		pool := &c.in.Set.Pools[i]
		key := pool.Key.String()
		if _, is := c.in.Policy.Gates.Rollouts[key]; !is {
			continue
		}
		n, is := planned[key]
		if !is {
			p := basis.NewGoverned(c.in, pool)
			p.Fault = c.faults[key]
			out = append(out, p)
			continue
		}
		p := c.Governed[n]
		p.Facts.Waiting = p.Facts.Waiting[:min(len(p.Facts.Waiting), rollout.MostWaiting)]
		out = append(out, p)
	}
	return out
}

// computation joins the results of a target's pools.
type computation struct {
	in basis.Input
	basis.Result
	// stuck are the pools of which it cannot be said whether they are as wanted.
	stuck map[string]bool
	// failing are the pools that are not as wanted although nothing is planned for them, such
	// as those whose rollout failed.
	failing map[string]bool
	// faults are why pools could not be planned.
	faults map[string]string
	// shared, others and images are those of the work on a pool.
	shared map[string]*template.Shared
	others map[string]string
	images map[intent.Lookup][]byte
	// outstanding, homes, settled, moved, wantedImages and releases collect the results, by pool.
	outstanding  map[string]basis.Outstanding
	matching     map[string]observed.NodegroupName
	settled      map[intent.Key]bool
	moved        map[string]string
	wantedImages map[string]string
	releases     map[string]basis.Release
	// differing are pools of which AWS holds something else than a candidate says, unclear
	// says why that cannot be told, foreign are those whose names are somebody else's, and
	// undone those with work that is left while the target is held.
	differing, foreign, undone map[string]bool
	unclear                    map[string]string
}

// begin begins work whose steps are held so.
func (c *computation) begin(hold step.Hold) template.Planner {
	return template.Planner{Work: &basis.Work{In: c.in, Hold: hold, Others: c.others}, Shared: c.shared, Images: c.images}
}

// pool plans one pool and keeps what others go by.
func (c *computation) pool(pool *intent.Pool) {
	if c.in.Policy.Adoption.Skips(pool) {
		return
	}
	r := planPool(c.begin(c.in.HoldOf(pool)), pool)
	key := pool.Key.String()
	if r.Blocked || r.Waits {
		c.stuck[key] = true
	}
	if n := slices.IndexFunc(r.Diags, func(d diag.Diagnostic) bool { return r.Blocked && d.Severity == diag.Error }); n >= 0 {
		c.faults[key] = r.Diags[n].Summary
	}
	if r.Outstanding != nil || slices.ContainsFunc(r.Diags, func(d diag.Diagnostic) bool { return d.Severity == diag.Error }) {
		c.failing[key] = true
	}
	c.noteHolds(key, &r)
	if r.Home != (observed.NodegroupName{}) {
		c.matching[key] = r.Home
	}
	if r.Replaces {
		c.others[pool.Nodegroup.ClusterName] = key
	}
	if r.Settled {
		c.settled[pool.Key] = r.TakenOver
	}
	if r.Outstanding != nil {
		c.outstanding[key] = *r.Outstanding
	}
	if r.Moved != "" {
		c.moved[key] = r.Moved
	}
	if r.Image != "" {
		c.wantedImages[key] = r.Image
	}
	if r.Release != (basis.Release{}) {
		c.releases[key] = r.Release
	}
	c.Take(r)
}

// planPool plans one pool: template first, then what uses it.
func planPool(c template.Planner, pool *intent.Pool) basis.Result {
	c.Levels = pool.Group != nil
	for _, d := range pool.Blocked {
		d.Severity = diag.Error
		c.Diags = append(c.Diags, d)
		c.Blocked = true
	}
	for _, claim := range basis.Claims(&intent.Set{Pools: []intent.Pool{*pool}}) {
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

// planParts plans what the pool has in AWS.
func planParts(c template.Planner, pool *intent.Pool) {
	var want *template.Want
	if pool.LaunchTemplate != nil {
		w, ok := c.TemplateOf(pool)
		if !ok {
			if c.Blocked { // what else is wrong is said with it
				_, _ = c.Answer(pool, basis.SubnetsOf(pool))
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

// wantedTwice blocks a pool of which another target wants a name too. The name of a
// template that pools share follows from the object that declares it.
func wantedTwice(c *basis.Work, pool *intent.Pool, claim basis.Claim, targets []string) {
	what, detail := "the "+string(claim.Resource)+" "+claim.Name, "give the pools different names, or put them in different accounts or regions"
	var path intent.Path
	if claim.Resource == step.LaunchTemplate && pool.LaunchConfig != nil {
		from := pool.LaunchConfig.Source
		what += ", which has its name from " + from.String() + ","
		path, detail = intent.Path{"spec", "launchConfigRef"}, "give the "+from.Kind+" another name in one of the targets, or have one target hold all pools that use it"
	}
	if claim.Resource == step.AutoScalingGroup {
		object, at := basis.NameField(pool)
		c.Blocked = true
		c.NoteAt(diag.Error, object, at, "contested-name", what+" is wanted by more than one target: "+strings.Join(targets, ", "), detail)
		return
	}
	c.Blockf(pool, path, "contested-name", what+" is wanted by more than one target: "+strings.Join(targets, ", "), detail)
}

// launchConfigDefaults moves the default versions of shared templates: each to the
// version that all of its pools run. While they run several, or the rollout of one
// has failed or is held, the default stays where it was, which every pool has run.
func (c *computation) launchConfigDefaults() {
	for _, key := range slices.Sorted(maps.Keys(c.shared)) {
		s := c.shared[key]
		common, ok := s.Common(c.settled)
		if !ok || c.in.Policy.Adoption.Asked {
			continue
		}
		w := c.begin(c.in.HoldOfAll(s.Users))
		w.MoveDefault(s.AsPool(s.Users), common)
		s.Attribute(s.Users, w.Hold, w.Steps, nil)
		c.Take(w.Result)
	}
}

// sharedWants are the versions of shared templates that pools want and that exist.
func (c *computation) sharedWants() map[intent.Key]int64 {
	out := map[intent.Key]int64{}
	for _, s := range c.shared {
		for key, x := range s.Of {
			if x.Known && !x.Version.Made() {
				out[key] = x.Version.Number
			}
		}
	}
	return out
}

// verbRank orders verbs for the summary, gravest first.
var verbRank = []step.Verb{step.Delete, step.Replace, step.Rollout, step.Create, step.Adopt, step.Update, step.PruneVersion}

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
			count(pool, step.Update) // a template is no pool, and is made for those that use it
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
	for i := range c.in.Set.Pools {
		key := c.in.Set.Pools[i].Key.String()
		// Of a pool with an error it is not known whether it is as wanted, or known that it is not.
		if _, ok := gravest[key]; !ok && !c.stuck[key] && !c.failing[key] {
			out.Unchanged++
		}
	}
	return out
}

// For Cluster API a machine is available once it has been ready for minReadySeconds.
// AWS does not say since when an instance is in service, so weir remembers when it
// first saw it there; a process that has just started takes the launch time instead,
// which is at most a boot too early.

// needLaunchTimes asks for the launch times of instances in service, in the
// first pass of a process and for pools with minReadySeconds only.
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

// needWaiting asks when machines of governed pools were launched that are not ready, where
// gates ask about that now.
func (c *computation) needWaiting() {
	for _, p := range c.Governed {
		for _, m := range p.Facts.Waiting {
			if _, read := c.in.State.Launched[m.Instance]; p.Watched && !read {
				c.Needs.Launched = append(c.Needs.Launched, m.Instance)
			}
		}
	}
}

// nodesUnread says that the workload cluster did not say which nodes are ready.
func (c *computation) nodesUnread() {
	if c.in.Nodes != nil && c.in.Nodes.Err != nil {
		c.Diags = append(c.Diags, diag.Diagnostic{Severity: diag.Warning, Code: "nodes-unread",
			Summary: "the nodes of the workload cluster could not be read, so instances in service are counted as ready: " + c.in.Nodes.Err.Error(),
			Detail:  diag.Hint("nodes-unread")})
	}
}
