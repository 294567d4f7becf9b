package manifest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// objects reads a stream of YAML documents as a build would give them.
func objects(t testing.TB, text string) []kinds.Object {
	t.Helper()
	dec := yaml.NewDecoder(strings.NewReader(text))
	var out []kinds.Object
	for {
		var doc yaml.Node
		if err := dec.Decode(&doc); err != nil {
			break
		}
		if len(doc.Content) != 1 {
			continue
		}
		n := doc.Content[0]
		ref := intent.ObjectRef{APIVersion: scalar(n, "apiVersion"), Kind: scalar(n, "kind"), Namespace: scalar(n, "metadata", "namespace"), Name: scalar(n, "metadata", "name")}
		if ref.Namespace == "" && !strings.HasSuffix(ref.Kind, "Identity") {
			ref.Namespace = "default"
		}
		out = append(out, kinds.Object{Ref: ref, Node: n})
	}
	return out
}

func scalar(n *yaml.Node, path ...string) string {
	for _, key := range path {
		var next *yaml.Node
		if n.Kind == yaml.MappingNode {
			for i := 0; i+1 < len(n.Content); i += 2 {
				if n.Content[i].Value == key {
					next = n.Content[i+1]
				}
			}
		}
		if next == nil {
			return ""
		}
		n = next
	}
	return n.Value
}

// briefly prints faults of a severity as "code path".
func briefly(faults []kinds.Fault, s diag.Severity) []string {
	var out []string
	for _, f := range faults {
		if f.Severity == s {
			out = append(out, f.Code+" "+f.Path.String())
		}
	}
	return out
}

func indent(n int, text string) string {
	return strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+strings.Repeat(" ", n))
}

func TestStrictDecoding(t *testing.T) {
	tests := map[string]struct {
		spec string
		want []string
	}{
		"fine":                     {"awsLaunchTemplate: {}", nil},
		"null is absent":           {"awsLaunchTemplate: {sshKeyName: null, rootVolume: ~}\nsubnets:", nil},
		"null of a required field": {"awsLaunchTemplate:", []string{"missing-required spec.awsLaunchTemplate"}},
		"unknown field":            {"awsLaunchTemplate: {volumes: []}", []string{"unknown-field spec.awsLaunchTemplate.volumes"}},
		"twice":                    {"awsLaunchTemplate: {}\nmaxSize: 1\nmaxSize: 2", []string{"duplicate-key spec.maxSize"}},
		"key twice in a mapping":   {"awsLaunchTemplate: {}\nadditionalTags: {a: b, a: c}", []string{"duplicate-key spec.additionalTags.a"}},
		"text for a number":        {"awsLaunchTemplate: {}\nmaxSize: many", []string{"wrong-type spec.maxSize"}},
		"number for text":          {"awsLaunchTemplate: {instanceType: 5}", []string{"wrong-type spec.awsLaunchTemplate.instanceType"}},
		"yes for text":             {"awsLaunchTemplate: {instanceType: yes}", []string{"wrong-type spec.awsLaunchTemplate.instanceType"}},
		"yes in quotes":            {"awsLaunchTemplate: {instanceType: 'yes'}", nil},
		"yes for a boolean":        {"awsLaunchTemplate: {}\ncapacityRebalance: yes", nil},
		"quoted boolean":           {"awsLaunchTemplate: {}\ncapacityRebalance: 'true'", []string{"wrong-type spec.capacityRebalance"}},
		"whole float":              {"awsLaunchTemplate: {}\nmaxSize: 3.0", nil},
		"broken float":             {"awsLaunchTemplate: {}\nmaxSize: 3.5", []string{"wrong-type spec.maxSize"}},
		"too large":                {"awsLaunchTemplate: {}\nmaxSize: 3000000000", []string{"out-of-range spec.maxSize"}},
		"below the minimum":        {"awsLaunchTemplate: {}\nminSize: -1", []string{"out-of-range spec.minSize"}},
		"list for a mapping":       {"awsLaunchTemplate: []", []string{"wrong-type spec.awsLaunchTemplate"}},
		"mapping for a list":       {"awsLaunchTemplate: {}\navailabilityZones: {}", []string{"wrong-type spec.availabilityZones"}},
		"empty item":               {"awsLaunchTemplate: {}\navailabilityZones: [eu-west-1a, ~]", []string{"wrong-type spec.availabilityZones[1]"}},
		"bare subnet":              {"awsLaunchTemplate: {}\nsubnets: [subnet-00000001]", []string{"wrong-type spec.subnets[0]"}},
		"duration":                 {"awsLaunchTemplate: {}\ndefaultCoolDown: 1h5m", nil},
		"no duration":              {"awsLaunchTemplate: {}\ndefaultCoolDown: 300", []string{"wrong-type spec.defaultCoolDown"}},
		"not in the list of words": {"awsLaunchTemplate: {}\navailabilityZoneSubnetType: Public", []string{"bad-enum spec.availabilityZoneSubnetType"}},
		"required in a list":       {"awsLaunchTemplate: {nonRootVolumes: [{deviceName: /dev/sdb}]}", []string{"missing-required spec.awsLaunchTemplate.nonRootVolumes[0].size"}},
		"output fields":            {"awsLaunchTemplate: {}\nproviderID: 5\nproviderIDList: [a]", nil},
		"a reference without name": {"awsLaunchTemplate: {}\nlaunchConfigRef: {kind: AWSLaunchConfig}", []string{"missing-required spec.launchConfigRef.name"}},
		"an alias":                 {"awsLaunchTemplate: {instanceType: &t m5.large, imageLookupOrg: *t}", nil},
		"all at once":              {"minSize: x\nmaxsize: 2\nsubnets: 5", []string{"missing-required spec.awsLaunchTemplate", "unknown-field spec.maxsize", "wrong-type spec.minSize", "wrong-type spec.subnets"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, faults := manifest.Intents(objects(t, "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachinePool\nmetadata: {name: p}\nspec:\n  "+indent(2, tt.spec)), manifest.Options{Partial: true})
			if d := cmp.Diff(tt.want, briefly(faults, diag.Error)); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestHints(t *testing.T) {
	tests := map[string]struct{ object, want string }{
		"a near miss":            {"kind: AWSMachinePool\nmetadata: {name: p}\nspec: {awsLaunchTemplate: {instanceTyp: x}}", `did you mean "instanceType"?`},
		"the wrong case":         {"kind: AWSMachinePool\nmetadata: {name: p}\nspec: {awsLaunchTemplate: {}, minsize: 1}", `did you mean "minSize"?`},
		"a field of AWSMachine":  {"kind: AWSMachinePool\nmetadata: {name: p}\nspec: {awsLaunchTemplate: {publicIP: true}}", "it is a field of AWSMachine; a pool's awsLaunchTemplate does not have it"},
		"the other pool's field": {"kind: AWSManagedMachinePool\nmetadata: {name: p}\nspec: {minSize: 1}", "write it under spec.scaling"},
		"EC2's name":             {"kind: AWSMachinePool\nmetadata: {name: p}\nspec: {awsLaunchTemplate: {metadataOptions: {}}}", `EC2's metadataOptions is "instanceMetadataOptions" here`},
		"EC2's name of a part":   {"kind: AWSManagedMachinePool\nmetadata: {name: p}\nspec: {awsLaunchTemplate: {imageId: ami-00000001}}", `EC2's imageId is "ami.id" here`},
		"what PoolOptions says":  {"kind: AWSMachinePool\nmetadata: {name: p}\nspec: {awsLaunchTemplate: {cpuOptions: {}}}", "write spec.launchTemplate.cpuOptions in a PoolOptions"},
		"of the template":        {"kind: AWSMachinePool\nmetadata: {name: p}\nspec: {awsLaunchTemplate: {}, marketType: Spot}", "write it under spec.awsLaunchTemplate"},
		"Auto Scaling's name":    {"kind: AWSMachinePool\nmetadata: {name: p}\nspec: {awsLaunchTemplate: {}, vpcZoneIdentifier: a}", `Auto Scaling's vpcZoneIdentifier is "subnets" here`},
		"options of the group":   {"kind: AWSMachinePool\nmetadata: {name: p}\nspec: {awsLaunchTemplate: {}, healthCheckType: ELB}", "write spec.autoScalingGroup.healthCheckType in a PoolOptions"},
		"EKS's name":             {"kind: AWSManagedMachinePool\nmetadata: {name: p}\nspec: {nodeRole: r}", `EKS's nodeRole is "roleName" here`},
		"options of the pool":    {"kind: AWSManagedMachinePool\nmetadata: {name: p}\nspec: {warmPoolConfig: {}}", "write spec.nodegroup.warmPoolConfig in a PoolOptions"},
		"nothing near":           {"kind: AWSMachinePool\nmetadata: {name: p}\nspec: {awsLaunchTemplate: {}, zzzzzz: 1}", ""},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, faults := manifest.Intents(objects(t, "apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\n"+tt.object), manifest.Options{})
			for _, f := range faults {
				if f.Code == "unknown-field" {
					if f.Detail != tt.want {
						t.Errorf("detail %q, want %q", f.Detail, tt.want)
					}
					return
				}
			}
			t.Errorf("no unknown field in %v", faults)
		})
	}
}

func TestVersionsDiffer(t *testing.T) {
	const misspelt = "kind: AWSManagedMachinePool\nmetadata: {name: p}\nspec: {updateConfig: {maxUnavailablePrecentage: 5}}"
	for version, want := range map[string][]string{
		"v1beta1": nil,
		"v1beta2": {"exclusive spec.updateConfig", "unknown-field spec.updateConfig.maxUnavailablePrecentage"},
	} {
		_, faults := manifest.Intents(objects(t, "apiVersion: infrastructure.cluster.x-k8s.io/"+version+"\n"+misspelt), manifest.Options{Partial: true})
		if d := cmp.Diff(want, briefly(faults, diag.Error)); d != "" {
			t.Errorf("%s (-want +got):\n%s", version, d)
		}
	}
}

func TestSelfReferenceAndAliasBombsEnd(t *testing.T) {
	bomb := "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c <= 'z'; c++ {
		bomb += string(c) + ": &" + string(c) + " [" + strings.TrimSuffix(strings.Repeat("*"+string(c-1)+", ", 10), ", ") + "]\n"
	}
	text := "apiVersion: bootstrap.cluster.x-k8s.io/v1beta2\nkind: NodeadmConfig\nmetadata: {name: p}\nspec:\n  kubelet:\n    config:\n      " + indent(6, bomb)
	_, faults := manifest.Intents(objects(t, text), manifest.Options{})
	if len(faults) == 0 {
		t.Error("an alias bomb was read without a fault")
	}
	loop := &yaml.Node{Kind: yaml.MappingNode}
	loop.Content = []*yaml.Node{{Kind: yaml.ScalarNode, Value: "spec"}, {Kind: yaml.AliasNode, Alias: loop}}
	ref := intent.ObjectRef{APIVersion: "bootstrap.cluster.x-k8s.io/v1beta2", Kind: "NodeadmConfig", Namespace: "default", Name: "x"}
	_, faults = manifest.Intents([]kinds.Object{{Ref: ref, Node: loop}}, manifest.Options{})
	if len(faults) == 0 {
		t.Error("a self-reference was read without a fault")
	}
}

func FuzzIntents(f *testing.F) {
	f.Add("apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSMachinePool\nmetadata: {name: p}\nspec: {awsLaunchTemplate: {rootVolume: {size: 8}}}\n---\n" +
		"apiVersion: cluster.x-k8s.io/v1beta1\nkind: MachinePool\nmetadata: {name: p}\nspec: {clusterName: c, template: {spec: {clusterName: c, bootstrap: {dataSecretName: s}, infrastructureRef: {kind: AWSMachinePool, name: p}}}}\n---\n" +
		"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {value: aGk=}\n")
	f.Add("apiVersion: bootstrap.cluster.x-k8s.io/v1beta1\nkind: KubeadmConfig\nmetadata: {name: k}\nspec: {joinConfiguration: {nodeRegistration: {kubeletExtraArgs: {a: b}}}}")
	f.Add("apiVersion: infrastructure.cluster.x-k8s.io/v1beta2\nkind: AWSManagedMachinePool\nmetadata: {name: p, annotations: {weir.dev/keep-versions: x}}\nspec: {taints: [{}], scaling: 5}")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<14 {
			t.Skip("too long to be interesting")
		}
		in := objects(t, text)
		set, faults := manifest.Intents(in, manifest.Options{})
		again, same := manifest.Intents(in, manifest.Options{})
		if d := cmp.Diff(set, again) + cmp.Diff(faults, same); d != "" {
			t.Errorf("two runs differ:\n%s", d)
		}
		for _, p := range set.Pools {
			if (p.Group == nil) == (p.Nodegroup == nil) {
				t.Errorf("pool %s is neither or both kinds", p.Key)
			}
		}
	})
}
