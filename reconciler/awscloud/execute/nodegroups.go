package execute

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/weir-gitops/weir/reconciler/awscloud/convert"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
)

// createNodegroup creates a nodegroup. If the nodegroup exists, it accepts one that an earlier attempt made.
// Existed is set if that attempt was not part of this call.
func (x nodegroups) createNodegroup(ctx context.Context, a step.CreateNodegroup) (step.Result, error) {
	n := a.Nodegroup
	in := &eks.CreateNodegroupInput{
		ClusterName: aws.String(n.Cluster), NodegroupName: aws.String(n.Name), NodeRole: aws.String(n.NodeRole), Subnets: n.SubnetIDs,
		Tags: n.Tags, LaunchTemplate: convert.NodegroupTemplate(n.Template), ClientRequestToken: convert.StringOrNil(a.Token),
		ScalingConfig: &types.NodegroupScalingConfig{MinSize: aws.Int32(n.MinSize), MaxSize: aws.Int32(n.MaxSize), DesiredSize: aws.Int32(n.DesiredSize)},
	}
	convert.NodegroupSettings(&n.NodegroupSettings, in)
	call, sent := sdk.Counting(ctx)
	_, err := x.eks.CreateNodegroup(call, in)
	if e := sdk.Classify("eks", "CreateNodegroup", err); e != nil {
		if e.Kind == observed.AlreadyThere {
			return step.Result{Existed: sent() == 1}, x.existingNodegroup(ctx, n, e)
		}
		return step.Result{}, e
	}
	x.memory.Made.Add(step.NodegroupSubject(n.NodegroupName))
	return step.Result{}, nil
}

// existingNodegroup decides whether the existing nodegroup of the name is the requested one. EKS also
// returns the "in use" code for a cluster that is changing. So if the nodegroup does not exist, the next
// pass tries again.
func (x nodegroups) existingNodegroup(ctx context.Context, n observed.Nodegroup, conflict *observed.Error) error {
	have, err := x.reader.Nodegroup(ctx, n.NodegroupName)
	switch {
	case err != nil:
		return err
	case have == nil:
		conflict.Kind = observed.Busy
		return conflict
	case have.Status == string(types.NodegroupStatusDeleting):
		return busy("eks", "CreateNodegroup", "the nodegroup "+n.String()+" is still being deleted")
	}
	if whose := claimOf(have.Tags, n.Tags); whose != mine {
		return taken(conflict, whose, "nodegroup "+n.String())
	}
	x.memory.Made.Add(step.NodegroupSubject(n.NodegroupName)) // made just now, as far as weir knows
	return nil
}

// updateNodegroupConfig changes the sizes, labels, taints and settings of a nodegroup. Nil sizes and empty
// lists stay as they are. The next pass describes the nodegroup again.
func (x nodegroups) updateNodegroupConfig(ctx context.Context, a step.UpdateNodegroupConfig) (step.Result, error) {
	in := &eks.UpdateNodegroupConfigInput{
		ClusterName: aws.String(a.Cluster), NodegroupName: aws.String(a.Name), ClientRequestToken: convert.StringOrNil(a.Token),
	}
	if a.MinSize != nil || a.MaxSize != nil || a.DesiredSize != nil {
		in.ScalingConfig = &types.NodegroupScalingConfig{MinSize: a.MinSize, MaxSize: a.MaxSize, DesiredSize: a.DesiredSize}
	}
	if len(a.PutLabels)+len(a.RemoveLabels) > 0 {
		in.Labels = &types.UpdateLabelsPayload{AddOrUpdateLabels: a.PutLabels, RemoveLabels: a.RemoveLabels}
	}
	if len(a.PutTaints)+len(a.RemoveTaints) > 0 {
		in.Taints = &types.UpdateTaintsPayload{AddOrUpdateTaints: convert.Taints(a.PutTaints), RemoveTaints: convert.Taints(a.RemoveTaints)}
	}
	convert.NodegroupSettings(&a.Settings, in)
	defer x.memory.Nodegroups.Forget(a.NodegroupName)
	out, err := x.eks.UpdateNodegroupConfig(ctx, in)
	if err != nil {
		return step.Result{}, sdk.Classify("eks", "UpdateNodegroupConfig", err)
	}
	return step.Result{UpdateID: updateID(out.Update)}, nil
}

// updateNodegroupVersion starts a rollout of a nodegroup to another version, release or launch template. The
// next pass describes the nodegroup again.
func (x nodegroups) updateNodegroupVersion(ctx context.Context, a step.UpdateNodegroupVersion) (step.Result, error) {
	in := &eks.UpdateNodegroupVersionInput{
		ClusterName: aws.String(a.Cluster), NodegroupName: aws.String(a.Name), ClientRequestToken: convert.StringOrNil(a.Token),
		Version: convert.StringOrNil(a.Version), ReleaseVersion: convert.StringOrNil(a.ReleaseVersion), Force: a.Force,
	}
	if a.Template != nil {
		in.LaunchTemplate = convert.NodegroupTemplate(*a.Template)
	}
	defer x.memory.Nodegroups.Forget(a.NodegroupName)
	out, err := x.eks.UpdateNodegroupVersion(ctx, in)
	if err != nil {
		return step.Result{}, sdk.Classify("eks", "UpdateNodegroupVersion", err)
	}
	return step.Result{UpdateID: updateID(out.Update)}, nil
}

// updateID returns the update's id, or an empty string if the answer has none. The update is in progress in
// either case.
func updateID(u *types.Update) string {
	if u == nil {
		return ""
	}
	return aws.ToString(u.Id)
}

func (x nodegroups) tagNodegroup(ctx context.Context, a step.TagNodegroup) error {
	defer x.memory.Nodegroups.Forget(a.NodegroupName)
	return retag(a.Put, a.Remove, func(put map[string]string) error {
		_, err := x.eks.TagResource(ctx, &eks.TagResourceInput{ResourceArn: aws.String(a.ARN), Tags: put})
		return sdk.AsError("eks", "TagResource", err)
	}, func(keys []string) error {
		_, err := x.eks.UntagResource(ctx, &eks.UntagResourceInput{ResourceArn: aws.String(a.ARN), TagKeys: keys})
		return sdk.AsError("eks", "UntagResource", err)
	})
}

func (x nodegroups) deleteNodegroup(ctx context.Context, a step.DeleteNodegroup) error {
	defer x.memory.Nodegroups.Forget(a.NodegroupName)
	_, err := x.eks.DeleteNodegroup(ctx, &eks.DeleteNodegroupInput{ClusterName: aws.String(a.Cluster), NodegroupName: aws.String(a.Name)})
	if e := sdk.Classify("eks", "DeleteNodegroup", err); e != nil && e.Kind != observed.NotFound {
		return e
	}
	x.memory.Made.Drop(step.NodegroupSubject(a.NodegroupName))
	return nil
}
