package manifest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// options is a PoolOptions for the pool web.
func options(name, kind, spec string) string {
	return "apiVersion: weir.dev/v1alpha1\nkind: PoolOptions\nmetadata: {name: " + name + "}\nspec:\n  poolRef: {kind: " + kind + ", name: web}\n  " + indent(2, spec)
}

// pairs lists the errors of PoolOptions as code, field and the field beside it.
func pairs(faults []kinds.Fault) (out []string) {
	for _, f := range faults {
		if f.Severity != diag.Error {
			continue
		}
		line := f.Code + " " + strings.TrimPrefix(f.Path.String(), "spec.launchTemplate.")
		for _, r := range f.Related {
			line += " - " + r.Ref.Kind + " " + r.Path.String()
		}
		out = append(out, line)
	}
	return out
}

func TestPoolOptionsRules(t *testing.T) {
	const group, managed = "AWSMachinePool", "AWSManagedMachinePool"
	tests := map[string]struct {
		kind, pool, options string
		want                []string
	}{
		"set by the pool as well": {group, "keyName: k", "launchTemplate: {keyName: k}", []string{"unknown-field keyName"}},
		"set in both": {group, "sshKeyName: k", "launchTemplate: {keyName: k, imageId: ami-00000002}",
			[]string{"unknown-field imageId - AWSMachinePool spec.awsLaunchTemplate.ami.id", "unknown-field keyName - AWSMachinePool spec.awsLaunchTemplate.sshKeyName"}},
		"groups in both": {group, "additionalSecurityGroups: [{id: sg-00000001}]", "launchTemplate: {networkInterfaces: [{deviceIndex: 0, groups: [sg-00000002]}]}",
			[]string{"exclusive networkInterfaces[0].groups - AWSMachinePool spec.awsLaunchTemplate.additionalSecurityGroups"}},
		"reservation in both": {group, "capacityReservationId: cr-00000001", "launchTemplate: {capacityReservationSpecification: {capacityReservationTarget: {capacityReservationResourceGroupArn: 'arn:x'}}}",
			[]string{"exclusive capacityReservationSpecification.capacityReservationTarget.capacityReservationResourceGroupArn - AWSMachinePool spec.awsLaunchTemplate.capacityReservationId"}},
		"hibernating enclaves": {group, "enclaveOptions: {enabled: true}", "launchTemplate: {hibernationOptions: {configured: true}}",
			[]string{"exclusive hibernationOptions.configured - AWSMachinePool spec.awsLaunchTemplate.enclaveOptions.enabled"}},
		"a nodegroup of a group":     {group, "", "nodegroup: {}", []string{"not-allowed spec.nodegroup"}},
		"ended services":             {group, "", "launchTemplate: {elasticGpuSpecifications: [{type: x}]}", []string{"unknown-field elasticGpuSpecifications"}},
		"a fixed address":            {group, "", "launchTemplate: {networkInterfaces: [{deviceIndex: 0, privateIpAddress: 10.0.0.4}]}", []string{"unknown-field networkInterfaces[0].privateIpAddress"}},
		"no primary interface":       {group, "", "launchTemplate: {networkInterfaces: [{deviceIndex: 1}]}", []string{"incomplete networkInterfaces"}},
		"interfaces without a place": {group, "", "launchTemplate: {networkInterfaces: [{}]}", []string{"missing-required networkInterfaces[0].deviceIndex"}},
		"two in one place": {group, "", "launchTemplate: {networkInterfaces: [{deviceIndex: 0}, {deviceIndex: 0, networkCardIndex: 0}]}",
			[]string{"duplicate networkInterfaces[1].deviceIndex - PoolOptions spec.launchTemplate.networkInterfaces[0]"}},
		"fabric alone with addresses": {group, "", "launchTemplate: {networkInterfaces: [{deviceIndex: 0, interfaceType: efa-only, ipv6AddressCount: 1}]}",
			[]string{"exclusive networkInterfaces[0].interfaceType", "exclusive networkInterfaces[0].ipv6AddressCount"}},
		"UDP without Express": {group, "", "launchTemplate: {networkInterfaces: [{deviceIndex: 0, enaSrdSpecification: {enaSrdUdpSpecification: {enaSrdUdpEnabled: true}}}]}",
			[]string{"incomplete networkInterfaces[0].enaSrdSpecification.enaSrdUdpSpecification.enaSrdUdpEnabled"}},
		"ids": {group, "", "launchTemplate: {kernelId: k, ramDiskId: r, networkInterfaces: [{deviceIndex: 0, subnetId: s, groups: [g]}], licenseSpecifications: [{licenseConfigurationArn: x}]}",
			[]string{"bad-id kernelId", "bad-value licenseSpecifications[0].licenseConfigurationArn", "bad-id networkInterfaces[0].groups[0]", "bad-id networkInterfaces[0].subnetId", "bad-id ramDiskId"}},
		"places that exclude each other": {group, "", "launchTemplate: {placement: {groupId: pg-00000001, groupName: a, hostId: h-00000001, hostResourceGroupArn: 'arn:x', tenancy: dedicated}}",
			[]string{"exclusive placement.groupId", "exclusive placement.hostId", "exclusive placement.tenancy"}},
		"a partition of nothing": {group, "", "launchTemplate: {placement: {partitionNumber: 1}}", []string{"incomplete placement.partitionNumber"}},
		"words and numbers": {group, "", "launchTemplate: {cpuOptions: {coreCount: 0, threadsPerCore: 3}, creditSpecification: {cpuCredits: many}}",
			[]string{"out-of-range cpuOptions.coreCount", "out-of-range cpuOptions.threadsPerCore", "bad-enum creditSpecification.cpuCredits"}},
		"what EKS refuses": {managed, "awsLaunchTemplate: {instanceType: m5.large}", "launchTemplate: {hibernationOptions: {configured: false}, instanceInitiatedShutdownBehavior: stop, networkInterfaces: [{deviceIndex: 0, subnetId: subnet-00000001}]}",
			[]string{"not-allowed hibernationOptions", "not-allowed instanceInitiatedShutdownBehavior", "not-allowed networkInterfaces[0].subnetId"}},
		"what EKS takes without a template alone": {managed, "diskSize: 50\nremoteAccess: {sshKeyName: k}", "launchTemplate: {monitoring: {enabled: true}}",
			[]string{"exclusive spec.launchTemplate - AWSManagedMachinePool spec.diskSize", "exclusive spec.launchTemplate - AWSManagedMachinePool spec.remoteAccess"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			pool := managedPool("amiType: AL2023_x86_64_STANDARD\n" + tt.pool)
			if tt.kind == group {
				pool = groupPool("awsLaunchTemplate:\n  instanceType: m5.large\n  ami: {id: ami-00000001}\n  " + indent(2, tt.pool))
			}
			if name == "set by the pool as well" {
				pool = groupPool("awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}")
			}
			set, faults := manifest.Intents(objects(t, stream(machinePool(tt.kind, "", noBootstrap), pool, options("extra", tt.kind, tt.options), eksCluster)), manifest.Options{})
			if d := cmp.Diff(tt.want, pairs(faults)); d != "" {
				t.Errorf("errors (-want +got):\n%s", d)
			}
			if len(set.Pools) != 0 {
				t.Error("the pool is derived without its options")
			}
		})
	}
}

// A wrong reference leaves out every pool that it may mean: weir would roll such a pool without its options.
func TestPoolOptionsFindTheirPool(t *testing.T) {
	pool := stream(machinePool("AWSMachinePool", "", noBootstrap), groupPool("awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}"))
	good := options("extra", "AWSMachinePool", "launchTemplate: {ebsOptimized: true}")
	tests := map[string]struct {
		options string
		want    []string
		pools   int
	}{
		"found":                 {good, nil, 1},
		"nothing said":          {options("extra", "AWSMachinePool", ""), nil, 1},
		"another name":          {strings.ReplaceAll(good, "name: web}", "name: wed}"), []string{"reference-not-found spec.poolRef.name"}, 0},
		"another kind":          {strings.ReplaceAll(good, "AWSMachinePool", "AWSManagedMachinePool"), []string{"reference-not-found spec.poolRef.name"}, 0},
		"no kind of pool":       {strings.ReplaceAll(good, "AWSMachinePool", "MachinePool"), []string{"bad-enum spec.poolRef.kind"}, 0},
		"another namespace":     {strings.ReplaceAll(good, "{name: extra}", "{name: extra, namespace: other}"), []string{"reference-not-found spec.poolRef.name"}, 1},
		"twice":                 {stream(good, options("more", "AWSMachinePool", "launchTemplate: {disableApiStop: true}")), []string{"duplicate-options spec.poolRef.name - PoolOptions spec.poolRef.name"}, 0},
		"no reference":          {"apiVersion: weir.dev/v1alpha1\nkind: PoolOptions\nmetadata: {name: extra}\nspec: {launchTemplate: {ebsOptimized: true}}", []string{"missing-required spec.poolRef"}, 0},
		"of a version to come":  {strings.ReplaceAll(good, "v1alpha1", "v2"), []string{"unknown-version apiVersion"}, 0},
		"of another's own kind": {strings.ReplaceAll(good, "weir.dev/", "example.com/"), nil, 1},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			set, faults := manifest.Intents(objects(t, stream(pool, tt.options)), manifest.Options{})
			if d := cmp.Diff(tt.want, pairs(faults)); d != "" {
				t.Errorf("errors (-want +got):\n%s", d)
			}
			if len(set.Pools) != tt.pools {
				t.Errorf("%d pools, want %d", len(set.Pools), tt.pools)
			}
		})
	}
}

// A managed pool without awsLaunchTemplate gets a template of its options alone.
func TestPoolOptionsMakeATemplate(t *testing.T) {
	p := one(t, machinePool("AWSManagedMachinePool", "", noBootstrap), managedPool("amiType: AL2023_x86_64_STANDARD\ninstanceType: m5.large"),
		options("extra", "AWSManagedMachinePool", "launchTemplate: {placement: {groupName: close}, networkInterfaces: [{deviceIndex: 0, interfaceType: efa}]}"), eksCluster)
	zero := int32(0)
	want := intent.TemplateData{Placement: &intent.Placement{GroupName: "close"}, NetworkInterfaces: []intent.NetworkInterface{{DeviceIndex: &zero, InterfaceType: "efa"}}}
	if d := cmp.Diff(want, p.LaunchTemplate.Data); d != "" {
		t.Errorf("data (-want +got):\n%s", d)
	}
	if p.LaunchTemplate.Name != "cp-web" || p.Options.Name != "extra" || p.Nodegroup.InstanceType != "m5.large" {
		t.Errorf("template %q with options %q, instance type %q", p.LaunchTemplate.Name, p.Options.Name, p.Nodegroup.InstanceType)
	}
	core := intent.Lookup{Kind: intent.CoreSecurityGroups, Cluster: p.ClusterKey}
	if d := cmp.Diff([]intent.Lookup{core}, p.LaunchTemplate.SecurityGroups); d != "" {
		t.Errorf("security groups of the interface (-want +got):\n%s", d)
	}
}
