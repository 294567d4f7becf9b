package reconciler

import (
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/drain"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/refusals"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// memory is the state that a Scope keeps between passes because neither Git nor AWS has it. A restart
// forgets all of it.
type memory struct {
	// Steps that run in parallel use these parts, and so may callers of the Scope. Each has a lock.

	refusals  refusals.Record
	refreshes refreshMemory
	tokens    clientTokens
	updates   nodegroupUpdates
	keepers   tokenKeepers

	// Only the goroutine of the pass uses these parts.

	clusters clusterNames
	drainers map[string]*drain.Drainer // by target
	budgets  budgetMemory
	skipped  skippedSlots
	levels   lookupLevels
	planned  plannedCommits
	pools    poolMemory
	reads    partialReads
	// waiting are the rollouts that waited for a slot in the last pass, in order.
	waiting []plan.Waiting
}

// view returns a copy of what planning depends on.
func (m *memory) view(now time.Time) model.Memory {
	v := model.Memory{Started: m.updates.view(), Converged: m.pools.converged, InService: maps.Clone(m.pools.inService), Refusals: m.refusals.View(now)}
	v.Refreshes, v.Cancelled = m.refreshes.view()
	return v
}

// poolMemory remembers what pools wanted when they had last converged, and since when their
// instances are in service.
type poolMemory struct {
	// settled is replaced as a whole and never changed. Its keys are those of model.SettledKey.
	converged map[string]model.LastConverged
	// inService is nil before the first pass, and has instance ids as keys.
	inService map[string]time.Time
}

// convergedElsewhere returns what is known of the targets that are unknown in this pass.
func (m *poolMemory) convergedElsewhere(targets []Desired) map[string]model.LastConverged {
	next := make(map[string]model.LastConverged, len(m.converged))
	unknown := map[string]bool{}
	for _, t := range targets {
		if t.Set == nil {
			unknown[t.Policy.Target] = true
		}
	}
	for key, then := range m.converged {
		if model.ConvergedKeyOf(key, unknown) {
			next[key] = then
		}
	}
	return next
}

// update takes what a pass found. The times of instances that belong to a target without a plan stay
// while the instances are in service.
func (m *poolMemory) update(converged map[string]model.LastConverged, inService map[string]time.Time, state *observed.State) {
	m.converged = converged
	if len(m.inService) > 0 {
		for _, g := range state.Groups {
			for _, i := range g.Instances {
				if since, known := m.inService[i.ID]; known && inService[i.ID].IsZero() && i.LifecycleState == "InService" {
					inService[i.ID] = since
				}
			}
		}
	}
	m.inService = inService
}

// clusterGrace is the time for which an EKS cluster is still listed after the last target has named
// it: a nodegroup that was being made then is not in every answer yet.
const clusterGrace = time.Minute

// unreadGrace is that time if AWS does not let weir read whether nodegroups exist.
const unreadGrace = time.Hour

// clusterNames holds the EKS clusters whose nodegroups a pass lists, and when a target last named
// them. A cluster stays for a while after the last target has dropped its nodegroups.
type clusterNames map[string]time.Time

// query adds the clusters of the targets and returns all of them, sorted.
func (c *clusterNames) query(targets []Desired, now time.Time) []string {
	if *c == nil {
		*c = clusterNames{}
	}
	for _, t := range targets {
		for i := range t.Unplanned {
			if u := &t.Unplanned[i]; u.Kind == intent.NodegroupPool && u.EKSName != "" {
				(*c)[u.EKSName] = now
			}
		}
		if t.Set == nil {
			continue
		}
		for i := range t.Set.Pools {
			if n := t.Set.Pools[i].Nodegroup; n != nil {
				(*c)[n.ClusterName] = now
			}
		}
	}
	return slices.Sorted(maps.Keys(*c))
}

// forget drops the clusters that no target names any more and that have no nodegroup of the owner.
// observedAt is the start of the read that gave the state.
func (c clusterNames) forget(state *observed.State, owner string, observedAt, now time.Time) {
	owned := map[string]bool{}
	for name, n := range state.Nodegroups {
		owned[name.Cluster] = owned[name.Cluster] || n.Tags[observed.TagOwner] == owner
	}
	maps.DeleteFunc(c, func(name string, named time.Time) bool {
		exists, listed := state.Clusters[name]
		switch {
		case owned[name]:
			return false
		case state.Unread.Cluster(name):
			return now.Sub(named) > unreadGrace
		case !listed:
			return false
		case !exists:
			return named.Before(observedAt)
		}
		return now.Sub(named) > clusterGrace
	})
}

// tokenReplays is the number of requests for the same version with the same token. After a read
// that does not show the version yet, weir requests it again, and the token prevents a second one.
// After that many requests the version is gone for good.
// Assumed of AWS: version-tokens.
const tokenReplays = 3

// clientTokens counts how often AWS answered requests with the same client token.
type clientTokens struct {
	mu       sync.Mutex
	answered recent[int]
}

// fresh changes the client token of a version that AWS keeps answering with although no read shows
// it: somebody deleted the version outside weir.
func (c *clientTokens) fresh(a step.Action) step.Action {
	v, ok := a.(step.CreateLaunchTemplateVersion)
	if !ok {
		return a
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if n := c.answered.get(v.Token); n >= tokenReplays {
		v.Token = fmt.Sprintf("%s-%d", v.Token, n)
	}
	return v
}

// answer notes an answer of AWS to a step with a token. The token is that of the plan, not the one
// that fresh made of it.
func (c *clientTokens) answer(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered.set(token, c.answered.get(token)+1)
}

// nodegroupUpdates remembers the last update of each nodegroup that this process started: EKS does
// not say for which intent.
type nodegroupUpdates struct {
	mu      sync.Mutex
	started map[observed.NodegroupName]model.StartedUpdate
}

func (u *nodegroupUpdates) note(name observed.NodegroupName, started model.StartedUpdate) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.started == nil {
		u.started = map[observed.NodegroupName]model.StartedUpdate{}
	}
	u.started[name] = started
}

// forget drops the updates of nodegroups that do not exist any more.
func (u *nodegroupUpdates) forget(state *observed.State) {
	u.mu.Lock()
	defer u.mu.Unlock()
	maps.DeleteFunc(u.started, func(name observed.NodegroupName, _ model.StartedUpdate) bool {
		_, there := state.Nodegroups[name]
		_, listed := state.Clusters[name.Cluster]
		return listed && !there && !state.Unread.Cluster(name.Cluster)
	})
}

func (u *nodegroupUpdates) view() map[observed.NodegroupName]model.StartedUpdate {
	u.mu.Lock()
	defer u.mu.Unlock()
	return maps.Clone(u.started)
}

// lookupLevels holds the answers to the lookups of the last pass, each with the time of its first
// answer. A map that was handed out never changes.
type lookupLevels map[intent.Lookup]model.Level

// update replaces the answers of the last pass by those of a new one.
func (l *lookupLevels) update(answers []observed.Answers, now time.Time) {
	next := lookupLevels{}
	for _, of := range answers {
		for lookup, a := range of {
			level, ok := plan.LevelOf(lookup, a)
			if !ok {
				continue
			}
			level.Since = now
			if old, known := (*l)[lookup]; known && old.ID == level.ID {
				level.Since = old.Since
			}
			next[lookup] = level
		}
	}
	*l = next
}

// plannedCommits holds, by target, the commit that the last pass that applies has planned. Later
// passes of the same commit take images that were published meanwhile.
type plannedCommits map[string]string

// first reports whether no pass that applies has planned the target's commit yet.
func (p plannedCommits) first(t *Desired) bool { return p[t.Policy.Target] != t.Commit.Revision }

// update takes the commits of a pass, and forgets targets that are not in it.
func (p *plannedCommits) update(reports []*plan.Report) {
	next := plannedCommits{}
	for _, r := range reports {
		next[r.Target] = (*p)[r.Target]
		if r.Plan != nil && !r.Plan.Waits() {
			next[r.Target] = r.Revision
		}
	}
	*p = next
}

// remembered bounds what a scope keeps of each kind of past event. It is far more
// than is under way at a time in one account and region.
const remembered = 10_000

// recent is a map that forgets its oldest keys: it keeps at least the most recently added most keys,
// and at most twice as many. So a process that runs for years keeps only recent memories.
type recent[V any] struct {
	most        int // remembered if 0
	now, before map[string]V
}

func (r *recent[V]) set(key string, v V) {
	most := r.most
	if most == 0 {
		most = remembered
	}
	if _, there := r.now[key]; !there && len(r.now) >= most {
		r.now, r.before = nil, r.now
	}
	if r.now == nil {
		r.now = map[string]V{}
	}
	r.now[key] = v
}

func (r *recent[V]) get(key string) V {
	if v, there := r.now[key]; there {
		return v
	}
	return r.before[key]
}

// all returns a copy of what is remembered.
func (r *recent[V]) all() map[string]V {
	out := make(map[string]V, len(r.now)+len(r.before))
	maps.Copy(out, r.before)
	maps.Copy(out, r.now)
	return out
}
