package model

import (
	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// Fallback is an earlier revision of a target that weir uses while the followed revision cannot be
// rendered. weir only corrects drift from it: it creates, replaces, deletes and rolls out nothing,
// and uses no new answer of AWS.
type Fallback struct {
	Revision string
	// Why describes the fault of the followed commit, for people.
	Why string
	// Recorded reports whether weir itself applied the revision. Network identifies the network of
	// the target when it had converged with exactly the revision's desired state. It is empty if
	// unknown.
	Recorded bool
	Network  string
	// Reached reports whether the target had converged with exactly the revision's desired
	// state. weir uses it instead of Network if a part of the target is held.
	Reached bool
	// None explains why no revision is left to try, if Revision is empty.
	None string
	// Bad maps pools ("namespace/name") to the hashes that were marked as bad. Unread is the error
	// if they could not be read.
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
