// Package resolve answers what only AWS can answer: which image, which subnets
// and security groups, which cluster endpoint, which role. All questions of an
// account and region are answered together: each round works out from the facts
// at hand which facts are still missing, and reads those in batches. Facts are
// kept for a time that depends on their kind.
//
// A question that AWS does not answer, because the thing does not exist or
// because weir may not look, becomes a observed.Answer with a Problem. It never
// becomes a default. A failure that may pass by itself (throttling, a lost
// connection) fails the whole call instead, so that nothing is planned from
// half of the facts.
package resolve

import (
	"context"
	"time"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// Network is a target's configured network.
type Network struct {
	VPCID            string
	SubnetIDs        []string
	SecurityGroupIDs []string
}

// Request is one question with what its answer depends on.
type Request struct {
	Lookup intent.Lookup
	// Cluster is the pool's cluster; where the render does not hold it, one
	// with only its names.
	Cluster intent.Cluster
	Network Network
	// Image asks whether the image with this id still answers an image lookup, as it
	// did when a person reviewed it.
	Image string
	// Since is the minimum time of the answer: a reviewed plan has seen an answer of that time.
	Since time.Time
}

// Image is an AMI from DescribeImages.
type Image struct {
	observed.Image
	// Owner is the account that it belongs to.
	Owner string
	// DeprecatedAt is the time when its maker withdraws it, ISO 8601; empty for never.
	DeprecatedAt string
	// State is "available" for an image that can be launched.
	State string
}

// ImageQuery selects images: either those of IDs, or those of Owner whose name matches the pattern
// Name and which have Architecture.
type ImageQuery struct {
	IDs          []string
	Owner        string
	Name         string
	Architecture string
}

// VPC is a virtual private cloud.
type VPC struct {
	ID      string
	Default bool
}

// Subnet is a subnet from DescribeSubnets.
type Subnet struct {
	ID    string
	VPCID string
	Zone  string
	// MapPublicIP says that launches get a public address.
	MapPublicIP bool
	Tags        map[string]string
}

// SecurityGroup is a security group from DescribeSecurityGroups.
type SecurityGroup struct {
	ID    string
	Name  string
	VPCID string
	Tags  map[string]string
}

// Template is a launch template from DescribeLaunchTemplates.
type Template struct {
	ID, Name string
	// Latest and Default are the numbers of those versions.
	Latest, Default int64
}

// TemplateVersion is one version of a launch template.
type TemplateVersion struct {
	// Data is the version's data, without user data, which may be secret.
	Data intent.TemplateData
	// Requirements says that instance types are named by their attributes.
	Requirements bool
}

// Role is an IAM role.
type Role struct {
	ARN, Path string
	// Boundary is the ARN of its permissions boundary, empty for none.
	Boundary string
}

// Cloud reads facts of one account and region. The result leaves out what does not
// exist; that is no error. An error is a *observed.Error.
type Cloud interface {
	// Parameters reads SSM parameters by name.
	Parameters(ctx context.Context, names []string) (map[string]string, error)
	Images(ctx context.Context, q ImageQuery) ([]Image, error)
	// Architectures reads which architectures instance types have, in AWS's order.
	Architectures(ctx context.Context, instanceTypes []string) (map[string][]string, error)
	// TemplatesByName and TemplatesByID read launch templates of any owner.
	TemplatesByName(ctx context.Context, names []string) ([]Template, error)
	TemplatesByID(ctx context.Context, ids []string) ([]Template, error)
	// TemplateVersion reads a version of a launch template.
	TemplateVersion(ctx context.Context, id string, number int64) (v TemplateVersion, found bool, err error)
	// CommonTemplateVersions reads those of the wanted versions, numbers by the templates'
	// ids, that are the newest or the default one of their template: with all others of
	// the account, in at most as many calls. It may leave out any.
	CommonTemplateVersions(ctx context.Context, wanted map[string][]int64, calls int) (map[string]map[int64]TemplateVersion, error)
	VPCs(ctx context.Context) ([]VPC, error)
	// Subnets and SecurityGroups match EC2 filters: all filters, any value.
	Subnets(ctx context.Context, filters []intent.Filter) ([]Subnet, error)
	SecurityGroups(ctx context.Context, filters []intent.Filter) ([]SecurityGroup, error)
	// Cluster describes an EKS cluster; found is false for none.
	Cluster(ctx context.Context, name string) (c observed.EKSCluster, found bool, err error)
	Role(ctx context.Context, name string) (r Role, found bool, err error)
	// RolePolicies returns the ARNs of the policies that are attached to an IAM role.
	RolePolicies(ctx context.Context, name string) (arns []string, found bool, err error)
}

// How long facts are kept. A fact that something does not exist, or that weir
// may not look, is kept for negativeTTL whatever its kind.
const (
	negativeTTL     = 30 * time.Second
	movingImageTTL  = 10 * time.Minute // parameters and name patterns: the newest one changes
	imageTTL        = 24 * time.Hour   // an image's own properties do not
	instanceTypeTTL = 24 * time.Hour
	groupTTL        = 24 * time.Hour // a security group stays in its VPC
	networkTTL      = 5 * time.Minute
	clusterTTL      = time.Minute
	passingTTL      = 5 * time.Second // what is being made is read again soon
	roleTTL         = time.Hour
	rolePolicyTTL   = 10 * time.Minute // people attach what a warning names, and look again
	templateTTL     = time.Minute      // another makes its versions
	versionTTL      = time.Hour        // a version never changes, but may be deleted
)
