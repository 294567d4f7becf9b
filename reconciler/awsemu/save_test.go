package awsemu_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// TestSavedStateKeepsItsForm: a state is read by later emulators, so what leads from one
// room to another must not slip into it, nor may a room take its place under another
// name.
func TestSavedStateKeepsItsForm(t *testing.T) {
	e := start(t, awsemu.Options{})
	if err := e.srv.Seed(strings.NewReader(`{"regions": {"eu-west-1": {"parameters": {"/ours/ami": "ami-0123456789abcdef0"}}}}`)); err != nil {
		t.Fatal(err)
	}
	var saved bytes.Buffer
	if err := e.srv.Save(&saved); err != nil {
		t.Fatal(err)
	}
	var state struct {
		State struct {
			Regions map[string]map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(saved.Bytes(), &state); err != nil {
		t.Fatal(err)
	}
	region := state.State.Regions["000000000000/eu-west-1"]
	for name, want := range map[string][]string{
		"":            {"Account", "AutoScaling", "CloudWatch", "DynamoDB", "EC2", "EKS", "ELB", "KMS", "Name", "SSM", "Tokens"},
		"EC2":         {"Images", "Instances", "KeyPairs", "LaunchTemplates", "MetadataDefaults", "PlacementGroups", "Reservations", "SecurityGroups", "Subnets", "TemplateNames", "Volumes", "Vpcs"},
		"SSM":         {"Parameters"},
		"KMS":         {"Aliases", "Keys", "Made"},
		"AutoScaling": {"ActivitySeq", "Gone", "Groups", "LaunchConfigs"},
		"EKS":         {"Clusters"},
		"ELB":         {"TargetGroups"},
		"DynamoDB":    {"Tables"},
	} {
		part := region
		if name != "" {
			part = nil
			if err := json.Unmarshal(region[name], &part); err != nil {
				t.Fatal(err)
			}
		}
		if got := slices.Sorted(maps.Keys(part)); !slices.Equal(got, want) {
			t.Errorf("%s is saved as %v, want %v", name, got, want)
		}
	}
	again, err := awsemu.New(awsemu.Options{Clock: e.clock})
	if err != nil {
		t.Fatal(err)
	}
	text := saved.String()
	if err := again.Load(&saved); err != nil {
		t.Fatal(err)
	}
	var twice bytes.Buffer
	if err := again.Save(&twice); err != nil {
		t.Fatal(err)
	}
	if twice.String() != text {
		t.Error("a state that is loaded and saved is another")
	}
}

// everySeed has one of each kind of object that a seed may have.
const everySeed = `{"account": "111122223333", "regions": {
  "eu-west-1": {
    "vpcs": [{"id": "vpc-0123456789abcdef0", "cidr": "10.0.0.0/16", "tags": {"Name": "main"}}],
    "subnets": [{"id": "subnet-0123456789abcdef0", "vpc": "vpc-0123456789abcdef0", "zone": "eu-west-1a", "cidr": "10.0.0.0/24", "public": true},
                {"id": "subnet-0123456789abcdef1", "vpc": "vpc-0123456789abcdef0", "zone": "eu-west-1b", "cidr": "10.0.1.0/24", "tags": {"tier": "nodes"}}],
    "securityGroups": [{"id": "sg-0123456789abcdef0", "name": "nodes", "description": "nodes", "vpc": "vpc-0123456789abcdef0", "tags": {"a": "b"}}],
    "images": [{"id": "ami-0123456789abcdef0", "name": "ours-1", "architecture": "arm64", "created": "2025-11-01T00:00:00Z", "volumeGiB": 30}],
    "parameters": {"/ours/ami": "ami-0123456789abcdef0"},
    "keyPairs": ["admin"], "roles": ["cluster"], "instanceProfiles": ["machines"],
    "clusters": [{"name": "prod", "version": "1.33", "roleArn": "arn:aws:iam::111122223333:role/cluster", "tags": {"c": "d"},
                  "subnetIds": ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"], "securityGroupIds": ["sg-0123456789abcdef0"]},
                 {"name": "dev"}]},
  "us-east-1": {"clusters": [{"name": "dev"}, {"name": "demo"}]}}}`

// TestASeedIsGivenAgain: an emulator that keeps its state is started with the same seed
// each time, and what the state has of it stays as it is.
func TestASeedIsGivenAgain(t *testing.T) {
	save := func(s *awsemu.Server) string {
		t.Helper()
		var saved bytes.Buffer
		if err := s.Save(&saved); err != nil {
			t.Fatal(err)
		}
		return saved.String()
	}
	e := start(t, awsemu.Options{})
	if err := e.srv.Seed(strings.NewReader(everySeed)); err != nil {
		t.Fatal(err)
	}
	text := save(e.srv)
	for _, part := range []string{"ours-1", "/ours/ami", "admin", "role/cluster", "instance-profile/machines", "cluster/prod", "cluster/dev"} {
		if !strings.Contains(text, part) {
			t.Fatalf("%s was not seeded", part)
		}
	}
	again, err := awsemu.New(awsemu.Options{Clock: e.clock})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Load(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	if err := again.Seed(strings.NewReader(everySeed)); err != nil {
		t.Fatalf("a seed given again: %v", err)
	}
	if save(again) != text {
		t.Error("a seed that is given again changes what is there")
	}
}

// TestASeedLeavesWhatWasMadeByHand: somebody deleted seeded objects and made others of
// their names, or moved one on.
func TestASeedLeavesWhatWasMadeByHand(t *testing.T) {
	e := start(t, awsemu.Options{})
	const seed = `{"regions": {"eu-west-1": {"clusters": [{"name": "prod", "version": "1.33"}], "keyPairs": ["admin"], "vpcs": [{"id": "vpc-0123456789abcdef0", "cidr": "10.0.0.0/16"}]%s}}}`
	if err := e.srv.Seed(strings.NewReader(fmt.Sprintf(seed, ""))); err != nil {
		t.Fatal(err)
	}
	must(e.ec2().DeleteKeyPair(ctx, &ec2.DeleteKeyPairInput{KeyName: aws.String("admin")}))(t)
	key := must(e.ec2().ImportKeyPair(ctx, &ec2.ImportKeyPairInput{KeyName: aws.String("admin"), PublicKeyMaterial: sshKey("ssh-ed25519", bytes.Repeat([]byte{7}, 32))}))(t)
	group := must(e.ec2().CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{GroupName: aws.String("nodes"), Description: aws.String("by hand"), VpcId: aws.String("vpc-0123456789abcdef0")}))(t)
	must(e.eks().UpdateClusterVersion(ctx, &eks.UpdateClusterVersionInput{Name: aws.String("prod"), Version: aws.String("1.34")}))(t)
	e.clock.Advance(time.Hour)
	more := fmt.Sprintf(seed, `, "securityGroups": [{"id": "sg-0123456789abcdef0", "name": "nodes", "description": "nodes", "vpc": "vpc-0123456789abcdef0"}]`)
	if err := e.srv.Seed(strings.NewReader(more)); err != nil {
		t.Fatalf("a seed given again: %v", err)
	}
	keys := must(e.ec2().DescribeKeyPairs(ctx, &ec2.DescribeKeyPairsInput{KeyNames: []string{"admin"}}))(t).KeyPairs
	if len(keys) != 1 || *keys[0].KeyPairId != *key.KeyPairId {
		t.Errorf("key pairs = %v, want the one that was made by hand", keys)
	}
	groups := must(e.ec2().DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{ec2Filter("group-name", "nodes")}}))(t).SecurityGroups
	if len(groups) != 1 || *groups[0].GroupId != *group.GroupId {
		t.Errorf("security groups = %v, want the one that was made by hand", groups)
	}
	if c := must(e.eks().DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("prod")}))(t).Cluster; *c.Version != "1.34" {
		t.Errorf("the cluster's version is %s, want 1.34", *c.Version)
	}
}
