package execute

import (
	"context"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
)

// deleteVersions reads both lists of the answer: EC2 answers with status 200 and reports the result for each
// version.
func (x templates) deleteVersions(ctx context.Context, a step.DeleteLaunchTemplateVersions) error {
	id, name := templateSelector(a.Template)
	in := &ec2.DeleteLaunchTemplateVersionsInput{LaunchTemplateId: id, LaunchTemplateName: name}
	for _, n := range a.Versions {
		in.Versions = append(in.Versions, strconv.FormatInt(n, 10))
	}
	defer x.memory.Versions.ForgetNumbers(a.Template.ID)
	out, err := x.ec2.DeleteLaunchTemplateVersions(ctx, in)
	if e := sdk.Classify("ec2", "DeleteLaunchTemplateVersions", err); e != nil {
		if e.Kind == observed.NotFound {
			return nil
		}
		return e
	}
	var refused *observed.Error
	kept := 0
	for _, v := range out.UnsuccessfullyDeletedLaunchTemplateVersions {
		code, message := types.LaunchTemplateErrorCodeUnexpectedError, "AWS gives no reason"
		if v.ResponseError != nil {
			code, message = v.ResponseError.Code, aws.ToString(v.ResponseError.Message)
		}
		switch code {
		case types.LaunchTemplateErrorCodeLaunchTemplateVersionDoesNotExist, types.LaunchTemplateErrorCodeLaunchTemplateIdDoesNotExist,
			types.LaunchTemplateErrorCodeLaunchTemplateNameDoesNotExist:
			continue // already gone
		}
		kept++
		if refused == nil {
			refused = &observed.Error{Kind: observed.Invalid, Service: "ec2", Operation: "DeleteLaunchTemplateVersions", Code: string(code),
				Message: "version " + strconv.FormatInt(aws.ToInt64(v.VersionNumber), 10) + " stays: " + message}
		}
	}
	if refused == nil {
		return nil
	}
	sdk.Bounded(refused)
	if kept > 1 {
		refused.Message += " (and " + strconv.Itoa(kept-1) + " more of " + strconv.Itoa(len(a.Versions)) + ")"
	}
	return refused
}
