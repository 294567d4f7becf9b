package rules

import (
	"fmt"

	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// clusterName matches the cluster names that EKS accepts: CreateCluster in its API reference.
var clusterName = lazyregexp.New(`^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$`)

// checkControlPlane reports a cluster name that EKS does not accept.
func checkControlPlane(o *kinds.Decoded[kinds.AWSManagedControlPlaneSpec], r kinds.Reporter) {
	if name := o.Spec.EKSClusterName; name != "" && !clusterName.MatchString(name) {
		r.Error(path("spec", "eksClusterName"), "bad-name", fmt.Sprintf("%q is not a valid name for an EKS cluster", name), "EKS allows up to 100 letters, digits, - and _, beginning with a letter or digit")
	}
}
