package intent

// The types in this file are members of EC2's RequestLaunchTemplateData that the types of Cluster API
// Provider AWS do not have. Their members have EC2's names in alphabetical order, and are omitted if no
// manifest has them. A number is a pointer if EC2 accepts 0 for it. For all other numbers, 0 means unset.

// CPUOptions is LaunchTemplateCpuOptionsRequest. AmdSevSnp and
// NestedVirtualization are enabled or disabled.
type CPUOptions struct {
	AmdSevSnp            string `json:"AmdSevSnp,omitempty"`
	CoreCount            int32  `json:"CoreCount,omitempty"`
	NestedVirtualization string `json:"NestedVirtualization,omitempty"`
	ThreadsPerCore       int32  `json:"ThreadsPerCore,omitempty"`
}

// CreditSpecification is CreditSpecificationRequest: standard or unlimited.
type CreditSpecification struct {
	CPUCredits string `json:"CpuCredits,omitempty"`
}

// HibernationOptions is LaunchTemplateHibernationOptionsRequest.
type HibernationOptions struct {
	Configured *bool `json:"Configured,omitempty"`
}

// LicenseConfiguration is LaunchTemplateLicenseConfigurationRequest.
type LicenseConfiguration struct {
	LicenseConfigurationARN string `json:"LicenseConfigurationArn,omitempty"`
}

// MaintenanceOptions is LaunchTemplateInstanceMaintenanceOptionsRequest:
// AutoRecovery is default or disabled.
type MaintenanceOptions struct {
	AutoRecovery string `json:"AutoRecovery,omitempty"`
}

// Monitoring is LaunchTemplatesMonitoringRequest. If enabled, instances send metrics every minute.
type Monitoring struct {
	Enabled *bool `json:"Enabled,omitempty"`
}

// NetworkInterface is LaunchTemplateInstanceNetworkInterfaceSpecificationRequest without the members that
// give a fixed address to an instance. Groups are sorted.
type NetworkInterface struct {
	AssociateCarrierIPAddress       *bool               `json:"AssociateCarrierIpAddress,omitempty"`
	AssociatePublicIPAddress        *bool               `json:"AssociatePublicIpAddress,omitempty"`
	ConnectionTrackingSpecification *ConnectionTracking `json:"ConnectionTrackingSpecification,omitempty"`
	DeleteOnTermination             *bool               `json:"DeleteOnTermination,omitempty"`
	Description                     string              `json:"Description,omitempty"`
	DeviceIndex                     *int32              `json:"DeviceIndex,omitempty"`
	EnaQueueCount                   int32               `json:"EnaQueueCount,omitempty"`
	EnaSrdSpecification             *EnaSrd             `json:"EnaSrdSpecification,omitempty"`
	Groups                          []string            `json:"Groups,omitempty"`
	InterfaceType                   string              `json:"InterfaceType,omitempty"`
	IPv4PrefixCount                 int32               `json:"Ipv4PrefixCount,omitempty"`
	IPv6AddressCount                int32               `json:"Ipv6AddressCount,omitempty"`
	IPv6PrefixCount                 int32               `json:"Ipv6PrefixCount,omitempty"`
	NetworkCardIndex                *int32              `json:"NetworkCardIndex,omitempty"`
	PrimaryIPv6                     *bool               `json:"PrimaryIpv6,omitempty"`
	SecondaryPrivateIPAddressCount  int32               `json:"SecondaryPrivateIpAddressCount,omitempty"`
	SubnetID                        string              `json:"SubnetId,omitempty"`
}

// ConnectionTracking is ConnectionTrackingSpecificationRequest. Timeouts are in seconds.
type ConnectionTracking struct {
	TCPEstablishedTimeout int32 `json:"TcpEstablishedTimeout,omitempty"`
	UDPStreamTimeout      int32 `json:"UdpStreamTimeout,omitempty"`
	UDPTimeout            int32 `json:"UdpTimeout,omitempty"`
}

// EnaSrd is EnaSrdSpecificationRequest: ENA Express.
type EnaSrd struct {
	EnaSrdEnabled          *bool      `json:"EnaSrdEnabled,omitempty"`
	EnaSrdUDPSpecification *EnaSrdUDP `json:"EnaSrdUdpSpecification,omitempty"`
}

// EnaSrdUDP is EnaSrdUdpSpecificationRequest.
type EnaSrdUDP struct {
	EnaSrdUDPEnabled *bool `json:"EnaSrdUdpEnabled,omitempty"`
}

// NetworkPerformanceOptions is LaunchTemplateNetworkPerformanceOptionsRequest:
// default, vpc-1 or ebs-1.
type NetworkPerformanceOptions struct {
	BandwidthWeighting string `json:"BandwidthWeighting,omitempty"`
}

// Placement is LaunchTemplatePlacementRequest. Tenancy is default, dedicated or
// host; PartitionNumber counts from 1.
type Placement struct {
	Affinity             string `json:"Affinity,omitempty"`
	GroupID              string `json:"GroupId,omitempty"`
	GroupName            string `json:"GroupName,omitempty"`
	HostID               string `json:"HostId,omitempty"`
	HostResourceGroupARN string `json:"HostResourceGroupArn,omitempty"`
	PartitionNumber      int32  `json:"PartitionNumber,omitempty"`
	Tenancy              string `json:"Tenancy,omitempty"`
}

// SecondaryInterface is LaunchTemplateInstanceSecondaryInterfaceSpecificationRequest without the members that
// give a fixed address to an instance.
type SecondaryInterface struct {
	DeleteOnTermination   *bool  `json:"DeleteOnTermination,omitempty"`
	DeviceIndex           *int32 `json:"DeviceIndex,omitempty"`
	InterfaceType         string `json:"InterfaceType,omitempty"`
	NetworkCardIndex      *int32 `json:"NetworkCardIndex,omitempty"`
	PrivateIPAddressCount int32  `json:"PrivateIpAddressCount,omitempty"`
	SecondarySubnetID     string `json:"SecondarySubnetId,omitempty"`
}
