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

// Base returns the last composition, for reviews of pull requests and drafts. It returns the same value as long
// as nothing has changed since the last call. The caller of Compose calls it. A source whose renders are not
// finished keeps its earlier state. Base returns nil until every source has been composed.
func (f *Fleet) Base(views map[string]View) *Base {
	next := &Base{fleet: f.forReview(buildsOf(f.renders)), views: maps.Clone(views), revisions: slices.Clone(f.revisions)}
	for source, behind := range f.behind {
		if behind && f.base == nil {
			return nil
		}
		if behind {
			next.keep(f.base, source)
		}
	}
	if f.base == nil || !f.base.unchanged(next) {
		f.base = next
	}
	return f.base
}

// keep puts the earlier state of a source into the base.
func (b *Base) keep(before *Base, source string) {
	b.views[source] = before.views[source]
	f, old := b.fleet, before.fleet
	maps.DeleteFunc(f.followed, func(name string, _ *build) bool { return f.sources[name] == source })
	for name, b := range old.followed {
		if old.sources[name] == source {
			f.followed[name] = b
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

// unchanged reports whether nothing was read or rendered between b and next.
func (b *Base) unchanged(next *Base) bool {
	if !reflect.DeepEqual(b.revisions, next.revisions) || len(b.views) != len(next.views) || len(b.fleet.followed) != len(next.fleet.followed) {
		return false
	}
	for name, v := range next.views {
		if old := b.views[name]; old.Snapshot.Revision != v.Snapshot.Revision || (old.Err == nil) != (v.Err == nil) {
			return false
		}
	}
	for name, r := range next.fleet.followed {
		if old := b.fleet.followed[name]; old == nil || old.result != r.result {
			return false
		}
	}
	return true
}

// buildsOf returns the last builds of targets, by name.
func buildsOf(renders map[string]*rendered) map[string]*build {
	out := make(map[string]*build, len(renders))
	for name, r := range renders {
		out[name] = r.build
	}
	return out
}

// forReview returns a fleet for one composition of a proposal. It shares the builds of the followed commits.
// What these commits changed does not matter for the proposal: only what a build has read decides whether it
// is valid for the proposal's tree.
func (f *Fleet) forReview(followed map[string]*build) *Fleet {
	c := New(f.o)
	c.o.Good, c.o.Written = nil, nil // a proposal does not depend on earlier revisions
	c.budget, c.sources, c.runs.slots = f.budget.forReview(), f.sources, make(chan struct{}, besideReview)
	c.followed = followed
	maps.Copy(c.decrypters, f.decrypters)
	for name, r := range f.rosters {
		kept := *r
		kept.revision, kept.removed = "", nil
		c.rosters[name] = &kept
	}
	return c
}

// View returns the state of a source at that time.
func (b *Base) View(source string) View { return b.views[source] }

// Touched returns the targets whose build the source's commit changed.
func (b *Base) Touched(source string) []string {
	for _, r := range b.revisions {
		if r.Source == source {
			return r.Touched
		}
	}
	return nil
}

// Config returns the configuration of the base.
func (b *Base) Config() *Config { return b.fleet.o.Config }
