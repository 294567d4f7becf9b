package model

import (
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// CodeNotTaken is the diagnostic code for a change that AWS accepts and does not keep.
const CodeNotTaken = "not-taken"

// CodeContested is the diagnostic code for a field that weir and another writer set in turn.
const CodeContested = "correction-contested"

// CodeImmutable is the diagnostic code for a nodegroup that EKS cannot change to match Git.
const CodeImmutable = "nodegroup-immutable"

// If a plan was reviewed, weir applies it with the images that the review showed, even if newer
// ones were published since. It recognizes a reviewed version by its content, with the image as Git
// names it. So it does not matter how a pull request was merged, or whether its forge has reported
// the merge yet.

// ReviewedImage is the image of a version in a reviewed plan.
type ReviewedImage struct {
	Lookup intent.Lookup `json:"lookup"`
	// ID is the image id. It is empty if the version keeps the image that the pool has. Words names
	// the image for people.
	ID    string `json:"id,omitempty"`
	Words string `json:"words,omitempty"`
	// By is the pull request that showed the plan. At is the time of the plan. Outdated reports
	// whether that is too long ago.
	By       string    `json:"-"`
	At       time.Time `json:"-"`
	Outdated bool      `json:"-"`
}

// ImageCheck is the question whether an image is an answer to a lookup.
type ImageCheck struct {
	Lookup intent.Lookup
	ID     string
}

// LastConverged is the desired state of a pool when it last had converged. Only the process
// remembers it. After a restart a difference may be a change in Git that was never applied. weir
// then reports drift only for a target in report mode, which never changes anything.
type LastConverged struct {
	Pool    *intent.Pool
	Answers observed.Answers
}

// Of reports whether Git's desired state of the pool is still the same.
func (s LastConverged) Of(pool *intent.Pool) bool {
	return s.Pool != nil && (s.Pool == pool || reflect.DeepEqual(s.Pool, pool))
}

// Same reports whether the desired state of the pool is still the same, in Git and in AWS's
// answers.
func (s LastConverged) Same(pool *intent.Pool, answers observed.Answers) bool {
	if !s.Of(pool) {
		return false
	}
	for l := range pool.Lookups() {
		// A launch template that the pool brings along can drift itself.
		if l.Kind != intent.TemplateByName && l.Kind != intent.TemplateByID && !reflect.DeepEqual(s.Answers[l], answers[l]) {
			return false
		}
	}
	return true
}

// Placed reports whether the desired state of the pool is still the same, in the same subnets. weir
// compares a target that uses an earlier revision by Placed instead of Same, as it uses no new
// answers of AWS.
func (s LastConverged) Placed(pool *intent.Pool, answers observed.Answers) bool {
	if !s.Of(pool) {
		return false
	}
	l := SubnetsOf(pool)
	return slices.Equal(s.Answers[l].Subnets, answers[l].Subnets)
}

// unchanged reports whether the pool's desired state is the same as when it last had converged.
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

// Drifts reports whether the pool's differences were made outside Git. known reports whether weir
// remembers that the pool had converged.
func (in Input) Drifts(pool *intent.Pool) (drifts, known bool) {
	then, known := in.Memory.Converged[ConvergedKey(in.Policy.Target, pool.Key.String())]
	return known && in.same(then, pool), known
}

// ConvergedKey is a pool's key in Memory.Converged.
func ConvergedKey(target, pool string) string { return target + "\x00" + pool }

// ConvergedKeyBelongsTo reports whether a key of Memory.Converged is that of a pool of the targets.
func ConvergedKeyBelongsTo(key string, targets map[string]bool) bool {
	target, _, _ := strings.Cut(key, "\x00")
	return targets[target]
}
