package workspace

import (
	"context"
	"maps"
	"slices"
	"sync"

	"filippo.io/age"

	"github.com/weir-gitops/weir/cmd/weir/internal/advice"
	"github.com/weir-gitops/weir/reconciler/fleet"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/gctuning"
	"github.com/weir-gitops/weir/render/kust/worker"
	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/render/sops"
	"github.com/weir-gitops/weir/source/worktree"
)

// Rendered is the render of a path on disk.
type Rendered struct {
	*render.Result
	// Readable makes positions readable. The positions in Diags already are.
	Readable func(diag.Position) diag.Position
	// Path is the path as returned by Readable.
	Path string
	// Unused lists unused variables of the command line. It is valid only if Known is true.
	Unused []string
	Known  bool
}

// begin prepares this short-lived process for a render: garbage is collected less often, and the worker
// process for kustomize starts in parallel with other preparations.
var begin = sync.OnceFunc(func() {
	gctuning.Set(128 << 20)
	worker.Ahead(1)
})

// Render renders a directory or file on disk.
func Render(ctx context.Context, secrets *redact.Registry, path string, in Inputs) (*Rendered, error) {
	begin()
	tree, root, rel, err := worktree.OpenPath(path)
	if err != nil {
		return nil, advice.Hinted(err, "give a directory with a kustomization, a directory of YAML files, or one file")
	}
	o := in.Options(true)
	o.Partial = true // the directory may be a base
	r, err := render.Render(ctx, tree, rel, o)
	if err != nil {
		return nil, err
	}
	secrets.Set("path "+path, r.Hidden)
	readable := fleet.Readable(root)
	r.Diags = fleet.MapPositions(r.Diags, readable)
	at := readable(diag.Position{File: rel}).File
	r.Diags = hintBelow(r.Diags, path, at, len(r.Set.Pools))
	out := &Rendered{Result: r, Readable: readable, Path: at}
	out.Unused, out.Known = r.Unused(slices.Sorted(maps.Keys(in.Vars)))
	return out, nil
}

// Inputs contains the inputs for the render of a directory.
type Inputs struct {
	Vars       map[string]string
	SecretVars []string
	Identities []age.Identity
	KMS        sops.KMS
	KMSKeys    []string
	// BuildOnly is render.Options.BuildOnly.
	BuildOnly bool
}

// Options returns the options of a render. If lenient is true and there is no key, encrypted files are read
// with placeholders. Otherwise they are errors.
func (in Inputs) Options(lenient bool) render.Options {
	return render.Options{BuildOnly: in.BuildOnly, Vars: in.Vars, SecretVars: in.SecretVars, GiveValue: fleet.OnCommandLine, Decrypter: sops.New(sops.Options{
		Identities: in.Identities, KMS: in.KMS, KMSKeyARNs: in.KMSKeys,
		Placeholders: lenient && len(in.Identities)+len(in.KMSKeys) == 0,
	})}
}
