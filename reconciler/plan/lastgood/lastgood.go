// Package lastgood decides to which earlier revision a target is held if nothing of the followed
// commit can be applied. It is pure: the caller reads Git, AWS and the record.
//
//	record, parents ──Order──▶ revisions ──(render, plan)──▶ Candidate ──Judge──▶ Verdict
//
// If a revision does not fit, weir tries the next one. It checks an undecided revision again,
// because AWS may answer later. If no revision fits, weir only observes the target.
package lastgood

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// MaxParents is the number of commits before the followed one that weir tries at most.
const MaxParents = 100

// Mark is a revision of a target, with hashes of its desired state.
type Mark struct {
	Revision string `json:"revision"`
	// Wants identifies the intents. Network identifies their placement according to AWS.
	Wants   string `json:"wants"`
	Network string `json:"network,omitempty"`
}

// Record contains two commits of a target that could be rendered: the commit at which weir last
// started to apply something new, and the last commit at which everything had converged.
type Record struct {
	Begun   Mark `json:"begun"`
	Reached Mark `json:"reached,omitzero"`
	// Cancelled contains the last instance refresh that weir cancelled of each group.
	Cancelled map[string]string `json:"cancelled,omitempty"`
}

// mostCancelled limits Cancelled. That many entries take about 200 kB.
const mostCancelled = 2000

// Same reports whether two records are equal.
func (r Record) Same(o Record) bool {
	return r.Begun == o.Begun && r.Reached == o.Reached && maps.Equal(r.Cancelled, o.Cancelled)
}

// Cancel returns the record after weir decides to cancel refreshes, which are by group. It removes
// groups that no longer exist, as AWS forgets their refreshes too.
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

// Begin returns the record after weir starts to apply m. A revision with the same desired state
// changes nothing, so commits elsewhere in the repository cost no write. A revision with another
// desired state clears the converged network: from then on a difference may be weir's own work.
func (r Record) Begin(m Mark) Record {
	if r.Begun.Wants != m.Wants {
		r.Begun, r.Reached.Network = m, ""
	}
	return r
}

// Reach returns the record after the target has converged at m.
func (r Record) Reach(m Mark) Record {
	r = r.Begin(m)
	if r.Reached.Wants != m.Wants || r.Reached.Network != m.Network {
		r.Reached = m
	}
	return r
}

// ConvergedNetwork identifies the target's network, as AWS reported it, when it had converged with
// this desired state. It is empty if that is unknown or weir has started another desired state
// since.
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

// Order lists the revisions to try, each once: first the two of the record, then the parents.
func (r Record) Order(head string, parents []string) []string {
	var out []string
	for _, revision := range append([]string{r.Begun.Revision, r.Reached.Revision}, parents[:min(MaxParents, len(parents))]...) {
		if revision != "" && revision != head && !slices.Contains(out, revision) {
			out = append(out, revision)
		}
	}
	return out
}

// Candidate is a revision, compared with the target's resources in AWS.
type Candidate struct {
	// Recorded reports whether weir applied the revision itself. Resources of other pools then
	// existed at that time too.
	Recorded bool
	Pools    []Pool
	// Unwanted lists pools that have resources in AWS and are not in the revision.
	Unwanted []string
}

// Pool is a pool of a candidate.
type Pool struct {
	Key string
	// Exists reports whether AWS has resources of the pool. Recorded reports whether these match
	// the candidate: a version of its launch template that is newest or in use has the hash of the
	// desired configuration. If EKS alone decides about the machines, no other nodegroup must be
	// wanted.
	Exists, Recorded bool
	// Unclear explains why Recorded is unknown now.
	Unclear string
	// Hash identifies the pool's launch configuration. Bad lists the hashes that were marked as bad
	// for the pool.
	Hash string
	Bad  []string
}

// Answer is the decision whether a target is held to a candidate.
type Answer string

// Answers.
const (
	// Fits: the target is held to the candidate.
	Fits Answer = "fits"
	// Differs: weir tries another revision.
	Differs Answer = "differs"
	// Unclear: weir checks the revision again later.
	Unclear Answer = "unclear"
	// Nothing: AWS has nothing of the target, so there is nothing to hold.
	Nothing Answer = "nothing"
)

// Verdict is the answer about a candidate. Why gives the reason for an answer other than Fits.
type Verdict struct {
	Answer Answer `json:"answer"`
	Why    string `json:"why,omitempty"`
}

// Judge decides whether a target is held to the candidate. A difference takes precedence over an
// unclear pool, as no later answer changes it.
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
