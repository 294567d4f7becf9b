package reconciler

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/precondition"
	"github.com/weir-gitops/weir/reconciler/step"
)

// Before a step ends or changes a resource, weir checks again that the resource is still as the
// pass observed it, if that matters. A weir that runs alone does so before it ends resources or
// machines. If other weirs may own the scope next (Shared), each attempt of a call without a
// condition of its own follows a read that is at most precondition.Within old: after this weir
// stalls, another owner may have changed everything.

const (
	// seenMoments is the maximum age of a pass's observation for replacing or ending machines. Rate
	// limits may delay a step for far longer.
	seenMoments = 5 * time.Second
	// sharedMoments is the maximum age of a read in a shared scope, before the fence check.
	sharedMoments = precondition.Within - precondition.AtOnce
	// confirmTimes limits the reads if AWS answers too slowly.
	confirmTimes = 3
)

// preconditions contains the reads on which the steps of one pass rely.
type preconditions struct {
	// state is the pass's observation, and since is the time of its read. owner is the instance
	// whose resources the pass changes.
	state *observed.State
	since time.Time
	owner string

	mu sync.Mutex
	// at contains the times of reads after the pass began, by the resource's name.
	at map[string]time.Time
	// tagged contains the tags that steps of this pass wrote.
	tagged map[string]tagged
	// claimed is the set of resources whose tags name the commit because of a step of this pass.
	claimed map[string]bool
}

type tagged struct {
	put    map[string]string
	remove []string
}

func newPreconditions(state *observed.State, since time.Time, targets []Desired) *preconditions {
	p := &preconditions{state: state, since: since, at: map[string]time.Time{}, tagged: map[string]tagged{}, claimed: map[string]bool{}}
	for _, t := range targets {
		p.owner = t.Policy.Instance
	}
	return p
}

func subjectOf(seen *step.Seen) string {
	return string(seen.Resource) + "/" + seen.Cluster + "/" + seen.Name + "/" + seen.ID
}

// of returns the facts that must still be true for an action. It is nil if AWS itself prevents a
// wrong action, by names that must be free and by tokens.
func (p *preconditions) of(a step.About) *step.Seen {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen(a)
}

// seen returns the observed facts that an action relies on, with the tags that earlier steps of
// this pass wrote. The caller holds mu. It returns nil for an action that makes a resource.
func (p *preconditions) seen(a step.About) *step.Seen {
	if a.Makes != "" {
		return nil
	}
	var seen *step.Seen
	if g, ok := p.state.Groups[a.Group]; ok {
		seen = step.SeenGroup(g)
	} else if n, ok := p.state.Nodegroups[a.Nodegroup]; ok {
		seen = step.SeenNodegroup(n)
	} else if t, ok := p.state.Templates[a.Template.Name]; ok {
		seen = step.SeenTemplate(t)
	} else {
		return a.Made(p.owner)
	}
	wrote := p.tagged[subjectOf(seen)]
	return seen.ToRoll(wrote.put, wrote.remove)
}

// wrote records tags that a step has written.
func (p *preconditions) wrote(a step.About) {
	if len(a.Put)+len(a.Remove) == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if seen := p.seen(a); seen != nil {
		key := subjectOf(seen)
		before := p.tagged[key]
		put := maps.Clone(before.put)
		for _, k := range a.Remove {
			delete(put, k)
		}
		if put == nil {
			put = map[string]string{}
		}
		maps.Copy(put, a.Put)
		p.tagged[key] = tagged{put, append(before.remove[:len(before.remove):len(before.remove)], a.Remove...)}
	}
}

func claimKey(a step.About) string { return a.Group + "\x00" + a.Nodegroup.String() }

func (p *preconditions) isClaimed(a step.About) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.claimed[claimKey(a)]
}

func (p *preconditions) claim(a step.About) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.claimed[claimKey(a)] = true
}

// confirmedAt returns the time of the last separate read of a subject, zero if there was none.
func (p *preconditions) confirmedAt(subject string) time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.at[subject]
}

func (p *preconditions) confirmed(subject string, at time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at[subject] = at
}

// confirmBefore returns the check that runs before each attempt of a step's calls in a shared scope.
func (a *applier) confirmBefore(st step.Step, do step.Action) func(context.Context) error {
	seen := st.Seen
	if seen == nil {
		seen = a.checks.of(do.About())
	}
	if seen == nil {
		return nil
	}
	subject, confirmed := subjectOf(seen), false
	return func(ctx context.Context) error {
		last := a.checks.since
		if !seen.Moments && !confirmed {
			last = time.Time{} // a resource to end is read before every step
		}
		if at := a.checks.confirmedAt(subject); at.After(last) && (seen.Moments || confirmed) {
			last = at
		}
		if a.now().Sub(last) < sharedMoments {
			return nil
		}
		for range confirmTimes {
			began := a.now()
			if err := a.Cloud.Confirm(ctx, *seen); err != nil {
				return err
			}
			if err := a.confirmRefresh(ctx, do, a.checks.state.Refreshes); err != nil {
				return err
			}
			if a.now().Sub(began) >= sharedMoments {
				continue // the resource may have changed by now
			}
			confirmed = true
			a.checks.confirmed(subject, began)
			return nil
		}
		return &observed.Error{
			Kind: observed.Busy, Code: observed.CodeChanged,
			Message: fmt.Sprintf("AWS takes longer than %s to say whether the %s %s is as the pass observed it, and another weir may own it by then; weir does not change it", sharedMoments, seen.Resource, seen.Name),
		}
	}
}
