package manifest

import "github.com/weir-gitops/weir/render/intent"

// PoolOptionsSpec is PoolOptions.spec: what AWS takes for a pool and Cluster API
// Provider AWS's types cannot say. It is an object of its own, so that the pool's
// manifests stay valid for CAPA. Fields have the names of AWS's API in lower
// camel case.
type PoolOptionsSpec struct {
	PoolRef          PoolReference     `json:"poolRef" check:"required"`
	LaunchTemplate   *TemplateOptions  `json:"launchTemplate"`
	AutoScalingGroup *GroupOptions     `json:"autoScalingGroup"`
	Nodegroup        *NodegroupOptions `json:"nodegroup"`
}

// PoolReference names a pool in the namespace of the object that refers to it, or
// the declaration of a launch template that pools share.
type PoolReference struct {
	Kind string `json:"kind" enum:"AWSMachinePool|AWSManagedMachinePool|AWSLaunchConfig|AWSLaunchConfigTemplate" check:"required"`
	Name string `json:"name" check:"required,minlen=1"`
}

// TemplateOptions are the members of EC2's RequestLaunchTemplateData that
// awsLaunchTemplate does not have. The types below are those of the intent with
// other tags: one converts into the other.
type TemplateOptions struct {
	CapacityReservationSpecification  *ReservationOptions        `json:"capacityReservationSpecification"`
	CPUOptions                        *CPUOptions                `json:"cpuOptions"`
	CreditSpecification               *CreditSpecification       `json:"creditSpecification"`
	DisableAPIStop                    *bool                      `json:"disableApiStop"`
	DisableAPITermination             *bool                      `json:"disableApiTermination"`
	EbsOptimized                      *bool                      `json:"ebsOptimized"`
	HibernationOptions                *HibernationOptions        `json:"hibernationOptions"`
	InstanceInitiatedShutdownBehavior string                     `json:"instanceInitiatedShutdownBehavior" enum:"stop|terminate"`
	KernelID                          string                     `json:"kernelId"`
	LicenseSpecifications             []LicenseConfiguration     `json:"licenseSpecifications"`
	MaintenanceOptions                *MaintenanceOptions        `json:"maintenanceOptions"`
	Monitoring                        *Monitoring                `json:"monitoring"`
	NetworkInterfaces                 []NetworkInterface         `json:"networkInterfaces"`
	NetworkPerformanceOptions         *NetworkPerformanceOptions `json:"networkPerformanceOptions"`
	Placement                         *Placement                 `json:"placement"`
	RAMDiskID                         string                     `json:"ramDiskId"`
}

// ofPool are EC2's members that a pool's own manifests set, with the field below
// spec that does so.
func ofPool() map[string]intent.Path {
	template := path("awsLaunchTemplate")
	return map[string]intent.Path{
		"blockDeviceMappings": template.Join("rootVolume"), "enclaveOptions": template.Join("enclaveOptions"),
		"iamInstanceProfile": template.Join("iamInstanceProfile"), "imageId": template.Join("ami", "id"),
		"instanceMarketOptions": template.Join("spotMarketOptions"), "instanceType": template.Join("instanceType"),
		"keyName": template.Join("sshKeyName"), "metadataOptions": template.Join("instanceMetadataOptions"),
		"privateDnsNameOptions": template.Join("privateDnsName"), "securityGroupIds": template.Join("additionalSecurityGroups"),
		"securityGroups": template.Join("additionalSecurityGroups"), "tagSpecifications": path("additionalTags"),
	}
}

func (TemplateOptions) unknownHint(name string) string {
	if at, ok := ofPool()[name]; ok {
		return "write spec." + at.String() + " in the pool"
	}
	switch name {
	case "userData":
		return "user data comes from the MachinePool's bootstrap configuration"
	case "elasticGpuSpecifications", "elasticInferenceAccelerators":
		return "AWS has ended this service"
	case "instanceRequirements":
		return "a pool names its instance types: spec.awsLaunchTemplate.instanceType, or mixedInstancesPolicy.overrides"
	case "operator":
		return "it names an AWS service that manages the template, and weir is none"
	}
	return ""
}

// ReservationOptions say into which group of capacity reservations instances are
// launched; a single reservation is awsLaunchTemplate.capacityReservationId.
type ReservationOptions struct {
	CapacityReservationTarget *ReservationTarget `json:"capacityReservationTarget"`
}

func (ReservationOptions) unknownHint(name string) string {
	if name == "capacityReservationPreference" {
		return "write spec.awsLaunchTemplate.capacityReservationPreference in the pool"
	}
	return ""
}

// ReservationTarget is a resource group of capacity reservations.
type ReservationTarget struct {
	CapacityReservationResourceGroupARN string `json:"capacityReservationResourceGroupArn"`
}

func (ReservationTarget) unknownHint(name string) string {
	if name == "capacityReservationId" {
		return "write spec.awsLaunchTemplate.capacityReservationId in the pool"
	}
	return ""
}

// CPUOptions are EC2's, without those of a type's default.
type CPUOptions struct {
	AmdSevSnp            string `json:"amdSevSnp" enum:"enabled|disabled"`
	CoreCount            int32  `json:"coreCount" check:"min=1"`
	NestedVirtualization string `json:"nestedVirtualization" enum:"enabled|disabled"`
	ThreadsPerCore       int32  `json:"threadsPerCore" check:"min=1,max=2"`
}

// CreditSpecification is for burstable instance types.
type CreditSpecification struct {
	CPUCredits string `json:"cpuCredits" enum:"standard|unlimited" check:"required"`
}

// HibernationOptions make instances able to hibernate, as a warm pool asks for.
type HibernationOptions struct {
	Configured *bool `json:"configured"`
}

// LicenseConfiguration is one of AWS License Manager's.
type LicenseConfiguration struct {
	LicenseConfigurationARN string `json:"licenseConfigurationArn" check:"required"`
}

// MaintenanceOptions switch EC2's automatic recovery off.
type MaintenanceOptions struct {
	AutoRecovery string `json:"autoRecovery" enum:"default|disabled"`
}

// Monitoring asks for metrics each minute.
type Monitoring struct {
	Enabled *bool `json:"enabled"`
}

// NetworkInterface is one network interface of each instance. Without groups it
// has the security groups of the pool.
type NetworkInterface struct {
	AssociateCarrierIPAddress       *bool               `json:"associateCarrierIpAddress"`
	AssociatePublicIPAddress        *bool               `json:"associatePublicIpAddress"`
	ConnectionTrackingSpecification *ConnectionTracking `json:"connectionTrackingSpecification"`
	DeleteOnTermination             *bool               `json:"deleteOnTermination"`
	Description                     string              `json:"description"`
	DeviceIndex                     *int32              `json:"deviceIndex" check:"required,min=0"`
	EnaQueueCount                   int32               `json:"enaQueueCount" check:"min=1"`
	EnaSrdSpecification             *EnaSrd             `json:"enaSrdSpecification"`
	Groups                          []string            `json:"groups"`
	InterfaceType                   string              `json:"interfaceType" enum:"interface|efa|efa-only"`
	IPv4PrefixCount                 int32               `json:"ipv4PrefixCount" check:"min=1"`
	IPv6AddressCount                int32               `json:"ipv6AddressCount" check:"min=1"`
	IPv6PrefixCount                 int32               `json:"ipv6PrefixCount" check:"min=1"`
	NetworkCardIndex                *int32              `json:"networkCardIndex" check:"min=0"`
	PrimaryIPv6                     *bool               `json:"primaryIpv6"`
	SecondaryPrivateIPAddressCount  int32               `json:"secondaryPrivateIpAddressCount" check:"min=1"`
	SubnetID                        string              `json:"subnetId"`
}

func (NetworkInterface) unknownHint(name string) string {
	switch name {
	case "networkInterfaceId", "privateIpAddress", "privateIpAddresses", "ipv6Addresses", "ipv4Prefixes", "ipv6Prefixes":
		return "one address or interface cannot belong to all instances of a pool; the fields that end in Count ask for addresses"
	}
	return ""
}

// ConnectionTracking are timeouts of idle connections, in seconds.
type ConnectionTracking struct {
	TCPEstablishedTimeout int32 `json:"tcpEstablishedTimeout" check:"min=60,max=432000"`
	UDPStreamTimeout      int32 `json:"udpStreamTimeout" check:"min=60,max=180"`
	UDPTimeout            int32 `json:"udpTimeout" check:"min=30,max=60"`
}

// EnaSrd is ENA Express.
type EnaSrd struct {
	EnaSrdEnabled          *bool      `json:"enaSrdEnabled"`
	EnaSrdUDPSpecification *EnaSrdUDP `json:"enaSrdUdpSpecification"`
}

// EnaSrdUDP is ENA Express for UDP.
type EnaSrdUDP struct {
	EnaSrdUDPEnabled *bool `json:"enaSrdUdpEnabled"`
}

// NetworkPerformanceOptions shift bandwidth between network and volumes.
type NetworkPerformanceOptions struct {
	BandwidthWeighting string `json:"bandwidthWeighting" enum:"default|vpc-1|ebs-1"`
}

// Placement says where, and beside whom, instances run.
type Placement struct {
	Affinity             string `json:"affinity" enum:"default|host"`
	GroupID              string `json:"groupId"`
	GroupName            string `json:"groupName"`
	HostID               string `json:"hostId"`
	HostResourceGroupARN string `json:"hostResourceGroupArn"`
	PartitionNumber      int32  `json:"partitionNumber" check:"min=1"`
	Tenancy              string `json:"tenancy" enum:"default|dedicated|host"`
}

func (Placement) unknownHint(name string) string {
	switch name {
	case "availabilityZone", "availabilityZoneId":
		return "the pool's subnets and zones decide where its instances run"
	case "spreadDomain":
		return "EC2 keeps it for later use"
	}
	return ""
}
