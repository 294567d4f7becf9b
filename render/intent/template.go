package intent

// MaxTemplateName is the maximum length of a launch template's name in characters. EC2's API reference says
// 128, but EC2 has answered that it "must be between 3 and 125 characters".
const MaxTemplateName = 125

// LaunchTemplate is the launch template of a pool. Data has the values in the manifests. The answers to
// lookups fill in the missing values at plan time.
type LaunchTemplate struct {
	// Name is the name that CAPA would give it: the pool's name for a group, and the control plane's name, a
	// dash and the pool's name for a nodegroup.
	Name string       `json:"name"`
	Data TemplateData `json:"data"`
	// Tags are the tags of the template itself, in addition to weir's own tags.
	Tags map[string]string `json:"tags,omitempty"`
	// Image asks for Data.ImageID. It is zero for a managed pool whose image EKS chooses.
	Image Lookup `json:"image,omitzero"`
	// RootDevice is true if Data.BlockDeviceMappings[0] is the root volume. The image then decides its device
	// name.
	RootDevice bool `json:"rootDevice,omitempty"`
	// The answers to SecurityGroups are added to Data.SecurityGroupIDs, before the ids there.
	SecurityGroups []Lookup `json:"securityGroups,omitempty"`
	UserData       UserData `json:"userData,omitzero"`
}

// TemplateData is EC2's RequestLaunchTemplateData, with the members that weir sends. JSON keys are EC2's
// member names, and missing members are omitted. Every struct declares its members in the order of their
// keys. So encoding/json produces the canonical form that the content hash is computed from.
type TemplateData struct {
	BlockDeviceMappings               []BlockDeviceMapping       `json:"BlockDeviceMappings,omitempty"`
	CapacityReservationSpecification  *CapacityReservation       `json:"CapacityReservationSpecification,omitempty"`
	CPUOptions                        *CPUOptions                `json:"CpuOptions,omitempty"`
	CreditSpecification               *CreditSpecification       `json:"CreditSpecification,omitempty"`
	DisableAPIStop                    *bool                      `json:"DisableApiStop,omitempty"`
	DisableAPITermination             *bool                      `json:"DisableApiTermination,omitempty"`
	EbsOptimized                      *bool                      `json:"EbsOptimized,omitempty"`
	EnclaveOptions                    *EnclaveOptions            `json:"EnclaveOptions,omitempty"`
	HibernationOptions                *HibernationOptions        `json:"HibernationOptions,omitempty"`
	IamInstanceProfile                *InstanceProfile           `json:"IamInstanceProfile,omitempty"`
	ImageID                           string                     `json:"ImageId,omitempty"`
	InstanceInitiatedShutdownBehavior string                     `json:"InstanceInitiatedShutdownBehavior,omitempty"`
	InstanceMarketOptions             *MarketOptions             `json:"InstanceMarketOptions,omitempty"`
	InstanceType                      string                     `json:"InstanceType,omitempty"`
	KernelID                          string                     `json:"KernelId,omitempty"`
	KeyName                           string                     `json:"KeyName,omitempty"`
	LicenseSpecifications             []LicenseConfiguration     `json:"LicenseSpecifications,omitempty"`
	MaintenanceOptions                *MaintenanceOptions        `json:"MaintenanceOptions,omitempty"`
	MetadataOptions                   *MetadataOptions           `json:"MetadataOptions,omitempty"`
	Monitoring                        *Monitoring                `json:"Monitoring,omitempty"`
	NetworkInterfaces                 []NetworkInterface         `json:"NetworkInterfaces,omitempty"`
	NetworkPerformanceOptions         *NetworkPerformanceOptions `json:"NetworkPerformanceOptions,omitempty"`
	Placement                         *Placement                 `json:"Placement,omitempty"`
	PrivateDNSNameOptions             *PrivateDNSNameOptions     `json:"PrivateDnsNameOptions,omitempty"`
	RAMDiskID                         string                     `json:"RamDiskId,omitempty"`
	SecondaryInterfaces               []SecondaryInterface       `json:"SecondaryInterfaces,omitempty"`
	SecurityGroupIDs                  []string                   `json:"SecurityGroupIds,omitempty"`
	TagSpecifications                 []TemplateTagSpecification `json:"TagSpecifications,omitempty"`
	UserData                          string                     `json:"UserData,omitempty"`
}

// InstanceProfile identifies an IAM instance profile by either Name or ARN.
type InstanceProfile struct {
	ARN  string `json:"Arn,omitempty"`
	Name string `json:"Name,omitempty"`
}

// BlockDeviceMapping is a volume. DeviceName is empty for a root volume until the image is known, because the
// image decides it.
type BlockDeviceMapping struct {
	DeviceName string `json:"DeviceName,omitempty"`
	Ebs        Ebs    `json:"Ebs"`
}

// Ebs is LaunchTemplateEbsBlockDeviceRequest. VolumeSize is in GiB, Throughput in MiB/s.
type Ebs struct {
	DeleteOnTermination *bool  `json:"DeleteOnTermination,omitempty"`
	Encrypted           *bool  `json:"Encrypted,omitempty"`
	Iops                int32  `json:"Iops,omitempty"`
	KmsKeyID            string `json:"KmsKeyId,omitempty"`
	Throughput          int32  `json:"Throughput,omitempty"`
	VolumeSize          int32  `json:"VolumeSize,omitempty"`
	VolumeType          string `json:"VolumeType,omitempty"`
}

// MarketOptions is LaunchTemplateInstanceMarketOptionsRequest. MarketType is spot or capacity-block. MaxPrice
// is in US dollars per hour; empty means the on-demand price.
type MarketOptions struct {
	MarketType string `json:"MarketType,omitempty"`
	MaxPrice   string `json:"MaxPrice,omitempty"`
}

// CapacityReservation is LaunchTemplateCapacityReservationSpecificationRequest. Its target is either a
// reservation's id or a resource group's ARN.
type CapacityReservation struct {
	TargetID       string `json:"CapacityReservationId,omitempty"`
	Preference     string `json:"CapacityReservationPreference,omitempty"`
	TargetGroupARN string `json:"CapacityReservationResourceGroupArn,omitempty"`
}

// MetadataOptions is LaunchTemplateInstanceMetadataOptionsRequest. weir sends only members that were written
// or that have a default in CAPA's schema.
type MetadataOptions struct {
	HTTPEndpoint            string `json:"HttpEndpoint,omitempty"`
	HTTPProtocolIPv6        string `json:"HttpProtocolIpv6,omitempty"`
	HTTPPutResponseHopLimit int32  `json:"HttpPutResponseHopLimit,omitempty"`
	HTTPTokens              string `json:"HttpTokens,omitempty"`
	InstanceMetadataTags    string `json:"InstanceMetadataTags,omitempty"`
}

// EnclaveOptions is LaunchTemplateEnclaveOptionsRequest.
type EnclaveOptions struct {
	Enabled *bool `json:"Enabled,omitempty"`
}

// PrivateDNSNameOptions is LaunchTemplatePrivateDnsNameOptionsRequest.
type PrivateDNSNameOptions struct {
	EnableResourceNameDNSAAAARecord *bool  `json:"EnableResourceNameDnsAAAARecord,omitempty"`
	EnableResourceNameDNSARecord    *bool  `json:"EnableResourceNameDnsARecord,omitempty"`
	HostnameType                    string `json:"HostnameType,omitempty"`
}

// TemplateTagSpecification has the tags of the instances or volumes of a launch. ResourceType is instance or
// volume. Tags are sorted by key.
type TemplateTagSpecification struct {
	ResourceType string `json:"ResourceType"`
	Tags         []Tag  `json:"Tags,omitempty"`
}

type Tag struct {
	Key   string `json:"Key"`
	Value string `json:"Value"`
}
