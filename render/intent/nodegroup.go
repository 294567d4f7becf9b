package intent

// Nodegroup is the EKS managed nodegroup of an AWSManagedMachinePool. Values
// are EKS's own (ON_DEMAND, NO_SCHEDULE).
type Nodegroup struct {
	Name string `json:"name"`
	// Cluster asks for the EKS cluster, whose name is ClusterName.
	ClusterName string `json:"clusterName"`
	Cluster     Lookup `json:"cluster"`
	// Role asks for the node role's ARN.
	Role Lookup `json:"role"`
	// RoleChecks ask whether the role is as the manifest declares it. weir changes no roles.
	RoleChecks []Lookup `json:"roleChecks,omitempty"`
	Subnets    Lookup   `json:"subnets"`

	// MinSize and MaxSize are held only where written.
	MinSize Number `json:"minSize"`
	MaxSize Number `json:"maxSize"`

	NodegroupSettings
	// InstanceType is the instance type of a pool without InstanceTypes.
	InstanceType string `json:"instanceType,omitempty"`
	// RemoteAccessGroups fill RemoteAccess.SourceSecurityGroups.
	RemoteAccessGroups []Lookup `json:"remoteAccessGroups,omitempty"`
	// Force has version updates end pods that a disruption budget protects.
	Force bool `json:"force,omitempty"`
	// LifecycleHooks holds the hooks of the group behind the nodegroup, sorted by name.
	LifecycleHooks []LifecycleHook   `json:"lifecycleHooks,omitempty"`
	Tags           map[string]string `json:"tags,omitempty"`
}

// NodegroupSettings are the members of a nodegroup that are its own: sizes, subnets,
// role, launch template and tags aside. The same type says what Git declares and what a
// nodegroup has. Package field has a row for each.
type NodegroupSettings struct {
	// AMIType is EKS's amiType, empty where the launch template carries the image
	// and where a foreign template may: EKS then chooses unless it does.
	AMIType string `json:"amiType,omitempty"`
	// ReleaseVersion is amiVersion, empty for the newest.
	ReleaseVersion string `json:"releaseVersion,omitempty"`
	// Version is the Kubernetes version as major.minor, empty to follow the
	// control plane at creation.
	Version      string `json:"version,omitempty"`
	CapacityType string `json:"capacityType"`
	// InstanceTypes are in EKS's order of preference.
	InstanceTypes []string          `json:"instanceTypes,omitempty"`
	DiskSize      int32             `json:"diskSize,omitempty"` // GiB
	Labels        map[string]string `json:"labels,omitempty"`
	// Taints are sorted by key, then effect.
	Taints       []Taint       `json:"taints,omitempty"`
	RemoteAccess *RemoteAccess `json:"remoteAccess,omitempty"`
	UpdateConfig UpdateConfig  `json:"updateConfig"`
	// NodeRepair is nil where not written.
	NodeRepair *bool `json:"nodeRepair,omitempty"`
	// RepairOptions are held whole where they are written; nil where all is EKS's default.
	RepairOptions *RepairOptions `json:"repairOptions,omitempty"`
	// WarmPool is nil where not written.
	WarmPool *NodegroupWarmPool `json:"warmPool,omitempty"`
}

// Taint is a Kubernetes taint; Effect is NO_SCHEDULE, NO_EXECUTE or PREFER_NO_SCHEDULE.
type Taint struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Effect string `json:"effect"`
}

// RemoteAccess is remoteAccess of a nodegroup without a launch template.
type RemoteAccess struct {
	EC2SSHKey            string   `json:"ec2SshKey,omitempty"`
	SourceSecurityGroups []string `json:"sourceSecurityGroups,omitempty"`
}

// UpdateConfig holds exactly one of the two numbers, the other being 0.
type UpdateConfig struct {
	MaxUnavailable           int32 `json:"maxUnavailable,omitempty"`
	MaxUnavailablePercentage int32 `json:"maxUnavailablePercentage,omitempty"`
	// UpdateStrategy is DEFAULT or MINIMAL, empty where not written.
	UpdateStrategy string `json:"updateStrategy,omitempty"`
}

// RepairOptions are EKS's node repair beyond whether it is on; 0 is EKS's default.
type RepairOptions struct {
	MaxParallelNodesRepairedCount       int32            `json:"maxParallelNodesRepairedCount,omitempty"`
	MaxParallelNodesRepairedPercentage  int32            `json:"maxParallelNodesRepairedPercentage,omitempty"`
	MaxUnhealthyNodeThresholdCount      int32            `json:"maxUnhealthyNodeThresholdCount,omitempty"`
	MaxUnhealthyNodeThresholdPercentage int32            `json:"maxUnhealthyNodeThresholdPercentage,omitempty"`
	NodeRepairConfigOverrides           []RepairOverride `json:"nodeRepairConfigOverrides,omitempty"`
}

// RepairOverride says what EKS does about one condition of a node, and after how
// many minutes.
type RepairOverride struct {
	MinRepairWaitTimeMins   int32  `json:"minRepairWaitTimeMins"`
	NodeMonitoringCondition string `json:"nodeMonitoringCondition" check:"minlen=1"`
	NodeUnhealthyReason     string `json:"nodeUnhealthyReason" check:"minlen=1"`
	RepairAction            string `json:"repairAction"`
}

// NodegroupWarmPool is the warm pool of a nodegroup; members that are nil or empty
// have EKS's default.
type NodegroupWarmPool struct {
	Enabled                  *bool  `json:"enabled,omitempty"`
	MaxGroupPreparedCapacity *int32 `json:"maxGroupPreparedCapacity,omitempty"`
	MinSize                  *int32 `json:"minSize,omitempty"`
	PoolState                string `json:"poolState,omitempty"`
	ReuseOnScaleIn           *bool  `json:"reuseOnScaleIn,omitempty"`
}
