package field

// nodegroup lists the members of an EKS managed nodegroup in intent.NodegroupSettings. EKS has separate
// request structures for most members that can change.
var nodegroup = []Row{
	{AWS: "AmiType", Pool: "amiType", Replaces: true, Special: "plan: an image in the launch template excludes it"},
	{AWS: "ReleaseVersion", Pool: "amiVersion", By: "UpdateNodegroupVersion"},
	{AWS: "Version", Pool: "-", By: "UpdateNodegroupVersion", Special: "manifest: the MachinePool sets it"},
	{AWS: "CapacityType", Pool: "capacityType", Replaces: true, Special: "manifest: Cluster API Provider AWS has other words"},
	{AWS: "InstanceTypes", Replaces: true, Special: "manifest: a pool may name one in place of them"},
	{AWS: "DiskSize", Pool: "diskSize", Replaces: true, Doc: "in GiB"},
	{AWS: "RemoteAccess.Ec2SshKey", Pool: "remoteAccess.sshKeyName", Replaces: true},
	{AWS: "RemoteAccess.SourceSecurityGroups", Pool: "remoteAccess.sourceSecurityGroups", Replaces: true},
	{AWS: "Labels", Pool: "labels"},
	{AWS: "Taints[].Key", Pool: "taints[].key"},
	{AWS: "Taints[].Value", Pool: "taints[].value"},
	{AWS: "Taints[].Effect", Pool: "taints[].effect"},
	{AWS: "UpdateConfig.MaxUnavailable", Pool: "updateConfig.maxUnavailable", Special: update},
	{AWS: "UpdateConfig.MaxUnavailablePercentage", Pool: "updateConfig.maxUnavailablePercentage|updateConfig.maxUnavailablePrecentage", Special: update},
	{AWS: "UpdateConfig.UpdateStrategy", Required: true, Values: "DEFAULT|MINIMAL", Special: update},
	{AWS: "NodeRepairConfig.Enabled", Member: "NodeRepair", Pool: "nodeRepairConfig.enabled", Absent: "false"},
	{AWS: "NodeRepairConfig.MaxParallelNodesRepairedCount", Member: "RepairOptions.MaxParallelNodesRepairedCount", Min: n(1)},
	{AWS: "NodeRepairConfig.MaxParallelNodesRepairedPercentage", Member: "RepairOptions.MaxParallelNodesRepairedPercentage", Min: n(1), Max: n(100)},
	{AWS: "NodeRepairConfig.MaxUnhealthyNodeThresholdCount", Member: "RepairOptions.MaxUnhealthyNodeThresholdCount", Min: n(1)},
	{AWS: "NodeRepairConfig.MaxUnhealthyNodeThresholdPercentage", Member: "RepairOptions.MaxUnhealthyNodeThresholdPercentage", Min: n(1), Max: n(100)},
	{AWS: overrides + "MinRepairWaitTimeMins", Member: "RepairOptions.NodeRepairConfigOverrides[].MinRepairWaitTimeMins", Required: true, Min: n(1)},
	{AWS: overrides + "NodeMonitoringCondition", Member: "RepairOptions.NodeRepairConfigOverrides[].NodeMonitoringCondition", Required: true},
	{AWS: overrides + "NodeUnhealthyReason", Member: "RepairOptions.NodeRepairConfigOverrides[].NodeUnhealthyReason", Required: true},
	{AWS: overrides + "RepairAction", Member: "RepairOptions.NodeRepairConfigOverrides[].RepairAction", Required: true, Values: "Replace|Reboot|NoAction"},
	{AWS: "WarmPoolConfig.Enabled", Member: "WarmPool.Enabled", Required: true},
	{AWS: "WarmPoolConfig.MaxGroupPreparedCapacity", Member: "WarmPool.MaxGroupPreparedCapacity", Min: n(-1), Special: "plan, awscloud: -1 stands for none, and clears it"},
	{AWS: "WarmPoolConfig.MinSize", Member: "WarmPool.MinSize", Min: n(0)},
	{AWS: "WarmPoolConfig.PoolState", Member: "WarmPool.PoolState", Values: "STOPPED|RUNNING|HIBERNATED"},
	{AWS: "WarmPoolConfig.ReuseOnScaleIn", Member: "WarmPool.ReuseOnScaleIn"},
}

// nodegroupBlocks has the members that UpdateNodegroupConfig changes as a whole or item by item, by name in
// the intent.
var nodegroupBlocks = map[string]Block{
	"Labels":        {Form: ByItem},
	"Taints":        {Form: ByItem},
	"RepairOptions": {Form: Whole, Absent: `{}`},
	"WarmPool":      {Form: Whole, Switch: "Enabled", Absent: `{"minSize": 0, "poolState": "STOPPED", "reuseOnScaleIn": false}`},
}

const (
	update    = "plan: one of two numbers, shown as one; a strategy that nobody wrote stays"
	overrides = "NodeRepairConfig.NodeRepairConfigOverrides[]."
)
