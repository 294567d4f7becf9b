package memory

import (
	"hash/fnv"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// updatesKept bounds the number of remembered ended updates.
const updatesKept = 1000

// Nodegroups remembers the last description of nodegroups, and their ended updates. EKS cannot describe
// several nodegroups with one call, so an idle nodegroup is described only once in a while.
type Nodegroups struct {
	mu      sync.Mutex
	known   map[observed.NodegroupName]nodegroup
	updates map[updateOf]observed.NodegroupUpdate
}

type nodegroup struct {
	observed.Nodegroup
	// groups has the state of the groups behind it at that time, by name.
	groups map[string]groupMark
	// at is the time of its description. since is the time since which it has had its status.
	at, since time.Time
}

// updateOf is a nodegroup's update by its id.
type updateOf struct {
	observed.NodegroupName
	id string
}

// groupMark contains the parts of a group whose change indicates a change of its nodegroup.
type groupMark struct {
	minSize, maxSize, desired int32
	instances                 int
	template                  observed.TemplateRef
}

func mark(g observed.Group) groupMark {
	return groupMark{minSize: g.MinSize, maxSize: g.MaxSize, desired: g.DesiredCapacity, instances: len(g.Instances), template: g.Template}
}

// Due is a nodegroup whose turn it is to be described again.
type Due struct {
	Name observed.NodegroupName
	// Since orders them, the oldest first: it is the time of the description, plus a round for an idle
	// nodegroup, because changing nodegroups come first.
	Since time.Time
}

// Recall puts the remembered descriptions of the listed nodegroups into s. It returns the unknown nodegroups,
// which the caller must describe, and the due ones, oldest first. If q.Round is zero, each pass describes all
// nodegroups, so all count as unknown. Recall forgets nodegroups that are not listed, except in clusters that
// AWS does not let weir read.
func (m *Nodegroups) Recall(q observed.Query, listed []observed.NodegroupName, s *observed.State, now time.Time) (unknown []observed.NodegroupName, due []Due) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := make(map[observed.NodegroupName]bool, len(listed))
	for _, name := range listed {
		kept[name] = true
		known, ok := m.known[name]
		if !ok || q.Round == 0 {
			unknown = append(unknown, name)
			continue
		}
		known.DescribedAtPass = false
		s.Nodegroups[name] = known.Nodegroup
		if known.due(q, s, now) {
			since := known.at
			if known.Status == "ACTIVE" {
				since = since.Add(q.Round)
			}
			due = append(due, Due{name, since})
		}
	}
	gone := func(n observed.NodegroupName) bool { return !kept[n] && s.Unread.Clusters[n.Cluster] == nil }
	maps.DeleteFunc(m.known, func(n observed.NodegroupName, _ nodegroup) bool { return gone(n) })
	maps.DeleteFunc(m.updates, func(u updateOf, _ observed.NodegroupUpdate) bool { return gone(u.NodegroupName) })
	slices.SortFunc(due, func(a, b Due) int { return a.Since.Compare(b.Since) })
	return unknown, due
}

// due decides whether a known nodegroup must be described again. A nodegroup that is not ACTIVE is described
// at growing intervals: as long as it had had its status at the last description, but at most AskEvery. An
// ACTIVE one is described once per Round, and as soon as one of its groups has changed.
func (r nodegroup) due(q observed.Query, s *observed.State, now time.Time) bool {
	if r.Status != "ACTIVE" {
		every := q.AskEvery
		if every == 0 {
			every = observed.DefaultAskEvery
		}
		return now.Sub(r.at) >= min(every, r.at.Sub(r.since))
	}
	if now.Sub(r.at) > sinceTurn(r.NodegroupName, q.Round, now) {
		return true
	}
	for _, name := range r.GroupNames {
		g, found := s.Groups[name]
		seen, marked := r.groups[name]
		if found != marked || (found && mark(g) != seen) {
			return true
		}
	}
	return false
}

// sinceTurn returns the time since a nodegroup's last turn. Each nodegroup has its own moment of a round, so
// the calls are evenly spread over a round, however many passes it contains.
func sinceTurn(n observed.NodegroupName, round time.Duration, now time.Time) time.Duration {
	h := fnv.New64a()
	// A hash's Write returns no error.
	_, _ = h.Write([]byte(n.String()))
	moment := time.Duration(h.Sum64() % uint64(round)) //nolint:gosec // less than round, which is positive
	return now.Sub(now.Add(-moment).Truncate(round).Add(moment))
}

// Put remembers a nodegroup that was just described.
func (m *Nodegroups) Put(n observed.Nodegroup, groups map[string]observed.Group, now time.Time) {
	r := nodegroup{Nodegroup: n, groups: map[string]groupMark{}, at: now, since: now}
	for _, name := range n.GroupNames {
		if g, ok := groups[name]; ok {
			r.groups[name] = mark(g)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if before, known := m.known[n.NodegroupName]; known && before.Status == n.Status {
		r.since = before.since
	}
	m.known[n.NodegroupName] = r
}

// Forget forgets a changed nodegroup, so that it is described again.
func (m *Nodegroups) Forget(name observed.NodegroupName) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.known, name)
}

// Update returns an ended update, which no longer changes.
func (m *Nodegroups) Update(name observed.NodegroupName, id string) (u observed.NodegroupUpdate, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	u, ok = m.updates[updateOf{name, id}]
	return u, ok
}

// PutUpdate remembers an update if it has ended.
func (m *Nodegroups) PutUpdate(name observed.NodegroupName, u observed.NodegroupUpdate) {
	if u.Status == "InProgress" || u.Status == "" {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.updates) >= updatesKept {
		clear(m.updates)
	}
	m.updates[updateOf{name, u.ID}] = u
}
