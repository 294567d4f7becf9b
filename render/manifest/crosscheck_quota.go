package manifest

import (
	"fmt"
	"regexp"
)

// Limits of tags: "Tag restrictions" in the user guide of EC2.
const (
	maxTagKey   = 128
	maxTagValue = 256
)

// clusterName is what EKS takes for a cluster's name: CreateCluster in its API
// reference.
var clusterName = regexp.MustCompile(`^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$`)

// checkTagLengths reports names of clusters and pools that do not fit into the
// tags that CAPA and weir make of them. An Auto Scaling group's name needs no
// check: it is its launch template's, which must be shorter.
func (d *draft) checkTagLengths() {
	prefix := tagCloudCluster
	if d.LaunchTemplate != nil {
		prefix = tagCAPACluster // the longer one, which nodegroups do not carry
	}
	if key := prefix + d.cluster.tagName(); len(key) > maxTagKey {
		d.mp.error(path("spec", "clusterName"), "bad-tag", fmt.Sprintf("the tag key %q has %d characters; AWS takes %d", key, len(key), maxTagKey),
			fmt.Sprintf("the cluster's name may have %d characters", maxTagKey-len(prefix)))
	}
	if n := len(d.Key.String()); n > maxTagValue {
		d.mp.error(path("metadata", "name"), "bad-tag", fmt.Sprintf("namespace and name have %d characters; the tag weir.dev/pool takes %d", n, maxTagValue), "shorten one of them")
	}
}

// checkControlPlane reports a name that EKS does not take.
func checkControlPlane(o *object[AWSManagedControlPlaneSpec], r reporter) {
	if name := o.Spec.EKSClusterName; name != "" && !clusterName.MatchString(name) {
		r.error(path("spec", "eksClusterName"), "bad-name", fmt.Sprintf("%q is no name for an EKS cluster", name), "EKS takes up to 100 letters, digits, - and _, beginning with a letter or digit")
	}
}
