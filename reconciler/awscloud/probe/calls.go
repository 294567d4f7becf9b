package probe

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
)

// Operations are held as functions, for the reason that package lookup gives.

// EC2Calls are the calls of EC2.
type EC2Calls struct {
	DescribeCapacityReservations  func(context.Context, *ec2.DescribeCapacityReservationsInput, ...func(*ec2.Options)) (*ec2.DescribeCapacityReservationsOutput, error)
	DescribeImages                func(context.Context, *ec2.DescribeImagesInput, ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error)
	DescribeInstanceTypeOfferings func(context.Context, *ec2.DescribeInstanceTypeOfferingsInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceTypeOfferingsOutput, error)
	DescribeInstanceTypes         func(context.Context, *ec2.DescribeInstanceTypesInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error)
	DescribeInstances             func(context.Context, *ec2.DescribeInstancesInput, ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)
	DescribeKeyPairs              func(context.Context, *ec2.DescribeKeyPairsInput, ...func(*ec2.Options)) (*ec2.DescribeKeyPairsOutput, error)
	DescribeSnapshots             func(context.Context, *ec2.DescribeSnapshotsInput, ...func(*ec2.Options)) (*ec2.DescribeSnapshotsOutput, error)
	DescribePlacementGroups       func(context.Context, *ec2.DescribePlacementGroupsInput, ...func(*ec2.Options)) (*ec2.DescribePlacementGroupsOutput, error)
	DescribeSecurityGroups        func(context.Context, *ec2.DescribeSecurityGroupsInput, ...func(*ec2.Options)) (*ec2.DescribeSecurityGroupsOutput, error)
	DescribeSubnets               func(context.Context, *ec2.DescribeSubnetsInput, ...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error)
	RunInstances                  func(context.Context, *ec2.RunInstancesInput, ...func(*ec2.Options)) (*ec2.RunInstancesOutput, error)
}

// OfEC2 takes them from a client.
func OfEC2(c *ec2.Client) EC2Calls {
	return EC2Calls{
		DescribeCapacityReservations:  c.DescribeCapacityReservations,
		DescribeImages:                c.DescribeImages,
		DescribeInstanceTypeOfferings: c.DescribeInstanceTypeOfferings,
		DescribeInstanceTypes:         c.DescribeInstanceTypes,
		DescribeInstances:             c.DescribeInstances,
		DescribeKeyPairs:              c.DescribeKeyPairs,
		DescribeSnapshots:             c.DescribeSnapshots,
		DescribePlacementGroups:       c.DescribePlacementGroups,
		DescribeSecurityGroups:        c.DescribeSecurityGroups,
		DescribeSubnets:               c.DescribeSubnets,
		RunInstances:                  c.RunInstances,
	}
}

// IAMCalls are those of IAM.
type IAMCalls struct {
	GetInstanceProfile func(context.Context, *iam.GetInstanceProfileInput, ...func(*iam.Options)) (*iam.GetInstanceProfileOutput, error)
}

// OfIAM takes them from a client.
func OfIAM(c *iam.Client) IAMCalls { return IAMCalls{GetInstanceProfile: c.GetInstanceProfile} }

// KMSCalls are those of KMS.
type KMSCalls struct {
	DescribeKey func(context.Context, *kms.DescribeKeyInput, ...func(*kms.Options)) (*kms.DescribeKeyOutput, error)
}

// OfKMS takes them from a client.
func OfKMS(c *kms.Client) KMSCalls { return KMSCalls{DescribeKey: c.DescribeKey} }

// ElasticLoadBalancingCalls are those of Elastic Load Balancing.
type ElasticLoadBalancingCalls struct {
	DescribeTargetGroups func(context.Context, *elb.DescribeTargetGroupsInput, ...func(*elb.Options)) (*elb.DescribeTargetGroupsOutput, error)
}

// OfElasticLoadBalancing takes them from a client.
func OfElasticLoadBalancing(c *elb.Client) ElasticLoadBalancingCalls {
	return ElasticLoadBalancingCalls{DescribeTargetGroups: c.DescribeTargetGroups}
}

// ServiceQuotasCalls are those of Service Quotas.
type ServiceQuotasCalls struct {
	GetServiceQuota func(context.Context, *servicequotas.GetServiceQuotaInput, ...func(*servicequotas.Options)) (*servicequotas.GetServiceQuotaOutput, error)
}

// OfServiceQuotas takes them from a client.
func OfServiceQuotas(c *servicequotas.Client) ServiceQuotasCalls {
	return ServiceQuotasCalls{GetServiceQuota: c.GetServiceQuota}
}
