package gates

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/clock"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/state"
)

// Approve lets plans with the digest run, or the plans that it stands for now, which ready names. A
// plan that has begun and is not done keeps its approval: a second one would let the same plan run
// again, once it comes back. Approve returns an earlier approval if that covers all of it.
func (b *Recorder) Approve(digest, by string, ready ...Grant) (a Approval, err error) {
	now := b.now()
	given := []Approval{{Digest: digest}}
	if len(ready) > 0 {
		given = nil
	}
	for _, g := range ready {
		given = append(given, Approval{Digest: g.Digest, Of: g.Of, For: g.Target, Insists: g.shown})
	}
	err = b.db.Update(func(tx *state.Tx) error {
		if err := b.tidy(tx); err != nil {
			return err
		}
		a = Approval{}
		var earlier Approval
		for _, one := range given {
			one.By, one.Since, one.Until = by, now.Earliest, now.Earliest.Add(approvalFor)
			had, err := begun(tx, one.Digest, len(ready) == 0, now)
			switch {
			case err != nil:
				return err
			case had.Digest != "":
				earlier = had
				continue
			}
			if err := approvals.Put(tx, one.Digest, one); err != nil {
				return err
			}
			a = one
		}
		if a.Digest == "" {
			a = earlier
		}
		a.Digest, a.Of, a.For = digest, "", ""
		return nil
	})
	return a, err
}

// begun finds the approval under which a plan with the digest has begun. The digest of several
// together stands for each of them, those included that have not begun.
func begun(tx *state.Tx, digest string, together bool, now clock.Moment) (a Approval, err error) {
	use := func(had Approval) {
		if allows(now, had.Since, had.Until) {
			a = had
		}
	}
	err = errors.Join(
		grants.ForEach(tx, "", func(_ string, g Grant) error {
			for _, had := range g.approvals() {
				if had.Digest == digest || together && had.Of == digest {
					use(had)
				}
			}
			return nil
		}),
		approvals.ForEach(tx, "", func(_ string, had Approval) error {
			if together && had.Of == digest {
				use(had)
			}
			return nil
		}),
	)
	return a, err
}

// ApproveFrom approves plans for a pull request: the targets by the digests of their plans.
func (b *Recorder) ApproveFrom(from string, plans map[string]string, by string) error {
	now := b.now()
	return b.db.Update(func(tx *state.Tx) error {
		if err := b.tidy(tx); err != nil {
			return err
		}
		for d, target := range plans {
			a := Approval{Digest: d, For: target, By: by, From: from, Since: now.Earliest, Until: now.Earliest.Add(approvalFor)}
			had, err := begun(tx, d, false, now)
			if err == nil && had.Digest == "" {
				err = approvals.Put(tx, d, a)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Withdraw takes approvals back that a digest, or its beginning, stands for: those that are not
// used yet, and those that have begun, so that nothing more of their plans begins. A pull
// request takes back its own only.
func (b *Recorder) Withdraw(digest, from string) (unused []Approval, begun []Grant, err error) {
	err = b.db.Update(func(tx *state.Tx) error {
		unused, begun = nil, nil
		return errors.Join(
			b.tidy(tx),
			approvals.Remove(tx, func(a Approval, err error) bool {
				is := err == nil && a.is(digest, from)
				if is {
					unused = append(unused, a)
				}
				return is
			}),
			grants.Remove(tx, func(g Grant, err error) bool {
				is := err == nil && slices.ContainsFunc(g.approvals(), func(a Approval) bool { return a.is(digest, from) })
				if is {
					begun = append(begun, g)
				}
				return is
			}),
		)
	})
	return unused, begun, err
}

// InForce are the approvals that can be taken back: those not used yet first.
func (r Records) InForce() []Approval {
	out := slices.Clone(r.Approvals)
	for _, g := range r.Grants {
		for _, a := range g.approvals() {
			a.For = g.Target
			out = append(out, a)
		}
	}
	return out
}

// approvals are those by which the grant holds.
func (g Grant) approvals() []Approval { return append([]Approval{g.Approval}, g.Earlier...) }

// Holds reports whether the grant rests on the approval of another grant of the same target.
func (g Grant) Holds(other Grant) bool {
	return g.Target == other.Target && slices.ContainsFunc(g.approvals(), func(a Approval) bool {
		return a.Digest == other.Digest && a.Since.Equal(other.Since)
	})
}

// with is the grant together with the one on record, where that is for what the target
// wants still: what is left of either may run.
func (g Grant) with(have Grant) Grant {
	if have.Rendered == "" || have.Rendered != g.Rendered {
		return g
	}
	join := func(a, b []string) []string { return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b)))) }
	g.Works, g.Deletes, g.Earlier = join(g.Works, have.Works), join(g.Deletes, have.Deletes), have.approvals()
	g.Insists = join(g.Insists, have.Insists)
	return g
}

// Text names it in a sentence.
func (a Approval) Text() string {
	of := ""
	if a.For != "" {
		of = " of " + a.For
	}
	return fmt.Sprintf("%.12s%s by %s", a.Digest, of, a.By)
}

// is reports whether it was given by the digest, and by the pull request where one is named.
func (a Approval) is(digest, from string) bool {
	return (strings.HasPrefix(a.Digest, digest) || a.Of != "" && strings.HasPrefix(a.Of, digest)) && (from == "" || a.From == from)
}

// Split replaces one approval for several plans together by approvals of single plans:
// their targets begin one by one, and the plans of those that have begun no longer
// match the digest that was approved. One that has begun by another approval stays as it is.
func (b *Recorder) Split(a Approval, ready []Grant) error {
	now := b.now()
	return b.db.Update(func(tx *state.Tx) error {
		if _, is, err := approvals.Get(tx, a.Digest); err != nil || !is {
			return err // somebody took it back
		}
		if err := approvals.Delete(tx, a.Digest); err != nil {
			return err
		}
		for _, g := range ready {
			had, err := begun(tx, g.Digest, false, now)
			if err == nil && had.Digest == "" {
				err = approvals.Put(tx, g.Digest, g.Approval)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Begin turns the approval of a plan, whose first step is about to run, into a grant.
// It fails where somebody took the approval back meanwhile, or suspended the target: of both,
// the suspension wins, whichever member stored it.
func (b *Recorder) Begin(g Grant) error {
	now := b.now()
	return b.db.Update(func(tx *state.Tx) error {
		var held *Suspension
		if err := suspensions.ForEach(tx, "", func(_ string, s Suspension) error {
			if (s.Target == "" || s.Target == g.Target && s.Pool == "") && b.suspends(s, now) {
				held = &s
			}
			return nil
		}); err != nil {
			return err
		}
		if held != nil {
			return errors.New(held.Text())
		}
		if _, is, err := approvals.Get(tx, g.Digest); err != nil || !is {
			return cmp.Or(err, ErrWithdrawn)
		}
		have, is, err := grants.Get(tx, g.Target)
		if err != nil {
			return err
		}
		if is && allows(now, have.Since, have.Until) {
			g = g.with(have)
		}
		return errors.Join(grants.Put(tx, g.Target, g), approvals.Delete(tx, g.Digest))
	})
}

// Supersede ends grants whose targets want something else by now. If the same plan comes back, it
// needs a new approval.
func (b *Recorder) Supersede(ended []Grant) error {
	return b.db.Update(func(tx *state.Tx) error {
		var errs []error
		for _, old := range ended {
			g, is, err := grants.Get(tx, old.Target)
			if is && g.Digest == old.Digest && g.Rendered == old.Rendered && g.Seq == old.Seq {
				err = grants.Delete(tx, old.Target)
			}
			errs = append(errs, err)
		}
		return errors.Join(errs...)
	})
}

// grantOf is the grant that an approval gives a target, by a report of the approved plan,
// which may be another member's. The pass in which it begins says what the target wants then,
// and what the plan's steps are.
func grantOf(a Approval, r *plan.Report) Grant {
	p := plan.GrantOf(r.Plan)
	if a.Digest != p.Digest {
		a.Of, a.Digest = a.Digest, p.Digest
	}
	a.For = r.Target
	return Grant{Approval: a, Target: r.Target, Deletes: names(p.Deletes), shown: r.Plan.Insists()}
}
