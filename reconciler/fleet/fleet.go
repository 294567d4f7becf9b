// Package fleet turns the snapshots of all sources into the input of the reconciler's passes: for each
// configured target its render, its policy, and the account and region that it belongs to. A composition has
// three steps:
//
//	expand   paths with wildcards become targets, based on the tree of each snapshot
//	render   targets are rendered if what their last build read has changed, see standing; other targets keep their last build
//	scope    targets are grouped by account and region
//
// If something is missing on the way, the target's Desired has an error or a diagnostic, and Whole is not
// set, so that weir deletes nothing because of it.
//
// A review composes a proposal, such as a pull request, with the same three steps. It starts with the builds
// of the followed commits, and shares them. So it renders only the targets that the proposal changes. What it
// then does with each target is its effect, see effectOf.
package fleet

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/gates"
	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/render/secret"
	"github.com/weir-gitops/weir/render/sops"
	"github.com/weir-gitops/weir/source/snapshot"
)

// View is the state of a source: its last good snapshot, and why there is no newer one.
type View struct {
	// ID is the identity of the repository.
	ID string
	// Snapshot has no tree before the first good one.
	Snapshot snapshot.Snapshot
	Err      error
	// Seq is Desired.Seq.
	Seq int64
	// At returns another commit of the source.
	At func(ctx context.Context, revision string) (snapshot.Snapshot, error)
	// Earlier returns an earlier commit of the source, if it has the required signatures. Parents lists the
	// commits before one, along the first parents, nearest first.
	Earlier func(ctx context.Context, revision string) (snapshot.Snapshot, error)
	Parents func(ctx context.Context, revision string, most int) ([]string, error)
	// Verify identifies the signatures required of the source's commits: a render from a time with
	// other requirements, or none, does not count.
	Verify string
}

// Config is the operator's configuration of a fleet. It does not change during the life of the
// fleet.
type Config struct {
	// Instance names this weir.
	Instance string
	// Sources are the names of all sources.
	Sources []string
	Targets []targetspec.Target
	Limits  targetspec.Limits
	// KeepVersions is the number of launch template versions to keep if a pool does not set it.
	KeepVersions int32
	// Endpoint is the address of AWS for targets that name none; empty for AWS itself.
	Endpoint string
}

// Accounts gives a fleet access to the accounts of its targets.
type Accounts interface {
	// KMS decrypts with the credentials that a scope is opened with.
	KMS(reconciler.ScopeKey) sops.KMS
	// Account returns the account of a scope. It is empty until it is available.
	Account(reconciler.ScopeKey) string
	// Meet reports whether two scopes may be of the same account and region, and whether that is certain.
	Meet(a, b reconciler.ScopeKey) (meet, sure bool)
	// Attach opens the accounts of batches. It protects resources that a batch shares with another one, or
	// with a batch of others.
	Attach(ctx context.Context, batches []reconciler.Batch, others ...reconciler.Batch)
}

// Options of a Fleet.
type Options struct {
	Config   *Config
	Accounts Accounts
	// Keyless puts placeholders in place of encrypted values. Then nothing is decrypted, and the composition
	// is only for display.
	Keyless bool
	// Endpoint replaces every configured endpoint, if it is not empty.
	Endpoint string
	// Written stores builds for later processes. It may be nil.
	Written Written
	// Good has the last good revisions of targets. If it is nil, no target falls back to an earlier revision.
	Good Good
	// DigestKey is the key of the hashes that stand for user data in plans.
	DigestKey []byte
	// Secrets receives all secret values. It may be nil.
	Secrets *redact.Registry
	Logger  *slog.Logger
}

// Fleet makes compositions, and remembers the builds of targets between them. Only one goroutine at a time
// may use it.
type Fleet struct {
	o       Options
	renders map[string]*rendered // by target
	// followed are the builds of the followed commits, by target, in the fleet of a review. Nothing changes them.
	followed map[string]*build
	budget   *budget            // the limits of renders
	rosters  map[string]*roster // by source
	// decrypters are the decrypters by the id of their keys and their role.
	decrypters map[string]*sops.Decrypter
	// clusters are the clients of workload clusters, by kubeconfig file.
	clusters map[string]client
	// base is the last result of Base. revisions are those of the last composition.
	base      *Base
	revisions []Revision
	// sources holds the source of each target. behind marks the sources with targets that are
	// behind.
	sources map[string]string
	behind  map[string]bool
	// jobs are the renders in progress, and those whose results no composition has taken yet.
	jobs map[string]*job
	runs *runs
	// holds are the targets that are held to earlier revisions.
	holds *fallbacks
	// made are the targets that the configuration's tables and wildcards produce, by name. earlier are those
	// of the previous composition.
	made, earlier map[string]*targetspec.Target
}

// New returns a fleet without builds.
func New(o Options) *Fleet {
	f := &Fleet{
		o: o, renders: map[string]*rendered{}, rosters: map[string]*roster{}, decrypters: map[string]*sops.Decrypter{}, clusters: map[string]client{}, made: map[string]*targetspec.Target{},
		jobs: map[string]*job{}, runs: &runs{ended: make(chan struct{}, 1)},
	}
	f.budget = newBudget(f.limits(), render.NewShared(nil))
	f.holds = &fallbacks{o: &f.o, runs: f.runs, budget: f.budget, searches: map[string]*search{}, desired: map[string]string{}}
	return f
}

// Adopt reuses the builds of a fleet with an earlier configuration, so that a reload renders only the targets
// that it changes.
func (f *Fleet) Adopt(earlier *Fleet) {
	f.renders, f.rosters, f.decrypters, f.clusters = earlier.renders, earlier.rosters, earlier.decrypters, earlier.clusters
	for name, s := range earlier.holds.searches {
		if s.job == nil && s.poolJob == nil { // a job ends with the context of its fleet
			f.holds.searches[name], f.holds.desired[name] = s, earlier.holds.desired[name]
		}
	}
	f.budget = newBudget(f.limits(), earlier.budget.shared)
	f.holds.budget = f.budget
}

// Target is one target, its path's wildcards expanded.
type Target struct {
	Name, Source, Path, Account, Region string
	// Unlisted says that the source cannot be read, so that the targets of the path are unknown. Name is then
	// a pattern.
	Unlisted bool
	// Config is the configured target from which it was expanded.
	Config *targetspec.Target
}

// Revision is the effect of a source's commit on its targets.
type Revision struct {
	Source, SHA string
	// Touched lists targets whose build the commit changed. Faulty lists targets with a fault in the commit,
	// and targets that cannot be rendered now; the commit is not applied there. Removed lists targets that a
	// path with wildcards no longer matches.
	Touched, Faulty, Removed []string
}

// Composition is the input of one pass.
type Composition struct {
	Batches   []reconciler.Batch
	Targets   []Target
	Revisions []Revision
	// Conditions must hold before a target is changed, by its name.
	Conditions map[string]gates.Conditions
	// Rendering are the targets whose newest commit is still being rendered.
	Rendering []Rendering
}

// Compose makes a composition of the sources' views, by name. It waits for all renders, opens no account, and
// fails only if ctx ends.
func (f *Fleet) Compose(ctx context.Context, views map[string]View) (*Composition, error) {
	return f.Advance(ctx, views, -1)
}

// Advance is Compose, but waits for renders only until patience is over. Unfinished renders continue until
// ctx ends, for a later composition.
func (f *Fleet) Advance(ctx context.Context, views map[string]View, patience time.Duration) (*Composition, error) {
	in := &inputs{views: views, variables: &f.o, unusedRows: true}
	items := f.expand(in)
	c, err := f.compose(ctx, in, items, patience)
	if err != nil {
		return nil, err
	}
	for _, it := range items {
		if r := it.render.result; r != nil {
			f.o.hide("target "+it.name, r.Hidden)
		}
	}
	f.forget(items)
	f.forgetWritten(items)
	return c, ctx.Err()
}

// inputs holds the inputs of a composition and the limits on what it may do.
type inputs struct {
	views map[string]View
	// variables receives the secret values of variables.
	variables hider
	// readOnly prevents reads with write permissions: accounts are read with the roles for plans,
	// where these exist, and clusters of workloads not at all.
	readOnly bool
	// unusedRows says that table rows without a directory get a warning.
	unusedRows bool
}

// hider keeps an owner's secret values out of everything that is shown.
type hider interface {
	hide(owner string, values *secret.Set)
}

// compose makes a composition of the items that the inputs were expanded to. It fails only if ctx ends.
func (f *Fleet) compose(ctx context.Context, in *inputs, items []*item, patience time.Duration) (*Composition, error) {
	if err := f.renderAll(ctx, items, patience); err != nil {
		return nil, err
	}
	behind := map[string]bool{}
	for _, it := range items {
		behind[it.target.Source] = behind[it.target.Source] || !it.since.IsZero()
	}
	f.sources = map[string]string{}
	sources := f.sourceIDs(in.views)
	for _, it := range items {
		f.sources[it.name] = it.target.Source
		it.desired = f.desired(in, it, sources)
		// The subject may contain a secret that the render of another target will reveal, so it is not shown
		// yet. Launch template versions still use it in their description.
		it.desired.HideSubject = behind[it.target.Source]
		f.holds.apply(ctx, in, it)
	}
	f.findRemoved(in.views, items)
	c := &Composition{Revisions: f.revised(in.views, items)}
	f.revisions, f.behind = c.Revisions, behind
	for _, it := range items {
		if !it.since.IsZero() {
			c.Rendering = append(c.Rendering, Rendering{it.name, it.target.Source, it.view.Snapshot.Revision, it.since, it.desired.Set == nil})
		}
	}
	needNodes(items)
	waves := wavesOf(items)
	emptyWaves(items, waves)
	demandWaves(items, waves)
	resolveDependencies(items)
	reserve(items)
	c.Batches = f.batches(items)
	accounts := map[reconciler.ScopeKey]string{}
	for _, b := range c.Batches {
		accounts[b.Key] = f.o.Accounts.Account(b.Key)
	}
	for _, it := range items {
		c.Targets = append(c.Targets, Target{Name: it.name, Source: it.target.Source, Path: it.path, Account: accounts[it.key], Region: it.desired.Policy.Region, Unlisted: it.unlisted(), Config: it.target})
	}
	slices.SortFunc(c.Targets, func(a, b Target) int { return strings.Compare(a.Name, b.Name) })
	c.Conditions = conditions(items)
	return c, nil
}

// hide keeps secret values of the followed commits out of everything that is shown.
func (o *Options) hide(owner string, values *secret.Set) {
	if o.Secrets != nil {
		o.Secrets.Set(fleetOwner+owner, values)
	}
}

// fleetOwner is the prefix of the owners of the values that a fleet hides.
const fleetOwner = "fleet: "

// forget drops what no target uses any more: keys, which are secret, and clients of clusters. If all targets
// are known, it also stops hiding the values of removed targets.
func (f *Fleet) forget(items []*item) {
	keys, owners := map[*sops.Decrypter]bool{}, map[string]bool{}
	for i := range f.o.Config.Targets {
		owners[fleetOwner+variablesOf(f.o.Config.Targets[i].Name)] = true
	}
	for _, it := range items {
		keys[it.keys.decrypter] = true
		owners[fleetOwner+"target "+it.name], owners[fleetOwner+"held "+it.name], owners[fleetOwner+"kubeconfig "+it.target.KubeconfigFile] = true, true, true // even if they could not be read
	}
	maps.DeleteFunc(f.decrypters, func(_ string, d *sops.Decrypter) bool { return !keys[d] })
	maps.DeleteFunc(f.clusters, func(file string, c client) bool {
		gone := !owners[fleetOwner+"kubeconfig "+file]
		if gone {
			c.cluster.Close() // closes idle connections; a request in flight continues
		}
		return gone
	})
	if f.o.Secrets != nil && !slices.ContainsFunc(items, func(it *item) bool { return it.unknown }) {
		f.o.Secrets.Only(fleetOwner, owners)
	}
}

// limits returns the limits of what sources may ask for.
func (f *Fleet) limits() targetspec.Limits { return f.o.Config.Limits.WithDefaults() }

// revised returns the newest commit of each source, with the names of the targets that it touches, removes or
// leaves faulty.
func (f *Fleet) revised(views map[string]View, items []*item) []Revision {
	var out []Revision
	for _, name := range f.o.Config.Sources {
		sha := views[name].Snapshot.Revision
		if sha == "" {
			continue
		}
		r := Revision{Source: name, SHA: sha}
		for _, it := range items {
			if it.target.Source == name && (it.desired.Touched || !it.since.IsZero() && it.render.revision != sha) {
				r.Touched = append(r.Touched, it.name)
			} else if it.target.Source == name && (it.desired.Policy.Fallback != nil || it.desired.Diagnostics.HasErrors() || it.err != nil && !it.unknown) {
				r.Faulty = append(r.Faulty, it.name)
			}
		}
		slices.Sort(r.Touched)
		slices.Sort(r.Faulty)
		if roll := f.rosters[name]; roll != nil {
			r.Removed = roll.removed
		}
		out = append(out, r)
	}
	return out
}
