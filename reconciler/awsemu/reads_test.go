package awsemu_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

func TestRegionReads(t *testing.T) {
	e := start(t, awsemu.Options{})
	regions := must(e.ec2().DescribeRegions(ctx, &ec2.DescribeRegionsInput{Filters: []types.Filter{ec2Filter("opt-in-status", "opt-in-not-required")}}))(t).Regions
	if len(regions) != 17 || aws.ToString(regions[0].Endpoint) != "ec2."+aws.ToString(regions[0].RegionName)+".amazonaws.com" {
		t.Errorf("%d regions, first %+v", len(regions), regions[0])
	}
	_, err := e.ec2().DescribeRegions(ctx, &ec2.DescribeRegionsInput{RegionNames: []string{"eu-west-9"}})
	wantCode(t, err, "InvalidParameterValue")
	attributes := must(e.ec2().DescribeAccountAttributes(ctx, &ec2.DescribeAccountAttributesInput{AttributeNames: []types.AccountAttributeName{"default-vpc"}}))(t).AccountAttributes
	if len(attributes) != 1 || aws.ToString(attributes[0].AttributeValues[0].AttributeValue) != e.defaultVPC() {
		t.Errorf("%+v", attributes)
	}
	e.seed(`{"vpcs": [{"id": "vpc-0123456789abcdef0", "cidr": "10.0.0.0/16"}]}`)
	for vpc, want := range map[string]bool{e.defaultVPC(): true, "vpc-0123456789abcdef0": false} {
		names := must(e.ec2().DescribeVpcAttribute(ctx, &ec2.DescribeVpcAttributeInput{VpcId: aws.String(vpc), Attribute: "enableDnsHostnames"}))(t)
		support := must(e.ec2().DescribeVpcAttribute(ctx, &ec2.DescribeVpcAttributeInput{VpcId: aws.String(vpc), Attribute: "enableDnsSupport"}))(t)
		if aws.ToBool(names.EnableDnsHostnames.Value) != want || !aws.ToBool(support.EnableDnsSupport.Value) || names.EnableDnsSupport != nil {
			t.Errorf("%s: %+v, %+v", vpc, names, support)
		}
	}
	_, err = e.ec2().DescribeVpcAttribute(ctx, &ec2.DescribeVpcAttributeInput{VpcId: aws.String("vpc-0123456789abcdefa"), Attribute: "enableDnsSupport"})
	wantCode(t, err, "InvalidVpcID.NotFound")
}

func TestSpotPrices(t *testing.T) {
	e := start(t, awsemu.Options{})
	out := must(e.ec2().DescribeSpotPriceHistory(ctx, &ec2.DescribeSpotPriceHistoryInput{InstanceTypes: []types.InstanceType{"m5.large", "m5.xlarge"}, ProductDescriptions: []string{"Linux/UNIX (Amazon VPC)"}}))(t)
	if len(out.SpotPriceHistory) != 6 {
		t.Fatalf("%+v", out.SpotPriceHistory)
	}
	small, big := out.SpotPriceHistory[0], out.SpotPriceHistory[3]
	if small.InstanceType != "m5.large" || big.InstanceType != "m5.xlarge" || aws.ToString(small.SpotPrice) >= aws.ToString(big.SpotPrice) || small.Timestamp.After(epoch) {
		t.Errorf("%+v, %+v", small, big)
	}
	n := 0
	pages := ec2.NewDescribeSpotPriceHistoryPaginator(e.ec2(), &ec2.DescribeSpotPriceHistoryInput{AvailabilityZone: aws.String("eu-west-1b"), MaxResults: aws.Int32(7), InstanceTypes: []types.InstanceType{"m5.large", "c5.large", "r5.large", "m6i.large", "m6g.large"}})
	for pages.HasMorePages() {
		n += len(must(pages.NextPage(ctx))(t).SpotPriceHistory)
	}
	if n != 10 {
		t.Errorf("%d prices on pages", n)
	}
}

// TestInstanceReads: what is told of a machine follows from what it was launched with.
func TestInstanceReads(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.seed(strings.TrimSuffix(runSeed, "}") + `, "volumes": [{"id": "vol-0123456789abcdef0", "zone": "eu-west-1a", "gib": 100, "tags": {"kept": "yes"}}]}`)
	in := e.launch()
	in.UserData, in.DisableApiTermination = aws.String(base64.StdEncoding.EncodeToString([]byte("#!/bin/sh"))), aws.Bool(true)
	in.BlockDeviceMappings = []types.BlockDeviceMapping{
		{DeviceName: aws.String("/dev/xvda"), Ebs: &types.EbsBlockDevice{VolumeSize: aws.Int32(33), VolumeType: "gp3"}},
		{DeviceName: aws.String("/dev/sdb"), Ebs: &types.EbsBlockDevice{VolumeSize: aws.Int32(5), Encrypted: aws.Bool(true), DeleteOnTermination: aws.Bool(false)}},
	}
	in.TagSpecifications = []types.TagSpecification{{ResourceType: "instance", Tags: []types.Tag{{Key: aws.String("Name"), Value: aws.String("one")}}}, {ResourceType: "volume", Tags: []types.Tag{{Key: aws.String("of"), Value: aws.String("one")}}}}
	id := must(e.ec2().RunInstances(ctx, in))(t).Instances[0].InstanceId
	if out := must(e.ec2().DescribeInstanceStatus(ctx, &ec2.DescribeInstanceStatusInput{}))(t); len(out.InstanceStatuses) != 0 {
		t.Errorf("a pending instance has a status: %+v", out.InstanceStatuses)
	}
	if out := must(e.ec2().DescribeInstanceStatus(ctx, &ec2.DescribeInstanceStatusInput{IncludeAllInstances: aws.Bool(true)}))(t); len(out.InstanceStatuses) != 1 || out.InstanceStatuses[0].InstanceStatus.Status != "not-applicable" {
		t.Errorf("all: %+v", out.InstanceStatuses)
	}
	e.wait(2 * time.Second)
	if out := must(e.ec2().DescribeInstanceStatus(ctx, &ec2.DescribeInstanceStatusInput{Filters: []types.Filter{ec2Filter("instance-status.status", "ok")}}))(t); len(out.InstanceStatuses) != 1 || out.InstanceStatuses[0].SystemStatus.Details[0].Status != "passed" {
		t.Errorf("running: %+v", out.InstanceStatuses)
	}
	attribute := func(name types.InstanceAttributeName) *ec2.DescribeInstanceAttributeOutput {
		t.Helper()
		return must(e.ec2().DescribeInstanceAttribute(ctx, &ec2.DescribeInstanceAttributeInput{InstanceId: id, Attribute: name}))(t)
	}
	if a := attribute("userData"); aws.ToString(a.UserData.Value) != *in.UserData || a.InstanceType != nil {
		t.Errorf("%+v", a)
	}
	if a := attribute("disableApiTermination"); !aws.ToBool(a.DisableApiTermination.Value) {
		t.Errorf("%+v", a)
	}
	if a := attribute("groupSet"); len(a.Groups) != 1 || aws.ToString(a.Groups[0].GroupName) != "nodes" {
		t.Errorf("%+v", a)
	}
	if a := attribute("blockDeviceMapping"); len(a.BlockDeviceMappings) != 2 || aws.ToBool(a.BlockDeviceMappings[1].Ebs.DeleteOnTermination) {
		t.Errorf("%+v", a)
	}
	for _, name := range types.InstanceAttributeName("").Values() {
		attribute(name)
	}
	_, err := e.ec2().TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{*id}})
	wantCode(t, err, "OperationNotPermitted")

	volumes := must(e.ec2().DescribeVolumes(ctx, &ec2.DescribeVolumesInput{Filters: []types.Filter{ec2Filter("attachment.instance-id", *id), ec2Filter("tag:of", "one")}}))(t).Volumes
	if len(volumes) != 2 {
		t.Fatalf("volumes %+v", volumes)
	}
	sizes := map[int32]types.VolumeType{}
	for _, v := range volumes {
		sizes[aws.ToInt32(v.Size)] = v.VolumeType
	}
	if sizes[33] != "gp3" || sizes[5] != "gp2" {
		t.Errorf("volumes %v", sizes)
	}
	free := must(e.ec2().DescribeVolumes(ctx, &ec2.DescribeVolumesInput{Filters: []types.Filter{ec2Filter("status", "available")}}))(t).Volumes
	if len(free) != 1 || aws.ToInt32(free[0].Size) != 100 || len(free[0].Tags) != 1 {
		t.Errorf("seeded volumes %+v", free)
	}
	_, err = e.ec2().DescribeVolumes(ctx, &ec2.DescribeVolumesInput{VolumeIds: []string{"vol-0123456789abcdefa"}})
	wantCode(t, err, "InvalidVolume.NotFound")

	data := must(e.ec2().GetLaunchTemplateData(ctx, &ec2.GetLaunchTemplateDataInput{InstanceId: id}))(t).LaunchTemplateData
	if aws.ToString(data.ImageId) != *in.ImageId || data.InstanceType != "m5.large" || aws.ToString(data.UserData) != *in.UserData || len(data.BlockDeviceMappings) != 2 ||
		aws.ToString(data.NetworkInterfaces[0].SubnetId) != tinySubnet || aws.ToString(data.TagSpecifications[0].Tags[0].Value) != "one" || !aws.ToBool(data.DisableApiTermination) {
		t.Errorf("%+v", data)
	}
	_, err = e.ec2().GetLaunchTemplateData(ctx, &ec2.GetLaunchTemplateDataInput{InstanceId: aws.String("i-0123456789abcdefa")})
	wantCode(t, err, "InvalidInstanceID.NotFound")

	var saved bytes.Buffer
	if err := e.srv.Save(&saved); err != nil {
		t.Fatal(err)
	}
	again := start(t, awsemu.Options{Clock: e.clock})
	if err := again.srv.Load(&saved); err != nil {
		t.Fatal(err)
	}
	if all := must(again.ec2().DescribeVolumes(ctx, &ec2.DescribeVolumesInput{}))(t).Volumes; len(all) != 3 {
		t.Errorf("after a restart %d volumes", len(all))
	}
}

// TestVolumesOfGroups: those of machines that Auto Scaling launched go with them.
func TestVolumesOfGroups(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.group("web", 2)
	e.wait(2 * time.Second)
	volumes := func() int {
		return len(must(e.ec2().DescribeVolumes(ctx, &ec2.DescribeVolumesInput{}))(t).Volumes)
	}
	if n := volumes(); n != 2 {
		t.Errorf("%d volumes of two machines", n)
	}
	must(e.autoscaling().DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: aws.String("web"), ForceDelete: aws.Bool(true)}))(t)
	e.wait(time.Minute)
	if n := volumes(); n != 0 {
		t.Errorf("%d volumes of no machine", n)
	}
}

const accessSeed = `{"roles": ["admin"], "clusters": [{"name": "prod", "version": "1.32", "authenticationMode": "API",
	"addons": [{"name": "vpc-cni"}, {"name": "kube-proxy", "version": "v1.32.0-eksbuild.1"}],
	"accessEntries": [{"principalArn": "arn:aws:iam::000000000000:role/admin", "policies": ["AmazonEKSClusterAdminPolicy"]}]}]}`

func TestClusterReads(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.seed(accessSeed)
	c, prod := e.eks(), aws.String("prod")
	if names := must(c.ListAddons(ctx, &eks.ListAddonsInput{ClusterName: prod}))(t).Addons; strings.Join(names, " ") != "kube-proxy vpc-cni" {
		t.Errorf("add-ons %v", names)
	}
	if a := must(c.DescribeAddon(ctx, &eks.DescribeAddonInput{ClusterName: prod, AddonName: aws.String("kube-proxy")}))(t).Addon; aws.ToString(a.AddonVersion) != "v1.32.0-eksbuild.1" || a.Status != "ACTIVE" {
		t.Errorf("%+v", a)
	}
	_, err := c.DescribeAddon(ctx, &eks.DescribeAddonInput{ClusterName: prod, AddonName: aws.String("coredns")})
	wantCode(t, err, "ResourceNotFoundException")
	versions := must(c.DescribeAddonVersions(ctx, &eks.DescribeAddonVersionsInput{AddonName: aws.String("kube-proxy"), KubernetesVersion: aws.String("1.32")}))(t).Addons
	if len(versions) != 1 || len(versions[0].AddonVersions) != 2 || aws.ToString(versions[0].AddonVersions[0].AddonVersion) != "v1.32.1-eksbuild.2" || !versions[0].AddonVersions[0].Compatibilities[0].DefaultVersion {
		t.Errorf("%+v", versions)
	}
	entries := must(c.ListAccessEntries(ctx, &eks.ListAccessEntriesInput{ClusterName: prod}))(t).AccessEntries
	if len(entries) != 1 {
		t.Fatalf("entries %v", entries)
	}
	if a := must(c.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{ClusterName: prod, PrincipalArn: &entries[0]}))(t).AccessEntry; aws.ToString(a.Type) != "STANDARD" || aws.ToString(a.Username) != entries[0] {
		t.Errorf("%+v", a)
	}
	policies := must(c.ListAssociatedAccessPolicies(ctx, &eks.ListAssociatedAccessPoliciesInput{ClusterName: prod, PrincipalArn: &entries[0]}))(t).AssociatedAccessPolicies
	all := must(c.ListAccessPolicies(ctx, &eks.ListAccessPoliciesInput{}))(t).AccessPolicies
	if len(policies) != 1 || len(all) != 5 || !strings.HasSuffix(aws.ToString(policies[0].PolicyArn), "/AmazonEKSClusterAdminPolicy") {
		t.Errorf("%+v of %d", policies, len(all))
	}
	_, err = c.DescribeAccessEntry(ctx, &eks.DescribeAccessEntryInput{ClusterName: prod, PrincipalArn: aws.String("arn:aws:iam::000000000000:role/none")})
	wantCode(t, err, "ResourceNotFoundException")
	_, err = c.ListAccessEntries(ctx, &eks.ListAccessEntriesInput{ClusterName: aws.String("demo")}) // reads the ConfigMap
	wantCode(t, err, "InvalidRequestException")

	known := must(c.DescribeClusterVersions(ctx, &eks.DescribeClusterVersionsInput{}))(t).ClusterVersions
	newest := must(c.DescribeClusterVersions(ctx, &eks.DescribeClusterVersionsInput{DefaultOnly: aws.Bool(true)}))(t).ClusterVersions
	old := must(c.DescribeClusterVersions(ctx, &eks.DescribeClusterVersionsInput{VersionStatus: "EXTENDED_SUPPORT"}))(t).ClusterVersions
	if len(newest) != 1 || aws.ToString(newest[0].ClusterVersion) != aws.ToString(known[0].ClusterVersion) || len(old) != len(known)-4 || !known[0].EndOfStandardSupportDate.After(*known[0].ReleaseDate) {
		t.Errorf("%d versions, %d in extended support, newest %+v", len(known), len(old), newest)
	}

	in := e.nodegroupInput("web")
	in.ClusterName = prod
	must(c.CreateNodegroup(ctx, in))(t)
	e.wait(time.Minute)
	if entries := must(c.ListAccessEntries(ctx, &eks.ListAccessEntriesInput{ClusterName: prod}))(t).AccessEntries; len(entries) != 2 {
		t.Errorf("entries with nodes %v", entries)
	}
	status := func() ekstypes.InsightStatusValue {
		t.Helper()
		return must(c.ListInsights(ctx, &eks.ListInsightsInput{ClusterName: prod}))(t).Insights[0].InsightStatus.Status
	}
	for version, want := range []ekstypes.InsightStatusValue{"PASSING", "PASSING", "WARNING"} {
		if version > 0 {
			must(c.UpdateClusterVersion(ctx, &eks.UpdateClusterVersionInput{Name: prod, Version: aws.String([]string{"", "1.33", "1.34"}[version])}))(t)
			e.wait(time.Minute)
		}
		if got := status(); got != want {
			t.Errorf("nodes %d versions behind: %s", version, got)
		}
	}
	one := must(c.ListInsights(ctx, &eks.ListInsightsInput{ClusterName: prod, Filter: &ekstypes.InsightsFilter{Statuses: []ekstypes.InsightStatusValue{"WARNING"}}}))(t).Insights[0]
	if i := must(c.DescribeInsight(ctx, &eks.DescribeInsightInput{ClusterName: prod, Id: one.Id}))(t).Insight; len(i.Resources) != 1 || i.Resources[0].InsightStatus.Status != "WARNING" {
		t.Errorf("%+v", i)
	}
	_, err = c.DescribeInsight(ctx, &eks.DescribeInsightInput{ClusterName: prod, Id: aws.String("none")})
	wantCode(t, err, "ResourceNotFoundException")
}

func TestRoleReads(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.seed(`{"instanceProfiles": ["machines"]}`)
	names, pages := 0, iam.NewListRolesPaginator(e.iam(), &iam.ListRolesInput{MaxItems: aws.Int32(2)})
	for pages.HasMorePages() {
		names += len(must(pages.NextPage(ctx))(t).Roles)
	}
	if names != 6 {
		t.Errorf("%d roles", names)
	}
	if out := must(e.iam().ListRoles(ctx, &iam.ListRolesInput{PathPrefix: aws.String("/aws-service-role/")}))(t); len(out.Roles) != 0 {
		t.Errorf("%+v", out.Roles)
	}
	if out := must(e.iam().ListRolePolicies(ctx, &iam.ListRolePoliciesInput{RoleName: aws.String("machines")}))(t); len(out.PolicyNames) != 0 || out.IsTruncated {
		t.Errorf("%+v", out)
	}
	if out := must(e.iam().ListInstanceProfilesForRole(ctx, &iam.ListInstanceProfilesForRoleInput{RoleName: aws.String("machines")}))(t); len(out.InstanceProfiles) != 1 || aws.ToString(out.InstanceProfiles[0].Roles[0].RoleName) != "machines" {
		t.Errorf("%+v", out)
	}
	if out := must(e.iam().ListAttachedRolePolicies(ctx, &iam.ListAttachedRolePoliciesInput{RoleName: aws.String("machines"), MaxItems: aws.Int32(1)}))(t); len(out.AttachedPolicies) != 1 || !out.IsTruncated {
		t.Errorf("%+v", out)
	}
	_, err := e.iam().ListRolePolicies(ctx, &iam.ListRolePoliciesInput{RoleName: aws.String("nobody")})
	wantCode(t, err, "NoSuchEntity")
}

// TestParameterHistory: versions are kept, and read by number too.
func TestParameterHistory(t *testing.T) {
	e := start(t, awsemu.Options{})
	name := aws.String("/ours/ami")
	for _, value := range []string{"a", "b", "c"} {
		must(e.ssm().PutParameter(ctx, &ssm.PutParameterInput{Name: name, Value: aws.String(value), Type: "String", Overwrite: aws.Bool(true)}))(t)
		e.advance(time.Minute)
	}
	history := must(e.ssm().GetParameterHistory(ctx, &ssm.GetParameterHistoryInput{Name: name}))(t).Parameters
	if len(history) != 3 || aws.ToString(history[0].Value) != "a" || history[2].Version != 3 || !history[0].LastModifiedDate.Before(*history[1].LastModifiedDate) || !strings.HasPrefix(aws.ToString(history[0].LastModifiedUser), "arn:aws:iam::") {
		t.Errorf("%+v", history)
	}
	first := must(e.ssm().GetParameterHistory(ctx, &ssm.GetParameterHistoryInput{Name: name, MaxResults: aws.Int32(2)}))(t)
	rest := must(e.ssm().GetParameterHistory(ctx, &ssm.GetParameterHistoryInput{Name: name, MaxResults: aws.Int32(2), NextToken: first.NextToken}))(t)
	if len(first.Parameters) != 2 || len(rest.Parameters) != 1 || rest.NextToken != nil {
		t.Errorf("pages of %d and %d", len(first.Parameters), len(rest.Parameters))
	}
	if p := must(e.ssm().GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/ours/ami:2")}))(t).Parameter; aws.ToString(p.Value) != "b" || p.Version != 2 {
		t.Errorf("%+v", p)
	}
	for range 100 {
		must(e.ssm().PutParameter(ctx, &ssm.PutParameterInput{Name: name, Value: aws.String("d"), Overwrite: aws.Bool(true)}))(t)
	}
	_, err := e.ssm().GetParameter(ctx, &ssm.GetParameterInput{Name: aws.String("/ours/ami:3")})
	wantCode(t, err, "ParameterVersionNotFound")
	_, err = e.ssm().GetParameterHistory(ctx, &ssm.GetParameterHistoryInput{Name: aws.String("/none")})
	wantCode(t, err, "ParameterNotFound")
}
