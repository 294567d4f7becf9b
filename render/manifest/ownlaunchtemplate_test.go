package manifest_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// keyed gives the pool web keys in its metadata.
func keyed(pool, meta string) string {
	return strings.Replace(pool, "metadata: {name: web}", "metadata: {name: web, "+meta+"}", 1)
}

// found lists the errors as code and field, and the fields beside them.
func found(faults []kinds.Fault) (out []string) {
	for _, f := range faults {
		if f.Severity != diag.Error {
			continue
		}
		line := f.Code + " " + f.Path.String()
		for _, r := range f.Related {
			line += " - " + r.Path.String()
		}
		out = append(out, strings.ReplaceAll(line, "node.k8s.aws/", ""))
	}
	return out
}

func TestOwnLaunchTemplateRules(t *testing.T) {
	const key = "node.k8s.aws/launch-template-"
	annotated := func(keys string) string { return "annotations: {" + keys + "}" }
	mixed := "mixedInstancesPolicy: {overrides: [{instanceType: m5.large}, {instanceType: m6g.large}]}"
	tests := map[string]struct {
		meta    string
		pool    string // spec
		managed bool
		want    []string
	}{
		"by name":                    {meta: annotated(key + "name: golden"), pool: "awsLaunchTemplate: {}"},
		"by name, without the field": {meta: annotated(key + "name: golden"), pool: "minSize: 1"},
		"as a label":                 {meta: "labels: {" + key + "name: golden, " + key + "version: Latest}", pool: "minSize: 1"},
		"twice the same":             {meta: annotated(key+"name: golden") + ", labels: {" + key + "name: golden}", pool: "minSize: 1"},
		"twice and different":        {meta: annotated(key+"name: golden") + ", labels: {" + key + "name: other}", pool: "minSize: 1", want: []string{`mismatch metadata.labels["launch-template-name"] - metadata.annotations["launch-template-name"]`}},
		"name and id":                {meta: annotated(key + "name: golden, " + key + "id: lt-00000001"), pool: "minSize: 1", want: []string{`exclusive metadata.annotations["launch-template-id"] - metadata.annotations["launch-template-name"]`}},
		"version alone": {meta: annotated(key + `version: "3"`), pool: "awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}",
			want: []string{`incomplete metadata.annotations["launch-template-version"]`}},
		"every way to write a version": {meta: annotated(key + "name: golden, " + key + "version: $default"), pool: "minSize: 1"},
		"no version":                   {meta: annotated(key + "name: golden, " + key + "version: newest"), pool: "minSize: 1", want: []string{`bad-value metadata.annotations["launch-template-version"]`}},
		"version 0":                    {meta: annotated(key + `name: golden, ` + key + `version: "0"`), pool: "minSize: 1", want: []string{`bad-value metadata.annotations["launch-template-version"]`}},
		"version 03":                   {meta: annotated(key + `name: golden, ` + key + `version: "03"`), pool: "minSize: 1", want: []string{`bad-value metadata.annotations["launch-template-version"]`}},
		"no name":                      {meta: annotated(key + "name: a b"), pool: "minSize: 1", want: []string{`bad-name metadata.annotations["launch-template-name"]`}},
		"an empty name":                {meta: annotated(key + `name: ""`), pool: "minSize: 1", want: []string{`bad-name metadata.annotations["launch-template-name"]`}},
		"no id":                        {meta: annotated(key + "id: golden"), pool: "minSize: 1", want: []string{`bad-id metadata.annotations["launch-template-id"]`}},
		"beside one of its own": {meta: annotated(key + "name: golden"), pool: "awsLaunchTemplate: {instanceType: m5.large}",
			want: []string{`exclusive metadata.annotations["launch-template-name"] - spec.awsLaunchTemplate`}},
		"beside a shared one": {meta: annotated(key + "id: lt-00000001"), pool: "launchConfigRef: {kind: AWSLaunchConfig, name: x}",
			want: []string{`exclusive metadata.annotations["launch-template-id"] - spec.launchConfigRef`, "reference-not-found spec.launchConfigRef.name"}},
		"beside an architecture": {meta: annotated(key + "name: golden, weir.dev/architecture: arm64"), pool: "minSize: 1",
			want: []string{`exclusive metadata.annotations["launch-template-name"] - metadata.annotations["weir.dev/architecture"]`}},
		"misspelt":          {meta: annotated("node.k8s.aws/launch-templat-name: golden"), pool: "awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}", want: []string{`unknown-annotation metadata.annotations["launch-templat-name"]`}},
		"another's key":     {meta: annotated("node.k8s.aws/zone-group: x"), pool: "awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}"},
		"two architectures": {meta: annotated(key + "name: golden"), pool: mixed, want: []string{"mixed-architectures spec.mixedInstancesPolicy.overrides[1].instanceType - spec.mixedInstancesPolicy.overrides[0].instanceType"}},

		"one for each architecture":         {meta: annotated(key + "name.arm64: a, " + key + "name.x86_64: bcd"), pool: mixed, want: []string{`bad-name metadata.annotations["launch-template-name.arm64"]`}},
		"one for each and good":             {meta: annotated(key + "name.arm64: arm, " + key + "id.x86_64: lt-00000001, " + key + `version.arm64: "7"`), pool: mixed},
		"one for an architecture and a one": {meta: annotated(key + "name: golden, " + key + "name.arm64: arm"), pool: mixed},
		"none for an architecture":          {meta: annotated(key + "name.arm64: arm"), pool: mixed, want: []string{`template-for-architecture spec.mixedInstancesPolicy.overrides[0].instanceType - metadata.annotations["launch-template-name.arm64"]`}},
		"no types to choose by":             {meta: annotated(key + "name.arm64: arm"), pool: "minSize: 1", want: []string{`incomplete metadata.annotations["launch-template-name.arm64"]`}},
		"a version of no template": {meta: annotated(key + "name.arm64: arm, " + key + `version.x86_64: "7"`), pool: "mixedInstancesPolicy: {overrides: [{instanceType: m6g.large}]}",
			want: []string{`incomplete metadata.annotations["launch-template-version.x86_64"]`}},
		"one for each, managed": {meta: annotated(key + "name.arm64: arm"), pool: "{}", managed: true, want: []string{`not-allowed metadata.annotations["launch-template-name.arm64"]`}},

		"managed":              {meta: annotated(key + "name: golden"), pool: "{awsLaunchTemplate: {}, instanceType: m6g.large}", managed: true},
		"managed, custom":      {meta: annotated(key + "name: golden"), pool: "{amiType: CUSTOM}", managed: true},
		"managed and its own":  {meta: annotated(key + "name: golden"), pool: "{awsLaunchTemplate: {ami: {id: ami-00000001}}}", managed: true, want: []string{`exclusive metadata.annotations["launch-template-name"] - spec.awsLaunchTemplate`}},
		"managed and its disk": {meta: annotated(key + "name: golden"), pool: "{diskSize: 30}", managed: true, want: []string{`exclusive metadata.annotations["launch-template-name"] - spec.diskSize`}},
		"managed and SSH":      {meta: annotated(key + "name: golden"), pool: "{remoteAccess: {sshKeyName: k}}", managed: true, want: []string{`exclusive metadata.annotations["launch-template-name"] - spec.remoteAccess`}},

		"a capacity type":           {meta: annotated("node.k8s.aws/capacity-type: spot"), pool: "awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}"},
		"no capacity type":          {meta: annotated("node.k8s.aws/capacity-type: SPOT"), pool: "awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}", want: []string{`bad-enum metadata.annotations["capacity-type"]`}},
		"managed, the same twice":   {meta: annotated("node.k8s.aws/capacity-type: on-demand"), pool: "{capacityType: onDemand}", managed: true},
		"managed and another":       {meta: annotated("node.k8s.aws/capacity-type: on-demand"), pool: "{capacityType: spot}", managed: true, want: []string{`mismatch metadata.annotations["capacity-type"] - spec.capacityType`}},
		"a capacity type and spot":  {meta: annotated("node.k8s.aws/capacity-type: spot"), pool: "awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}, spotMarketOptions: {}}", want: []string{`exclusive metadata.annotations["capacity-type"] - spec.awsLaunchTemplate.spotMarketOptions`}},
		"a capacity type and share": {meta: annotated("node.k8s.aws/capacity-type: spot"), pool: "awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}\nmixedInstancesPolicy: {instancesDistribution: {onDemandBaseCapacity: 1}}", want: []string{`exclusive metadata.annotations["capacity-type"] - spec.mixedInstancesPolicy.instancesDistribution.onDemandBaseCapacity`}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			pool, kind := groupPool(tt.pool), "AWSMachinePool"
			if tt.managed {
				pool, kind = managedPool(tt.pool), "AWSManagedMachinePool"
				pool = strings.Replace(pool, "spec:\n  {", "spec: {", 1)
			}
			set, faults := manifest.Intents(objects(t, stream(machinePool(kind, "", noBootstrap), keyed(pool, tt.meta), eksCluster)), manifest.Options{})
			if d := cmp.Diff(tt.want, found(faults)); d != "" {
				t.Errorf("errors (-want +got):\n%s", d)
			}
			if (len(set.Pools) == 1) != (len(tt.want) == 0) {
				t.Errorf("%d pools", len(set.Pools))
			}
		})
	}
}

func TestOwnLaunchTemplates(t *testing.T) {
	const key = "node.k8s.aws/launch-template-"
	p := one(t, machinePool("AWSMachinePool", "", noBootstrap), eksCluster, keyed(groupPool("mixedInstancesPolicy: {overrides: [{instanceType: m5.large}, {instanceType: m6g.large}, {instanceType: c6g.large}]}"),
		"annotations: {"+key+"id.x86_64: lt-00000001, "+key+"version: Default, "+key+"name.arm64: arm, "+key+`version.arm64: "7", node.k8s.aws/capacity-type: spot}`))
	at := func(name string) intent.Path { return intent.Path{"metadata", "annotations", key + name} }
	want := &intent.ForeignTemplate{NameField: at("id.x86_64"), VersionField: at("version"),
		Lookup: intent.Lookup{Kind: intent.TemplateByID, Name: "lt-00000001", Version: "$Default", InstanceType: "m5.large"}}
	if d := cmp.Diff(want, p.ForeignTemplate); d != "" {
		t.Errorf("the group's template (-want +got):\n%s", d)
	}
	others := []intent.ForeignTemplate{{NameField: at("name.arm64"), VersionField: at("version.arm64"),
		Lookup: intent.Lookup{Kind: intent.TemplateByName, Name: "arm", Version: "7", InstanceType: "c6g.large,m6g.large"}}}
	if d := cmp.Diff(others, p.ForeignOverrides); d != "" {
		t.Errorf("the other templates (-want +got):\n%s", d)
	}
	if p.LaunchTemplate != nil || p.Group.MixedInstancesPolicy.OnDemandPercentageAboveBaseCapacity != 0 {
		t.Errorf("template %+v, policy %+v", p.LaunchTemplate, p.Group.MixedInstancesPolicy)
	}
	if all := slices.Collect(p.Lookups()); len(all) != 4 {
		t.Errorf("%d lookups %v, want the two templates, the subnets and the EKS cluster", len(all), all)
	}

	p = one(t, machinePool("AWSManagedMachinePool", "", noBootstrap), eksCluster, keyed(managedPool("scaling: {minSize: 1}"), "labels: {"+key+"name: golden, node.k8s.aws/capacity-type: spot}"))
	if p.Nodegroup.CapacityType != "SPOT" || p.Nodegroup.AMIType != "" || p.ForeignTemplate.Lookup.Version != "$Latest" || p.ForeignTemplate.VersionField != nil {
		t.Errorf("nodegroup %+v, template %+v", p.Nodegroup, p.ForeignTemplate)
	}
}

// The image must fit the instance types that options add, and not those that have
// a template or an image of their own there.
func TestOwnLaunchTemplateWithOptions(t *testing.T) {
	const key = "node.k8s.aws/launch-template-"
	mp := machinePool("AWSMachinePool", "", noBootstrap)
	p := one(t, mp, eksCluster, keyed(groupPool("minSize: 1"), "annotations: {"+key+"name: golden}"),
		options("o", "AWSMachinePool", "autoScalingGroup: {mixedInstancesPolicy: {overrides: [{instanceType: m5.large}, {instanceType: m6g.large, imageId: ami-0123456789abcdef0}, {instanceType: c5.large}]}}"))
	if got := p.ForeignTemplate.Lookup.InstanceType; got != "c5.large,m5.large" {
		t.Errorf("types %q", got)
	}
	p = one(t, mp, eksCluster, keyed(groupPool("mixedInstancesPolicy: {overrides: [{instanceType: m5.large}, {instanceType: m6g.large}]}"), "annotations: {"+key+"name: golden, "+key+"name.arm64: arm}"),
		options("o", "AWSMachinePool", "autoScalingGroup: {mixedInstancesPolicy: {overrides: [{instanceType: m6g.large, launchTemplateSpecification: {launchTemplateName: special, version: \"3\"}}]}}"))
	if len(p.ForeignOverrides) != 0 || p.ForeignTemplate.Lookup.InstanceType != "m5.large" {
		t.Errorf("overrides %+v, template %+v", p.ForeignOverrides, p.ForeignTemplate)
	}
	p = one(t, machinePool("AWSManagedMachinePool", "", noBootstrap), eksCluster, keyed(managedPool("scaling: {minSize: 1}"), "annotations: {"+key+"name: golden}"),
		options("o", "AWSManagedMachinePool", "nodegroup: {instanceTypes: [m5.large, c5.large]}"))
	if got := p.ForeignTemplate.Lookup.InstanceType; got != "c5.large,m5.large" {
		t.Errorf("a nodegroup's types %q", got)
	}
}

// A capacity type makes a policy where there is none, and keeps what else one says.
func TestCapacityType(t *testing.T) {
	for _, tt := range []struct {
		value, policy string
		percent       int32
		strategy      string
	}{
		{"spot", "", 0, "lowest-price"},
		{"on-demand", "", 100, "lowest-price"},
		{"spot", "mixedInstancesPolicy: {instancesDistribution: {spotAllocationStrategy: capacity-optimized}}", 0, "capacity-optimized"},
	} {
		pool := keyed(groupPool("awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}\n"+tt.policy), "annotations: {node.k8s.aws/capacity-type: "+tt.value+"}")
		m := one(t, machinePool("AWSMachinePool", "", noBootstrap), eksCluster, pool).Group.MixedInstancesPolicy
		if m == nil || m.OnDemandPercentageAboveBaseCapacity != tt.percent || m.SpotAllocationStrategy != tt.strategy {
			t.Errorf("%s, %q: policy %+v", tt.value, tt.policy, m)
		}
	}
}

// weir notes settings that the template brings itself, and keys that nobody reads.
func TestOwnLaunchTemplateNotes(t *testing.T) {
	const key = "node.k8s.aws/launch-template-"
	notes := func(docs ...string) (out []string) {
		_, faults := manifest.Intents(objects(t, stream(docs...)), manifest.Options{})
		for _, f := range faults {
			out = append(out, f.Code+" "+f.Path.String())
		}
		return out
	}
	own := keyed(groupPool("minSize: 1"), "annotations: {"+key+"name: golden, weir.dev/keep-versions: \"3\"}")
	got := notes(machinePool("AWSMachinePool", "", `bootstrap: {dataSecretName: s}`), own, eksCluster)
	want := []string{`not-carried metadata.annotations["weir.dev/keep-versions"]`, "bootstrap-not-used spec.template.spec.bootstrap.dataSecretName"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("notes (-want +got):\n%s", d)
	}
	elsewhere := keyed(machinePool("AWSMachinePool", "", noBootstrap), "labels: {"+key+"name: golden}")
	got = notes(elsewhere, groupPool("awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}"), eksCluster)
	if d := cmp.Diff([]string{`annotation-not-read metadata.labels["node.k8s.aws/launch-template-name"]`}, got); d != "" {
		t.Errorf("on a MachinePool (-want +got):\n%s", d)
	}
	got = notes(machinePool("AWSMachinePool", "", noBootstrap), eksCluster,
		keyed(groupPool("mixedInstancesPolicy: {overrides: [{instanceType: m5.large}]}"), "annotations: {"+key+"name: golden, "+key+"name.arm64: arm}"))
	if d := cmp.Diff([]string{`not-carried metadata.annotations["node.k8s.aws/launch-template-name.arm64"]`}, got); d != "" {
		t.Errorf("an architecture without a type (-want +got):\n%s", d)
	}
	got = notes(machinePool("AWSMachinePool", "", noBootstrap), own, eksCluster, options("o", "AWSMachinePool", "launchTemplate: {ebsOptimized: true}"))
	if len(got) == 0 || !strings.HasPrefix(got[len(got)-1], "exclusive spec.launchTemplate") {
		t.Errorf("options: %v", got)
	}
}

// A hint never leads to the other architecture.
func TestHintsOfArchitectureKeys(t *testing.T) {
	for written, want := range map[string]string{
		"launch-template-name.amd64": "launch-template-name.x86_64", "launch-template-version.x64": "launch-template-version.x86_64",
		"launch-template-id.x86-64": "launch-template-id.x86_64", "launch-template-name.aarch64": "launch-template-name.arm64",
		"launch-template-name.arm": "launch-template-name.arm64", "launch-template-names": "launch-template-name",
	} {
		pool := keyed(groupPool("mixedInstancesPolicy: {overrides: [{instanceType: m5.large}]}"), `annotations: {node.k8s.aws/`+written+`: "7"}`)
		_, faults := manifest.Intents(objects(t, pool), manifest.Options{})
		i := slices.IndexFunc(faults, func(f kinds.Fault) bool { return f.Code == "unknown-annotation" })
		if i < 0 || faults[i].Detail != `did you mean "node.k8s.aws/`+want+`"?` {
			t.Errorf("%s: got %v", written, faults)
		}
	}
}
