// Package workspace opens, plans and applies the work of one command. Commands that plan and apply without
// a daemon use it. A Workspace is one of
//
//   - the targets of a configuration at the followed commits (OpenConfig, Compose)
//   - one directory (OpenPath)
//   - a work tree or a ref instead of the followed commit (PlanDraft, or SendDraft if a daemon
//     plans it)
//   - a directory that is only rendered (Render)
//
// A Workspace is opened, makes passes, and is closed. Until then, its passes may look up the origins of
// fields in the commits. It uses the daemon's own rules from the same packages, and holds the same steps
// (gating). Targets that were not chosen are also planned, as suspended, because otherwise their resources
// would look orphaned. It does not interact with the user: the caller passes in what the user has agreed
// to, and notes go to Env.Note. Errors contain hints (package advice).
package workspace

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/weir-gitops/weir/cmd/weir/internal/advice"
	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/cmd/weir/internal/follow"
	"github.com/weir-gitops/weir/cmd/weir/internal/statedir"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accounts"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/edit"
	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source"
)

// Env contains the inputs from the process.
type Env struct {
	Getenv  func(string) string
	Secrets *redact.Registry
	Logger  *slog.Logger
	// Endpoint replaces AWS if it is not empty.
	Endpoint string
	// Note shows information to the user that is not in the result.
	Note func(text string)
}

func (e Env) accounts() *accounts.Set {
	return accounts.New(accounts.Options{Logger: e.Logger, Getenv: e.Getenv})
}

// usesEmulator reports whether an emulator replaces AWS.
func (e Env) usesEmulator() bool { return e.Endpoint != "" || e.Getenv("AWS_ENDPOINT_URL") != "" }

// Workspace is the work of one command. All its passes read the same commits.
type Workspace struct {
	batches []reconciler.Batch
	// chosen contains the targets to show and write; nil for all.
	chosen map[string]bool
	// Quick says that all passes use an emulator instead of AWS.
	Quick bool
	// gating holds the same steps as the daemon; nil for a PATH.
	gating *gating
	// Agreed contains the user's agreements, by target; nil if the user was not asked. Deletions describes
	// how to agree to deletions if no user can be asked.
	Agreed    map[string]*model.Agreement
	Deletions string
	// Decided permits the first rollout of adopted pools.
	Decided bool
	// Insists permits steps that end machines although no new machine can start. Retry makes the first pass
	// retry everything that failed or was refused.
	Insists, Retry bool
	// sources read the commits, and release frees them.
	sources map[string]*source.Git
	release []func()
	// places, root and tree are the inputs for the render of a PATH.
	places []edit.Place
	root   string
	tree   tree.Tree
}

// Close ends the work. Until then, the passes may look up the origins of fields in the commits.
func (w *Workspace) Close() {
	for i := len(w.release) - 1; i >= 0; i-- {
		w.release[i]()
	}
	w.release = nil
}

// Each calls f for every target of the workspace, with its scope.
func (w *Workspace) Each(f func(reconciler.ScopeKey, *reconciler.Desired)) {
	for i := range w.batches {
		for j := range w.batches[i].Targets {
			if d := &w.batches[i].Targets[j]; w.chosen == nil || w.chosen[d.Policy.Target] {
				f(w.batches[i].Key, d)
			}
		}
	}
}

// Held returns the reason why nothing is written at all, or "".
func (w *Workspace) Held() string { return w.gating.lossText() }

// mirrorDir returns the directory for the mirrors of one command. It differs from the mirrors of a daemon
// with the same state directory. A second concurrent command gets a directory that is removed when the
// command ends.
func mirrorDir(stateDir string) (dir string, done func(), err error) {
	if own, err := statedir.Open(filepath.Join(stateDir, "commands")); err == nil {
		return own.Name, func() { _ = own.Close() }, nil // the lock ends with the process
	}
	dir, err = os.MkdirTemp("", "weir-")
	if err != nil {
		return "", nil, fmt.Errorf("make mirror directory: %w", err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil // the system cleans up anything that is left
}

// readSources fetches every source once. They stay open until the workspace is closed.
func (w *Workspace) readSources(ctx context.Context, env Env, c *config.Config, dir string) (map[string]fleet.View, error) {
	views := map[string]fleet.View{}
	w.sources = map[string]*source.Git{}
	for _, s := range c.Sources {
		from, _, err := follow.Config(s, dir, env.Secrets.Set)
		if err != nil {
			return nil, err
		}
		git, err := source.New(from, source.Options{Logger: env.Logger})
		if err != nil {
			return nil, err
		}
		w.sources[s.Name], w.release = git, append(w.release, git.Close)
		v := fleet.View{ID: git.ID(), At: git.At}
		if v.Snapshot, v.Err = git.Latest(ctx); v.Err != nil {
			v.Snapshot, _ = git.Last()
		}
		views[s.Name] = v
	}
	return views, ctx.Err()
}

// choose limits the work to the named targets. All other targets stay in the batches as suspended, because
// otherwise their resources would look orphaned.
func (w *Workspace) choose(names []string, targets []fleet.Target) error {
	if len(names) == 0 {
		return nil
	}
	known := map[string]bool{}
	for _, t := range targets {
		known[t.Name] = true
	}
	w.chosen = map[string]bool{}
	for _, name := range names {
		if !known[name] {
			all := slices.Sorted(maps.Keys(known))
			return advice.Usage(targetHint(name, all), "there is no target %q", name)
		}
		w.chosen[name] = true
	}
	for i := range w.batches {
		for j := range w.batches[i].Targets {
			if d := &w.batches[i].Targets[j]; !w.chosen[d.Policy.Target] {
				d.Policy.Suspended = true
			}
		}
	}
	w.batches = slices.DeleteFunc(w.batches, func(b reconciler.Batch) bool {
		return !slices.ContainsFunc(b.Targets, func(d reconciler.Desired) bool { return w.chosen[d.Policy.Target] })
	})
	return nil
}

// targetHint returns the remedy for an unknown target: its likely name, or the way to give a directory.
func targetHint(name string, known []string) string {
	names := "the targets are " + strings.Join(known, ", ")
	if info, err := os.Stat(name); err == nil && info.IsDir() {
		return "for the manifests in a directory, write --path " + name + ", or leave --config out; " + names
	}
	return advice.DidYouMean(name, known, names)
}

// RetryFailed makes the next pass retry everything that failed or was refused, if Retry is set.
func (w *Workspace) RetryFailed() {
	if !w.Retry {
		return
	}
	for i := range w.batches {
		var pools []string
		for _, d := range w.batches[i].Targets {
			if d.Set == nil || w.chosen != nil && !w.chosen[d.Policy.Target] {
				continue
			}
			for j := range d.Set.Pools {
				pools = append(pools, d.Set.Pools[j].Key.String())
			}
		}
		w.batches[i].Scope.Retry(pools)
	}
}

// Pass makes one pass over all accounts and returns the reports by target name.
func (w *Workspace) Pass(ctx context.Context, mode reconciler.Mode) []*plan.Report {
	w.gating.before(ctx, w.batches)
	w.Each(func(_ reconciler.ScopeKey, d *reconciler.Desired) {
		g := &d.Policy.Gates
		g.Agreed, g.Deletions, g.Decided, g.Insists = w.Agreed[d.Policy.Target], w.Deletions, w.Decided, w.Insists
		g.Rollouts = w.governed(d)
	})
	var mu sync.Mutex
	var wg sync.WaitGroup
	var out []*plan.Report
	for _, b := range w.batches {
		wg.Go(func() {
			reports := reconciler.RunBatch(ctx, b, mode)
			mu.Lock()
			defer mu.Unlock()
			for _, r := range reports {
				chosen := w.chosen == nil || w.chosen[r.Target]
				w.gating.after(r, chosen)
				if chosen {
					out = append(out, r)
				}
			}
		})
	}
	wg.Wait()
	slices.SortFunc(out, func(a, b *plan.Report) int { return strings.Compare(a.Target, b.Target) })
	return out
}
