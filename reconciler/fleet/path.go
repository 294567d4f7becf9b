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

// The identity of a directory that is applied without a repository.
const (
	PathInstance = "weir"
	pathSource   = "path"
)

// PathOptions describe a directory on disk to apply as it is.
type PathOptions struct {
	// Tree contains the directory Dir. Its root is Root on this machine.
	Tree      tree.Tree
	Root, Dir string
	// Head is the checked-out commit. It is nil outside a repository.
	Head   *snapshot.Snapshot
	Region string
	// Target defaults to the directory's name and Instance to PathInstance.
	Target   string
	Instance string
	// Vars contains variables. weir warns of a variable that no manifest uses.
	Vars map[string]string
	// SecretVars names the variables that are marked as secret. Decrypter decrypts encrypted files.
	SecretVars []string
	Decrypter  *sops.Decrypter
	// Hide receives all secret values. It may be nil.
	Hide *redact.Registry
	// Kubeconfig is a file for access to the cluster that the machines join. If it is empty, weir does not
	// read that cluster and keeps no join tokens.
	Kubeconfig string
	// Prune deletes resources that the directory no longer contains.
	Prune    bool
	Endpoint string
}

// OnCommandLine describes how to give a variable a value with a PATH.
const OnCommandLine = "with --var NAME=VALUE or --vars-file FILE"

// UnusedVariable returns a warning about a variable on the command line that no manifest uses.
func UnusedVariable(name string) diag.Diagnostic {
	return diag.Diagnostic{
		Severity: diag.Warning, Code: "value-unused", Summary: "no manifest uses the variable " + name + ", to which the command line gives a value",
		Detail: diag.Hint("value-unused"),
	}
}

// longestName is the maximum length of a target's name.
const longestName = 63

// TargetOf returns the target's name in path mode. It is the given name, else the name of the directory, or
// of the file without .yaml. A name that is too long ends in a hash of the whole name, so that a path always
// has the same name.
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

// Path makes the batch of one directory. It returns an error if the directory cannot be read. Faults in the
// manifests become diagnostics of the batch.
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
		setCluster(&d, o.Kubeconfig, cluster, err)
	}
	batches := []reconciler.Batch{{Key: key, Targets: []reconciler.Desired{d}}}
	accounts.Attach(ctx, batches)
	return batches[0], nil
}

// commitIn returns the head commit if everything that a build has read is the same in it.
func commitIn(head snapshot.Snapshot, lookups reads.Set) content.Commit {
	if head.Tree == nil {
		return content.Commit{Subject: "uncommitted changes"}
	}
	if same, err := lookups.Same(head.Tree); err != nil || !same {
		return content.Commit{Subject: "uncommitted changes to " + head.Revision[:7] + " " + head.Subject}
	}
	return content.Commit{Revision: head.Revision, Subject: head.Subject}
}
