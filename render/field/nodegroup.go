package field

// nodegroup are the members of an EKS managed nodegroup: intent.NodegroupSettings. EKS
// changes most of what can be changed in requests of their own form.
var nodegroup = []Row{
	{AWS: "AmiType", Pool: "amiType", Replaces: true, Special: "plan: an image in the launch template excludes it"},
	{AWS: "ReleaseVersion", Pool: "amiVersion", By: "UpdateNodegroupVersion"},
	{AWS: "Version", Pool: "-", By: "UpdateNodegroupVersion", Special: "manifest: the MachinePool sets it"},
	{AWS: "CapacityType", Pool: "capacityType", Replaces: true, Special: "manifest: Cluster API Provider AWS has other words"},
	{AWS: "InstanceTypes", Replaces: true, Special: "manifest: a pool may name one in place of them"},
	{AWS: "DiskSize", Pool: "diskSize", Replaces: true, Doc: "in GiB"},
	{AWS: "RemoteAccess.Ec2SshKey", Pool: "remoteAccess.sshKeyName", Replaces: true},
	{AWS: "RemoteAccess.SourceSecurityGroups", Pool: "remoteAccess.sourceSecurityGroups", Replaces: true},
	{AWS: "Labels", Pool: "labels", Special: "plan: told and sent key by key"},
	{AWS: "Taints[].Key", Pool: "taints[].key", Special: taints},
	{AWS: "Taints[].Value", Pool: "taints[].value", Special: taints},
	{AWS: "Taints[].Effect", Pool: "taints[].effect", Special: taints},
	{AWS: "UpdateConfig.MaxUnavailable", Pool: "updateConfig.maxUnavailable", Special: whole},
	{AWS: "UpdateConfig.MaxUnavailablePercentage", Pool: "updateConfig.maxUnavailablePercentage|updateConfig.maxUnavailablePrecentage", Special: whole},
	{AWS: "UpdateConfig.UpdateStrategy", Required: true, Values: "DEFAULT|MINIMAL", Special: whole},
	{AWS: "NodeRepairConfig.Enabled", Member: "NodeRepair", Pool: "nodeRepairConfig.enabled", Special: whole},
	{AWS: "NodeRepairConfig.MaxParallelNodesRepairedCount", Member: "RepairOptions.MaxParallelNodesRepairedCount", Min: n(1), Special: whole},
	{AWS: "NodeRepairConfig.MaxParallelNodesRepairedPercentage", Member: "RepairOptions.MaxParallelNodesRepairedPercentage", Min: n(1), Max: n(100), Special: whole},
	{AWS: "NodeRepairConfig.MaxUnhealthyNodeThresholdCount", Member: "RepairOptions.MaxUnhealthyNodeThresholdCount", Min: n(1), Special: whole},
	{AWS: "NodeRepairConfig.MaxUnhealthyNodeThresholdPercentage", Member: "RepairOptions.MaxUnhealthyNodeThresholdPercentage", Min: n(1), Max: n(100), Special: whole},
	{AWS: overrides + "MinRepairWaitTimeMins", Member: "RepairOptions.NodeRepairConfigOverrides[].MinRepairWaitTimeMins", Required: true, Min: n(1), Special: whole},
	{AWS: overrides + "NodeMonitoringCondition", Member: "RepairOptions.NodeRepairConfigOverrides[].NodeMonitoringCondition", Required: true, Special: whole},
	{AWS: overrides + "NodeUnhealthyReason", Member: "RepairOptions.NodeRepairConfigOverrides[].NodeUnhealthyReason", Required: true, Special: whole},
	{AWS: overrides + "RepairAction", Member: "RepairOptions.NodeRepairConfigOverrides[].RepairAction", Required: true, Values: "Replace|Reboot|NoAction", Special: whole},
	{AWS: "WarmPoolConfig.Enabled", Member: "WarmPool.Enabled", Required: true, Special: whole},
	{AWS: "WarmPoolConfig.MaxGroupPreparedCapacity", Member: "WarmPool.MaxGroupPreparedCapacity", Min: n(-1), Special: whole},
	{AWS: "WarmPoolConfig.MinSize", Member: "WarmPool.MinSize", Min: n(0), Special: whole},
	{AWS: "WarmPoolConfig.PoolState", Member: "WarmPool.PoolState", Values: "STOPPED|RUNNING|HIBERNATED", Special: whole},
	{AWS: "WarmPoolConfig.ReuseOnScaleIn", Member: "WarmPool.ReuseOnScaleIn", Special: whole},
}

const (
	taints    = "plan: told together, and sent as what to add and what to remove"
	whole     = "plan: compared and sent as a whole, in which what nobody wrote stays"
	overrides = "NodeRepairConfig.NodeRepairConfigOverrides[]."
)
