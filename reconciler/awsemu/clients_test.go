package awsemu_test

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// TestClusterAutoscaler makes the calls of Kubernetes' Cluster Autoscaler: it learns the
// instance types, discovers groups by their tags, asks the template what a new node will
// be and EKS what it will be labelled, scales up, looks for failures, and removes a node.
func TestClusterAutoscaler(t *testing.T) {
	e := start(t, awsemu.Options{})
	vcpus := map[types.InstanceType]int32{}
	kinds := ec2.NewDescribeInstanceTypesPaginator(e.ec2(), &ec2.DescribeInstanceTypesInput{})
	for kinds.HasMorePages() {
		for _, k := range must(kinds.NextPage(ctx))(t).InstanceTypes {
			vcpus[k.InstanceType] = aws.ToInt32(k.VCpuInfo.DefaultVCpus)
		}
	}
	id := e.template("nodes", e.machine())
	e.create(&autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: aws.String("nodes"), MinSize: aws.Int32(0), MaxSize: aws.Int32(5), DesiredCapacity: aws.Int32(1),
		LaunchTemplate: spec(id, "$Latest"), VPCZoneIdentifier: e.subnets(),
		Tags: []asgtypes.Tag{{Key: aws.String("k8s.io/cluster-autoscaler/enabled"), Value: aws.String("true"), PropagateAtLaunch: aws.Bool(true)}, {Key: aws.String("k8s.io/cluster-autoscaler/prod"), Value: aws.String("owned")}}})
	e.group("other", 1)
	e.wait(2 * time.Second)
	discover := func() []asgtypes.AutoScalingGroup {
		t.Helper()
		return must(e.autoscaling().DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{MaxRecords: aws.Int32(100), Filters: []asgtypes.Filter{
			{Name: aws.String("tag-key"), Values: []string{"k8s.io/cluster-autoscaler/enabled"}}, {Name: aws.String("tag:k8s.io/cluster-autoscaler/prod"), Values: []string{"owned"}}}}))(t).AutoScalingGroups
	}
	groups := discover()
	if len(groups) != 1 || len(groups[0].Instances) != 1 {
		t.Fatalf("discovered %+v", groups)
	}
	g := groups[0]
	version := must(e.ec2().DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: g.LaunchTemplate.LaunchTemplateId, Versions: []string{aws.ToString(g.LaunchTemplate.Version)}}))(t).LaunchTemplateVersions[0]
	if vcpus[version.LaunchTemplateData.InstanceType] != 2 {
		t.Errorf("a new node of %s would have %d vCPUs", version.LaunchTemplateData.InstanceType, vcpus[version.LaunchTemplateData.InstanceType])
	}
	must(e.autoscaling().SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{AutoScalingGroupName: g.AutoScalingGroupName, DesiredCapacity: aws.Int32(3), HonorCooldown: aws.Bool(false)}))(t)
	e.wait(2 * time.Second)
	failed := must(e.autoscaling().DescribeScalingActivities(ctx, &autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: g.AutoScalingGroupName}))(t).Activities
	for _, a := range failed {
		if a.StatusCode == asgtypes.ScalingActivityStatusCodeFailed {
			t.Errorf("%s", aws.ToString(a.StatusMessage))
		}
	}
	g = discover()[0]
	if len(g.Instances) != 3 {
		t.Fatalf("%d nodes after scaling up", len(g.Instances))
	}
	must(e.autoscaling().TerminateInstanceInAutoScalingGroup(ctx, &autoscaling.TerminateInstanceInAutoScalingGroupInput{InstanceId: g.Instances[1].InstanceId, ShouldDecrementDesiredCapacity: aws.Bool(true)}))(t)
	e.wait(time.Minute)
	if left := discover()[0]; len(left.Instances) != 2 || aws.ToInt32(left.DesiredCapacity) != 2 || aws.ToString(left.Instances[1].InstanceId) == aws.ToString(g.Instances[1].InstanceId) {
		t.Errorf("after the removal %+v", left.Instances)
	}

	in := e.nodegroupInput("managed")
	in.Labels = map[string]string{"pool": "managed"}
	e.createNodegroup(in)
	managed := e.untilNodegroup("managed", "ACTIVE")
	name := managed.Resources.AutoScalingGroups[0].Name
	behind := must(e.autoscaling().DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{aws.ToString(name)}}))(t).AutoScalingGroups[0]
	tags := map[string]string{}
	for _, tag := range behind.Tags {
		tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	again := must(e.eks().DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: aws.String(tags["eks:cluster-name"]), NodegroupName: aws.String(tags["eks:nodegroup-name"])}))(t).Nodegroup
	if again.Labels["pool"] != "managed" || tags["k8s.io/cluster-autoscaler/enabled"] != "true" {
		t.Errorf("labels %v, tags %v", again.Labels, tags)
	}
}

// TestEksctl makes the calls with which eksctl looks at a cluster and at where a new nodegroup of it can be. eksctl creates resources through
// CloudFormation.
func TestEksctl(t *testing.T) {
	e := start(t, awsemu.Options{})
	must(e.sts().GetCallerIdentity(ctx, &sts.GetCallerIdentityInput{}))(t)
	versions := must(e.eks().DescribeClusterVersions(ctx, &eks.DescribeClusterVersionsInput{}))(t).ClusterVersions
	names := must(e.eks().ListClusters(ctx, &eks.ListClustersInput{MaxResults: aws.Int32(100)}))(t).Clusters
	c := must(e.eks().DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String(names[0])}))(t).Cluster
	if !strings.Contains(aws.ToString(c.Version), aws.ToString(versions[0].ClusterVersion)) {
		t.Errorf("the cluster has %s, the newest is %s", aws.ToString(c.Version), aws.ToString(versions[0].ClusterVersion))
	}
	vpc := c.ResourcesVpcConfig.VpcId
	must(e.ec2().DescribeVpcs(ctx, &ec2.DescribeVpcsInput{VpcIds: []string{aws.ToString(vpc)}}))(t)
	for _, name := range []types.VpcAttributeName{"enableDnsSupport", "enableDnsHostnames"} {
		if a := must(e.ec2().DescribeVpcAttribute(ctx, &ec2.DescribeVpcAttributeInput{VpcId: vpc, Attribute: name}))(t); a.EnableDnsSupport == nil && a.EnableDnsHostnames == nil {
			t.Errorf("%s: %+v", name, a)
		}
	}
	subnets := must(e.ec2().DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{SubnetIds: c.ResourcesVpcConfig.SubnetIds}))(t).Subnets
	zones := must(e.ec2().DescribeAvailabilityZones(ctx, &ec2.DescribeAvailabilityZonesInput{Filters: []types.Filter{ec2Filter("region-name", "eu-west-1"), ec2Filter("state", "available"), ec2Filter("zone-type", "availability-zone")}}))(t).AvailabilityZones
	offered := must(e.ec2().DescribeInstanceTypeOfferings(ctx, &ec2.DescribeInstanceTypeOfferingsInput{LocationType: "availability-zone", Filters: []types.Filter{ec2Filter("instance-type", "m5.large"), ec2Filter("location", aws.ToString(zones[0].ZoneName))}}))(t).InstanceTypeOfferings
	if len(subnets) != 3 || len(zones) != 3 || len(offered) != 1 {
		t.Errorf("%d subnets, %d zones, %d offerings", len(subnets), len(zones), len(offered))
	}
	image := must(e.ssm().GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/aws/service/eks/optimized-ami/" + aws.ToString(c.Version) + "/amazon-linux-2023/x86_64/standard/recommended/image_id")}))(t).Parameter.Value
	if images := must(e.ec2().DescribeImages(ctx, &ec2.DescribeImagesInput{ImageIds: []string{aws.ToString(image)}}))(t).Images; images[0].RootDeviceType != "ebs" {
		t.Errorf("%+v", images)
	}
	role := aws.ToString(c.RoleArn)
	must(e.iam().GetRole(ctx, &iam.GetRoleInput{RoleName: aws.String(role[strings.LastIndex(role, "/")+1:])}))(t)
	addons := must(e.eks().ListAddons(ctx, &eks.ListAddonsInput{ClusterName: c.Name}))(t).Addons
	can := must(e.eks().DescribeAddonVersions(ctx, &eks.DescribeAddonVersionsInput{KubernetesVersion: c.Version}))(t).Addons
	if len(addons) != 0 || len(can) != 5 {
		t.Errorf("add-ons %v of %d", addons, len(can))
	}
	e.createNodegroup(e.nodegroupInput("web"))
	e.untilNodegroup("web", "ACTIVE")
	groups := must(e.eks().ListNodegroups(ctx, &eks.ListNodegroupsInput{ClusterName: c.Name}))(t).Nodegroups
	ng := e.nodegroup(groups[0])
	machines := must(e.ec2().DescribeInstances(ctx, &ec2.DescribeInstancesInput{Filters: []types.Filter{ec2Filter("tag:eks:nodegroup-name", groups[0])}}))(t).Reservations
	if len(machines) != int(aws.ToInt32(ng.ScalingConfig.DesiredSize)) || len(machines[0].Instances[0].BlockDeviceMappings) == 0 {
		t.Errorf("machines %+v", machines)
	}
}
