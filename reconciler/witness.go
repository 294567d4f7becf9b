package reconciler

import (
	"fmt"
	"slices"

	"github.com/weir-gitops/weir/reconciler/observed"
)

// witness reports to Witness whether AWS holds something of the instance, unless nothing would be
// written anyway.
func (b *Batch) witness(state *observed.State) error {
	i := slices.IndexFunc(b.Targets, func(d Desired) bool { return d.Set != nil && !d.Policy.Suspended })
	if b.Witness == nil || i < 0 {
		return nil
	}
	if err := b.Witness(holds(state, b.Targets[i].Policy.Instance)); err != nil {
		return fmt.Errorf("nothing is written: %w", err)
	}
	return nil
}

// holds reports whether anything that was observed is the instance's.
func holds(state *observed.State, instance string) bool {
	for _, t := range state.Templates {
		if t.Tags[observed.TagOwner] == instance {
			return true
		}
	}
	for _, g := range state.Groups {
		if g.Tags[observed.TagOwner].Value == instance {
			return true
		}
	}
	for _, n := range state.Nodegroups {
		if n.Tags[observed.TagOwner] == instance {
			return true
		}
	}
	return false
}
