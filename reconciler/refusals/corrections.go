package refusals

import (
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// MostCorrections bounds how often, within CorrectionsFor, weir sets a field again that somebody else
// changed after AWS had accepted it. weir then leaves the field alone.
const (
	MostCorrections = 3
	CorrectionsFor  = RolloutsFor
)

// correction is one field that weir has set.
type correction struct {
	// pool identifies the pool that Git wanted then.
	pool string
	// revision is the commit from which weir last wrote the value.
	revision string
	// kept says that AWS has returned the value since weir last wrote it.
	kept bool
	// at lists the times when weir wrote the value again after that, last the latest write.
	at   []time.Time
	last time.Time
}

// corrects reports whether a step sets fields that exist already. Versions, rollouts,
// creations and deletions have limits of their own.
func corrects(s step.Step) bool {
	return s.Verb == step.Update && s.Rollout == "" && s.Makes() == ""
}

func poolID(pool *intent.Pool) string {
	if pool == nil {
		return ""
	}
	return content.ShortHash(content.Canonical(pool))
}

// corrected adds the fields that a step has set.
func (r *Record) corrected(writes []Write, revision string, s step.Step, now time.Time) {
	if !corrects(s) {
		return
	}
	if r.view.corrections == nil {
		r.view.corrections = map[Key]correction{}
	}
	pool := poolID(s.Wanted)
	for _, w := range writes {
		c := r.view.corrections[w.Key]
		if c.pool != pool {
			c = correction{pool: pool}
		}
		if c.kept {
			c.at = append(slices.Clone(c.at), now)
		}
		c.revision, c.kept, c.last = revision, false, now
		r.view.corrections[w.Key] = c
	}
}

// HasCorrections reports whether there are corrections at all.
func (v View) HasCorrections() bool { return len(v.corrections) > 0 }

// WroteAt returns the commit from which weir last wrote a field. known is false if it has not written
// the field recently.
func (v View) WroteAt(key Key) (revision string, known bool) {
	c, known := v.corrections[key]
	return c.revision, known
}

// Contested counts the recent times at which a step set a field again. It is zero if the step may do so
// once more.
func (v View) Contested(s step.Step, w Write, now time.Time) int {
	c, known := v.corrections[w.Key]
	if !known || !corrects(s) || v.Retry[s.Owner()] || c.pool != poolID(s.Wanted) {
		return 0
	}
	n := 0
	for _, at := range c.at {
		if now.Sub(at) < CorrectionsFor {
			n++
		}
	}
	if n < MostCorrections {
		return 0
	}
	return n
}
