package ancestry

import (
	"context"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/state"
)

// nameLength is the number of digits to keep of a lost commit's name: descriptions in AWS have
// seven.
const nameLength = 8

// lost are, by the repository's id, commits that branches lost when they were reset, the latest
// first, one name behind the other. A mirror that is made again does not have them, nor does one
// that was made since.
var lost = state.Bucket[string]{Name: "lineage-lost"}

func namesIn(text string) (names []string) {
	for name := range slices.Chunk([]byte(text), nameLength) {
		names = append(names, string(name))
	}
	return names
}

// nameLost writes down which commits the source's branch lost when it came to a revision: from
// one of some commits just now, and from those that were left before, as far as an earlier process
// or release did not do so. It reports whether that worked.
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

// unnamed are those of the commits that are not among the lost ones.
func (l *Line) unnamed(left []string) []string {
	if len(left) == 0 {
		return nil
	}
	known := l.lost()
	return slices.DeleteFunc(slices.Clone(left), func(c string) bool {
		return slices.ContainsFunc(known, func(name string) bool { return alike(name, c) })
	})
}

// losses are the commits that a branch loses on its way from some to a revision.
func (l *Line) losses(from []string, revision string) (names []string) {
	for _, c := range from {
		if c == "" || c == revision {
			continue
		}
		all, err := l.git.Lost(context.Background(), c, revision) // no server is asked
		if err != nil {
			l.tracker.log.Warn("cannot read which commits a source lost; if its mirror is created again, pools that were last written from one of them wait for a person", "source", l.name, "from", c, "to", revision, "error", err)
		}
		for _, name := range all {
			names = append(names, name[:nameLength])
		}
	}
	return names
}

// lost are the commits that branches of the repository lost.
func (l *Line) lost() []string {
	var text string
	err := l.tracker.db.View(func(tx *state.Tx) (err error) { text, _, err = lost.Get(tx, l.id); return err })
	if err != nil {
		l.tracker.log.Error("cannot read the commits that a source lost", "error", err)
	}
	return namesIn(text)
}
