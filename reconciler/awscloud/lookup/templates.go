package lookup

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/weir-gitops/weir/reconciler/awscloud/convert"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/resolve"
)

// TemplatesByName reads launch templates by name, whoever owns them.
func (l *Lookups) TemplatesByName(ctx context.Context, names []string) ([]resolve.Template, error) {
	found, err := l.reader.Templates(ctx, names...)
	return templates(found), err
}

// TemplatesByID reads launch templates by id, whoever owns them.
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

// TemplateVersion reads one version of a launch template. The image is read as
// it was written, so that one which a parameter names is known as such.
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
		data, _ := convert.TemplateData(v.LaunchTemplateData)
		data.UserData = ""
		return resolve.TemplateVersion{Data: data, Requirements: v.LaunchTemplateData.InstanceRequirements != nil}, true, nil
	}
	return resolve.TemplateVersion{}, false, nil
}
