package fleet

import (
	"context"
	"errors"
	"fmt"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/targetspec"
	"github.com/weir-gitops/weir/reconciler/workload"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/secret"
)

// client is an opened kubeconfig.
type client struct {
	id      string
	cluster *workload.Cluster
}

// attachWorkload gives a target the client of the cluster that its machines join, if the configuration names
// a kubeconfig. A kubeconfig that cannot be used is an error of the target, but does not hold its other
// steps.
func (f *Fleet) attachWorkload(in *inputs, d *reconciler.Desired, t *targetspec.Target) {
	file := t.KubeconfigFile
	if file == "" {
		return
	}
	// The prefix also applies if the file is broken, so that the launch templates do not change.
	d.Policy.JoinTokens.Prefix = t.SSMPrefixes[0]
	if in.readOnly {
		return // its credentials allow writes, and a plan needs nothing from the cluster
	}
	cluster, err := f.cluster(file)
	setCluster(d, file, cluster, err)
}

// setCluster gives a target the client of a kubeconfig's cluster, or a diagnostic if the kubeconfig cannot be used.
func setCluster(d *reconciler.Desired, file string, cluster *workload.Cluster, err error) {
	if err != nil {
		d.Diagnostics = append(d.Diagnostics, unusable(file, err)).Sorted()
		d.Tokens = unreachable{"the kubeconfig " + file + " cannot be used"}
		return
	}
	d.Workload, d.Tokens, d.Drains = cluster, cluster, cluster
}

// cluster returns the client of a kubeconfig file. It returns the same client as long as the file is the same.
func (f *Fleet) cluster(file string) (*workload.Cluster, error) {
	k, err := workload.Load(file)
	if err != nil {
		return nil, err
	}
	have, known := f.clusters[file]
	if !known || have.id != k.ID() {
		c, err := k.Open()
		if err != nil {
			return nil, err
		}
		if known {
			have.cluster.Close() // closes idle connections; a request in flight continues
		}
		have = client{k.ID(), c}
		f.clusters[file] = have
	}
	f.o.hide("kubeconfig "+file, secret.New(have.cluster.Credentials()...))
	return have.cluster, nil
}

// unreachable represents a cluster with an unusable kubeconfig. Join tokens that are stored in AWS still
// count.
type unreachable struct{ why string }

func (u unreachable) fail() error {
	return &workload.Error{Kind: workload.Unauthorized, Message: u.why}
}

// ClusterInfo fails.
func (u unreachable) ClusterInfo(context.Context) (workload.ClusterInfo, error) {
	return workload.ClusterInfo{}, u.fail()
}

// Secrets fails.
func (u unreachable) Secrets(context.Context, string, map[string]string) ([]workload.Secret, error) {
	return nil, u.fail()
}

// CreateSecret fails.
func (u unreachable) CreateSecret(context.Context, workload.Secret) (workload.Secret, error) {
	return workload.Secret{}, u.fail()
}

// DeleteSecret fails.
func (u unreachable) DeleteSecret(context.Context, string, string, string) error { return u.fail() }

func unusable(file string, err error) diag.Diagnostic {
	out := diag.Diagnostic{Severity: diag.Error, Code: "kubeconfig-unusable", Summary: err.Error(), Detail: diag.Hint("kubeconfig-unusable"), Position: diag.Position{File: file}}
	var bad *workload.BadKubeconfig
	if errors.As(err, &bad) {
		out.Summary, out.Detail = fmt.Sprintf("the kubeconfig of the target cannot be used: %s", bad.Summary), bad.Advice
	}
	return out
}
