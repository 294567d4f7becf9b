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

// memory is the state that a Scope keeps between passes because neither Git nor AWS has it. It is
// lost at a restart.
type memory struct {
	// Steps that run in parallel, and callers of the Scope, use these parts. Each has a lock.

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
	// waiting lists the rollouts that waited for a slot in the last pass, in order.
	waiting []plan.Waiting
}

// view returns a copy of the memory for planning.
func (m *memory) view(now time.Time) model.Memory {
	v := model.Memory{Started: m.updates.view(), Converged: m.pools.converged, InService: maps.Clone(m.pools.inService), Refusals: m.refusals.View(now)}
	v.Refreshes, v.Cancelled = m.refreshes.view()
	return v
}

// poolMemory contains the desired state of pools when they had last converged, and the times since
// which their instances are in service.
type poolMemory struct {
	// converged is replaced as a whole and never changed. model.ConvergedKey makes its keys.
	converged map[string]model.LastConverged
	// inService is nil before the first pass, and has instance ids as keys.
	inService map[string]time.Time
}

// convergedElsewhere returns the entries of the targets without a desired state in this pass.
func (m *poolMemory) convergedElsewhere(targets []Desired) map[string]model.LastConverged {
	next := make(map[string]model.LastConverged, len(m.converged))
	unknown := map[string]bool{}
	for _, t := range targets {
		if t.Set == nil {
			unknown[t.Policy.Target] = true
		}
	}
	for key, then := range m.converged {
		if model.ConvergedKeyBelongsTo(key, unknown) {
			next[key] = then
		}
	}
	return next
}

// update stores the results of a pass. The times of instances that belong to a target without a
// plan stay while the instances are in service.
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

// clusterGrace is the time for which weir still lists the nodegroups of an EKS cluster after the
// last target has named it. A nodegroup that was being created then may be missing from the first
// answers.
const clusterGrace = time.Minute

// unreadGrace replaces clusterGrace if AWS does not let weir read whether nodegroups exist.
const unreadGrace = time.Hour

// clusterNames maps the EKS clusters whose nodegroups a pass lists to the time when a target last
// named them. A cluster stays for a while after the last target has dropped its nodegroups.
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
// observedAt is the start of the read that returned the state.
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

// tokenReplays is the maximum number of requests for the same version with the same token. If a
// read does not show the version yet, weir requests it again, and the token prevents a second
// version. After that many requests, the version must have been deleted.
// Assumed of AWS: version-tokens.
const tokenReplays = 3

// clientTokens counts AWS's answers to requests with the same client token.
type clientTokens struct {
	mu       sync.Mutex
	answered recent[int]
}

// fresh changes the client token of a version that AWS keeps returning although no read shows it:
// somebody deleted the version outside weir.
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

// answer counts an answer of AWS to a step with a token. The token must be the plan's, not a token
// changed by fresh.
func (c *clientTokens) answer(token string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answered.set(token, c.answered.get(token)+1)
}

// nodegroupUpdates contains the last update of each nodegroup that this process started, because
// EKS does not record its intent.
type nodegroupUpdates struct {
	mu      sync.Mutex
	started map[observed.NodegroupName]model.StartedUpdate
}

func (u *nodegroupUpdates) recordStarted(name observed.NodegroupName, started model.StartedUpdate) {
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

// lookupLevels contains the answers to the lookups of the last pass, each with the time since which
// it is the same. A map that was handed out never changes.
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

// plannedCommits maps targets to the commit of the last applying pass that planned them. Later
// passes of the same commit use images that were published meanwhile.
type plannedCommits map[string]string

// first reports whether no applying pass has planned the target's commit yet.
func (p plannedCommits) first(t *Desired) bool { return p[t.Policy.Target] != t.Commit.Revision }

// update stores the commits of a pass, and forgets targets that are not in it.
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

// remembered limits the past events of each kind that a scope keeps. It is far more than are in
// progress at a time in one account and region.
const remembered = 10_000

// recent is a map that forgets its oldest keys. It keeps at least the last limit keys that were
// added, and at most twice as many, so its size stays bounded in a process that runs for years.
type recent[V any] struct {
	limit             int // remembered if 0
	current, previous map[string]V
}

// set stores a value. If current is full, it becomes previous, and the keys of the old previous are
// forgotten.
func (r *recent[V]) set(key string, v V) {
	limit := r.limit
	if limit == 0 {
		limit = remembered
	}
	if _, there := r.current[key]; !there && len(r.current) >= limit {
		r.current, r.previous = nil, r.current
	}
	if r.current == nil {
		r.current = map[string]V{}
	}
	r.current[key] = v
}

func (r *recent[V]) get(key string) V {
	if v, there := r.current[key]; there {
		return v
	}
	return r.previous[key]
}

// all returns a copy of all entries.
func (r *recent[V]) all() map[string]V {
	out := make(map[string]V, len(r.current)+len(r.previous))
	maps.Copy(out, r.previous)
	maps.Copy(out, r.current)
	return out
}
