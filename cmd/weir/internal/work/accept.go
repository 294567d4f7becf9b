package work

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/weir-gitops/weir/cmd/weir/internal/advice"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/accept"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render/edit"
	"github.com/weir-gitops/weir/source/worktree"
)

// Accepted is how the files of a PATH say what AWS has.
type Accepted struct {
	Fields []accept.Field
	Files  []AcceptedFile
	// More are the steps that weir would make then and would not make now.
	More []string
	root string
}

// AcceptedFile is a file before and after.
type AcceptedFile struct {
	// Path is below the work tree's root.
	Path     string
	Was, Now []byte
}

// AcceptPath finds how the manifests of a PATH would say what AWS has otherwise, and plans
// them as they would be. It writes nothing.
func AcceptPath(ctx context.Context, env Env, p Path, c accept.Choice) (*Accepted, error) {
	w, err := OpenPath(ctx, env, p)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	if _, err := worktree.OpenWorkTree(w.root); err != nil {
		return nil, advice.Hinted(fmt.Errorf("edit %s: %w", p.Path, err), "weir edits files of a Git work tree, where you see what has changed and can take it back: git init makes one")
	}
	before, sight, err := w.seen(ctx)
	if err != nil {
		return nil, err
	}
	out := &Accepted{root: w.root}
	known := map[string]bool{}
	w.Each(func(_ reconciler.ScopeKey, d *reconciler.Desired) {
		for i := range d.Set.Pools {
			known[d.Set.Pools[i].Key.Name], known[d.Set.Pools[i].Key.String()] = true, true
		}
		out.Fields = append(out.Fields, accept.Find(d.Policy.Target, d.Set, before[d.Policy.Target].Plan, &sight.State, c)...)
	})
	for _, name := range c.Pools {
		if !known[name] {
			return nil, advice.Usage("weir plan "+p.Path+" names them", "there is no pool %q", name)
		}
	}
	wishes := accept.Wishes(out.Fields)
	set, err := edit.Set(ctx, w.tree, w.places, wishes)
	if err != nil {
		return nil, err
	}
	accept.Take(out.Fields, wishes, set)
	if len(set.Files) == 0 {
		return out, nil
	}
	for _, path := range set.Paths() {
		was, err := w.tree.ReadFile(path)
		if err != nil {
			return nil, fmt.Errorf("read %s: %w", path, err)
		}
		out.Files = append(out.Files, AcceptedFile{path, was, set.Files[path]})
	}
	p.Files, env.Note = set.Files, func(string) {} // it was said
	edited, err := OpenPath(ctx, env, p)
	if err != nil {
		return nil, err
	}
	defer edited.Close()
	after, _, err := edited.seen(ctx)
	if err != nil {
		return nil, fmt.Errorf("plan the edited manifests: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		out.More = append(out.More, accept.Prove(out.Fields, before[name].Plan, after[name].Plan)...)
	}
	return out, nil
}

// seen plans, and returns what the plans were made from. All targets must have one.
func (w *Work) seen(ctx context.Context) (map[string]*plan.Report, *reconciler.Sight, error) {
	sight := &reconciler.Sight{}
	for i := range w.batches {
		w.batches[i].Sight = sight
	}
	out := map[string]*plan.Report{}
	for _, r := range w.Pass(ctx, reconciler.PlanOnly) {
		out[r.Target] = r
	}
	var err error
	w.Each(func(_ reconciler.ScopeKey, d *reconciler.Desired) {
		switch r := out[d.Policy.Target]; {
		case err != nil:
		case r == nil || d.Set == nil && r.Err == nil || r.Plan == nil && r.Err == nil:
			err = advice.Hinted(fmt.Errorf("the target %s has no plan", d.Policy.Target), "weir plan says why")
		case r.Err != nil:
			err = advice.Hinted(r.Err, "weir plan shows the same: it takes the same credentials and rights")
		}
	})
	return out, sight, errors.Join(ctx.Err(), err)
}

// Write writes the files, each whole or not at all. One that has changed meanwhile is left,
// and those after it.
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
