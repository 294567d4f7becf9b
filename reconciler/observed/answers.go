package observed

import (
	"github.com/weir-gitops/weir/render/intent"
)

// Answers holds what AWS answered to the lookups of the intents. A lookup that
// is not in it was not answered; it blocks its pool and never becomes a default.
type Answers map[intent.Lookup]Answer

// Answer is the answer to one lookup. Exactly the member that the lookup's kind
// asks for is set, or Problem says why no answer exists.
type Answer struct {
	Image          *Image
	Subnets        []string // sorted ids
	SecurityGroups []string // sorted ids
	Cluster        *EKSCluster
	Template       *ForeignTemplate
	RoleARN        string
	// Release is that of a nodegroup's images, such as 1.34.1-20251120.
	Release string
	// No manifest names discovered subnets: a pool that has some keeps them, whatever
	// appears in the network later.
	Discovered bool
	// VPCs are those of the subnets or security groups, sorted, as far as they are
	// known.
	VPCs []string
	// Lapsed are the subnets of the default VPC where that was the answer until the
	// region got another VPC: there is a Problem then, and beside it the answer of
	// old, which stays that of a pool whose machines are in these subnets.
	Lapsed []string
	// Problem is a sentence for the user; Code classifies it in kebab case.
	// Warning is said although there is an answer.
	Problem string
	Code    string
	Warning string
}

// Image is an AMI.
type Image struct {
	ID           string
	Name         string
	Architecture string // x86_64 or arm64
	// RootDevice is the device name of the root volume. RootSize is its size in GiB where a
	// launch says none, and RootSnapshot the id of its snapshot, which may be smaller.
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
	// Version is the number of the version that was asked for, Latest and Default
	// those that the aliases mean.
	Version, Latest, Default int64
	// Data is the version's data, without user data. Requirements says that it names
	// instance types by their attributes.
	Data         intent.TemplateData
	Requirements bool
	// Image is the image that Data names; nil if it names none.
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
