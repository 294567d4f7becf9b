package kust

import "context"

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
