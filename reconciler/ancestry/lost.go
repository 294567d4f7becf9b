package ancestry

import (
	"context"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/state"
)

// nameLength is the number of digits to store of a lost commit's name. Descriptions in AWS have seven.
const nameLength = 8

// lost contains, by the repository's id, the names of commits that branches lost by resets, concatenated,
// the newest first. They are stored because a mirror that is cloned again does not have these commits.
var lost = state.Bucket[string]{Name: "lineage-lost"}

func namesIn(text string) (names []string) {
	for name := range slices.Chunk([]byte(text), nameLength) {
		names = append(names, string(name))
	}
	return names
}

// nameLost records the commits that the source's branch lost on its way to revision. from lists the commits
// from which it was reset just now. left lists commits left earlier, for which an earlier process or release
// may not have recorded the losses. nameLost reports whether it succeeded.
func (l *Line) nameLost(from, left []string, revision string) bool {
	latest, earlier := l.losses(from, revision), l.losses(l.unnamed(left), revision)
	if len(latest)+len(earlier) == 0 {
		return true
	}
	err := l.tracker.db.Update(func(tx *state.Tx) error {
		text, _, err := lost.Get(tx, l.id)
		known := namesIn(text)
		is := map[string]bool{}
		var all []string
		for _, name := range slices.Concat(latest, known, earlier) {
			if !is[name] {
				is[name] = true
				all = append(all, name)
			}
		}
		if all = all[:min(mostLost, len(all))]; err != nil || slices.Equal(all, known) {
			return err
		}
		return lost.Put(tx, l.id, strings.Join(all, ""))
	})
	if err != nil {
		l.tracker.log.Error("cannot record the commits that a source lost", "source", l.name, "error", err)
	}
	return err == nil
}

// unnamed returns the commits that are not recorded as lost.
func (l *Line) unnamed(left []string) []string {
	if len(left) == 0 {
		return nil
	}
	known := l.lost()
	return slices.DeleteFunc(slices.Clone(left), func(c string) bool {
		return slices.ContainsFunc(known, func(name string) bool { return alike(name, c) })
	})
}

// losses returns the commits that a branch loses on its way from any of the commits to a revision.
func (l *Line) losses(from []string, revision string) (names []string) {
	for _, c := range from {
		if c == "" || c == revision {
			continue
		}
		all, err := l.git.Lost(context.Background(), c, revision) // this reads only the local mirror
		if err != nil {
			l.tracker.log.Warn("cannot read which commits a source lost; if its mirror is created again, pools that were last written from one of them wait for a person", "source", l.name, "from", c, "to", revision, "error", err)
		}
		for _, name := range all {
			names = append(names, name[:nameLength])
		}
	}
	return names
}

// lost returns the recorded commits that branches of the repository lost.
func (l *Line) lost() []string {
	var text string
	err := l.tracker.db.View(func(tx *state.Tx) (err error) { text, _, err = lost.Get(tx, l.id); return err })
	if err != nil {
		l.tracker.log.Error("cannot read the commits that a source lost", "error", err)
	}
	return namesIn(text)
}
