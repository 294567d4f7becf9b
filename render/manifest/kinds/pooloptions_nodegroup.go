package kinds

import (
	rows "github.com/weir-gitops/weir/render/field"
	"github.com/weir-gitops/weir/render/intent"
)

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
	if name == "version" {
		return "write spec.template.spec.version in the MachinePool"
	}
	return inPool(rows.Nodegroup, name)
}

// RepairOptions are EKS's node repair beyond switching it on.
type RepairOptions struct{ intent.RepairOptions }

func (RepairOptions) unknownHint(name string) string {
	return inPool(rows.Nodegroup, "nodeRepairConfig."+name)
}

// UpdateOptions are EKS's update configuration beyond how many nodes may be away.
type UpdateOptions struct{ intent.UpdateConfig }

func (UpdateOptions) unknownHint(name string) string {
	return inPool(rows.Nodegroup, "updateConfig."+name)
}
