// Package lastgood decides to which revision a target is held while the followed commit leaves
// nothing of it to apply. It is pure: the caller reads Git, AWS and the record.
//
//	record, parents ──Order──▶ revisions ──(render, plan)──▶ Candidate ──Judge──▶ Verdict
//
// A revision that does not fit is given up for the next one. An undecided revision is tried again:
// AWS may answer later. Where none fits, the target is only observed.
package lastgood

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// MaxParents bounds the number of commits before the followed one that are tried.
const MaxParents = 100

// Mark is a revision of a target, with hashes of its desired state.
type Mark struct {
	Revision string `json:"revision"`
	// Wants identifies the intents, Network their placement according to AWS.
	Wants   string `json:"wants"`
	Network string `json:"network,omitempty"`
}

// Record holds what is kept of a target from when its commits could be rendered: the commit at which
// weir last began to apply something, and the commit at which everything had converged.
type Record struct {
	Begun   Mark `json:"begun"`
	Reached Mark `json:"reached,omitzero"`
	// Cancelled are the instance refreshes that weir cancelled, the last one of each group.
	Cancelled map[string]string `json:"cancelled,omitempty"`
}

// mostCancelled bounds a record: that many take some 200 kB.
const mostCancelled = 2000

// Same reports whether two records say the same.
func (r Record) Same(o Record) bool {
	return r.Begun == o.Begun && r.Reached == o.Reached && maps.Equal(r.Cancelled, o.Cancelled)
}

// Cancel is the record once refreshes, by group, are about to be cancelled. Those of groups
// that are not present are forgotten, as AWS forgets them too.
func (r Record) Cancel(refreshes map[string]string, present func(group string) bool) Record {
	all := map[string]string{}
	for _, list := range []map[string]string{refreshes, r.Cancelled} {
		for group, id := range list {
			if _, newer := all[group]; !newer && len(all) < mostCancelled && present(group) {
				all[group] = id
			}
		}
	}
	r.Cancelled = all
	return r
}

// Begin is the record once weir applies m. A revision that wants the same as the one
// before is no news, so that commits elsewhere in the repository cost no write. Another one
// ends that what differs was changed by somebody else: weir itself may have done so.
func (r Record) Begin(m Mark) Record {
	if r.Begun.Wants != m.Wants {
		r.Begun, r.Reached.Network = m, ""
	}
	return r
}

// Reach is the record once the target has converged at m.
func (r Record) Reach(m Mark) Record {
	r = r.Begin(m)
	if r.Reached.Wants != m.Wants || r.Reached.Network != m.Network {
		r.Reached = m
	}
	return r
}

// ConvergedNetwork identifies the target's network, as AWS reported it, when it had converged with these
// desired state. It is empty if that is unknown or something else was begun since.
func (r Record) ConvergedNetwork(wants string) (network string) {
	if r.Reached.Wants != wants {
		return ""
	}
	return r.Reached.Network
}

// Recorded reports whether weir itself applied the revision.
func (r Record) Recorded(revision string) bool {
	return revision != "" && (revision == r.Begun.Revision || revision == r.Reached.Revision)
}

// Order lists the revisions to try, each once: those of the record, then the parents.
func (r Record) Order(head string, parents []string) []string {
	var out []string
	for _, revision := range append([]string{r.Begun.Revision, r.Reached.Revision}, parents[:min(MaxParents, len(parents))]...) {
		if revision != "" && revision != head && !slices.Contains(out, revision) {
			out = append(out, revision)
		}
	}
	return out
}

// Candidate is a revision, compared with what AWS holds of the target.
type Candidate struct {
	// Recorded says that weir applied the revision itself, so that what exists beside its
	// pools did then too.
	Recorded bool
	Pools    []Pool
	// Unwanted lists pools for which AWS holds something and the revision wants nothing.
	Unwanted []string
}

// Pool is a pool of a candidate.
type Pool struct {
	Key string
	// Exists says that AWS holds something of the pool. What it holds is Recorded if a
	// version of its launch template that is the newest or in use has the hash of what the
	// candidate wants; where EKS alone decides, if no other nodegroup is wanted.
	Exists, Recorded bool
	// Unclear explains why that is unknown now.
	Unclear string
	// Hash identifies a configuration for marks as bad. Bad lists the pool's bad hashes.
	Hash string
	Bad  []string
}

// Answer says whether a target is held to a candidate.
type Answer string

// Answers.
const (
	// Fits: the target is held to it.
	Fits Answer = "fits"
	// Differs: weir tries another revision.
	Differs Answer = "differs"
	// Unclear: weir checks the revision again later.
	Unclear Answer = "unclear"
	// Nothing: AWS has nothing of the target, so there is nothing to hold.
	Nothing Answer = "nothing"
)

// Verdict is the answer about a candidate, and for what it is not the first one why.
type Verdict struct {
	Answer Answer `json:"answer"`
	Why    string `json:"why,omitempty"`
}

// Judge says whether a target is held to the candidate. What differs is said before what is
// unclear: no later answer changes it.
func Judge(c Candidate) Verdict {
	exists, unclear := len(c.Unwanted) > 0, ""
	var differs []string
	for _, p := range c.Pools {
		if !p.Exists {
			continue
		}
		exists = true
		switch {
		case p.Hash != "" && slices.Contains(p.Bad, p.Hash):
			differs = append(differs, "what it launches in pool "+p.Key+" was found bad")
		case p.Unclear != "":
			unclear = cmp.Or(unclear, "pool "+p.Key+": "+p.Unclear)
		case !p.Recorded:
			differs = append(differs, "AWS has other machines of pool "+p.Key+" than it wants")
		}
	}
	if !c.Recorded && len(c.Unwanted) > 0 {
		differs = append(differs, "it does not have the pool "+strings.Join(c.Unwanted, ", ")+", which has resources in AWS")
	}
	switch {
	case !exists:
		return Verdict{Nothing, "AWS has nothing of the target"}
	case len(differs) > 0:
		return Verdict{Differs, differs[0]}
	case unclear != "":
		return Verdict{Unclear, unclear}
	}
	return Verdict{Answer: Fits}
}
