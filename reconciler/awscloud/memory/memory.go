// Package memory keeps facts about one account and region between passes, so that an idle fleet costs a few
// pages instead of a call for each pool.
//
// # What may be remembered
//
// AWS is the only record of the state: everything here is a copy that a restart may lose. weir keeps a copy
// if AWS never changes the original (the versions of a template, ended updates). It also keeps one, for a
// limited time and until weir itself writes, if AWS has no batched read and the original rarely changes
// (nodegroups, lifecycle hooks, scaling activities). Each store documents its limits, and when it forgets
// resources that no longer exist.
//
// Two stores are about names that AWS does not know (names.go). A new resource of weir may not be visible
// everywhere yet, so "not found" passes by itself. For a resource that weir did not make, weir waits only a
// limited time.
//
// All stores are safe for concurrent use. Returned maps never change.
package memory

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// Memory contains everything that weir remembers about one account and region.
type Memory struct {
	Versions   *Versions
	Hooks      *Hooks
	Nodegroups *Nodegroups
	Clusters   *GoneClusters
	Activities *Activities
	Made       *MadeNames
	Unknown    *UnknownNames
}

// New returns an empty Memory.
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

// Sizes returns the number of entries of each store.
func (m *Memory) Sizes() map[string]int {
	return map[string]int{
		"nodegroups": len(m.Nodegroups.known), "updates": len(m.Nodegroups.updates), "made": len(m.Made.made), "hooks": len(m.Hooks.known),
		"activities": len(m.Activities.known), "gone": len(m.Clusters.found), "templates": len(m.Versions.templates),
	}
}
