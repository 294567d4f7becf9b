package read

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/weir-gitops/weir/reconciler/awscloud/convert"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// Clusters lists the EKS clusters of the account and region.
func (r *Reader) Clusters(ctx context.Context) (names []string, err error) {
	in := &eks.ListClustersInput{MaxResults: aws.Int32(namesPage)}
	err = sdk.EachPage(ctx, "eks", "ListClusters", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		out, err := r.EKS.ListClusters(ctx, in)
		if err != nil {
			return nil, err
		}
		names = append(names, out.Clusters...)
		return out.NextToken, sdk.TooMany(len(names))
	})
	return names, err
}

// Nodegroups lists the nodegroups of a cluster. exists is false if the cluster does not exist.
func (r *Reader) Nodegroups(ctx context.Context, cluster string) (found []observed.NodegroupName, exists bool, err error) {
	in := &eks.ListNodegroupsInput{ClusterName: aws.String(cluster), MaxResults: aws.Int32(namesPage)}
	err = sdk.EachPage(ctx, "eks", "ListNodegroups", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		out, err := r.EKS.ListNodegroups(ctx, in)
		if err != nil {
			return nil, err
		}
		for _, n := range out.Nodegroups {
			found = append(found, observed.NodegroupName{Cluster: cluster, Name: n})
		}
		return out.NextToken, sdk.TooMany(len(found))
	})
	if e := sdk.Classify("eks", "ListNodegroups", err); e != nil {
		if e.Kind == observed.NotFound {
			return nil, false, nil
		}
		return nil, false, e
	}
	return found, true, nil
}

// Nodegroup describes a nodegroup. It returns nil if the nodegroup does not exist.
func (r *Reader) Nodegroup(ctx context.Context, name observed.NodegroupName) (*observed.Nodegroup, error) {
	out, err := r.EKS.DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: aws.String(name.Cluster), NodegroupName: aws.String(name.Name)})
	if e := sdk.Classify("eks", "DescribeNodegroup", err); e != nil {
		if e.Kind == observed.NotFound {
			return nil, nil //nolint:nilnil // documented: nil stands for absent
		}
		return nil, e
	}
	if out.Nodegroup == nil {
		return nil, sdk.Incomplete("eks", "DescribeNodegroup", "nodegroup")
	}
	n := convert.Nodegroup(out.Nodegroup)
	return &n, nil
}

// Updates lists the ids of a nodegroup's updates, in no order. It returns none if the nodegroup is gone.
func (r *Reader) Updates(ctx context.Context, name observed.NodegroupName) (ids []string, err error) {
	in := &eks.ListUpdatesInput{Name: aws.String(name.Cluster), NodegroupName: aws.String(name.Name), MaxResults: aws.Int32(namesPage)}
	err = sdk.EachPage(ctx, "eks", "ListUpdates", func(ctx context.Context, token *string) (*string, error) {
		in.NextToken = token
		out, err := r.EKS.ListUpdates(ctx, in)
		if err != nil {
			return nil, err
		}
		ids = append(ids, out.UpdateIds...)
		return out.NextToken, sdk.TooMany(len(ids))
	})
	if e := sdk.Classify("eks", "ListUpdates", err); e != nil {
		if e.Kind == observed.NotFound {
			return nil, nil
		}
		return nil, e
	}
	return ids, nil
}

// Update reads an update. If AWS has forgotten it, only its id is set.
func (r *Reader) Update(ctx context.Context, name observed.NodegroupName, id string) (observed.NodegroupUpdate, error) {
	out, err := r.EKS.DescribeUpdate(ctx, &eks.DescribeUpdateInput{
		Name: aws.String(name.Cluster), NodegroupName: aws.String(name.Name), UpdateId: aws.String(id),
	})
	if e := sdk.Classify("eks", "DescribeUpdate", err); e != nil {
		if e.Kind == observed.NotFound {
			return observed.NodegroupUpdate{ID: id}, nil
		}
		return observed.NodegroupUpdate{}, e
	}
	if out.Update == nil {
		return observed.NodegroupUpdate{}, sdk.Incomplete("eks", "DescribeUpdate", "update")
	}
	return convert.NodegroupUpdate(out.Update), nil
}
