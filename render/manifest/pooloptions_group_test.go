package manifest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/manifest"
)

const mixedPool = "mixedInstancesPolicy: {overrides: [{instanceType: m5.large}, {instanceType: m5.xlarge}]}"

// TestGroupOptionsRules: what Auto Scaling refuses is refused before it is asked.
func TestGroupOptionsRules(t *testing.T) {
	requirements := "{memoryMiB: {min: 0}, vCpuCount: {min: 1}}"
	tests := map[string]struct {
		pool, options string
		want          []string // without spec.autoScalingGroup.
	}{
		"set by the pool":   {"", "minSize: 1\ndefaultCooldown: 3\nmixedInstancesPolicy: {instancesDistribution: {spotAllocationStrategy: lowest-price}}\nrefreshPreferences: {disable: true}", []string{"unknown-field defaultCooldown", "unknown-field minSize - AWSMachinePool spec.minSize", "unknown-field mixedInstancesPolicy.instancesDistribution.spotAllocationStrategy", "unknown-field refreshPreferences.disable"}},
		"a name":            {"", "name: Team/Web_Workers.(1)~", nil},
		"no name":           {"", "name: ''", []string{"out-of-range name"}},
		"a name with :":     {"", "name: 'a:b'", []string{"bad-value name"}},
		"a name with a gap": {"", "name: a b", []string{"bad-value name"}},
		"no ASCII":          {"", "name: wörk", []string{"bad-value name"}},
		"the longest name":  {"", "name: " + strings.Repeat("x", 255), nil},
		"a longer name":     {"", "name: " + strings.Repeat("x", 256), []string{"out-of-range name"}},
		"AWS's word for it": {"", "autoScalingGroupName: web", []string{"unknown-field autoScalingGroupName"}},
		"reserved by AWS":   {"", "context: x", []string{"unknown-field context"}},
		"health checks":     {"", "healthCheckType: ELB, EC2\nhealthCheckGracePeriod: -1", []string{"out-of-range healthCheckGracePeriod", "bad-enum healthCheckType"}},
		"no health check":   {"", "healthCheckType: EC3", []string{"bad-enum healthCheckType"}},
		"terminations":      {"", "terminationPolicies: [Default, Oldest, Default]\nmaxInstanceLifetime: 60", []string{"out-of-range maxInstanceLifetime", "bad-value terminationPolicies[1]", "duplicate terminationPolicies[2]"}},
		"no termination":    {"", "terminationPolicies: []", []string{"out-of-range terminationPolicies"}},
		"a function":        {"", "terminationPolicies: ['arn:aws:lambda:eu-west-1:000000000000:function:end:live']", nil},
		"maintenance":       {"", "instanceMaintenancePolicy: {minHealthyPercentage: 50, maxHealthyPercentage: 200}", []string{"out-of-range instanceMaintenancePolicy"}},
		"half of it":        {"", "instanceMaintenancePolicy: {minHealthyPercentage: -1, maxHealthyPercentage: 120}", []string{"out-of-range instanceMaintenancePolicy"}},
		"none of it":        {"", "instanceMaintenancePolicy: {minHealthyPercentage: -1, maxHealthyPercentage: -1}", nil},
		"traffic twice":     {"", "targetGroupARNs: []\ntrafficSources: []", []string{"exclusive targetGroupARNs"}},
		"traffic":           {"", "targetGroupARNs: [web]\nloadBalancerNames: ['arn:x']", []string{"bad-value loadBalancerNames[0]", "bad-value targetGroupARNs[0]"}},
		"kinds of traffic":  {"", "trafficSources: [{identifier: old}, {identifier: 'arn:aws:vpc-lattice:eu-west-1:000000000000:targetgroup/tg-1', type: elbv2}]", []string{"mismatch trafficSources[0].type", "mismatch trafficSources[1].type"}},
		"reservations":      {"", "capacityReservationSpecification: {capacityReservationPreference: none, capacityReservationTarget: {capacityReservationIds: [x]}}", []string{"exclusive capacityReservationSpecification.capacityReservationTarget", "bad-id capacityReservationSpecification.capacityReservationTarget.capacityReservationIds[0]"}},
		"no reservations":   {"", "capacityReservationSpecification: {capacityReservationTarget: {}}", []string{"incomplete capacityReservationSpecification.capacityReservationTarget"}},
		"metrics":           {"", "metricsCollection: {granularity: 5Minutes, metrics: [GroupMinSizes]}", []string{"bad-enum metricsCollection.granularity", "bad-value metricsCollection.metrics[0]"}},
		"no and a pool":     {"", "deleteWarmPool: true\nwarmPool: {minSize: 3, maxGroupPreparedCapacity: 2}", []string{"exclusive deleteWarmPool", "out-of-range warmPool.minSize"}},
		"a warm spot pool":  {"mixedInstancesPolicy: {instancesDistribution: {onDemandPercentageAboveBaseCapacity: 50}}", "warmPool: {}", []string{"exclusive warmPool - AWSMachinePool spec.mixedInstancesPolicy.instancesDistribution.onDemandPercentageAboveBaseCapacity"}},
		"checkpoints":       {"", "refreshPreferences: {checkpointDelay: 5}", []string{"incomplete refreshPreferences.checkpointDelay"}},
		"falling":           {"", "refreshPreferences: {checkpointPercentages: [50, 20, 100], bakeTime: 200000, standbyInstances: Refresh}", []string{"out-of-range refreshPreferences.bakeTime", "out-of-range refreshPreferences.checkpointPercentages[1]", "bad-enum refreshPreferences.standbyInstances"}},
		"alarms":            {"", "refreshPreferences: {alarmSpecification: {alarms: ['']}}", []string{"bad-value refreshPreferences.alarmSpecification.alarms[0]"}},
		"root volumes":      {mixedPool, "refreshPreferences: {strategy: ReplaceRootVolume}", nil},
		"of no policy":      {"", "refreshPreferences: {strategy: ReplaceRootVolume}", []string{"incomplete refreshPreferences.strategy"}},
		"twice":             {mixedPool + "\nrefreshPreferences: {strategy: Rolling}", "refreshPreferences: {strategy: ReplaceRootVolume}\nwarmPool: {}", []string{"exclusive refreshPreferences.strategy", "exclusive refreshPreferences.strategy"}},
		"volumes by need":   {"", "refreshPreferences: {strategy: ReplaceRootVolume}\nmixedInstancesPolicy: {overrides: [{instanceRequirements: " + requirements + "}]}", []string{"exclusive refreshPreferences.strategy"}},
		"another strategy":  {mixedPool, "refreshPreferences: {strategy: Replace}", []string{"bad-enum refreshPreferences.strategy"}},
		"units":             {"", "desiredCapacityType: vcpu", []string{"incomplete desiredCapacityType"}},
		"weights of some":   {mixedPool, "mixedInstancesPolicy: {overrides: [{instanceType: m5.large, weightedCapacity: '1'}]}", []string{"incomplete mixedInstancesPolicy.overrides"}},
		"heavy":             {mixedPool, "mixedInstancesPolicy: {overrides: [{instanceType: m5.large, weightedCapacity: '1000'}, {instanceType: m5.large}, {weightedCapacity: x}]}", []string{"bad-value mixedInstancesPolicy.overrides[0].weightedCapacity", "duplicate mixedInstancesPolicy.overrides[1].instanceType", "exclusive mixedInstancesPolicy.overrides[2] - AWSMachinePool spec.mixedInstancesPolicy.overrides", "missing-required mixedInstancesPolicy.overrides[2]", "bad-value mixedInstancesPolicy.overrides[2].weightedCapacity"}},
		"another type":      {mixedPool, "mixedInstancesPolicy: {overrides: [{instanceType: m5.2xlarge}]}", []string{"exclusive mixedInstancesPolicy.overrides[0] - AWSMachinePool spec.mixedInstancesPolicy.overrides"}},
		"another arch":      {"", "mixedInstancesPolicy: {overrides: [{instanceType: m5.large}, {instanceType: m6g.large}]}", []string{"mixed-architectures mixedInstancesPolicy.overrides[1].instanceType"}},
		"with its image":    {"", "mixedInstancesPolicy: {overrides: [{instanceType: m5.large}, {instanceType: m6g.large, imageId: ami-00000002}]}", nil},
		"which template":    {"", "mixedInstancesPolicy: {overrides: [{instanceType: m5.large, launchTemplateSpecification: {launchTemplateId: lt-00000001, launchTemplateName: z, version: v1}}]}", []string{"exclusive mixedInstancesPolicy.overrides[0].launchTemplateSpecification.launchTemplateName", "bad-value mixedInstancesPolicy.overrides[0].launchTemplateSpecification.version"}},
		"pools":             {"mixedInstancesPolicy: {instancesDistribution: {spotAllocationStrategy: capacity-optimized}}", "mixedInstancesPolicy: {instancesDistribution: {spotInstancePools: 3, spotMaxPrice: free}}", []string{"exclusive mixedInstancesPolicy.instancesDistribution.spotInstancePools - AWSMachinePool spec.mixedInstancesPolicy.instancesDistribution.spotAllocationStrategy", "bad-value mixedInstancesPolicy.instancesDistribution.spotMaxPrice"}},
		"spot and a policy": {"marketType: Spot", "mixedInstancesPolicy: {overrides: [{instanceType: m5.large}]}", []string{"exclusive mixedInstancesPolicy - AWSMachinePool spec.awsLaunchTemplate.marketType"}},
		"required":          {"", "mixedInstancesPolicy: {overrides: [{instanceRequirements: {memoryMiB: {max: 4}}}]}", []string{"missing-required mixedInstancesPolicy.overrides[0].instanceRequirements.memoryMiB.min", "missing-required mixedInstancesPolicy.overrides[0].instanceRequirements.vCpuCount"}},
		"both":              {"", "mixedInstancesPolicy: {overrides: [{instanceType: m5.large, instanceRequirements: " + requirements + "}]}", []string{"exclusive mixedInstancesPolicy.overrides[0].instanceRequirements"}},
		"requirements": {"", "mixedInstancesPolicy: {overrides: [{instanceRequirements: {memoryMiB: {min: 9, max: 8}, vCpuCount: {min: 1}, memoryGiBPerVCpu: {min: -1}, networkBandwidthGbps: {min: x}, cpuManufacturers: [via],\n  allowedInstanceTypes: [m5.*], excludedInstanceTypes: [m6.*]}}]}",
			[]string{"bad-value mixedInstancesPolicy.overrides[0].instanceRequirements.cpuManufacturers[0]", "exclusive mixedInstancesPolicy.overrides[0].instanceRequirements.excludedInstanceTypes", "out-of-range mixedInstancesPolicy.overrides[0].instanceRequirements.memoryGiBPerVCpu.min", "out-of-range mixedInstancesPolicy.overrides[0].instanceRequirements.memoryMiB", "wrong-type mixedInstancesPolicy.overrides[0].instanceRequirements.networkBandwidthGbps.min"}},
		"some by attributes": {"", "mixedInstancesPolicy: {overrides: [{instanceRequirements: " + requirements + "}, {instanceType: m5.large}]}", []string{"incomplete mixedInstancesPolicy.overrides"}},
		"priorities": {"mixedInstancesPolicy: {instancesDistribution: {spotAllocationStrategy: capacity-optimized-prioritized}}", "mixedInstancesPolicy: {overrides: [{instanceRequirements: " + requirements + "}]}",
			[]string{"exclusive mixedInstancesPolicy.overrides - AWSMachinePool spec.mixedInstancesPolicy.instancesDistribution.spotAllocationStrategy"}},
		"retaining":    {"", "instanceLifecyclePolicy: {retentionTriggers: {terminateHookAbandon: retain}}", nil},
		"rolling back": {"", "refreshPreferences: {autoRollback: true}\nmixedInstancesPolicy: {overrides: [{instanceType: m5.large, launchTemplateSpecification: {launchTemplateName: x, version: $Latest}}]}", []string{"exclusive refreshPreferences.autoRollback"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			template := "{instanceType: m5.large, ami: {id: ami-00000001}}"
			if strings.HasPrefix(tt.pool, "marketType") {
				template, tt.pool = "{instanceType: m5.large, ami: {id: ami-00000001}, "+tt.pool+"}", ""
			}
			text := "autoScalingGroup:\n  " + strings.ReplaceAll(tt.options, "\n", "\n  ")
			set, faults := manifest.Intents(objects(t, stream(machinePool("AWSMachinePool", "", noBootstrap), groupPool("minSize: 1\nawsLaunchTemplate: "+template+"\n"+tt.pool), options("extra", "AWSMachinePool", text), eksCluster)), manifest.Options{})
			var got []string
			for _, p := range pairs(faults) {
				got = append(got, strings.Replace(p, " spec.autoScalingGroup.", " ", 1))
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("errors (-want +got):\n%s", d)
			}
			if (len(tt.want) == 0) != (len(set.Pools) == 1) {
				t.Errorf("%d pools", len(set.Pools))
			}
		})
	}
}

// A policy that retains machines whose termination hook was abandoned says nothing
// where there is no such hook, and a hook for launches is none.
func TestRetentionNeedsATerminationHook(t *testing.T) {
	text := "autoScalingGroup:\n  instanceLifecyclePolicy: {retentionTriggers: {terminateHookAbandon: %s}}"
	hook := "lifecycleHooks: [{name: h, lifecycleTransition: \"autoscaling:EC2_INSTANCE_%s\"}]\n"
	for name, tt := range map[string]struct {
		trigger, hooks string
		warned         bool
	}{
		"without a hook":            {"retain", "", true},
		"with one for launches":     {"retain", fmt.Sprintf(hook, "LAUNCHING"), true},
		"with one for its end":      {"retain", fmt.Sprintf(hook, "TERMINATING"), false},
		"where nothing is retained": {"terminate", "", false},
	} {
		_, faults := manifest.Intents(objects(t, stream(machinePool("AWSMachinePool", "", noBootstrap),
			groupPool(tt.hooks+"awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}"), options("extra", "AWSMachinePool", fmt.Sprintf(text, tt.trigger)), eksCluster)), manifest.Options{})
		got := slices.Contains(briefly(faults, diag.Warning), "retains-nothing spec.autoScalingGroup.instanceLifecyclePolicy.retentionTriggers.terminateHookAbandon")
		if got != tt.warned {
			t.Errorf("%s: %v", name, faults)
		}
	}
}

// The group has the name that PoolOptions say, and the launch template the pool's.
func TestTheNameOfAGroup(t *testing.T) {
	p := one(t, machinePool("AWSMachinePool", "", noBootstrap), groupPool("awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}"),
		options("extra", "AWSMachinePool", "autoScalingGroup: {name: Team/Web}"), eksCluster)
	if p.Group.Name != "Team/Web" || p.Group.Tags["Name"] != "Team/Web" || p.LaunchTemplate.Name != "web" {
		t.Errorf("group %q, tag %q, launch template %q", p.Group.Name, p.Group.Tags["Name"], p.LaunchTemplate.Name)
	}
}

// Two pools that want one group are an error with the lines of both names, wherever these
// are written. A broken pool keeps the group of its name.
func TestTwoPoolsWithOneGroup(t *testing.T) {
	api := func(text string) string {
		return strings.NewReplacer("name: web}", "name: api}", "name: extra}", "name: more}").Replace(text)
	}
	group := groupPool("awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}")
	for name, tt := range map[string]struct{ api, web, want string }{
		"both in options":    {"Team/Web", "Team/Web", "name-taken spec.autoScalingGroup.name - PoolOptions spec.autoScalingGroup.name"},
		"one is the pool's":  {"api", "api", "name-taken spec.autoScalingGroup.name - PoolOptions spec.autoScalingGroup.name"},
		"one is the default": {"", "api", "name-taken spec.autoScalingGroup.name - AWSMachinePool metadata.name"},
	} {
		docs := []string{api(machinePool("AWSMachinePool", "", noBootstrap)), api(group), machinePool("AWSMachinePool", "", noBootstrap), group, options("extra", "AWSMachinePool", "autoScalingGroup: {name: "+tt.web+"}"), eksCluster}
		if tt.api != "" {
			docs = append(docs, api(options("extra", "AWSMachinePool", "autoScalingGroup: {name: "+tt.api+"}")))
		}
		set, faults := manifest.Intents(objects(t, stream(docs...)), manifest.Options{})
		if d := cmp.Diff([]string{tt.want}, pairs(faults)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		broken := set.Broken()
		if len(set.Pools) != 1 || len(broken) != 1 || !slices.Contains(broken[0].Names, tt.web) {
			t.Errorf("%s: %d pools, broken %+v", name, len(set.Pools), broken)
		}
	}
	for name, docs := range map[string][]string{
		"a broken pool":        {machinePool("AWSMachinePool", "", noBootstrap), groupPool("minSize: x"), options("extra", "AWSMachinePool", "autoScalingGroup: {name: Team/Web}")},
		"a misspelled pool":    {machinePool("AWSMachinePool", "", noBootstrap), strings.Replace(group, "kind: AWSMachinePool", "kind: AWSMachinePol", 1), options("extra", "AWSMachinePool", "autoScalingGroup: {name: Team/Web}")},
		"broken options":       {machinePool("AWSMachinePool", "", noBootstrap), group, options("extra", "AWSMachinePool", "autoScalingGroup: {name: Team/Web, maxInstanceLifetime: x}")},
		"options for no pool":  {machinePool("AWSMachinePool", "", noBootstrap), group, options("extra", "AWSManagedMachinePool", "autoScalingGroup: {name: Team/Web}")},
		"without MachinePool":  {group, options("extra", "AWSMachinePool", "autoScalingGroup: {name: Team/Web}")},
		"without its own half": {machinePool("AWSMachinePool", "", noBootstrap), options("extra", "AWSMachinePool", "autoScalingGroup: {name: Team/Web}")},
	} {
		set, _ := manifest.Intents(objects(t, stream(append(docs, eksCluster)...)), manifest.Options{})
		if broken := set.Broken(); len(set.Pools) != 0 || len(broken) != 1 || !slices.Contains(broken[0].Names, "Team/Web") {
			t.Errorf("%s: %d pools, broken %+v", name, len(set.Pools), broken)
		}
	}
}
