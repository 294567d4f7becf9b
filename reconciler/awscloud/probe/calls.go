package probe

import (
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
)

// EC2Calls contains the calls of EC2.
type EC2Calls struct {
	DescribeCapacityReservations  sdk.Call[ec2.DescribeCapacityReservationsInput, ec2.DescribeCapacityReservationsOutput, ec2.Options]
	DescribeImages                sdk.Call[ec2.DescribeImagesInput, ec2.DescribeImagesOutput, ec2.Options]
	DescribeInstanceTypeOfferings sdk.Call[ec2.DescribeInstanceTypeOfferingsInput, ec2.DescribeInstanceTypeOfferingsOutput, ec2.Options]
	DescribeInstanceTypes         sdk.Call[ec2.DescribeInstanceTypesInput, ec2.DescribeInstanceTypesOutput, ec2.Options]
	DescribeInstances             sdk.Call[ec2.DescribeInstancesInput, ec2.DescribeInstancesOutput, ec2.Options]
	DescribeKeyPairs              sdk.Call[ec2.DescribeKeyPairsInput, ec2.DescribeKeyPairsOutput, ec2.Options]
	DescribeSnapshots             sdk.Call[ec2.DescribeSnapshotsInput, ec2.DescribeSnapshotsOutput, ec2.Options]
	DescribePlacementGroups       sdk.Call[ec2.DescribePlacementGroupsInput, ec2.DescribePlacementGroupsOutput, ec2.Options]
	DescribeSecurityGroups        sdk.Call[ec2.DescribeSecurityGroupsInput, ec2.DescribeSecurityGroupsOutput, ec2.Options]
	DescribeSubnets               sdk.Call[ec2.DescribeSubnetsInput, ec2.DescribeSubnetsOutput, ec2.Options]
	RunInstances                  sdk.Call[ec2.RunInstancesInput, ec2.RunInstancesOutput, ec2.Options]
}

// OfEC2 returns the calls of a client.
func OfEC2(c *ec2.Client) EC2Calls {
	return EC2Calls{
		DescribeCapacityReservations: c.DescribeCapacityReservations, DescribeImages: c.DescribeImages,
		DescribeInstanceTypeOfferings: c.DescribeInstanceTypeOfferings, DescribeInstanceTypes: c.DescribeInstanceTypes,
		DescribeInstances: c.DescribeInstances, DescribeKeyPairs: c.DescribeKeyPairs, DescribeSnapshots: c.DescribeSnapshots,
		DescribePlacementGroups: c.DescribePlacementGroups, DescribeSecurityGroups: c.DescribeSecurityGroups, DescribeSubnets: c.DescribeSubnets,
		RunInstances: c.RunInstances,
	}
}

// IAMCalls contains the calls of IAM.
type IAMCalls struct {
	GetInstanceProfile sdk.Call[iam.GetInstanceProfileInput, iam.GetInstanceProfileOutput, iam.Options]
}

// OfIAM returns the calls of a client.
func OfIAM(c *iam.Client) IAMCalls { return IAMCalls{GetInstanceProfile: c.GetInstanceProfile} }

// KMSCalls contains the calls of KMS.
type KMSCalls struct {
	DescribeKey sdk.Call[kms.DescribeKeyInput, kms.DescribeKeyOutput, kms.Options]
}

// OfKMS returns the calls of a client.
func OfKMS(c *kms.Client) KMSCalls { return KMSCalls{DescribeKey: c.DescribeKey} }

// ElasticLoadBalancingCalls contains the calls of Elastic Load Balancing.
type ElasticLoadBalancingCalls struct {
	DescribeTargetGroups sdk.Call[elb.DescribeTargetGroupsInput, elb.DescribeTargetGroupsOutput, elb.Options]
}

// OfElasticLoadBalancing returns the calls of a client.
func OfElasticLoadBalancing(c *elb.Client) ElasticLoadBalancingCalls {
	return ElasticLoadBalancingCalls{DescribeTargetGroups: c.DescribeTargetGroups}
}

// ServiceQuotasCalls contains the calls of Service Quotas.
type ServiceQuotasCalls struct {
	GetServiceQuota sdk.Call[servicequotas.GetServiceQuotaInput, servicequotas.GetServiceQuotaOutput, servicequotas.Options]
}

// OfServiceQuotas returns the calls of a client.
func OfServiceQuotas(c *servicequotas.Client) ServiceQuotasCalls {
	return ServiceQuotasCalls{GetServiceQuota: c.GetServiceQuota}
}
