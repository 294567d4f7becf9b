package execute

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/weir-gitops/weir/reconciler/awscloud/convert"
	"github.com/weir-gitops/weir/reconciler/awscloud/read"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// createTemplate creates a launch template. If the template exists, it accepts one that an earlier attempt
// made. Existed is set if that attempt was not part of this call.
func (x templates) createTemplate(ctx context.Context, a step.CreateLaunchTemplate) (step.Result, error) {
	in := &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String(a.Name), VersionDescription: convert.StringOrNil(a.Description),
		LaunchTemplateData: convert.TemplateRequest(a.Data), ClientToken: convert.StringOrNil(a.Token),
	}
	if len(a.Tags) > 0 {
		in.TagSpecifications = []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate, Tags: requestTags(a.Tags)}}
	}
	call, attempts := sdk.Counting(ctx)
	out, err := x.ec2.CreateLaunchTemplate(call, in)
	if e := sdk.Classify("ec2", "CreateLaunchTemplate", err); e != nil {
		if e.Kind == observed.AlreadyThere {
			res, err := x.existingTemplate(ctx, a, e)
			// AWS refused the first request, so no lost attempt of this call made the template.
			res.Existed = attempts() == 1
			return res, err
		}
		return step.Result{}, e
	}
	x.warn("CreateLaunchTemplate", a.Name, out.Warning)
	t := out.LaunchTemplate
	if t == nil || t.LaunchTemplateId == nil || t.LatestVersionNumber == nil {
		return step.Result{}, sdk.Incomplete("ec2", "CreateLaunchTemplate", "id and version")
	}
	ref := observed.TemplateRef{ID: aws.ToString(t.LaunchTemplateId), Name: a.Name, Version: strconv.FormatInt(aws.ToInt64(t.LatestVersionNumber), 10)}
	x.memory.Made.Add(ref.ID, ref.Name)
	return step.Result{Template: ref}, nil
}

// existingTemplate decides whether the existing template of the name was made by an earlier attempt whose
// answer was lost.
func (x templates) existingTemplate(ctx context.Context, a step.CreateLaunchTemplate, conflict *observed.Error) (step.Result, error) {
	found, err := x.reader.Templates(ctx, a.Name)
	if err != nil {
		return step.Result{}, err
	}
	t, ok := found[a.Name]
	if !ok {
		return step.Result{}, busy("ec2", "CreateLaunchTemplate", "the name "+a.Name+" is taken by a template that AWS does not show yet")
	}
	if whose := claimOf(t.Tags, a.Tags); whose != mine {
		return step.Result{}, taken(conflict, whose, "launch template "+a.Name)
	}
	versions, _, _, err := x.reader.Versions(ctx, t.ID, t.LatestVersion)
	if err != nil {
		return step.Result{}, err
	}
	if len(versions) != 1 || versions[0].Description != a.Description || versions[0].Unknown || !sameData(versions[0].Data, a.Data) {
		return step.Result{}, busy("ec2", "CreateLaunchTemplate", "the template "+a.Name+" exists with other content")
	}
	x.memory.Made.Add(t.ID, t.Name) // made just now, as far as weir knows
	return step.Result{Template: observed.TemplateRef{ID: t.ID, Name: t.Name, Version: strconv.FormatInt(t.LatestVersion, 10)}}, nil
}

// sameData reports whether the stored data equal the requested data, which may be in another order.
func sameData(stored, asked intent.TemplateData) bool {
	asked.SecurityGroupIDs = slices.Sorted(slices.Values(asked.SecurityGroupIDs))
	return reflect.DeepEqual(stored, asked)
}

// replayAge is the age above which a version was certainly not made by the call that returned it: EC2
// repeats the answer to an earlier request with the same token. If that version was deleted since, another
// token is needed.
const replayAge = 2 * time.Minute

// createVersion creates a version of a launch template. AWS may answer a known client token with a version
// that was deleted since. The version is then created with another token.
func (x templates) createVersion(ctx context.Context, a step.CreateLaunchTemplateVersion) (step.Result, error) {
	id, name := templateSelector(a.Template)
	in := &ec2.CreateLaunchTemplateVersionInput{
		LaunchTemplateId: id, LaunchTemplateName: name, VersionDescription: convert.StringOrNil(a.Description),
		LaunchTemplateData: convert.TemplateRequest(a.Data), ClientToken: convert.StringOrNil(a.Token),
	}
	v, err := x.newVersion(ctx, in)
	if err != nil {
		return step.Result{}, err
	}
	if made := aws.ToTime(v.CreateTime); a.Token != "" && x.client.Clock().Sub(made) > replayAge {
		_, e := x.reader.NamedVersions(ctx, aws.ToString(v.LaunchTemplateId), aws.ToInt64(v.VersionNumber))
		if e != nil && e.Code == read.VersionNotFound {
			in.ClientToken = aws.String(a.Token + "-" + strconv.FormatInt(made.Unix(), 10))
			if v, err = x.newVersion(ctx, in); err != nil {
				return step.Result{}, err
			}
		}
	}
	ref := observed.TemplateRef{ID: aws.ToString(v.LaunchTemplateId), Name: cmp.Or(aws.ToString(v.LaunchTemplateName), a.Template.Name), Version: strconv.FormatInt(aws.ToInt64(v.VersionNumber), 10)}
	x.memory.Made.Add(ref.ID, ref.Name)
	return step.Result{Template: ref}, nil
}

func (x templates) newVersion(ctx context.Context, in *ec2.CreateLaunchTemplateVersionInput) (*types.LaunchTemplateVersion, error) {
	out, err := x.ec2.CreateLaunchTemplateVersion(ctx, in)
	if err != nil {
		return nil, sdk.Classify("ec2", "CreateLaunchTemplateVersion", err)
	}
	v := out.LaunchTemplateVersion
	if v == nil || v.LaunchTemplateId == nil || v.VersionNumber == nil {
		return nil, sdk.Incomplete("ec2", "CreateLaunchTemplateVersion", "id and number")
	}
	x.warn("CreateLaunchTemplateVersion", cmp.Or(aws.ToString(v.LaunchTemplateName), aws.ToString(v.LaunchTemplateId)), out.Warning)
	return v, nil
}

// warn logs EC2's warnings about a template that EC2 made anyway.
func (x templates) warn(operation, name string, w *types.ValidationWarning) {
	if w == nil {
		return
	}
	for _, e := range w.Errors {
		x.client.Logger.Warn("launch template made with a warning", "operation", operation, "name", name, "code", aws.ToString(e.Code), "message", aws.ToString(e.Message))
	}
}

func (x templates) setDefault(ctx context.Context, a step.SetDefaultVersion) error {
	if a.Patient {
		paid, spare := x.client.TakeSpare(ctx, "ec2", "ModifyLaunchTemplate")
		if !spare {
			return &observed.Error{Kind: observed.Busy, Service: "ec2", Operation: "ModifyLaunchTemplate", Code: "NotCalled", Message: step.ErrLater.Error(), Err: step.ErrLater}
		}
		ctx = paid
	}
	id, name := templateSelector(a.Template)
	_, err := x.ec2.ModifyLaunchTemplate(ctx, &ec2.ModifyLaunchTemplateInput{
		LaunchTemplateId: id, LaunchTemplateName: name, DefaultVersion: aws.String(a.Template.Version), ClientToken: convert.StringOrNil(a.Token),
	})
	return sdk.AsError("ec2", "ModifyLaunchTemplate", err)
}

func (x templates) deleteTemplate(ctx context.Context, a step.DeleteLaunchTemplate) error {
	id, name := templateSelector(a.Template)
	_, err := x.ec2.DeleteLaunchTemplate(ctx, &ec2.DeleteLaunchTemplateInput{LaunchTemplateId: id, LaunchTemplateName: name})
	if e := sdk.Classify("ec2", "DeleteLaunchTemplate", err); e != nil && e.Kind != observed.NotFound {
		return e
	}
	x.memory.Made.Drop(a.Template.ID, a.Template.Name)
	return nil
}

func (x templates) tagTemplate(ctx context.Context, a step.TagLaunchTemplate) error {
	resources := []string{a.Template.ID}
	return retag(a.Put, a.Remove, func(put map[string]string) error {
		_, err := x.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: resources, Tags: requestTags(put)})
		return sdk.AsError("ec2", "CreateTags", err)
	}, func(keys []string) error {
		var tags []types.Tag
		for _, k := range keys {
			tags = append(tags, types.Tag{Key: aws.String(k)})
		}
		_, err := x.ec2.DeleteTags(ctx, &ec2.DeleteTagsInput{Resources: resources, Tags: tags})
		return sdk.AsError("ec2", "DeleteTags", err)
	})
}

func requestTags(tags map[string]string) []types.Tag {
	out := make([]types.Tag, 0, len(tags))
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, types.Tag{Key: aws.String(k), Value: aws.String(tags[k])})
	}
	return out
}

// templateSelector returns the id of a template if known, else its name, because EC2 refuses both together.
func templateSelector(r observed.TemplateRef) (id, name *string) {
	if r.ID != "" {
		return aws.String(r.ID), nil
	}
	return nil, aws.String(r.Name)
}
