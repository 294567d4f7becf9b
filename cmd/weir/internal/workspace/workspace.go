// Package workspace opens, plans and applies the work of one command. Commands that plan and apply
// without a daemon share it. A Workspace is one of
//
//   - the targets of a configuration at the followed commits (OpenConfig, Compose)
//   - one directory (OpenPath)
//   - a work tree or a ref in place of what is followed (PlanDraft, or SendDraft if a daemon plans
//     it)
//   - a directory that is only rendered (Render)
//
// A Workspace is opened, makes passes, and is closed; until then its passes may look up in the commits
// where a field was set. It uses the daemon's own rules, made by the same packages: a command holds
// what the daemon would hold (gating). Targets that were not chosen are planned along as suspended,
// because otherwise their resources would look orphaned. It neither asks the user nor prints: the
// caller passes in what the user agreed to, and remarks beyond a result go to Env.Note. Errors
// carry hints (package advice).
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

// Env holds what a process contributes to its work.
type Env struct {
	Getenv  func(string) string
	Secrets *redact.Registry
	Logger  *slog.Logger
	// Endpoint takes the place of AWS where it is not empty.
	Endpoint string
	// Note shows the user what the result does not say.
	Note func(text string)
}

func (e Env) accounts() *accounts.Set {
	return accounts.New(accounts.Options{Logger: e.Logger, Getenv: e.Getenv})
}

// quick reports whether an emulator replaces AWS.
func (e Env) quick() bool { return e.Endpoint != "" || e.Getenv("AWS_ENDPOINT_URL") != "" }

// Workspace is the work of one command. All its passes read the same commits.
type Workspace struct {
	batches []reconciler.Batch
	// chosen holds the targets to show and write; nil for all.
	chosen map[string]bool
	// Quick says that no pass goes to AWS itself.
	Quick bool
	// gating holds steps as the daemon would; nil in path mode.
	gating *gating
	// Agreed holds what the user agreed to, by target; nil if the user was not asked. Deletions
	// says how to agree to deletions if no user can be asked.
	Agreed    map[string]*model.Agreement
	Deletions string
	// Decided permits the first rollout of adopted pools.
	Decided bool
	// Insists lets steps run that end machines although no new one can start. Retry tries
	// again what failed or was refused, in the first pass.
	Insists, Retry bool
	// sources read the commits, and release frees them.
	sources map[string]*source.Git
	release []func()
	// places, root and tree are what a PATH is rendered from.
	places []edit.Place
	root   string
	tree   tree.Tree
}

// Close ends the work. Until then the passes may ask the commits where a field
// was set.
func (w *Workspace) Close() {
	for i := len(w.release) - 1; i >= 0; i-- {
		w.release[i]()
	}
	w.release = nil
}

// Each calls f with every target that is worked on, and where it is.
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

// mirrorDir returns the directory in which one command keeps its mirrors. It differs from the
// mirrors of a daemon on the same state directory. A second command at the same time gets a
// directory that is removed when the command ends.
func mirrorDir(stateDir string) (dir string, done func(), err error) {
	if own, err := statedir.Open(filepath.Join(stateDir, "commands")); err == nil {
		return own.Name, func() { _ = own.Close() }, nil // the lock ends with the process anyway
	}
	dir, err = os.MkdirTemp("", "weir-")
	if err != nil {
		return "", nil, fmt.Errorf("make mirror directory: %w", err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }, nil // the system cleans up the rest
}

// readSources fetches every source once. They stay open until the work is closed.
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

// choose limits the work to the named targets. All other targets stay in the batches, suspended:
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
			return advice.Usage(advice.DidYouMean(name, all, "the targets are "+strings.Join(all, ", ")), "there is no target %q", name)
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

// TryAgain makes the next pass try again what failed or was refused, if Retry says so.
func (w *Workspace) TryAgain() {
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
