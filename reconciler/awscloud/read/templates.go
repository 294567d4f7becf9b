package read

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/weir-gitops/weir/reconciler/awscloud/convert"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/awscloud/stringpool"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// OwnedTemplates reads the launch templates with the owner's tag, without their versions.
func (r *Reader) OwnedTemplates(ctx context.Context, owner string) (map[string]observed.Template, error) {
	list := r.owned.templates.startList(r.Now())
	found, err := r.templates(ctx, list, &ec2.DescribeLaunchTemplatesInput{MaxResults: aws.Int32(templatesPage), Filters: []types.Filter{filter("tag:"+observed.TagOwner, owner)}})
	if err == nil {
		list.complete()
	}
	return found, err
}

// Templates reads templates of any owner by name. It uses a filter: a filter ignores a missing name, while a
// list with a missing name would make the whole call fail.
func (r *Reader) Templates(ctx context.Context, names ...string) (map[string]observed.Template, error) {
	found := map[string]observed.Template{}
	for batch := range slices.Chunk(names, filterValues) {
		page, err := r.templates(ctx, nil, &ec2.DescribeLaunchTemplatesInput{MaxResults: aws.Int32(templatesPage), Filters: []types.Filter{filter("launch-template-name", batch...)}})
		if err != nil {
			return nil, err
		}
		maps.Copy(found, page)
	}
	return found, nil
}

// TemplatesByID reads templates by id. EC2 has no filter for ids, and fails the whole call if one id does
// not exist. The templates are then read one by one.
func (r *Reader) TemplatesByID(ctx context.Context, ids ...string) (map[string]observed.Template, error) {
	found := map[string]observed.Template{}
	for batch := range slices.Chunk(ids, templatesPage) {
		page, err := r.templates(ctx, nil, &ec2.DescribeLaunchTemplatesInput{LaunchTemplateIds: batch})
		e := sdk.Classify("ec2", "DescribeLaunchTemplates", err)
		switch {
		case e == nil:
			maps.Copy(found, page)
		case e.Kind != observed.NotFound:
			return nil, e
		case len(batch) > 1:
			for _, id := range batch {
				one, err := r.TemplatesByID(ctx, id)
				if err != nil {
					return nil, err
				}
				maps.Copy(found, one)
			}
		}
	}
	return found, nil
}

// templates returns the launch templates of all pages of a request, by name. It reads the pages with weir's
// own scanner instead of the SDK's, to save memory.
func (r *Reader) templates(ctx context.Context, list *list[observed.Template], in *ec2.DescribeLaunchTemplatesInput) (map[string]observed.Template, error) {
	found := map[string]observed.Template{}
	var page []*observed.Template
	scan := sdk.ReadPage(func(body []byte) (_ any, err error) {
		var next string
		page, next, err = scanTemplates(body, list)
		return &ec2.DescribeLaunchTemplatesOutput{NextToken: convert.StringOrNil(next)}, err
	})
	err := sdk.EachPage(ctx, "ec2", "DescribeLaunchTemplates", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		out, err := r.EC2.DescribeLaunchTemplates(ctx, in, func(o *ec2.Options) { o.APIOptions = append(o.APIOptions, scan) })
		if err != nil {
			return nil, err
		}
		for _, t := range page {
			found[t.Name] = *t
		}
		return out.NextToken, nil
	})
	return found, err
}

func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: aws.String(name), Values: values}
}

// Tags converts EC2's tags to a map.
func Tags(in []types.Tag) map[string]string {
	out := make(map[string]string, len(in))
	for _, t := range in {
		out[stringpool.String(aws.ToString(t.Key))] = stringpool.String(aws.ToString(t.Value))
	}
	return out
}

// SameTemplate compares by id if both have one, because AWS's answers have ids and names.
func SameTemplate(a, b observed.TemplateRef) bool {
	if a.ID != "" && b.ID != "" {
		return a.ID == b.ID && a.Version == b.Version
	}
	return a.Name == b.Name && a.Version == b.Version
}
