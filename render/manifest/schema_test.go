package manifest_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// alone decodes one object by itself.
func alone(t *testing.T, text string) manifest.Decoded {
	t.Helper()
	out, ok := manifest.Decode(objects(t, text)[0])
	if !ok {
		t.Fatalf("not a kind that is read:\n%s", text)
	}
	return out
}

func TestDefaults(t *testing.T) {
	const infra, plane = "infrastructure.cluster.x-k8s.io/v1beta2", "controlplane.cluster.x-k8s.io/v1beta2"
	long := strings.Repeat("a", 60)
	tests := map[string]struct {
		apiVersion, kind, name, spec string
		field                        string
		want                         any
	}{
		"smallest group":            {infra, "AWSMachinePool", "web", "awsLaunchTemplate: {}", "minSize", int64(1)},
		"cooldown":                  {infra, "AWSMachinePool", "web", "awsLaunchTemplate: {}", "defaultCoolDown", "5m0s"},
		"cooldown under a second":   {infra, "AWSMachinePool", "web", "awsLaunchTemplate: {}\ndefaultCoolDown: 999ms", "defaultCoolDown", "5m0s"},
		"written cooldown":          {infra, "AWSMachinePool", "web", "awsLaunchTemplate: {}\ndefaultCoolDown: 1s", "defaultCoolDown", "1s"},
		"warm-up":                   {infra, "AWSMachinePool", "web", "awsLaunchTemplate: {}", "defaultInstanceWarmup", "5m0s"},
		"Ignition's version":        {infra, "AWSMachinePool", "web", "awsLaunchTemplate: {}\nignition: {}", "ignition", map[string]any{"version": "2.3", "storageType": "ClusterObjectStore"}},
		"Ignition in plain":         {infra, "AWSMachinePool", "web", "awsLaunchTemplate: {}\nignition: {storageType: UnencryptedUserData}", "ignition", map[string]any{"version": "", "storageType": "UnencryptedUserData"}},
		"nodegroup's name":          {infra, "AWSManagedMachinePool", "a.b", "{}", "eksNodegroupName", "default_a_b"},
		"long nodegroup's name":     {infra, "AWSManagedMachinePool", long, "{}", "eksNodegroupName", "capa_ppsi0n32mr2ky27p18nkndcyg14"},
		"update":                    {infra, "AWSManagedMachinePool", "web", "{}", "updateConfig", map[string]any{"maxUnavailable": int64(1)}},
		"written update":            {infra, "AWSManagedMachinePool", "web", "updateConfig: {maxUnavailablePercentage: 5}", "updateConfig", map[string]any{"maxUnavailablePercentage": int64(5)}},
		"image":                     {infra, "AWSManagedMachinePool", "web", "{}", "amiType", "AL2_x86_64"},
		"capacity":                  {infra, "AWSManagedMachinePool", "web", "{}", "capacityType", "onDemand"},
		"EKS cluster's name":        {plane, "AWSManagedControlPlane", "x.y", "{}", "eksClusterName", "default_x_y"},
		"control plane's identity":  {plane, "AWSManagedControlPlane", "x", "{}", "identityRef", map[string]any{"kind": "AWSClusterControllerIdentity", "name": "default"}},
		"the cluster's identity":    {infra, "AWSCluster", "x", "{}", "identityRef", map[string]any{"kind": "AWSClusterControllerIdentity", "name": "default"}},
		"metadata only where asked": {infra, "AWSMachinePool", "web", "awsLaunchTemplate: {}", "mixedInstancesPolicy", nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s}\nspec:\n  %s", tt.apiVersion, tt.kind, tt.name, indent(2, tt.spec))
			if d := cmp.Diff(tt.want, alone(t, text).Spec[tt.field]); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestLimits checks one limit of each sort that Cluster API's schemas set.
func TestLimits(t *testing.T) {
	const kubeadm, pool = "bootstrap.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io"
	tests := map[string]struct {
		apiVersion, kind, spec string
		want                   []string
	}{
		"too few items":         {kubeadm + "/v1beta2", "KubeadmConfig", "users: []", []string{"out-of-range spec.users"}},
		"not in the older one":  {kubeadm + "/v1beta1", "KubeadmConfig", "users: []", nil},
		"too many items":        {kubeadm + "/v1beta2", "KubeadmConfig", "ntp: {servers: [" + strings.Repeat("a, ", 100) + "a]}", []string{"out-of-range spec.ntp.servers"}},
		"an empty text":         {kubeadm + "/v1beta2", "KubeadmConfig", "preKubeadmCommands: [a, '']", []string{"out-of-range spec.preKubeadmCommands[1]"}},
		"a long text":           {kubeadm + "/v1beta2", "KubeadmConfig", "users: [{name: a, shell: " + strings.Repeat("x", 257) + "}]", []string{"out-of-range spec.users[0].shell"}},
		"no field":              {kubeadm + "/v1beta2", "KubeadmConfig", "ntp: {}", []string{"out-of-range spec.ntp"}},
		"a null is not a field": {kubeadm + "/v1beta2", "KubeadmConfig", "ntp: {enabled: null}", []string{"out-of-range spec.ntp"}},
		"long, and of no type":  {kubeadm + "/v1beta2", "KubeadmConfig", "users: {}", []string{"wrong-type spec.users"}},
		"through an alias":      {kubeadm + "/v1beta2", "KubeadmConfig", "preKubeadmCommands: [&e '']\npostKubeadmCommands: [*e]", []string{"out-of-range spec.postKubeadmCommands[0]", "out-of-range spec.preKubeadmCommands[0]"}},
		"reported once":         {pool + "/v1beta2", "AWSManagedMachinePool", "amiVersion: x", []string{"out-of-range spec.amiVersion"}},
		"a word of a list":      {pool + "/v1beta2", "AWSCluster", "network: {additionalNodeIngressRules: [{description: d, protocol: tcp, fromPort: 1, toPort: 2, sourceSecurityGroupRoles: [nodes]}]}", []string{"bad-enum spec.network.additionalNodeIngressRules[0].sourceSecurityGroupRoles[0]"}},
		"a pattern":             {"cluster.x-k8s.io/v1beta2", "Cluster", "infrastructureRef: {apiGroup: A_B, kind: AWSCluster, name: x}", []string{"bad-value spec.infrastructureRef.apiGroup"}},
		"filters beside the id": {pool + "/v1beta2", "AWSMachinePool", "awsLaunchTemplate: {}\nsubnets: [{id: subnet-00000001, filters: []}]", []string{"exclusive spec.subnets[0]"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got := alone(t, fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: x}\nspec:\n  %s", tt.apiVersion, tt.kind, indent(2, tt.spec)))
			if d := cmp.Diff(tt.want, briefly(got.Faults, diag.Error)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestLimitsKeepSecrets checks that no value is quoted: it may be a secret.
func TestLimitsKeepSecrets(t *testing.T) {
	secret := strings.Repeat("hunter2", 100)
	got := alone(t, "apiVersion: bootstrap.cluster.x-k8s.io/v1beta2\nkind: KubeadmConfig\nmetadata: {name: x}\nspec: {users: [{name: a, passwd: "+secret+"}]}")
	if len(got.Faults) != 1 || strings.Contains(got.Faults[0].Summary+got.Faults[0].Detail, "hunter2") {
		t.Errorf("faults %v", got.Faults)
	}
}

// TestSchemasSayWhatDecodingTakes checks that both come from the same types.
func TestSchemasSayWhatDecodingTakes(t *testing.T) {
	schemas := kinds.Schemas()
	pool := func(version string) map[string]*kinds.Schema {
		return schemas[kinds.SchemaVersion{APIVersion: "infrastructure.cluster.x-k8s.io/" + version, Kind: "AWSManagedMachinePool"}].Properties["spec"].Properties
	}
	for version, want := range map[string]string{"v1beta1": "maxUnavailablePrecentage", "v1beta2": "maxUnavailablePercentage"} {
		p := pool(version)["updateConfig"].Properties
		if p[want] == nil || len(p) != 2 || *p[want].Minimum != 1 || *p[want].Maximum != 100 {
			t.Errorf("%s: updateConfig has %v", version, p)
		}
	}
	if s := pool("v1beta2")["capacityType"]; s.Default != "onDemand" || len(s.Enum) != 2 {
		t.Errorf("capacityType %+v", s)
	}
	if s := pool("v1beta2")["launchConfigRef"]; !slices.Equal(s.Properties["kind"].Enum, []string{"AWSLaunchConfig", "AWSLaunchConfigTemplate"}) {
		t.Errorf("launchConfigRef %+v", s)
	}
	args := func(version string) string {
		s := schemas[kinds.SchemaVersion{APIVersion: "bootstrap.cluster.x-k8s.io/" + version, Kind: "KubeadmConfig"}]
		return s.Properties["spec"].Properties["joinConfiguration"].Properties["nodeRegistration"].Properties["kubeletExtraArgs"].Type
	}
	if args("v1beta1") != "object" || args("v1beta2") != "array" {
		t.Errorf("kubeletExtraArgs %q and %q", args("v1beta1"), args("v1beta2"))
	}
}

// TestOldMachinePools checks that the group before Cluster API's v1beta1 is read,
// with a warning.
func TestOldMachinePools(t *testing.T) {
	for _, version := range []string{"v1alpha3", "v1alpha4"} {
		mp := strings.Replace(machinePool("AWSMachinePool", "", noBootstrap), "cluster.x-k8s.io/v1beta1", "exp.cluster.x-k8s.io/"+version, 1)
		set, faults := manifest.Intents(objects(t, stream(mp, groupPool("awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}"))), manifest.Options{})
		if len(set.Pools) != 1 || cmp.Diff([]string{"deprecated-version apiVersion"}, briefly(faults, diag.Warning)) != "" {
			t.Errorf("%s: %d pools, faults %v", version, len(set.Pools), faults)
		}
	}
}

// TestTopology checks that a cluster whose class is not expanded says so to
// whoever plans.
func TestTopology(t *testing.T) {
	for _, version := range []string{"v1beta1", "v1beta2"} {
		set, faults := manifest.Intents(objects(t, "apiVersion: cluster.x-k8s.io/"+version+"\nkind: Cluster\nmetadata: {name: c}\nspec: {topology: {class: x, version: v1.31.0}}"), manifest.Options{})
		c, ok := set.Cluster(intent.Key{Namespace: "default", Name: "c"})
		if !ok || !c.Topology || cmp.Diff([]string{"topology-not-expanded spec.topology"}, briefly(faults, diag.Warning)) != "" {
			t.Errorf("%s: cluster %+v, faults %v", version, c, faults)
		}
	}
}
