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

// Proposal is a change of a source that is not followed yet, such as a pull request.
type Proposal struct {
	Source string
	// Snapshot is the source with the proposal applied.
	Snapshot snapshot.Snapshot
	// Owner distinguishes the proposal's secret values from the secret values of other proposals.
	Owner string
	// Secrets receives the secret values. If it is nil, the fleet's own registry receives them.
	Secrets *redact.Registry
	// Untrusted says that the proposal must be rendered without secrets.
	Untrusted bool
	// Light says that the review must fail with ErrHeavy if it needs more than lightBytes of memory.
	Light bool
	// Draft says that nobody is asked to approve the proposal. Its plans have no digest.
	Draft bool
	// Only names the targets to plan, whether the proposal changes them or not. If it is empty, weir plans
	// the targets that the proposal changes.
	Only []string
	// All says that all targets are planned, whether the proposal changes them or not.
	All bool
	// At returns other commits of the repository that the snapshot is from. If it is nil, View.At of the
	// source is used.
	At func(ctx context.Context, revision string) (snapshot.Snapshot, error)
	// Head is set if the snapshot is a work tree with uncommitted changes. It is the commit below them, or a
	// zero value if there is no commit yet. A target that reads the same files in both is planned under that
	// commit.
	Head *snapshot.Snapshot
}

// ErrHeavy says that a proposal is not light, see Proposal.Light.
var ErrHeavy = errors.New("the proposal is not light")

// lightBytes bounds the memory of a review if many run concurrently: the change of some hundred
// pools.
const lightBytes = 1 << 20

// Review is the effect of a proposal.
type Review struct {
	// Batches are the scopes with touched targets. They are planned, and never applied.
	Batches []reconciler.Batch
	// Touched lists the targets to plan: the proposal changes their build or requests their plan. Gone lists
	// the targets that it removes. Targets is the number of the source's targets in the proposal.
	Touched, Gone []string
	Targets       int
	// Names are all targets of the source in the proposal, in order.
	Names []string
	// Places are the places from which these targets are rendered, in the same order.
	Places []Place
	// Withheld are touched targets that were rendered without their secrets.
	Withheld []string
	// Roleless are touched targets of AWS itself that have no role for plans.
	Roleless []string

	// after lists the targets that each touched target waits for. conditions holds the waits of each target's
	// steps.
	after      map[string][]string
	conditions map[string]gates.Conditions
	// reads records the files and lookups of the builds of the touched targets. It is nil if a new build may
	// differ although nothing was committed.
	reads *reads.Set
	// The accounts of the first openable batches may be opened. others are the batches that the proposal does
	// not touch.
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

// places returns the places of a source's targets.
func places(items []*item, source string) (out []Place) {
	for _, it := range items {
		if it.target.Source == source && !it.unknown {
			out = append(out, Place{Name: it.name, Dir: it.path, Options: it.options(), Windows: it.target.Windows, DependsOn: it.waitsFor})
		}
	}
	slices.SortFunc(out, func(a, b Place) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// Open opens the accounts of the scopes with touched targets. It opens no other accounts, because waiting
// for them would only delay the review. If an account cannot be opened, the reports of its targets contain
// the reason. accounts must not be the ones that apply plans, because what one remembers must not affect the
// other.
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

// Same reports whether the touched targets would have the same builds in t. Then their plans change only with AWS.
func (r *Review) Same(t tree.Tree) bool {
	if r.reads == nil {
		return len(r.Touched) == 0
	}
	same, err := r.reads.Same(t)
	return err == nil && same
}

// Planned drops what only planning needs, because a review stays in memory as long as its proposal is open.
func (r *Review) Planned() {
	r.Batches, r.others, r.openable, r.after, r.conditions = nil, nil, 0, nil, nil
}

// Around returns the context of a review's plans: the conditions that targets wait for, and the
// batches that it does not touch. The caller must not change the result.
func (r *Review) Around() (map[string]gates.Conditions, []reconciler.Batch) {
	return r.conditions, r.others
}

// read collects the files and lookups of the builds of the touched targets.
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

// Review finds what a proposal changes. It uses AWS only to decrypt files, through accounts. It fails only if
// ctx ends or the proposal cannot be read.
func (b *Base) Review(ctx context.Context, accounts Accounts, p Proposal) (*Review, error) {
	f := b.fleet.forReview(b.fleet.followed)
	f.o.Accounts = accounts
	if p.Light {
		f.budget.shared.Limit(min(lightBytes, f.budget.bytes()), nil)
	}
	defer f.Wait() // after an error as well, so that no render continues
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c, items, err := f.propose(ctx, b.views, p)
	if err != nil {
		return nil, err
	}
	out, err := newReview(c, items, p)
	if err != nil {
		return nil, err
	}
	out.read(f.renders)
	closed := b.sortBatches(out, f, c.Batches, rolelessOf(items), p)
	if p.Untrusted {
		if err := b.asFollowed(ctx, accounts, p, f.renders, out.secretless()); err != nil {
			return nil, err
		}
	}
	out.openable = len(out.Batches)
	out.Batches = append(out.Batches, closed...)
	return out, nil
}

// propose makes the composition of a proposal. f is the fleet of its review.
func (f *Fleet) propose(ctx context.Context, followed map[string]View, p Proposal) (*Composition, []*item, error) {
	secrets := cmp.Or(p.Secrets, f.o.Secrets)
	views := maps.Clone(followed)
	v := views[p.Source]
	v.Snapshot, v.Err = p.Snapshot, nil
	if p.At != nil {
		v.At = p.At
	}
	views[p.Source] = v
	// The configuration of a review may have been replaced meanwhile, so the followed commits do not get its
	// variables.
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

// newReview returns the review of a proposal, with the targets that it touches. It fails if the proposal
// cannot be read.
func newReview(c *Composition, items []*item, p Proposal) (*Review, error) {
	out := &Review{Places: places(items, p.Source), after: map[string][]string{}, conditions: c.Conditions}
	var removed []string
	for _, r := range c.Revisions {
		if r.Source == p.Source {
			removed = r.Removed
		}
	}
	effects := effectsOf(items, removed, p)
	for _, name := range slices.Sorted(maps.Keys(effects)) {
		e := effects[name]
		if e != removes {
			out.Names = append(out.Names, name)
		}
		switch e {
		case changes, requested:
			out.Touched = append(out.Touched, name)
			out.after[name] = c.Conditions[name].DependsOn
		case removes:
			out.Gone = append(out.Gone, name)
		case unclear:
			i := slices.IndexFunc(items, func(it *item) bool { return it.name == name })
			return nil, items[i].desired.Err
		case none:
		}
	}
	out.Targets = len(out.Names)
	return out, nil
}

// rolelessOf returns the targets of AWS itself that have no role for plans.
func rolelessOf(items []*item) map[string]bool {
	out := map[string]bool{}
	for _, it := range items {
		out[it.name] = it.target.PlanRoleARN == "" && it.key.Endpoint == "" && !it.accountUnknown()
	}
	return out
}

// scope is the treatment of an account and region by a review. The texts are for readers of the code and for
// tests.
type scope string

const (
	untouched scope = "the proposal touches no target of the account and region, so weir plans nothing for them"
	closed    scope = "the author is not trusted, and no target of the account and region has a planRoleARN, so weir does not access the account"
	planned   scope = "weir plans the touched targets of the account and region"
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

// sortBatches puts the batches of a proposal into the review, and returns those whose accounts stay closed. f
// is the fleet of the review.
func (b *Base) sortBatches(out *Review, f *Fleet, batches []reconciler.Batch, roleless map[string]bool, p Proposal) (shut []reconciler.Batch) {
	for _, batch := range batches {
		batch.AllTargets = false // a review does not report orphans
		members := make([]member, len(batch.Targets))
		for i := range batch.Targets {
			d := &batch.Targets[i]
			members[i] = member{slices.Contains(out.Touched, d.Policy.Target), roleless[d.Policy.Target]}
			if members[i].touched {
				b.touch(out, d, f.renders[d.Policy.Target].result, members[i].roleless, p)
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
	return shut
}

// touch prepares a touched target for its plan. rendered is its build in the proposal.
func (b *Base) touch(out *Review, d *reconciler.Desired, rendered *render.Kept, roleless bool, p Proposal) {
	if d.Policy.Secretless {
		out.Withheld = append(out.Withheld, d.Policy.Target)
	}
	d.Policy.Secretless = d.Policy.Secretless || p.Draft
	if p.Head != nil && rendered != nil {
		d.Commit = commitIn(*p.Head, rendered.Reads)
	}
	if before := b.fleet.followed[d.Policy.Target]; before != nil && before.result != nil {
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
