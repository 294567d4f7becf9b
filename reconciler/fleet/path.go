package fleet

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/reconciler/workload"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/kust/reads"
	"github.com/weir-gitops/weir/render/redact"
	"github.com/weir-gitops/weir/render/secret"
	"github.com/weir-gitops/weir/render/sops"
	"github.com/weir-gitops/weir/render/tree"
	"github.com/weir-gitops/weir/source/snapshot"
)

// The identity of what is applied from a path instead of a repository.
const (
	PathInstance = "weir"
	pathSource   = "path"
)

// PathOptions describe one directory on disk that is applied as it stands.
type PathOptions struct {
	// Tree has the directory Dir, and is at Root on this machine.
	Tree      tree.Tree
	Root, Dir string
	// Head is the commit that the tree stands on; nil outside of a repository.
	Head   *snapshot.Snapshot
	Region string
	// Target defaults to the directory's name, Instance to PathInstance.
	Target   string
	Instance string
	// Vars are all used, or warned of.
	Vars map[string]string
	// SecretVars names the variables that are marked as secret, Decrypter opens
	// encrypted files.
	SecretVars []string
	Decrypter  *sops.Decrypter
	// Hide receives all secret values; nil receives none.
	Hide *redact.Registry
	// Kubeconfig is a file that says how to reach the cluster that the machines join;
	// empty: nothing of it is read, and no join tokens are kept.
	Kubeconfig string
	// Prune deletes what the directory no longer wants.
	Prune    bool
	Endpoint string
}

// OnCommandLine describes how to give a variable a value with a PATH.
const OnCommandLine = "with --var NAME=VALUE or --vars-file FILE"

// UnusedVariable warns of a value that was given on the command line for nothing.
func UnusedVariable(name string) diag.Diagnostic {
	return diag.Diagnostic{
		Severity: diag.Warning, Code: "value-unused", Summary: "no manifest uses the variable " + name + ", to which the command line gives a value",
		Detail: diag.Hint("value-unused"),
	}
}

// longestName is the maximum length of a target's name.
const longestName = 63

// TargetOf is the target's name in path mode: the one given, or that of the
// directory, or of the file without .yaml. One that is too long for a target ends
// in a hash of the whole, so that it stays one name for one path.
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
	if len(name) > longestName {
		sum := sha256.Sum256([]byte(name))
		end := "-" + hex.EncodeToString(sum[:4])
		name = name[:longestName-len(end)] + end
	}
	return name, nil
}

// Path makes the batch of one directory. An error is about reading it; what the
// user wrote wrongly is in the batch's diagnostics.
func Path(ctx context.Context, accounts Accounts, o PathOptions) (reconciler.Batch, error) {
	result, err := render.Render(ctx, o.Tree, o.Dir, render.Options{Vars: o.Vars, SecretVars: o.SecretVars, GiveValue: OnCommandLine, Decrypter: o.Decrypter})
	if err != nil {
		return reconciler.Batch{}, err
	}
	if o.Hide != nil {
		o.Hide.Set("target "+o.Target, result.Hidden)
	}
	d := reconciler.Desired{
		Policy: model.Policy{
			Instance: o.Instance, Target: o.Target, Source: pathSource, Sources: []string{pathSource}, Region: o.Region,
			OwnTargetOnly: true, JoinTokens: model.JoinTokens{Once: true}, Prune: model.Prune{Enabled: o.Prune, Silent: !o.Prune, Percent: model.DefaultPrunePercent},
		},
		Touched: true,
	}
	if o.Head != nil {
		d.Commit = commitIn(*o.Head, result.Reads)
	}
	key := reconciler.ScopeKey{Region: o.Region, Endpoint: o.Endpoint}
	unused, _ := result.Unused(slices.Sorted(maps.Keys(o.Vars)))
	for _, name := range unused {
		d.Diagnostics = append(d.Diagnostics, UnusedVariable(name))
	}
	fill(&d, result.Alone(), &key, nil)
	d.Origins = result.Origins
	mapDesired(&d, Readable(o.Root))
	if o.Kubeconfig != "" {
		d.Policy.JoinTokens.Prefix = targetspec.DefaultSSMPrefix
		cluster, err := workload.Open(o.Kubeconfig)
		if err == nil && o.Hide != nil {
			o.Hide.Set("kubeconfig "+o.Kubeconfig, secret.New(cluster.Credentials()...))
		}
		joins(&d, o.Kubeconfig, cluster, err)
	}
	batches := []reconciler.Batch{{Key: key, Targets: []reconciler.Desired{d}}}
	accounts.Attach(ctx, batches)
	return batches[0], nil
}

// commitIn returns a commit if everything that a build has read is the same there.
func commitIn(head snapshot.Snapshot, lookups reads.Set) content.Commit {
	if head.Tree == nil {
		return content.Commit{Subject: "uncommitted changes"}
	}
	if same, err := lookups.Same(head.Tree); err != nil || !same {
		return content.Commit{Subject: "uncommitted changes to " + head.Revision[:7] + " " + head.Subject}
	}
	return content.Commit{Revision: head.Revision, Subject: head.Subject}
}
