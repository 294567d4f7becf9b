// Package memory keeps what weir read of one account and region between passes, so that an idle
// fleet costs a few pages of answers and not a call for each pool.
//
// # What may be remembered
//
// AWS is the only record of the state: everything here is a copy that a restart loses without harm.
// weir keeps a copy where AWS never changes the original (the versions of a template, updates that
// have ended). It also keeps one, for a limited time and only until weir itself writes, where AWS
// has no batched read and the original does not change (nodegroups, lifecycle hooks, scaling
// activities). Each store documents how long and how much it keeps, and when it forgets what no
// longer exists.
//
// Two stores are about names that AWS does not know (names.go). A thing that weir made a moment ago
// may not be visible everywhere, so "not found" passes by itself. For a thing that weir did not
// make, weir waits only a limited time.
//
// All of it is safe for concurrent use. Maps that are handed out are never changed.
package memory

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// Memory holds what weir remembers of one account and region.
type Memory struct {
	Versions   *Versions
	Hooks      *Hooks
	Nodegroups *Nodegroups
	Clusters   *GoneClusters
	Activities *Activities
	Made       *MadeNames
	Unknown    *UnknownNames
}

// New returns a Memory that knows nothing.
func New(now func() time.Time) *Memory {
	return &Memory{
		Versions:   &Versions{templates: map[string]templateVersions{}},
		Hooks:      &Hooks{known: map[string]groupHooks{}},
		Nodegroups: &Nodegroups{known: map[observed.NodegroupName]nodegroup{}, updates: map[updateOf]observed.NodegroupUpdate{}},
		Clusters:   &GoneClusters{found: map[string]time.Time{}},
		Activities: &Activities{known: map[observed.ActivityQuery]activities{}},
		Made:       &MadeNames{now: now, made: map[string]time.Time{}},
		Unknown:    &UnknownNames{now: now, names: map[string]unknownName{}},
	}
}

// Sizes counts the remembered things that have names.
func (m *Memory) Sizes() map[string]int {
	return map[string]int{
		"nodegroups": len(m.Nodegroups.known), "updates": len(m.Nodegroups.updates), "made": len(m.Made.made), "hooks": len(m.Hooks.known),
		"activities": len(m.Activities.known), "gone": len(m.Clusters.found), "templates": len(m.Versions.templates),
	}
}
