package model

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// CodeNotTaken is the diagnostic of a change that AWS takes and does not keep.
const CodeNotTaken = "not-taken"

// CodeContested is the diagnostic of a field that weir and another writer set in turn.
const CodeContested = "correction-contested"

// CodeImmutable is the diagnostic of a nodegroup that EKS cannot change to what Git wants.
const CodeImmutable = "nodegroup-immutable"

// weir applies a reviewed plan with the images that the plan showed, even if newer ones were published
// since. It recognizes a reviewed version by its content, with the image as Git names it. So it does
// not matter how a pull request was merged, or whether its forge has reported the merge yet.

// ReviewedImage is the image of a version in a reviewed plan.
type ReviewedImage struct {
	Lookup intent.Lookup `json:"lookup"`
	// ID is the image's; empty where the version keeps the image that the pool has. Words
	// names it for people.
	ID    string `json:"id,omitempty"`
	Words string `json:"words,omitempty"`
	// By is the pull request that showed the plan, and At the time of the plan. Outdated reports
	// that this is too long ago.
	By       string    `json:"-"`
	At       time.Time `json:"-"`
	Outdated bool      `json:"-"`
}

// ImageCheck asks whether an image is an answer to a lookup.
type ImageCheck struct {
	Lookup intent.Lookup
	ID     string
}

// LastConverged is the pool that Git wanted when it last had converged. The process remembers
// it, and a restart forgets it: what differs then may be a change of Git that was never
// applied, so that it is called drift only where the target reports and never changes
// anything.
type LastConverged struct {
	Pool    *intent.Pool
	Answers observed.Answers
}

// Of reports whether Git wants the same of the pool as it did then.
func (s LastConverged) Of(pool *intent.Pool) bool {
	return s.Pool != nil && (s.Pool == pool || reflect.DeepEqual(s.Pool, pool))
}

// Same reports whether the pool wants the same as then, from Git and from AWS's answers.
func (s LastConverged) Same(pool *intent.Pool, answers observed.Answers) bool {
	if !s.Of(pool) {
		return false
	}
	for l := range pool.Lookups() {
		// A launch template that the pool brings along is itself what drifts.
		if l.Kind != intent.TemplateByName && l.Kind != intent.TemplateByID && !reflect.DeepEqual(s.Answers[l], answers[l]) {
			return false
		}
	}
	return true
}

// Placed reports whether the pool is wanted as it was then, in the same subnets. A target that uses
// an earlier revision is compared by Placed instead of Same, as it uses no new answers of AWS.
func (s LastConverged) Placed(pool *intent.Pool, answers observed.Answers) bool {
	if !s.Of(pool) {
		return false
	}
	l := SubnetsOf(pool)
	return slices.Equal(s.Answers[l].Subnets, answers[l].Subnets)
}

// unchanged reports whether the pool wants the same as when it last had converged.
func (in Input) unchanged(pool *intent.Pool) bool {
	then, known := in.Memory.Converged[ConvergedKey(in.Policy.Target, pool.Key.String())]
	return known && in.same(then, pool)
}

func (in Input) same(then LastConverged, pool *intent.Pool) bool {
	if in.Earlier(pool.Key.String()) != nil {
		return then.Placed(pool, in.Answers)
	}
	return then.Same(pool, in.Answers)
}

// Drifts reports whether the pool's differences were made outside Git. known reports whether the pool
// is known to have converged before.
func (in Input) Drifts(pool *intent.Pool) (drifts, known bool) {
	then, known := in.Memory.Converged[ConvergedKey(in.Policy.Target, pool.Key.String())]
	return known && in.same(then, pool), known
}

// ConvergedKey is a pool's key in Memory.Converged.
func ConvergedKey(target, pool string) string { return target + "\x00" + pool }

// ConvergedKeyOf reports whether a key of Memory.Converged is that of a pool of the targets.
func ConvergedKeyOf(key string, targets map[string]bool) bool {
	target, _, _ := strings.Cut(key, "\x00")
	return targets[target]
}
