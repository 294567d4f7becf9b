package fleet

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/kust/reads"
	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source/snapshot"
)

// Proposal is a change of a source that is not followed yet.
type Proposal struct {
	Source string
	// Snapshot is the source with the proposal applied.
	Snapshot snapshot.Snapshot
	// Owner distinguishes its secret values from those of other proposals.
	Owner string
	// Secrets receives them; nil means the fleet's own registry.
	Secrets *redact.Registry
	// Untrusted proposals are rendered without any secret.
	Untrusted bool
	// Light ones end with ErrHeavy where what is to be kept of them is more than
	// lightBytes.
	Light bool
	// Drafts are proposed to nobody: their plans have no digest, as none of them is
	// approved.
	Draft bool
	// Only names the targets to plan, whether they are touched or not. None stands for
	// all that are touched.
	Only []string
	// All plans all targets, whether they are touched or not.
	All bool
	// At gives other commits of where the snapshot is from. Nil: of the source.
	At func(ctx context.Context, revision string) (snapshot.Snapshot, error)
	// Head is the commit that the snapshot is on top of, where that is a work tree with
	// what was not committed: a target is of it that reads the same there. It is zero
	// before there is a commit, and nil where the snapshot is one.
	Head *snapshot.Snapshot
}

// ErrHeavy says that a proposal is not light.
var ErrHeavy = errors.New("the proposal is not light")

// lightBytes bounds the memory of a review if many run concurrently: the change of some hundred
// pools.
const lightBytes = 1 << 20

// Review is the effect of a proposal.
type Review struct {
	// Batches are the scopes with touched targets, to be planned and never applied.
	Batches []reconciler.Batch
	// Touched are the targets whose render the proposal changes, Gone those that it
	// takes away, and Targets counts those of the source.
	Touched, Gone []string
	Targets       int
	// Names are all targets of the source, in order.
	Names []string
	// Places holds the places from which they are rendered, in the same order.
	Places []Place
	// Withheld are touched targets that were rendered without their secrets.
	Withheld []string
	// Roleless are touched targets of AWS itself that have no role for plans.
	Roleless []string

	// after are the targets that touched ones come after, and conditions are what the
	// steps of all targets wait for.
	after      map[string][]string
	conditions map[string]gates.Conditions
	// reads holds the lookups of the touched targets' renders. It is nil if they may have another
	// result though nothing was committed.
	reads *reads.Set
	// openable counts the batches, the first ones, whose accounts may be opened, and
	// others are those that the proposal does not touch.
	openable int
	others   []reconciler.Batch
}

// Place is the directory from which a target is rendered, with its options and the conditions of
// its application.
type Place struct {
	Name, Dir string
	Options   render.Options
	Windows   []targetspec.Window
	DependsOn []string
}

// places are those of a source's targets.
func places(items []*item, source string) (out []Place) {
	for _, it := range items {
		if it.target.Source == source && !it.unknown {
			out = append(out, Place{Name: it.name, Dir: it.path, Options: it.options(), Windows: it.target.Windows, DependsOn: it.waitsFor})
		}
	}
	slices.SortFunc(out, func(a, b Place) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Open opens the accounts of the scopes with touched targets, and of no others: what
// is not asked cannot be waited for. Where one cannot be opened, the targets say why.
// They are not those in which plans are applied: what one remembers is of no concern to
// the other.
func (r *Review) Open(ctx context.Context, accounts Accounts) {
	accounts.Attach(ctx, r.Batches[:r.openable], slices.Concat(r.Batches[r.openable:], r.others)...)
}

// Plan plans the touched targets, with scopes in parallel, and returns their reports by name. It
// does not apply the holds of steps, which count only when steps run.
func (r *Review) Plan(pass func(reconciler.Batch) []*plan.Report) (out []*plan.Report) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, b := range r.Batches {
		for i := range b.Targets {
			b.Targets[i].Policy.Gates = model.Gates{}
		}
		wg.Go(func() {
			reports := pass(b)
			mu.Lock()
			defer mu.Unlock()
			for _, report := range reports {
				if slices.Contains(r.Touched, report.Target) {
					out = append(out, report)
				}
			}
		})
	}
	wg.Wait()
	slices.SortFunc(out, func(a, b *plan.Report) int { return strings.Compare(a.Target, b.Target) })
	r.demand(out)
	r.await(out)
	return out
}

// Same reports whether the touched targets would be rendered from t to the same,
// so that their plans change only with AWS.
func (r *Review) Same(t tree.Tree) bool {
	if r.reads == nil {
		return len(r.Touched) == 0
	}
	same, err := r.reads.Same(t)
	return err == nil && same
}

// Planned drops what only planning needs. A review is kept for as long as its
// proposal is open, and so little more than what it read.
func (r *Review) Planned() {
	r.Batches, r.others, r.openable, r.after, r.conditions = nil, nil, 0, nil, nil
}

// Around returns the context of a review's plans: the conditions that targets wait for, and the
// batches that it does not touch. The caller must not change the result.
func (r *Review) Around() (map[string]gates.Conditions, []reconciler.Batch) {
	return r.conditions, r.others
}

// read notes what the renders of the touched targets looked up.
func (r *Review) read(renders map[string]*rendered) {
	var sets []reads.Set
	for _, name := range r.Touched {
		result := renders[name].result
		if result == nil || result.Retry {
			return
		}
		sets = append(sets, result.Reads)
	}
	all := reads.Union(sets...)
	r.reads = &all
}

// Review finds what a proposal changes. It asks AWS nothing but for keys of encrypted
// files, through accounts, and fails only if ctx ends or the proposal cannot be read.
func (b *Base) Review(ctx context.Context, accounts Accounts, p Proposal) (*Review, error) {
	f := b.fleet.copied()
	f.o.Accounts = accounts
	if p.Light {
		f.budget.shared.Limit(min(lightBytes, f.budget.bytes()), nil)
	}
	defer f.Wait() // also where it fails: nothing of it goes on
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, items, err := f.propose(ctx, b.views, p)
	if err != nil {
		return nil, err
	}
	out := newReview(c, items, p)
	out.read(f.renders)
	closed, err := b.sortBatches(out, f, c.Batches, rolelessOf(items), p)
	if err != nil {
		return nil, err
	}
	if p.Untrusted {
		if err := b.asFollowed(ctx, accounts, p, f.renders, out.secretless()); err != nil {
			return nil, err
		}
	}
	out.openable = len(out.Batches)
	out.Batches = append(out.Batches, closed...)
	return out, nil
}

// propose composes what would be wanted with a proposal. f is the proposal's own.
func (f *Fleet) propose(ctx context.Context, followed map[string]View, p Proposal) (*Composition, []*item, error) {
	secrets := cmp.Or(p.Secrets, f.o.Secrets)
	views := maps.Clone(followed)
	v := views[p.Source]
	v.Snapshot, v.Err = p.Snapshot, nil
	if p.At != nil {
		v.At = p.At
	}
	views[p.Source] = v
	// A review may be of a configuration that was replaced meanwhile: its variables are
	// not those of what is followed.
	in := &inputs{views: views, variables: passing{secrets, "proposals"}, readOnly: true}
	items := f.expand(in)
	for _, it := range items {
		it.proposed, it.light = true, p.Light
		if p.Untrusted {
			it.withhold()
		}
	}
	c, err := f.compose(ctx, in, items, -1)
	if err != nil {
		return nil, nil, err
	}
	for _, it := range items {
		// Secrets that a proposal leaves unchanged were hidden when the source was followed.
		if r := it.render.result; r != nil && it.desired.Touched {
			passing{secrets, p.Owner}.hide("target "+it.name, r.Hidden)
		}
	}
	return c, items, ctx.Err()
}

// newReview returns the targets that a proposal touches.
func newReview(c *Composition, items []*item, p Proposal) *Review {
	out := &Review{Places: places(items, p.Source), after: map[string][]string{}, conditions: c.Conditions}
	for _, t := range c.Targets {
		if t.Source == p.Source {
			out.Names = append(out.Names, t.Name)
		}
	}
	out.Targets = len(out.Names)
	for _, r := range c.Revisions {
		if r.Source == p.Source {
			out.Touched, out.Gone = r.Touched, r.Removed
		}
	}
	switch {
	case len(p.Only) > 0:
		out.Touched = slices.DeleteFunc(slices.Clone(out.Names), func(name string) bool { return !slices.Contains(p.Only, name) })
	case p.All:
		out.Touched = slices.Clone(out.Names)
	}
	for _, name := range out.Touched {
		out.after[name] = c.Conditions[name].DependsOn
	}
	return out
}

// rolelessOf are the targets of AWS itself that have no role for plans.
func rolelessOf(items []*item) map[string]bool {
	out := map[string]bool{}
	for _, it := range items {
		out[it.name] = it.target.PlanRoleARN == "" && it.key.Endpoint == "" && !it.accountUnknown()
	}
	return out
}

// scope is the treatment of an account and region by a review.
type scope string

const (
	untouched scope = "the proposal touches none of its targets, so nothing there is planned"
	closed    scope = "the author is not trusted, and no target there has a role for plans: weir does not open the account"
	planned   scope = "its touched targets are planned"
)

// member is a target of an account and region, as far as a proposal is concerned.
type member struct{ touched, roleless bool }

// scopeOf classifies an account and region by its targets.
func scopeOf(members []member, untrusted bool) scope {
	switch {
	case !slices.ContainsFunc(members, func(m member) bool { return m.touched }):
		return untouched
	case untrusted && !slices.ContainsFunc(members, func(m member) bool { return !m.roleless }):
		return closed
	}
	return planned
}

// sortBatches puts the batches of a proposal where a review has them, and returns those whose
// accounts stay closed. f is the proposal's.
func (b *Base) sortBatches(out *Review, f *Fleet, batches []reconciler.Batch, roleless map[string]bool, p Proposal) (shut []reconciler.Batch, err error) {
	for _, batch := range batches {
		batch.AllTargets = false // what nobody wants is not a proposal's
		members := make([]member, len(batch.Targets))
		for i := range batch.Targets {
			d := &batch.Targets[i]
			members[i] = member{slices.Contains(out.Touched, d.Policy.Target), roleless[d.Policy.Target]}
			switch {
			case members[i].touched:
				b.touch(out, d, f.renders[d.Policy.Target].result, members[i].roleless, p)
			case d.Source == p.Source && errors.Is(d.Err, plan.ErrSource):
				return nil, d.Err // weir cannot tell whether the change affects it
			}
		}
		switch scopeOf(members, p.Untrusted) {
		case untouched:
			out.others = append(out.others, batch)
		case closed:
			shut = append(shut, batch)
		case planned:
			out.Batches = append(out.Batches, batch)
		}
	}
	return shut, nil
}

// touch makes a touched target one of the review. rendered is what the proposal makes of it.
func (b *Base) touch(out *Review, d *reconciler.Desired, rendered *render.Kept, roleless bool, p Proposal) {
	if d.Policy.Secretless {
		out.Withheld = append(out.Withheld, d.Policy.Target)
	}
	d.Policy.Secretless = d.Policy.Secretless || p.Draft
	if p.Head != nil && rendered != nil {
		d.Commit = commitIn(*p.Head, rendered.Reads)
	}
	if before := b.fleet.renders[d.Policy.Target]; before != nil && before.result != nil {
		d.Base = &before.result.Set
	}
	b.conceal(d)
	if roleless {
		out.Roleless = append(out.Roleless, d.Policy.Target)
	}
}

// secretless returns the touched targets that were rendered without their secrets.
func (r *Review) secretless() (out []*reconciler.Desired) {
	for i := range r.Batches {
		for j := range r.Batches[i].Targets {
			if d := &r.Batches[i].Targets[j]; slices.Contains(r.Withheld, d.Policy.Target) {
				out = append(out, d)
			}
		}
	}
	return out
}
