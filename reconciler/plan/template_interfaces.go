package plan

import (
	"slices"

	"github.com/weir-gitops/weir/render/intent"
)

// placeGroups moves the security groups into the network interfaces where there
// are any: EC2 refuses groups of the instance beside them (SecurityGroupIds of
// RequestLaunchTemplateData). An interface with groups of its own keeps those;
// without any it would get the VPC's default group.
func placeGroups(d *intent.TemplateData) {
	if len(d.NetworkInterfaces) == 0 {
		return
	}
	d.NetworkInterfaces = slices.Clone(d.NetworkInterfaces)
	for i := range d.NetworkInterfaces {
		n := &d.NetworkInterfaces[i]
		if len(n.Groups) == 0 {
			n.Groups = d.SecurityGroupIDs
			continue
		}
		n.Groups = slices.Compact(slices.Sorted(slices.Values(n.Groups)))
	}
	d.SecurityGroupIDs = nil
}
