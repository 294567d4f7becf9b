package simulate

import (
	"maps"
	"slices"
	"strings"
	"time"
)

// moment is when the branch came to a commit: a force-push may bring it back to one.
type moment struct {
	revision string
	since    time.Time
}

// came is when the branch last came to a commit.
func (w *World) came(revision string) moment {
	for i := len(w.repo.heads) - 1; i >= 0; i-- {
		if h := w.repo.heads[i]; h.revision == revision {
			return moment{revision, h.since}
		}
	}
	return moment{revision: revision}
}

// place is a target at a moment.
type place struct {
	target *target
	moment
}

// deletion is which groups weir has deleted for a commit, and how many it may.
type deletion struct {
	groups map[string]bool
	most   int
}

// deletes: what is deleted is not in a commit that the daemon may act on.
func (w *World) deletes(m *instance, group string) {
	// It is deleted for the first commit that does not want it, of those that may be known.
	i := slices.IndexFunc(m.knows(), func(h head) bool { _, wanted := m.wants(h.tree)[group]; return !wanted && !h.broken })
	if i < 0 {
		w.fail("%s is deleted, and Git wants it", group)
		return
	}
	delete(w.checks.rolls, group)
	if m.released[group] || m.reviewed { // somebody has read that it goes
		delete(m.released, group)
		return
	}
	t, at := w.targetOfGroup(group), moment{m.knows()[i].revision, m.knows()[i].since}
	gone := w.checks.deleted[place{t, at}]
	if gone == nil {
		gone = &deletion{map[string]bool{}, t.most()}
		w.checks.deleted[place{t, at}] = gone
	}
	if gone.groups[group] = true; len(gone.groups) > gone.most {
		w.fail("%d groups are deleted at commit %s: %v; at most %d may be", len(gone.groups), at.revision[:7], slices.Sorted(maps.Keys(gone.groups)), gone.most)
	}
}

// most is how many groups a commit may delete whose first one is being deleted: half of what
// the target has, that one included, and of one more, which weir may have seen a moment ago.
func (t *target) most() int {
	n := 2
	for name, g := range t.of.w.groups() {
		if strings.HasPrefix(name, t.prefix) && value(g.Tags, ownerTag) == t.of.name && g.Status == "" {
			n++
		}
	}
	return n / 2
}
