package intent

// Nodegroup is the EKS managed nodegroup of an AWSManagedMachinePool. Values are those of the EKS API
// (ON_DEMAND, NO_SCHEDULE).
type Nodegroup struct {
	Name string `json:"name"`
	// Cluster asks for the EKS cluster named ClusterName.
	ClusterName string `json:"clusterName"`
	Cluster     Lookup `json:"cluster"`
	// Role asks for the ARN of the node role.
	Role Lookup `json:"role"`
	// RoleChecks ask whether the role matches the manifest. weir does not change roles.
	RoleChecks []Lookup `json:"roleChecks,omitempty"`
	Subnets    Lookup   `json:"subnets"`

	// MinSize and MaxSize are compared with AWS only if they are written.
	MinSize Number `json:"minSize"`
	MaxSize Number `json:"maxSize"`

	NodegroupSettings
	// InstanceType is the instance type of a pool that has no InstanceTypes.
	InstanceType string `json:"instanceType,omitempty"`
	// The answers to RemoteAccessGroups are added to RemoteAccess.SourceSecurityGroups.
	RemoteAccessGroups []Lookup `json:"remoteAccessGroups,omitempty"`
	// Force makes version updates evict pods even if a disruption budget protects them.
	Force bool `json:"force,omitempty"`
	// LifecycleHooks are the hooks of the nodegroup's Auto Scaling group, sorted by name.
	LifecycleHooks []LifecycleHook   `json:"lifecycleHooks,omitempty"`
	Tags           map[string]string `json:"tags,omitempty"`
}

// NodegroupSettings are the settings of a nodegroup itself. They do not include sizes, subnets, role, launch
// template and tags. The type serves both for the desired settings in Git and for the settings that a
// nodegroup has. Package field has a row for each member.
type NodegroupSettings struct {
	// AMIType is EKS's amiType. It is empty if the launch template has the image. It is also empty for a
	// foreign template, which may have one; if it does not, EKS chooses.
	AMIType string `json:"amiType,omitempty"`
	// ReleaseVersion is amiVersion. Empty means the newest.
	ReleaseVersion string `json:"releaseVersion,omitempty"`
	// Version is the Kubernetes version as major.minor. If it is empty, a new nodegroup gets the version of
	// the control plane.
	Version      string `json:"version,omitempty"`
	CapacityType string `json:"capacityType"`
	// InstanceTypes are in EKS's order of preference.
	InstanceTypes []string          `json:"instanceTypes,omitempty"`
	DiskSize      int32             `json:"diskSize,omitempty"` // GiB
	Labels        map[string]string `json:"labels,omitempty"`
	// Taints are sorted by key, then by effect.
	Taints       []Taint       `json:"taints,omitempty"`
	RemoteAccess *RemoteAccess `json:"remoteAccess,omitempty"`
	UpdateConfig UpdateConfig  `json:"updateConfig"`
	// NodeRepair is nil if it is not written.
	NodeRepair *bool `json:"nodeRepair,omitempty"`
	// RepairOptions are compared as a whole. Nil means that everything has EKS's default.
	RepairOptions *RepairOptions `json:"repairOptions,omitempty"`
	// WarmPool is nil if it is not written.
	WarmPool *NodegroupWarmPool `json:"warmPool,omitempty"`
}

// Taint is a Kubernetes taint; Effect is NO_SCHEDULE, NO_EXECUTE or PREFER_NO_SCHEDULE.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

// RemoteAccess is remoteAccess of a nodegroup that has no launch template.
type RemoteAccess struct {
	EC2SSHKey            string   `json:"ec2SshKey,omitempty"`
	SourceSecurityGroups []string `json:"sourceSecurityGroups,omitempty"`
}

// UpdateConfig has exactly one of the two numbers. The other is 0.
type UpdateConfig struct {
	MaxUnavailable           int32 `json:"maxUnavailable,omitempty"`
	MaxUnavailablePercentage int32 `json:"maxUnavailablePercentage,omitempty"`
	// UpdateStrategy is DEFAULT or MINIMAL, or empty if it is not written.
	UpdateStrategy string `json:"updateStrategy,omitempty"`
}

// RepairOptions are the options of EKS's node repair, except for the switch. 0 means EKS's default.
type RepairOptions struct {
	MaxParallelNodesRepairedCount       int32            `json:"maxParallelNodesRepairedCount,omitempty"`
	MaxParallelNodesRepairedPercentage  int32            `json:"maxParallelNodesRepairedPercentage,omitempty"`
	MaxUnhealthyNodeThresholdCount      int32            `json:"maxUnhealthyNodeThresholdCount,omitempty"`
	MaxUnhealthyNodeThresholdPercentage int32            `json:"maxUnhealthyNodeThresholdPercentage,omitempty"`
	NodeRepairConfigOverrides           []RepairOverride `json:"nodeRepairConfigOverrides,omitempty"`
}

// RepairOverride is EKS's reaction to a condition of a node, and the number of minutes before it.
type RepairOverride struct {
	MinRepairWaitTimeMins   int32  `json:"minRepairWaitTimeMins"`
	NodeMonitoringCondition string `json:"nodeMonitoringCondition" check:"minlen=1"`
	NodeUnhealthyReason     string `json:"nodeUnhealthyReason" check:"minlen=1"`
	RepairAction            string `json:"repairAction"`
}

// NodegroupWarmPool is the warm pool of a nodegroup. Nil and empty members mean EKS's default.
type NodegroupWarmPool struct {
	Enabled                  *bool  `json:"enabled,omitempty"`
	MaxGroupPreparedCapacity *int32 `json:"maxGroupPreparedCapacity,omitempty"`
	MinSize                  *int32 `json:"minSize,omitempty"`
	PoolState                string `json:"poolState,omitempty"`
	ReuseOnScaleIn           *bool  `json:"reuseOnScaleIn,omitempty"`
}
