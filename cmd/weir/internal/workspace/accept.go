package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/weir-gitops/weir/cmd/weir/internal/advice"
	"github.com/weir-gitops/weir/cmd/weir/internal/config"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accept"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/edit"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source/worktree"
)

// Accepted describes changes to the files of a PATH that make them match AWS.
type Accepted struct {
	Fields []accept.Field
	Files  []AcceptedFile
	// More lists the additional steps that weir would make after the changes.
	More []string
	root string
}

// AcceptedFile is a file before and after the changes.
type AcceptedFile struct {
	// Path is relative to the work tree's root.
	Path     string
	Was, Now []byte
}

// acceptPlan contains plans and their inputs.
type acceptPlan struct {
	root   string
	tree   tree.Tree
	places []edit.Place

	mu      sync.Mutex // guards the fields that concurrent passes write
	reports map[string]*plan.Report
	sets    map[string]*intent.Set
	states  map[string]*observed.State
}

// pass plans a batch, and stores the observed state.
func (l *acceptPlan) pass(ctx context.Context, b reconciler.Batch) []*plan.Report {
	b.Inputs = &reconciler.PassInputs{}
	reports := reconciler.RunBatch(ctx, b, reconciler.PlanOnly)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, r := range reports {
		l.reports[r.Target] = r
	}
	for i := range b.Targets {
		d := &b.Targets[i]
		l.sets[d.Policy.Target], l.states[d.Policy.Target] = d.Set, &b.Inputs.State
	}
	return reports
}

// checkComplete returns an error if a target has no complete plan.
func (l *acceptPlan) checkComplete(names []string) error {
	for _, name := range names {
		r := l.reports[name]
		switch {
		case r == nil || r.Plan == nil && r.Err == nil && !r.Diagnostics.HasErrors() || r.Err == nil && l.sets[name] == nil && !r.Diagnostics.HasErrors():
			return advice.Hinted(fmt.Errorf("the target %s has no plan", name), "weir plan says why")
		case r.Err != nil:
			return advice.Hinted(r.Err, "weir plan reports the same error: it needs the same credentials and permissions")
		case r.Diagnostics.HasErrors():
			i := slices.IndexFunc(r.Diagnostics, func(x diag.Diagnostic) bool { return x.Severity == diag.Error })
			return advice.Hinted(fmt.Errorf("the target %s cannot be planned completely: %s", name, r.Diagnostics[i]), "correct that first: weir plan shows it; plan a daemon's targets with its --config, or ask the daemon with weir accept")
		}
	}
	return nil
}

// AcceptPath finds changes to the manifests of a PATH that match AWS, and plans the changed manifests. It
// writes nothing.
func AcceptPath(ctx context.Context, env Env, p Path, c accept.Choice) (*Accepted, error) {
	return accepts(ctx, c, func(files map[string][]byte) (*acceptPlan, []string, error) {
		p.Files = files
		w, err := OpenPath(ctx, env, p)
		if err != nil {
			return nil, nil, err
		}
		defer w.Close()
		env.Note = func(string) {} // the first plan has already printed its notes
		l := &acceptPlan{root: w.root, tree: w.tree, places: w.places, reports: map[string]*plan.Report{}, sets: map[string]*intent.Set{}, states: map[string]*observed.State{}}
		if _, err := worktree.OpenWorkTree(w.root); err != nil {
			return nil, nil, advice.Hinted(fmt.Errorf("edit %s: %w", p.Path, err), "weir edits only files in a Git work tree, where you can see and undo the changes: git init creates one")
		}
		var names []string
		for _, place := range w.places {
			names = append(names, place.Name)
		}
		for _, b := range w.batches {
			l.pass(ctx, b)
		}
		return l, names, ctx.Err()
	})
}

// AcceptConfig is AcceptPath for the targets of a configuration, in a work tree of their source.
func AcceptConfig(ctx context.Context, env Env, cfg *config.Config, path string, targets []string, c accept.Choice) (*Accepted, error) {
	return accepts(ctx, c, func(files map[string][]byte) (*acceptPlan, []string, error) {
		at, err := openWorkTree(path)
		if err != nil {
			return nil, nil, err
		}
		l := &acceptPlan{root: at.Root, tree: at.Tree, reports: map[string]*plan.Report{}, sets: map[string]*intent.Set{}, states: map[string]*observed.State{}}
		var names []string
		_, err = planDraft(ctx, env, cfg, Draft{Path: path, Targets: targets, all: len(targets) == 0, files: files}, func(d *drafting, b reconciler.Batch) []*plan.Report {
			l.mu.Lock()
			if names = d.review.Touched; l.places == nil {
				for _, place := range d.review.Places {
					l.places = append(l.places, edit.Place{Name: place.Name, Dir: place.Dir, Options: place.Options})
				}
			}
			l.mu.Unlock()
			return l.pass(ctx, b)
		})
		return l, names, err
	})
}

// accepts plans the current files, edits them, and plans the edited files.
func accepts(ctx context.Context, c accept.Choice, see func(files map[string][]byte) (*acceptPlan, []string, error)) (*Accepted, error) {
	before, names, err := see(nil)
	if err == nil {
		err = before.checkComplete(names)
	}
	if err != nil {
		return nil, err
	}
	out := &Accepted{root: before.root}
	known := map[string]bool{}
	for _, name := range names {
		set := before.sets[name]
		for i := range set.Pools {
			known[set.Pools[i].Key.Name], known[set.Pools[i].Key.String()] = true, true
		}
		out.Fields = append(out.Fields, accept.Find(name, set, before.reports[name].Plan, before.states[name], c)...)
	}
	for _, name := range c.Pools {
		if !known[name] {
			return nil, advice.Usage("weir plan names them", "there is no pool %q", name)
		}
	}
	changes := accept.Changes(out.Fields)
	set, err := edit.Set(ctx, before.tree, before.places, changes)
	if err != nil {
		return nil, err
	}
	accept.Take(out.Fields, changes, set)
	if len(set.Files) == 0 {
		return out, nil
	}
	for _, path := range set.Paths() {
		was, err := before.tree.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		out.Files = append(out.Files, AcceptedFile{path, was, set.Files[path]})
	}
	after, _, err := see(set.Files)
	if err == nil {
		err = after.checkComplete(names)
	}
	if err != nil {
		return nil, fmt.Errorf("plan the edited manifests: %w", err)
	}
	for _, name := range names {
		out.More = append(out.More, accept.Prove(out.Fields, before.reports[name].Plan, after.reports[name].Plan)...)
	}
	return out, nil
}

// Write writes the files, each completely or not at all. It stops at a file that has changed in the
// meantime.
func (a *Accepted) Write() error {
	for _, f := range a.Files {
		path := filepath.Join(a.root, filepath.FromSlash(f.Path))
		info, err := os.Lstat(path)
		if err != nil {
			return fmt.Errorf("write %s: %w", f.Path, err)
		}
		is, err := os.ReadFile(path)
		if err != nil {
			return fmt.Errorf("write %s: %w", f.Path, err)
		}
		if !info.Mode().IsRegular() || !bytes.Equal(is, f.Was) {
			return advice.Hinted(fmt.Errorf("write %s: it has changed since weir read it", f.Path), "run the command again")
		}
		temp, err := os.CreateTemp(filepath.Dir(path), ".weir-")
		if err != nil {
			return fmt.Errorf("write %s: %w", f.Path, err)
		}
		_, err = temp.Write(f.Now)
		err = errors.Join(err, temp.Chmod(info.Mode().Perm()), temp.Close())
		if err == nil {
			err = os.Rename(temp.Name(), path)
		}
		if err != nil {
			_ = os.Remove(temp.Name())
			return fmt.Errorf("write %s: %w", f.Path, err)
		}
	}
	return nil
}
