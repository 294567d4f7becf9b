package doctor

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// apply makes, rolls and deletes resources.
func (v *visit) apply(ctx context.Context) {
	defer func() {
		what := "deleting what this visit created"
		if ctx.Err() != nil {
			what = "interrupted: " + what + "; if you interrupt that too, delete the rest with --clean --visit " + v.Number
		}
		v.Progress(what)
		clean, before := context.WithoutCancel(ctx), len(v.left)
		cleaner{v}.run(clean)
		if v.Wait(clean, settling) == nil {
			v.left = v.left[:before]
			cleaner{v}.run(clean)
		}
	}()
	v.Progress("this is visit " + v.Number)
	image, subnet, err := v.findImageAndSubnet(ctx)
	if err != nil {
		for _, a := range assumptions {
			if a.needs == applies && v.notes.found[a.name] == nil {
				v.notes.note(a.name, NotSeen, "%s", err.Error())
			}
		}
		return
	}
	if t := v.template(ctx, image); t != "" && ctx.Err() == nil {
		v.dryRuns(ctx, t, subnet)
		groupChecks{v}.run(ctx, t, subnet)
		if ctx.Err() == nil {
			v.tokenAgain(ctx, t)
		}
	}
	if v.Cluster != "" && ctx.Err() == nil {
		nodegroupChecks{v}.run(ctx)
	}
}

// name returns a name that no other visit uses.
func (v *visit) name(suffix string) string { return Prefix + v.Number + "-" + suffix }

// findImageAndSubnet finds an image and a subnet for the machines.
func (v *visit) findImageAndSubnet(ctx context.Context) (image, subnet string, err error) {
	machine, err := v.calls.instanceTypes(ctx, &ec2.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{types.InstanceType(v.InstanceType)}})
	if err != nil {
		return "", "", sdk.AsError("ec2", "DescribeInstanceTypes", err)
	}
	architecture := "x86_64"
	for _, t := range machine.InstanceTypes {
		if p := t.ProcessorInfo; p != nil && len(p.SupportedArchitectures) == 1 && p.SupportedArchitectures[0] == types.ArchitectureTypeArm64 {
			architecture = "arm64"
		}
	}
	parameter := "/aws/service/ami-amazon-linux-latest/al2023-ami-kernel-default-" + architecture
	found, err := v.calls.parameters(ctx, &ssm.GetParametersInput{Names: []string{parameter}})
	if err != nil {
		return "", "", sdk.AsError("ssm", "GetParameters", err)
	}
	if len(found.Parameters) != 1 {
		return "", "", fmt.Errorf("the region has no parameter %s, so there is no image for the machines", parameter)
	}
	image = aws.ToString(found.Parameters[0].Value)
	if v.Subnet != "" {
		return image, v.Subnet, nil
	}
	out, err := v.calls.subnets(ctx, &ec2.DescribeSubnetsInput{Filters: []types.Filter{{Name: aws.String("default-for-az"), Values: []string{"true"}}}})
	if err != nil {
		return "", "", sdk.AsError("ec2", "DescribeSubnets", err)
	}
	if len(out.Subnets) == 0 {
		return "", "", errors.New("the region has no default subnet: name one with --subnet")
	}
	return image, aws.ToString(out.Subnets[0].SubnetId), nil
}

// tags returns the tags of everything that a visit makes.
func (v *visit) tags() map[string]string {
	return map[string]string{Tag: v.Number, observed.TagOwner: Instance}
}

func (v *visit) ec2Tags() (out []types.Tag) {
	for k, value := range v.tags() {
		out = append(out, types.Tag{Key: aws.String(k), Value: aws.String(value)})
	}
	return out
}

// template makes a launch template with two versions, the first as the default. It returns the
// template's id, empty if the creation failed.
func (v *visit) template(ctx context.Context, image string) string {
	v.Progress("making a launch template")
	out, err := v.calls.createTemplate(ctx, &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String(v.name("template")), ClientToken: aws.String(v.name("template")),
		LaunchTemplateData: v.data(image),
		TagSpecifications:  []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate, Tags: v.ec2Tags()}},
	})
	if v.notes.refused("version-tokens", "ec2", "CreateLaunchTemplate", err) || out.LaunchTemplate == nil {
		return ""
	}
	id := aws.ToString(out.LaunchTemplate.LaunchTemplateId)
	if _, err := v.version(ctx, id, "two", nil); v.notes.refused("version-tokens", "ec2", "CreateLaunchTemplateVersion", err) {
		return id
	}
	v.tokenAgain(ctx, id)
	v.descriptions(ctx, id)
	v.aliases(ctx)
	return id
}

// data returns a machine that nothing can reach and that shows no tags in its metadata, whatever the
// account's defaults are.
func (v *visit) data(image string) *types.RequestLaunchTemplateData {
	return &types.RequestLaunchTemplateData{
		ImageId: aws.String(image), InstanceType: types.InstanceType(v.InstanceType),
		MetadataOptions: &types.LaunchTemplateInstanceMetadataOptionsRequest{HttpTokens: types.LaunchTemplateHttpTokensStateRequired, InstanceMetadataTags: types.LaunchTemplateInstanceMetadataTagsStateDisabled},
	}
}

// version makes a version after the first. Its token combines the visit and the suffix.
func (v *visit) version(ctx context.Context, template, suffix string, change *types.RequestLaunchTemplateData) (int64, error) {
	if change == nil { // EC2 requires some content
		change = &types.RequestLaunchTemplateData{InstanceType: types.InstanceType(v.InstanceType)}
	}
	out, err := v.calls.createVersion(ctx, &ec2.CreateLaunchTemplateVersionInput{
		LaunchTemplateId: aws.String(template), SourceVersion: aws.String("1"), ClientToken: aws.String(v.name(suffix)),
		VersionDescription: aws.String(suffix), LaunchTemplateData: change,
	})
	if err != nil || out.LaunchTemplateVersion == nil {
		return 0, err
	}
	return aws.ToInt64(out.LaunchTemplateVersion.VersionNumber), nil
}

// tokenAgain requests the second version with the token that made it.
func (v *visit) tokenAgain(ctx context.Context, template string) {
	n, err := v.version(ctx, template, "two", nil)
	if e := sdk.Classify("ec2", "CreateLaunchTemplateVersion", err); e != nil {
		v.notes.judge("version-tokens", e.Kind == observed.Denied, "the token again: %s", e.Error())
		return
	}
	v.notes.judge("version-tokens", n == 2, "the token that made version 2 was answered with version %d", n)
}

// descriptions tries two descriptions with characters of two UTF-16 units each: one at the limit, and one
// beyond.
func (v *visit) descriptions(ctx context.Context, template string) {
	const name, limit = "description-units", 255
	for _, length := range []int{limit / 2, limit/2 + 1} {
		out, err := v.calls.createVersion(ctx, &ec2.CreateLaunchTemplateVersionInput{
			LaunchTemplateId: aws.String(template), SourceVersion: aws.String("1"), LaunchTemplateData: &types.RequestLaunchTemplateData{InstanceType: types.InstanceType(v.InstanceType)},
			VersionDescription: aws.String(strings.Repeat("🌊", length)),
		})
		e := sdk.Classify("ec2", "CreateLaunchTemplateVersion", err)
		switch {
		case e == nil:
			v.notes.judge(name, 2*length <= limit, "a description of %d UTF-16 units is taken", 2*length)
			if out.LaunchTemplateVersion != nil {
				v.dropVersion(ctx, template, aws.ToInt64(out.LaunchTemplateVersion.VersionNumber))
			}
		case e.Kind == observed.Invalid:
			v.notes.judge(name, 2*length > limit, "a description of %d UTF-16 units: %s", 2*length, e.Error())
		default:
			v.notes.note(name, NotSeen, "%s", e.Error())
		}
	}
}

// dryRuns tries a valid launch, and one with an image that does not exist.
func (v *visit) dryRuns(ctx context.Context, template, subnet string) {
	const name, missing = "dry-run-checks", "ami-0123456789abcdef0"
	for _, image := range []string{"", missing} {
		in := &ec2.RunInstancesInput{
			DryRun: aws.Bool(true), MinCount: aws.Int32(1), MaxCount: aws.Int32(1), SubnetId: aws.String(subnet),
			LaunchTemplate: &types.LaunchTemplateSpecification{LaunchTemplateId: aws.String(template), Version: aws.String("1")},
		}
		what, want := "of what is right", "DryRunOperation"
		if image != "" {
			in.ImageId, what, want = aws.String(image), "of an unknown image", "InvalidAMIID.NotFound"
		}
		out, err := v.calls.run(ctx, in)
		var refusal smithy.APIError
		switch {
		case err == nil:
			v.notes.note(name, Differs, "a dry run %s was taken", what)
			for _, machine := range out.Instances {
				v.left = append(v.left, "instance "+aws.ToString(machine.InstanceId)+": a dry run started it")
			}
		case !errors.As(err, &refusal) || refusal.ErrorCode() == "UnauthorizedOperation":
			v.notes.refused(name, "ec2", "RunInstances", err)
		default:
			v.notes.judge(name, refusal.ErrorCode() == want, "a dry run %s: %s: %s", what, refusal.ErrorCode(), refusal.ErrorMessage())
		}
	}
}

// dropVersion deletes a version. It ignores errors, because the final cleanup deletes the template anyway.
func (v *visit) dropVersion(ctx context.Context, template string, n int64) {
	_, _ = v.calls.deleteVersions(ctx, &ec2.DeleteLaunchTemplateVersionsInput{LaunchTemplateId: aws.String(template), Versions: []string{fmt.Sprint(n)}})
}
