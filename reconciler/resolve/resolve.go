// Package resolve answers lookups, which only AWS can answer: which image, which subnets and security
// groups, which cluster endpoint, which role. It answers all lookups of an account and region
// together, in rounds. Each round finds out which facts are missing, and reads them in batches. Facts
// are cached for a time that depends on their kind.
//
// If a thing does not exist, or weir is not permitted to read it, the observed.Answer has a Problem.
// The answer is never a default. A failure that may pass by itself (throttling, a lost connection)
// fails the whole call, so that no plan uses half of the facts.
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

// Request is one lookup with everything that its answer depends on.
type Request struct {
	Lookup intent.Lookup
	// Cluster is the pool's cluster. It has only its names if the render does not contain it.
	Cluster intent.Cluster
	Network Network
	// Image is the id of an image that a person reviewed. The answer is this image if the lookup can
	// still result in it.
	Image string
	// Since is the minimum time of the facts. A reviewed plan used facts of that time.
	Since time.Time
}

// Image is an AMI from DescribeImages.
type Image struct {
	observed.Image
	// Owner is the id of the owning account.
	Owner string
	// DeprecatedAt is the deprecation time in ISO 8601. It is empty if the image is never deprecated.
	DeprecatedAt string
	// State is "available" for an image that can be launched.
	State string
}

// ImageQuery selects images either by IDs, or by Owner, the pattern Name and Architecture.
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
	// MapPublicIP says that new instances get a public address.
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
	// Latest and Default are version numbers.
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
	// Boundary is the ARN of the permissions boundary, or empty.
	Boundary string
}

// Cloud reads facts of one account and region. A result leaves out things that do not exist, without
// an error. Every error is a *observed.Error.
type Cloud interface {
	// Parameters reads SSM parameters by name.
	Parameters(ctx context.Context, names []string) (map[string]string, error)
	Images(ctx context.Context, q ImageQuery) ([]Image, error)
	// Architectures returns the architectures of instance types, in AWS's order.
	Architectures(ctx context.Context, instanceTypes []string) (map[string][]string, error)
	// TemplatesByName and TemplatesByID read launch templates of any owner.
	TemplatesByName(ctx context.Context, names []string) ([]Template, error)
	TemplatesByID(ctx context.Context, ids []string) ([]Template, error)
	// TemplateVersion reads a version of a launch template.
	TemplateVersion(ctx context.Context, id string, number int64) (v TemplateVersion, found bool, err error)
	// CommonTemplateVersions reads the newest and the default versions of all templates of the
	// account, in at most that many calls, and returns the wanted ones among them. wanted has
	// numbers by the templates' ids. The result may leave out any version.
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

// The times for which facts are cached. The fact that something does not exist, or that weir is not
// permitted to read it, is cached for at most negativeTTL.
const (
	negativeTTL     = 30 * time.Second
	movingImageTTL  = 10 * time.Minute // for parameters and name patterns: the newest image changes
	imageTTL        = 24 * time.Hour   // the properties of an image do not change
	instanceTypeTTL = 24 * time.Hour
	groupTTL        = 24 * time.Hour // a security group stays in its VPC
	networkTTL      = 5 * time.Minute
	clusterTTL      = time.Minute
	passingTTL      = 5 * time.Second // for clusters that AWS is creating or changing
	roleTTL         = time.Hour
	rolePolicyTTL   = 10 * time.Minute // people attach a missing policy and expect the warning to end
	templateTTL     = time.Minute      // other tools make new versions
	versionTTL      = time.Hour        // a version never changes, but may be deleted
)
