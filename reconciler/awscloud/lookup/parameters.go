package lookup

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/jointoken"
	"github.com/weir-gitops/weir/reconciler/observed"
)

var _ jointoken.Parameters = (*Lookups)(nil)

// parametersPage is the maximum page size of DescribeParameters.
const parametersPage = 50

// TaggedParameters lists the parameters that have all of the tags, without their values.
func (l *Lookups) TaggedParameters(ctx context.Context, tags map[string]string) ([]jointoken.Parameter, error) {
	in := &ssm.DescribeParametersInput{MaxResults: aws.Int32(parametersPage)}
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		in.ParameterFilters = append(in.ParameterFilters, types.ParameterStringFilter{Key: aws.String("tag:" + key), Option: aws.String("Equals"), Values: []string{tags[key]}})
	}
	var out []jointoken.Parameter
	err := sdk.EachPage(ctx, "ssm", "DescribeParameters", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		page, err := l.ssm.DescribeParameters(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, p := range page.Parameters {
			out = append(out, jointoken.Parameter{Name: aws.ToString(p.Name), Description: aws.ToString(p.Description)})
		}
		return page.NextToken, nil
	})
	return out, err
}

// PutParameter creates or changes a SecureString that is encrypted with the account's default key for
// parameters. AWS accepts tags only for a new parameter, and otherwise overwrites any existing one. So
// PutParameter first tries to create it, and overwrites an existing parameter only after checking that its
// tags are weir's.
func (l *Lookups) PutParameter(ctx context.Context, w jointoken.Write) error {
	in := &ssm.PutParameterInput{
		Name: aws.String(w.Name), Description: aws.String(w.Description), Value: aws.String(w.Value), Type: types.ParameterTypeSecureString, Tags: parameterTags(w.Tags),
	}
	_, err := l.ssm.PutParameter(ctx, in)
	if err == nil {
		return nil
	}
	refused := sdk.Classify("ssm", "PutParameter", err)
	if refused.Kind != observed.AlreadyThere {
		return refused
	}
	have, err := l.ssm.ListTagsForResource(ctx, &ssm.ListTagsForResourceInput{ResourceType: types.ResourceTypeForTaggingParameter, ResourceId: in.Name})
	if err != nil {
		return sdk.Classify("ssm", "ListTagsForResource", err)
	}
	if !ownedParameter(have.TagList, w.Tags) {
		return fmt.Errorf("put parameter %s: %w", w.Name, jointoken.ErrForeign)
	}
	in.Tags, in.Overwrite = nil, aws.Bool(true)
	out, err := l.ssm.PutParameter(ctx, in)
	if err != nil {
		return sdk.Classify("ssm", "PutParameter", err)
	}
	if out.Version > 1 {
		return nil
	}
	// The parameter was deleted in between, so the new one has no tags.
	_, err = l.ssm.AddTagsToResource(ctx, &ssm.AddTagsToResourceInput{ResourceType: types.ResourceTypeForTaggingParameter, ResourceId: in.Name, Tags: parameterTags(w.Tags)})
	if err != nil {
		return sdk.Classify("ssm", "AddTagsToResource", err)
	}
	return nil
}

// ownedParameter reports whether a parameter has the owner and target in tags.
func ownedParameter(list []types.Tag, tags map[string]string) bool {
	have := map[string]string{}
	for _, t := range list {
		have[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return have[observed.TagOwner] == tags[observed.TagOwner] && have[observed.TagTarget] == tags[observed.TagTarget]
}

func parameterTags(tags map[string]string) []types.Tag {
	var out []types.Tag
	for _, key := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, types.Tag{Key: aws.String(key), Value: aws.String(tags[key])})
	}
	return out
}

// DeleteParameter deletes a parameter. A missing parameter is no error.
func (l *Lookups) DeleteParameter(ctx context.Context, name string) error {
	_, err := l.ssm.DeleteParameter(ctx, &ssm.DeleteParameterInput{Name: aws.String(name)})
	var gone *types.ParameterNotFound
	if err == nil || errors.As(err, &gone) {
		return nil
	}
	return sdk.Classify("ssm", "DeleteParameter", err)
}
