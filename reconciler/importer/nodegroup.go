package importer

import (
	"path"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

// usualDisk returns the default disk size of nodegroups, in GiB.
// Assumed of AWS: nodegroup-defaults.
func usualDisk(amiType string) int32 {
	if strings.HasPrefix(amiType, "WINDOWS") {
		return 50
	}
	return 20
}

// nodegroup makes a pool of a nodegroup. The manifest contains the nodegroup's name.
func (m *maker) nodegroup(n observed.Nodegroup) Pool {
	p := Pool{Kind: intent.NodegroupPool, Name: n.Name, Cluster: n.Cluster}
	if why := refuse(n.Tags); why != "" {
		return p.refused(why)
	}
	switch n.Status {
	case "ACTIVE", "DEGRADED", "UPDATING":
	default:
		return p.refused("it is " + n.Status)
	}
	custom := n.AMIType == "CUSTOM"
	version := n.Version
	if custom { // the template has the image
		n.AMIType, n.ReleaseVersion, version = "", "", ""
	}
	spec := map[string]any{
		"eksNodegroupName": n.Name, "roleName": path.Base(n.NodeRole), "subnetIDs": plain(n.SubnetIDs),
		"scaling": map[string]any{"minSize": n.MinSize, "maxSize": n.MaxSize},
	}
	if n.DiskSize == usualDisk(n.AMIType) {
		n.DiskSize = 0 // the default of EKS; spec.diskSize is the older form
	}
	options := map[string]any{}
	fields(field.Nodegroup, n.NodegroupSettings, spec, options)
	if a := n.RemoteAccess; a != nil && len(a.SourceSecurityGroups) == 0 {
		put(spec, []string{"remoteAccess", "public"}, nil, true)
	}
	if own := additionalTags(n.Tags); len(own) > 0 {
		spec["additionalTags"] = own
	}
	if version != "" {
		version = "v" + strings.TrimPrefix(version, "v") + ".0"
	}
	key := m.key(n)
	return m.finish(p, finish{key: key, spec: spec, options: options, source: source{ref: n.Template}, ownName: clusterName(m.state, n.Cluster) + "-" + key, version: version})
}
