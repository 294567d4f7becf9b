package manifest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest"
)

const linux = "amiType: AL2023_x86_64_STANDARD\n"

func managedWithOptions(t *testing.T, pool, nodegroup string) (intent.Set, []string) {
	t.Helper()
	set, faults := manifest.Intents(objects(t, stream(machinePool("AWSManagedMachinePool", "", noBootstrap), managedPool(pool),
		options("extra", "AWSManagedMachinePool", "nodegroup:\n  "+indent(2, nodegroup)), eksCluster)), manifest.Options{})
	return set, pairs(faults)
}

func TestPoolOptionsOfANodegroup(t *testing.T) {
	yes, no, four := true, false, int32(4)
	set, faults := managedWithOptions(t, linux+"nodeRepairConfig: {enabled: true}\nupdateConfig: {maxUnavailable: 2}",
		"force: true\ninstanceTypes: [m5.large, m5a.large]\nnodeRepairConfig: {maxParallelNodesRepairedCount: 2}\nupdateConfig: {updateStrategy: MINIMAL}\nwarmPoolConfig: {enabled: true, maxGroupPreparedCapacity: 4, reuseOnScaleIn: false}")
	if len(faults) > 0 || len(set.Pools) != 1 {
		t.Fatalf("%d pools, %v", len(set.Pools), faults)
	}
	n := set.Pools[0].Nodegroup
	want := intent.Nodegroup{
		Force: true, NodegroupSettings: intent.NodegroupSettings{InstanceTypes: []string{"m5.large", "m5a.large"}, RepairOptions: &intent.RepairOptions{MaxParallelNodesRepairedCount: 2},
			UpdateConfig: intent.UpdateConfig{MaxUnavailable: 2, UpdateStrategy: "MINIMAL"},
			WarmPool:     &intent.NodegroupWarmPool{Enabled: &yes, MaxGroupPreparedCapacity: &four, ReuseOnScaleIn: &no}},
	}
	got := intent.Nodegroup{Force: n.Force, NodegroupSettings: intent.NodegroupSettings{InstanceTypes: n.InstanceTypes, RepairOptions: n.RepairOptions, UpdateConfig: n.UpdateConfig, WarmPool: n.WarmPool}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("options (-want +got):\n%s", d)
	}
}

func TestPoolOptionsOfANodegroupRules(t *testing.T) {
	for name, tt := range map[string]struct {
		pool, options string
		want          []string
	}{
		"what the pool has": {linux, "labels: {a: b}\nsubnets: [subnet-00000001]\nversion: '1.33'\nupdateConfig: {maxUnavailable: 1}\nnodeRepairConfig: {enabled: true}",
			[]string{"unknown-field spec.nodegroup.labels", "unknown-field spec.nodegroup.nodeRepairConfig.enabled", "unknown-field spec.nodegroup.subnets",
				"unknown-field spec.nodegroup.updateConfig.maxUnavailable", "missing-required spec.nodegroup.updateConfig.updateStrategy", "unknown-field spec.nodegroup.version"}},
		"one type and many": {linux + "instanceType: m5.large", "instanceTypes: [m5a.large]", []string{"exclusive spec.nodegroup.instanceTypes - AWSManagedMachinePool spec.instanceType"}},
		"a type in the template": {linux + "awsLaunchTemplate: {instanceType: m5.large}", "instanceTypes: [m5a.large]",
			[]string{"exclusive spec.nodegroup.instanceTypes - AWSManagedMachinePool spec.awsLaunchTemplate.instanceType"}},
		"a type twice":        {linux, "instanceTypes: [m5.large, m5.large]", []string{"duplicate spec.nodegroup.instanceTypes[1] - PoolOptions spec.nodegroup.instanceTypes[0]"}},
		"two architectures":   {linux, "instanceTypes: [m5.large, m6g.large]", []string{"architecture-mismatch spec.nodegroup.instanceTypes[1] - AWSManagedMachinePool spec.amiType", "mixed-architectures spec.nodegroup.instanceTypes[1] - PoolOptions spec.nodegroup.instanceTypes[0]"}},
		"counts and shares":   {linux, "nodeRepairConfig: {maxParallelNodesRepairedCount: 1, maxParallelNodesRepairedPercentage: 1}", []string{"exclusive spec.nodegroup.nodeRepairConfig.maxParallelNodesRepairedPercentage"}},
		"no such strategy":    {linux, "updateConfig: {updateStrategy: minimal}", []string{"bad-enum spec.nodegroup.updateConfig.updateStrategy"}},
		"warm with an image":  {"amiType: CUSTOM\nawsLaunchTemplate: {ami: {id: ami-00000001}}", "warmPoolConfig: {enabled: true}", []string{"exclusive spec.nodegroup.warmPoolConfig"}},
		"hibernated rockets":  {"amiType: BOTTLEROCKET_x86_64", "warmPoolConfig: {enabled: true, poolState: HIBERNATED}", []string{"exclusive spec.nodegroup.warmPoolConfig.poolState"}},
		"reused rockets":      {"amiType: BOTTLEROCKET_x86_64", "warmPoolConfig: {enabled: true, reuseOnScaleIn: true}", []string{"exclusive spec.nodegroup.warmPoolConfig.reuseOnScaleIn"}},
		"more than there are": {linux, "warmPoolConfig: {enabled: true, minSize: 3, maxGroupPreparedCapacity: 2}", []string{"out-of-range spec.nodegroup.warmPoolConfig.minSize"}},
		"neither on nor off":  {linux, "warmPoolConfig: {minSize: 3}", []string{"missing-required spec.nodegroup.warmPoolConfig.enabled"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, got := managedWithOptions(t, tt.pool, tt.options)
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("errors (-want +got):\n%s", d)
			}
		})
	}
}
