package observed

import (
	"github.com/weir-gitops/weir/render/intent"
)

// Answers contains AWS's answers to the lookups of the intents. A lookup without an entry was not answered.
// It blocks its pool and never gets a default.
type Answers map[intent.Lookup]Answer

// Answer is the answer to one lookup. Either the fields for the lookup's kind are set, or Problem explains
// why no answer exists.
type Answer struct {
	Image          *Image
	Subnets        []string // sorted ids
	SecurityGroups []string // sorted ids
	Cluster        *EKSCluster
	Template       *ForeignTemplate
	RoleARN        string
	// Release is the release of a nodegroup's images, such as 1.34.1-20251120.
	Release string
	// Discovered says that no manifest names the subnets. A pool keeps discovered subnets, even if further
	// subnets appear in the network.
	Discovered bool
	// VPCs lists the known VPCs of the subnets or security groups, sorted.
	VPCs []string
	// Lapsed lists the subnets of the default VPC, if they were the answer until the region got another VPC.
	// Problem is then set too, but a pool with machines in these subnets keeps them.
	Lapsed []string
	// Problem is a sentence for the user. Code classifies it in kebab case. Warning may be set together with
	// an answer.
	Problem string
	Code    string
	Warning string
}

// Image is an AMI.
type Image struct {
	ID           string
	Name         string
	Architecture string // x86_64 or arm64
	// RootDevice is the device name of the root volume. RootSize is its default size in GiB. RootSnapshot is
	// the id of its snapshot, which may be smaller.
	RootDevice   string
	RootSize     int32
	RootSnapshot string
	// CreatedAt is AWS's CreationDate, ISO 8601.
	CreatedAt string
}

// ForeignTemplate is a version of a launch template that weir does not make.
type ForeignTemplate struct {
	ID   string
	Name string
	// Version is the number of the requested version. Latest and Default are the numbers of the aliases.
	Version, Latest, Default int64
	// Data is the version's data without user data. Requirements says that it selects instance types by
	// attributes.
	Data         intent.TemplateData
	Requirements bool
	// Image is the image that Data names, or nil.
	Image *Image
}

// EKSCluster is an EKS cluster from DescribeCluster.
type EKSCluster struct {
	Name                   string
	ARN                    string
	Status                 string
	Version                string // major.minor
	Endpoint               string
	CertificateAuthority   string // base64
	ServiceCIDR            string
	VPCID                  string
	SubnetIDs              []string
	SecurityGroupIDs       []string
	ClusterSecurityGroupID string
}
