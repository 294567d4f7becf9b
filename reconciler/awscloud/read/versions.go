package read

import (
	"context"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/weir-gitops/weir/reconciler/awscloud/convert"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/content"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// Versions reads versions of one template. EC2 fails the whole call if one of them does not exist. They are
// then read one by one. gone says that the template itself no longer exists.
func (r *Reader) Versions(ctx context.Context, id string, numbers ...int64) (found []observed.TemplateVersion, missing []int64, gone bool, err error) {
	for batch := range slices.Chunk(numbers, VersionsPage) {
		got, e := r.NamedVersions(ctx, id, batch...)
		switch {
		case e == nil:
			found = append(found, got...)
		case e.Code == VersionNotFound && len(batch) == 1:
			missing = append(missing, batch[0])
		case e.Code == VersionNotFound:
			for _, n := range batch {
				f, m, g, err := r.Versions(ctx, id, n)
				if err != nil || g {
					return nil, nil, g, err
				}
				found, missing = append(found, f...), append(missing, m...)
			}
		case e.Kind == observed.NotFound:
			return nil, nil, true, nil
		default:
			return nil, nil, false, e
		}
	}
	// A version that AWS silently leaves out is missing as well.
	for _, n := range numbers {
		if !slices.ContainsFunc(found, func(v observed.TemplateVersion) bool { return v.Number == n }) && !slices.Contains(missing, n) {
			missing = append(missing, n)
		}
	}
	return found, missing, false, nil
}

// VersionNotFound is EC2's code if a named version does not exist.
const VersionNotFound = "InvalidLaunchTemplateId.VersionNotFound"

// NamedVersions reads versions in one call, and returns EC2's own error.
func (r *Reader) NamedVersions(ctx context.Context, id string, numbers ...int64) (out []observed.TemplateVersion, _ *observed.Error) {
	in := &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: aws.String(id)}
	for _, n := range numbers {
		in.Versions = append(in.Versions, strconv.FormatInt(n, 10))
	}
	err := r.versionPages(ctx, in, func(v types.LaunchTemplateVersion) { out = append(out, templateVersion(v)) }, nil)
	return out, sdk.Classify("ec2", "DescribeLaunchTemplateVersions", err)
}

// Contents lists the version numbers of a template, with the content hash in each description. The map is
// never nil.
func (r *Reader) Contents(ctx context.Context, id string) (contents map[int64]string, gone bool, err error) {
	contents = map[int64]string{}
	in := &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: aws.String(id), MaxResults: aws.Int32(VersionsPage)}
	err = r.versionPages(ctx, in, func(v types.LaunchTemplateVersion) {
		contents[aws.ToInt64(v.VersionNumber)] = content.Of(aws.ToString(v.VersionDescription))
	}, nil)
	if e := sdk.Classify("ec2", "DescribeLaunchTemplateVersions", err); e != nil {
		if e.Kind == observed.NotFound {
			return nil, true, nil
		}
		return nil, false, e
	}
	return contents, false, nil
}

// AliasedVersions reads the account-wide list of the versions that the aliases mean, which also contains
// other owners' templates. It passes the versions that wanted selects to take. enough may end the list after
// each page.
func (r *Reader) AliasedVersions(ctx context.Context, aliases []string, wanted func(id string, number int64) bool, take func(id string, v observed.TemplateVersion), enough func() bool) error {
	in := &ec2.DescribeLaunchTemplateVersionsInput{Versions: aliases, MaxResults: aws.Int32(VersionsPage)}
	return r.versionPages(ctx, in, func(v types.LaunchTemplateVersion) {
		if id := aws.ToString(v.LaunchTemplateId); wanted(id, aws.ToInt64(v.VersionNumber)) {
			take(id, templateVersion(v))
		}
	}, enough)
}

// versionPages calls take for each version of a launch template. It stops after a page if enough returns
// true; nil means all pages.
func (r *Reader) versionPages(ctx context.Context, in *ec2.DescribeLaunchTemplateVersionsInput, take func(types.LaunchTemplateVersion), enough func() bool) error {
	return sdk.EachPage(ctx, "ec2", "DescribeLaunchTemplateVersions", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		out, err := r.EC2.DescribeLaunchTemplateVersions(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, v := range out.LaunchTemplateVersions {
			take(v)
		}
		if enough != nil && enough() {
			return nil, nil //nolint:nilnil // no token: the list ends here
		}
		return out.NextToken, nil
	})
}

// templateVersion converts one version.
func templateVersion(v types.LaunchTemplateVersion) observed.TemplateVersion {
	data, unknown := convert.TemplateData(v.LaunchTemplateData)
	return observed.TemplateVersion{
		Number: aws.ToInt64(v.VersionNumber), Description: aws.ToString(v.VersionDescription), Data: data, Unknown: unknown,
		Body: content.BodyHash(data),
	}
}
