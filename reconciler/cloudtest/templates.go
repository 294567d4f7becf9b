package cloudtest

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
)

func templateContracts() []contract {
	return []contract{
		{"a template is found by name, id, tag and tag key", nil, templateSelectors},
		{"a template that is not there fails a list by name and not one by filter", []Capability{TemplateNames}, missingTemplates},
		{"a name is taken once", nil, takenTemplateName},
		{"a name has a form", []Capability{TemplateNames}, templateNameForm},
		{"a repeated client token gets the first answer", []Capability{ClientTokens}, templateTokens},
		{"tags are set, replaced and removed", []Capability{TemplateTags}, templateTags},
		{"templates come in pages", []Capability{TemplatePages}, templatePages},
		{"a deleted template is not found", []Capability{TemplateNames}, deletedTemplate},
	}
}

func (e *templates) byFilter(name string, values ...string) []string {
	e.Helper()
	out, err := e.ec2.DescribeLaunchTemplates(e.ctx, &ec2.DescribeLaunchTemplatesInput{Filters: []types.Filter{{Name: aws.String(name), Values: values}}, MaxResults: aws.Int32(200)})
	e.must(err)
	return templateNames(out.LaunchTemplates)
}

func templateNames(in []types.LaunchTemplate) []string {
	var out []string
	for _, t := range in {
		out = append(out, aws.ToString(t.LaunchTemplateName))
	}
	slices.Sort(out)
	return out
}

func templateSelectors(e *env) {
	a, b := e.template("a", "team", "x"), e.template("b", "team"+e.mark, "y")
	want := []string{e.name("a"), e.name("b")}
	out, err := e.ec2.DescribeLaunchTemplates(e.ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: want})
	e.must(err)
	e.equal("by name", want, templateNames(out.LaunchTemplates))
	out, err = e.ec2.DescribeLaunchTemplates(e.ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateIds: []string{*a.LaunchTemplateId, *b.LaunchTemplateId}})
	e.must(err)
	e.equal("by id", want, templateNames(out.LaunchTemplates))
	e.equal("by tag", want, e.byFilter("tag:"+tagMark, e.mark))
	e.equal("by tag key", want[1:], e.byFilter("tag-key", "team"+e.mark))
	e.equal("by name filter", want, e.byFilter("launch-template-name", append(want, e.name("none"))...))
	if n := e.byFilter("launch-template-name", e.name("none")); len(n) != 0 {
		e.Errorf("a filter without a match found %v", n)
	}
	for _, t := range out.LaunchTemplates {
		if aws.ToInt64(t.LatestVersionNumber) != 1 || aws.ToInt64(t.DefaultVersionNumber) != 1 {
			e.Errorf("%s starts with the versions %d and %d", *t.LaunchTemplateName, *t.LatestVersionNumber, *t.DefaultVersionNumber)
		}
	}
}

// equal compares an actual value with the expected one.
func (e *endpoint) equal(what string, want, got any) {
	e.Helper()
	if d := cmp.Diff(want, got); d != "" {
		e.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func missingTemplates(e *env) {
	e.template("a")
	_, err := e.ec2.DescribeLaunchTemplates(e.ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateNames: []string{e.name("a"), e.name("none")}})
	e.refused(err, "InvalidLaunchTemplateName.NotFoundException")
	_, err = e.ec2.DescribeLaunchTemplates(e.ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateIds: []string{"lt-00000000000000000"}})
	e.refused(err, "InvalidLaunchTemplateId.NotFound")
	e.equal("by filter", []string{e.name("a")}, e.byFilter("launch-template-name", e.name("a"), e.name("none")))
}

func takenTemplateName(e *env) {
	e.template("a")
	_, err := e.ec2.CreateLaunchTemplate(e.ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String(e.name("a")), LaunchTemplateData: e.data("m5.large")})
	e.refused(err, "InvalidLaunchTemplateName.AlreadyExistsException")
}

func templateNameForm(e *env) {
	for _, name := range []string{"ab", "with space", "ümlaut", strings.Repeat("a", 129)} {
		_, err := e.ec2.CreateLaunchTemplate(e.ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String(name), LaunchTemplateData: e.data("m5.large")})
		e.refused(err, "InvalidLaunchTemplateName.MalformedException", "InvalidParameterValue")
	}
	e.template(strings.Repeat("a", 125-len(e.name("")))) // the longest name that weir creates
}

func templateTokens(e *env) {
	in := &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String(e.name("a")), LaunchTemplateData: e.data("m5.large"), ClientToken: aws.String(e.mark)}
	first, err := e.ec2.CreateLaunchTemplate(e.ctx, in)
	e.must(err)
	second, err := e.ec2.CreateLaunchTemplate(e.ctx, in)
	e.must(err)
	e.equal("the repeated create", first.LaunchTemplate.LaunchTemplateId, second.LaunchTemplate.LaunchTemplateId)
	in.LaunchTemplateData = e.data("m5.xlarge")
	_, err = e.ec2.CreateLaunchTemplate(e.ctx, in)
	e.refused(err, "IdempotentParameterMismatch")
	next := &ec2.CreateLaunchTemplateVersionInput{LaunchTemplateId: first.LaunchTemplate.LaunchTemplateId, LaunchTemplateData: e.data("m5.xlarge"), ClientToken: aws.String(e.mark + "v")}
	for range 2 {
		out, err := e.ec2.CreateLaunchTemplateVersion(e.ctx, next)
		e.must(err)
		e.equal("the repeated version", int64(2), *out.LaunchTemplateVersion.VersionNumber)
	}
	next.VersionDescription = aws.String("other")
	_, err = e.ec2.CreateLaunchTemplateVersion(e.ctx, next)
	e.refused(err, "IdempotentParameterMismatch")
	_, err = e.ec2.DeleteLaunchTemplate(e.ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: first.LaunchTemplate.LaunchTemplateId})
	e.must(err)
}

func templateTags(e *env) {
	t := e.template("a", "keep", "1", "change", "1", "drop", "1")
	ids := []string{*t.LaunchTemplateId}
	_, err := e.ec2.CreateTags(e.ctx, &ec2.CreateTagsInput{Resources: ids, Tags: []types.Tag{{Key: aws.String("change"), Value: aws.String("2")}, {Key: aws.String("new"), Value: aws.String("")}}})
	e.must(err)
	_, err = e.ec2.DeleteTags(e.ctx, &ec2.DeleteTagsInput{Resources: ids, Tags: []types.Tag{{Key: aws.String("drop")}, {Key: aws.String("never")}}})
	e.must(err)
	out, err := e.ec2.DescribeLaunchTemplates(e.ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateIds: ids})
	e.must(err)
	got := map[string]string{}
	for _, tag := range out.LaunchTemplates[0].Tags {
		got[*tag.Key] = aws.ToString(tag.Value)
	}
	e.equal("tags", map[string]string{tagMark: e.mark, "keep": "1", "change": "2", "new": ""}, got)
	_, err = e.ec2.CreateTags(e.ctx, &ec2.CreateTagsInput{Resources: []string{"lt-00000000000000000"}, Tags: e.tags()})
	e.refused(err, "InvalidLaunchTemplateId.NotFound")
}

func templatePages(e *env) {
	want := []string{e.name("a"), e.name("b"), e.name("c")}
	for _, s := range []string{"a", "b", "c"} {
		e.template(s)
	}
	in := &ec2.DescribeLaunchTemplatesInput{Filters: []types.Filter{{Name: aws.String("tag:" + tagMark), Values: []string{e.mark}}}, MaxResults: aws.Int32(1)}
	var got []string
	for pages := 0; ; pages++ {
		out, err := e.ec2.DescribeLaunchTemplates(e.ctx, in)
		e.must(err)
		if len(out.LaunchTemplates) > 1 {
			e.Errorf("a page of one holds %d", len(out.LaunchTemplates))
		}
		got = append(got, templateNames(out.LaunchTemplates)...)
		// An empty page may be followed by further pages.
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" || pages > 1000 {
			break
		}
	}
	slices.Sort(got)
	e.equal("all pages", want, got)
	in.NextToken = aws.String("nonsense")
	_, err := e.ec2.DescribeLaunchTemplates(e.ctx, in)
	e.refused(err, "InvalidNextToken", "InvalidParameterValue")
	in.NextToken, in.MaxResults = nil, aws.Int32(201)
	_, err = e.ec2.DescribeLaunchTemplates(e.ctx, in)
	e.refused(err, "InvalidParameterValue", "InvalidMaxResults")
}

func deletedTemplate(e *env) {
	t := e.template("a")
	in := &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: t.LaunchTemplateId}
	_, err := e.ec2.DeleteLaunchTemplate(e.ctx, in)
	e.must(err)
	_, err = e.ec2.DeleteLaunchTemplate(e.ctx, in)
	e.refused(err, "InvalidLaunchTemplateId.NotFound")
	_, err = e.ec2.DeleteLaunchTemplate(e.ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: t.LaunchTemplateName})
	e.refused(err, "InvalidLaunchTemplateName.NotFoundException")
	_, err = e.ec2.DescribeLaunchTemplateVersions(e.ctx, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: t.LaunchTemplateId})
	e.refused(err, "InvalidLaunchTemplateId.NotFound")
	_, err = e.ec2.CreateLaunchTemplateVersion(e.ctx, &ec2.CreateLaunchTemplateVersionInput{LaunchTemplateId: t.LaunchTemplateId, LaunchTemplateData: e.data("m5.large")})
	e.refused(err, "InvalidLaunchTemplateId.NotFound")
}
