package model

import (
	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// Fallback is an earlier revision of a target that weir uses while the followed one cannot be
// rendered. weir corrects drift from it and does nothing else: it creates, replaces, deletes and rolls
// out nothing, and uses no new answer of AWS.
type Fallback struct {
	Revision string
	// Why says what is wrong with the followed commit, for people.
	Why string
	// Recorded says that weir itself applied the revision. Settled identifies the network of the
	// target when it had converged with exactly the revision's desired state, empty if unknown.
	Recorded bool
	Settled  string
	// Reached says that the target had converged with exactly the revision's desired state. It
	// stands for Settled where a part of the target is held.
	Reached bool
	// None says why no revision is left to try, where Revision is empty.
	None string
	// Bad are the marks of pools ("namespace/name"), Unread why they could not be read.
	Bad    map[string][]string
	Unread string
}

// NetworkOf identifies the placement of a set's pools in the answers.
func NetworkOf(set *intent.Set, answers observed.Answers) string {
	var parts [][]byte
	for i := range set.Pools {
		p := &set.Pools[i]
		parts = append(parts, []byte(p.Key.String()), content.Canonical(answers[SubnetsOf(p)].Subnets))
	}
	return content.ShortHash(parts...)
}
