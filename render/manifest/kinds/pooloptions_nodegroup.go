package kinds

import "github.com/weir-gitops/weir/render/intent"

var OptionsNodegroup = path("spec", "nodegroup")

// NodegroupOptions are the members of EKS's CreateNodegroup, UpdateNodegroupConfig
// and UpdateNodegroupVersion that AWSManagedMachinePool does not have.
type NodegroupOptions struct {
	// Force is UpdateNodegroupVersion's: an update ends pods that a disruption
	// budget protects.
	Force            bool                      `json:"force"`
	InstanceTypes    []string                  `json:"instanceTypes"`
	NodeRepairConfig *RepairOptions            `json:"nodeRepairConfig"`
	UpdateConfig     *UpdateOptions            `json:"updateConfig"`
	WarmPoolConfig   *intent.NodegroupWarmPool `json:"warmPoolConfig"`
}

func (NodegroupOptions) unknownHint(name string) string {
	at, ofPool := nodegroupOfPool()[name]
	switch {
	case ofPool:
		return "write spec." + at + " in the pool"
	case name == "version":
		return "write spec.template.spec.version in the MachinePool"
	}
	return ""
}

// nodegroupOfPool are EKS's members that a pool's own manifests set, with the
// field below spec that does so.
func nodegroupOfPool() map[string]string {
	return map[string]string{
		"amiType": "amiType", "capacityType": "capacityType", "diskSize": "diskSize", "labels": "labels", "launchTemplate": "awsLaunchTemplate",
		"nodeRole": "roleName", "nodegroupName": "eksNodegroupName", "releaseVersion": "amiVersion", "remoteAccess": "remoteAccess",
		"scalingConfig": "scaling", "subnets": "subnetIDs", "tags": "additionalTags", "taints": "taints",
	}
}

// RepairOptions are EKS's node repair beyond switching it on.
type RepairOptions struct{ intent.RepairOptions }

func (RepairOptions) unknownHint(name string) string {
	if name == "enabled" {
		return "write spec.nodeRepairConfig.enabled in the pool"
	}
	return ""
}

// UpdateOptions are EKS's update configuration beyond how many nodes may be away.
type UpdateOptions struct{ intent.UpdateConfig }

func (UpdateOptions) unknownHint(name string) string {
	switch name {
	case "maxUnavailable", "maxUnavailablePercentage":
		return "write spec.updateConfig." + name + " in the pool"
	}
	return ""
}
