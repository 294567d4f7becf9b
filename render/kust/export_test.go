package kust

import (
	"context"

	"github.com/weir-gitops/weir/render/kust/output"
)

// Traced reports whether the marked build of a result succeeds.
func Traced(r *Result) bool { return r.find.all().docs != nil }

// MarkedBuilds says what was built with marks so far: all, and how many batches.
func MarkedBuilds(r *Result) (whole bool, batches int) {
	return r.find.whole != nil, len(r.find.batches)
}

// InBatches runs the build of a result in batches, once more, and says how many there
// are; none where it is built as a whole.
func InBatches(r *Result) (batches int, err error) {
	if r.plan == nil || r.plan.apart.parts == nil {
		return 0, nil
	}
	fork := *r.plan
	fork.view = r.plan.view.fork(context.Background())
	_, err = fork.inBatches(context.Background(), r.plan.apart.parts, nil)
	return len(r.plan.apart.parts.batches), err
}

// AsRead is how many batches of a build were taken as they were read.
func AsRead(r *Result) (n int) {
	if r.plan == nil || r.plan.apart.parts == nil {
		return 0
	}
	parts := r.plan.apart.parts
	run, err := r.plan.batchRun(parts, nil)
	if err != nil {
		return 0
	}
	for _, b := range parts.batches {
		if run.asRead(b) != nil {
			n++
		}
	}
	return n
}

// Raw returns the build before substitution, as "kubectl kustomize" prints it.
func (r *Result) Raw() []byte { return output.YAML(r.find.raw) }
