package reconciler

import (
	"context"
	"fmt"
	"maps"
	"time"

	"github.com/weir-gitops/weir/reconciler/look"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
)

// Before a step ends or changes a resource, weir checks again that it is still as the pass observed
// it, where that matters. A weir that runs alone does so before it ends resources or machines. If
// other weirs may own the scope next (Shared), each attempt of a call without a condition of its
// own follows a read by at most look.Within: the owner after a stopped weir may have changed all of
// it.

const (
	// seenMoments is the age up to which a pass's observation may be used to replace or end
	// machines. Rate limits may delay a step for far longer.
	seenMoments = 5 * time.Second
	// sharedMoments is the age up to which a read may be used in a shared scope, before the fence
	// is asked.
	sharedMoments = look.Within - look.AtOnce
	// lookTimes bounds the reads if AWS takes as long to answer.
	lookTimes = 3
)

// sinceLook returns the time since the pass began to read.
func (s *Scope) sinceLook() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now().Sub(s.queried)
}

// looks holds the reads on which the steps of one pass rely. Scope.mu guards it.
type looks struct {
	state *observed.State
	// owner is the instance whose resources the pass changes.
	owner string
	// at holds the times of reads after the pass began, by the resource's name.
	at map[string]time.Time
	// tagged are the tags that steps of this pass wrote.
	tagged map[string]tagged
	// claimed holds the resources whose tags name the commit since a step of this pass.
	claimed map[string]bool
}

type tagged struct {
	put    map[string]string
	remove []string
}

func subjectOf(seen *step.Seen) string {
	return string(seen.Resource) + "/" + seen.Cluster + "/" + seen.Name + "/" + seen.ID
}

// begin forgets the pass before.
func (l *looks) begin(state *observed.State, targets []Desired) {
	*l = looks{state: state, at: map[string]time.Time{}, tagged: map[string]tagged{}, claimed: map[string]bool{}}
	for _, t := range targets {
		l.owner = t.Policy.Instance
	}
}

// of returns what an action relies on. It is nil if AWS itself prevents the action on something
// else: by names that must be free, and by tokens.
func (l *looks) of(a step.About) *step.Seen {
	if l.state == nil || a.Makes != "" {
		return nil
	}
	var seen *step.Seen
	if g, ok := l.state.Groups[a.Group]; ok {
		seen = step.SeenGroup(g)
	} else if n, ok := l.state.Nodegroups[a.Nodegroup]; ok {
		seen = step.SeenNodegroup(n)
	} else if t, ok := l.state.Templates[a.Template.Name]; ok {
		seen = step.SeenTemplate(t)
	} else {
		return a.Made(l.owner)
	}
	wrote := l.tagged[subjectOf(seen)]
	return seen.ToRoll(wrote.put, wrote.remove)
}

// wrote notes tags that a step has written.
func (l *looks) wrote(a step.About) {
	if len(a.Put)+len(a.Remove) == 0 {
		return
	}
	if seen := l.of(a); seen != nil {
		key := subjectOf(seen)
		before := l.tagged[key]
		put := maps.Clone(before.put)
		for _, k := range a.Remove {
			delete(put, k)
		}
		if put == nil {
			put = map[string]string{}
		}
		maps.Copy(put, a.Put)
		l.tagged[key] = tagged{put, append(before.remove[:len(before.remove):len(before.remove)], a.Remove...)}
	}
}

// lookAgain returns the check that runs before each attempt of a step's calls in a shared scope.
func (s *Scope) lookAgain(st step.Step, do step.Action) func(context.Context) error {
	s.mu.Lock()
	seen, state := st.Seen, s.looks.state
	if seen == nil {
		seen = s.looks.of(do.About())
	}
	s.mu.Unlock()
	if seen == nil {
		return nil
	}
	key, looked := subjectOf(seen), false
	return func(ctx context.Context) error {
		s.mu.Lock()
		last := s.queried
		if !seen.Moments && !looked {
			last = time.Time{} // an end is looked at each time
		}
		if at := s.looks.at[key]; at.After(last) && (seen.Moments || looked) {
			last = at
		}
		s.mu.Unlock()
		if s.now().Sub(last) < sharedMoments {
			return nil
		}
		for range lookTimes {
			began := s.now()
			if err := s.Cloud.Confirm(ctx, *seen); err != nil {
				return err
			}
			if err := s.confirmRefresh(ctx, do, state.Refreshes); err != nil {
				return err
			}
			if s.now().Sub(began) >= sharedMoments {
				continue // it may be another by now
			}
			s.mu.Lock()
			defer s.mu.Unlock()
			looked, s.looks.at[key] = true, began
			return nil
		}
		return &observed.Error{
			Kind: observed.Busy, Code: observed.CodeChanged,
			Message: fmt.Sprintf("AWS takes longer than %s to say whether the %s %s is as the pass observed it, and another weir may own it by then; it is left alone", sharedMoments, seen.Resource, seen.Name),
		}
	}
}
