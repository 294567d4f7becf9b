package awsemu_test

import (
	"encoding/base64"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// newTemplate creates a launch template with small data and tags.
func newTemplate(e *env, name string, tags ...string) *types.LaunchTemplate {
	e.t.Helper()
	in := &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: &name,
		LaunchTemplateData: &types.RequestLaunchTemplateData{InstanceType: types.InstanceTypeM5Large},
	}
	spec := types.TagSpecification{ResourceType: types.ResourceTypeLaunchTemplate}
	for i := 0; i+1 < len(tags); i += 2 {
		spec.Tags = append(spec.Tags, types.Tag{Key: &tags[i], Value: &tags[i+1]})
	}
	if len(spec.Tags) > 0 {
		in.TagSpecifications = []types.TagSpecification{spec}
	}
	return must(e.ec2().CreateLaunchTemplate(ctx, in))(e.t).LaunchTemplate
}

// addVersion adds a version with an instance type.
func addVersion(e *env, id *string, kind types.InstanceType) int64 {
	e.t.Helper()
	out := must(e.ec2().CreateLaunchTemplateVersion(ctx, &ec2.CreateLaunchTemplateVersionInput{
		LaunchTemplateId: id, LaunchTemplateData: &types.RequestLaunchTemplateData{InstanceType: kind},
	}))(e.t)
	return *out.LaunchTemplateVersion.VersionNumber
}

func TestLaunchTemplateVersions(t *testing.T) {
	e := start(t, awsemu.Options{})
	lt := newTemplate(e, "web")
	id := lt.LaunchTemplateId
	for i := 0; i < 4; i++ {
		addVersion(e, id, types.InstanceTypeM5Xlarge)
	}
	del := must(e.ec2().DeleteLaunchTemplateVersions(ctx, &ec2.DeleteLaunchTemplateVersionsInput{
		LaunchTemplateId: id, Versions: []string{"1", "3", "5", "9"},
	}))(t)
	var gone []int64
	for _, v := range del.SuccessfullyDeletedLaunchTemplateVersions {
		gone = append(gone, *v.VersionNumber)
	}
	refused := map[int64]types.LaunchTemplateErrorCode{}
	for _, v := range del.UnsuccessfullyDeletedLaunchTemplateVersions {
		refused[*v.VersionNumber] = v.ResponseError.Code
	}
	if diff := cmp.Diff([]int64{3, 5}, gone); diff != "" {
		t.Errorf("deleted (-want +got):\n%s", diff)
	}
	want := map[int64]types.LaunchTemplateErrorCode{
		1: types.LaunchTemplateErrorCodeUnexpectedError,
		9: types.LaunchTemplateErrorCodeLaunchTemplateVersionDoesNotExist,
	}
	if diff := cmp.Diff(want, refused); diff != "" {
		t.Errorf("refused (-want +got):\n%s", diff)
	}
	if n := addVersion(e, id, types.InstanceTypeM5Large); n != 6 {
		t.Errorf("version after deletes = %d, want 6: numbers are not used again", n)
	}
	must(e.ec2().ModifyLaunchTemplate(ctx, &ec2.ModifyLaunchTemplateInput{LaunchTemplateId: id, DefaultVersion: aws.String("4")}))(t)

	tests := []struct {
		name string
		in   ec2.DescribeLaunchTemplateVersionsInput
		want []int64
	}{
		{"all", ec2.DescribeLaunchTemplateVersionsInput{}, []int64{6, 4, 2, 1}},
		{"latest", ec2.DescribeLaunchTemplateVersionsInput{Versions: []string{"$Latest"}}, []int64{6}},
		{"default", ec2.DescribeLaunchTemplateVersionsInput{Versions: []string{"$Default"}}, []int64{4}},
		{"numbers", ec2.DescribeLaunchTemplateVersionsInput{Versions: []string{"1", "2", "2"}}, []int64{2, 1}},
		{"range", ec2.DescribeLaunchTemplateVersionsInput{MinVersion: aws.String("2"), MaxVersion: aws.String("4")}, []int64{4, 2}},
		{"range to latest", ec2.DescribeLaunchTemplateVersionsInput{MinVersion: aws.String("0"), MaxVersion: aws.String("$Latest")}, []int64{6, 4, 2, 1}},
		{"filter", ec2.DescribeLaunchTemplateVersionsInput{Filters: []types.Filter{{Name: aws.String("instance-type"), Values: []string{"m5.xl*"}}}}, []int64{4, 2}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.in.LaunchTemplateId = id
			var got []int64
			for _, v := range must(e.ec2().DescribeLaunchTemplateVersions(ctx, &tt.in))(t).LaunchTemplateVersions {
				got = append(got, *v.VersionNumber)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("versions (-want +got):\n%s", diff)
			}
		})
	}
	_, err := e.ec2().DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: id, Versions: []string{"3"}})
	wantCode(t, err, "InvalidLaunchTemplateId.VersionNotFound")
}

func TestAccountWideVersions(t *testing.T) {
	e := start(t, awsemu.Options{})
	a, b := newTemplate(e, "aaa"), newTemplate(e, "bbb")
	addVersion(e, a.LaunchTemplateId, types.InstanceTypeM5Large)
	addVersion(e, a.LaunchTemplateId, types.InstanceTypeM5Large)
	got := map[string][]int64{}
	var token *string
	for {
		out := must(e.ec2().DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{
			Versions: []string{"$Latest", "$Default"}, MaxResults: aws.Int32(1), NextToken: token,
		}))(t)
		for _, v := range out.LaunchTemplateVersions {
			got[*v.LaunchTemplateName] = append(got[*v.LaunchTemplateName], *v.VersionNumber)
		}
		if token = out.NextToken; token == nil {
			break
		}
	}
	if diff := cmp.Diff(map[string][]int64{*a.LaunchTemplateName: {3, 1}, *b.LaunchTemplateName: {1}}, got); diff != "" {
		t.Errorf("versions (-want +got):\n%s", diff)
	}
	_, err := e.ec2().DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{Versions: []string{"1"}})
	wantCode(t, err, "InvalidParameterValue")
	_, err = e.ec2().DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{})
	wantCode(t, err, "MissingParameter")
}

func TestTemplateRules(t *testing.T) {
	e := start(t, awsemu.Options{})
	ebs := func(v types.LaunchTemplateEbsBlockDeviceRequest) *types.RequestLaunchTemplateData {
		return &types.RequestLaunchTemplateData{BlockDeviceMappings: []types.LaunchTemplateBlockDeviceMappingRequest{{DeviceName: aws.String("/dev/xvda"), Ebs: &v}}}
	}
	userData := func(n int) *types.RequestLaunchTemplateData {
		return &types.RequestLaunchTemplateData{UserData: aws.String(base64.StdEncoding.EncodeToString(make([]byte, n)))}
	}
	tests := []struct {
		name string
		data *types.RequestLaunchTemplateData
		want string
	}{
		{"user data of 16 KiB", userData(16384), ""},
		{"user data too large", userData(16385), "InvalidParameterValue"},
		{"user data not base64", &types.RequestLaunchTemplateData{UserData: aws.String("%%%")}, "InvalidUserData.Malformed"},
		{"image malformed", &types.RequestLaunchTemplateData{ImageId: aws.String("image")}, "InvalidAMIID.Malformed"},
		{"image by parameter", &types.RequestLaunchTemplateData{ImageId: aws.String("resolve:ssm:/a/b")}, ""},
		{"profile twice", &types.RequestLaunchTemplateData{IamInstanceProfile: &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Arn: aws.String("a"), Name: aws.String("b")}}, "InvalidParameterCombination"},
		{"groups in both places", &types.RequestLaunchTemplateData{SecurityGroupIds: []string{"sg-0123456789abcdef0"}, NetworkInterfaces: []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{{DeviceIndex: aws.Int32(0)}}}, "InvalidParameterCombination"},
		{"type and requirements", &types.RequestLaunchTemplateData{InstanceType: "m5.large", InstanceRequirements: &types.InstanceRequirementsRequest{VCpuCount: &types.VCpuCountRangeRequest{Min: aws.Int32(1)}, MemoryMiB: &types.MemoryMiBRequest{Min: aws.Int32(1)}}}, "InvalidParameterCombination"},
		{"spot options without spot", &types.RequestLaunchTemplateData{InstanceMarketOptions: &types.LaunchTemplateInstanceMarketOptionsRequest{SpotOptions: &types.LaunchTemplateSpotMarketOptionsRequest{MaxPrice: aws.String("1")}}}, "InvalidParameterCombination"},
		{"spot price", &types.RequestLaunchTemplateData{InstanceMarketOptions: &types.LaunchTemplateInstanceMarketOptionsRequest{MarketType: "spot", SpotOptions: &types.LaunchTemplateSpotMarketOptionsRequest{MaxPrice: aws.String("cheap")}}}, "InvalidParameterValue"},
		{"tags for a bucket", &types.RequestLaunchTemplateData{TagSpecifications: []types.LaunchTemplateTagSpecificationRequest{{ResourceType: "vpc", Tags: []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}}}}, "InvalidParameterValue"},
		{"reserved tag", &types.RequestLaunchTemplateData{TagSpecifications: []types.LaunchTemplateTagSpecificationRequest{{ResourceType: "instance", Tags: []types.Tag{{Key: aws.String("aws:x"), Value: aws.String("b")}}}}}, "InvalidParameterValue"},
		{"hop limit", &types.RequestLaunchTemplateData{MetadataOptions: &types.LaunchTemplateInstanceMetadataOptionsRequest{HttpPutResponseHopLimit: aws.Int32(65)}}, "InvalidParameterValue"},
		{"unknown enumeration value", &types.RequestLaunchTemplateData{MetadataOptions: &types.LaunchTemplateInstanceMetadataOptionsRequest{HttpTokens: "maybe"}}, "InvalidParameterValue"},
		{"no data", &types.RequestLaunchTemplateData{}, "MissingParameter"},
		{"iops on gp2", ebs(types.LaunchTemplateEbsBlockDeviceRequest{VolumeType: "gp2", VolumeSize: aws.Int32(10), Iops: aws.Int32(3000)}), "InvalidParameterCombination"},
		{"io2 without iops", ebs(types.LaunchTemplateEbsBlockDeviceRequest{VolumeType: "io2", VolumeSize: aws.Int32(10)}), "MissingParameter"},
		{"gp3 iops too few", ebs(types.LaunchTemplateEbsBlockDeviceRequest{VolumeType: "gp3", VolumeSize: aws.Int32(10), Iops: aws.Int32(2999)}), "InvalidParameterValue"},
		{"gp3 iops for its size", ebs(types.LaunchTemplateEbsBlockDeviceRequest{VolumeType: "gp3", VolumeSize: aws.Int32(10), Iops: aws.Int32(5001)}), "InvalidParameterValue"},
		{"gp3 throughput for its iops", ebs(types.LaunchTemplateEbsBlockDeviceRequest{VolumeType: "gp3", VolumeSize: aws.Int32(10), Throughput: aws.Int32(751)}), "InvalidParameterValue"},
		{"throughput on gp2", ebs(types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: aws.Int32(10), Throughput: aws.Int32(125)}), "InvalidParameterCombination"},
		{"key without encryption", ebs(types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: aws.Int32(10), KmsKeyId: aws.String("k")}), "InvalidParameterDependency"},
		{"st1 too small", ebs(types.LaunchTemplateEbsBlockDeviceRequest{VolumeType: "st1", VolumeSize: aws.Int32(10)}), "InvalidParameterValue"},
	}
	for i, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := e.ec2().CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
				LaunchTemplateName: aws.String(fmt.Sprintf("rule-%d", i)), LaunchTemplateData: tt.data,
			})
			wantCode(t, err, tt.want)
		})
	}
}

func TestTemplateNamesAndQuotas(t *testing.T) {
	e := start(t, awsemu.Options{Quotas: map[string]int{"launch-templates": 2, "launch-template-versions": 2}})
	small := &types.RequestLaunchTemplateData{InstanceType: "m5.large"}
	create := func(name string) error {
		_, err := e.ec2().CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: &name, LaunchTemplateData: small})
		return err
	}
	wantCode(t, create("ab"), "InvalidLaunchTemplateName.MalformedException")
	wantCode(t, create("with space"), "InvalidLaunchTemplateName.MalformedException")
	wantCode(t, create(strings.Repeat("a", 126)), "InvalidLaunchTemplateName.MalformedException")
	wantCode(t, create("one-(1).x/y_z"), "")
	wantCode(t, create("one-(1).x/y_z"), "InvalidLaunchTemplateName.AlreadyExistsException")
	wantCode(t, create("two"), "")
	wantCode(t, create("three"), "MaxTemplateLimitExceeded")

	version := func() error {
		_, err := e.ec2().CreateLaunchTemplateVersion(ctx, &ec2.CreateLaunchTemplateVersionInput{LaunchTemplateName: aws.String("two"), LaunchTemplateData: small})
		return err
	}
	wantCode(t, version(), "")
	wantCode(t, version(), "MaxTemplateVersionLimitExceeded")
	must(e.ec2().DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String("two")}))(t)
	wantCode(t, version(), "InvalidLaunchTemplateName.NotFoundException")
	wantCode(t, create("three"), "")

	if _, err := awsemu.New(awsemu.Options{Quotas: map[string]int{"launch-template": 1}}); err == nil {
		t.Error("New accepted an unknown quota")
	}
}

func TestClientTokens(t *testing.T) {
	e := start(t, awsemu.Options{})
	create := func(token, kind string) (*ec2.CreateLaunchTemplateOutput, error) {
		return e.ec2().CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
			LaunchTemplateName: aws.String("web"), ClientToken: &token,
			LaunchTemplateData: &types.RequestLaunchTemplateData{InstanceType: types.InstanceType(kind)},
		})
	}
	first := must(create("t1", "m5.large"))(t)
	e.advance(time.Hour)
	again := must(create("t1", "m5.large"))(t)
	if diff := cmp.Diff(first.LaunchTemplate, again.LaunchTemplate, cmpopts.IgnoreUnexported(types.LaunchTemplate{}, types.Tag{})); diff != "" {
		t.Errorf("replayed answer (-first +again):\n%s", diff)
	}
	_, err := create("t1", "m5.xlarge")
	wantCode(t, err, "IdempotentParameterMismatch")
	_, err = create("t2", "m5.large")
	wantCode(t, err, "InvalidLaunchTemplateName.AlreadyExistsException")

	version := func(token string) int64 {
		out := must(e.ec2().CreateLaunchTemplateVersion(ctx, &ec2.CreateLaunchTemplateVersionInput{
			LaunchTemplateName: aws.String("web"), ClientToken: &token, LaunchTemplateData: &types.RequestLaunchTemplateData{InstanceType: "m5.large"},
		}))(t)
		return *out.LaunchTemplateVersion.VersionNumber
	}
	if got := []int64{version("v"), version("v"), version("w")}; !reflect.DeepEqual(got, []int64{2, 2, 3}) {
		t.Errorf("versions by tokens v, v, w = %v, want [2 2 3]", got)
	}
	e.advance(25 * time.Hour)
	if n := version("v"); n != 4 {
		t.Errorf("a token older than a day gave version %d, want a new one, 4", n)
	}
}

func TestDescribeTemplatesPagesAndFilters(t *testing.T) {
	e := start(t, awsemu.Options{})
	var want []string
	for i := 0; i < 5; i++ {
		lt := newTemplate(e, fmt.Sprintf("pool-%d", i), "owner", "weir", "n", fmt.Sprint(i))
		want = append(want, *lt.LaunchTemplateId)
		newTemplate(e, fmt.Sprintf("other-%d", i), "owner", "someone")
	}
	filter := []types.Filter{{Name: aws.String("tag:owner"), Values: []string{"w?ir"}}, {Name: aws.String("tag-key"), Values: []string{"n"}}}
	var got []string
	pages := ec2.NewDescribeLaunchTemplatesPaginator(e.ec2(), &ec2.DescribeLaunchTemplatesInput{Filters: filter, MaxResults: aws.Int32(2)})
	for pages.HasMorePages() {
		for _, lt := range must(pages.NextPage(ctx))(t).LaunchTemplates {
			got = append(got, *lt.LaunchTemplateId)
		}
	}
	if diff := cmp.Diff(want, got, cmpopts.SortSlices(func(a, b string) bool { return a < b })); diff != "" {
		t.Errorf("templates (-want +got):\n%s", diff)
	}
	describe := func(in ec2.DescribeLaunchTemplatesInput) error {
		_, err := e.ec2().DescribeLaunchTemplates(ctx, &in)
		return err
	}
	wantCode(t, describe(ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{"pool-1", "absent"}}), "InvalidLaunchTemplateName.NotFoundException")
	wantCode(t, describe(ec2.DescribeLaunchTemplatesInput{LaunchTemplateIds: []string{"lt-0123456789abcdef0"}}), "InvalidLaunchTemplateId.NotFound")
	wantCode(t, describe(ec2.DescribeLaunchTemplatesInput{LaunchTemplateIds: []string{"lt-x"}}), "InvalidLaunchTemplateId.Malformed")
	wantCode(t, describe(ec2.DescribeLaunchTemplatesInput{MaxResults: aws.Int32(201)}), "InvalidParameterValue")
	wantCode(t, describe(ec2.DescribeLaunchTemplatesInput{NextToken: aws.String("guess")}), "InvalidParameterValue")
	wantCode(t, describe(ec2.DescribeLaunchTemplatesInput{Filters: []types.Filter{{Name: aws.String("colour"), Values: []string{"red"}}}}), "InvalidParameterValue")
}

func TestTags(t *testing.T) {
	e := start(t, awsemu.Options{Quotas: map[string]int{"tags": 3}})
	lt := newTemplate(e, "web", "a", "1")
	vpcs := must(e.ec2().DescribeVpcs(ctx, &ec2.DescribeVpcsInput{}))(t)
	ids := []string{*lt.LaunchTemplateId, *vpcs.Vpcs[0].VpcId}
	tagged := func() map[string]string {
		out := must(e.ec2().DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateIds: ids[:1]}))(t)
		got := map[string]string{}
		for _, tag := range out.LaunchTemplates[0].Tags {
			got[*tag.Key] = *tag.Value
		}
		return got
	}
	create := func(ids []string, key, value string) error {
		_, err := e.ec2().CreateTags(ctx, &ec2.CreateTagsInput{Resources: ids, Tags: []types.Tag{{Key: &key, Value: &value}}})
		return err
	}
	wantCode(t, create(ids, "b", "2"), "")
	wantCode(t, create(append(ids, "lt-0123456789abcdef0"), "c", "3"), "InvalidLaunchTemplateId.NotFound")
	wantCode(t, create(ids, "aws:c", "3"), "InvalidParameterValue")
	wantCode(t, create([]string{"nonsense"}, "c", "3"), "InvalidID")
	if diff := cmp.Diff(map[string]string{"a": "1", "b": "2"}, tagged()); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	wantCode(t, create(ids, "c", "3"), "")
	wantCode(t, create(ids, "d", "4"), "TagLimitExceeded")

	remove := func(tags ...types.Tag) {
		must(e.ec2().DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: ids, Tags: tags}))(t)
	}
	remove(types.Tag{Key: aws.String("a"), Value: aws.String("other")}, types.Tag{Key: aws.String("b")})
	if diff := cmp.Diff(map[string]string{"a": "1", "c": "3"}, tagged()); diff != "" {
		t.Errorf("tags after a delete (-want +got):\n%s", diff)
	}
	remove()
	if got := tagged(); len(got) != 0 {
		t.Errorf("tags after a delete without a list = %v, want none", got)
	}
}
