// Package awscloud is the reconciler's access to one AWS account and region. Only this package, the packages
// below it and the contract suite use the AWS SDK.
//
// # Packages
//
//   - sdk: how calls are made: configuration and credentials, throttling, retries, bounds,
//     classification of errors, counting. It knows no resources.
//   - read: each read that passes make, with weir's values as results; two page scanners.
//   - convert: conversions between the intent's structs and the SDK's, by field name.
//   - memory: the memory between passes, and its lifetimes.
//   - observe: reads the instance's resources, in batches.
//   - fill: reads the facts that planning found missing.
//   - execute: the steps of a plan, and the read right before a deletion.
//   - doctor: checks weir's assumptions about AWS in an account; no pass calls it.
//   - lookup: answers that only AWS has, for package resolve; parameters, for join tokens.
//   - probe: finds out what AWS would refuse of a plan, for package preflight.
//
// observe, fill and memory do not import the SDK. The remaining packages list the operations that they call in
// structs (calls.go). The IAM policy must allow exactly these operations, and a test compares the
// two.
//
// # Rules
//
// A pass never waits until AWS has finished something: it reads, writes and returns. Reads are batched, so a
// pass over an idle fleet costs a few pages instead of a call for each pool. Every write has the same result
// if it runs twice (see package execute), and weir writes only to resources with this instance's tag. AWS is
// the only record: a memory is a copy that a restart may lose.
package awscloud

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/weir-gitops/weir/reconciler/awscloud/execute"
	"github.com/weir-gitops/weir/reconciler/awscloud/fill"
	"github.com/weir-gitops/weir/reconciler/awscloud/lookup"
	"github.com/weir-gitops/weir/reconciler/awscloud/memory"
	"github.com/weir-gitops/weir/reconciler/awscloud/observe"
	"github.com/weir-gitops/weir/reconciler/awscloud/probe"
	"github.com/weir-gitops/weir/reconciler/awscloud/read"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
)

// Cloud is one account and region. It is safe for concurrent use.
type Cloud struct {
	*sdk.Client
	*observe.Observer
	*fill.Filler
	*execute.Executor
	*lookup.Lookups
	*probe.Prober
	memory *memory.Memory
	reader *read.Reader
}

// Open opens an account and region, like sdk.Open.
func Open(ctx context.Context, o sdk.Options) (*Cloud, error) {
	client, err := sdk.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	var (
		ec2Client         = ec2.NewFromConfig(client.Config, func(o *ec2.Options) { sdk.Reach(&o.BaseEndpoint, client.Endpoint) })
		autoscalingClient = autoscaling.NewFromConfig(client.Config, func(o *autoscaling.Options) { sdk.Reach(&o.BaseEndpoint, client.Endpoint) })
		eksClient         = eks.NewFromConfig(client.Config, func(o *eks.Options) { sdk.Reach(&o.BaseEndpoint, client.Endpoint) })
		cloudwatchClient  = cloudwatch.NewFromConfig(client.Config, func(o *cloudwatch.Options) { sdk.Reach(&o.BaseEndpoint, client.Endpoint) })
		iamClient         = iam.NewFromConfig(client.Config, func(o *iam.Options) { sdk.Reach(&o.BaseEndpoint, client.Endpoint) })
		elbClient         = elb.NewFromConfig(client.Config, func(o *elb.Options) { sdk.Reach(&o.BaseEndpoint, client.Endpoint) })
		kmsClient         = kms.NewFromConfig(client.Config, func(o *kms.Options) { sdk.Reach(&o.BaseEndpoint, client.Endpoint) })
		quotasClient      = servicequotas.NewFromConfig(client.Config, func(o *servicequotas.Options) { sdk.Reach(&o.BaseEndpoint, client.Endpoint) })
		ssmClient         = ssm.NewFromConfig(client.Config, func(o *ssm.Options) { sdk.Reach(&o.BaseEndpoint, client.Endpoint) })
	)
	reader := &read.Reader{EC2: read.OfEC2(ec2Client), AutoScaling: read.OfAutoScaling(autoscalingClient), EKS: read.OfEKS(eksClient), CloudWatch: read.OfCloudWatch(cloudwatchClient), Now: client.Now, Clock: client.Clock}
	remembered := memory.New(client.Now)
	observer := observe.New(client, reader, remembered)
	return &Cloud{
		Client: client, Observer: observer, Filler: fill.New(client, reader, remembered, observer),
		Executor: execute.New(client, reader, remembered, execute.OfEC2(ec2Client), execute.OfAutoScaling(autoscalingClient), execute.OfEKS(eksClient)),
		Lookups:  lookup.New(reader, lookup.OfEC2(ec2Client), lookup.OfEKS(eksClient), lookup.OfIAM(iamClient), lookup.OfSSM(ssmClient)),
		Prober:   probe.New(probe.OfEC2(ec2Client), probe.OfIAM(iamClient), probe.OfKMS(kmsClient), probe.OfElasticLoadBalancing(elbClient), probe.OfServiceQuotas(quotasClient)),
		memory:   remembered,
		reader:   reader,
	}, nil
}
