package cloudtest

import (
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

func versionContracts() []contract {
	return []contract{
		{"versions are numbered, and newest and default are aliases", nil, versionAliases},
		{"numbering goes on after deletions", []Capability{DeleteVersions}, versionNumbering},
		{"the default version is not deleted, and the answer is 200 all the same", []Capability{DeleteVersions}, deleteDefaultVersion},
		{"newest and default versions of the whole account are one list", nil, versionsOfAccount},
		{"a list without a template needs aliases", nil, versionsWithoutTemplate},
		{"a version that is not there is refused", nil, missingVersions},
		{"versions come in pages", []Capability{TemplatePages}, versionPages},
		{"the list of all versions says what each one's description is", nil, versionDescriptions},
		{"two versions in a row are two, each with what it was made with", nil, versionsDistinct},
		{"one version is read by its number", nil, versionByNumber},
	}
}

// versionsOf returns the versions of a template by selector, sorted.
func (e *templates) versionsOf(t *types.LaunchTemplate, selectors ...string) []int64 {
	e.Helper()
	out, err := e.ec2.DescribeLaunchTemplateVersions(e.ctx, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: t.LaunchTemplateId, Versions: selectors})
	e.must(err)
	var numbers []int64
	for _, v := range out.LaunchTemplateVersions {
		numbers = append(numbers, aws.ToInt64(v.VersionNumber))
	}
	slices.Sort(numbers)
	return numbers
}

func (e *templates) setDefault(t *types.LaunchTemplate, version string) error {
	e.Helper()
	_, err := e.ec2.ModifyLaunchTemplate(e.ctx, &ec2.ModifyLaunchTemplateInput{LaunchTemplateId: t.LaunchTemplateId, DefaultVersion: aws.String(version)})
	return err
}

func (e *templates) head(t *types.LaunchTemplate) (latest, standard int64) {
	e.Helper()
	out, err := e.ec2.DescribeLaunchTemplates(e.ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateIds: []string{*t.LaunchTemplateId}})
	e.must(err)
	return *out.LaunchTemplates[0].LatestVersionNumber, *out.LaunchTemplates[0].DefaultVersionNumber
}

func versionAliases(e *env) {
	t := e.template("a")
	e.equal("the second version", int64(2), e.version(t, "m5.xlarge"))
	e.equal("the third version", int64(3), e.version(t, "m5.2xlarge"))
	e.equal("the newest", []int64{3}, e.versionsOf(t, "$Latest"))
	e.equal("the default", []int64{1}, e.versionsOf(t, "$Default"))
	e.equal("all", []int64{1, 2, 3}, e.versionsOf(t))
	e.must(e.setDefault(t, "2"))
	e.equal("the moved default", []int64{2}, e.versionsOf(t, "$Default"))
	latest, standard := e.head(t)
	e.equal("the template's numbers", []int64{3, 2}, []int64{latest, standard})
}

func versionNumbering(e *env) {
	t := e.template("a")
	e.version(t, "m5.xlarge")
	e.version(t, "m5.2xlarge")
	out, err := e.ec2.DeleteLaunchTemplateVersions(e.ctx, &ec2.DeleteLaunchTemplateVersionsInput{LaunchTemplateId: t.LaunchTemplateId, Versions: []string{"2", "3"}})
	e.must(err)
	e.equal("deleted", 2, len(out.SuccessfullyDeletedLaunchTemplateVersions))
	e.equal("the next version", int64(4), e.version(t, "m5.xlarge"))
	e.equal("what is left", []int64{1, 4}, e.versionsOf(t))
}

func deleteDefaultVersion(e *env) {
	t := e.template("a")
	e.version(t, "m5.xlarge")
	out, err := e.ec2.DeleteLaunchTemplateVersions(e.ctx, &ec2.DeleteLaunchTemplateVersionsInput{LaunchTemplateId: t.LaunchTemplateId, Versions: []string{"1", "2", "9"}})
	e.must(err)
	var failed []int64
	for _, f := range out.UnsuccessfullyDeletedLaunchTemplateVersions {
		failed = append(failed, aws.ToInt64(f.VersionNumber))
		if *f.VersionNumber == 9 && f.ResponseError.Code != types.LaunchTemplateErrorCodeLaunchTemplateVersionDoesNotExist {
			e.Errorf("version 9 failed with %s", f.ResponseError.Code)
		}
	}
	slices.Sort(failed)
	e.equal("not deleted", []int64{1, 9}, failed)
	e.equal("what is left", []int64{1}, e.versionsOf(t))
}

func versionsOfAccount(e *env) {
	a, b := e.template("a"), e.template("b")
	e.version(a, "m5.xlarge")
	type row struct {
		id      string
		version int64
	}
	got := map[row]string{}
	in := &ec2.DescribeLaunchTemplateVersionsInput{Versions: []string{"$Latest", "$Default"}, MaxResults: aws.Int32(200)}
	for {
		out, err := e.ec2.DescribeLaunchTemplateVersions(e.ctx, in)
		e.must(err)
		for _, v := range out.LaunchTemplateVersions {
			got[row{*v.LaunchTemplateId, *v.VersionNumber}] = string(v.LaunchTemplateData.InstanceType)
		}
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			break
		}
	}
	for r, want := range map[row]string{{*a.LaunchTemplateId, 1}: "m5.large", {*a.LaunchTemplateId, 2}: "m5.xlarge", {*b.LaunchTemplateId, 1}: "m5.large"} {
		if got[r] != want {
			e.Errorf("version %d of %s is %q in the list, want %q", r.version, r.id, got[r], want)
		}
	}
}

func versionsWithoutTemplate(e *env) {
	_, err := e.ec2.DescribeLaunchTemplateVersions(e.ctx, &ec2.DescribeLaunchTemplateVersionsInput{})
	e.refused(err, "MissingParameter")
}

func missingVersions(e *env) {
	t := e.template("a")
	_, err := e.ec2.DescribeLaunchTemplateVersions(e.ctx, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: t.LaunchTemplateId, Versions: []string{"1", "9"}})
	e.refused(err, "InvalidLaunchTemplateId.VersionNotFound")
	e.refused(e.setDefault(t, "9"), "InvalidLaunchTemplateId.VersionNotFound")
}

func versionPages(e *env) {
	t := e.template("a")
	for range 4 {
		e.version(t, "m5.xlarge")
	}
	in := &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: t.LaunchTemplateId, MaxResults: aws.Int32(2)}
	var got []int64
	for range 10 {
		out, err := e.ec2.DescribeLaunchTemplateVersions(e.ctx, in)
		e.must(err)
		if len(out.LaunchTemplateVersions) > 2 {
			e.Errorf("a page of two holds %d", len(out.LaunchTemplateVersions))
		}
		for _, v := range out.LaunchTemplateVersions {
			got = append(got, *v.VersionNumber)
		}
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" {
			break
		}
	}
	slices.Sort(got)
	e.equal("all pages", []int64{1, 2, 3, 4, 5}, got)
}

func versionByNumber(e *env) {
	t := e.template("a")
	n := e.version(t, "m5.xlarge")
	out, err := e.ec2.DescribeLaunchTemplateVersions(e.ctx, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateName: t.LaunchTemplateName, Versions: []string{strconv.FormatInt(n, 10)}})
	e.must(err)
	if len(out.LaunchTemplateVersions) != 1 {
		e.Fatalf("%d versions", len(out.LaunchTemplateVersions))
	}
	v := out.LaunchTemplateVersions[0]
	e.equal("the version", []any{n, "m5.xlarge", *t.LaunchTemplateId, types.InstanceType("m5.xlarge")},
		[]any{*v.VersionNumber, aws.ToString(v.VersionDescription), aws.ToString(v.LaunchTemplateId), v.LaunchTemplateData.InstanceType})
}

// described creates a version with a description, with a client token.
func (e *templates) described(t *types.LaunchTemplate, kind types.InstanceType, description, token string) int64 {
	e.Helper()
	out, err := e.ec2.CreateLaunchTemplateVersion(e.ctx, &ec2.CreateLaunchTemplateVersionInput{LaunchTemplateId: t.LaunchTemplateId, ClientToken: aws.String(token),
		VersionDescription: aws.String(description), LaunchTemplateData: &types.RequestLaunchTemplateData{InstanceType: kind}})
	e.must(err)
	return aws.ToInt64(out.LaunchTemplateVersion.VersionNumber)
}

func versionDescriptions(e *env) {
	t := e.template("a")
	e.described(t, "m5.xlarge", "weir:v1:0123456789abcdef:0123456789abcdef one", "a1")
	e.described(t, "m5.2xlarge", "by hand", "a2")
	out, err := e.ec2.DescribeLaunchTemplateVersions(e.ctx, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: t.LaunchTemplateId})
	e.must(err)
	got := map[int64]string{}
	for _, v := range out.LaunchTemplateVersions {
		got[aws.ToInt64(v.VersionNumber)] = aws.ToString(v.VersionDescription)
	}
	e.equal("descriptions", map[int64]string{1: got[1], 2: "weir:v1:0123456789abcdef:0123456789abcdef one", 3: "by hand"}, got)
}

// versionsDistinct checks that pools with the same template get their own versions.
func versionsDistinct(e *env) {
	t := e.template("a")
	e.equal("the first", int64(2), e.described(t, "m5.xlarge", "one", "b1"))
	e.equal("the second", int64(3), e.described(t, "m5.2xlarge", "two", "b2"))
	for number, kind := range map[string]types.InstanceType{"2": "m5.xlarge", "3": "m5.2xlarge"} {
		out, err := e.ec2.DescribeLaunchTemplateVersions(e.ctx, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: t.LaunchTemplateId, Versions: []string{number}})
		e.must(err)
		e.equal("version "+number, kind, out.LaunchTemplateVersions[0].LaunchTemplateData.InstanceType)
	}
	e.equal("the default stays", []int64{1}, e.versionsOf(t, "$Default"))
}
