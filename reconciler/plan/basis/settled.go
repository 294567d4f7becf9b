package basis

import (
	"reflect"
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// Settled is what a pool wanted when it last had converged. The process remembers
// it, and a restart forgets it: what differs then may be a change of Git that nobody
// has applied, so that it is called drift only where the target reports and never
// changes anything.
type Settled struct {
	Pool    *intent.Pool
	Answers observed.Answers
}

// Same reports whether the pool wants what it wanted then, of Git and of AWS's
// answers.
func (s Settled) Same(pool *intent.Pool, answers observed.Answers) bool {
	if s.Pool == nil || s.Pool != pool && !reflect.DeepEqual(s.Pool, pool) {
		return false
	}
	return !slices.ContainsFunc(pool.Lookups(), func(l intent.Lookup) bool {
		// A launch template that the pool brings along is itself what drifts.
		return l.Kind != intent.TemplateByName && l.Kind != intent.TemplateByID && !reflect.DeepEqual(s.Answers[l], answers[l])
	})
}

// settled reports whether the pool wants what it wanted when it last had converged.
func (in Input) settled(pool *intent.Pool) bool {
	then, known := in.Memory.Settled[SettledKey(in.Policy.Target, pool.Key.String())]
	return known && then.Same(pool, in.Answers)
}

// SettledKey is a pool's key in Memory.Settled.
func SettledKey(target, pool string) string { return target + "\x00" + pool }
