package pulls

import (
	"context"
	"reflect"
	"slices"

	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/status/report"
)

// reviewed contains the shown data of a pull request. The plan of the merge is compared with it.
type reviewed struct {
	// State is the shown state, and Stale the reason why it may be outdated. Head, Base and Digest belong
	// to the plan, and Digests to its targets. Undigested lists the targets that were shown without a
	// digest. Without a plan, Base is empty.
	State      report.PullState  `json:"state,omitempty"`
	Stale      string            `json:"stale,omitempty"`
	Head       string            `json:"head,omitempty"`
	Base       string            `json:"base,omitempty"`
	Digest     string            `json:"digest,omitempty"`
	Digests    map[string]string `json:"digests,omitempty"`
	Undigested []string          `json:"undigested,omitempty"`
	// Held describes the held steps of targets. Prunes lists the pools whose deletion was shown as
	// permitted by the head's trailer.
	Held   map[string]plan.Holding `json:"held,omitempty"`
	Prunes map[string][]string     `json:"prunes,omitempty"`
}

// mostEarlier is the maximum number of stored reviews, in addition to the last one. They are needed if the
// forge reports a merge late: the merge may then be part of the base of a newer plan of its own pull
// request.
const mostEarlier = 4

// recordPlan records the shown plan, for the comparison with the merge. If the previous plan differs, it is
// added to Earlier.
func (k *openPull) recordPlan(p report.Pull) {
	k.Reported = true
	if p.State == report.PullMerged || p.State == report.PullClosed {
		return
	}
	next, last := reviewedOf(p), k.reviewed
	again := last
	again.Base, again.Stale = next.Base, next.Stale
	if last.Base != "" && (last.Base != next.Base || last.Head != next.Head) && !reflect.DeepEqual(again, next) {
		k.Earlier = append(k.Earlier, last)
		k.Earlier = slices.Clone(k.Earlier[max(0, len(k.Earlier)-mostEarlier):])
	}
	k.reviewed = next
}

// reviewedOf returns the parts of a shown plan that are compared with the plan of the merge.
func reviewedOf(p report.Pull) reviewed {
	out := reviewed{State: p.State, Stale: p.Stale, Head: p.HeadSHA, Base: p.BaseSHA, Digest: p.Digest}
	for _, r := range p.Reports {
		if r.Plan != nil {
			held, allowed := r.Plan.Holding(), prunes(r.Plan)
			put(&out.Held, r.Target, held, held.Sum != "")
			put(&out.Prunes, r.Target, allowed, len(allowed) > 0)
		}
		if r.Plan == nil || p.Digests[r.Target] == "" {
			out.Undigested = append(out.Undigested, r.Target)
			continue
		}
		put(&out.Digests, r.Target, p.Digests[r.Target], true)
	}
	return out
}

// put sets m[key] if says is true.
func put[V any](m *map[string]V, key string, v V, says bool) {
	if !says {
		return
	}
	if *m == nil {
		*m = map[string]V{}
	}
	(*m)[key] = v
}

// reviewOf returns the review of a pull request from before its merge commit became part of the plan's
// base, because a later plan shows only the remaining changes. It prefers a plan of the merged head to
// other plans.
func (r *record) reviewOf(ctx context.Context, git Git, merge string) (reviewed, error) {
	var found, planned *reviewed
	for _, shown := range slices.Backward(append(slices.Clone(r.Earlier), r.reviewed)) {
		if shown.Base != "" && merge != "" {
			if in, err := git.Descends(ctx, shown.Base, merge); err != nil {
				return reviewed{}, err
			} else if in {
				continue
			}
		}
		switch {
		case shown.Base != "" && shown.Head == r.Seen:
			return shown, nil
		case shown.Base != "" && planned == nil:
			planned = &shown
		case found == nil:
			found = &shown
		}
	}
	switch {
	case planned != nil:
		return *planned, nil
	case found != nil:
		return *found, nil
	default:
		return reviewed{}, nil
	}
}
