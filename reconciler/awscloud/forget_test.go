package awscloud_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
)

// A resource that was made, looked at and deleted leaves nothing behind, also where
// nobody asks about its cluster any more.
func TestWhatIsGoneIsForgotten(t *testing.T) {
	e := start(t)
	cfg, err := config.LoadDefaultConfig(t.Context(), config.WithRegion(region), config.WithBaseEndpoint(e.url),
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("weir", "weir", "")))
	if err != nil {
		t.Fatal(err)
	}
	client := eks.NewFromConfig(cfg)
	demo, err := client.DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String(eksCluster)})
	if err != nil {
		t.Fatal(err)
	}
	for round := range 3 {
		q, all := query(), []observed.NodegroupName{}
		for i := range 3 {
			cluster := fmt.Sprintf("c%d-%d", round, i)
			if _, err := client.CreateCluster(t.Context(), &eks.CreateClusterInput{Name: &cluster, RoleArn: demo.Cluster.RoleArn, ResourcesVpcConfig: &ekstypes.VpcConfigRequest{SubnetIds: demo.Cluster.ResourcesVpcConfig.SubnetIds}}); err != nil {
				t.Fatal(err)
			}
			e.clock.Advance(20 * time.Minute)
			create := createNodegroup(e, cluster+"-web")
			create.Nodegroup.Cluster = cluster
			e.do(create)
			all = append(all, create.Nodegroup.NodegroupName)
			q.EKSClusters = append(q.EKSClusters, cluster)
		}
		q.Round = time.Hour
		e.clock.Advance(time.Minute)
		s := e.observe(q)
		if _, err := e.cloud.Fill(t.Context(), s, observed.Needs{Activities: []observed.ActivityQuery{{Group: "web", Finding: fmt.Sprint(round)}}}); err != nil {
			t.Fatal(err)
		}
		for _, name := range all {
			e.do(step.UpdateNodegroupConfig{NodegroupName: name, MaxSize: ptr(int32(4)), Token: name.Name})
		}
		e.clock.Advance(time.Minute)
		s = e.observe(q)
		if _, err := e.cloud.Fill(t.Context(), s, observed.Needs{Updates: all}); err != nil {
			t.Fatal(err)
		}
		had := e.cloud.Remembered()
		if had["nodegroups"] < 3 || had["updates"] < 3 || had["activities"] == 0 {
			t.Fatalf("round %d: %v", round, had)
		}
		if round == 1 {
			continue // somebody else keeps them; weir does not ask any more
		}
		for _, name := range all {
			e.do(step.DeleteNodegroup{NodegroupName: name})
		}
		e.clock.Advance(time.Minute)
		e.observe(q)
	}
	e.clock.Advance(2 * time.Hour)
	e.observe(query())
	want := map[string]int{"nodegroups": 0, "updates": 0, "made": 0, "hooks": 0, "activities": 0, "gone": 0, "templates": 0}
	if d := cmp.Diff(want, e.cloud.Remembered()); d != "" {
		t.Errorf("remembered (-want +got):\n%s", d)
	}
}
