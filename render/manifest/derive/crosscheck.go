package derive

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/nearest"
)

// checkClusterKnown reports a pool whose Cluster is not in the render although the render has other Clusters.
// The name is then likely misspelled. It also reports a pool whose Cluster the build renamed. A render
// without any Cluster is fine, as another directory may declare clusters.
func (b *Builder) checkClusterKnown(mp *kinds.Decoded[kinds.MachinePoolSpec]) {
	kind := intent.PoolKind(mp.Spec.Template.Spec.InfrastructureRef.Kind)
	key := intent.Key{Namespace: mp.Key().Namespace, Name: mp.Spec.ClusterName}
	if _, known := b.clusters[key]; known || key.Name == "" || kind != intent.GroupPool && kind != intent.NodegroupPool {
		return
	}
	r, at := mp.Reporter(b.faults), path("spec", "clusterName")
	if b.renamed != nil {
		if now, ok := b.renamed("Cluster", key.Name); ok {
			mp.Broken = true
			r.Error(at, "reference-not-found", fmt.Sprintf("Cluster %q, to which %s refers, is not in the render", key.Name, mp.Ref()),
				fmt.Sprintf("the build renamed it to %q and did not change the reference: kustomize needs a nameReference configuration for kind Cluster "+
					"with the fields spec/clusterName and spec/template/spec/clusterName of MachinePool", now))
			return
		}
	}
	if len(b.clusters) == 0 {
		return
	}
	var names []string
	for k := range b.clusters {
		if k.Namespace == key.Namespace {
			names = append(names, k.Name)
		}
	}
	slices.Sort(names)
	detail := "its tags, its network and whether it is paused are not known"
	if near := nearest.Word(key.Name, names); near != "" {
		detail = fmt.Sprintf("did you mean %q? %s", near, detail)
	}
	r.Warn(at, "cluster-not-in-render", fmt.Sprintf("Cluster %s is not in the render, but other clusters are", key), detail)
}

// sizeOrder compares parts of user data, with the largest part first.
func sizeOrder(a, b part) int { return cmp.Or(cmp.Compare(b.size, a.size), slices.Compare(a.at, b.at)) }
