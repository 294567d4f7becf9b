package current

import (
	"cmp"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/live"
	"github.com/weir-gitops/weir/status/report"
)

// Target is a configured target.
type Target struct {
	Name    string `json:"name"`
	Source  string `json:"source"`
	Path    string `json:"path"`
	Account string `json:"account"`
	Region  string `json:"region"`
}

// TargetState is a target with the results of its last passes. Reports in it never change.
type TargetState struct {
	Target
	Phase report.Phase
	// Last is the report of the last pass, nil before the first. Applied is the stored part of the report
	// of the last pass that executed a step, nil if there was no such pass. MoreApplied is the number of
	// outcomes that were dropped from it.
	Last        *plan.Report
	Applied     *plan.Report
	MoreApplied int
	// Pools contains the pools of the last pass that could read them, at PoolsAt. A failed render gives no
	// information about the pools in AWS.
	Pools         []plan.PoolStatus
	LaunchConfigs []plan.LaunchConfigStatus
	PoolsAt       time.Time
	// ConvergedSince contains, by namespace/name, the time at which a converged pool was first seen
	// converged.
	ConvergedSince map[string]time.Time
	// HeldSince is the time of the first report that the target is held at an earlier commit, or only
	// observed, as in Last. It is zero if neither is so.
	HeldSince time.Time
	// NextDue is the time of the next pass, zero if unknown.
	NextDue time.Time
	// Rendering is the commit that is still being rendered for the target. Unanswered is the time since
	// which the current pass has been waiting for a response from AWS. Both are usually zero.
	Rendering  Rendering
	Unanswered time.Time
}

// Rendering is a commit that is being rendered, and the time at which that started.
type Rendering struct {
	Revision string    `json:"revision,omitempty"`
	Since    time.Time `json:"since,omitzero"`
}

// Targets contains the configured targets.
type Targets struct {
	redact   report.Redact
	activity *Activity
	pages    *live.Watchers

	mu     sync.RWMutex
	byName map[string]TargetState
	// configured says that Configure was called.
	configured bool
}

// configure replaces the list of targets. A target that stays keeps its state.
func (t *Targets) configure(list []Target) {
	t.mu.Lock()
	defer t.mu.Unlock()
	kept := make(map[string]TargetState, len(list))
	for _, one := range list {
		state, ok := t.byName[one.Name]
		if !ok {
			state.Phase = report.Waiting
		}
		state.Target = one
		kept[one.Name] = state
	}
	t.byName, t.configured = kept, true
}

// Configured reports whether the configuration has been set.
func (t *Targets) Configured() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.configured
}

// Missing lists the conditions that the daemon must still meet to be ready: a configuration, then the first
// pass over every target.
func (t *Targets) Missing() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if !t.configured {
		return []string{"the configuration"}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(t.byName)) {
		if one := t.byName[name]; one.Last == nil {
			text := "the first pass over " + name
			for _, words := range SlowWords(&one) {
				text += " (" + words + ")"
			}
			out = append(out, text)
		}
	}
	return out
}

// SetDue sets the time of a target's next pass. It does nothing for an unknown target.
func (t *Targets) SetDue(target string, at time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if one, ok := t.byName[target]; ok {
		one.NextDue = at
		t.byName[target] = one
		t.pages.Changed(target)
	}
}

// SetRendering sets, by target, the commits that are still being rendered. Targets that are not in the map
// do not wait for a render.
func (t *Targets) SetRendering(of map[string]Rendering) {
	t.edit(func(one *TargetState) bool {
		is := of[one.Name]
		changed := one.Rendering != is
		one.Rendering = is
		return changed
	})
}

// SetUnanswered sets, by target, the times since which passes have been waiting for a response from AWS.
// Targets that are not in the map do not wait.
func (t *Targets) SetUnanswered(since map[string]time.Time) {
	t.edit(func(one *TargetState) bool {
		is := since[one.Name]
		changed := !one.Unanswered.Equal(is)
		one.Unanswered = is
		return changed
	})
}

// edit calls change for every target, and sends the targets for which it returns true to open pages.
func (t *Targets) edit(change func(*TargetState) bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for name, one := range t.byName {
		if change(&one) {
			t.byName[name] = one
			t.pages.Changed(name)
		}
	}
}

// Remove forgets a target.
func (t *Targets) Remove(target string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byName, target)
	t.pages.Changed("")
}

// All returns all targets by name.
func (t *Targets) All() []TargetState {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return slices.SortedFunc(maps.Values(t.byName), func(x, y TargetState) int { return cmp.Compare(x.Name, y.Name) })
}

// Find returns a target, and false if it is unknown.
func (t *Targets) Find(name string) (TargetState, bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	one, ok := t.byName[name]
	return one, ok
}

// Pools returns the pools of all targets, by target, namespace and name.
func (t *Targets) Pools() []plan.PoolStatus {
	out := []plan.PoolStatus{}
	for _, one := range t.All() {
		out = append(out, one.Pools...)
	}
	slices.SortStableFunc(out, func(x, y plan.PoolStatus) int {
		return cmp.Or(cmp.Compare(x.Target, y.Target), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	return out
}

// LaunchConfigs returns the AWSLaunchConfigs of all targets, by target, namespace and name.
func (t *Targets) LaunchConfigs() []plan.LaunchConfigStatus {
	out := []plan.LaunchConfigStatus{}
	for _, one := range t.All() {
		out = append(out, one.LaunchConfigs...)
	}
	slices.SortStableFunc(out, func(x, y plan.LaunchConfigStatus) int {
		return cmp.Or(cmp.Compare(x.Target, y.Target), cmp.Compare(x.Namespace, y.Namespace), cmp.Compare(x.Name, y.Name))
	})
	return out
}
