package plan

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// Compute plans one target. It is a pure function: equal input gives an equal
// plan. needs names what the state lacks; a plan with needs is not whole, and
// the caller reads what is named and computes again.
func Compute(in Input) (plan *Plan, needs observed.Needs) {
	if in.Index == nil {
		in.Index = NewIndex(in.State)
	}
	return gated(in, compute)
}

// compute plans without regard to the gates.
func compute(in Input) (plan *Plan, needs observed.Needs) {
	c := &computation{
		in: in, shared: map[string]*sharedTemplate{}, others: map[string]string{}, images: map[intent.Lookup][]byte{}, stuck: map[string]bool{},
		outstanding: map[string]outstanding{}, homes: map[string]observed.NodegroupName{}, settled: map[intent.Key]bool{}, moved: map[string]string{},
	}
	for _, s := range launchConfigsOf(in.Set) {
		c.shared[s.key()] = s
		c.take(c.begin("").launchConfig(s))
	}
	for i := range in.Set.Pools {
		c.pool(&in.Set.Pools[i])
	}
	c.launchConfigDefaults()
	c.needLaunchTimes()
	c.nodesUnread()
	if !in.Policy.Adoption.Asked {
		c.take(orphansOf(in, c.stuck, c.homes))
	}
	ahead := c.fence()
	c.notTaken()
	c.drift()
	stamp(in, c.steps)
	c.needs.Sort()
	p := &Plan{
		Target: in.Policy.Target, Revision: in.Commit.Revision, Account: in.Policy.Account, Region: in.Policy.Region,
		Steps: c.steps, Diagnostics: c.diags.Sorted(), Secretless: in.Policy.Secretless,
	}
	p.homes, p.watched, p.outstanding, p.wants, p.Summary = c.homes, c.watched, c.outstanding, c.sharedWants(), c.summary()
	p.resolved, p.reviewed, p.behind = c.resolved, c.reviewed, c.behind
	p.Ahead = ahead
	return p, c.needs
}

// computation joins the results of a target's pools.
type computation struct {
	in Input
	result
	// stuck are the pools of which it cannot be said whether they are as wanted.
	stuck map[string]bool
	// shared, others and images are those of the work on a pool.
	shared map[string]*sharedTemplate
	others map[string]string
	images map[intent.Lookup][]byte
	// outstanding, homes, settled and moved are what the results say, by pool.
	outstanding map[string]outstanding
	homes       map[string]observed.NodegroupName
	settled     map[intent.Key]bool
	moved       map[string]string
}

// begin begins work whose steps are held so.
func (c *computation) begin(hold step.Hold) templates {
	return templates{work: &work{in: c.in, hold: hold, others: c.others}, shared: c.shared, images: c.images}
}

// pool plans one pool and keeps what others go by.
func (c *computation) pool(pool *intent.Pool) {
	if c.in.Policy.Adoption.skips(pool) {
		return
	}
	r := planPool(c.begin(c.in.holdOf(pool)), pool)
	key := pool.Key.String()
	if r.blocked || r.waits {
		c.stuck[key] = true
	}
	if r.home != (observed.NodegroupName{}) {
		c.homes[key] = r.home
	}
	if r.replaces {
		c.others[pool.Nodegroup.ClusterName] = key
	}
	if r.settled {
		c.settled[pool.Key] = r.handover
	}
	if r.outstanding != nil {
		c.outstanding[key] = *r.outstanding
	}
	if r.moved != "" {
		c.moved[key] = r.moved
	}
	c.take(r)
}

// planPool plans one pool: template first, then what uses it.
func planPool(c templates, pool *intent.Pool) result {
	c.levels = pool.Group != nil
	for _, d := range pool.Blocked {
		d.Severity = diag.Error
		c.diags = append(c.diags, d)
		c.blocked = true
	}
	for _, claim := range Claims(&intent.Set{Pools: []intent.Pool{*pool}}) {
		if others := c.in.Fleet.Contested[claim]; len(others) > 0 {
			wantedTwice(c.work, pool, claim, others)
		}
	}
	if c.blocked || c.awaitsCluster(pool) {
		return c.result
	}
	planParts(c, pool)
	if c.blocked {
		c.steps = c.conflicts
		return c.result
	}
	steps := c.firstRollout(pool, c.adopted(c.steps))
	c.holdNewer(pool, steps)
	for i := range steps {
		s := &steps[i]
		s.Pool, s.Wanted = pool.Key.String(), pool
		if s.Held == "" {
			s.Held = c.hold
		}
		if pool.LaunchConfig != nil && s.Held == "" && step.Unmade(s.Do) {
			shared := c.shared[pool.LaunchConfig.Key.String()]
			s.Held, s.HeldReason = shared.hold, shared.holdReason
		}
	}
	c.steps = steps
	return c.result
}

// planParts plans what the pool has in AWS.
func planParts(c templates, pool *intent.Pool) {
	var want *wantTemplate
	if pool.LaunchTemplate != nil {
		w, ok := c.templateOf(pool)
		if !ok {
			if c.blocked { // what else is wrong is said with it
				_, _ = c.answer(pool, subnetsOf(pool))
			}
			return
		}
		want = w
	}
	switch {
	case pool.Group != nil:
		if pool, ok := c.withForeignOverrides(pool); ok {
			groups{templates: c}.planGroup(pool, want)
		}
	case pool.Nodegroup != nil:
		nodegroups{templates: c}.planNodegroup(pool, want)
	}
}

// wantedTwice blocks a pool of which another target wants a name too. That of a
// template that pools share follows from the object that declares it.
func wantedTwice(c *work, pool *intent.Pool, claim Claim, targets []string) {
	what, detail := "the "+string(claim.Resource)+" "+claim.Name, "give the pools different names, or put them in different accounts or regions"
	var path intent.Path
	if claim.Resource == step.LaunchTemplate && pool.LaunchConfig != nil {
		from := pool.LaunchConfig.Source
		what += ", which has its name from " + from.String() + ","
		path, detail = intent.Path{"spec", "launchConfigRef"}, "give the "+from.Kind+" another name in one of the targets, or have one target hold all pools that use it"
	}
	c.blockf(pool, path, "contested-name", what+" is wanted by more than one target: "+strings.Join(targets, ", "), detail)
}

// launchConfigDefaults moves the default versions of shared templates: each to the
// version that all of its pools run. While they run several, or the rollout of one
// has failed or is held, the default stays where it was, which every pool has run.
func (c *computation) launchConfigDefaults() {
	for _, key := range slices.Sorted(maps.Keys(c.shared)) {
		s := c.shared[key]
		common, ok := s.common(c.settled)
		if !ok || c.in.Policy.Adoption.Asked {
			continue
		}
		w := c.begin(c.in.holdOfAll(s.users))
		w.moveDefault(s.stand(s.users), common)
		s.belong(s.users, w.hold, w.steps, nil)
		c.take(w.result)
	}
}

// sharedWants are the versions of shared templates that pools want and that exist.
func (c *computation) sharedWants() map[intent.Key]int64 {
	var out map[intent.Key]int64
	for _, s := range c.shared {
		for key, x := range s.of {
			if !x.known || x.version.made() {
				continue
			}
			if out == nil {
				out = map[intent.Key]int64{}
			}
			out[key] = x.version.number
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
	for _, s := range c.steps {
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
		// Of a pool with an error it is not known whether it is as wanted.
		if _, ok := gravest[key]; !ok && !c.stuck[key] {
			out.Unchanged++
		}
	}
	return out
}

// addAll adds the entries of a map to another, which may be nil.
func addAll[K comparable, V any](to *map[K]V, more map[K]V) {
	if *to == nil && len(more) > 0 {
		*to = make(map[K]V, len(more))
	}
	maps.Copy(*to, more)
}
