package awsemu_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kms"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// TestParameterRefusals wants AWS's own code for what it does not take.
func TestParameterRefusals(t *testing.T) {
	e := start(t, awsemu.Options{})
	put := func(change func(*ssm.PutParameterInput)) error {
		in := &ssm.PutParameterInput{Name: aws.String("/weir/a"), Value: aws.String("v"), Type: types.ParameterTypeSecureString}
		change(in)
		_, err := e.ssm().PutParameter(ctx, in)
		return err
	}
	name := func(n string) func(*ssm.PutParameterInput) {
		return func(in *ssm.PutParameterInput) { in.Name = &n }
	}
	for what, tc := range map[string]struct {
		change func(*ssm.PutParameterInput)
		want   string
	}{
		"a name of AWS's":    {name("/aws/x"), "ValidationException"},
		"a name of SSM's":    {name("ssmx"), "ValidationException"},
		"a relative path":    {name("weir/a"), "ValidationException"},
		"a space":            {name("/weir/a b"), "ValidationException"},
		"an empty part":      {name("/weir//a"), "ValidationException"},
		"sixteen levels":     {name(strings.Repeat("/a", 16)), "HierarchyLevelLimitExceededException"},
		"no type":            {func(in *ssm.PutParameterInput) { in.Type = "" }, "ValidationException"},
		"another type":       {func(in *ssm.PutParameterInput) { in.Type = "Number" }, "ValidationException"},
		"a long value":       {func(in *ssm.PutParameterInput) { in.Value = aws.String(strings.Repeat("x", 4097)) }, "ValidationException"},
		"a long description": {func(in *ssm.PutParameterInput) { in.Description = aws.String(strings.Repeat("x", 1025)) }, "ValidationException"},
		"a missing key":      {func(in *ssm.PutParameterInput) { in.KeyId = aws.String("alias/none") }, "InvalidKeyId"},
		"a policy":           {func(in *ssm.PutParameterInput) { in.Policies = aws.String("[{}]") }, "ValidationException"},
		"a tag of AWS's": {func(in *ssm.PutParameterInput) {
			in.Tags = []types.Tag{{Key: aws.String("aws:x"), Value: aws.String("")}}
		}, "ValidationException"},
	} {
		t.Run(what, func(t *testing.T) { wantCode(t, put(tc.change), tc.want) })
	}
	out := must(e.ssm().DescribeParameters(ctx, &ssm.DescribeParametersInput{}))(t)
	if len(out.Parameters) != 0 {
		t.Errorf("a refused call made %v", *out.Parameters[0].Name)
	}
	wantCode(t, put(func(*ssm.PutParameterInput) {}), "")
	wantCode(t, put(func(in *ssm.PutParameterInput) { in.Type, in.Overwrite = types.ParameterTypeString, aws.Bool(true) }), "HierarchyTypeMismatchException")
	key := must(kms.NewFromConfig(e.cfg).CreateKey(ctx, &kms.CreateKeyInput{}))(t)
	wantCode(t, put(func(in *ssm.PutParameterInput) { in.KeyId, in.Overwrite = key.KeyMetadata.KeyId, aws.Bool(true) }), "")
	_, err := e.ssm().DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: aws.String("/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-arm64")})
	wantCode(t, err, "ParameterNotFound")
	_, err = e.ssm().DescribeParameters(ctx, &ssm.DescribeParametersInput{MaxResults: aws.Int32(51)})
	wantCode(t, err, "ValidationException")
	_, err = e.ssm().DescribeParameters(ctx, &ssm.DescribeParametersInput{ParameterFilters: []types.ParameterStringFilter{{Key: aws.String("Tier"), Values: []string{"a"}}}})
	wantCode(t, err, "InvalidFilterKey")
}
