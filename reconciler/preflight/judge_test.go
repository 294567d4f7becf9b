package preflight

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

const (
	group   = "AWSMachinePool default/web"
	managed = "AWSManagedMachinePool default/web"
	options = "PoolOptions default/web"
)

// TestFindings has one fault in each case, of what a plan would make.
func TestFindings(t *testing.T) {
	data := func(set func(*intent.TemplateData)) func(*intent.Pool) {
		return func(p *intent.Pool) { set(&p.LaunchTemplate.Data) }
	}
	overrides := func(types ...string) func(*intent.Pool) {
		return func(p *intent.Pool) {
			m := &intent.MixedInstances{OnDemandPercentageAboveBaseCapacity: 100}
			for _, name := range types {
				m.Overrides = append(m.Overrides, intent.Override{InstanceType: name})
			}
			p.Group.MixedInstancesPolicy = m
		}
	}
	efas := func(n int) func(*intent.Pool) {
		return data(func(d *intent.TemplateData) {
			for i := range n {
				d.NetworkInterfaces = append(d.NetworkInterfaces, intent.NetworkInterface{InterfaceType: "efa", NetworkCardIndex: new(int32(i))})
			}
		})
	}
	for name, tt := range map[string]struct {
		pool    func(*intent.Pool)
		subnets []string
		fake    func(*fake)
		want    []string
	}{
		"nothing": {pool: func(*intent.Pool) {}},
		"profile that is missing": {data(func(d *intent.TemplateData) { d.IamInstanceProfile.Name = "gone" }), nil, nil,
			[]string{"warning unknown-name " + group + " spec.awsLaunchTemplate.iamInstanceProfile: AWS knows no instance profile gone"}},
		"profile by ARN": {pool: data(func(d *intent.TemplateData) {
			d.IamInstanceProfile = &intent.InstanceProfile{ARN: "arn:aws:iam::123456789012:instance-profile/path/nodes"}
		})},
		"profile without a role": {data(func(d *intent.TemplateData) { d.IamInstanceProfile.Name = "empty" }), nil, nil,
			[]string{"warning would-be-refused " + group + " spec.awsLaunchTemplate.iamInstanceProfile: the instance profile empty has no role, so AWS launches no machine with it"}},
		"key pair": {data(func(d *intent.TemplateData) { d.KeyName = "gone" }), nil, nil,
			[]string{"warning unknown-name " + group + " spec.awsLaunchTemplate.sshKeyName: AWS knows no key pair gone"}},
		"key pair of a nodegroup": {func(p *intent.Pool) {
			asNodegroup(p)
			p.LaunchTemplate.Data.KeyName, p.Nodegroup.RemoteAccess = "", &intent.RemoteAccess{EC2SSHKey: "gone", SourceSecurityGroups: []string{"sg-1", "sg-gone"}}
		}, nil, nil, []string{
			"warning unknown-name " + managed + " spec.remoteAccess.sourceSecurityGroups: AWS knows no security group sg-gone",
			"warning unknown-name " + managed + " spec.remoteAccess.sshKeyName: AWS knows no key pair gone",
		}},
		"security group": {data(func(d *intent.TemplateData) { d.SecurityGroupIDs = []string{"sg-1", "sg-gone"} }), nil, nil,
			[]string{"warning unknown-name " + group + " spec.awsLaunchTemplate.additionalSecurityGroups: AWS knows no security group sg-gone"}},
		"key that is disabled": {data(func(d *intent.TemplateData) {
			d.BlockDeviceMappings = append(d.BlockDeviceMappings, intent.BlockDeviceMapping{DeviceName: "/dev/sdb", Ebs: intent.Ebs{KmsKeyID: "alias/off"}})
		}), nil, nil, []string{"warning would-be-refused " + group + " spec.awsLaunchTemplate.nonRootVolumes[0].encryptionKey: the KMS key alias/off is Disabled, so AWS launches no machine with the volume"}},
		"key that is missing": {data(func(d *intent.TemplateData) { d.BlockDeviceMappings[0].Ebs.KmsKeyID = "alias/gone" }), nil, nil,
			[]string{"warning would-be-refused " + group + " spec.awsLaunchTemplate.rootVolume.encryptionKey: there is no KMS key alias/gone, so AWS launches no machine with the volume"}},
		"key that signs":   {data(func(d *intent.TemplateData) { d.BlockDeviceMappings[0].Ebs.KmsKeyID = "alias/rsa" }), nil, nil, []string{"warning would-be-refused " + group + " spec.awsLaunchTemplate.rootVolume.encryptionKey: the KMS key alias/rsa is not a symmetric key that encrypts, which volumes need"}},
		"key that is good": {pool: data(func(d *intent.TemplateData) { d.BlockDeviceMappings[0].Ebs.KmsKeyID = "alias/good" })},
		"volume on the root device": {data(func(d *intent.TemplateData) {
			d.BlockDeviceMappings = append(d.BlockDeviceMappings, intent.BlockDeviceMapping{DeviceName: "/dev/xvda"})
		}), nil, nil, []string{"error would-be-refused " + group + " spec.awsLaunchTemplate.nonRootVolumes[0].deviceName: two volumes have the device name /dev/xvda, the root device of the image ami-1"}},
		"root volume as large as the snapshot":  {pool: data(func(d *intent.TemplateData) { d.BlockDeviceMappings[0].Ebs.VolumeSize = 5 })},
		"root volume as large as in the image":  {data(func(d *intent.TemplateData) { d.BlockDeviceMappings[0].Ebs.VolumeSize = 8 }), nil, func(f *fake) { f.snapshots = nil }, nil},
		"root volume that is left to the image": {data(func(d *intent.TemplateData) { d.BlockDeviceMappings[0].Ebs.VolumeSize = 0 }), nil, func(f *fake) { f.snapshots = nil }, nil},
		"root volume below the snapshot": {data(func(d *intent.TemplateData) { d.BlockDeviceMappings[0].Ebs.VolumeSize = 4 }), nil, nil,
			[]string{"error root-volume-too-small " + group + " spec.awsLaunchTemplate.rootVolume.size: the root volume of 4 GiB is smaller than the image's snapshot of 5 GiB"}},
		"root volume beside a snapshot that is not seen": {data(func(d *intent.TemplateData) { d.BlockDeviceMappings[0].Ebs.VolumeSize = 4 }), nil, func(f *fake) { f.snapshots = nil },
			[]string{"warning root-volume-maybe-too-small " + group + " spec.awsLaunchTemplate.rootVolume.size: the root volume of 4 GiB is smaller than the 8 GiB that the image ami-1 has by default; the account may not see the size of its snapshot"}},
		"image of another architecture": {overrides("m5.large", "m7g.large"), nil, nil,
			[]string{"warning would-be-refused " + group + " spec.mixedInstancesPolicy.overrides[1].instanceType: the image ami-1 is x86_64, and m7g.large is arm64"}},
		"enclaves": {data(func(d *intent.TemplateData) { d.EnclaveOptions = &intent.EnclaveOptions{Enabled: new(true)} }), nil, nil,
			[]string{"warning would-be-refused " + group + " spec.awsLaunchTemplate.enclaveOptions.enabled: machines of the type m5.large do not have enclaves, so AWS launches none"}},
		"enclaves that are off": {pool: data(func(d *intent.TemplateData) { d.EnclaveOptions = &intent.EnclaveOptions{Enabled: new(false)} })},
		"SEV-SNP and nested virtualization": {data(func(d *intent.TemplateData) {
			d.CPUOptions = &intent.CPUOptions{AmdSevSnp: "enabled", NestedVirtualization: "enabled", CoreCount: 4, ThreadsPerCore: 2}
		}), nil, nil, []string{
			"warning would-be-refused " + options + " spec.launchTemplate.cpuOptions.amdSevSnp: machines of the type m5.large do not have AMD SEV-SNP, so AWS launches none",
			"warning would-be-refused " + options + " spec.launchTemplate.cpuOptions.coreCount: machines of the type m5.large do not have 4 cores, so AWS launches none",
		}},
		"EFA on a type without": {efas(1), nil, nil,
			[]string{"warning would-be-refused " + options + " spec.launchTemplate.networkInterfaces[0].interfaceType: machines of the type m5.large do not have EFA, so AWS launches none"}},
		"more EFAs than the type has": {func(p *intent.Pool) { efas(3)(p); overrides("p5.48xlarge")(p) }, []string{"subnet-b"}, func(f *fake) { f.quotas["L-417A185B"] = 10000 },
			[]string{"warning would-be-refused " + options + " spec.launchTemplate.networkInterfaces[2].interfaceType: machines of the type p5.48xlarge do not have EFA, so AWS launches none: they have 2 at most"}},
		"what AWS does not tell of a type": {pool: func(p *intent.Pool) {
			overrides("t3.micro")(p)
			p.LaunchTemplate.Data.EnclaveOptions, p.LaunchTemplate.Data.HibernationOptions = &intent.EnclaveOptions{Enabled: new(true)}, &intent.HibernationOptions{Configured: new(true)}
		}},
		"Spot of a type without": {func(p *intent.Pool) {
			overrides("m5.large", "t3.micro")(p)
			p.Group.MixedInstancesPolicy.OnDemandPercentageAboveBaseCapacity = 50
		}, nil, nil,
			[]string{"warning would-be-refused " + group + " spec.mixedInstancesPolicy.overrides[1].instanceType: AWS has no Spot machines of the type t3.micro, and the pool's policy asks for some"}},
		"type that no zone has": {overrides("p5.48xlarge", "m5.large"), []string{"subnet-a"}, nil,
			[]string{"warning not-offered " + group + " spec.mixedInstancesPolicy.overrides[0].instanceType: AWS offers no p5.48xlarge in eu-west-1a, where the pool's subnets are: it is offered in eu-west-1b"}},
		"zone that has no type": {overrides("p5.48xlarge"), []string{"subnet-a", "subnet-b"}, func(f *fake) { f.quotas["L-417A185B"] = 10000 },
			[]string{"warning not-offered " + group + " spec.subnets: in eu-west-1a AWS offers none of the pool's instance types, so no machine starts in the subnets there"}},
		"type that the region does not have": {data(func(d *intent.TemplateData) { d.InstanceType = "x9.large" }), nil, nil,
			[]string{"error instance-type-unknown " + group + " spec.awsLaunchTemplate.instanceType: EC2 offers no instance type x9.large in this region"}},
		"override that the region does not have": {overrides("m5.large", "x9.large"), nil, nil,
			[]string{"error instance-type-unknown " + group + " spec.mixedInstancesPolicy.overrides[1].instanceType: EC2 offers no instance type x9.large in this region"}},
		"override of the options": {func(p *intent.Pool) { overrides("x9.large", "m5.large")(p); p.Group.TypesOfOptions = true }, nil, nil,
			[]string{"error instance-type-unknown " + options + " spec.autoScalingGroup.mixedInstancesPolicy.overrides[0].instanceType: EC2 offers no instance type x9.large in this region"}},
		"nodegroup's type": {func(p *intent.Pool) {
			asNodegroup(p)
			p.LaunchTemplate, p.Nodegroup.InstanceType = nil, "x9.large"
		}, nil, nil, []string{"error instance-type-unknown " + managed + " spec.instanceType: EC2 offers no instance type x9.large in this region"}},
		"nodegroup's types": {func(p *intent.Pool) {
			asNodegroup(p)
			p.LaunchTemplate, p.Nodegroup.InstanceTypes = nil, []string{"m5.large", "x9.large"}
		}, nil, nil, []string{"error instance-type-unknown " + options + " spec.nodegroup.instanceTypes[1]: EC2 offers no instance type x9.large in this region"}},
		"release": {pool: func(p *intent.Pool) {
			asNodegroup(p)
			p.Nodegroup.AMIType, p.Nodegroup.Version, p.Nodegroup.ReleaseVersion = "AL2023_x86_64_STANDARD", "1.34", "1.34.1-20251112"
		}},
		"release of Bottlerocket": {pool: func(p *intent.Pool) {
			asNodegroup(p)
			p.Nodegroup.AMIType, p.Nodegroup.Version, p.Nodegroup.ReleaseVersion = "BOTTLEROCKET_ARM_64", "1.34", "1.50.0-4f3d1c2b"
		}},
		"release that is missing": {func(p *intent.Pool) {
			asNodegroup(p)
			p.Nodegroup.AMIType, p.Nodegroup.Version, p.Nodegroup.ReleaseVersion = "AL2023_x86_64_STANDARD", "1.34", "1.34.1-20991112"
		}, nil, nil, []string{"error release-unknown " + managed + " spec.amiVersion: AWS has no release 1.34.1-20991112 of AL2023_x86_64_STANDARD in the region: no image is named amazon-eks-node-al2023-x86_64-standard-1.34-v20991112"}},
		"nodegroup in a wavelength zone": {asNodegroup, []string{"subnet-w"}, func(f *fake) { f.offerings["m5.large"] = []string{"eu-west-1-wl1-dub-wlz-1"} },
			[]string{"warning not-offered " + managed + " spec.subnetIDs: EKS makes no managed nodegroup in a wavelength zone: eu-west-1-wl1-dub-wlz-1"}},
		"carrier addresses": {data(func(d *intent.TemplateData) {
			d.NetworkInterfaces = []intent.NetworkInterface{{AssociateCarrierIPAddress: new(true)}}
		}), nil, nil, []string{"warning would-be-refused " + options + " spec.launchTemplate.networkInterfaces[0].associateCarrierIpAddress: carrier addresses are for machines in wavelength zones, and subnets of the pool are in other zones"}},
		"target groups": {func(p *intent.Pool) {
			p.Group.Options.TargetGroupARNs = []string{tg("web"), tg("gone"), tg("far")}
			p.Group.Options.TrafficSources = []intent.TrafficSource{{Identifier: tg("pods"), Type: "elbv2"}, {Identifier: "classic", Type: "elb"}}
		}, nil, nil, []string{
			"warning would-be-refused " + options + " spec.autoScalingGroup.targetGroupARNs[1]: AWS has no target group gone/0123456789abcdef",
			"warning would-be-refused " + options + " spec.autoScalingGroup.targetGroupARNs[2]: the target group far/0123456789abcdef is in vpc-2, and the pool's subnets are in vpc-1",
			"warning would-be-refused " + options + " spec.autoScalingGroup.trafficSources[0].identifier: the target group pods/0123456789abcdef takes targets of the type ip, and machines of a group are of the type instance",
		}},
		"placement group that is missing": {data(func(d *intent.TemplateData) { d.Placement = &intent.Placement{GroupName: "gone"} }), nil, nil,
			[]string{"warning unknown-name " + options + " spec.launchTemplate.placement.groupName: AWS knows no placement group gone"}},
		"cluster strategy in two zones": {func(p *intent.Pool) { p.Group.Options.PlacementGroup = "tight" }, nil, nil,
			[]string{"warning would-be-refused " + options + " spec.autoScalingGroup.placementGroup: the placement group tight is in one zone, as its strategy is cluster, and the pool's subnets are in eu-west-1a, eu-west-1b"}},
		"cluster strategy of a type without": {func(p *intent.Pool) { p.Group.Options.PlacementGroup = "tight"; overrides("t3.micro")(p) }, []string{"subnet-a"}, nil,
			[]string{"warning would-be-refused " + options + " spec.autoScalingGroup.placementGroup: machines of the type t3.micro cannot be in the placement group tight, whose strategy is cluster"}},
		"spread strategy of many": {func(p *intent.Pool) { p.Group.Options.PlacementGroup, p.Replicas.Value = "wide", 15 }, nil, nil,
			[]string{"warning would-be-refused " + options + " spec.autoScalingGroup.placementGroup: the placement group wide takes 7 machines in a zone, as its strategy is spread, and the pool wants 15 in eu-west-1a, eu-west-1b"}},
		"partition that is missing": {data(func(d *intent.TemplateData) { d.Placement = &intent.Placement{GroupName: "parts", PartitionNumber: 4} }), nil, nil,
			[]string{"warning would-be-refused " + options + " spec.launchTemplate.placement.groupName: the placement group parts has 3 partitions and no partition 4"}},
		"placement group that goes": {data(func(d *intent.TemplateData) { d.Placement = &intent.Placement{GroupName: "going"} }), nil, nil,
			[]string{"warning would-be-refused " + options + " spec.launchTemplate.placement.groupName: the placement group going is deleting"}},
		"addresses": {func(*intent.Pool) {}, []string{"subnet-a"}, func(f *fake) { f.subnets["subnet-a"] = Subnet{Zone: "eu-west-1a", Free: 2} },
			[]string{"warning capacity-short " + group + " spec.subnets: the pool's subnets have 2 free addresses, and the plan puts 3 more machines in them: AWS launches only some"}},
		"IPv6 alone": {func(*intent.Pool) {}, []string{"subnet-a"}, func(f *fake) { f.subnets["subnet-a"] = Subnet{Zone: "eu-west-1a", NoIPv4: true} }, nil},
		"quota": {func(*intent.Pool) {}, nil, func(f *fake) {
			f.running = []Instance{{Type: "c5.large", VCPUs: 94}, {Type: "m5.large"}, {Type: "p5.48xlarge", VCPUs: 192}, {Type: "c5.large", VCPUs: 50, Spot: true}}
		}, []string{"warning capacity-short MachinePool default/web spec.replicas: the account may run 100 vCPUs of standard (A, C, D, H, I, M, R, T, Z) On-Demand machines and runs 96, and the plan wants 6 more: AWS launches only some"}},
		"quota of Spot": {func(p *intent.Pool) {
			overrides("m5.large", "m7g.large")(p)
			p.LaunchTemplate.Data.ImageID = ""
			p.Replicas.Value = 12
			p.Group.MixedInstancesPolicy.OnDemandPercentageAboveBaseCapacity = 50
		}, nil, nil,
			[]string{"warning capacity-short MachinePool default/web spec.replicas: the account may run 10 vCPUs of standard (A, C, D, H, I, M, R, T, Z) Spot machines and runs 0, and the plan wants 12 more: AWS launches only some"}},
		"types of several quotas": {pool: func(p *intent.Pool) { overrides("m5.large", "p5.48xlarge")(p); p.Replicas.Value = 100 }},
		"weights": {pool: func(p *intent.Pool) {
			overrides("m5.large")(p)
			p.Replicas.Value = 80
			p.Group.MixedInstancesPolicy.Overrides[0].WeightedCapacity = "4"
		}},
		"dry run": {func(*intent.Pool) {}, nil, func(f *fake) {
			f.refuses = &observed.Error{Kind: observed.Invalid, Code: "InvalidParameterCombination", Message: "no"}
		}, []string{"warning dry-run-refused " + group + " spec.awsLaunchTemplate: EC2 would not launch a machine of the new template version: InvalidParameterCombination: no"}},
	} {
		t.Run(name, func(t *testing.T) {
			pool, f := webPool(), newFake()
			tt.pool(&pool)
			if tt.fake != nil {
				tt.fake(f)
			}
			if tt.subnets == nil {
				tt.subnets = []string{"subnet-a", "subnet-b"}
			}
			if d := cmp.Diff(tt.want, ask(f, creation(tt.subnets, pool))); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestPoolsAreCountedTogether: what each has room for alone, all of them may not have.
func TestPoolsAreCountedTogether(t *testing.T) {
	var pools []intent.Pool
	for i := range 30 {
		p := webPool()
		p.Key.Name = fmt.Sprintf("web%02d", i)
		p.MachinePool.Name, p.Infrastructure.Name = p.Key.Name, p.Key.Name
		pools = append(pools, p)
	}
	f := newFake()
	f.subnets["subnet-a"], f.subnets["subnet-b"] = Subnet{Zone: "eu-west-1a", Free: 30}, Subnet{Zone: "eu-west-1b", Free: 30}
	want := []string{
		"warning capacity-short AWSMachinePool default/web20 spec.subnets: the pool's subnets have 60 free addresses, and the plan puts 63 more machines in them, with the 60 of pools before it: AWS launches only some",
		"warning capacity-short MachinePool default/web16 spec.replicas: the account may run 100 vCPUs of standard (A, C, D, H, I, M, R, T, Z) On-Demand machines and runs 0, and the plan wants 102 more, with the 96 of pools before it: AWS launches only some",
	}
	if d := cmp.Diff(want, ask(f, creation([]string{"subnet-a", "subnet-b"}, pools...))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestRefusalsAreDefiniteAnswersAboutNamedResources: what no new machine can do without, and
// AWS says is not there. Capacity, dry runs and what AWS does not tell refuse nothing.
func TestRefusalsAreDefiniteAnswersAboutNamedResources(t *testing.T) {
	data := func(change func(*intent.TemplateData)) func(*fake, *intent.Pool) {
		return func(_ *fake, p *intent.Pool) { change(&p.LaunchTemplate.Data) }
	}
	denied := func(service, operation string) func(*fake, *intent.Pool) {
		return func(f *fake, p *intent.Pool) {
			p.LaunchTemplate.Data.KeyName = "gone"
			f.fails[service+":"+operation] = &observed.Error{Kind: observed.Denied, Service: service, Operation: operation}
		}
	}
	bound := func(ids ...string) func(*fake, *intent.Pool) {
		return func(_ *fake, p *intent.Pool) {
			p.Group.Options.CapacityReservationSpecification = &intent.GroupReservation{CapacityReservationPreference: "capacity-reservations-only", CapacityReservationTarget: &intent.GroupReservationTarget{CapacityReservationIDs: ids}}
		}
	}
	for name, tt := range map[string]struct {
		change func(*fake, *intent.Pool)
		want   string
	}{
		"nothing":          {data(func(*intent.TemplateData) {}), ""},
		"key pair":         {data(func(d *intent.TemplateData) { d.KeyName = "gone" }), "AWS knows no key pair gone"},
		"profile":          {data(func(d *intent.TemplateData) { d.IamInstanceProfile.Name = "gone" }), "AWS knows no instance profile gone"},
		"profile, no role": {data(func(d *intent.TemplateData) { d.IamInstanceProfile.Name = "empty" }), "the instance profile empty has no role"},
		"security group":   {data(func(d *intent.TemplateData) { d.SecurityGroupIDs = []string{"sg-9"} }), "AWS knows no security group sg-9"},
		"KMS key":          {data(func(d *intent.TemplateData) { d.BlockDeviceMappings[0].Ebs.KmsKeyID = "alias/gone" }), "there is no KMS key alias/gone"},
		"KMS key disabled": {data(func(d *intent.TemplateData) { d.BlockDeviceMappings[0].Ebs.KmsKeyID = "alias/off" }), "the KMS key alias/off is Disabled"},
		"placement group":  {data(func(d *intent.TemplateData) { d.Placement = &intent.Placement{GroupName: "gone"} }), "AWS knows no placement group gone"},
		"reservation":      {bound("cr-9"), "AWS has no active capacity reservation cr-9"},
		"one of two reservations": {func(f *fake, p *intent.Pool) {
			bound("cr-1", "cr-9")(f, p)
			f.reserved = []Reservation{{ID: "cr-1", Type: "m5.large", Zone: "eu-west-1a", Free: 9}}
		}, ""},
		"a full reservation": {func(f *fake, p *intent.Pool) {
			bound("cr-1")(f, p)
			f.reserved = []Reservation{{ID: "cr-1", Type: "m5.large", Zone: "eu-west-1a"}}
		}, ""},
		"not offered in the zones":  {func(f *fake, _ *intent.Pool) { f.offerings["m5.large"] = []string{"eu-west-1b"} }, ""},
		"not offered in the region": {func(f *fake, _ *intent.Pool) { f.offerings["m5.large"] = nil }, "EC2 offers no instance type m5.large in this region"},
		"quota":                     {func(f *fake, _ *intent.Pool) { f.quotas["L-1216C47A"] = 0 }, ""},
		"a dry run": {func(f *fake, _ *intent.Pool) {
			f.refuses = &observed.Error{Kind: observed.Invalid, Code: "InvalidParameterValue", Message: "no"}
		}, ""},
		"denied":        {denied("ec2", "DescribeKeyPairs"), ""},
		"a wrong shape": {data(func(d *intent.TemplateData) { d.EnclaveOptions = &intent.EnclaveOptions{Enabled: new(true)} }), ""},
	} {
		f, pool := newFake(), webPool()
		tt.change(f, &pool)
		got := New(f, f, func() time.Time { return time.Unix(0, 0) }).Ask(context.Background(), []Request{creation([]string{"subnet-a"}, pool)})[0]
		if why := strings.Join(got.Refused["default/web"], "; "); why != tt.want {
			t.Errorf("%s: refused for %q, want %q", name, why, tt.want)
		}
	}
}

// TestARefusalStandsUntilAWSAnswers: a throttled call does not start a rollout that was held,
// and the resource, once it is there, does within a minute.
func TestARefusalStandsUntilAWSAnswers(t *testing.T) {
	f, now := newFake(), time.Unix(0, 0)
	delete(f.keyPairs, "ops")
	a := New(f, f, func() time.Time { return now })
	refused := func() bool {
		return len(a.Ask(context.Background(), []Request{creation([]string{"subnet-a"}, webPool())})[0].Refused) > 0
	}
	if !refused() {
		t.Fatal("not refused at all")
	}
	const op = "ec2:DescribeKeyPairs"
	f.fails[op] = &observed.Error{Kind: observed.Throttled, Service: "ec2", Operation: "DescribeKeyPairs", Code: "RequestLimitExceeded"}
	for range 20 {
		if now = now.Add(31 * time.Second); !refused() {
			t.Fatalf("after %s AWS only throttles, and the rollout may start", now.Sub(time.Unix(0, 0)))
		}
	}
	f.keyPairs["ops"] = true
	delete(f.fails, op)
	if now = now.Add(time.Minute); refused() {
		t.Error("the key pair is there, and the rollout is held")
	}
	delete(f.keyPairs, "ops")
	if now = now.Add(nameTTL); !refused() {
		t.Fatal("it is gone again")
	}
	f.fails[op] = &observed.Error{Kind: observed.Denied, Service: "ec2", Operation: "DescribeKeyPairs"}
	for range 40 {
		now = now.Add(31 * time.Second)
		_ = refused()
	}
	if now = now.Add(badTTL); refused() {
		t.Error("what AWS said long ago stands for ever")
	}
}
