package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest"
)

// configOf is an AWSLaunchConfig or AWSLaunchConfigTemplate named "shared".
func configOf(kind, fields string) string {
	spec := "{" + fields + "}"
	if kind == "AWSLaunchConfigTemplate" {
		spec = "{template: {spec: " + spec + "}}"
	}
	return "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: " + kind + "\nmetadata: {name: shared}\nspec: " + spec
}

// user is a pool of cluster c that names "shared", with its MachinePool.
func user(name, kind, configKind, spec string) string {
	return stream(strings.ReplaceAll(machinePool(kind, "", noBootstrap), "web", name),
		fmt.Sprintf("apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: %s\nmetadata: {name: %s}\nspec: {launchConfigRef: {kind: %s, name: shared}%s}", kind, name, configKind, spec))
}

func TestLaunchConfigFaults(t *testing.T) {
	const template, config = "AWSLaunchConfigTemplate", "AWSLaunchConfig"
	const fine = "instanceType: m5.large, ami: {id: ami-00000001}"
	tests := map[string]struct {
		text []string
		want []string
	}{
		"fine":           {[]string{configOf(template, fine), user("web", "AWSMachinePool", template, "")}, nil},
		"empty template": {[]string{configOf(template, fine), user("web", "AWSMachinePool", template, ", awsLaunchTemplate: {}")}, nil},
		"both": {[]string{configOf(template, fine), user("web", "AWSMachinePool", template, ", awsLaunchTemplate: {instanceType: m5.large}")},
			[]string{"exclusive spec.launchConfigRef"}},
		"neither": {[]string{strings.Replace(user("web", "AWSMachinePool", template, ""), "launchConfigRef: {kind: AWSLaunchConfigTemplate, name: shared}", "", 1)},
			[]string{"missing-required spec.awsLaunchTemplate"}},
		"not there":        {[]string{user("web", "AWSMachinePool", template, "")}, []string{"reference-not-found spec.launchConfigRef.name"}},
		"of another kind":  {[]string{configOf(config, fine), user("web", "AWSMachinePool", template, "")}, []string{"reference-not-found spec.launchConfigRef.name"}},
		"an unknown kind":  {[]string{user("web", "AWSMachinePool", "LaunchConfig", "")}, []string{"bad-enum spec.launchConfigRef.kind"}},
		"a bad field":      {[]string{configOf(config, "instanceTyp: m5.large"), user("web", "AWSMachinePool", config, "")}, []string{"unknown-field spec.instanceTyp"}},
		"a bad volume":     {[]string{configOf(template, fine+", nonRootVolumes: [{size: 8}]"), user("web", "AWSMachinePool", template, "")}, []string{"missing-required spec.template.spec.nonRootVolumes[0].deviceName"}},
		"unused and wrong": {[]string{configOf(config, "marketType: CapacityBlock")}, []string{"incomplete spec.marketType"}},
		"no instance type": {[]string{configOf(template, "ami: {id: ami-00000001}"), user("web", "AWSMachinePool", template, "")}, []string{"missing-required spec.template.spec.instanceType"}},
		"said once for all": {[]string{configOf(template, "ami: {id: ami-00000001}"), user("web", "AWSMachinePool", template, ""), user("api", "AWSMachinePool", template, "")},
			[]string{"missing-required spec.template.spec.instanceType"}},
		"forbidden by EKS": {[]string{configOf(template, fine+", iamInstanceProfile: nodes, spotMarketOptions: {}"), user("web", "AWSManagedMachinePool", template, ", amiType: CUSTOM")}, nil},
		"one for two kinds": {[]string{configOf(config, fine), user("web", "AWSMachinePool", config, ""), user("nodes", "AWSManagedMachinePool", config, ", amiType: CUSTOM")},
			[]string{"launch-config-differs spec.launchConfigRef"}},
		"one for two sets of tags": {[]string{configOf(config, fine), user("web", "AWSMachinePool", config, ""), user("api", "AWSMachinePool", config, ", additionalTags: {a: b}")}, nil},
		"one for two clusters": {[]string{configOf(config, fine), user("web", "AWSMachinePool", config, ""), strings.ReplaceAll(user("api", "AWSMachinePool", config, ""), "clusterName: c", "clusterName: d"),
			"apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: d}\nspec: {}"},
			[]string{"launch-config-differs spec.launchConfigRef"}},
		"two declarations with one name": {[]string{configOf(template, fine), strings.ReplaceAll(configOf(config, fine), "name: shared", "name: c-shared-group"),
			user("web", "AWSMachinePool", template, ""), strings.ReplaceAll(user("api", "AWSMachinePool", config, ""), "name: shared", "name: c-shared-group")},
			[]string{"name-taken spec.launchConfigRef"}},
		"a name that a pool has": {[]string{configOf(config, fine), user("web", "AWSMachinePool", config, ""),
			strings.ReplaceAll(groupPool("awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}"), "name: web", "name: shared"), strings.ReplaceAll(machinePool("AWSMachinePool", "", noBootstrap), "web", "shared")},
			[]string{"name-taken metadata.name"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, faults := manifest.Intents(objects(t, stream(append(tt.text, eksCluster)...)), manifest.Options{})
			if d := cmp.Diff(tt.want, briefly(faults, diag.Error)); d != "" {
				t.Errorf("(-want +got):\n%s\n%v", d, faults)
			}
		})
	}
}

func TestALaunchConfigThatABuildRenamedGetsAHint(t *testing.T) {
	_, faults := manifest.Intents(objects(t, stream(user("web", "AWSMachinePool", "AWSLaunchConfigTemplate", ""), eksCluster)), manifest.Options{
		Renamed: func(kind, old string) (string, bool) { return "blue-" + old, kind == "AWSLaunchConfigTemplate" }})
	for _, f := range faults {
		if f.Code == "reference-not-found" && strings.Contains(f.Detail, "spec/launchConfigRef/name of AWSMachinePool") {
			return
		}
	}
	t.Errorf("no hint: %v", faults)
}

// Only a managed pool's template lacks the members that EKS forbids.
func TestAManagedPoolGetsWhatEKSTakes(t *testing.T) {
	set, faults := manifest.Intents(objects(t, stream(configOf("AWSLaunchConfigTemplate", "instanceType: m5.large, ami: {id: ami-00000001}, iamInstanceProfile: nodes, marketType: Spot"),
		user("web", "AWSMachinePool", "AWSLaunchConfigTemplate", ""), user("nodes", "AWSManagedMachinePool", "AWSLaunchConfigTemplate", ", amiType: CUSTOM"), eksCluster)), manifest.Options{})
	if len(set.Pools) != 2 {
		t.Fatalf("%v", faults)
	}
	for _, p := range set.Pools {
		data, group := p.LaunchTemplate.Data, p.Kind == intent.GroupPool
		if (data.IamInstanceProfile != nil) != group || (data.InstanceMarketOptions != nil) != group {
			t.Errorf("%s: %+v", p.Key, data)
		}
	}
	if d := cmp.Diff([]string{"not-carried spec.template.spec.iamInstanceProfile", "not-carried spec.template.spec.marketType"}, briefly(faults, diag.Info)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// Pools of one cluster and kind share one template however else they differ, and each finds its own settings in it.
func TestPoolsOfOneClusterAndKindShareATemplate(t *testing.T) {
	const kind = "AWSLaunchConfigTemplate"
	of := func(version, name, poolKind, spec string) string {
		return strings.ReplaceAll(user(name, poolKind, kind, spec), "      infrastructureRef", "      version: "+version+"\n      infrastructureRef")
	}
	set, faults := manifest.Intents(objects(t, stream(configOf(kind, "instanceType: m5.large, ami: {eksLookupType: AmazonLinux2023}"), eksCluster,
		of("v1.31.0", "web", "AWSMachinePool", ""), of("v1.32.0", "newer", "AWSMachinePool", ""), of("v1.31.0", "tagged", "AWSMachinePool", ", additionalTags: {team: web}"),
		of("v1.31.0", "nodes", "AWSManagedMachinePool", ""))), manifest.Options{})
	if len(set.Pools) != 4 {
		t.Fatalf("%v", faults)
	}
	contents := map[string]bool{}
	for _, p := range set.Pools {
		want := "c-shared-group"
		if p.Kind == intent.NodegroupPool {
			want = "c-shared-nodegroup"
		}
		if p.LaunchTemplate.Name != want || p.LaunchConfig.Key.Name != want {
			t.Errorf("%s launches by %s", p.Key, p.LaunchTemplate.Name)
		}
		contents[fmt.Sprint(p.Kind, p.LaunchTemplate.Image, p.LaunchTemplate.Tags["team"])] = true
	}
	if len(contents) != 4 {
		t.Errorf("contents: %v", contents)
	}
}

// sharedOptions are PoolOptions for what "shared" declares.
func sharedOptions(kind, spec string) string {
	return "apiVersion: weir.dev/v1alpha1\nkind: PoolOptions\nmetadata: {name: extra}\nspec: {poolRef: {kind: " + kind + ", name: shared}, " + spec + "}"
}

// PoolOptions may be for the declaration of a launch template: all its pools have what
// they say, managed ones what EKS takes of it.
func TestPoolOptionsOfWhatPoolsShare(t *testing.T) {
	for _, kind := range []string{"AWSLaunchConfigTemplate", "AWSLaunchConfig"} {
		pools := []string{user("web", "AWSMachinePool", kind, ""), user("api", "AWSMachinePool", kind, "")}
		if kind == "AWSLaunchConfigTemplate" {
			pools = append(pools, user("nodes", "AWSManagedMachinePool", kind, ", amiType: CUSTOM"))
		}
		own := strings.ReplaceAll(options("own", "AWSMachinePool", "autoScalingGroup: {healthCheckType: ELB}"), "name: web", "name: api")
		set, faults := manifest.Intents(objects(t, stream(append(pools, own, configOf(kind, "instanceType: m5.large, ami: {id: ami-00000001}"), eksCluster,
			sharedOptions(kind, "launchTemplate: {ebsOptimized: true, hibernationOptions: {configured: true}}"))...)), manifest.Options{})
		if len(set.Pools) != len(pools) || len(briefly(faults, diag.Error)) != 0 {
			t.Fatalf("%s: %v", kind, faults)
		}
		for _, p := range set.Pools {
			data, group := p.LaunchTemplate.Data, p.Kind == intent.GroupPool
			if data.EbsOptimized == nil || (data.HibernationOptions != nil) != group || p.LaunchConfig.Options.Name != "extra" || p.Options.Name != map[bool]string{true: "own"}[p.Key.Name == "api"] {
				t.Errorf("%s: options %s and %s, %+v", p.Key, p.Options, p.LaunchConfig.Options, data)
			}
		}
	}
}

func TestPoolOptionsOfWhatPoolsShareFaults(t *testing.T) {
	const kind = "AWSLaunchConfigTemplate"
	const good = "launchTemplate: {ebsOptimized: true}"
	for name, tt := range map[string]struct {
		config, more string
		want         []string
		pools        int
	}{
		"fine":            {"", sharedOptions(kind, good), nil, 2},
		"not there":       {"", strings.ReplaceAll(sharedOptions(kind, good), "name: shared", "name: sharde"), []string{"reference-not-found spec.poolRef.name"}, 0},
		"of another kind": {"", sharedOptions("AWSLaunchConfig", good), []string{"reference-not-found spec.poolRef.name"}, 0},
		"twice":           {"", stream(sharedOptions(kind, good), strings.ReplaceAll(sharedOptions(kind, good), "name: extra", "name: more")), []string{"duplicate-options spec.poolRef.name - PoolOptions spec.poolRef.name"}, 0},
		"a group's":       {"", sharedOptions(kind, "autoScalingGroup: {healthCheckType: ELB}"), []string{"not-allowed spec.autoScalingGroup"}, 0},
		"a nodegroup's":   {"", sharedOptions(kind, "nodegroup: {force: true}"), []string{"not-allowed spec.nodegroup"}, 0},
		"what it has":     {"", sharedOptions(kind, "launchTemplate: {keyName: x}"), []string{"unknown-field keyName - AWSLaunchConfigTemplate spec.template.spec.sshKeyName"}, 0},
		"what it excludes": {", capacityReservationId: cr-0123456789abcdef0", sharedOptions(kind, "launchTemplate: {capacityReservationSpecification: {capacityReservationTarget: {capacityReservationResourceGroupArn: 'arn:aws:resource-groups:eu-west-1:000000000000:group/x'}}}"),
			[]string{"exclusive capacityReservationSpecification.capacityReservationTarget.capacityReservationResourceGroupArn - AWSLaunchConfigTemplate spec.template.spec.capacityReservationId"}, 0},
		"of the pool itself": {"", options("own", "AWSMachinePool", good), []string{"exclusive spec.launchTemplate - AWSMachinePool spec.launchConfigRef"}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			set, faults := manifest.Intents(objects(t, stream(configOf(kind, "instanceType: m5.large, ami: {id: ami-00000001}, sshKeyName: ops"+tt.config), tt.more,
				user("web", "AWSMachinePool", kind, ""), user("api", "AWSMachinePool", kind, ""), eksCluster)), manifest.Options{})
			if d := cmp.Diff(tt.want, pairs(faults)); d != "" || len(set.Pools) != tt.pools {
				t.Errorf("%d pools (-want +got):\n%s\n%v", len(set.Pools), d, faults)
			}
		})
	}
}

// For any names, EC2 takes the launch template's name; the name does not depend on the other pools, and an edit of the declaration keeps it.
func TestDerivedNames(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		long := strings.Repeat("a", rapid.IntRange(1, 200).Draw(rt, "length"))
		name := func(fields string, more ...string) string {
			text := stream(append([]string{configOf("AWSLaunchConfigTemplate", fields), user("web", "AWSMachinePool", "AWSLaunchConfigTemplate", ""), eksCluster}, more...)...)
			set, faults := manifest.Intents(objects(t, strings.ReplaceAll(text, "shared", long)), manifest.Options{})
			for _, p := range set.Pools {
				if p.Key.Name == "web" {
					return p.LaunchTemplate.Name
				}
			}
			rt.Fatalf("no pool: %v", faults)
			return ""
		}
		first := name("instanceType: m5.large, ami: {id: ami-00000001}")
		if len(first) > 125 || !strings.HasPrefix(first, "c-a") {
			rt.Fatalf("%d characters: %s", len(first), first)
		}
		second := name("instanceType: m5.xlarge, ami: {id: ami-00000002}", user("nodes", "AWSManagedMachinePool", "AWSLaunchConfigTemplate", ", amiType: CUSTOM"))
		if first != second {
			rt.Fatalf("%s became %s", first, second)
		}
	})
}
