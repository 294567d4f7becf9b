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
	c := &computation{in: in, stuck: map[string]bool{}, images: map[intent.Lookup][]byte{}, homes: map[string]NodegroupName{}, watched: map[string]Watched{}, ahead: map[string]bool{}}
	c.launchConfigs()
	for i := range in.Set.Pools {
		c.pool(&in.Set.Pools[i])
	}
	c.launchConfigDefaults()
	c.needLaunchTimes()
	c.nodesUnread()
	if !in.Policy.Adoption.Asked {
		c.orphans()
	}
	c.fence()
	c.notTaken()
	c.drift()
	c.stamp()
	c.needs.sort()
	p := &Plan{
		Target: in.Policy.Target, Revision: in.Commit.Revision, Account: in.Policy.Account, Region: in.Policy.Region,
		Steps: c.steps, Diagnostics: c.diags.Sorted(), Secretless: in.Policy.Secretless,
	}
	p.homes, p.watched, p.outstanding, p.wants, p.Summary = c.homes, c.watched, c.outstanding, c.sharedWants(), c.summary()
	p.resolved, p.reviewed, p.behind = c.resolved, c.reviewed, c.behind
	p.Ahead = slices.Sorted(maps.Keys(c.ahead))
	return p, c.needs
}

// computation is the work on one plan.
type computation struct {
	in    Input
	steps []Step
	diags diag.List
	needs Needs
	// hold is the hold of the pool that is being planned; its steps take it.
	hold Hold
	// stuck are the pools that have an error.
	stuck map[string]bool
	// shared are the templates that pools share, by the key of the AWSLaunchConfig.
	shared map[string]*sharedTemplate
	// blocked is set once the current pool has an error: none of its steps stand.
	blocked bool
	// homes are the nodegroups that are what Git wants, by pool; replaces names the
	// pool whose nodegroup is being replaced, by EKS cluster.
	homes    map[string]NodegroupName
	replaces map[string]string
	// moved says, by pool, which launch templates that it brings along have moved.
	moved map[string]string
	// images are the canonical forms of images that pools name.
	images map[intent.Lookup][]byte
	// watched are the refreshes that pools wait for, by group.
	watched map[string]Watched
	// levels says that the launch configuration of the current pool decides which
	// kubelet its machines have.
	levels bool
	// outstanding is the plan's.
	outstanding map[string]outstanding
	// resolved, reviewed and behind are the plan's.
	resolved map[string]ReviewedImage
	reviewed map[string]string
	behind   map[string]bool
	// adopts says that the current pool takes something over.
	adopts bool
	// ahead are the commits for which steps are stopped, around those behind all that
	// the target owns, nil before they were asked for.
	ahead  map[string]bool
	around []cause
}

// pool plans one pool: template first, then what uses it.
func (c *computation) pool(pool *intent.Pool) {
	if c.in.Policy.Adoption.skips(pool) {
		return
	}
	c.hold, c.blocked, c.adopts, c.levels = c.holdOf(pool), false, false, pool.Group != nil
	for _, d := range pool.Blocked {
		d.Severity = diag.Error
		c.diags = append(c.diags, d)
		c.blocked, c.stuck[pool.Key.String()] = true, true
	}
	for _, claim := range Claims(&intent.Set{Pools: []intent.Pool{*pool}}) {
		if others := c.in.Fleet.Contested[claim]; len(others) > 0 {
			c.wantedTwice(pool, claim, others)
		}
	}
	if c.blocked {
		return
	}
	before := len(c.steps)
	if c.awaitsCluster(pool) {
		return
	}
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
			c.planGroup(pool, want)
		}
	case pool.Nodegroup != nil:
		c.planNodegroup(pool, want)
	}
	if c.blocked {
		c.steps = slices.DeleteFunc(c.steps, func(s Step) bool {
			return s.Pool == pool.Key.String() && s.Held != HeldConflict
		})
		return
	}
	c.adopted(before)
	c.firstRollout(pool, before)
	c.holdNewer(pool, before)
	for i := before; i < len(c.steps); i++ {
		c.steps[i].Pool, c.steps[i].wanted = pool.Key.String(), pool
		if c.steps[i].Held == "" {
			c.steps[i].Held = c.hold
		}
		if pool.LaunchConfig != nil && c.steps[i].Held == "" && Unmade(c.steps[i].Do) {
			s := c.shared[pool.LaunchConfig.Key.String()]
			c.steps[i].Held, c.steps[i].HeldReason = s.hold, s.holdReason
		}
	}
}

// wantedTwice blocks a pool of which another target wants a name too. That of a
// template that pools share follows from the object that declares it.
func (c *computation) wantedTwice(pool *intent.Pool, claim Claim, targets []string) {
	what, detail := "the "+string(claim.Resource)+" "+claim.Name, "give the pools different names, or put them in different accounts or regions"
	var path intent.Path
	if claim.Resource == LaunchTemplate && pool.LaunchConfig != nil {
		from := pool.LaunchConfig.Source
		what += ", which has its name from " + from.String() + ","
		path, detail = intent.Path{"spec", "launchConfigRef"}, "give the "+from.Kind+" another name in one of the targets, or have one target hold all pools that use it"
	}
	c.blockf(pool, path, "contested-name", what+" is wanted by more than one target: "+join(targets), detail)
}

func (c *computation) holdOf(pool *intent.Pool) Hold {
	// Adopting changes tags alone, and somebody asks for it: only Git's word holds it.
	asked := c.in.Policy.Adoption.Asked
	switch {
	case !asked && (c.in.Policy.Suspended || c.in.Policy.ReportOnly):
		return HeldSuspended
	case pool.Paused:
		return HeldPaused
	case !asked && c.in.Policy.Gates.Pools[pool.Key.String()] != "":
		return HeldSuspended
	}
	return ""
}

// step adds a step of the current pool.
func (c *computation) step(pool *intent.Pool, s Step) {
	s.Pool = pool.Key.String()
	c.steps = append(c.steps, s)
}

// codeConflict is the diagnostic of a name that somebody else has.
const codeConflict = "conflict"

// conflict records that a wanted name is taken by what is not ours. Nothing of
// the pool runs.
func (c *computation) conflict(pool *intent.Pool, r Resource, name string, o ownership) {
	c.blockf(pool, nil, codeConflict, "the "+string(r)+" "+name+" exists and is not touched: "+o.why,
		cmpOr(o.wayOut, "rename the pool or remove the existing resource"))
	c.steps = append(c.steps, Step{
		Verb: Adopt, Resource: r, Pool: pool.Key.String(), Name: name, Reason: o.why, Held: HeldConflict,
	})
}

// blockf records an error that keeps the pool from being planned.
func (c *computation) blockf(pool *intent.Pool, path intent.Path, code, summary, detail string) {
	c.blockAt(pool, pool.Infrastructure, path, code, summary, detail)
}

// blockAt is blockf about another object of the pool.
func (c *computation) blockAt(pool *intent.Pool, object intent.ObjectRef, path intent.Path, code, summary, detail string) {
	c.blocked = true
	c.stuck[pool.Key.String()] = true
	c.noteAt(diag.Error, object, path, code, summary, detail)
}

// note records a diagnostic about the pool's infrastructure object. Positions
// are attached by the caller, who can ask the render.
func (c *computation) note(sev diag.Severity, pool *intent.Pool, path intent.Path, code, summary, detail string) {
	c.noteAt(sev, pool.Infrastructure, path, code, summary, detail)
}

// noteAt is note about another object of the pool.
func (c *computation) noteAt(sev diag.Severity, object intent.ObjectRef, path intent.Path, code, summary, detail string) {
	c.diags = append(c.diags, diag.Diagnostic{
		Severity: sev, Code: code, Summary: summary, Detail: cmpOr(detail, diag.Hint(code)),
		Object: object.String(), Field: path.String(),
	})
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
	n.TemplateNames = append(n.TemplateNames, o.TemplateNames...)
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
	n.sort()
}

func itoa[T int | int32 | int64](n T) string { return strconv.FormatInt(int64(n), 10) }

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
