package render_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/tree"
)

// The files of a target for the checks across fields and objects. Each object is
// a file of its own whose spec begins on line 4, in column 3.
const (
	crossCluster = `apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: demo}
spec:
  controlPlaneRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: AWSManagedControlPlane, name: demo}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: AWSManagedControlPlane
metadata: {name: demo}
spec:
  region: eu-west-1
  version: v1.31.0
  eksClusterName: demo
  network:
    vpc: {id: vpc-00000001}
    subnets:
    - {id: subnet-00000001, availabilityZone: eu-west-1a, isPublic: true}
    - {id: subnet-00000002, availabilityZone: eu-west-1b}
`
	crossMachinePool = `apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: web}
spec:
  clusterName: demo
  %s
  template:
    spec:
      clusterName: demo
      version: v1.31.2
      bootstrap: {%s}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: %s, name: web}
`
	crossPool = `apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: %s
metadata: {name: web}
spec:
`
	noData = `dataSecretName: ""`
	byID   = "awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}"
)

// crossTree is a target with one pool.
func crossTree(kind, machinePool, bootstrap, spec string) tree.Map {
	if bootstrap == "" {
		bootstrap = noData
	}
	return tree.Map{
		"cluster.yaml": crossCluster, "mp.yaml": fmt.Sprintf(crossMachinePool, machinePool, bootstrap, kind),
		"pool.yaml":          fmt.Sprintf(crossPool, kind) + "  " + strings.ReplaceAll(strings.TrimSpace(spec), "\n", "\n  ") + "\n",
		"kustomization.yaml": "resources: [cluster.yaml, mp.yaml, pool.yaml]\n",
	}
}

func group(spec string) tree.Map { return crossTree("AWSMachinePool", "", "", spec) }

func managed(spec string) tree.Map { return crossTree("AWSManagedMachinePool", "", "", spec) }

// with adds a file, or takes another's place.
func with(m tree.Map, name, content string) tree.Map {
	m[name] = content
	if !strings.Contains(m["kustomization.yaml"], name) {
		m["kustomization.yaml"] = strings.Replace(m["kustomization.yaml"], "]", ", "+name+"]", 1)
	}
	return m
}

func edit(m tree.Map, name, from, to string) tree.Map {
	m[name] = strings.Replace(m[name], from, to, 1)
	return m
}

// found renders a tree and prints where which codes are, but for notes on older
// fields, which most pools have.
func found(t *testing.T, m tree.Map) (list []string, result *render.Result) {
	t.Helper()
	r, err := render.Render(context.Background(), m, ".", render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range r.Diags {
		if d.Code == "older-field" {
			continue
		}
		list = append(list, fmt.Sprintf("%s %s %s", d.Position, d.Severity, d.Code))
	}
	return list, r
}

func overrides(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  - instanceType: %s.%s\n", []string{"m5", "m5a", "m6i", "m6a", "m7i"}[i/8], strings.Fields("large xlarge 2xlarge 4xlarge 8xlarge 12xlarge 16xlarge 24xlarge")[i%8])
	}
	return b.String()
}

func TestInstanceTypeChecks(t *testing.T) {
	lookup := func(extra string) string { return "awsLaunchTemplate:\n  " + extra + "\n" }
	tests := map[string]struct {
		tree tree.Map
		want []string
	}{
		"fine":            {group(byID), nil},
		"unknown type":    {group("awsLaunchTemplate:\n  instanceType: m5.largee\n  ami: {id: ami-00000001}"), []string{"pool.yaml:6:19 warning unknown-instance-type"}},
		"unknown managed": {managed("amiType: AL2023_x86_64_STANDARD\ninstanceType: z9.large"), []string{"pool.yaml:6:17 warning unknown-instance-type"}},
		"unknown override": {group(byID + "\nmixedInstancesPolicy:\n  overrides:\n  - instanceType: m5.large\n  - instanceType: m5"), []string{
			"pool.yaml:9:21 warning unknown-instance-type"}},
		"mixed architectures": {group(byID + "\nmixedInstancesPolicy:\n  overrides:\n  - instanceType: m5.large\n  - instanceType: m6g.large\n  - instanceType: g5.xlarge"), []string{
			"pool.yaml:9:21 error mixed-architectures"}},
		"an image of one's own for other overrides": {group(byID + "\nmixedInstancesPolicy:\n  overrides:\n  - instanceType: m6g.large"), []string{"pool.yaml:5:37 info not-launched"}},
		"a lookup for another architecture": {group(lookup("instanceType: m5.large\n  ami: {eksLookupType: AmazonLinux2023}") + "mixedInstancesPolicy:\n  overrides:\n  - instanceType: m6g.large"), []string{
			"pool.yaml:6:19 error architecture-mismatch", "pool.yaml:6:19 info not-launched"}},
		"a lookup for the overrides": {group(lookup("ami: {eksLookupType: AmazonLinux2023}") + "mixedInstancesPolicy:\n  overrides:\n  - instanceType: m6g.large\n  - instanceType: c7g.large"), nil},
		"graphics images on ARM":     {group(lookup("instanceType: g5g.xlarge\n  ami: {eksLookupType: AmazonLinux2023GPU}")), []string{"pool.yaml:6:19 error architecture-mismatch"}},
		"graphics images on x86":     {group(lookup("instanceType: g4dn.xlarge\n  ami: {eksLookupType: AmazonLinux2023GPU}")), nil},
		"graphics override on ARM": {group(lookup("instanceType: g5g.xlarge\n  ami: {eksLookupType: AmazonLinuxGPU}") + "mixedInstancesPolicy:\n  overrides:\n  - instanceType: g5g.xlarge"), []string{
			"pool.yaml:10:21 error architecture-mismatch"}},
		"macOS":                     {group(lookup("instanceType: mac2.metal\n  ami: {eksLookupType: AmazonLinux2023}")), []string{"pool.yaml:6:19 error architecture-mismatch"}},
		"a name that speaks of ARM": {group(lookup("instanceType: m5.large\n  imageLookupFormat: nodes-aarch64-{{.K8sVersion}}")), []string{"pool.yaml:7:24 warning architecture-mismatch"}},
		"a name that speaks of x86": {group(lookup("instanceType: m5.large\n  imageLookupFormat: nodes-x86_64-{{.K8sVersion}}")), nil},
		"amiType for ARM":           {managed("amiType: AL2023_ARM_64_STANDARD\ninstanceType: m5.large"), []string{"pool.yaml:6:17 error architecture-mismatch"}},
		"amiType by default":        {managed("instanceType: m6g.large"), []string{"pool.yaml:5:17 error architecture-mismatch"}},
		"amiType for the template":  {managed("amiType: BOTTLEROCKET_ARM_64\nawsLaunchTemplate:\n  instanceType: c5.large"), []string{"pool.yaml:7:19 error architecture-mismatch"}},
		"amiType that fits":         {managed("amiType: AL2023_ARM_64_NVIDIA\ninstanceType: g5g.xlarge"), nil},
		"amiType beside an image":   {managed("amiType: AL2_x86_64\nawsLaunchTemplate:\n  instanceType: m6g.large\n  ami: {id: ami-00000001}"), []string{"pool.yaml:5:12 warning beside-launch-template"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, _ := found(t, tt.tree); !cmp.Equal(tt.want, got) {
				t.Errorf("(-want +got):\n%s", cmp.Diff(tt.want, got))
			}
		})
	}
}

// TestLikelyTypes checks what is said of misspelt types.
func TestLikelyTypes(t *testing.T) {
	for name, want := range map[string]string{
		"m5.largee": `did you mean "m5.large"?`, "M5.large": `did you mean "m5.large"`, "m5": "a family and a size", "c5n.24xlarge": "c5n comes as large, xlarge,",
		"m6g.2xlage": `did you mean "m6g.2xlarge"?`, "zz99.large": "AWS may also have added it",
	} {
		_, r := found(t, group("awsLaunchTemplate: {instanceType: "+name+", ami: {id: ami-00000001}}"))
		if len(r.Diags) != 1 || !strings.Contains(r.Diags[0].Detail, want) {
			t.Errorf("%s: %v, want %q", name, r.Diags, want)
		}
	}
}

// An object with nothing but an empty list leaves no trace in a build, so weir names the field above it.
func TestPolicyChecks(t *testing.T) {
	policy := func(rest string) string { return byID + "\nmixedInstancesPolicy:\n" + rest }
	tests := map[string]struct {
		tree tree.Map
		want []string
	}{
		"40 overrides": {group(policy("  overrides:\n" + overrides(40))), nil},
		"41 overrides": {group(policy("  overrides:\n" + overrides(40) + "  - instanceType: m4.large")), []string{"pool.yaml:7:5 error too-many-overrides"}},
		"nothing said": {group("awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}}\nmixedInstancesPolicy:\n  overrides: []"), []string{"pool.yaml:4:1 warning empty-policy"}},
		"spot beside a policy": {group("awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}, marketType: Spot}\nmixedInstancesPolicy: {instancesDistribution: {onDemandBaseCapacity: 1}}"), []string{
			"pool.yaml:5:84 error exclusive"}},
		"a capacity block beside a policy": {group("awsLaunchTemplate: {instanceType: m5.large, ami: {id: ami-00000001}, marketType: CapacityBlock, capacityReservationId: cr-00000001}\nmixedInstancesPolicy: {instancesDistribution: {}}"), []string{
			"pool.yaml:5:84 warning exclusive"}},
		"more on demand than there can be": {group(byID + "\nmaxSize: 3\nmixedInstancesPolicy: {instancesDistribution: {onDemandBaseCapacity: 4}}"), []string{"pool.yaml:7:72 warning out-of-range"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, _ := found(t, tt.tree); !cmp.Equal(tt.want, got) {
				t.Errorf("(-want +got):\n%s", cmp.Diff(tt.want, got))
			}
		})
	}
}

func TestPlacementChecks(t *testing.T) {
	zones := func(list string) string { return byID + "\navailabilityZones: [" + list + "]" }
	filter := func(f string) string { return byID + "\nsubnets:\n- filters:\n  - " + f }
	tests := map[string]struct {
		tree tree.Map
		want []string
	}{
		"fine":                       {group(zones("eu-west-1a, eu-west-1b")), nil},
		"a region":                   {group(zones("eu-west-1")), []string{"pool.yaml:6:23 error bad-zone"}},
		"a zone's id":                {group(zones("eu-west-1a, euw1-az2")), []string{"pool.yaml:6:35 error bad-zone"}},
		"no zone":                    {managed("amiType: AL2023_x86_64_STANDARD\navailabilityZones: [Ireland]"), []string{"pool.yaml:6:23 error bad-zone"}},
		"two regions":                {group(zones("eu-west-1a, eu-west-2a")), []string{"pool.yaml:6:35 error zone-of-another-region"}},
		"the cluster's region":       {group(zones("us-east-1a, us-east-1b")), []string{"pool.yaml:6:23 error zone-of-another-region", "pool.yaml:6:35 error zone-of-another-region"}},
		"a zone twice":               {group(zones("eu-west-1a, eu-west-1a")), []string{"pool.yaml:6:35 warning duplicate"}},
		"a local zone":               {group(zones("eu-west-1-lhr-1a")), []string{"pool.yaml:6:23 warning edge-zone"}},
		"a zone without subnet":      {group(zones("eu-west-1c")), []string{"pool.yaml:6:23 warning zone-without-subnet"}},
		"no private subnet there":    {group(zones("eu-west-1a") + "\navailabilityZoneSubnetType: private"), []string{"pool.yaml:6:23 warning zone-without-subnet"}},
		"failure domains":            {crossTree("AWSMachinePool", "failureDomains: [us-east-1a]", "", byID), []string{"mp.yaml:6:20 error zone-of-another-region"}},
		"failure domains' form":      {crossTree("AWSMachinePool", `failureDomains: ["1"]`, "", byID), []string{"mp.yaml:6:20 error bad-zone"}},
		"zones beat failure domains": {crossTree("AWSMachinePool", "failureDomains: [eu-west-1c]", "", zones("eu-west-1b")), nil},
		"subnets beat zones":         {group(zones("eu-west-1c") + "\nsubnets: [{id: subnet-00000009}]"), []string{"pool.yaml:6:3 info zones-not-used"}},
		"a known filter":             {group(filter(`{name: "tag:role", values: [a]}`)), nil},
		"a filter with a dot":        {group(filter(`{name: ipv6-cidr-block-association.state, values: [a]}`)), nil},
		"an unknown filter":          {group(filter(`{name: availability-zones, values: [eu-west-1a]}`)), []string{"pool.yaml:8:14 warning unknown-filter"}},
		"a filter without values":    {group(filter(`{name: "tag:role", values: []}`)), []string{"pool.yaml:8:7 warning empty-filter"}},
		"a filter by another region": {group(filter(`{name: availability-zone, values: [eu-west-1a, us-east-1a]}`)), []string{"pool.yaml:8:54 error zone-of-another-region"}},
		"a filter with a wildcard":   {group(filter(`{name: availability-zone, values: ["eu-west-1?"]}`)), nil},
		"a filter by another VPC":    {group(filter(`{name: vpc-id, values: [vpc-00000002]}`)), []string{"pool.yaml:8:22 warning another-vpc"}},
		"a filter by the VPC":        {group(filter(`{name: vpc-id, values: [vpc-00000001]}`)), nil},
		"an unknown group filter": {group("awsLaunchTemplate:\n  instanceType: m5.large\n  ami: {id: ami-00000001}\n  additionalSecurityGroups:\n  - filters:\n    - {name: Name, values: [a]}"), []string{
			"pool.yaml:10:16 warning unknown-filter"}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			if got, _ := found(t, tt.tree); !cmp.Equal(tt.want, got) {
				t.Errorf("(-want +got):\n%s", cmp.Diff(tt.want, got))
			}
		})
	}
}

// TestPositionsAreAllKnown renders a pool with many faults: each has a place.
func TestPositionsAreAllKnown(t *testing.T) {
	_, r := found(t, managed("labels: {kubernetes.io/a: b, c: \"\"}\ntaints: [{key: a, value: \"\", effect: no-schedule}, {key: a, value: b, effect: no-schedule}]\navailabilityZones: [x]\nroleName: a/b"))
	for _, d := range r.Diags {
		if !d.Known() || d.Line == 0 || d.Code == "" {
			t.Errorf("%s: no place or code", d)
		}
	}
	if n := r.Diags.Count(diag.Error); n != 5 {
		t.Errorf("%d errors, want 5: %v", n, r.Diags)
	}
}
