package reconciler

import (
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/intent"
)

// lookupLevels holds the answers to the lookups of the last pass, each with the time of its first
// answer. A map that was handed out never changes.
type lookupLevels map[intent.Lookup]model.Level

// update takes the answers of a pass in place of those of the last one.
func (l *lookupLevels) update(answers []observed.Answers, now time.Time) {
	next := lookupLevels{}
	for _, of := range answers {
		for lookup, a := range of {
			level, ok := plan.LevelOf(lookup, a)
			if !ok {
				continue
			}
			level.Since = now
			if old, known := (*l)[lookup]; known && old.ID == level.ID {
				level.Since = old.Since
			}
			next[lookup] = level
		}
	}
	*l = next
}

// plannedCommits holds, by target, the commit that the last pass that applies has planned. Later
// passes of the same commit take images that were published meanwhile.
type plannedCommits map[string]string

// first reports whether no pass that applies has planned the target's commit yet.
func (p plannedCommits) first(t *Desired) bool { return p[t.Policy.Target] != t.Commit.Revision }

// update takes the commits of a pass, and forgets targets that are not in it.
func (p *plannedCommits) update(reports []*plan.Report) {
	next := plannedCommits{}
	for _, r := range reports {
		next[r.Target] = (*p)[r.Target]
		if r.Plan != nil && !r.Plan.Waits() {
			next[r.Target] = r.Revision
		}
	}
	*p = next
}
