package derive

import "fmt"

// Limits of tags: "Tag restrictions" in the user guide of EC2.
const (
	maxTagKey   = 128
	maxTagValue = 256
)

// checkTagLengths reports names of clusters and pools that do not fit into the
// tags that CAPA and weir make of them. An Auto Scaling group's name needs no
// check: it is its launch template's, which must be shorter.
func (d *Derived) checkTagLengths() {
	prefix := tagCloudCluster
	if d.LaunchTemplate != nil {
		prefix = tagCAPACluster // the longer one, which nodegroups do not carry
	}
	if key := prefix + d.Cluster.TagName; len(key) > maxTagKey {
		d.AtMachinePool.Error(path("spec", "clusterName"), "bad-tag", fmt.Sprintf("the tag key %q has %d characters; AWS takes %d", key, len(key), maxTagKey),
			fmt.Sprintf("the cluster's name may have %d characters", maxTagKey-len(prefix)))
	}
	if n := len(d.Key.String()); n > maxTagValue {
		d.AtMachinePool.Error(path("metadata", "name"), "bad-tag", fmt.Sprintf("namespace and name have %d characters; the tag weir.dev/pool takes %d", n, maxTagValue), "shorten one of them")
	}
}
