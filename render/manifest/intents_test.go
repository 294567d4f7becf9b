package manifest_test

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest"
)

// machinePool is a MachinePool p of cluster c.
func machinePool(kind, extra, template string) string {
	return fmt.Sprintf(`
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: web%s}
spec:
  clusterName: c
  template:
    spec:
      clusterName: c
      infrastructureRef: {kind: %s, name: web}
      %s
`, extra, kind, indent(6, template))
}

func groupPool(spec string) string {
	return "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachinePool\nmetadata: {name: web}\nspec:\n  " + indent(2, spec)
}

func managedPool(spec string) string {
	return "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSManagedMachinePool\nmetadata: {name: web}\nspec:\n  " + indent(2, spec)
}

const eksCluster = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: c}
spec: {controlPlaneRef: {kind: AWSManagedControlPlane, name: cp}}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: AWSManagedControlPlane
metadata: {name: cp}
spec: {version: v1.31.0}
`

const noBootstrap = `bootstrap: {dataSecretName: ""}`

func stream(docs ...string) string { return strings.Join(docs, "\n---\n") }

// one renders exactly one pool without an error.
func one(t *testing.T, docs ...string) intent.Pool {
	t.Helper()
	set, faults := manifest.Intents(objects(t, stream(docs...)), manifest.Options{})
	if errs := briefly(faults, diag.Error); len(errs) > 0 || len(set.Pools) != 1 {
		t.Fatalf("%d pools, errors %v", len(set.Pools), errs)
	}
	return set.Pools[0]
}

func TestGeneratedNames(t *testing.T) {
	tests := map[string]struct{ pool, controlPlane, nodegroup, cluster string }{
		"plain":    {"p", "x-control-plane", "default_p", "default_x-control-plane"},
		"dots":     {"a.b", "x.y", "default_a_b", "default_x_y"},
		"too long": {strings.Repeat("a", 60), strings.Repeat("b", 92), "capa_ppsi0n32mr2ky27p18nkndcyg14", "capa_8tfmfrecyljnrgn4iym6esmhcf2"},
		"just fit": {strings.Repeat("a", 55), strings.Repeat("b", 91), "default_" + strings.Repeat("a", 55), "default_" + strings.Repeat("b", 91)},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			text := strings.ReplaceAll(stream(machinePool("AWSManagedMachinePool", "", noBootstrap), managedPool("{}"), eksCluster), "name: web}", "name: "+tt.pool+"}")
			p := one(t, strings.ReplaceAll(text, "name: cp}", "name: "+tt.controlPlane+"}"))
			if p.Nodegroup.Name != tt.nodegroup || p.Nodegroup.ClusterName != tt.cluster {
				t.Errorf("nodegroup %q of %q, want %q of %q", p.Nodegroup.Name, p.Nodegroup.ClusterName, tt.nodegroup, tt.cluster)
			}
		})
	}
}

func TestReplicas(t *testing.T) {
	annotations := func(low, high string) string {
		return fmt.Sprintf(", annotations: {cluster.x-k8s.io/cluster-api-autoscaler-node-group-min-size: %q, cluster.x-k8s.io/cluster-api-autoscaler-node-group-max-size: %q}", low, high)
	}
	group := "minSize: 2\nmaxSize: 5\nawsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}"
	tests := map[string]struct {
		meta, spec string
		want       intent.Number
		warnings   []string
	}{
		"unwritten is clamped":         {"", "", intent.Number{Value: 2}, nil},
		"written":                      {"", "replicas: 3", intent.Number{Value: 3, Written: true}, nil},
		"below":                        {"", "replicas: 1", intent.Number{Value: 2, Written: true}, []string{"replicas-out-of-bounds spec.replicas"}},
		"above":                        {"", "replicas: 9", intent.Number{Value: 5, Written: true}, []string{"replicas-out-of-bounds spec.replicas"}},
		"the autoscaler's lower bound": {annotations("4", "5"), "", intent.Number{Value: 4}, nil},
		"written beats the autoscaler": {annotations("4", "5"), "replicas: 3", intent.Number{Value: 3, Written: true}, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			mp := strings.Replace(machinePool("AWSMachinePool", tt.meta, noBootstrap), "clusterName: c\n", "clusterName: c\n  "+tt.spec+"\n", 1)
			set, faults := manifest.Intents(objects(t, stream(mp, groupPool(group))), manifest.Options{})
			if len(set.Pools) != 1 {
				t.Fatalf("faults %v", faults)
			}
			if d := cmp.Diff(tt.want, set.Pools[0].Replicas); d != "" {
				t.Errorf("replicas (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.warnings, briefly(faults, diag.Warning)); d != "" {
				t.Errorf("warnings (-want +got):\n%s", d)
			}
		})
	}
}

func TestNodegroupBounds(t *testing.T) {
	tests := map[string]struct {
		replicas, scaling string
		low, high         intent.Number
		size              int32
	}{
		"nothing written": {"", "", intent.Number{Value: 1}, intent.Number{Value: 1}, 1},
		"replicas only":   {"replicas: 4", "", intent.Number{Value: 1}, intent.Number{Value: 4}, 4},
		"none wanted":     {"replicas: 0", "", intent.Number{}, intent.Number{Value: 1}, 0},
		"minimum only":    {"replicas: 2", "scaling: {minSize: 3}", intent.Number{Value: 3, Written: true}, intent.Number{Value: 3}, 3},
		"maximum only":    {"replicas: 9", "scaling: {maxSize: 3}", intent.Number{Value: 1}, intent.Number{Value: 3, Written: true}, 3},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			mp := strings.Replace(machinePool("AWSManagedMachinePool", "", noBootstrap), "clusterName: c\n", "clusterName: c\n  "+tt.replicas+"\n", 1)
			p := one(t, mp, managedPool("roleName: r\n"+tt.scaling), eksCluster)
			if p.Nodegroup.MinSize != tt.low || p.Nodegroup.MaxSize != tt.high || p.Replicas.Value != tt.size {
				t.Errorf("min %+v max %+v size %d, want %+v %+v %d", p.Nodegroup.MinSize, p.Nodegroup.MaxSize, p.Replicas.Value, tt.low, tt.high, tt.size)
			}
		})
	}
}

func TestImages(t *testing.T) {
	kubeadm := "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSCluster\nmetadata: {name: c}\nspec: {imageLookupOrg: \"123\"}\n---\n" +
		"apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: c}\nspec: {infrastructureRef: {kind: AWSCluster, name: c}}"
	tests := map[string]struct {
		cluster, version, template string
		want                       intent.Lookup
		fault                      string
	}{
		"by parameter":   {eksCluster, "", "ami: {id: 'resolve:ssm:/team/image:7'}", intent.Lookup{Kind: intent.ImageByParameter, Name: "/team/image:7", InstanceType: "m5.large"}, ""},
		"no parameter":   {eksCluster, "", "ami: {id: 'resolve:ssm:'}", intent.Lookup{}, "bad-id spec.awsLaunchTemplate.ami.id"},
		"by id":          {eksCluster, "", "ami: {id: ami-00000001}", intent.Lookup{Kind: intent.ImageByID, Name: "ami-00000001", InstanceType: "m5.large"}, ""},
		"no version":     {eksCluster, "", "", intent.Lookup{}, "image-unknown spec.template.spec.version"},
		"EKS, AL2":       {eksCluster, "v1.32.0", "", intent.Lookup{Kind: intent.ImageForEKS, Name: "AmazonLinux", Version: "1.32", InstanceType: "m5.large"}, ""},
		"EKS without it": {eksCluster, "v1.33.0", "", intent.Lookup{}, "no-al2-image spec.awsLaunchTemplate.ami.eksLookupType"},
		"EKS, AL2023":    {eksCluster, "v1.33.0", "ami: {eksLookupType: AmazonLinux2023}", intent.Lookup{Kind: intent.ImageForEKS, Name: "AmazonLinux2023", Version: "1.33", InstanceType: "m5.large"}, ""},
		"by name": {kubeadm, "v1.31.2", "imageLookupBaseOS: flatcar-stable",
			intent.Lookup{Kind: intent.ImageByName, Name: "capa-ami-flatcar-stable-?1.31.2-*", Owner: "123", InstanceType: "m5.large"}, ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			boot := noBootstrap
			if tt.version != "" {
				boot += "\nversion: " + tt.version
			}
			text := stream(machinePool("AWSMachinePool", "", boot), groupPool("awsLaunchTemplate:\n  instanceType: m5.large\n  "+tt.template), tt.cluster)
			set, faults := manifest.Intents(objects(t, text), manifest.Options{})
			if tt.fault != "" {
				if d := cmp.Diff([]string{tt.fault}, briefly(faults, diag.Error)); d != "" || len(set.Pools) != 0 {
					t.Errorf("%d pools, faults (-want +got):\n%s", len(set.Pools), d)
				}
				return
			}
			if len(set.Pools) != 1 {
				t.Fatalf("faults %v", faults)
			}
			if d := cmp.Diff(tt.want, set.Pools[0].LaunchTemplate.Image); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestPoolErrors(t *testing.T) {
	group, managed := groupPool("awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}"), "AWSManagedMachinePool"
	nodeadm := "bootstrap: {configRef: {kind: %s, name: b}}\nversion: v1.31.0"
	selfManaged := "apiVersion: cluster.x-k8s.io/v1beta1\nkind: Cluster\nmetadata: {name: c}\nspec: {controlPlaneRef: {kind: KubeadmControlPlane, name: c}}"
	config := func(kind, spec string) string {
		return "apiVersion: bootstrap.cluster.x-k8s.io/v1beta2\nkind: " + kind + "\nmetadata: {name: b}\nspec: " + spec
	}
	tests := map[string]struct {
		docs []string
		want []string
	}{
		"managed pool without EKS":   {[]string{machinePool(managed, "", noBootstrap), managedPool("{}"), selfManaged}, []string{"not-eks spec.clusterName"}},
		"nodeadm without EKS":        {[]string{machinePool("AWSMachinePool", "", fmt.Sprintf(nodeadm, "NodeadmConfig")), group, selfManaged, config("NodeadmConfig", "{}")}, []string{"not-eks spec.template.spec.bootstrap.configRef.kind"}},
		"configuration not rendered": {[]string{machinePool("AWSMachinePool", "", fmt.Sprintf(nodeadm, "NodeadmConfig")), group, eksCluster}, []string{"reference-not-found spec.template.spec.bootstrap.configRef.name"}},
		"secret not rendered":        {[]string{machinePool("AWSMachinePool", "", "bootstrap: {dataSecretName: s}"), group}, []string{"secret-not-found spec.template.spec.bootstrap.dataSecretName"}},
		"secret without the key": {[]string{machinePool("AWSMachinePool", "", "bootstrap: {dataSecretName: s}"), group, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {other: x}"},
			[]string{"secret-key-not-found spec.template.spec.bootstrap.dataSecretName"}},
		"cloud-config where EKS merges": {[]string{machinePool(managed, "", fmt.Sprintf(nodeadm, "EKSConfig")), managedPool("amiType: AL2_x86_64\nawsLaunchTemplate: {}"), eksCluster, config("EKSConfig", "{}")},
			[]string{"user-data-not-mime spec.awsLaunchTemplate"}},
		"too large": {[]string{machinePool("AWSMachinePool", "", "bootstrap: {dataSecretName: s}"), group, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {value: " + noise(32768) + "}"},
			[]string{"user-data-too-large spec"}},
		"too large where EKS reads it": {[]string{machinePool(managed, "", "bootstrap: {dataSecretName: s}"), managedPool("amiType: AL2023_x86_64_STANDARD\nawsLaunchTemplate: {}"), eksCluster,
			"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {value: '#!" + strings.Repeat("x", 16385) + "'}"}, []string{"user-data-not-mime spec.awsLaunchTemplate", "user-data-too-large spec"}},
		"compressible":                    {[]string{machinePool("AWSMachinePool", "", "bootstrap: {dataSecretName: s}"), group, "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {value: " + strings.Repeat("x", 32768) + "}"}, nil},
		"AL2 by default on a new cluster": {[]string{machinePool(managed, "", noBootstrap), managedPool("{}"), strings.Replace(eksCluster, "v1.31.0", "v1.33", 1)}, []string{"no-al2-image spec.amiType"}},
		"boundary in a command": {[]string{machinePool("AWSMachinePool", "", fmt.Sprintf(nodeadm, "NodeadmConfig")), group, eksCluster, config("NodeadmConfig", `{preNodeadmCommands: ["--//"]}`)},
			[]string{"user-data-boundary spec.preNodeadmCommands"}},
		"kubeadm too old": {[]string{machinePool("AWSMachinePool", "", "bootstrap: {configRef: {kind: KubeadmConfig, name: b}}\nversion: v1.21.0"), group, config("KubeadmConfig", "{verbosity: 1}")},
			[]string{"bad-version spec.template.spec.version"}},
		"two MachinePools, one pool": {[]string{machinePool("AWSMachinePool", "", noBootstrap), strings.Replace(machinePool("AWSMachinePool", "", noBootstrap), "name: web}", "name: api}", 1), group},
			[]string{"shared-infrastructure spec.template.spec.infrastructureRef.name"}},
		"one name in two namespaces": {[]string{machinePool("AWSMachinePool", "", noBootstrap), group,
			strings.Replace(machinePool("AWSMachinePool", ", namespace: other", noBootstrap), "x", "x", 1), strings.Replace(group, "name: web}", "name: web, namespace: other}", 1)},
			[]string{"name-taken metadata.name", "name-taken metadata.name"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, faults := manifest.Intents(objects(t, stream(tt.docs...)), manifest.Options{})
			if d := cmp.Diff(tt.want, briefly(faults, diag.Error)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestOneFaultLeavesOtherPools checks that an error drops its own pool only.
func TestOneFaultLeavesOtherPools(t *testing.T) {
	rename := func(s string) string { return strings.ReplaceAll(s, "name: web}", "name: api}") }
	good := groupPool("awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}")
	bad := rename(groupPool("awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}\nmaxSize: 0"))
	set, _ := manifest.Intents(objects(t, stream(machinePool("AWSMachinePool", "", noBootstrap), good, rename(machinePool("AWSMachinePool", "", noBootstrap)), bad)), manifest.Options{})
	if len(set.Pools) != 1 || set.Pools[0].Key.Name != "web" {
		t.Errorf("pools %v, want web alone", set.Pools)
	}
}

// TestVolumesSurvive decodes what it wrote, for any numbers.
func TestVolumesSurvive(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		want := intent.Ebs{
			VolumeSize: rapid.Int32Range(8, 65536).Draw(rt, "size"), VolumeType: "gp3",
		}
		want.Iops = rapid.Int32Range(3000, min(want.VolumeSize*500, 80000)).Draw(rt, "iops")
		want.Throughput = rapid.Int32Range(125, min(want.Iops/4, 2000)).Draw(rt, "throughput")
		yes := true
		want.DeleteOnTermination = &yes
		if rapid.Bool().Draw(rt, "key") {
			want.KmsKeyID, want.Encrypted = rapid.StringMatching(`alias/[a-z/-]{1,20}`).Draw(rt, "name"), &yes
		}
		spec := fmt.Sprintf("awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}, rootVolume: {type: gp3, size: %d, iops: %d, throughput: %d, encryptionKey: %q}}",
			want.VolumeSize, want.Iops, want.Throughput, want.KmsKeyID)
		p := one(t, machinePool("AWSMachinePool", "", noBootstrap), groupPool(spec))
		if d := cmp.Diff(want, p.LaunchTemplate.Data.BlockDeviceMappings[0].Ebs); d != "" {
			rt.Fatalf("(-want +got):\n%s", d)
		}
	})
}

// noise is text of n characters that a compressor can do little with.
func noise(n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		sum := sha256.Sum256([]byte(strconv.Itoa(i)))
		b.WriteString(base64.RawURLEncoding.EncodeToString(sum[:]))
	}
	return b.String()[:n]
}
