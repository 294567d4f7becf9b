// Package gates decides what holds the steps of a plan, and what lets them run.
//
// Planning does not depend on holds. Gates decide which of a plan's steps run now. They come from four
// sources, and the strictest wins:
//
//	record    requests of people: suspensions, approvals, overrides of windows
//	windows   when disruptive steps may run (package calendar)
//	waves     targets that must have converged before
//	loss      an unreadable record: it may have been a suspension, so it holds everything
//
// Every request of a person expires by AWS's clock. A suspension lasts until that clock is certainly past
// its end. A permission ends as soon as the clock may be past its end.
//
// An approval is for one digest. Before the first step runs, it is stored as a grant and is then used up.
// The grant is valid as long as the target wants the same, so neither a crash nor a newer commit makes weir
// run anything that nobody reviewed.
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

// The lifetimes of requests.
const (
	approvalFor = 7 * 24 * time.Hour
	overrideFor = time.Hour
	// LongestSuspension bounds a suspension, so that a forgotten one ends.
	LongestSuspension = 90 * 24 * time.Hour
)

// Suspension stops all writes to a target, to one of its pools, or to all targets.
type Suspension struct {
	// Target is empty for all targets, including future ones.
	Target string `json:"target"`
	// Pool is namespace/name. It is empty for the whole target.
	Pool   string    `json:"pool,omitempty"`
	Reason string    `json:"reason"`
	By     string    `json:"by"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
	// Unsure is the requested duration until AWS has given the time of the request, and zero afterwards. A
	// machine that slept does not know the time, and its clock would end the suspension early.
	Unsure time.Duration `json:"unsure,omitempty"`
}

// Text returns who suspended the target, until when, and why.
func (s Suspension) Text() string {
	return fmt.Sprintf("suspended by %s until %s: %s", s.By, s.Until.UTC().Format("2 Jan 2006 15:04 MST"), s.Reason)
}

// Approval lets the plans with a digest run if they wait for a review.
type Approval struct {
	Digest string `json:"digest"`
	// Of is the approved digest if that covered several plans together.
	Of string `json:"of,omitempty"`
	// For is the target of the plan at the time of the approval, if known.
	For string `json:"for,omitempty"`
	// From is the pull request with the approving comment, as SOURCE#NUMBER.
	From  string    `json:"from,omitempty"`
	By    string    `json:"by"`
	Since time.Time `json:"since"`
	Until time.Time `json:"until"`
	// Insists lists the preflight holds that the plan showed at the approval, by their names in package
	// plan. It is empty if no plan was available at the approval.
	Insists []string `json:"insists,omitempty"`
}

// Override opens a target's windows until it has converged.
type Override struct {
	Target string    `json:"target"`
	By     string    `json:"by"`
	Since  time.Time `json:"since"`
	Until  time.Time `json:"until"`
}

// ErrWithdrawn reports that an approval is no longer stored.
var ErrWithdrawn = errors.New("the approval was withdrawn")

// Grant is an approval in use. weir stores it just before the first step of the approved plan. It lets the
// remaining and resulting steps run until the target has converged.
type Grant struct {
	Approval
	Target string `json:"target"`
	// Revision is the commit at which the plan started, for display. Rendered is Conditions.Rendered at that
	// time. The grant is valid for no other desired state.
	Revision string `json:"revision"`
	Rendered string `json:"rendered"`
	// Seq is Conditions.Seq at that time. A process with an earlier commit does not end the grant.
	Seq int64 `json:"seq,omitempty"`
	// Works and Deletes list the approved work and deletions, by their names in package plan.
	Works   []string `json:"works"`
	Deletes []string `json:"deletes,omitempty"`
	// shown lists the plan's preflight holds, for a new approval.
	shown []string
	// Earlier lists other approvals that had started for the same desired state. Works and Deletes include
	// theirs.
	Earlier []Approval `json:"earlier,omitempty"`
}

var (
	suspensions = state.Bucket[Suspension]{Name: "suspensions"}
	approvals   = state.Bucket[Approval]{Name: "approvals"}
	overrides   = state.Bucket[Override]{Name: "overrides"}
	grants      = state.Bucket[Grant]{Name: "grants"}
)

// Recorder stores suspensions, approvals, overrides and grants.
type Recorder struct {
	db  state.Store
	now func() clock.Moment

	mu sync.Mutex
	// asked holds the times when this process received requests for unsure suspensions.
	asked map[string]asking
}

// NewRecorder returns a Recorder that stores its records in db.
func NewRecorder(db state.Store, now func() clock.Moment) *Recorder {
	return &Recorder{db: db, now: now, asked: map[string]asking{}}
}

// Records are the records in force at one moment, sorted.
type Records struct {
	// Lost is set if records may be missing. weir then writes nothing.
	Lost        *state.Loss  `json:"lost,omitempty"`
	Suspensions []Suspension `json:"suspensions"`
	Approvals   []Approval   `json:"approvals"`
	Overrides   []Override   `json:"overrides"`
	Grants      []Grant      `json:"grants"`
}

// Read returns the records in force now. An unreadable record counts as lost, because it may have been a
// suspension.
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

// AcceptLoss makes weir continue with the readable records. It returns the loss, or nil if nothing was lost.
func (b *Recorder) AcceptLoss() (*state.Loss, error) {
	lost := b.Read().Lost
	if lost == nil {
		return nil, nil //nolint:nilnil // documented: nil stands for nothing
	}
	return lost, b.db.Update(func(tx *state.Tx) error {
		return errors.Join(state.AcceptLoss(tx), drop(tx, suspensions), drop(tx, approvals), drop(tx, overrides), drop(tx, grants))
	})
}

// drop removes unreadable values.
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

// allows reports whether a permission is in force. A permission that starts in the future was written with a
// wrong clock, so it would last too long and is not in force.
func allows(now clock.Moment, since, until time.Time) bool {
	return now.Latest.Before(until) && !now.Earliest.Add(early).Before(since)
}

// key returns the key of a suspension. Names contain no zero byte.
func (s Suspension) key() string { return s.Target + "\x00" + s.Pool }

// Suspend stores a suspension for a duration. It replaces an earlier suspension of the same target or pool.
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

// Resume ends the suspension of a target or a pool. With all, it also ends the suspensions of the target's
// pools. Without a target, it ends only the suspension of all targets. It returns the ended suspensions.
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

// Done ends the grant and the override of a target that has converged.
func (b *Recorder) Done(target string) error {
	return b.db.Update(func(tx *state.Tx) error {
		return errors.Join(grants.Delete(tx, target), overrides.Delete(tx, target))
	})
}

// tidy removes expired records. It needs AWS's time, because a wrong clock would remove valid records for
// good.
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
