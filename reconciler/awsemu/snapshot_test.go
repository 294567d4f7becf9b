package awsemu_test

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// An account sees the snapshots of its own images, and not those of others that it may launch.
func TestSnapshots(t *testing.T) {
	e := start(t, awsemu.Options{})
	if err := e.srv.Seed(strings.NewReader(`{"regions": {"eu-west-1": {"images": [{"id": "ami-0123456789abcdef0", "name": "ours", "architecture": "x86_64", "volumeGiB": 12}]}}}`)); err != nil {
		t.Fatal(err)
	}
	snapshotOf := func(filter, value string) string {
		images, err := e.ec2().DescribeImages(t.Context(), &ec2.DescribeImagesInput{Filters: []types.Filter{{Name: aws.String(filter), Values: []string{value}}}})
		if err != nil || len(images.Images) == 0 {
			t.Fatal(err, len(images.Images))
		}
		return aws.ToString(images.Images[0].BlockDeviceMappings[0].Ebs.SnapshotId)
	}
	ours, theirs := snapshotOf("name", "ours"), snapshotOf("owner-alias", "amazon")
	out, err := e.ec2().DescribeSnapshots(t.Context(), &ec2.DescribeSnapshotsInput{MaxResults: aws.Int32(1000), Filters: []types.Filter{{Name: aws.String("snapshot-id"), Values: []string{ours, theirs}}}})
	if err != nil || len(out.Snapshots) != 1 || aws.ToString(out.Snapshots[0].SnapshotId) != ours || aws.ToInt32(out.Snapshots[0].VolumeSize) != 12 {
		t.Errorf("%v %+v", err, out)
	}
	for id, code := range map[string]string{theirs: "InvalidSnapshot.NotFound", "x": "InvalidParameterValue"} {
		if _, err := e.ec2().DescribeSnapshots(t.Context(), &ec2.DescribeSnapshotsInput{SnapshotIds: []string{id}}); err == nil || !strings.Contains(err.Error(), code) {
			t.Errorf("%s: %v", id, err)
		}
	}
}
