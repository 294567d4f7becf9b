package kinds

import "time"

// AWSClusterSpec is AWSCluster.spec. Of it, weir uses the network, the tags, the
// image lookup and the identity; the rest is read so that a misspelt field shows.
type AWSClusterSpec struct {
	Network                           Network           `json:"network"`
	Region                            string            `json:"region"`
	Partition                         string            `json:"partition" in:"v1beta2"`
	SSHKeyName                        *string           `json:"sshKeyName"`
	ControlPlaneEndpoint              Endpoint          `json:"controlPlaneEndpoint"`
	AdditionalTags                    map[string]string `json:"additionalTags"`
	ControlPlaneLoadBalancer          *LoadBalancer     `json:"controlPlaneLoadBalancer"`
	SecondaryControlPlaneLoadBalancer *LoadBalancer     `json:"secondaryControlPlaneLoadBalancer" in:"v1beta2"`
	ImageLookup
	Bastion     Bastion            `json:"bastion"`
	IdentityRef *IdentityReference `json:"identityRef"`
	S3Bucket    *S3Bucket          `json:"s3Bucket"`
}

// ImageLookup are the settings by which an image is looked up by name.
type ImageLookup struct {
	ImageLookupFormat string `json:"imageLookupFormat"`
	ImageLookupOrg    string `json:"imageLookupOrg"`
	ImageLookupBaseOS string `json:"imageLookupBaseOS"`
}

// AWSManagedClusterSpec is AWSManagedCluster.spec.
type AWSManagedClusterSpec struct {
	ControlPlaneEndpoint Endpoint `json:"controlPlaneEndpoint"`
}

// IdentityReference names the AWS identity of a cluster.
type IdentityReference struct {
	Name string `json:"name" check:"required"`
	Kind string `json:"kind" check:"required"`
}

// Network is spec.network of AWSCluster and AWSManagedControlPlane.
type Network struct {
	VPC                                VPC               `json:"vpc"`
	Subnets                            []NetworkSubnet   `json:"subnets"`
	CNI                                *CNI              `json:"cni"`
	SecurityGroupOverrides             map[string]string `json:"securityGroupOverrides"`
	AdditionalControlPlaneIngressRules []IngressRule     `json:"additionalControlPlaneIngressRules" in:"v1beta2"`
	AdditionalNodeIngressRules         []IngressRule     `json:"additionalNodeIngressRules" in:"v1beta2"`
	NodePortIngressRuleCIDRBlocks      []string          `json:"nodePortIngressRuleCidrBlocks" in:"v1beta2"`
}

// VPC is spec.network.vpc.
type VPC struct {
	ID                                 string            `json:"id"`
	CIDRBlock                          string            `json:"cidrBlock"`
	SecondaryCIDRBlocks                []SecondaryCIDR   `json:"secondaryCidrBlocks" in:"v1beta2"`
	IPAMPool                           *IPAMPool         `json:"ipamPool" in:"v1beta2"`
	IPv6                               *IPv6             `json:"ipv6"`
	InternetGatewayID                  *string           `json:"internetGatewayId"`
	CarrierGatewayID                   *string           `json:"carrierGatewayId" in:"v1beta2"`
	Tags                               map[string]string `json:"tags"`
	AvailabilityZoneUsageLimit         *int32            `json:"availabilityZoneUsageLimit" default:"3"`
	AvailabilityZoneSelection          string            `json:"availabilityZoneSelection" default:"Ordered"`
	EmptyRoutesDefaultVPCSecurityGroup bool              `json:"emptyRoutesDefaultVPCSecurityGroup" in:"v1beta2"`
	PrivateDNSHostnameTypeOnLaunch     *string           `json:"privateDnsHostnameTypeOnLaunch" in:"v1beta2"`
	ElasticIPPool                      *ElasticIPPool    `json:"elasticIpPool" in:"v1beta2"`
	SubnetSchema                       string            `json:"subnetSchema" in:"v1beta2" default:"PreferPrivate"`
}

// SecondaryCIDR is one further CIDR block of a VPC.
type SecondaryCIDR struct {
	IPv4CIDRBlock string `json:"ipv4CidrBlock" check:"required"`
}

// IPAMPool names a pool of IP addresses.
type IPAMPool struct {
	ID            string `json:"id"`
	Name          string `json:"name"`
	NetmaskLength int64  `json:"netmaskLength"`
}

// IPv6 is the IPv6 part of a VPC; its presence switches IPv6 on.
type IPv6 struct {
	CIDRBlock                   string    `json:"cidrBlock"`
	PoolID                      string    `json:"poolId"`
	EgressOnlyInternetGatewayID *string   `json:"egressOnlyInternetGatewayId"`
	IPAMPool                    *IPAMPool `json:"ipamPool" in:"v1beta2"`
}

// ElasticIPPool names a pool of elastic addresses.
type ElasticIPPool struct {
	PublicIPv4Pool              *string `json:"publicIpv4Pool"`
	PublicIPv4PoolFallbackOrder *string `json:"publicIpv4PoolFallbackOrder"`
}

// NetworkSubnet is one entry of spec.network.subnets. An ID that does not start
// with "subnet-" names a subnet that CAPA creates; ResourceID is then its id.
type NetworkSubnet struct {
	ID               string            `json:"id" check:"required=v1beta2"`
	ResourceID       string            `json:"resourceID" in:"v1beta2"`
	CIDRBlock        string            `json:"cidrBlock"`
	IPv6CIDRBlock    string            `json:"ipv6CidrBlock"`
	AvailabilityZone string            `json:"availabilityZone"`
	IsPublic         bool              `json:"isPublic"`
	IsIPv6           bool              `json:"isIpv6"`
	RouteTableID     *string           `json:"routeTableId"`
	NATGatewayID     *string           `json:"natGatewayId"`
	Tags             map[string]string `json:"tags"`
	ZoneType         *string           `json:"zoneType" in:"v1beta2"`
	ParentZoneName   *string           `json:"parentZoneName" in:"v1beta2"`
}

// CNI is spec.network.cni.
type CNI struct {
	CNIIngressRules []CNIIngressRule `json:"cniIngressRules"`
}

// CNIIngressRule opens a port between nodes for the network plugin.
type CNIIngressRule struct {
	Description string `json:"description" check:"required"`
	Protocol    string `json:"protocol" check:"required"`
	FromPort    int64  `json:"fromPort" check:"required"`
	ToPort      int64  `json:"toPort" check:"required"`
}

// IngressRule is a rule of a security group that CAPA manages.
type IngressRule struct {
	Description              string   `json:"description" check:"required"`
	Protocol                 string   `json:"protocol" check:"required"`
	FromPort                 int64    `json:"fromPort" check:"required"`
	ToPort                   int64    `json:"toPort" check:"required"`
	CIDRBlocks               []string `json:"cidrBlocks"`
	IPv6CIDRBlocks           []string `json:"ipv6CidrBlocks"`
	SourceSecurityGroupIDs   []string `json:"sourceSecurityGroupIds"`
	SourceSecurityGroupRoles []string `json:"sourceSecurityGroupRoles"`
	NATGatewaysIPsSource     bool     `json:"natGatewaysIPsSource"`
}

// Bastion is the bastion host of a cluster.
type Bastion struct {
	Enabled             bool     `json:"enabled"`
	DisableIngressRules bool     `json:"disableIngressRules"`
	AllowedCIDRBlocks   []string `json:"allowedCIDRBlocks"`
	InstanceType        string   `json:"instanceType"`
	AMI                 string   `json:"ami"`
}

// S3Bucket is the bucket for Ignition data.
type S3Bucket struct {
	Name                           string          `json:"name" check:"required"`
	ControlPlaneIAMInstanceProfile string          `json:"controlPlaneIAMInstanceProfile" check:"required=v1beta1"`
	NodesIAMInstanceProfiles       []string        `json:"nodesIAMInstanceProfiles" check:"required=v1beta1"`
	PresignedURLDuration           *time.Duration  `json:"presignedURLDuration" in:"v1beta2"`
	BestEffortDeleteObjects        *bool           `json:"bestEffortDeleteObjects" in:"v1beta2"`
	AdditionalIAMRoles             []BucketIAMRole `json:"additionalIAMRoles" in:"v1beta2"`
}

// BucketIAMRole gives a role access to a part of the bucket.
type BucketIAMRole struct {
	Name   string `json:"name" check:"required"`
	Prefix string `json:"prefix" check:"required"`
}

// LoadBalancer is a load balancer of a control plane.
type LoadBalancer struct {
	Name                     *string       `json:"name"`
	Scheme                   string        `json:"scheme" default:"internet-facing"`
	CrossZoneLoadBalancing   bool          `json:"crossZoneLoadBalancing"`
	Subnets                  []string      `json:"subnets"`
	HealthCheckProtocol      *string       `json:"healthCheckProtocol"`
	HealthCheck              *HealthCheck  `json:"healthCheck" in:"v1beta2"`
	AdditionalSecurityGroups []string      `json:"additionalSecurityGroups"`
	AdditionalListeners      []Listener    `json:"additionalListeners" in:"v1beta2"`
	IngressRules             []IngressRule `json:"ingressRules" in:"v1beta2"`
	LoadBalancerType         string        `json:"loadBalancerType" in:"v1beta2" default:"classic"`
	DisableHostsRewrite      bool          `json:"disableHostsRewrite" in:"v1beta2"`
	PreserveClientIP         bool          `json:"preserveClientIP" in:"v1beta2"`
	DNSResolutionCheck       *string       `json:"dnsResolutionCheck" in:"v1beta2"`
	TargetGroupIPType        *string       `json:"targetGroupIPType" in:"v1beta2"`
}

// ListenerHealthCheck is the health check of a further listener.
type ListenerHealthCheck struct {
	HealthCheck
	Protocol string  `json:"protocol"`
	Port     *string `json:"port"`
	Path     *string `json:"path"`
}

// HealthCheck describes how a load balancer finds healthy targets.
type HealthCheck struct {
	IntervalSeconds         *int64 `json:"intervalSeconds"`
	TimeoutSeconds          *int64 `json:"timeoutSeconds"`
	ThresholdCount          *int64 `json:"thresholdCount"`
	UnhealthyThresholdCount *int64 `json:"unhealthyThresholdCount"`
}

// Listener is one further listener of a load balancer.
type Listener struct {
	Port              int64                `json:"port" check:"required"`
	Protocol          string               `json:"protocol" default:"TCP"`
	HealthCheck       *ListenerHealthCheck `json:"healthCheck"`
	TargetGroupIPType *string              `json:"targetGroupIPType"`
}
