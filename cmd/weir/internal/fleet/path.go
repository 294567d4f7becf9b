package fleet

import (
	"context"
	"path/filepath"
	"strings"

	"github.com/weir-gitops/weir/cmd/weir/internal/redact"
	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/sops"
	"github.com/weir-gitops/weir/source"
)

// The identity of what is applied from a path instead of a repository.
const (
	PathInstance = "weir"
	pathSource   = "path"
)

// PathOptions describe one directory on disk that is applied as it stands.
type PathOptions struct {
	Path   string
	Region string
	// Target defaults to the directory's name, Instance to PathInstance.
	Target   string
	Instance string
	Vars     map[string]string
	// SecretVars names the variables that are marked as secret, Decrypter opens
	// encrypted files.
	SecretVars []string
	Decrypter  *sops.Decrypter
	// Hide is told of all secret values; nil tells nobody.
	Hide *redact.Registry
	// Prune deletes what the directory no longer wants.
	Prune    bool
	Endpoint string
}

// TargetOf is the target's name in path mode: the one given, or that of the
// directory, or of the file without .yaml.
func TargetOf(path, given string) (string, error) {
	if given != "" {
		return given, nil
	}
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	name := filepath.Base(abs)
	if ext := filepath.Ext(name); ext == ".yaml" || ext == ".yml" {
		name = strings.TrimSuffix(name, ext)
	}
	return name, nil
}

// Path makes the batch of one directory. An error is about reading it; what the
// user wrote wrongly is in the batch's diagnostics.
func Path(ctx context.Context, scopes *Scopes, o PathOptions) (reconciler.Batch, error) {
	tree, root, rel, err := source.OpenPath(o.Path)
	if err != nil {
		return reconciler.Batch{}, err
	}
	result, err := render.Render(ctx, tree, rel, render.Options{Vars: o.Vars, SecretVars: o.SecretVars, Decrypter: o.Decrypter})
	if err != nil {
		return reconciler.Batch{}, err
	}
	if o.Hide != nil {
		o.Hide.Set("target "+o.Target, result.Hidden)
	}
	d := reconciler.Desired{
		Policy: plan.Policy{
			Instance: o.Instance, Target: o.Target, Source: pathSource, Sources: []string{pathSource}, Region: o.Region,
			OwnTargetOnly: true, Prune: plan.Prune{Enabled: o.Prune, Silent: !o.Prune, Percent: plan.DefaultPrunePercent},
		},
		Touched: true,
	}
	key := reconciler.ScopeKey{Region: o.Region, Endpoint: o.Endpoint}
	kept, err := result.Keep(render.NewShared(nil))
	if err != nil {
		return reconciler.Batch{}, err
	}
	fill(&d, kept, &key, nil)
	d.Origins = result.Origins
	placeDesired(&d, Placer(root))
	batches := []reconciler.Batch{{Key: key, Targets: []reconciler.Desired{d}}}
	scopes.Attach(ctx, batches)
	return batches[0], nil
}
