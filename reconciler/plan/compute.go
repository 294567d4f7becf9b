package plan

import (
	"maps"
	"slices"
	"sort"
	"strconv"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// Compute plans one target. It is a pure function: equal input gives an equal
// plan. needs names what the state lacks; a plan with needs is not whole, and
// the caller reads what is named and computes again.
func Compute(in Input) (plan *Plan, needs Needs) {
	if in.Index == nil {
		in.Index = NewIndex(in.State)
	}
	return gated(in, compute)
}

// compute plans without regard to the gates.
func compute(in Input) (plan *Plan, needs Needs) {
	c := &computation{
		in: in, shared: map[string]*sharedTemplate{}, others: map[string]string{}, images: map[intent.Lookup][]byte{}, stuck: map[string]bool{},
		outstanding: map[string]outstanding{}, homes: map[string]NodegroupName{}, settled: map[intent.Key]wantedVersion{}, moved: map[string]string{},
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
	c.needs.sort()
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
	homes       map[string]NodegroupName
	settled     map[intent.Key]wantedVersion
	moved       map[string]string
}

// begin begins work whose steps are held so.
func (c *computation) begin(hold Hold) *work {
	return &work{in: c.in, hold: hold, shared: c.shared, others: c.others, images: c.images}
}

// pool plans one pool and keeps what others go by.
func (c *computation) pool(pool *intent.Pool) {
	if c.in.Policy.Adoption.skips(pool) {
		return
	}
	r := c.begin(c.in.holdOf(pool)).pool(pool)
	key := pool.Key.String()
	if r.blocked || r.waits {
		c.stuck[key] = true
	}
	if r.home != (NodegroupName{}) {
		c.homes[key] = r.home
	}
	if r.replaces {
		c.others[pool.Nodegroup.ClusterName] = key
	}
	if r.settled != nil {
		c.settled[pool.Key] = *r.settled
	}
	if r.outstanding != nil {
		c.outstanding[key] = *r.outstanding
	}
	if r.moved != "" {
		c.moved[key] = r.moved
	}
	c.take(r)
}

// pool plans one pool: template first, then what uses it.
func (c *work) pool(pool *intent.Pool) result {
	c.levels = pool.Group != nil
	for _, d := range pool.Blocked {
		d.Severity = diag.Error
		c.diags = append(c.diags, d)
		c.blocked = true
	}
	for _, claim := range Claims(&intent.Set{Pools: []intent.Pool{*pool}}) {
		if others := c.in.Fleet.Contested[claim]; len(others) > 0 {
			c.wantedTwice(pool, claim, others)
		}
	}
	if c.blocked || c.awaitsCluster(pool) {
		return c.result
	}
	c.planned(pool)
	if c.blocked {
		c.steps = c.conflicts
		return c.result
	}
	steps := c.firstRollout(pool, c.adopted(c.steps))
	c.holdNewer(pool, steps)
	for i := range steps {
		s := &steps[i]
		s.Pool, s.wanted = pool.Key.String(), pool
		if s.Held == "" {
			s.Held = c.hold
		}
		if pool.LaunchConfig != nil && s.Held == "" && Unmade(s.Do) {
			shared := c.shared[pool.LaunchConfig.Key.String()]
			s.Held, s.HeldReason = shared.hold, shared.holdReason
		}
	}
	c.steps = steps
	return c.result
}

// planned plans what the pool has in AWS.
func (c *work) planned(pool *intent.Pool) {
	var want *wantTemplate
	if pool.LaunchTemplate != nil {
		w, ok := templates{c}.templateOf(pool)
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
		if pool, ok := (templates{c}).withForeignOverrides(pool); ok {
			groups{c}.planGroup(pool, want)
		}
	case pool.Nodegroup != nil:
		nodegroups{c}.planNodegroup(pool, want)
	}
}

// wantedTwice blocks a pool of which another target wants a name too. That of a
// template that pools share follows from the object that declares it.
func (c *work) wantedTwice(pool *intent.Pool, claim Claim, targets []string) {
	what, detail := "the "+string(claim.Resource)+" "+claim.Name, "give the pools different names, or put them in different accounts or regions"
	var path intent.Path
	if claim.Resource == LaunchTemplate && pool.LaunchConfig != nil {
		from := pool.LaunchConfig.Source
		what += ", which has its name from " + from.String() + ","
		path, detail = intent.Path{"spec", "launchConfigRef"}, "give the "+from.Kind+" another name in one of the targets, or have one target hold all pools that use it"
	}
	c.blockf(pool, path, "contested-name", what+" is wanted by more than one target: "+join(targets), detail)
}

// verbRank orders verbs for the summary, gravest first.
var verbRank = []Verb{Delete, Replace, Rollout, Create, Adopt, Update, PruneVersion}

func (c *computation) summary() Summary {
	gravest := map[string]int{}
	count := func(pool string, v Verb) {
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
			count(pool, Update) // a template is no pool, and is made for those that use it
		}
	}
	var out Summary
	for _, rank := range gravest {
		switch verbRank[rank] {
		case Delete:
			out.Delete++
		case Replace:
			out.Replace++
		case Rollout:
			out.Rollout++
		case Create:
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

func (n *Needs) sort() {
	n.TemplateNames = sortedUnique(n.TemplateNames)
	n.Commits = sortedUnique(n.Commits)
	n.GroupNames = sortedUnique(n.GroupNames)
	n.Refreshes, n.Polls = sortedUnique(n.Refreshes), sortedUnique(n.Polls)
	n.Hooks = sortedUnique(n.Hooks)
	n.Numbers, n.VersionUsers, n.Launched = sortedUnique(n.Numbers), sortedUnique(n.VersionUsers), sortedUnique(n.Launched)
	byName := func(a, b NodegroupName) int {
		if a.String() < b.String() {
			return -1
		}
		if a == b {
			return 0
		}
		return 1
	}
	slices.SortFunc(n.Nodegroups, byName)
	n.Nodegroups = slices.Compact(n.Nodegroups)
	slices.SortFunc(n.Updates, byName)
	n.Updates = slices.Compact(n.Updates)
	sort.Slice(n.Versions, func(i, j int) bool { return n.Versions[i].ID < n.Versions[j].ID })
	n.Versions = slices.Compact(n.Versions)
}

func sortedUnique(s []string) []string {
	slices.Sort(s)
	return slices.Compact(s)
}

// Add joins the needs of several targets, apart from commits: each has those of its
// own source.
func (n *Needs) Add(o Needs) {
	o.Commits = nil
	n.append(o)
	n.sort()
}

func (n *Needs) append(o Needs) {
	n.TemplateNames, n.Commits = append(n.TemplateNames, o.TemplateNames...), append(n.Commits, o.Commits...)
	n.GroupNames = append(n.GroupNames, o.GroupNames...)
	n.Nodegroups = append(n.Nodegroups, o.Nodegroups...)
	n.Versions = append(n.Versions, o.Versions...)
	n.Refreshes = append(n.Refreshes, o.Refreshes...)
	n.Polls = append(n.Polls, o.Polls...)
	n.Hooks = append(n.Hooks, o.Hooks...)
	n.Activities = append(n.Activities, o.Activities...)
	n.Updates = append(n.Updates, o.Updates...)
	n.Numbers = append(n.Numbers, o.Numbers...)
	n.VersionUsers = append(n.VersionUsers, o.VersionUsers...)
	n.Launched = append(n.Launched, o.Launched...)
	n.TemplateUsers = n.TemplateUsers || o.TemplateUsers
}

func itoa[T int | int32 | int64](n T) string { return strconv.FormatInt(int64(n), 10) }

// join2 adds the entries of a map to another, which may be nil.
func join2[K comparable, V any](to *map[K]V, more map[K]V) {
	if *to == nil && len(more) > 0 {
		*to = make(map[K]V, len(more))
	}
	maps.Copy(*to, more)
}

func join(s []string) string {
	out := ""
	for i, v := range s {
		if i > 0 {
			out += ", "
		}
		out += v
	}
	return out
}
