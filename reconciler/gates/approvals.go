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

// Approve approves the plan with the digest. If the digest covers several plans, ready lists these plans,
// and each gets an approval of its own. A plan that has started keeps its earlier approval: a second one
// would let the same plan run again if it came back. If earlier approvals cover all plans, Approve returns
// one of them.
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

// begun returns the approval under which a plan with the digest has started. If together is true, digest may
// also be a digest of several plans. Approvals of those plans count even if they have not started.
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

// ApproveFrom approves plans for a pull request. plans maps the digest of each plan to its target.
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

// Withdraw removes approvals whose digest starts with digest: unused ones, and ones whose plans have
// started, so that no further step starts. If from names a pull request, Withdraw removes only approvals
// from that pull request.
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

// InForce returns the approvals that can be withdrawn, unused ones first.
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

// approvals returns all approvals on which the grant is based.
func (g Grant) approvals() []Approval { return append([]Approval{g.Approval}, g.Earlier...) }

// Holds reports whether the grant is based on the approval of other, a grant of the same target.
func (g Grant) Holds(other Grant) bool {
	return g.Target == other.Target && slices.ContainsFunc(g.approvals(), func(a Approval) bool {
		return a.Digest == other.Digest && a.Since.Equal(other.Since)
	})
}

// with merges the grant into the stored one if the target still wants the same. What remains of either may
// then run.
func (g Grant) with(have Grant) Grant {
	if have.Rendered == "" || have.Rendered != g.Rendered {
		return g
	}
	join := func(a, b []string) []string { return slices.Compact(slices.Sorted(slices.Values(slices.Concat(a, b)))) }
	g.Works, g.Deletes, g.Earlier = join(g.Works, have.Works), join(g.Deletes, have.Deletes), have.approvals()
	g.Insists = join(g.Insists, have.Insists)
	return g
}

// Text returns the approval as part of a sentence.
func (a Approval) Text() string {
	of := ""
	if a.For != "" {
		of = " of " + a.For
	}
	return fmt.Sprintf("%.12s%s by %s", a.Digest, of, a.By)
}

// is reports whether the approval's digest starts with digest, and whether it came from the pull request, if
// from names one.
func (a Approval) is(digest, from string) bool {
	return (strings.HasPrefix(a.Digest, digest) || a.Of != "" && strings.HasPrefix(a.Of, digest)) && (from == "" || a.From == from)
}

// Split replaces one approval for several plans by approvals of single plans. The targets start one by one,
// and the plans of targets that have started no longer match the approved digest. A plan that has started
// under another approval keeps that one.
func (b *Recorder) Split(a Approval, ready []Grant) error {
	now := b.now()
	return b.db.Update(func(tx *state.Tx) error {
		if _, is, err := approvals.Get(tx, a.Digest); err != nil || !is {
			return err // the approval was withdrawn
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

// Begin turns the approval of a plan whose first step is about to run into a grant. It fails if the approval
// was withdrawn, or if the target was suspended. A suspension always wins, whichever member stored it.
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

// Supersede ends grants whose targets now want something else. If the same plan comes back, it needs a new
// approval.
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

// grantOf returns the grant that an approval gives a target, from a report of the approved plan. The report
// may come from another member. The pass that starts the plan adds the desired state of the target and the
// plan's steps.
func grantOf(a Approval, r *plan.Report) Grant {
	p := plan.GrantOf(r.Plan)
	if a.Digest != p.Digest {
		a.Of, a.Digest = a.Digest, p.Digest
	}
	a.For = r.Target
	return Grant{Approval: a, Target: r.Target, Deletes: names(p.Deletes), shown: r.Plan.Insists()}
}
