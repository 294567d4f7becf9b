package reconciler_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/tree"
)

// poolOptions are the members of a launch template that PoolOptions sets, each
// with what EC2 then holds. $G is the pool's security group.
var poolOptions = []struct{ options, want string }{
	{"capacityReservationSpecification: {capacityReservationTarget: {capacityReservationResourceGroupArn: 'arn:aws:resource-groups:eu-west-1:000000000000:group/gpu'}}",
		`{"CapacityReservationSpecification": {"CapacityReservationTarget": {"CapacityReservationResourceGroupArn": "arn:aws:resource-groups:eu-west-1:000000000000:group/gpu"}}}`},
	{"cpuOptions: {coreCount: 1, threadsPerCore: 1, amdSevSnp: disabled, nestedVirtualization: disabled}",
		`{"CpuOptions": {"CoreCount": 1, "ThreadsPerCore": 1, "AmdSevSnp": "disabled", "NestedVirtualization": "disabled"}}`},
	{"cpuOptions: {}", `{"CpuOptions": null}`},
	{"creditSpecification: {cpuCredits: unlimited}", `{"CreditSpecification": {"CpuCredits": "unlimited"}}`},
	{"disableApiStop: true", `{"DisableApiStop": true}`},
	{"disableApiTermination: false", `{"DisableApiTermination": false}`},
	{"ebsOptimized: false", `{"EbsOptimized": false}`},
	{"hibernationOptions: {configured: true}", `{"HibernationOptions": {"Configured": true}}`},
	{"instanceInitiatedShutdownBehavior: terminate", `{"InstanceInitiatedShutdownBehavior": "terminate"}`},
	{"kernelId: aki-01234567\nramDiskId: ari-01234567", `{"KernelId": "aki-01234567", "RamDiskId": "ari-01234567"}`},
	{"licenseSpecifications: [{licenseConfigurationArn: 'arn:b'}, {licenseConfigurationArn: 'arn:a'}]",
		`{"LicenseSpecifications": [{"LicenseConfigurationArn": "arn:b"}, {"LicenseConfigurationArn": "arn:a"}]}`},
	{"maintenanceOptions: {autoRecovery: disabled}", `{"MaintenanceOptions": {"AutoRecovery": "disabled"}}`},
	{"monitoring: {enabled: true}", `{"Monitoring": {"Enabled": true}}`},
	{"monitoring: {enabled: false}", `{"Monitoring": {"Enabled": false}}`},
	{"networkPerformanceOptions: {bandwidthWeighting: vpc-1}", `{"NetworkPerformanceOptions": {"BandwidthWeighting": "vpc-1"}}`},
	{"placement: {groupName: close, partitionNumber: 2, tenancy: dedicated}", `{"Placement": {"GroupName": "close", "PartitionNumber": 2, "Tenancy": "dedicated"}}`},
	{"placement: {groupId: pg-0123456789abcdef0, affinity: host, hostId: h-01234567, tenancy: host}", `{"Placement": {"GroupId": "pg-0123456789abcdef0", "Affinity": "host", "HostId": "h-01234567", "Tenancy": "host"}}`},
	{"placement: {hostResourceGroupArn: 'arn:aws:resource-groups:eu-west-1:000000000000:group/hosts'}",
		`{"Placement": {"HostResourceGroupArn": "arn:aws:resource-groups:eu-west-1:000000000000:group/hosts"}}`},
	{"secondaryInterfaces: [{deviceIndex: 1, networkCardIndex: 1, interfaceType: secondary, secondarySubnetId: subnet-1, privateIpAddressCount: 1, deleteOnTermination: true}]",
		`{"SecondaryInterfaces": [{"DeviceIndex": 1, "NetworkCardIndex": 1, "InterfaceType": "secondary", "SecondarySubnetId": "subnet-1", "PrivateIpAddressCount": 1, "DeleteOnTermination": true}]}`},
	// Fabric adapters: each has the pool's groups, which EC2 refuses beside them.
	{"networkInterfaces:\n- {deviceIndex: 0, interfaceType: efa, deleteOnTermination: true}\n- {deviceIndex: 1, networkCardIndex: 1, interfaceType: efa-only}",
		`{"SecurityGroupIds": null, "NetworkInterfaces": [{"DeviceIndex": 0, "InterfaceType": "efa", "DeleteOnTermination": true, "Groups": ["$G"]}, {"DeviceIndex": 1, "NetworkCardIndex": 1, "InterfaceType": "efa-only", "Groups": ["$G"]}]}`},
	{"networkInterfaces:\n- {deviceIndex: 0, associatePublicIpAddress: false, associateCarrierIpAddress: false, description: first, enaQueueCount: 4, primaryIpv6: true,\n" +
		"   ipv4PrefixCount: 1, ipv6AddressCount: 1, ipv6PrefixCount: 2, secondaryPrivateIpAddressCount: 3, groups: [$G]}",
		`{"SecurityGroupIds": null, "NetworkInterfaces": [{"DeviceIndex": 0, "AssociatePublicIpAddress": false, "AssociateCarrierIpAddress": false, "Description": "first", "EnaQueueCount": 4, "PrimaryIpv6": true,
		 "Ipv4PrefixCount": 1, "Ipv6AddressCount": 1, "Ipv6PrefixCount": 2, "SecondaryPrivateIpAddressCount": 3, "Groups": ["$G"]}]}`},
	{"networkInterfaces:\n- deviceIndex: 0\n  connectionTrackingSpecification: {tcpEstablishedTimeout: 60, udpStreamTimeout: 60, udpTimeout: 30}\n  enaSrdSpecification: {enaSrdEnabled: true, enaSrdUdpSpecification: {enaSrdUdpEnabled: true}}",
		`{"NetworkInterfaces": [{"DeviceIndex": 0, "Groups": ["$G"], "ConnectionTrackingSpecification": {"TcpEstablishedTimeout": 60, "UdpStreamTimeout": 60, "UdpTimeout": 30},
		 "EnaSrdSpecification": {"EnaSrdEnabled": true, "EnaSrdUdpSpecification": {"EnaSrdUdpEnabled": true}}}]}`},
}

// withOptions renders manifests of a pool with a PoolOptions for it.
func withOptions(t testing.TB, manifests, kind, name, options string) intent.Pool {
	t.Helper()
	text := fmt.Sprintf("%s\n---\napiVersion: weir.dev/v1alpha1\nkind: PoolOptions\nmetadata: {name: extra}\nspec:\n  poolRef: {kind: %s, name: %s}\n  launchTemplate:\n    %s\n",
		manifests, kind, name, strings.ReplaceAll(options, "\n", "\n    "))
	r, err := render.Render(context.Background(), tree.Map{"pool.yaml": text}, "pool.yaml", render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Set.Pools) != 1 || len(r.Set.Pools[0].Blocked) > 0 {
		t.Fatalf("the manifests give %d pools: %v\n%s", len(r.Set.Pools), r.Diags, text)
	}
	return r.Set.Pools[0]
}

// Every member of PoolOptions reaches EC2 as it was written, makes one version
// and then nothing, also for a process that remembers nothing.
func TestEveryPoolOptionMakesOneVersionAndThenSilence(t *testing.T) {
	t.Parallel()
	for _, tt := range poolOptions {
		name, _, _ := strings.Cut(tt.options, ":")
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.someImage()
			group := w.someGroup()
			pool := withOptions(t, writtenText("web", "", "awsLaunchTemplate: {instanceType: t3.large}"), "AWSMachinePool", "web", strings.ReplaceAll(tt.options, "$G", group))
			blue := target("blue", pool)
			w.settle(blue)
			w.stillAndSilent(blue)
			w.holds("web", strings.ReplaceAll(tt.want, "$G", group))
		})
	}
}

// holds compares members of a template's newest version with the wanted ones.
func (w *world) holds(template, members string) {
	w.t.Helper()
	got, want := map[string]any{}, map[string]any{}
	remarshal(w.t, w.versions(template).LaunchTemplateVersions[0].LaunchTemplateData, &got)
	if err := json.Unmarshal([]byte(members), &want); err != nil {
		w.t.Fatal(err)
	}
	for member := range want {
		if d := cmp.Diff(want[member], compact(got[member])); d != "" {
			w.t.Errorf("%s (-want +got):\n%s", member, d)
		}
	}
}

// A change of options is a new version that says which option changed, by its
// place in the PoolOptions.
func TestAChangedPoolOptionIsSaidByItsField(t *testing.T) {
	w := newWorld(t)
	manifests := writtenText("web", "", "awsLaunchTemplate: {instanceType: m5.large}")
	w.settle(target("blue", withOptions(t, manifests, "AWSMachinePool", "web", "placement: {groupName: a}")))
	pool := withOptions(t, manifests, "AWSMachinePool", "web", "placement: {groupName: b}\nnetworkInterfaces: [{deviceIndex: 0, interfaceType: efa}]")
	var got []string
	for _, s := range w.must(reconciler.PlanOnly, target("blue", pool))[0].Plan.Steps {
		if _, is := s.Do.(step.CreateLaunchTemplateVersion); !is {
			continue
		}
		for _, c := range s.Changes {
			got = append(got, fmt.Sprintf("%s %s %s: %v to %v", c.Object.Kind, c.Path, c.Field, c.From != nil, c.To != nil))
		}
	}
	want := []string{
		"PoolOptions spec.launchTemplate.networkInterfaces[0].deviceIndex launchTemplate.networkInterfaces[0].deviceIndex: false to true",
		"PoolOptions spec.launchTemplate.networkInterfaces[0].groups launchTemplate.networkInterfaces[0].groups: false to true",
		"PoolOptions spec.launchTemplate.networkInterfaces[0].interfaceType launchTemplate.networkInterfaces[0].interfaceType: false to true",
		"PoolOptions spec.launchTemplate.placement.groupName launchTemplate.placement.groupName: true to true",
		"AWSMachinePool spec.awsLaunchTemplate.additionalSecurityGroups awsLaunchTemplate.additionalSecurityGroups: true to false",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("changes (-want +got):\n%s", d)
	}
}

const managedManifests = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: demo}
spec:
  controlPlaneRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: AWSManagedControlPlane, name: cp}
  infrastructureRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: AWSManagedControlPlane, name: cp}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: AWSManagedControlPlane
metadata: {name: cp}
spec: {eksClusterName: demo}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: web}
spec:
  clusterName: demo
  replicas: 1
  template:
    spec:
      clusterName: demo
      bootstrap: {dataSecretName: ""}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSManagedMachinePool, name: web}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSManagedMachinePool
metadata: {name: web}
spec:
  amiType: AL2023_x86_64_STANDARD
  eksNodegroupName: web
`

// A nodegroup gets its options through a launch template, which holds them alone
// where the pool writes none; EKS takes what is not refused in the manifests.
func TestPoolOptionsOfANodegroup(t *testing.T) {
	for name, pool := range map[string]string{
		"without a template": "  instanceType: m5.large\n",
		"with a template":    "  awsLaunchTemplate: {instanceType: m5.large, additionalSecurityGroups: [{id: $G}]}\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.someImage()
			group := w.someGroup()
			manifests := strings.ReplaceAll(managedManifests+pool, "$G", group)
			blue := target("blue", withOptions(t, manifests, "AWSManagedMachinePool", "web",
				"networkInterfaces: [{deviceIndex: 0, interfaceType: interface}]\nplacement: {groupName: close}\nmonitoring: {enabled: true}\nebsOptimized: true"))
			w.settle(blue)
			w.restart()
			w.srv.ResetCalls()
			w.must(reconciler.Apply, blue)
			if _, writes := w.calls(); writes != 0 || len(w.numbers("cp-web")) != 1 {
				t.Errorf("writes after convergence: %v, versions %v", w.srv.CallCounts(), w.numbers("cp-web"))
			}
			want := `{"Placement": {"GroupName": "close"}, "Monitoring": {"Enabled": true}, "EbsOptimized": true, "TagSpecifications": null, "InstanceType": null}`
			if name == "with a template" {
				want = `{"Placement": {"GroupName": "close"}, "InstanceType": "m5.large"}`
			}
			w.holds("cp-web", want)
			// The cluster's group has to be there, for the nodes could not join.
			groups := w.versions("cp-web").LaunchTemplateVersions[0].LaunchTemplateData.NetworkInterfaces[0].Groups
			if added := slices.Contains(groups, group); len(groups) == 0 || added != (name == "with a template") {
				t.Errorf("security groups %v, the pool's is %s", groups, group)
			}
		})
	}
}

// Options that are taken away are taken out of the template, and one that
// somebody added by hand is drift.
func TestPoolOptionsGoAsTheyCame(t *testing.T) {
	w := newWorld(t)
	manifests := writtenText("web", "", "awsLaunchTemplate: {instanceType: m5.large}")
	w.settle(target("blue", withOptions(t, manifests, "AWSMachinePool", "web", "placement: {groupName: a}\nnetworkInterfaces: [{deviceIndex: 0, interfaceType: efa}]")))
	plain := target("blue", written(t, "web", "", "awsLaunchTemplate: {instanceType: m5.large}"))
	w.settle(plain)
	if n := w.numbers("web"); len(n) != 2 {
		t.Errorf("versions %v, want two", n)
	}
	w.holds("web", `{"Placement": null, "NetworkInterfaces": null}`)
	n := w.byHand("web", func(d *types.RequestLaunchTemplateData) {
		d.Placement = &types.LaunchTemplatePlacementRequest{GroupName: aws.String("elsewhere")}
	})
	w.setVersion("web", n)
	w.settle(plain)
	if v := w.group("web").LaunchTemplate; aws.ToString(v.Version) != "2" {
		t.Errorf("the group runs version %s, want 2", aws.ToString(v.Version))
	}
}
