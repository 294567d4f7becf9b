// Package refusals is the record of what weir must not try again, and until when. Each entry belongs
// to a target and to an owner of steps in it, which is a pool or a launch configuration:
//
//   - Refused steps: AWS refused them, or weir did not send them because the resource had changed.
//     They wait for a time that depends on the error.
//   - Writes: AWS accepted a change and keeps returning the old value. weir writes it a few times.
//   - Corrections: weir set a field again because somebody else had changed it. After a few of them
//     weir leaves the field alone for some hours.
//   - Rollouts: weir started a rollout, or made a pool, and something undid it. weir repeats it a few
//     times within some hours.
//
// A commit that asks for something else lifts an entry, and so does a person with Retry. The planner
// reads a View. A Stored is the part that the next owner of an account and region needs.
package refusals

import (
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/step"
)

// Key names the subject of an entry.
type Key struct {
	Target string
	// Owner is the pool ("namespace/name") or launch configuration that the steps belong to.
	Owner string
	// What identifies a single change or step of the owner. It is empty for all its steps together.
	What string
}

const separator = "\x00"

// String returns the stored form of a key.
func (k Key) String() string {
	if k.What == "" {
		return k.Target + separator + k.Owner
	}
	return k.Target + separator + k.Owner + separator + k.What
}

func parseKey(s string) Key {
	target, rest, _ := strings.Cut(s, separator)
	owner, what, _ := strings.Cut(rest, separator)
	return Key{target, owner, what}
}

// Record is the record of one account and region. Its zero value is empty and ready for use, also by
// several goroutines. It does not survive the process, except for what the caller stores.
type Record struct {
	mu      sync.Mutex
	refused map[Key]refused
	view    View
	// asked are the pools of requests to try again since the last pass started.
	asked map[string]bool
	// stored is the content of the store, by target. It is nil until Recall.
	stored map[string]Stored
	// unread has the stored entries of the targets that have not appeared since Recall, and the stored
	// writes of those without a render. Whether they want the same is still unknown.
	unread map[string]Stored
}

// View is a copy of the part of a Record that planning depends on.
type View struct {
	// Retry names the pools ("namespace/name") for which somebody asked for another attempt.
	Retry       map[string]bool
	writes      map[Key]written
	corrections map[Key]correction
	rollouts    map[string][]time.Time
}

// View drops expired entries and returns a copy of all others. A pass that starts calls it: requests to try
// again lift the refusals that have been added since, because the steps were sent before.
func (r *Record) View(now time.Time) View {
	r.mu.Lock()
	defer r.mu.Unlock()
	v := &r.view
	maps.DeleteFunc(r.refused, func(key Key, _ refused) bool { return lifted(r.asked, key.Owner) })
	r.asked = nil
	maps.DeleteFunc(v.rollouts, func(_ string, starts []time.Time) bool { return now.Sub(starts[len(starts)-1]) >= RolloutsFor })
	maps.DeleteFunc(v.corrections, func(_ Key, c correction) bool { return now.Sub(c.last) >= CorrectionsFor })
	return View{maps.Clone(v.Retry), maps.Clone(v.writes), maps.Clone(v.corrections), maps.Clone(v.rollouts)}
}

// Retry lifts the entries of pools ("namespace/name") and of all launch configurations. The next plan
// retries failed rollouts of these pools too.
func (r *Record) Retry(pools []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.view.Retry == nil {
		r.view.Retry = map[string]bool{}
	}
	if r.asked == nil {
		r.asked = map[string]bool{}
	}
	for _, pool := range pools {
		r.view.Retry[pool], r.asked[pool] = true, true
	}
	maps.DeleteFunc(r.refused, func(key Key, _ refused) bool { return lifted(r.asked, key.Owner) })
	maps.DeleteFunc(r.view.writes, func(key Key, _ written) bool { return lifted(r.asked, key.Owner) })
	maps.DeleteFunc(r.view.corrections, func(key Key, _ correction) bool { return lifted(r.asked, key.Owner) })
	for target, s := range r.unread {
		s.Refused = slices.DeleteFunc(slices.Clone(s.Refused), func(e StoredRefusal) bool { return lifted(r.asked, parseKey(e.Key).Owner) })
		s.Writes = slices.DeleteFunc(slices.Clone(s.Writes), func(w StoredWrite) bool { return lifted(r.asked, w.Owner) })
		r.unread[target] = s
	}
}

// lifted reports whether requests for pools lift the entries of an owner. Pools share launch
// configurations, so a request for any pool lifts theirs.
func lifted(pools map[string]bool, owner string) bool {
	return pools[owner] || len(pools) > 0 && step.OfLaunchConfig(owner)
}

// Retried deletes the requests to try again that were in the View of a plan, except for pools whose
// steps still wait: without the request the next plan would not have these steps.
func (r *Record) Retried(planned View, waiting map[string]bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for pool := range planned.Retry {
		if !waiting[pool] {
			delete(r.view.Retry, pool)
		}
	}
}

// Forget forgets expired refusals. If the known targets are all targets, it also forgets the entries of
// any other target. While a source cannot be read, some of its targets may be missing.
func (r *Record) Forget(known map[string]bool, all bool, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	gone := func(target string) bool { return all && !known[target] }
	maps.DeleteFunc(r.refused, func(key Key, e refused) bool { return gone(key.Target) || e.over(now) })
	maps.DeleteFunc(r.view.writes, func(key Key, _ written) bool { return gone(key.Target) })
	maps.DeleteFunc(r.view.corrections, func(key Key, _ correction) bool { return gone(key.Target) })
	maps.DeleteFunc(r.unread, func(target string, _ Stored) bool { return gone(target) })
}

// Sizes returns the number of entries of each kind.
func (r *Record) Sizes() map[string]int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return map[string]int{"parked": len(r.refused), "retry": len(r.view.Retry), "rollouts": len(r.view.rollouts), "written": len(r.view.writes)}
}
