package manifest_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/manifest"
)

func TestIdentities(t *testing.T) {
	cluster := "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: c}\nspec: {infrastructureRef: {kind: AWSCluster, name: c}}\n---\n" +
		"apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSCluster\nmetadata: {name: c}\nspec: {identityRef: {kind: %s, name: id}}"
	role := func(spec string) string {
		return "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSClusterRoleIdentity\nmetadata: {name: id}\nspec: {roleARN: arn:aws:iam::1:role/r, " + spec + "}"
	}
	tests := map[string]struct {
		kind, identity string
		arn            string
		want           []string
	}{
		"the controller's own":      {"AWSClusterControllerIdentity", "", "", nil},
		"everybody's role":          {"AWSClusterRoleIdentity", role("allowedNamespaces: {}"), "arn:aws:iam::1:role/r", nil},
		"this namespace's role":     {"AWSClusterRoleIdentity", role("allowedNamespaces: {list: [a, default]}"), "arn:aws:iam::1:role/r", nil},
		"nobody's role":             {"AWSClusterRoleIdentity", role("sessionName: s"), "", []string{"identity-not-allowed spec.allowedNamespaces"}},
		"another namespace's role":  {"AWSClusterRoleIdentity", role("allowedNamespaces: {list: [a]}"), "", []string{"identity-not-allowed spec.allowedNamespaces"}},
		"a role by labels":          {"AWSClusterRoleIdentity", role("allowedNamespaces: {selector: {matchLabels: {a: b}}}"), "", []string{"identity-not-allowed spec.allowedNamespaces"}},
		"a role that is not there":  {"AWSClusterRoleIdentity", "", "", []string{"reference-not-found spec.identityRef.name"}},
		"a chain":                   {"AWSClusterRoleIdentity", role("allowedNamespaces: {}, sourceIdentityRef: {kind: AWSClusterRoleIdentity, name: x}"), "", []string{"not-supported spec.sourceIdentityRef"}},
		"a role with an externalID": {"AWSClusterRoleIdentity", role("allowedNamespaces: {}, externalID: x"), "", []string{"not-supported spec.externalID"}},
		"keys":                      {"AWSClusterStaticIdentity", "", "", []string{"static-identity spec.identityRef.kind"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			set, faults := manifest.Intents(objects(t, stream(fmt.Sprintf(cluster, tt.kind), tt.identity)), manifest.Options{})
			if d := cmp.Diff(tt.want, briefly(faults, diag.Error)); d != "" {
				t.Fatalf("(-want +got):\n%s", d)
			}
			// A cluster whose identity is refused is no cluster: nothing may
			// act on it with other credentials.
			if wanted := tt.want == nil; (len(set.Clusters) == 1) != wanted {
				t.Fatalf("%d clusters", len(set.Clusters))
			}
			if tt.want == nil && set.Clusters[0].RoleARN != tt.arn {
				t.Errorf("role %q, want %q", set.Clusters[0].RoleARN, tt.arn)
			}
		})
	}
}

// TestABrokenClusterTakesItsPools checks that no pool goes on without the
// cluster that says with which role and network.
func TestABrokenClusterTakesItsPools(t *testing.T) {
	set, faults := manifest.Intents(objects(t, stream(machinePool("AWSManagedMachinePool", "", noBootstrap), managedPool("{}"),
		strings.Replace(eksCluster, "spec: {version: v1.31.0}", "spec: {regio: eu-west-1}", 1))), manifest.Options{})
	if len(set.Pools) != 0 || len(set.Clusters) != 0 {
		t.Errorf("%d pools, %d clusters, faults %v", len(set.Pools), len(set.Clusters), faults)
	}
}

func TestNamesAndLabels(t *testing.T) {
	group := groupPool("awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}")
	many := make([]string, 0, 50)
	for i := range 50 {
		many = append(many, fmt.Sprintf("t%d: x", i))
	}
	named := func(length int) []string {
		return []string{strings.ReplaceAll(stream(machinePool("AWSMachinePool", "", noBootstrap), group), "name: web", "name: "+strings.Repeat("w", length))}
	}
	tests := map[string]struct {
		docs []string
		want []string
	}{
		"a launch template of the longest name":    {named(125), nil},
		"a launch template whose name is too long": {named(126), []string{"bad-name metadata.name"}},
		"upper case": {[]string{"apiVersion: bootstrap.cluster.x-k8s.io/v1beta2\nkind: NodeadmConfig\nmetadata: {name: Nodes}"}, []string{"bad-name metadata.name"}},
		"a bad label": {[]string{strings.Replace(machinePool("AWSMachinePool", "", noBootstrap), "template:\n", "template:\n    metadata: {labels: {a b: x, ok: \"no good\", x.io/y: z}, annotations: {a: \"any thing\"}}\n", 1), group},
			[]string{"bad-name spec.template.metadata.labels.a b", "bad-value spec.template.metadata.labels.ok"}},
		"too many tags with weir's": {[]string{machinePool("AWSMachinePool", "", noBootstrap), groupPool("additionalTags: {" + strings.Join(many[:42], ", ") + "}\nawsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}")},
			[]string{"too-many-tags spec.additionalTags"}},
		"as many tags as fit":              {[]string{machinePool("AWSMachinePool", "", noBootstrap), groupPool("additionalTags: {" + strings.Join(many[:41], ", ") + "}\nawsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}")}, nil},
		"no instance type":                 {[]string{machinePool("AWSMachinePool", "", noBootstrap), groupPool("awsLaunchTemplate: {ami: {id: ami-00000001}}")}, []string{"missing-required spec.awsLaunchTemplate.instanceType"}},
		"instance types of a mixed policy": {[]string{machinePool("AWSMachinePool", "", noBootstrap), groupPool("awsLaunchTemplate: {ami: {id: ami-00000001}}\nmixedInstancesPolicy: {overrides: [{instanceType: m5.large}]}")}, nil},
		"a strategy of a later version": {[]string{strings.Replace(groupPool("awsLaunchTemplate: {}\nmixedInstancesPolicy: {instancesDistribution: {spotAllocationStrategy: price-capacity-optimized, onDemandAllocationStrategy: lowest-price}}"), "v1beta2", "v1beta1", 1)},
			[]string{"bad-enum spec.mixedInstancesPolicy.instancesDistribution.onDemandAllocationStrategy", "bad-enum spec.mixedInstancesPolicy.instancesDistribution.spotAllocationStrategy"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, faults := manifest.Intents(objects(t, stream(tt.docs...)), manifest.Options{Partial: true})
			if d := cmp.Diff(tt.want, briefly(faults, diag.Error)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestControlPlanesShareOneNetworkShape checks CAPA's oddity that the network of
// a v1beta1 control plane has the fields of v1beta2.
func TestControlPlanesShareOneNetworkShape(t *testing.T) {
	old := strings.Replace(eksCluster, "controlplane.cluster.x-k8s.io/v1beta2", "controlplane.cluster.x-k8s.io/v1beta1", 1)
	old = strings.Replace(old, "spec: {version: v1.31.0}", "spec: {version: v1.31.0, network: {subnets: [{id: a, resourceID: subnet-00000001}, {id: b, zoneType: local-zone, resourceID: subnet-00000002}]}}", 1)
	set, faults := manifest.Intents(objects(t, old), manifest.Options{})
	if len(set.Clusters) != 1 {
		t.Fatalf("faults %v", faults)
	}
	if s := set.Clusters[0].Network.Subnets; len(s) != 1 || s[0].ID != "subnet-00000001" {
		t.Errorf("subnets %v, want subnet-00000001 alone: edge zones take no pools", s)
	}
}

func TestImagesThatEKSChooses(t *testing.T) {
	secret := "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {value: %q}"
	tests := map[string]struct{ amiType, data, device, format string }{
		"Amazon Linux": {"AL2023_ARM_64_STANDARD", "Content-Type: multipart/mixed; boundary=x\n\n--x\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n--x--\n", "/dev/xvda", "mime"},
		"Bottlerocket": {"BOTTLEROCKET_x86_64", "[settings]", "/dev/xvda", "toml"},
		"Windows":      {"WINDOWS_CORE_2022_x86_64", "<powershell>", "/dev/sda1", "powershell"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			p := one(t, machinePool("AWSManagedMachinePool", "", "bootstrap: {dataSecretName: s}"),
				managedPool("amiType: "+tt.amiType+"\nawsLaunchTemplate: {rootVolume: {size: 50}}"), eksCluster, fmt.Sprintf(secret, tt.data))
			lt := p.LaunchTemplate
			if got := lt.Data.BlockDeviceMappings[0].DeviceName; got != tt.device || lt.UserData.Format != tt.format || lt.Image.Kind != "" {
				t.Errorf("device %q, format %q, image %v", got, lt.UserData.Format, lt.Image)
			}
			if p.Nodegroup.AMIType != tt.amiType {
				t.Errorf("amiType %q", p.Nodegroup.AMIType)
			}
		})
	}
}

// Instance metadata that is to show the tags of a cluster's machines is refused where
// it is written, whichever kind of pool it is of and wherever the template stands.
func TestMetadataCannotShowTheTagsOfACluster(t *testing.T) {
	shows := func(state string) string {
		return "awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}, instanceMetadataOptions: {instanceMetadataTags: " + state + "}}"
	}
	at := "metadata-tags spec.awsLaunchTemplate.instanceMetadataOptions.instanceMetadataTags"
	for name, tt := range map[string]struct {
		docs []string
		want []string
	}{
		"shown":                {[]string{machinePool("AWSMachinePool", "", noBootstrap), groupPool(shows("enabled")), eksCluster}, []string{at}},
		"not shown":            {[]string{machinePool("AWSMachinePool", "", noBootstrap), groupPool(shows("disabled")), eksCluster}, nil},
		"not said":             {[]string{machinePool("AWSMachinePool", "", noBootstrap), groupPool("awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}, instanceMetadataOptions: {httpTokens: required}}"), eksCluster}, nil},
		"shown in a nodegroup": {[]string{machinePool("AWSManagedMachinePool", "", noBootstrap), managedPool("amiType: CUSTOM\n" + shows("enabled")), eksCluster}, []string{at}},
		"shown by a template of several pools": {[]string{configOf("AWSLaunchConfigTemplate", "instanceType: m5.large, ami: {id: ami-00000001}, instanceMetadataOptions: {instanceMetadataTags: enabled}"),
			user("web", "AWSMachinePool", "AWSLaunchConfigTemplate", ""), eksCluster}, []string{"metadata-tags spec.template.spec.instanceMetadataOptions.instanceMetadataTags"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := manifest.Intents(objects(t, stream(tt.docs...)), manifest.Options{})
			if d := cmp.Diff(tt.want, briefly(faults, diag.Error)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			for _, f := range faults {
				if f.Code == "metadata-tags" && (!strings.Contains(f.Summary, "kubernetes.io/cluster/default_cp, sigs.k8s.io/") || !strings.Contains(f.Detail, "write disabled")) {
					t.Errorf("it says %s; %s", f.Summary, f.Detail)
				}
			}
		})
	}
}

// EKS takes no more nodes to be away at once than the nodegroup may have. A maximum
// that Git does not write is EKS's, and may be any.
func TestNodesThatAreAwayAtOnce(t *testing.T) {
	for spec, want := range map[string][]string{
		"scaling: {maxSize: 3}\nupdateConfig: {maxUnavailable: 3}":            nil,
		"scaling: {maxSize: 3}\nupdateConfig: {maxUnavailable: 4}":            {"out-of-range spec.updateConfig.maxUnavailable"},
		"scaling: {maxSize: 3}\nupdateConfig: {maxUnavailablePercentage: 90}": nil,
		"updateConfig: {maxUnavailable: 4}":                                   nil,
	} {
		_, faults := manifest.Intents(objects(t, stream(machinePool("AWSManagedMachinePool", "", noBootstrap), managedPool(spec), eksCluster)), manifest.Options{})
		if d := cmp.Diff(want, briefly(faults, diag.Error)); d != "" {
			t.Errorf("%s (-want +got):\n%s", spec, d)
		}
	}
}
