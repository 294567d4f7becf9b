package basis

import (
	"maps"
	"slices"
	"time"

	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// CodeContested is the diagnostic of a field that weir and another writer set in turn.
const CodeContested = "correction-contested"

// MostCorrections bounds how often weir sets a field again, within CorrectionsFor, that AWS had
// accepted and that somebody else changed. Then weir leaves the field alone.
const (
	MostCorrections = 3
	CorrectionsFor  = rolloutsFor
)

// Correction is the memory of one field that weir has set.
type Correction struct {
	// pool identifies the pool that Git wanted then.
	pool string
	// commit is the commit from which weir last wrote the value.
	commit string
	// kept says that AWS has held the value since weir last wrote it.
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

// Corrected remembers that AWS took a step of a target at a commit.
func (m *Memory) Corrected(target, commit string, s step.Step, now time.Time) {
	if !corrects(s) {
		return
	}
	pool := poolID(s.Wanted)
	for _, w := range WritesOf(s, target) {
		c := m.Corrections[w.Key]
		if c.pool != pool {
			c = Correction{pool: pool}
		}
		if c.kept {
			c.at = append(slices.Clone(c.at), now)
		}
		c.commit, c.kept, c.last = commit, false, now
		if m.Corrections == nil {
			m.Corrections = map[WriteKey]Correction{}
		}
		m.Corrections[w.Key] = c
	}
}

// Kept remembers that AWS holds the value of a key.
func (m *Memory) Kept(key WriteKey) {
	if c, known := m.Corrections[key]; known {
		c.kept = true
		m.Corrections[key] = c
	}
}

// WroteAt is the commit from which weir last wrote a field; known says that it did of late.
func (m Memory) WroteAt(key WriteKey) (commit string, known bool) {
	c, known := m.Corrections[key]
	return c.commit, known
}

// Contested counts how often a step set a field again of late; 0 if it may do so once more.
func (m Memory) Contested(s step.Step, w Write, now time.Time) int {
	c, known := m.Corrections[w.Key]
	if !known || !corrects(s) || m.Retry[s.Owner()] || c.pool != poolID(s.Wanted) {
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

// ForgetCorrections forgets fields that were written too long ago to matter.
func (m *Memory) ForgetCorrections(now time.Time) {
	maps.DeleteFunc(m.Corrections, func(_ WriteKey, c Correction) bool { return now.Sub(c.last) >= CorrectionsFor })
}
