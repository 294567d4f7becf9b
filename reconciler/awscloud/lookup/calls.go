package lookup

import (
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
)

// EC2Calls contains the calls of EC2.
type EC2Calls struct {
	DescribeImages                 sdk.Call[ec2.DescribeImagesInput, ec2.DescribeImagesOutput, ec2.Options]
	DescribeInstanceTypes          sdk.Call[ec2.DescribeInstanceTypesInput, ec2.DescribeInstanceTypesOutput, ec2.Options]
	DescribeLaunchTemplateVersions sdk.Call[ec2.DescribeLaunchTemplateVersionsInput, ec2.DescribeLaunchTemplateVersionsOutput, ec2.Options]
	DescribeSecurityGroups         sdk.Call[ec2.DescribeSecurityGroupsInput, ec2.DescribeSecurityGroupsOutput, ec2.Options]
	DescribeSubnets                sdk.Call[ec2.DescribeSubnetsInput, ec2.DescribeSubnetsOutput, ec2.Options]
	DescribeVpcs                   sdk.Call[ec2.DescribeVpcsInput, ec2.DescribeVpcsOutput, ec2.Options]
}

// OfEC2 returns the calls of a client.
func OfEC2(c *ec2.Client) EC2Calls {
	return EC2Calls{
		DescribeImages: c.DescribeImages, DescribeInstanceTypes: c.DescribeInstanceTypes, DescribeLaunchTemplateVersions: c.DescribeLaunchTemplateVersions,
		DescribeSecurityGroups: c.DescribeSecurityGroups, DescribeSubnets: c.DescribeSubnets, DescribeVpcs: c.DescribeVpcs,
	}
}

// EKSCalls contains the calls of EKS.
type EKSCalls struct {
	DescribeCluster sdk.Call[eks.DescribeClusterInput, eks.DescribeClusterOutput, eks.Options]
}

// OfEKS returns the calls of a client.
func OfEKS(c *eks.Client) EKSCalls {
	return EKSCalls{
		DescribeCluster: c.DescribeCluster,
	}
}

// IAMCalls contains the calls of IAM.
type IAMCalls struct {
	GetRole                  sdk.Call[iam.GetRoleInput, iam.GetRoleOutput, iam.Options]
	ListAttachedRolePolicies sdk.Call[iam.ListAttachedRolePoliciesInput, iam.ListAttachedRolePoliciesOutput, iam.Options]
}

// OfIAM returns the calls of a client.
func OfIAM(c *iam.Client) IAMCalls {
	return IAMCalls{
		GetRole: c.GetRole, ListAttachedRolePolicies: c.ListAttachedRolePolicies,
	}
}

// SSMCalls contains the calls of Systems Manager.
type SSMCalls struct {
	AddTagsToResource   sdk.Call[ssm.AddTagsToResourceInput, ssm.AddTagsToResourceOutput, ssm.Options]
	DeleteParameter     sdk.Call[ssm.DeleteParameterInput, ssm.DeleteParameterOutput, ssm.Options]
	DescribeParameters  sdk.Call[ssm.DescribeParametersInput, ssm.DescribeParametersOutput, ssm.Options]
	GetParameters       sdk.Call[ssm.GetParametersInput, ssm.GetParametersOutput, ssm.Options]
	ListTagsForResource sdk.Call[ssm.ListTagsForResourceInput, ssm.ListTagsForResourceOutput, ssm.Options]
	PutParameter        sdk.Call[ssm.PutParameterInput, ssm.PutParameterOutput, ssm.Options]
}

// OfSSM returns the calls of a client.
func OfSSM(c *ssm.Client) SSMCalls {
	return SSMCalls{
		AddTagsToResource: c.AddTagsToResource, DeleteParameter: c.DeleteParameter, DescribeParameters: c.DescribeParameters, GetParameters: c.GetParameters,
		ListTagsForResource: c.ListTagsForResource, PutParameter: c.PutParameter,
	}
}
