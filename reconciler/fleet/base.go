package fleet

import (
	"maps"
	"reflect"
	"slices"
)

// Base holds a fleet's composition at one moment, with which a change that is not followed yet is
// compared. It does not change, and several goroutines may review against it.
type Base struct {
	fleet     *Fleet
	views     map[string]View
	revisions []Revision
}

// Base remembers the last composition and returns the same value as long as nothing has changed
// since the last call. The caller of Compose calls it. A source with targets that are behind keeps
// its earlier state. Base returns nil until every source has been composed.
func (f *Fleet) Base(views map[string]View) *Base {
	next := &Base{fleet: f.copied(), views: maps.Clone(views), revisions: slices.Clone(f.revisions)}
	for source, behind := range f.behind {
		if behind && f.base == nil {
			return nil
		}
		if behind {
			next.keep(f.base, source)
		}
	}
	if f.base == nil || !f.base.still(next) {
		f.base = next
	}
	return f.base
}

// keep leaves a source as it was.
func (b *Base) keep(before *Base, source string) {
	b.views[source] = before.views[source]
	f, old := b.fleet, before.fleet
	maps.DeleteFunc(f.renders, func(name string, _ *rendered) bool { return f.sources[name] == source })
	for name, r := range old.renders {
		if old.sources[name] == source {
			f.renders[name] = r
		}
	}
	delete(f.rosters, source)
	if r := old.rosters[source]; r != nil {
		f.rosters[source] = r
	}
	b.revisions = slices.DeleteFunc(b.revisions, func(r Revision) bool { return r.Source == source })
	for _, r := range before.revisions {
		if r.Source == source {
			b.revisions = append(b.revisions, r)
		}
	}
}

// still reports whether nothing was rendered or read again.
func (b *Base) still(next *Base) bool {
	if !reflect.DeepEqual(b.revisions, next.revisions) || len(b.views) != len(next.views) || len(b.fleet.renders) != len(next.fleet.renders) {
		return false
	}
	for name, v := range next.views {
		if old := b.views[name]; old.Snapshot.Revision != v.Snapshot.Revision || (old.Err == nil) != (v.Err == nil) {
			return false
		}
	}
	for name, r := range next.fleet.renders {
		if old := b.fleet.renders[name]; old == nil || old.result != r.result {
			return false
		}
	}
	return true
}

// copied is a fleet that knows what f does, for one composition.
func (f *Fleet) copied() *Fleet {
	c := New(f.o)
	c.o.Good, c.o.Written = nil, nil // a proposal is judged by itself
	c.budget, c.sources, c.runs.slots = f.budget.forReview(), f.sources, make(chan struct{}, besideReview)
	c.renders = make(map[string]*rendered, len(f.renders))
	for name, r := range f.renders {
		// The reads of a render decide whether it is valid for another tree. What touched it before
		// does not matter.
		kept := *r
		kept.revision, kept.touchedBy, kept.allowed, kept.allowedBy = "", "", nil, ""
		c.renders[name] = &kept
	}
	maps.Copy(c.decrypters, f.decrypters)
	for name, r := range f.rosters {
		kept := *r
		kept.revision, kept.removed = "", nil
		c.rosters[name] = &kept
	}
	return c
}

// View is a source as it was.
func (b *Base) View(source string) View { return b.views[source] }

// Touched are the targets whose render the source's commit changed.
func (b *Base) Touched(source string) []string {
	for _, r := range b.revisions {
		if r.Source == source {
			return r.Touched
		}
	}
	return nil
}

// Config is the configuration that the base was composed with.
func (b *Base) Config() *Config { return b.fleet.o.Config }
