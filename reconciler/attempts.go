package reconciler

import "github.com/weir-gitops/weir/reconciler/refusals"

// recallAttempts loads the earlier owner's failed attempts in the first pass of a scope. For a
// target that appears later, or has no render yet, a later pass does so.
func recallAttempts(b *Batch, r *refusals.Record, o *Options) {
	switch {
	case b.Attempts == nil:
		return
	case r.Recalled():
		r.RecallNew(b.wanted(), o.now())
		return
	}
	stored, err := b.Attempts.Recall()
	if err != nil {
		o.logger().Warn("cannot read earlier failed attempts; weir repeats them", "error", err)
		return
	}
	r.Recall(stored, b.wanted(), o.now())
}

// storeAttempts stores the failed attempts if they have changed. If that fails, the next pass tries
// again.
func storeAttempts(b *Batch, r *refusals.Record, o *Options) {
	if b.Attempts == nil {
		return
	}
	for target, attempts := range r.ToStore(b.wanted(), b.AllTargets, o.now()) {
		if err := b.Attempts.Keep(target, attempts); err != nil {
			o.logger().Warn("cannot store failed attempts for the next owner", "target", target, "error", err)
			continue
		}
		r.Stored(target, attempts)
	}
}

func (b *Batch) wanted() []refusals.Wanted {
	out := make([]refusals.Wanted, len(b.Targets))
	for i, d := range b.Targets {
		out[i] = refusals.Wanted{Target: d.Policy.Target, Wanted: d.Wanted, Rendered: d.Set != nil}
		if d.Set != nil {
			out[i].Pools = d.Set.Pools
		}
	}
	return out
}
