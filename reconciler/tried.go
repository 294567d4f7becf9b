package reconciler

import "github.com/weir-gitops/weir/reconciler/refusals"

// recall takes in the earlier owner's failed attempts, in the first pass of a scope.
func (s *Scope) recall(b Batch) {
	if b.Tries == nil || s.refusals.Recalled() {
		return
	}
	stored, err := b.Tries.Recall()
	if err != nil {
		s.logger().Warn("what was tried in vain before cannot be read, and is tried again", "error", err)
		return
	}
	s.refusals.Recall(stored, b.wanted(), s.now())
}

// keepTried keeps the failed attempts if they have changed. If it fails, the next pass tries to
// keep them again.
func (s *Scope) keepTried(b Batch) {
	if b.Tries == nil {
		return
	}
	for target, attempts := range s.refusals.ToStore(b.wanted(), s.now()) {
		if err := b.Tries.Keep(target, attempts); err != nil {
			s.logger().Warn("what was tried in vain cannot be kept for the next owner", "target", target, "error", err)
			continue
		}
		s.refusals.Stored(target, attempts)
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
