package lookup

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
)

// Operations are held as functions and not as the SDK's clients: a client that is part of
// a value's type keeps all of its several hundred operations in the binary, 40 MB of them.

// EC2Calls are the calls of EC2 that lookups make.
type EC2Calls struct {
	DescribeImages                 func(context.Context, *ec2.DescribeImagesInput, ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error)
	DescribeInstanceTypes          func(context.Context, *ec2.DescribeInstanceTypesInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error)
	DescribeLaunchTemplateVersions func(context.Context, *ec2.DescribeLaunchTemplateVersionsInput, ...func(*ec2.Options)) (*ec2.DescribeLaunchTemplateVersionsOutput, error)
	DescribeSecurityGroups         func(context.Context, *ec2.DescribeSecurityGroupsInput, ...func(*ec2.Options)) (*ec2.DescribeSecurityGroupsOutput, error)
	DescribeSubnets                func(context.Context, *ec2.DescribeSubnetsInput, ...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error)
	DescribeVpcs                   func(context.Context, *ec2.DescribeVpcsInput, ...func(*ec2.Options)) (*ec2.DescribeVpcsOutput, error)
}

// OfEC2 takes them from a client.
func OfEC2(c *ec2.Client) EC2Calls {
	return EC2Calls{
		DescribeImages:                 c.DescribeImages,
		DescribeInstanceTypes:          c.DescribeInstanceTypes,
		DescribeLaunchTemplateVersions: c.DescribeLaunchTemplateVersions,
		DescribeSecurityGroups:         c.DescribeSecurityGroups,
		DescribeSubnets:                c.DescribeSubnets,
		DescribeVpcs:                   c.DescribeVpcs,
	}
}

// EKSCalls are those of EKS.
type EKSCalls struct {
	DescribeCluster func(context.Context, *eks.DescribeClusterInput, ...func(*eks.Options)) (*eks.DescribeClusterOutput, error)
}

// OfEKS takes them from a client.
func OfEKS(c *eks.Client) EKSCalls {
	return EKSCalls{
		DescribeCluster: c.DescribeCluster,
	}
}

// IAMCalls are those of IAM.
type IAMCalls struct {
	GetRole                  func(context.Context, *iam.GetRoleInput, ...func(*iam.Options)) (*iam.GetRoleOutput, error)
	ListAttachedRolePolicies func(context.Context, *iam.ListAttachedRolePoliciesInput, ...func(*iam.Options)) (*iam.ListAttachedRolePoliciesOutput, error)
}

// OfIAM takes them from a client.
func OfIAM(c *iam.Client) IAMCalls {
	return IAMCalls{
		GetRole:                  c.GetRole,
		ListAttachedRolePolicies: c.ListAttachedRolePolicies,
	}
}

// SSMCalls are those of Systems Manager.
type SSMCalls struct {
	AddTagsToResource   func(context.Context, *ssm.AddTagsToResourceInput, ...func(*ssm.Options)) (*ssm.AddTagsToResourceOutput, error)
	DeleteParameter     func(context.Context, *ssm.DeleteParameterInput, ...func(*ssm.Options)) (*ssm.DeleteParameterOutput, error)
	DescribeParameters  func(context.Context, *ssm.DescribeParametersInput, ...func(*ssm.Options)) (*ssm.DescribeParametersOutput, error)
	GetParameters       func(context.Context, *ssm.GetParametersInput, ...func(*ssm.Options)) (*ssm.GetParametersOutput, error)
	ListTagsForResource func(context.Context, *ssm.ListTagsForResourceInput, ...func(*ssm.Options)) (*ssm.ListTagsForResourceOutput, error)
	PutParameter        func(context.Context, *ssm.PutParameterInput, ...func(*ssm.Options)) (*ssm.PutParameterOutput, error)
}

// OfSSM takes them from a client.
func OfSSM(c *ssm.Client) SSMCalls {
	return SSMCalls{
		AddTagsToResource:   c.AddTagsToResource,
		DeleteParameter:     c.DeleteParameter,
		DescribeParameters:  c.DescribeParameters,
		GetParameters:       c.GetParameters,
		ListTagsForResource: c.ListTagsForResource,
		PutParameter:        c.PutParameter,
	}
}
