package awscloud

import (
	"context"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/resolve"
)

// TemplatesByName reads launch templates by name, whoever owns them. Names go
// into a filter, which passes over a missing one where the list of names would
// fail the call.
func (c *Cloud) TemplatesByName(ctx context.Context, names []string) ([]resolve.Template, error) {
	var out []resolve.Template
	for batch := range slices.Chunk(names, filterValues) {
		in := &ec2.DescribeLaunchTemplatesInput{Filters: []types.Filter{filter("launch-template-name", batch...)}, MaxResults: aws.Int32(templatesPage)}
		found, err := c.foreignTemplates(ctx, in)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// TemplatesByID reads launch templates by id. EC2 has no filter for ids, and
// fails the whole call where one of them does not exist: they are then read one
// by one.
func (c *Cloud) TemplatesByID(ctx context.Context, ids []string) ([]resolve.Template, error) {
	var out []resolve.Template
	for batch := range slices.Chunk(ids, templatesPage) {
		found, err := c.foreignTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateIds: batch})
		switch {
		case err == nil:
			out = append(out, found...)
		case err.Kind != observed.NotFound:
			return nil, err
		case len(batch) > 1:
			for _, id := range batch {
				one, err := c.TemplatesByID(ctx, []string{id})
				if err != nil {
					return nil, err
				}
				out = append(out, one...)
			}
		}
	}
	return out, nil
}

func (c *Cloud) foreignTemplates(ctx context.Context, in *ec2.DescribeLaunchTemplatesInput) ([]resolve.Template, *observed.Error) {
	var templates []resolve.Template
	err := eachPage(ctx, "ec2", "DescribeLaunchTemplates", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		out, err := c.ec2.DescribeLaunchTemplates(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, t := range out.LaunchTemplates {
			templates = append(templates, resolve.Template{
				ID: aws.ToString(t.LaunchTemplateId), Name: aws.ToString(t.LaunchTemplateName),
				Latest: aws.ToInt64(t.LatestVersionNumber), Default: aws.ToInt64(t.DefaultVersionNumber),
			})
		}
		return out.NextToken, nil
	})
	return templates, classify("ec2", "DescribeLaunchTemplates", err)
}

// TemplateVersion reads one version of a launch template. The image is read as
// it was written, so that one which a parameter names is known as such.
func (c *Cloud) TemplateVersion(ctx context.Context, id string, number int64) (resolve.TemplateVersion, bool, error) {
	out, err := c.ec2.DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{
		LaunchTemplateId: aws.String(id), Versions: []string{strconv.FormatInt(number, 10)},
	})
	if e := classify("ec2", "DescribeLaunchTemplateVersions", err); e != nil {
		if e.Kind == observed.NotFound {
			return resolve.TemplateVersion{}, false, nil
		}
		return resolve.TemplateVersion{}, false, e
	}
	for _, v := range out.LaunchTemplateVersions {
		if aws.ToInt64(v.VersionNumber) != number || v.LaunchTemplateData == nil {
			continue
		}
		data, _ := templateData(v.LaunchTemplateData)
		data.UserData = ""
		return resolve.TemplateVersion{Data: data, Requirements: v.LaunchTemplateData.InstanceRequirements != nil}, true, nil
	}
	return resolve.TemplateVersion{}, false, nil
}
