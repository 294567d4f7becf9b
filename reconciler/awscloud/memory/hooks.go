package memory

import (
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// HooksFor is the time for which the lifecycle hooks of a group are remembered. AWS cannot read the hooks of
// several groups with one call, so each group with hooks costs a call in that time.
const HooksFor = 10 * time.Minute

// Hooks remembers the lifecycle hooks of groups.
type Hooks struct {
	mu    sync.Mutex
	known map[string]groupHooks // by the group's name
}

type groupHooks struct {
	arn   string // distinguishes a group from a later one of its name
	hooks []intent.LifecycleHook
	at    time.Time
}

// Of returns the remembered hooks of these groups, and forgets all others. due lists the groups whose hooks
// were read too long ago, the oldest first. since is the time of the oldest read.
func (h *Hooks) Of(groups map[string]observed.Group, now time.Time) (out map[string]observed.GroupHooks, due []string, since time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	out = map[string]observed.GroupHooks{}
	for name, k := range h.known {
		g, ok := groups[name]
		_, declares := g.Tags[observed.TagHooks]
		old := now.Sub(k.at) >= HooksFor
		if !ok || g.ARN != k.arn || old && !declares {
			delete(h.known, name)
			continue
		}
		out[name] = observed.GroupHooks{Hooks: k.hooks}
		if old {
			due = append(due, name)
		}
	}
	slices.SortFunc(due, func(a, b string) int { return h.known[a].at.Compare(h.known[b].at) })
	if len(due) > 0 {
		since = h.known[due[0]].at
	}
	return out, due, since
}

// Put remembers the hooks of a group. Its ARN distinguishes it from a later group of its name.
func (h *Hooks) Put(name, arn string, hooks []intent.LifecycleHook, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.known[name] = groupHooks{arn, hooks, now}
}

// Drop forgets the hooks of a group, so that they are read again.
func (h *Hooks) Drop(name string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.known, name)
}
