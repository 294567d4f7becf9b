package manifest_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/manifest"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/userdata"
)

// TestKeysOfOtherTools: what other tools mean by a launch template or a capacity type
// is not passed over in silence.
func TestKeysOfOtherTools(t *testing.T) {
	const pool = "awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}"
	for name, tt := range map[string]struct {
		meta string
		want []string
	}{
		"labels":        {"labels: {kubernetes.amazonaws.com/launchTemplateId: lt-00000001, kubernetes.amazonaws.com/capacityType: spot}", []string{"write node.k8s.aws/capacity-type, or remove it", "write node.k8s.aws/launch-template-id, or remove it"}},
		"an annotation": {"annotations: {eks.amazonaws.com/capacityType: SPOT}", []string{"write node.k8s.aws/capacity-type, or remove it"}},
		"beside weir's": {"labels: {kubernetes.amazonaws.com/capacityType: spot, node.k8s.aws/capacity-type: spot}", nil},
		"of others":     {"labels: {kubernetes.amazonaws.com/team: a, example.com/capacityType: b, capacityType: c}", nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, faults := manifest.Intents(objects(t, stream(machinePool("AWSMachinePool", "", noBootstrap), keyed(groupPool(pool), tt.meta), eksCluster)), manifest.Options{})
			var got []string
			for _, f := range faults {
				if f.Code == "key-of-another-tool" && f.Severity == diag.Warning {
					got = append(got, f.Detail)
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestExportedBootstrap: Cluster API writes the Secret that it makes beside the
// configuration that the Secret is made of.
func TestExportedBootstrap(t *testing.T) {
	const both = "bootstrap: {configRef: {kind: NodeadmConfig, name: nodes}, dataSecretName: made}"
	const config = "apiVersion: bootstrap.cluster.x-k8s.io/v1beta2\nkind: NodeadmConfig\nmetadata: {name: nodes}\nspec: {kubelet: {config: {maxPods: 20}}}"
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: made}\nstringData: {value: \"#!/bin/sh\"}"
	pool := groupPool("awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}")
	for name, tt := range map[string]struct {
		docs []string
		kind string
		note bool
	}{
		"both there":        {[]string{config, secret}, "NodeadmConfig", true},
		"the configuration": {[]string{config}, "NodeadmConfig", true},
		"the Secret":        {[]string{secret}, "Secret", false},
	} {
		t.Run(name, func(t *testing.T) {
			set, faults := manifest.Intents(objects(t, stream(append(tt.docs, machinePool("AWSMachinePool", "", both), pool, eksCluster)...)), manifest.Options{})
			if len(set.Pools) != 1 || set.Pools[0].Bootstrap.Kind != tt.kind {
				t.Fatalf("got %+v, %v", set.Pools, faults)
			}
			noted := slices.ContainsFunc(faults, func(f kinds.Fault) bool {
				return f.Code == "not-carried" && f.Severity == diag.Info && f.Path.String() == "spec.template.spec.bootstrap.dataSecretName"
			})
			if noted != tt.note {
				t.Errorf("faults: %v", faults)
			}
		})
	}
}

// TestCustomImages: Cluster API Provider AWS needs amiType CUSTOM beside an image, and
// EKS takes it.
func TestCustomImages(t *testing.T) {
	for amiType, want := range map[string]bool{"CUSTOM": false, "AL2023_x86_64_STANDARD": true} {
		_, faults := manifest.Intents(objects(t, stream(machinePool("AWSManagedMachinePool", "", noBootstrap), managedPool("amiType: "+amiType+"\nawsLaunchTemplate: {ami: {id: ami-00000001}}"), eksCluster)), manifest.Options{})
		advised := slices.ContainsFunc(faults, func(f kinds.Fault) bool { return f.Path.String() == "spec.amiType" && f.Severity != diag.Error })
		if advised != want {
			t.Errorf("%s: %v", amiType, faults)
		}
	}
}

// TestAnOldKubernetesVersionIsFoundAtOnce, whatever else is wrong.
func TestAnOldKubernetesVersionIsFoundAtOnce(t *testing.T) {
	const config = "apiVersion: bootstrap.cluster.x-k8s.io/v1beta1\nkind: KubeadmConfig\nmetadata: {name: nodes}\nspec: {%s}"
	const sound = "joinConfiguration: {discovery: {bootstrapToken: {token: abcdef.0123456789abcdef, apiServerEndpoint: \"a:6443\", unsafeSkipCAVerification: true}}}"
	for name, tt := range map[string]struct{ config, pool, extra string }{
		"nothing else":      {sound, "{instanceType: m5.large, ami: {id: ami-00000001}}", ""},
		"the configuration": {"verbosity: x", "{instanceType: m5.large, ami: {id: ami-00000001}}", ""},
		"its content":       {sound + ", clusterConfiguration: {}, files: [{path: /a, permissions: \"9\", content: a}]", "{instanceType: m5.large, ami: {id: ami-00000001}}", ""},
		"the pool":          {sound, "{instanceType: m5.large, ami: {id: nothing}}", ""},
		"the MachinePool":   {sound, "{instanceType: m5.large, ami: {id: ami-00000001}}", "labels: {\"-\": a}"},
	} {
		t.Run(name, func(t *testing.T) {
			mp := machinePool("AWSMachinePool", "", "version: v1.21.3\nbootstrap: {configRef: {kind: KubeadmConfig, name: nodes}}")
			if tt.extra != "" {
				mp = strings.Replace(mp, "  template:\n", "  template:\n    metadata: {"+tt.extra+"}\n", 1)
			}
			set, faults := manifest.Intents(objects(t, stream(mp, groupPool("awsLaunchTemplate: "+tt.pool), strings.Replace(config, "%s", tt.config, 1))), manifest.Options{})
			n := 0
			for _, f := range faults {
				if f.Code == "bad-version" && f.Path.String() == "spec.template.spec.version" && f.Detail == "1.22 is the oldest" {
					n++
				}
			}
			if n != 1 || len(set.Pools) != 0 {
				t.Errorf("found %d times: %v", n, faults)
			}
		})
	}
}

// TestTheOldestVersionIsDocumented as the program has it.
func TestTheOldestVersionIsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../deploy/docs/limits.md")
	if err != nil {
		t.Fatal(err)
	}
	if want := fmt.Sprintf("1.%d is the oldest", userdata.Minimum); !strings.Contains(string(page), want) {
		t.Errorf("limits.md does not say %q", want)
	}
}
