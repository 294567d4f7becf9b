package awsemu_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	kmstypes "github.com/aws/aws-sdk-go-v2/service/kms/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// TestAnswersOfTheRest asks for what the other tests of the package do not: start's
// transport holds each answer against AWS's models, and TestMain wants all
// operations to have been there.
func TestAnswersOfTheRest(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.group("web", 1)
	e.advance(time.Minute)
	web := aws.String("web")
	source := []types.TrafficSourceIdentifier{{Identifier: aws.String("classic"), Type: aws.String("elb")}}
	must(e.autoscaling().AttachTrafficSources(ctx, &autoscaling.AttachTrafficSourcesInput{AutoScalingGroupName: web, TrafficSources: source}))(t)
	if out := must(e.autoscaling().DescribeTrafficSources(ctx, &autoscaling.DescribeTrafficSourcesInput{AutoScalingGroupName: web}))(t); len(out.TrafficSources) != 1 {
		t.Errorf("traffic sources = %+v", out.TrafficSources)
	}
	must(e.autoscaling().DetachTrafficSources(ctx, &autoscaling.DetachTrafficSourcesInput{AutoScalingGroupName: web, TrafficSources: source}))(t)
	must(e.autoscaling().EnableMetricsCollection(ctx, &autoscaling.EnableMetricsCollectionInput{AutoScalingGroupName: web, Granularity: aws.String("1Minute")}))(t)
	must(e.autoscaling().DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{}))(t)
	must(e.autoscaling().DisableMetricsCollection(ctx, &autoscaling.DisableMetricsCollectionInput{AutoScalingGroupName: web}))(t)
	must(e.ec2().DescribeTags(ctx, &ec2.DescribeTagsInput{}))(t)

	keys := kms.NewFromConfig(e.cfg)
	key := must(keys.CreateKey(ctx, &kms.CreateKeyInput{}))(t).KeyMetadata.KeyId
	must(keys.CreateAlias(ctx, &kms.CreateAliasInput{AliasName: aws.String("alias/a"), TargetKeyId: key}))(t)
	must(keys.DisableKey(ctx, &kms.DisableKeyInput{KeyId: key}))(t)
	must(keys.EnableKey(ctx, &kms.EnableKeyInput{KeyId: key}))(t)
	must(keys.DescribeKey(ctx, &kms.DescribeKeyInput{KeyId: key}))(t)
	must(keys.GenerateDataKey(ctx, &kms.GenerateDataKeyInput{KeyId: key, KeySpec: kmstypes.DataKeySpecAes256}))(t)
	secret := must(keys.Encrypt(ctx, &kms.EncryptInput{KeyId: key, Plaintext: []byte("plain")}))(t).CiphertextBlob
	must(keys.Decrypt(ctx, &kms.DecryptInput{CiphertextBlob: secret}))(t)

	name := aws.String("/weir/token")
	must(e.ssm().PutParameter(ctx, &ssm.PutParameterInput{Name: name, Value: aws.String("v"), Type: ssmtypes.ParameterTypeSecureString}))(t)
	must(e.ssm().AddTagsToResource(ctx, &ssm.AddTagsToResourceInput{ResourceType: "Parameter", ResourceId: name, Tags: []ssmtypes.Tag{{Key: aws.String("a"), Value: aws.String("b")}}}))(t)
	must(e.ssm().ListTagsForResource(ctx, &ssm.ListTagsForResourceInput{ResourceType: "Parameter", ResourceId: name}))(t)
	must(e.ssm().DescribeParameters(ctx, &ssm.DescribeParametersInput{}))(t)
	must(e.ssm().DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: name}))(t)
}
