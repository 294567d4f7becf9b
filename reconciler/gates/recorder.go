// Package gates says what holds the steps of a plan, and what lets them run.
//
// Planning does not depend on holds; gates decide which of a plan's steps run now.
// Gates come from four sources, and the strictest wins:
//
//	record    what people asked for: suspensions, approvals, overrides of windows
//	windows   when steps may run that disrupt (package calendar)
//	waves     targets that must have converged before
//	loss      a record that cannot be read: it may have been a suspension, so it holds all
//
// Everything that a person asks for ends by itself, by AWS's clock: a hold lasts until
// that clock is surely past its end, and a permission ends when the clock may be. An
// approval is for one digest. It becomes a grant, on record before the first step runs,
// and is then used up. The grant holds for as long as the target wants the same, so
// that neither a crash nor a newer commit lets anything run that no person saw.
package gates

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/state"
)

// How long what people ask for holds.
const (
	approvalFor = 7 * 24 * time.Hour
	overrideFor = time.Hour
	// LongestSuspension bounds a suspension, so that a forgotten one ends.
	LongestSuspension = 90 * 24 * time.Hour
)

// Suspension keeps a target, one pool of it, or everything from being written.
type Suspension struct {
	// Target is empty for all targets, those included that there will be.
	Target string `json:"target"`
	// Pool is namespace/name; empty for the whole target.
	Pool   string    `json:"pool,omitempty"`
	Reason string    `json:"reason"`
	By     string    `json:"by"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	// Unsure is the duration, until AWS has said what time it was at the request. A machine that
	// was suspended does not know the time, and its clock would end the suspension early.
	Unsure time.Duration `json:"unsure,omitempty"`
}

// Text names who suspended the target, until when, and why.
func (s Suspension) Text() string {
	return fmt.Sprintf("suspended by %s until %s: %s", s.By, s.Until.UTC().Format("2 Jan 2006 15:04 MST"), s.Reason)
}

// Approval lets the plans with a digest run that wait for a person's look.
type Approval struct {
	Digest string `json:"digest"`
	// Of is the approved digest, if that covered several plans together.
	Of string `json:"of,omitempty"`
	// For is the target whose plan it was at the approval, if known.
	For string `json:"for,omitempty"`
	// From is the pull request whose comment gave it, as SOURCE#NUMBER.
	From  string    `json:"from,omitempty"`
	By    string    `json:"by"`
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Insists are the preflight holds that the plan showed as it was approved, as package plan
	// names them. An approval whose plan was not at hand insists on none.
	Insists []string `json:"insists,omitempty"`
}

// Override opens a target's windows until it has converged.
type Override struct {
	Target string    `json:"target"`
	By     string    `json:"by"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
}

// ErrWithdrawn says that an approval is on record no more.
var ErrWithdrawn = errors.New("the approval was withdrawn")

// Grant is an approval that is used. One on record has begun: it was written right
// before the first step of the plan that was approved, and lets what is left of it and
// what follows from it run until the target has converged.
type Grant struct {
	Approval
	Target string `json:"target"`
	// Revision is the commit at which it began, for people. Rendered stands for what
	// the target wanted then (Conditions): the grant holds for nothing else.
	Revision string `json:"revision"`
	Rendered string `json:"rendered"`
	// Seq is Conditions.Seq at that time: a process with an earlier commit does not end the grant.
	Seq int64 `json:"seq,omitempty"`
	// Works and Deletes say what was approved, as planning knows it.
	Works   []string `json:"works"`
	Deletes []string `json:"deletes,omitempty"`
	// shown are the preflight holds of the plan, for a new approval.
	shown []string
	// Earlier are approvals that had begun for what the target wants still, as this one
	// did: Works and Deletes are those of all of them.
	Earlier []Approval `json:"earlier,omitempty"`
}

var (
	suspensions = state.Bucket[Suspension]{Name: "suspensions"}
	approvals   = state.Bucket[Approval]{Name: "approvals"}
	overrides   = state.Bucket[Override]{Name: "overrides"}
	grants      = state.Bucket[Grant]{Name: "grants"}
)

// Recorder is the record of all of it.
type Recorder struct {
	db  state.Store
	now func() clock.Moment

	mu sync.Mutex
	// asked holds the times when this process received requests for unsure suspensions.
	asked map[string]asking
}

// NewRecorder keeps its record in db.
func NewRecorder(db state.Store, now func() clock.Moment) *Recorder {
	return &Recorder{db: db, now: now, asked: map[string]asking{}}
}

// Records are the records in force at one moment, sorted.
type Records struct {
	// Lost says that something may be missing among the rest: nothing is written
	// while it is set.
	Lost        *state.Loss  `json:"lost,omitempty"`
	Suspensions []Suspension `json:"suspensions"`
	Approvals   []Approval   `json:"approvals"`
	Overrides   []Override   `json:"overrides"`
	Grants      []Grant      `json:"grants"`
}

// Read returns what holds now. A record that cannot be read counts as lost: it may have
// been a suspension.
func (b *Recorder) Read() Records {
	var r Records
	now := b.now()
	var unsure []Suspension
	err := b.db.View(func(tx *state.Tx) (err error) {
		r, unsure = Records{Suspensions: []Suspension{}, Approvals: []Approval{}, Overrides: []Override{}, Grants: []Grant{}}, nil
		r.Lost, err = state.LossOf(tx)
		return errors.Join(
			err,
			suspensions.ForEach(tx, "", func(_ string, s Suspension) error {
				if s.Unsure > 0 && b.dated(&s, now) {
					unsure = append(unsure, s)
				}
				return keep(&r.Suspensions, s, b.suspends(s, now))
			}),
			approvals.ForEach(tx, "", func(_ string, a Approval) error { return keep(&r.Approvals, a, allows(now, a.Since, a.Until)) }),
			overrides.ForEach(tx, "", func(_ string, o Override) error { return keep(&r.Overrides, o, allows(now, o.Since, o.Until)) }),
			grants.ForEach(tx, "", func(_ string, g Grant) error { return keep(&r.Grants, g, allows(now, g.Since, g.Until)) }),
		)
	})
	if err != nil {
		r.Lost = &state.Loss{Why: err.Error()}
	}
	b.keepDates(unsure)
	return r
}

// AcceptLoss makes weir go on with the records that can be read. It returns what was
// lost, nil for nothing.
func (b *Recorder) AcceptLoss() (*state.Loss, error) {
	lost := b.Read().Lost
	if lost == nil {
		return nil, nil //nolint:nilnil // documented: nil stands for nothing
	}
	return lost, b.db.Update(func(tx *state.Tx) error {
		return errors.Join(state.AcceptLoss(tx), drop(tx, suspensions), drop(tx, approvals), drop(tx, overrides), drop(tx, grants))
	})
}

// drop removes the values that cannot be read.
func drop[T any](tx *state.Tx, b state.Bucket[T]) error {
	return b.Remove(tx, func(_ T, err error) bool { return err != nil })
}

func keep[T any](list *[]T, v T, holds bool) error {
	if holds {
		*list = append(*list, v)
	}
	return nil
}

// early is the allowed difference between the clocks that wrote and read a record.
const early = 5 * time.Minute

// allows reports whether a permission is in force still, and already: a wrong clock
// wrote one from the future, and that would last too long.
func allows(now clock.Moment, since, until time.Time) bool {
	return now.Latest.Before(until) && !now.Earliest.Add(early).Before(since)
}

// key of a suspension. Neither name holds a zero byte.
func (s Suspension) key() string { return s.Target + "\x00" + s.Pool }

// Suspend suspends for a time; an earlier suspension of the same is replaced.
func (b *Recorder) Suspend(s Suspension, length time.Duration) (Suspension, error) {
	now := b.now()
	s.Since, s.Until, s.Unsure = now.Latest, now.Latest.Add(length), length
	b.mu.Lock()
	b.asked[s.key()] = asking{s.Since, now.Ticks}
	b.mu.Unlock()
	return s, b.db.Update(func(tx *state.Tx) error {
		if err := b.tidy(tx); err != nil {
			return err
		}
		return suspensions.Put(tx, s.key(), s)
	})
}

// Resume ends the suspension of a target or a pool, and with all those of the
// target's pools too; without a target the one of all targets, and none of their own.
// It returns those that it ended.
func (b *Recorder) Resume(target, pool string, all bool) (ended []Suspension, err error) {
	err = b.db.Update(func(tx *state.Tx) error {
		ended = nil
		if err := b.tidy(tx); err != nil {
			return err
		}
		if err := suspensions.ForEach(tx, "", func(_ string, s Suspension) error {
			if s.Target == target && (all || s.Pool == pool) {
				ended = append(ended, s)
			}
			return nil
		}); err != nil {
			return err
		}
		for _, s := range ended {
			if err := suspensions.Delete(tx, s.key()); err != nil {
				return err
			}
		}
		return nil
	})
	return ended, err
}

// Override opens the windows of a target.
func (b *Recorder) Override(target, by string) (Override, error) {
	o := Override{Target: target, By: by, Since: b.now().Earliest}
	o.Until = o.Since.Add(overrideFor)
	return o, b.db.Update(func(tx *state.Tx) error { return overrides.Put(tx, target, o) })
}

// Done ends what holds until a target has converged.
func (b *Recorder) Done(target string) error {
	return b.db.Update(func(tx *state.Tx) error {
		return errors.Join(grants.Delete(tx, target), overrides.Delete(tx, target))
	})
}

// tidy removes what has ended by AWS's clock: what a wrong one removes is gone.
func (b *Recorder) tidy(tx *state.Tx) error {
	moment := b.now()
	if !moment.Heard {
		return nil
	}
	now := moment.Earliest
	return errors.Join(
		suspensions.Remove(tx, func(s Suspension, err error) bool { return err == nil && !b.suspends(s, moment) }),
		expire(tx, approvals, func(a Approval) time.Time { return a.Until }, now),
		expire(tx, overrides, func(o Override) time.Time { return o.Until }, now),
		expire(tx, grants, func(g Grant) time.Time { return g.Until }, now),
	)
}

func expire[T any](tx *state.Tx, b state.Bucket[T], until func(T) time.Time, now time.Time) error {
	return b.Remove(tx, func(v T, err error) bool { return err == nil && !now.Before(until(v)) })
}

func names(set map[string]bool) []string {
	out := make([]string, 0, len(set))
	for n := range set {
		out = append(out, n)
	}
	slices.SortFunc(out, strings.Compare)
	return out
}

func set(names []string) map[string]bool {
	out := make(map[string]bool, len(names))
	for _, n := range names {
		out[n] = true
	}
	return out
}
