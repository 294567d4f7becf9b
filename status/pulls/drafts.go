package pulls

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/plan"
)

// besideDrafts is the maximum number of drafts, of all users, that are planned in parallel.
const besideDrafts = 2

var (
	// ErrBusy means that a draft must wait, because its user, or too many users, are planning another
	// draft.
	ErrBusy = errors.New("others are being planned")
	// ErrEarly means that the sources were not read yet, so that a draft has no base.
	ErrEarly = errors.New("the sources were not read yet")
	// ErrRoleless means that no role for plans is configured.
	ErrRoleless = errors.New("there is no role for plans")
)

// Drafts plans changes that users have not pushed yet. It plans them like a pull request from a fork: only
// with roles for plans, and without secrets. It shares the slots of pull requests.
type Drafts struct {
	Accounts fleet.Accounts
	Turns    *Turns
	// Within is the timeout of one plan.
	Within time.Duration

	mu sync.Mutex
	by map[string]bool // the users whose drafts are being planned
}

// Begin admits a user's draft, or returns ErrBusy. A user may plan one draft at a time.
func (d *Drafts) Begin(by string) (end func(), err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.by[by] || len(d.by) >= besideDrafts {
		return nil, ErrBusy
	}
	if d.by == nil {
		d.by = map[string]bool{}
	}
	d.by[by] = true
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.by, by)
	}, nil
}

// Plan plans a draft against the followed commit. If it names unknown targets, the review lists the
// existing ones, and nothing is planned.
func (d *Drafts) Plan(ctx context.Context, base *fleet.Base, p fleet.Proposal) (*fleet.Review, []*plan.Report, error) {
	p.Untrusted, p.Draft = true, true
	return d.Trusted(ctx, base, p)
}

// Trusted plans a change that weir itself would propose. Unlike Plan it uses p.Untrusted and p.Draft
// as they are.
func (d *Drafts) Trusted(ctx context.Context, base *fleet.Base, p fleet.Proposal) (*fleet.Review, []*plan.Report, error) {
	ctx, cancel := context.WithTimeout(ctx, d.Within)
	defer cancel()
	review, err := d.review(ctx, base, p)
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, nil, fmt.Errorf("it was not rendered within %s", d.Within)
	case err != nil:
		return nil, nil, err
	case len(review.Touched) < len(p.Only):
		return review, nil, nil
	case p.Untrusted && len(review.Roleless) > 0:
		return nil, nil, fmt.Errorf("%w of %s", ErrRoleless, strings.Join(review.Roleless, ", "))
	}
	opening, opened := context.WithTimeout(ctx, answering)
	review.Open(opening, d.Accounts)
	opened()
	for i := range review.Batches { // the caller uses the observed state
		review.Batches[i].Inputs = &reconciler.PassInputs{}
	}
	reports := review.Plan(func(b reconciler.Batch) []*plan.Report { return d.Turns.pass(ctx, b) })
	return review, reports, nil
}

// review renders a draft when a slot is free. A draft that needs much memory waits until no other such
// render is running.
func (d *Drafts) review(ctx context.Context, base *fleet.Base, p fleet.Proposal) (review *fleet.Review, err error) {
	p.Light = true
	for {
		_, err = d.Turns.render(ctx, p.Source, false, func(ctx context.Context) error {
			review, err = base.Review(ctx, d.Accounts, p)
			return err
		})
		if !errors.Is(err, fleet.ErrHeavy) || !p.Light {
			return review, err
		}
		if !d.Turns.takeHeavy() {
			return nil, ErrBusy
		}
		defer func() { <-d.Turns.heavy }() // until the render ends
		p.Light = false
	}
}
