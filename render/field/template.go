package field

import (
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
)

// template lists the members of RequestLaunchTemplateData. Every change results in a new version of the
// launch template, which machines run after they are replaced.
var template = []Row{
	{AWS: "BlockDeviceMappings[].DeviceName", Pool: "awsLaunchTemplate.nonRootVolumes[].deviceName", Special: "plan: the root volume's is the image's"},
	{AWS: "BlockDeviceMappings[].Ebs.DeleteOnTermination", Pool: "awsLaunchTemplate.nonRootVolumes[].DeleteOnTermination", Special: "manifest: Cluster API Provider AWS has volumes deleted with their instance"},
	{AWS: "BlockDeviceMappings[].Ebs.Encrypted", Pool: "awsLaunchTemplate.nonRootVolumes[].encrypted|awsLaunchTemplate.nonRootVolumes[].encryptionKey"},
	{AWS: "BlockDeviceMappings[].Ebs.Iops", Pool: "awsLaunchTemplate.nonRootVolumes[].iops"},
	{AWS: "BlockDeviceMappings[].Ebs.KmsKeyId", Pool: "awsLaunchTemplate.nonRootVolumes[].encryptionKey"},
	{AWS: "BlockDeviceMappings[].Ebs.Throughput", Pool: "awsLaunchTemplate.nonRootVolumes[].throughput", Doc: "in MiB/s"},
	{AWS: "BlockDeviceMappings[].Ebs.VolumeSize", Pool: "awsLaunchTemplate.nonRootVolumes[].size", Doc: "in GiB"},
	{AWS: "BlockDeviceMappings[].Ebs.VolumeType", Pool: "awsLaunchTemplate.nonRootVolumes[].type"},
	{AWS: "CapacityReservationSpecification.CapacityReservationPreference", Pool: "awsLaunchTemplate.capacityReservationPreference", Special: "manifest: Cluster API Provider AWS has other words"},
	{AWS: "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId", Member: "CapacityReservationSpecification.CapacityReservationId",
		Pool: "awsLaunchTemplate.capacityReservationId", Special: flattened},
	{AWS: "CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationResourceGroupArn", Member: "CapacityReservationSpecification.CapacityReservationResourceGroupArn",
		Begins: "arn:", Special: flattened},
	{AWS: "CpuOptions.AmdSevSnp", Values: "enabled|disabled"},
	{AWS: "CpuOptions.CoreCount", Min: n(1)},
	{AWS: "CpuOptions.NestedVirtualization", Values: "enabled|disabled"},
	{AWS: "CpuOptions.ThreadsPerCore", Min: n(1), Max: n(2)},
	{AWS: "CreditSpecification.CpuCredits", Required: true, Values: "standard|unlimited"},
	{AWS: "DisableApiStop"},
	{AWS: "DisableApiTermination"},
	{AWS: "EbsOptimized"},
	{AWS: "EnclaveOptions.Enabled", Pool: "awsLaunchTemplate.enclaveOptions.enabled"},
	{AWS: "HibernationOptions.Configured"},
	{AWS: "IamInstanceProfile.Arn", Pool: "awsLaunchTemplate.iamInstanceProfile", Special: "manifest: what begins with arn: is an ARN"},
	{AWS: "IamInstanceProfile.Name", Pool: "awsLaunchTemplate.iamInstanceProfile", Special: "manifest: what does not begin with arn: is a name"},
	{AWS: "ImageId", Pool: "awsLaunchTemplate.ami.id", Doc: "also `resolve:ssm:NAME`", Special: "resolve: looked up where no id is written"},
	{AWS: "InstanceInitiatedShutdownBehavior", Values: "stop|terminate"},
	{AWS: "InstanceMarketOptions.MarketType", Pool: "awsLaunchTemplate.marketType|awsLaunchTemplate.spotMarketOptions", Special: "manifest: follows from either field"},
	{AWS: "InstanceMarketOptions.SpotOptions.MaxPrice", Member: "InstanceMarketOptions.MaxPrice", Pool: "awsLaunchTemplate.spotMarketOptions.maxPrice", Special: flattened},
	{AWS: "InstanceType", Pool: "awsLaunchTemplate.instanceType", Doc: "for a nodegroup without a template EKS `instanceTypes`"},
	{AWS: "KernelId", Begins: "aki-"},
	{AWS: "KeyName", Pool: "awsLaunchTemplate.sshKeyName"},
	{AWS: "LicenseSpecifications[].LicenseConfigurationArn", Required: true, Begins: "arn:"},
	{AWS: "MaintenanceOptions.AutoRecovery", Values: "default|disabled"},
	{AWS: "MetadataOptions.HttpEndpoint", Pool: metadata + "httpEndpoint", Values: "enabled|disabled", Default: "enabled"},
	{AWS: "MetadataOptions.HttpProtocolIpv6", Pool: metadata + "httpProtocolIpv6", Values: "enabled|disabled", Default: "disabled",
		Special: "manifest: the default is not sent, since EC2 answers it with nothing"},
	{AWS: "MetadataOptions.HttpPutResponseHopLimit", Pool: metadata + "httpPutResponseHopLimit", Min: n(1), Max: n(64), Default: "1"},
	{AWS: "MetadataOptions.HttpTokens", Pool: metadata + "httpTokens", Values: "optional|required", Default: "optional"},
	{AWS: "MetadataOptions.InstanceMetadataTags", Pool: metadata + "instanceMetadataTags", Values: "enabled|disabled", Default: "disabled"},
	{AWS: "Monitoring.Enabled"},
	{AWS: "NetworkInterfaces[].AssociateCarrierIpAddress"},
	{AWS: "NetworkInterfaces[].AssociatePublicIpAddress"},
	{AWS: "NetworkInterfaces[].ConnectionTrackingSpecification.TcpEstablishedTimeout", Min: n(60), Max: n(432000)},
	{AWS: "NetworkInterfaces[].ConnectionTrackingSpecification.UdpStreamTimeout", Min: n(60), Max: n(180)},
	{AWS: "NetworkInterfaces[].ConnectionTrackingSpecification.UdpTimeout", Min: n(30), Max: n(60)},
	{AWS: "NetworkInterfaces[].DeleteOnTermination"},
	{AWS: "NetworkInterfaces[].Description"},
	{AWS: "NetworkInterfaces[].DeviceIndex", Required: true, Min: n(0)},
	{AWS: "NetworkInterfaces[].EnaQueueCount", Min: n(1)},
	{AWS: "NetworkInterfaces[].EnaSrdSpecification.EnaSrdEnabled"},
	{AWS: "NetworkInterfaces[].EnaSrdSpecification.EnaSrdUdpSpecification.EnaSrdUdpEnabled"},
	{AWS: "NetworkInterfaces[].Groups", Begins: "sg-", Special: "plan: without any it has the machine's"},
	{AWS: "NetworkInterfaces[].InterfaceType", Values: "interface|efa|efa-only"},
	{AWS: "NetworkInterfaces[].Ipv4PrefixCount", Min: n(1)},
	{AWS: "NetworkInterfaces[].Ipv6AddressCount", Min: n(1)},
	{AWS: "NetworkInterfaces[].Ipv6PrefixCount", Min: n(1)},
	{AWS: "NetworkInterfaces[].NetworkCardIndex", Min: n(0)},
	{AWS: "NetworkInterfaces[].PrimaryIpv6"},
	{AWS: "NetworkInterfaces[].SecondaryPrivateIpAddressCount", Min: n(1)},
	{AWS: "NetworkInterfaces[].SubnetId", Begins: "subnet-"},
	{AWS: "NetworkPerformanceOptions.BandwidthWeighting", Values: "default|vpc-1|ebs-1"},
	{AWS: "Placement.Affinity", Values: "default|host"},
	{AWS: "Placement.GroupId", Begins: "pg-"},
	{AWS: "Placement.GroupName"},
	{AWS: "Placement.HostId", Begins: "h-"},
	{AWS: "Placement.HostResourceGroupArn", Begins: "arn:"},
	{AWS: "Placement.PartitionNumber", Min: n(1)},
	{AWS: "Placement.Tenancy", Values: "default|dedicated|host"},
	{AWS: "PrivateDnsNameOptions.EnableResourceNameDnsAAAARecord", Pool: "awsLaunchTemplate.privateDnsName.enableResourceNameDnsAAAARecord"},
	{AWS: "PrivateDnsNameOptions.EnableResourceNameDnsARecord", Pool: "awsLaunchTemplate.privateDnsName.enableResourceNameDnsARecord"},
	{AWS: "PrivateDnsNameOptions.HostnameType", Pool: "awsLaunchTemplate.privateDnsName.hostnameType", Values: "ip-name|resource-name"},
	{AWS: "RamDiskId", Begins: "ari-"},
	{AWS: "SecondaryInterfaces[].DeleteOnTermination", Doc: "`true` alone"},
	{AWS: "SecondaryInterfaces[].DeviceIndex", Required: true, Min: n(0)},
	{AWS: "SecondaryInterfaces[].InterfaceType", Values: "secondary"},
	{AWS: "SecondaryInterfaces[].NetworkCardIndex", Min: n(0)},
	{AWS: "SecondaryInterfaces[].PrivateIpAddressCount", Min: n(1)},
	{AWS: "SecondaryInterfaces[].SecondarySubnetId", Doc: "a subnet of a secondary network"},
	{AWS: "SecurityGroupIds", Pool: "awsLaunchTemplate.additionalSecurityGroups", Special: "resolve: those of the cluster are looked up"},
	{AWS: "TagSpecifications[].ResourceType", Pool: "additionalTags", Special: "manifest: instance and volume"},
	{AWS: "TagSpecifications[].Tags[].Key", Pool: "additionalTags", Special: "plan: matched by key"},
	{AWS: "TagSpecifications[].Tags[].Value", Pool: "additionalTags", Special: "plan: matched by key"},
	{AWS: "UserData", Pool: "-", Special: "userdata: made of the bootstrap configuration"},
}

// refusedTemplate lists the AWS members that no pool can have, with the reasons.
var refusedTemplate = map[string]string{
	"BlockDeviceMappings[].Ebs.EbsCardIndex":             volumes,
	"BlockDeviceMappings[].Ebs.SnapshotId":               volumes,
	"BlockDeviceMappings[].Ebs.VolumeInitializationRate": volumes,
	"BlockDeviceMappings[].NoDevice":                     volumes,
	"BlockDeviceMappings[].VirtualName":                  volumes,
	"ElasticGpuSpecifications":                           ended,
	"ElasticInferenceAccelerators":                       ended,
	"InstanceMarketOptions.SpotOptions":                  "a group asks for spot instances once and replaces those that end; of this structure it takes MaxPrice",
	"InstanceRequirements":                               "a pool names its instance types: spec.awsLaunchTemplate.instanceType, or mixedInstancesPolicy.overrides",
	"NetworkInterfaces[].Ipv4Prefixes":                   fixed,
	"NetworkInterfaces[].Ipv6Addresses":                  fixed,
	"NetworkInterfaces[].Ipv6Prefixes":                   fixed,
	"NetworkInterfaces[].NetworkInterfaceId":             fixed,
	"NetworkInterfaces[].PrivateIpAddress":               fixed,
	"NetworkInterfaces[].PrivateIpAddresses":             fixed,
	"Operator":                                           "it names an AWS service that manages the template, and weir is not one",
	"Placement.AvailabilityZone":                         zones,
	"Placement.AvailabilityZoneId":                       zones,
	"Placement.SpreadDomain":                             "EC2 keeps it for later use",
	"SecondaryInterfaces[].PrivateIpAddresses":           fixed,
	"SecurityGroups":                                     "names of groups are for EC2-Classic and default VPCs; write ids or filters in spec.awsLaunchTemplate.additionalSecurityGroups",
	"UserData":                                           "user data comes from the MachinePool's bootstrap configuration",
}

const (
	ended   = "AWS has ended this service"
	fixed   = "one address or interface cannot belong to all instances of a pool; the fields that end in Count ask for addresses"
	volumes = "the pool's rootVolume and nonRootVolumes are all volumes of its machines"
	zones   = "the pool's subnets and zones decide where its instances run"
)

// TemplateFields is like Fields for the data of a launch template. If the pool has a rootVolume, that is the
// first volume.
func TemplateFields(member intent.Path, rootVolume bool) (paths []intent.Path, ofOptions bool) {
	paths, ofOptions = Fields(Template, member)
	for i, p := range paths {
		if !rootVolume || len(p) < 3 || p[1] != "nonRootVolumes" {
			continue
		}
		if n, _ := strconv.Atoi(strings.Trim(p[2], "[]")); n > 0 {
			p[2] = intent.Index(n - 1)
		} else {
			paths[i] = append(intent.Path{p[0], "rootVolume"}, p[3:]...)
		}
	}
	return paths, ofOptions
}

const (
	metadata  = "awsLaunchTemplate.instanceMetadataOptions."
	flattened = "awscloud: the intent has it a level higher, and hashes of versions that exist are made of that"
)
