// Package fleet puts together what the stages know apart: for each configured
// target the snapshot of its source, its render, its policy and the account that
// it is applied to. The flow is
//
//	expand   paths with wildcards become targets, over each snapshot's tree
//	render   each target whose read set or variables changed; the rest is kept
//	scope    targets are grouped by account and region, opened when first needed
//
// and the result is what one pass of the reconciler takes. Whatever is missing
// on the way is in the target's Desired as an error or a diagnostic, with Whole
// unset, so that nothing is deleted for it.
package fleet

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/weir-gitops/weir/cmd/weir/internal/calendar"
	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/redact"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/secret"
	"github.com/weir-gitops/weir/render/sops"
	"github.com/weir-gitops/weir/source"
)

// View is a source as it stands: its last good snapshot, and why there is no
// newer one.
type View struct {
	// ID is the identity of the repository.
	ID string
	// Snapshot has no tree before the first good one.
	Snapshot source.Snapshot
	Err      error
	// At gives another commit of the source.
	At func(ctx context.Context, revision string) (source.Snapshot, error)
	// Verify stands for the signatures that are asked for of the source's commits:
	// what was rendered while others were, or none, does not count.
	Verify string
}

// Options of a Fleet.
type Options struct {
	Config *config.Config
	Scopes *Scopes
	// EmbeddedURL is the address of the embedded AWS where aws.endpoint is
	// "embedded"; Endpoint takes the place of every configured endpoint.
	EmbeddedURL string
	Endpoint    string
	// DigestKey keys what stands for user data in plans.
	DigestKey []byte
	// Secrets is told of all secret values; nil tells nobody.
	Secrets *redact.Registry
	Logger  *slog.Logger
}

// Fleet composes passes. It remembers renders between them. It is used by one
// goroutine at a time.
type Fleet struct {
	o       Options
	renders map[string]*rendered // by target
	room    *room                // what there may be of them
	rosters map[string]*roster   // by source
	// decrypters are by what they decrypt with; keys are what the composition uses.
	decrypters map[string]*sops.Decrypter
	keys       map[string]bool
	// clusters are by the kubeconfig file.
	clusters map[string]client
	// review is what is looked at in place of what is followed, if anything is, and
	// roleless are then the targets of AWS itself without a role for plans.
	review   *Proposal
	roleless map[string]bool
	// hiding are those whose values the composition has hidden.
	hiding map[string]bool
	// base is what Base gave last, revisions are those of the last composition.
	base      *Base
	revisions []Revision
	// sources are those of the targets, and behind those of which some are behind.
	sources map[string]string
	behind  map[string]bool
	// jobs are the renders under way, and those that are not taken over yet.
	jobs    map[string]*job
	running sync.WaitGroup
	ended   chan struct{}
	// places are those of a proposal's renders.
	places chan struct{}
	// made are the targets that the configuration's tables and wildcards make, by name,
	// and earlier those of the composition before.
	made, earlier map[string]*config.Target
}

// New returns a fleet that has rendered nothing yet.
func New(o Options) *Fleet {
	f := &Fleet{
		o: o, renders: map[string]*rendered{}, rosters: map[string]*roster{}, decrypters: map[string]*sops.Decrypter{}, clusters: map[string]client{}, roleless: map[string]bool{}, made: map[string]*config.Target{},
		jobs: map[string]*job{}, ended: make(chan struct{}, 1), places: make(chan struct{}, besideReview),
	}
	f.room = newRoom(f.limits(), render.NewShared(nil))
	return f
}

// Adopt takes over the renders of a fleet with an earlier configuration, so that
// a reload renders only what it changed.
func (f *Fleet) Adopt(earlier *Fleet) {
	f.renders, f.rosters, f.decrypters, f.clusters = earlier.renders, earlier.rosters, earlier.decrypters, earlier.clusters
	f.room = newRoom(f.limits(), earlier.room.shared)
}

// Target is one target, its path's wildcards expanded.
type Target struct {
	Name, Source, Path, Account, Region string
	// Config is what it was expanded from.
	Config *config.Target
}

// Revision is what a source's commit means for its targets.
type Revision struct {
	Source, SHA string
	// Touched are the targets whose render the commit changed, Removed those
	// that a path with wildcards gave before the commit and gives no more.
	Touched, Removed []string
}

// Composition is what one pass takes.
type Composition struct {
	Batches   []reconciler.Batch
	Targets   []Target
	Revisions []Revision
	// Conditions are what must be so before a target is changed, by its name.
	Conditions map[string]Conditions
	// Rendering are the targets that are behind.
	Rendering []Rendering
}

// Conditions are what the configuration demands before a target is changed.
type Conditions struct {
	// DependsOn names the targets that must have converged before, by way of others
	// too, the first of all first. Targets that come after the same ones share it.
	DependsOn []string
	Windows   []calendar.Window
	// Rendered stands for what the target wants, by commit and configuration: two
	// that want the same have the same, in whatever process. It is empty where
	// nothing is known to be wanted.
	Rendered string
	// Wanted is Rendered with what the configuration says of the target beside it.
	Wanted string
}

// item is a target on its way to a Desired.
type item struct {
	target *config.Target
	name   string
	path   string
	match  config.Match
	view   View
	vars   map[string]string
	// secretVars names the variables that are marked as secret, keys are what encrypted
	// files are opened with.
	secretVars []string
	keys       keyring
	// valueFiles are those of the tree.
	valueFiles []string
	// plain are the variables, and keyless opens what is encrypted, as an untrusted
	// proposal sees them; hidden says that plain lacks something.
	plain   map[string]string
	keyless *sops.Decrypter
	hidden  bool
	// proposed says that the item is of a commit that is not followed yet, light that
	// the proposal is to be.
	proposed, light bool
	// unknown says that the item stands for targets whose names are not known:
	// those of a path with wildcards that matches nothing or could not be read;
	// crowded that they are too many.
	unknown, crowded bool
	// rowless says that the target's table has no row for the item.
	rowless bool
	// waitsFor are the targets that must have converged before.
	waitsFor []string
	// err says that the target cannot be rendered or not be trusted to be whole.
	err     error
	diags   diag.List
	render  *rendered
	room    *room
	desired reconciler.Desired
	key     reconciler.ScopeKey
	// kept says that the last render holds, since from when on a newer one is made.
	kept  bool
	since time.Time
}

// Compose makes what passes take of the sources' views, by name. It waits for all
// renders, opens no account, and fails only if ctx ends.
func (f *Fleet) Compose(ctx context.Context, views map[string]View) (*Composition, error) {
	return f.Advance(ctx, views, -1)
}

// Advance is Compose with the renders that are there once patience is over. The others
// go on until ctx ends, and a later composition has them.
func (f *Fleet) Advance(ctx context.Context, views map[string]View, patience time.Duration) (*Composition, error) {
	f.hiding, f.roleless, f.keys = map[string]bool{}, map[string]bool{}, map[string]bool{}
	items := f.expand(views)
	if err := f.renderAll(ctx, items, patience); err != nil {
		return nil, err
	}
	behind := map[string]bool{}
	for _, it := range items {
		behind[it.target.Source] = behind[it.target.Source] || !it.since.IsZero()
	}
	f.sources = map[string]string{}
	sources := f.sourceIDs(views)
	for _, it := range items {
		f.sources[it.name] = it.target.Source
		if behind[it.target.Source] {
			// It may name a secret that the render will tell.
			it.view.Snapshot.Subject = ""
		}
		it.desired = f.desired(it, sources)
		// What a proposal leaves as it is was hidden when it was followed.
		if r := it.render.result; r != nil && (f.review == nil || it.desired.Touched) {
			f.hide(f.owner("target "+it.name), r.Hidden)
		}
		f.hiding[fleetOwner+"target "+it.name] = true // whether it could be rendered or not
	}
	f.forget(items)
	f.callRolls(views, items)
	c := &Composition{Revisions: f.revised(views, items)}
	f.revisions, f.behind = c.Revisions, behind
	for _, it := range items {
		if !it.since.IsZero() {
			c.Rendering = append(c.Rendering, Rendering{it.name, it.target.Source, it.view.Snapshot.Revision, it.since, it.desired.Set == nil})
		}
	}
	depend(items)
	reserve(items)
	c.Batches = f.batches(items)
	for _, b := range c.Batches {
		account := f.o.Scopes.account(b.Key)
		for _, d := range b.Targets {
			c.Targets = append(c.Targets, Target{Name: d.Policy.Target, Source: d.Source, Account: account, Region: d.Policy.Region})
		}
	}
	from := map[string]*item{}
	for _, it := range items {
		from[it.name] = it
	}
	for i := range c.Targets {
		if it := from[c.Targets[i].Name]; it != nil {
			c.Targets[i].Path, c.Targets[i].Config = it.path, it.target
		}
	}
	slices.SortFunc(c.Targets, func(a, b Target) int { return strings.Compare(a.Name, b.Name) })
	c.Conditions = conditions(items)
	return c, ctx.Err()
}

// expand makes one item of each target that the configuration stands for.
func (f *Fleet) expand(views map[string]View) []*item {
	f.earlier, f.made = f.made, map[string]*config.Target{}
	var items []*item
	taken := map[string]*item{}
	room := map[string]int{} // how many targets a source may still have
	for _, s := range f.o.Config.Sources {
		room[s.Name] = int(f.limits().Targets)
	}
	for i := range f.o.Config.Targets {
		t := &f.o.Config.Targets[i]
		expanded := expandTarget(t, views[t.Source], f.limits(), room[t.Source])
		room[t.Source] -= len(expanded)
		if f.review == nil {
			unmatched(t, expanded)
		}
		f.give(t, expanded)
		for _, it := range expanded {
			it.proposed, it.light = f.review != nil, f.review != nil && f.review.Light
			if f.review != nil && f.review.Untrusted {
				it.withhold()
			}
			if first := taken[it.name]; first != nil {
				first.diags = append(first.diags, diag.Diagnostic{
					Severity: diag.Error, Code: "duplicate-target",
					Summary: fmt.Sprintf("paths %s and %s both give the target %q", first.path, it.path, it.name),
					Detail:  "Give the targets names that tell them apart.",
				})
				continue
			}
			taken[it.name] = it
			items = append(items, it)
		}
	}
	return items
}

// hide has values kept out of everything that is shown.
func (f *Fleet) hide(owner string, values *secret.Set) {
	switch {
	case f.o.Secrets == nil:
	case f.review != nil:
		f.o.Secrets.SetPassing(owner, values)
	default:
		f.hiding[fleetOwner+owner] = true
		f.o.Secrets.Set(fleetOwner+owner, values)
	}
}

// fleetOwner begins the names of who has values that a fleet hides.
const fleetOwner = "fleet: "

// forget lets go of what no target uses any more: keys, which are secret, and clients
// of clusters. It has the values of targets that there are not any more shown again,
// where all that there are are known.
func (f *Fleet) forget(items []*item) {
	maps.DeleteFunc(f.decrypters, func(by string, _ *sops.Decrypter) bool { return !f.keys[by] })
	maps.DeleteFunc(f.clusters, func(file string, c client) bool {
		gone := !f.hiding[fleetOwner+"kubeconfig "+file]
		if gone {
			c.cluster.Close() // its idle connections: a request under way goes on
		}
		return gone
	})
	if f.o.Secrets == nil || f.review != nil || slices.ContainsFunc(items, func(it *item) bool { return it.unknown }) {
		return
	}
	f.o.Secrets.Only(fleetOwner, f.hiding)
}

// limits bound what sources may ask for.
func (f *Fleet) limits() config.Limits { return f.o.Config.Limits.WithDefaults() }

// expandTarget makes an item of each target that t stands for, of which its source
// may have room more.
func expandTarget(t *config.Target, v View, limits config.Limits, room int) []*item {
	glob, err := config.ParseGlob(t.Path)
	if err != nil {
		return []*item{{target: t, name: t.Name, path: t.Path, view: v, err: err}}
	}
	if v.Snapshot.Tree == nil {
		// Which targets a wildcard stands for is unknown. One that stands for
		// them all keeps the account from being taken for complete.
		err := v.Err
		if err == nil {
			err = fmt.Errorf("read source %s: not read yet", t.Source)
		}
		return []*item{{target: t, name: t.Name, path: t.Path, view: v, unknown: true, err: unreadable(err)}}
	}
	matches, found, err := glob.Expand(v.Snapshot.Tree, room)
	switch {
	case errors.Is(err, config.ErrTooManyNames) || found > room:
		return []*item{{target: t, name: t.Name, path: t.Path, view: v, unknown: true, crowded: true, diags: diag.List{tooManyTargets(t, limits, found, room)}}}
	case err != nil:
		return []*item{{target: t, name: t.Name, path: t.Path, view: v, unknown: true, err: unreadable(err)}}
	}
	if len(matches) == 0 {
		return []*item{{target: t, name: t.Name, path: t.Path, view: v, unknown: true, diags: diag.List{{
			Severity: diag.Error, Code: "path-missing", Summary: fmt.Sprintf("nothing in the commit matches path %s", t.Path),
			Detail: "Nothing is deleted while this is so. Mend targets.path, or take the target out of the configuration.",
		}}}}
	}
	items := make([]*item, len(matches))
	for i, m := range matches {
		items[i] = &item{target: t, path: m.Path, match: m, view: v}
		items[i].named(config.NameFor(t.Name, m))
	}
	return items
}

func (f *Fleet) sourceIDs(views map[string]View) []string {
	var ids []string
	for _, s := range f.o.Config.Sources {
		ids = append(ids, views[s.Name].ID)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// desired is the item as the reconciler takes it, but for its account.
func (f *Fleet) desired(it *item, sources []string) reconciler.Desired {
	t, snap := it.target, it.view.Snapshot
	d := reconciler.Desired{
		Policy: plan.Policy{
			Instance: f.o.Config.Instance, Target: it.name, Source: it.view.ID, Sources: sources, Region: t.Region,
			Suspended: t.Suspend, ReportOnly: t.Mode == config.Report, DigestKey: f.o.DigestKey,
			Gates: plan.Gates{AsReviewed: t.Apply == config.AsReviewed}, MaxRollouts: int(t.MaxConcurrentRollouts),
			KeepVersions: int32(f.o.Config.KeepVersions), Adoption: plan.Adoption{Annotated: t.AllowAdopt},
			Prune: plan.Prune{Enabled: t.Prune.Enabled, Percent: t.Prune.Limit.Percent, Count: t.Prune.Limit.Count, Allowed: it.render.allowed},
		},
		Network: resolve.Network{VPCID: t.Network.VPCID, SubnetIDs: t.Network.SubnetIDs, SecurityGroupIDs: t.Network.SecurityGroupIDs},
		Source:  t.Source, Ref: snap.Ref, Commit: plan.Commit{Revision: snap.Revision, Subject: snap.Subject},
		Touched:  snap.Revision != "" && it.render.touchedBy == snap.Revision,
		Proposed: f.review != nil,
		Err:      it.err, Diagnostics: it.diags,
	}
	it.key = reconciler.ScopeKey{Account: t.AccountID, Region: t.Region, RoleARN: t.RoleARN, Endpoint: f.endpoint(t)}
	if it.err == nil {
		d.Err = unreadable(it.view.Err)
	}
	// A render that is kept while something cannot be read stands for this very
	// path, repository and values only: after a reload the target may be another.
	if r := it.render.result; r != nil && it.render.over == nil && !it.diags.HasErrors() && it.render.of(it) {
		fill(&d, r, &it.key, t.AllowedRoleARNs)
		d.Origins = it.origins()
		d.Policy.Secretless = d.Policy.Secretless || it.hidden
	}
	if !it.since.IsZero() {
		it.behind(&d)
	}
	d.Whole = d.Whole && d.Err == nil
	it.key.RoleARN = f.planRole(t, it.key.RoleARN)
	f.roleless[it.name] = t.PlanRoleARN == "" && it.key.Endpoint == ""
	if it.placeless() {
		// Nobody is asked, about whatever there may be by some default.
		it.key, f.roleless[it.name], d.Policy.Region = reconciler.ScopeKey{}, false, ""
	}
	f.attachWorkload(&d, t)
	return d
}

// behind has a target whose newest commit is still being rendered told by the one that
// was rendered last, under its name. It is observed and planned, and nothing of it is
// written: what it wants is about to be something else. Only where commits come
// faster than they are rendered, for long, is what was rendered last applied.
func (it *item) behind(d *reconciler.Desired) {
	r := it.render
	d.Whole, d.Policy.Prune.Allowed = false, nil
	d.Ref, d.Commit, d.Touched = r.ref, plan.Commit{Revision: r.revision, Subject: r.subject}, r.revision != "" && r.touchedBy == r.revision
	if time.Since(r.behind) < forLong {
		d.Policy.Gates.Waits = "commit " + short(it.view.Snapshot.Revision) + " is being rendered since " + it.since.UTC().Format("15:04:05 MST")
	}
}

func short(revision string) string { return revision[:min(7, len(revision))] }

// endpoint is where the target's AWS is; empty for AWS itself.
func (f *Fleet) endpoint(t *config.Target) string {
	switch {
	case f.o.Endpoint != "":
		return f.o.Endpoint
	case t.EndpointURL != "":
		return t.EndpointURL
	case f.o.Config.AWS.Endpoint == config.EmbeddedEndpoint:
		return f.o.EmbeddedURL
	default:
		return f.o.Config.AWS.Endpoint
	}
}

func (f *Fleet) revised(views map[string]View, items []*item) []Revision {
	var out []Revision
	for _, s := range f.o.Config.Sources {
		sha := views[s.Name].Snapshot.Revision
		if sha == "" {
			continue
		}
		r := Revision{Source: s.Name, SHA: sha}
		for _, it := range items {
			if it.target.Source == s.Name && (it.desired.Touched || !it.since.IsZero() && it.render.revision != sha) {
				r.Touched = append(r.Touched, it.name)
			}
		}
		slices.Sort(r.Touched)
		if roll := f.rosters[s.Name]; roll != nil {
			r.Removed = roll.removed
		}
		out = append(out, r)
	}
	return out
}

// batches groups the items by scope.
func (f *Fleet) batches(items []*item) []reconciler.Batch {
	index := map[reconciler.ScopeKey]int{}
	var out []reconciler.Batch
	for _, it := range items {
		n, known := index[it.key]
		if !known {
			n = len(out)
			index[it.key] = n
			// What nobody wants is not a proposal's.
			out = append(out, reconciler.Batch{Key: it.key, Strays: f.review == nil && allKnown(items)})
		}
		out[n].Targets = append(out[n].Targets, it.desired)
	}
	f.doubt(items, out)
	return out
}
