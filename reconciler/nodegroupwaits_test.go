package reconciler_test

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/awsemu"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
)

// IAM tells EKS of a new role some time after it was made: the nodegroup is asked
// for again in the next pass, and not parked like what is wrong.
func TestANodegroupWaitsForItsRoleToPropagate(t *testing.T) {
	w := newWorld(t)
	w.srv.Faults().Add(awsemu.Fault{Kind: awsemu.FailBefore, Operation: "CreateNodegroup", Code: "ResourcePropagationDelayException", Status: 428, Times: 12})
	blue := target("blue", nodegroupPool("ng", 2))
	r := w.must(reconciler.Apply, blue)[0]
	if len(r.Failures()) == 0 {
		t.Fatalf("the call succeeded: %v", r.Outcomes)
	}
	w.settle(blue)
	if n := w.srv.CallCounts()["eks:CreateNodegroup"]; n != 13 {
		t.Errorf("CreateNodegroup was called %d times, want the 12 that failed and one", n)
	}
}

// A nodegroup whose update waits for a window is not described for that in each pass;
// it is before the update begins.
func TestANodegroupThatWaitsForAWindow(t *testing.T) {
	w := newWorld(t)
	w.scope.Round = time.Hour
	w.settle(target("blue", nodegroupPool("ng", 1)))
	next := changed(nodegroupPool("ng", 1), nil)
	next.Policy.Gates.Window = "the window opens tomorrow"
	w.must(reconciler.Apply, next) // the version is made
	w.srv.ResetCalls()
	for range 12 {
		w.must(reconciler.Apply, next)
		w.clock.Advance(5 * time.Second)
	}
	if n := w.srv.CallCounts()["eks:DescribeNodegroup"]; n > 1 {
		t.Errorf("described %d times in a minute", n)
	}
	w.srv.ResetCalls()
	next.Policy.Gates.Window = ""
	w.must(reconciler.Apply, next)
	if n := w.srv.CallCounts(); n["eks:DescribeNodegroup"] != 1 || n["eks:UpdateNodegroupVersion"] != 1 {
		t.Errorf("once the window is open: %v", n)
	}
}

// A cluster that is being made has no nodegroups yet; they follow by themselves.
func TestANodegroupWaitsForItsCluster(t *testing.T) {
	w := newWorld(t)
	ctx, client := context.Background(), w.eks()
	demo, err := client.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("demo")})
	if err != nil {
		t.Fatal(err)
	}
	w.check(client.CreateCluster(ctx, &eks.CreateClusterInput{Name: aws.String("young"), RoleArn: demo.Cluster.RoleArn,
		ResourcesVpcConfig: &ekstypes.VpcConfigRequest{SubnetIds: demo.Cluster.ResourcesVpcConfig.SubnetIds}}))
	pool := nodegroupPool("ng", 2)
	pool.Nodegroup.ClusterName, pool.Nodegroup.Cluster.Name = "young", "young"
	blue := target("blue", pool)
	w.srv.ResetCalls()
	r := w.must(reconciler.Apply, blue)[0]
	if _, writes := w.calls(); writes != 0 || !hasCode(r, "cluster-not-ready") || r.Diagnostics.HasErrors() {
		t.Errorf("while the cluster is made: %d writes, %v", writes, r.Diagnostics)
	}
	if s := r.Pools[0]; r.Converged() || s.Phase != plan.PhasePending || s.FailureReason != "" || len(r.Outcomes) != 1 || r.Outcomes[0].Status != step.Held {
		t.Errorf("while the cluster is made: %v, %+v", r.Outcomes, s)
	}
	w.clock.Advance(1e12)
	w.settle(blue)
}
