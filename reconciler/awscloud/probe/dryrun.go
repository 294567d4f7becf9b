package probe

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/weir-gitops/weir/reconciler/awscloud/convert"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/preflight"
)

// DryRun asks EC2 whether it would launch a machine. EC2 answers with an error in both cases. An answer
// without an error would mean that it launched a machine despite the dry run, and DryRun returns that as an
// error.
// Assumed of AWS: dry-run-checks.
func (p *Prober) DryRun(ctx context.Context, r preflight.DryRun) (refused, err *observed.Error) {
	in := &ec2.RunInstancesInput{}
	convert.Carry(convert.TemplateRequest(r.Data), in)
	in.DryRun, in.MinCount, in.MaxCount = aws.Bool(true), aws.Int32(1), aws.Int32(1)
	in.InstanceType = types.InstanceType(r.Type)
	if len(in.NetworkInterfaces) == 0 {
		in.SubnetId = aws.String(r.Subnet)
	}
	for i := range in.NetworkInterfaces {
		if n := &in.NetworkInterfaces[i]; n.SubnetId == nil {
			n.SubnetId = aws.String(r.Subnet)
		}
	}
	out, failed := p.ec2.RunInstances(ctx, in)
	if failed == nil {
		launched := "a machine"
		if len(out.Instances) > 0 {
			launched = aws.ToString(out.Instances[0].InstanceId)
		}
		return nil, &observed.Error{Kind: observed.Unknown, Service: "ec2", Operation: "RunInstances", Code: preflight.CodeNotDry, Message: "the endpoint ignored DryRun and launched " + launched}
	}
	if sdk.WouldSucceed(failed) {
		return nil, nil
	}
	e := sdk.Classify("ec2", "RunInstances", failed)
	var answer smithy.APIError
	switch e.Kind {
	case observed.Invalid, observed.NotFound, observed.Quota:
		return e, nil
	case observed.Unknown:
		if errors.As(failed, &answer) {
			return e, nil
		}
	}
	return nil, e
}
