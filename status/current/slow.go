package current

import (
	"github.com/weir-gitops/weir/status/wording"
)

// Stale reports whether the last pass could not read the pools.
func (t *TargetState) Stale() bool {
	return t.Last != nil && t.Last.Plan == nil && len(t.Last.Pools) == 0 && len(t.Pools) > 0
}

// SlowWords describes a render or a request to AWS that delays the next report of a target.
func SlowWords(t *TargetState) (out []string) {
	const clock = "15:04:05 MST"
	if r := t.Rendering; !r.Since.IsZero() {
		out = append(out, "commit "+wording.Short(r.Revision)+" has been rendering since "+r.Since.UTC().Format(clock))
	}
	if !t.Unanswered.IsZero() {
		out = append(out, "AWS has not answered since "+t.Unanswered.UTC().Format(clock))
	}
	return out
}
