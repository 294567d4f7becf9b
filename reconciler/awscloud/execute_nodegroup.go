package awscloud

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
)

func (c *Cloud) createNodegroup(ctx context.Context, a step.CreateNodegroup) error {
	n := a.Nodegroup
	in := &eks.CreateNodegroupInput{
		ClusterName: aws.String(n.Cluster), NodegroupName: aws.String(n.Name), NodeRole: aws.String(n.NodeRole), Subnets: n.SubnetIDs,
		Tags: n.Tags, LaunchTemplate: requestTemplate(n.Template), ClientRequestToken: stringOrNil(a.Token),
		ScalingConfig: &types.NodegroupScalingConfig{MinSize: aws.Int32(n.MinSize), MaxSize: aws.Int32(n.MaxSize), DesiredSize: aws.Int32(n.DesiredSize)},
	}
	carry(&n.NodegroupSettings, in)
	in.UpdateConfig, in.NodeRepairConfig, in.WarmPoolConfig = requestSettings(&n.UpdateConfig, n.NodeRepair, n.RepairOptions, n.WarmPool)
	_, err := c.eks.CreateNodegroup(ctx, in)
	if e := classify("eks", "CreateNodegroup", err); e != nil {
		if e.Kind == observed.AlreadyThere {
			return c.existingNodegroup(ctx, n, e)
		}
		return e
	}
	c.fresh.add(step.NodegroupSubject(n.NodegroupName))
	return nil
}

// existingNodegroup decides whether the nodegroup that is in the way is this
// very one. The code says "in use" for a cluster that is being changed as well,
// so a name that is not there means: later.
func (c *Cloud) existingNodegroup(ctx context.Context, n observed.Nodegroup, conflict *observed.Error) error {
	have, err := c.describeNodegroup(ctx, n.NodegroupName)
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
	return nil
}

func (c *Cloud) updateNodegroupConfig(ctx context.Context, a step.UpdateNodegroupConfig) (step.Result, error) {
	in := &eks.UpdateNodegroupConfigInput{
		ClusterName: aws.String(a.Cluster), NodegroupName: aws.String(a.Name), ClientRequestToken: stringOrNil(a.Token),
	}
	if a.MinSize != nil || a.MaxSize != nil || a.DesiredSize != nil {
		in.ScalingConfig = &types.NodegroupScalingConfig{MinSize: a.MinSize, MaxSize: a.MaxSize, DesiredSize: a.DesiredSize}
	}
	if len(a.PutLabels)+len(a.RemoveLabels) > 0 {
		in.Labels = &types.UpdateLabelsPayload{AddOrUpdateLabels: a.PutLabels, RemoveLabels: a.RemoveLabels}
	}
	if len(a.PutTaints)+len(a.RemoveTaints) > 0 {
		in.Taints = &types.UpdateTaintsPayload{AddOrUpdateTaints: requestTaints(a.PutTaints), RemoveTaints: requestTaints(a.RemoveTaints)}
	}
	in.UpdateConfig, in.NodeRepairConfig, in.WarmPoolConfig = requestSettings(a.UpdateConfig, a.NodeRepair, a.RepairOptions, a.WarmPool)
	defer c.forgetNodegroup(a.NodegroupName)
	out, err := c.eks.UpdateNodegroupConfig(ctx, in)
	if err != nil {
		return step.Result{}, classify("eks", "UpdateNodegroupConfig", err)
	}
	return step.Result{UpdateID: aws.ToString(out.Update.Id)}, nil
}

func (c *Cloud) updateNodegroupVersion(ctx context.Context, a step.UpdateNodegroupVersion) (step.Result, error) {
	in := &eks.UpdateNodegroupVersionInput{
		ClusterName: aws.String(a.Cluster), NodegroupName: aws.String(a.Name), ClientRequestToken: stringOrNil(a.Token),
		Version: stringOrNil(a.Version), ReleaseVersion: stringOrNil(a.ReleaseVersion), Force: a.Force,
	}
	if a.Template != nil {
		in.LaunchTemplate = requestTemplate(*a.Template)
	}
	defer c.forgetNodegroup(a.NodegroupName)
	out, err := c.eks.UpdateNodegroupVersion(ctx, in)
	if err != nil {
		return step.Result{}, classify("eks", "UpdateNodegroupVersion", err)
	}
	return step.Result{UpdateID: aws.ToString(out.Update.Id)}, nil
}

func (c *Cloud) tagNodegroup(ctx context.Context, a step.TagNodegroup) error {
	defer c.forgetNodegroup(a.NodegroupName)
	return retag(a.Put, a.Remove, func(put map[string]string) error {
		_, err := c.eks.TagResource(ctx, &eks.TagResourceInput{ResourceArn: aws.String(a.ARN), Tags: put})
		return asError("eks", "TagResource", err)
	}, func(keys []string) error {
		_, err := c.eks.UntagResource(ctx, &eks.UntagResourceInput{ResourceArn: aws.String(a.ARN), TagKeys: keys})
		return asError("eks", "UntagResource", err)
	})
}

func (c *Cloud) deleteNodegroup(ctx context.Context, a step.DeleteNodegroup) error {
	defer c.forgetNodegroup(a.NodegroupName)
	_, err := c.eks.DeleteNodegroup(ctx, &eks.DeleteNodegroupInput{ClusterName: aws.String(a.Cluster), NodegroupName: aws.String(a.Name)})
	if e := classify("eks", "DeleteNodegroup", err); e != nil && e.Kind != observed.NotFound {
		return e
	}
	c.fresh.drop(step.NodegroupSubject(a.NodegroupName))
	return nil
}
