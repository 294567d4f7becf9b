package fleet

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/reconciler/target"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/kust"
	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source/snapshot"
)

// Base is what a fleet had composed at one moment: what a change that is not
// followed yet is compared with. It does not change, and several goroutines may
// review against it.
type Base struct {
	fleet     *Fleet
	views     map[string]View
	revisions []Revision
}

// Base remembers the last composition: the same value while nothing changed since
// the last call. It is called by who calls Compose.
// Of a source of which targets are behind, it is what it was before, and there is none
// before there is something of each source.
func (f *Fleet) Base(views map[string]View) *Base {
	next := &Base{fleet: f.copied(), views: maps.Clone(views), revisions: slices.Clone(f.revisions)}
	for source, behind := range f.behind {
		if behind && f.base == nil {
			return nil
		}
		if behind {
			next.keep(f.base, source)
		}
	}
	if f.base == nil || !f.base.still(next) {
		f.base = next
	}
	return f.base
}

// keep leaves a source as it was.
func (b *Base) keep(before *Base, source string) {
	b.views[source] = before.views[source]
	f, old := b.fleet, before.fleet
	maps.DeleteFunc(f.renders, func(name string, _ *rendered) bool { return f.sources[name] == source })
	for name, r := range old.renders {
		if old.sources[name] == source {
			f.renders[name] = r
		}
	}
	delete(f.rosters, source)
	if r := old.rosters[source]; r != nil {
		f.rosters[source] = r
	}
	b.revisions = slices.DeleteFunc(b.revisions, func(r Revision) bool { return r.Source == source })
	for _, r := range before.revisions {
		if r.Source == source {
			b.revisions = append(b.revisions, r)
		}
	}
}

// still reports whether nothing was rendered or read anew.
func (b *Base) still(next *Base) bool {
	if !reflect.DeepEqual(b.revisions, next.revisions) || len(b.views) != len(next.views) || len(b.fleet.renders) != len(next.fleet.renders) {
		return false
	}
	for name, v := range next.views {
		if old := b.views[name]; old.Snapshot.Revision != v.Snapshot.Revision || (old.Err == nil) != (v.Err == nil) {
			return false
		}
	}
	for name, r := range next.fleet.renders {
		if old := b.fleet.renders[name]; old == nil || old.result != r.result {
			return false
		}
	}
	return true
}

// copied is a fleet that knows what f does, for one composition.
func (f *Fleet) copied() *Fleet {
	c := New(f.o)
	c.o.Good, c.o.Written = nil, nil // a proposal is judged by itself
	c.budget, c.sources, c.slots = f.budget.forReview(), f.sources, make(chan struct{}, besideReview)
	c.renders = make(map[string]*rendered, len(f.renders))
	for name, r := range f.renders {
		// Whether a render holds for another tree is told by what it read, and
		// what touched it before is of no interest.
		kept := *r
		kept.revision, kept.touchedBy, kept.allowed, kept.allowedBy = "", "", nil, ""
		c.renders[name] = &kept
	}
	maps.Copy(c.decrypters, f.decrypters)
	for name, r := range f.rosters {
		kept := *r
		kept.revision, kept.removed = "", nil
		c.rosters[name] = &kept
	}
	return c
}

// View is a source as it was.
func (b *Base) View(source string) View { return b.views[source] }

// Touched are the targets whose render the source's commit changed.
func (b *Base) Touched(source string) []string {
	for _, r := range b.revisions {
		if r.Source == source {
			return r.Touched
		}
	}
	return nil
}

// Config is the configuration that the base was composed with.
func (b *Base) Config() *Config { return b.fleet.o.Config }

// Proposal is a change of a source that is not followed yet.
type Proposal struct {
	Source string
	// Snapshot is what the source would be with it.
	Snapshot snapshot.Snapshot
	// Owner tells its secret values apart from those of other proposals.
	Owner string
	// Secrets is told of them; nil stands for what the fleet tells.
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

// lightBytes is what many reviews may hold beside each other: the change of some
// hundred pools.
const lightBytes = 1 << 20

// Review is what a proposal means.
type Review struct {
	// Batches are the scopes with touched targets, to be planned and never applied.
	Batches []reconciler.Batch
	// Touched are the targets whose render the proposal changes, Gone those that it
	// takes away, and Targets counts those of the source.
	Touched, Gone []string
	Targets       int
	// Names are all targets of the source, in order.
	Names []string
	// Places are where they are rendered from, in the same order.
	Places []Place
	// Withheld are touched targets that were rendered without their secrets.
	Withheld []string
	// Roleless are touched targets of AWS itself that have no role for plans.
	Roleless []string

	// after are the targets that touched ones come after, and conditions are what the
	// steps of all targets wait for.
	after      map[string][]string
	conditions map[string]gates.Conditions
	// reads is what the renders of the touched targets looked up; nil where they may
	// turn out otherwise though nothing was committed.
	reads *kust.ReadSet
	// openable counts the batches, the first ones, whose accounts may be opened, and
	// others are those that the proposal does not touch.
	openable int
	others   []reconciler.Batch
}

// Place is where a target is rendered from, and when it is applied.
type Place struct {
	Name, Dir string
	Options   render.Options
	Windows   []target.Window
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

// Plan plans the touched targets, one scope beside the other, and gives their reports
// by name. The holds of steps are asked when they are to run.
func (r *Review) Plan(pass func(reconciler.Batch) []*plan.Report) (out []*plan.Report) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, b := range r.Batches {
		for i := range b.Targets {
			b.Targets[i].Policy.Gates = basis.Gates{}
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

// Around is what bears on the steps of a review beside its plans: what targets wait for, and
// the batches that it does not touch. Nobody changes what it returns.
func (r *Review) Around() (map[string]gates.Conditions, []reconciler.Batch) {
	return r.conditions, r.others
}

// read notes what the renders of the touched targets looked up.
func (r *Review) read(renders map[string]*rendered) {
	var sets []kust.ReadSet
	for _, name := range r.Touched {
		result := renders[name].result
		if result == nil || result.Retry {
			return
		}
		sets = append(sets, result.Reads)
	}
	all := kust.Union(sets...)
	r.reads = &all
}

// Review finds what a proposal changes. It asks AWS nothing but for keys of encrypted
// files, through accounts, and fails only if ctx ends or the proposal cannot be read.
func (b *Base) Review(ctx context.Context, accounts Accounts, p Proposal) (*Review, error) {
	f := b.fleet.copied()
	f.o.Accounts = accounts
	secrets := cmp.Or(p.Secrets, f.o.Secrets)
	if p.Light {
		f.budget.shared.Limit(min(lightBytes, f.budget.bytes()), nil)
	}
	defer f.Wait() // also where it fails: nothing of it goes on
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	views := maps.Clone(b.views)
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
		return nil, err
	}
	roleless := map[string]bool{}
	for _, it := range items {
		roleless[it.name] = it.target.PlanRoleARN == "" && it.key.Endpoint == "" && !it.accountUnknown()
		// Secrets that a proposal leaves as they are were hidden when the source was
		// followed.
		if r := it.render.result; r != nil && it.desired.Touched {
			passing{secrets, p.Owner}.hide("target "+it.name, r.Hidden)
		}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	out := &Review{}
	for _, r := range c.Revisions {
		if r.Source == p.Source {
			out.Touched, out.Gone = r.Touched, r.Removed
		}
	}
	for _, t := range c.Targets {
		if t.Source == p.Source {
			out.Names = append(out.Names, t.Name)
		}
	}
	out.Targets = len(out.Names)
	out.Places = places(items, p.Source)
	if p.All {
		out.Touched = slices.Clone(out.Names)
	}
	if len(p.Only) > 0 {
		out.Touched = slices.DeleteFunc(slices.Clone(out.Names), func(name string) bool { return !slices.Contains(p.Only, name) })
	}
	out.read(f.renders)
	out.after, out.conditions = map[string][]string{}, c.Conditions
	for _, name := range out.Touched {
		out.after[name] = c.Conditions[name].DependsOn
	}
	var shut []reconciler.Batch
	for _, batch := range c.Batches {
		batch.Strays = false // what nobody wants is not a proposal's
		touched := false
		for i := range batch.Targets {
			d := &batch.Targets[i]
			if !slices.Contains(out.Touched, d.Policy.Target) {
				if d.Source == p.Source && errors.Is(d.Err, plan.ErrSource) {
					return nil, d.Err // nobody knows whether it is touched
				}
				continue
			}
			touched = true
			if d.Policy.Secretless {
				out.Withheld = append(out.Withheld, d.Policy.Target)
			}
			d.Policy.Secretless = d.Policy.Secretless || p.Draft
			if r := f.renders[d.Policy.Target].result; p.Head != nil && r != nil {
				d.Commit = commitIn(*p.Head, r.Reads)
			}
			if before := b.fleet.renders[d.Policy.Target]; before != nil && before.result != nil {
				d.Base = &before.result.Set
			}
			b.conceal(d)
			if roleless[d.Policy.Target] {
				out.Roleless = append(out.Roleless, d.Policy.Target)
			}
		}
		switch {
		case !touched:
			out.others = append(out.others, batch)
		case p.Untrusted && !slices.ContainsFunc(batch.Targets, func(d reconciler.Desired) bool { return !roleless[d.Policy.Target] }):
			// For who is not trusted no account is opened of which no target has a role
			// for plans, not even to ask whose it is.
			shut = append(shut, batch)
		default:
			out.Batches = append(out.Batches, batch)
		}
	}
	if p.Untrusted {
		if err := b.asFollowed(ctx, accounts, p, f.renders, out.secretless()); err != nil {
			return nil, err
		}
	}
	out.openable = len(out.Batches)
	out.Batches = append(out.Batches, shut...)
	return out, nil
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
