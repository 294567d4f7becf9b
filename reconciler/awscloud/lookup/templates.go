package lookup

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/weir-gitops/weir/reconciler/awscloud/convert"
	"github.com/weir-gitops/weir/reconciler/awscloud/read"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/resolve"
	"github.com/weir-gitops/weir/render/intent"
)

// TemplatesByName reads launch templates of any owner by name.
func (l *Lookups) TemplatesByName(ctx context.Context, names []string) ([]resolve.Template, error) {
	found, err := l.reader.Templates(ctx, names...)
	return templates(found), err
}

// TemplatesByID reads launch templates of any owner by id.
func (l *Lookups) TemplatesByID(ctx context.Context, ids []string) ([]resolve.Template, error) {
	found, err := l.reader.TemplatesByID(ctx, ids...)
	return templates(found), err
}

func templates(found map[string]observed.Template) []resolve.Template {
	out := make([]resolve.Template, 0, len(found))
	for _, name := range slices.Sorted(maps.Keys(found)) {
		t := found[name]
		out = append(out, resolve.Template{ID: t.ID, Name: t.Name, Latest: t.LatestVersion, Default: t.DefaultVersion})
	}
	return out
}

// TemplateVersion reads one version of a launch template. It does not resolve the image, so that an image
// from a parameter is recognizable.
func (l *Lookups) TemplateVersion(ctx context.Context, id string, number int64) (resolve.TemplateVersion, bool, error) {
	out, err := l.ec2.DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{
		LaunchTemplateId: aws.String(id), Versions: []string{strconv.FormatInt(number, 10)},
	})
	if e := sdk.Classify("ec2", "DescribeLaunchTemplateVersions", err); e != nil {
		if e.Kind == observed.NotFound {
			return resolve.TemplateVersion{}, false, nil
		}
		return resolve.TemplateVersion{}, false, e
	}
	for _, v := range out.LaunchTemplateVersions {
		if aws.ToInt64(v.VersionNumber) != number || v.LaunchTemplateData == nil {
			continue
		}
		return templateVersion(v), true, nil
	}
	return resolve.TemplateVersion{}, false, nil
}

func templateVersion(v types.LaunchTemplateVersion) resolve.TemplateVersion {
	data, _ := convert.TemplateData(v.LaunchTemplateData)
	data.UserData = ""
	return resolve.TemplateVersion{Data: data, Requirements: v.LaunchTemplateData.InstanceRequirements != nil}
}

// CommonTemplateVersions reads the account-wide list of newest and default versions.
func (l *Lookups) CommonTemplateVersions(ctx context.Context, wanted map[string][]int64, calls int) (map[string]map[int64]resolve.TemplateVersion, error) {
	out := map[string]map[int64]resolve.TemplateVersion{}
	in := &ec2.DescribeLaunchTemplateVersionsInput{Versions: []string{intent.LatestVersion, intent.DefaultVersion}, MaxResults: aws.Int32(read.VersionsPage)}
	left := 0
	for _, numbers := range wanted {
		left += len(numbers)
	}
	err := sdk.EachPage(ctx, "ec2", "DescribeLaunchTemplateVersions", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		page, err := l.ec2.DescribeLaunchTemplateVersions(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, v := range page.LaunchTemplateVersions {
			id, number := aws.ToString(v.LaunchTemplateId), aws.ToInt64(v.VersionNumber)
			if _, known := out[id][number]; known || v.LaunchTemplateData == nil || !slices.Contains(wanted[id], number) {
				continue
			}
			if out[id] == nil {
				out[id] = map[int64]resolve.TemplateVersion{}
			}
			out[id][number] = templateVersion(v)
			left--
		}
		if calls--; calls <= 0 || left == 0 {
			return nil, nil //nolint:nilnil // no token: the list ends here
		}
		return page.NextToken, nil
	})
	return out, err
}
