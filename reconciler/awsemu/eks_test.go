package awsemu_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

const nodeRole = "arn:aws:iam::000000000000:role/eks-nodegroup.cluster-api-provider-aws.sigs.k8s.io"

func (e *env) nodegroupInput(name string) *eks.CreateNodegroupInput {
	c := must(e.eks().DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("demo")}))(e.t).Cluster
	return &eks.CreateNodegroupInput{
		ClusterName: aws.String("demo"), NodegroupName: aws.String(name), NodeRole: aws.String(nodeRole), Subnets: c.ResourcesVpcConfig.SubnetIds,
		ScalingConfig: &ekstypes.NodegroupScalingConfig{MinSize: aws.Int32(1), MaxSize: aws.Int32(6), DesiredSize: aws.Int32(3)},
	}
}

func (e *env) createNodegroup(in *eks.CreateNodegroupInput) *ekstypes.Nodegroup {
	e.t.Helper()
	return must(e.eks().CreateNodegroup(ctx, in))(e.t).Nodegroup
}

func (e *env) nodegroup(name string) *ekstypes.Nodegroup {
	e.t.Helper()
	return must(e.eks().DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: aws.String(name)}))(e.t).Nodegroup
}

// untilNodegroup moves the clock until the nodegroup has the status.
func (e *env) untilNodegroup(name string, want ekstypes.NodegroupStatus) *ekstypes.Nodegroup {
	e.t.Helper()
	var ng *ekstypes.Nodegroup
	for range 200 {
		if ng = e.nodegroup(name); ng.Status == want {
			return ng
		}
		e.advance(500 * time.Millisecond)
	}
	e.t.Fatalf("nodegroup is %s (%+v), want %s", ng.Status, ng.Health, want)
	return ng
}

func (e *env) update(name, id string) *ekstypes.Update {
	e.t.Helper()
	return must(e.eks().DescribeUpdate(ctx, &eks.DescribeUpdateInput{Name: aws.String("demo"), NodegroupName: aws.String(name), UpdateId: aws.String(id)}))(e.t).Update
}

func mimeData(text string) *string {
	return aws.String(base64.StdEncoding.EncodeToString([]byte("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"b\"\n\n--b\nContent-Type: text/x-shellscript\n\n" + text + "\n--b--\n")))
}

// rootOf maps the root device of Amazon Linux to a volume of some GiB.
func rootOf(gib int32) []ec2types.LaunchTemplateBlockDeviceMappingRequest {
	return []ec2types.LaunchTemplateBlockDeviceMappingRequest{{DeviceName: aws.String("/dev/xvda"), Ebs: &ec2types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: aws.Int32(gib)}}}
}

// TestDisksOfNodegroups has disks that EKS takes: each image has a size of its own, and on
// Bottlerocket the disk is the volume that holds containers.
func TestDisksOfNodegroups(t *testing.T) {
	e := start(t, awsemu.Options{})
	for name, change := range map[string]func(*eks.CreateNodegroupInput){
		"al2023": func(in *eks.CreateNodegroupInput) { in.DiskSize = aws.Int32(20) },
		"rocket": func(in *eks.CreateNodegroupInput) { in.AmiType, in.DiskSize = "BOTTLEROCKET_x86_64", aws.Int32(10) },
	} {
		in := e.nodegroupInput(name)
		change(in)
		if _, err := e.eks().CreateNodegroup(ctx, in); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	in := e.nodegroupInput("grown")
	id := e.template("grown", &ec2types.RequestLaunchTemplateData{BlockDeviceMappings: rootOf(30)})
	in.LaunchTemplate = &ekstypes.LaunchTemplateSpecification{Id: aws.String(id)}
	e.createNodegroup(in)
	e.untilNodegroup("grown", ekstypes.NodegroupStatusActive)
	e.version(id, &ec2types.RequestLaunchTemplateData{BlockDeviceMappings: rootOf(10)})
	_, err := e.eks().UpdateNodegroupVersion(ctx, &eks.UpdateNodegroupVersionInput{ClusterName: aws.String("demo"), NodegroupName: aws.String("grown"),
		LaunchTemplate: &ekstypes.LaunchTemplateSpecification{Id: aws.String(id), Version: aws.String("2")}})
	wantError(t, err, "InvalidRequestException", "smaller than snapshot")
}

func TestNodegroupLives(t *testing.T) {
	e := start(t, awsemu.Options{})
	in := e.nodegroupInput("workers")
	in.Labels, in.Tags = map[string]string{"tier": "web"}, map[string]string{"team": "a"}
	ng := e.createNodegroup(in)
	if ng.Status != ekstypes.NodegroupStatusCreating {
		t.Errorf("status = %s, want CREATING", ng.Status)
	}
	ng = e.untilNodegroup("workers", ekstypes.NodegroupStatusActive)
	got := []any{ng.AmiType, ng.CapacityType, ng.InstanceTypes, aws.ToInt32(ng.DiskSize), aws.ToInt32(ng.UpdateConfig.MaxUnavailable), aws.ToString(ng.Version), aws.ToString(ng.ReleaseVersion), ng.Labels}
	want := []any{ekstypes.AMITypesAl2023X8664Standard, ekstypes.CapacityTypesOnDemand, []string{"t3.medium"}, int32(20), int32(1), "1.34", "1.34.1-20251112", map[string]string{"tier": "web"}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults (-want +got):\n%s", diff)
	}
	group := aws.ToString(ng.Resources.AutoScalingGroups[0].Name)
	must(e.iam().GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: aws.String("eks-" + strings.TrimPrefix(group, "eks-workers-"))}))(t)
	g := e.read(group)
	wantStates(t, g, map[string]int{"InService/1": 3})
	tags := map[string]string{}
	for _, tag := range g.Tags {
		tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	if diff := cmp.Diff(map[string]string{
		"eks:cluster-name": "demo", "eks:nodegroup-name": "workers", "k8s.io/cluster-autoscaler/demo": "owned",
		"k8s.io/cluster-autoscaler/enabled": "true", "kubernetes.io/cluster/demo": "owned",
	}, tags); diff != "" {
		t.Errorf("group tags (-want +got):\n%s", diff)
	}
	_, err := e.eks().CreateNodegroup(ctx, e.nodegroupInput("workers"))
	wantError(t, err, "ResourceInUseException", "already exists")

	must(e.eks().DeleteNodegroup(ctx, &eks.DeleteNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: aws.String("workers")}))(t)
	if s := e.nodegroup("workers").Status; s != ekstypes.NodegroupStatusDeleting {
		t.Errorf("status = %s, want DELETING", s)
	}
	e.wait(5 * time.Second)
	_, err = e.eks().DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: aws.String("workers")})
	wantError(t, err, "ResourceNotFoundException", "No node group found")
	if e.read(group) != nil {
		t.Error("the group of a deleted nodegroup is still there")
	}
	templates := must(e.ec2().DescribeLaunchTemplates(ctx, &ec2.DescribeLaunchTemplatesInput{}))(t)
	uuid := strings.TrimPrefix(group, "eks-workers-")
	_, err = e.iam().GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: aws.String("eks-" + uuid)})
	wantError(t, err, "NoSuchEntity", "cannot be found")
	if len(templates.LaunchTemplates) != 0 {
		t.Errorf("%d launch templates are left", len(templates.LaunchTemplates))
	}
}

func TestNodegroupConfigUpdate(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.createNodegroup(e.nodegroupInput("workers"))
	e.untilNodegroup("workers", ekstypes.NodegroupStatusActive)
	in := &eks.UpdateNodegroupConfigInput{
		ClusterName: aws.String("demo"), NodegroupName: aws.String("workers"),
		ScalingConfig:      &ekstypes.NodegroupScalingConfig{MaxSize: aws.Int32(8), DesiredSize: aws.Int32(5)},
		Labels:             &ekstypes.UpdateLabelsPayload{AddOrUpdateLabels: map[string]string{"a": "b"}},
		Taints:             &ekstypes.UpdateTaintsPayload{AddOrUpdateTaints: []ekstypes.Taint{{Key: aws.String("k"), Value: aws.String("v"), Effect: ekstypes.TaintEffectNoSchedule}}},
		ClientRequestToken: aws.String("once"),
	}
	first := must(e.eks().UpdateNodegroupConfig(ctx, in))(t).Update
	again := must(e.eks().UpdateNodegroupConfig(ctx, in))(t).Update
	if aws.ToString(first.Id) != aws.ToString(again.Id) {
		t.Error("the same token started two updates")
	}
	in.ClientRequestToken = aws.String("twice")
	_, err := e.eks().UpdateNodegroupConfig(ctx, in)
	wantError(t, err, "ResourceInUseException", "not in Active State")
	if u := e.update("workers", *first.Id); u.Status != ekstypes.UpdateStatusInProgress || u.Type != ekstypes.UpdateTypeConfigUpdate || len(u.Params) != 4 {
		t.Errorf("update = %+v", u)
	}
	ng := e.untilNodegroup("workers", ekstypes.NodegroupStatusActive)
	if u := e.update("workers", *first.Id); u.Status != ekstypes.UpdateStatusSuccessful {
		t.Errorf("update is %s", u.Status)
	}
	if aws.ToInt32(ng.ScalingConfig.MinSize) != 1 || aws.ToInt32(ng.ScalingConfig.MaxSize) != 8 || aws.ToInt32(ng.ScalingConfig.DesiredSize) != 5 || ng.Labels["a"] != "b" || len(ng.Taints) != 1 {
		t.Errorf("nodegroup = %+v %v %v", ng.ScalingConfig, ng.Labels, ng.Taints)
	}
	wantStates(t, e.read(*ng.Resources.AutoScalingGroups[0].Name), map[string]int{"InService/1": 5})
	ids := must(e.eks().ListUpdates(ctx, &eks.ListUpdatesInput{Name: aws.String("demo"), NodegroupName: aws.String("workers")}))(t)
	if diff := cmp.Diff([]string{*first.Id}, ids.UpdateIds); diff != "" {
		t.Errorf("updates (-want +got):\n%s", diff)
	}
}

func TestCreateNodegroupRefuses(t *testing.T) {
	e := start(t, awsemu.Options{Quotas: map[string]int{"nodes-per-nodegroup": 10}})
	n := 0
	lt := func(change func(*ec2types.RequestLaunchTemplateData)) *ekstypes.LaunchTemplateSpecification {
		data := &ec2types.RequestLaunchTemplateData{EbsOptimized: aws.Bool(true)}
		change(data)
		n++
		return &ekstypes.LaunchTemplateSpecification{Id: aws.String(e.template("t"+string(rune('a'+n))+"xx", data))}
	}
	for name, tc := range map[string]struct {
		change     func(*eks.CreateNodegroupInput)
		code, text string
	}{
		"role": {func(in *eks.CreateNodegroupInput) { in.NodeRole = aws.String("arn:aws:iam::000000000000:role/none") }, "InvalidParameterException", "cannot be found"},
		"trust": {func(in *eks.CreateNodegroupInput) {
			in.NodeRole = aws.String("arn:aws:iam::000000000000:role/eks-controlplane.cluster-api-provider-aws.sigs.k8s.io")
		}, "InvalidParameterException", "trust"},
		"subnet":    {func(in *eks.CreateNodegroupInput) { in.Subnets = []string{"subnet-00000000"} }, "InvalidParameterException", "does not exist"},
		"sizes":     {func(in *eks.CreateNodegroupInput) { in.ScalingConfig.DesiredSize = aws.Int32(9) }, "InvalidParameterException", "desired capacity 9 can't be greater than max size 6"},
		"two sizes": {func(in *eks.CreateNodegroupInput) { in.ScalingConfig.DesiredSize = nil }, "InvalidParameterException", "minSize, maxSize and desiredSize"},
		"quota":     {func(in *eks.CreateNodegroupInput) { in.ScalingConfig.MaxSize = aws.Int32(11) }, "ResourceLimitExceededException", "10"},
		"label":     {func(in *eks.CreateNodegroupInput) { in.Labels = map[string]string{"a b": "c"} }, "InvalidParameterException", "Label key"},
		"reserved":  {func(in *eks.CreateNodegroupInput) { in.Labels = map[string]string{"eks.amazonaws.com/x": "c"} }, "InvalidParameterException", "reserved"},
		"taint": {func(in *eks.CreateNodegroupInput) {
			in.Taints = []ekstypes.Taint{{Key: aws.String("a"), Effect: "NEVER"}}
		}, "InvalidParameterException", "enum value set"},
		"type":    {func(in *eks.CreateNodegroupInput) { in.InstanceTypes = []string{"m5.huge"} }, "InvalidParameterException", "do not exist"},
		"arch":    {func(in *eks.CreateNodegroupInput) { in.InstanceTypes = []string{"m6g.large"} }, "InvalidParameterException", "not a valid instance type for requested amiType"},
		"version": {func(in *eks.CreateNodegroupInput) { in.Version = aws.String("1.32") }, "InvalidParameterException", "must be the cluster's"},
		"release": {func(in *eks.CreateNodegroupInput) { in.ReleaseVersion = aws.String("1.34.0-19990101") }, "InvalidParameterException", "release version"},
		"strategy": {func(in *eks.CreateNodegroupInput) {
			in.UpdateConfig = &ekstypes.NodegroupUpdateConfig{MaxUnavailable: aws.Int32(1), MaxUnavailablePercentage: aws.Int32(1)}
		}, "InvalidParameterException", "either"},
		"disk": {func(in *eks.CreateNodegroupInput) {
			in.LaunchTemplate, in.DiskSize = lt(func(*ec2types.RequestLaunchTemplateData) {}), aws.Int32(30)
		}, "InvalidParameterException", "Disk size"},
		"profile": {func(in *eks.CreateNodegroupInput) {
			in.LaunchTemplate = lt(func(d *ec2types.RequestLaunchTemplateData) {
				d.IamInstanceProfile = &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("nodes.cluster-api-provider-aws.sigs.k8s.io")}
			})
		}, "InvalidParameterException", "instance profile"},
		"types twice": {func(in *eks.CreateNodegroupInput) {
			in.LaunchTemplate, in.InstanceTypes = lt(func(d *ec2types.RequestLaunchTemplateData) { d.InstanceType = "m5.large" }), []string{"m5.large"}
		}, "InvalidRequestException", "Cannot specify instance types in launch template and API Request"},
		"image and ami type": {func(in *eks.CreateNodegroupInput) {
			in.LaunchTemplate, in.AmiType = lt(func(d *ec2types.RequestLaunchTemplateData) { d.ImageId = aws.String(e.image("x86_64")) }), "AL2023_x86_64_STANDARD"
		}, "InvalidParameterException", "CUSTOM"},
		"user data": {func(in *eks.CreateNodegroupInput) {
			in.LaunchTemplate = lt(func(d *ec2types.RequestLaunchTemplateData) {
				d.UserData = aws.String(base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\n")))
			})
		}, "InvalidRequestException", "MIME"},
		"small disk": {func(in *eks.CreateNodegroupInput) { in.DiskSize = aws.Int32(10) }, "InvalidRequestException", "Volume of size 10GB is smaller than snapshot"},
		"small root volume": {func(in *eks.CreateNodegroupInput) {
			in.LaunchTemplate = lt(func(d *ec2types.RequestLaunchTemplateData) { d.BlockDeviceMappings = rootOf(10) })
		}, "InvalidRequestException", "expect size>= 20GB"},
		"broken MIME": {func(in *eks.CreateNodegroupInput) {
			in.LaunchTemplate = lt(func(d *ec2types.RequestLaunchTemplateData) {
				d.UserData = aws.String(base64.StdEncoding.EncodeToString([]byte("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=a\n--a\n")))
			})
		}, "InvalidRequestException", "MIME"},
		"no TOML": {func(in *eks.CreateNodegroupInput) {
			in.AmiType = "BOTTLEROCKET_x86_64"
			in.LaunchTemplate = lt(func(d *ec2types.RequestLaunchTemplateData) {
				d.UserData = aws.String(base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\n")))
			})
		}, "InvalidRequestException", "TOML"},
		"no template": {func(in *eks.CreateNodegroupInput) {
			in.LaunchTemplate = &ekstypes.LaunchTemplateSpecification{Name: aws.String("none")}
		}, "InvalidParameterException", "does not exist"},
		"id and name": {func(in *eks.CreateNodegroupInput) {
			in.LaunchTemplate = &ekstypes.LaunchTemplateSpecification{Id: aws.String("lt-00000000000000000"), Name: aws.String("x")}
		}, "InvalidParameterException", "not both"},
		"cluster":      {func(in *eks.CreateNodegroupInput) { in.ClusterName = aws.String("none") }, "ResourceNotFoundException", "No cluster found"},
		"windows type": {func(in *eks.CreateNodegroupInput) { in.AmiType = "WINDOWS_CORE_2022_x86_64" }, "InvalidParameterException", "no images"},
	} {
		t.Run(name, func(t *testing.T) {
			in := e.nodegroupInput("workers")
			tc.change(in)
			_, err := e.eks().CreateNodegroup(ctx, in)
			wantError(t, err, tc.code, tc.text)
		})
	}
	list := must(e.eks().ListNodegroups(ctx, &eks.ListNodegroupsInput{ClusterName: aws.String("demo")}))(t)
	if len(list.Nodegroups) != 0 {
		t.Errorf("refused nodegroups exist: %v", list.Nodegroups)
	}
}

func TestNodegroupMergesUserData(t *testing.T) {
	e := start(t, awsemu.Options{})
	data := &ec2types.RequestLaunchTemplateData{UserData: mimeData("echo hello")}
	in := e.nodegroupInput("workers")
	in.LaunchTemplate = &ekstypes.LaunchTemplateSpecification{Id: aws.String(e.template("workers", data))}
	ng := e.createNodegroup(in)
	spec := e.read(*ng.Resources.AutoScalingGroups[0].Name).MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification
	out := must(e.ec2().DescribeLaunchTemplateVersions(ctx, &ec2.DescribeLaunchTemplateVersionsInput{LaunchTemplateId: spec.LaunchTemplateId}))(t)
	raw := must(base64.StdEncoding.DecodeString(aws.ToString(out.LaunchTemplateVersions[0].LaunchTemplateData.UserData)))(t)
	for _, want := range []string{"echo hello", "application/node.eks.aws", "name: demo", "cidr: 10.100.0.0/16"} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("user data lacks %q:\n%s", want, raw)
		}
	}
	if aws.ToString(ng.LaunchTemplate.Version) != "1" || aws.ToString(ng.LaunchTemplate.Name) != "workers" {
		t.Errorf("launch template = %+v", ng.LaunchTemplate)
	}
}

func TestClusterLives(t *testing.T) {
	e := start(t, awsemu.Options{})
	demo := must(e.eks().DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("demo")}))(t).Cluster
	in := &eks.CreateClusterInput{Name: aws.String("c1"), Version: aws.String("1.31"), RoleArn: demo.RoleArn, ResourcesVpcConfig: &ekstypes.VpcConfigRequest{SubnetIds: demo.ResourcesVpcConfig.SubnetIds}}
	must(e.eks().CreateCluster(ctx, in))(t)
	_, err := e.eks().CreateCluster(ctx, &eks.CreateClusterInput{Name: aws.String("c1"), RoleArn: demo.RoleArn, ResourcesVpcConfig: in.ResourcesVpcConfig})
	wantError(t, err, "ResourceInUseException", "already exists")
	e.wait(3 * time.Second)
	list := must(e.eks().ListClusters(ctx, &eks.ListClustersInput{}))(t)
	if diff := cmp.Diff([]string{"c1", "demo"}, list.Clusters); diff != "" {
		t.Errorf("clusters (-want +got):\n%s", diff)
	}
	_, err = e.eks().UpdateClusterVersion(ctx, &eks.UpdateClusterVersionInput{Name: aws.String("c1"), Version: aws.String("1.33")})
	wantError(t, err, "InvalidParameterException", "from 1.31 to 1.33")
	u := must(e.eks().UpdateClusterVersion(ctx, &eks.UpdateClusterVersionInput{Name: aws.String("c1"), Version: aws.String("1.32")}))(t)
	e.wait(3 * time.Second)
	c := must(e.eks().DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("c1")}))(t).Cluster
	if c.Status != ekstypes.ClusterStatusActive || aws.ToString(c.Version) != "1.32" || aws.ToString(c.Endpoint) == "" {
		t.Errorf("cluster = %s %s %s", c.Status, aws.ToString(c.Version), aws.ToString(c.Endpoint))
	}
	got := must(e.eks().DescribeUpdate(ctx, &eks.DescribeUpdateInput{Name: aws.String("c1"), UpdateId: u.Update.Id}))(t)
	if got.Update.Status != ekstypes.UpdateStatusSuccessful {
		t.Errorf("update is %s", got.Update.Status)
	}
	must(e.eks().TagResource(ctx, &eks.TagResourceInput{ResourceArn: c.Arn, Tags: map[string]string{"a": "1", "b": "2"}}))(t)
	must(e.eks().UntagResource(ctx, &eks.UntagResourceInput{ResourceArn: c.Arn, TagKeys: []string{"a"}}))(t)
	tags := must(e.eks().ListTagsForResource(ctx, &eks.ListTagsForResourceInput{ResourceArn: c.Arn}))(t)
	if diff := cmp.Diff(map[string]string{"b": "2"}, tags.Tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	_, err = e.eks().TagResource(ctx, &eks.TagResourceInput{ResourceArn: aws.String(aws.ToString(c.Arn) + "x"), Tags: map[string]string{"a": "1"}})
	wantError(t, err, "NotFoundException", "not found")
	must(e.eks().DeleteCluster(ctx, &eks.DeleteClusterInput{Name: aws.String("c1")}))(t)
	e.wait(3 * time.Second)
	_, err = e.eks().DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("c1")})
	wantError(t, err, "ResourceNotFoundException", "No cluster found")
}

func TestNodegroupThatCannotLaunch(t *testing.T) {
	e := start(t, awsemu.Options{})
	in := e.nodegroupInput("workers")
	in.LaunchTemplate = &ekstypes.LaunchTemplateSpecification{Id: aws.String(e.template("workers", broken()))}
	e.createNodegroup(in)
	ng := e.untilNodegroup("workers", ekstypes.NodegroupStatusCreateFailed)
	if len(ng.Health.Issues) != 1 || ng.Health.Issues[0].Code != ekstypes.NodegroupIssueCodeAsgInstanceLaunchFailures || !strings.Contains(*ng.Health.Issues[0].Message, missingImage) {
		t.Errorf("health = %+v", ng.Health.Issues)
	}
	_, err := e.eks().UpdateNodegroupConfig(ctx, &eks.UpdateNodegroupConfigInput{ClusterName: aws.String("demo"), NodegroupName: aws.String("workers")})
	wantError(t, err, "InvalidRequestException", "CREATE_FAILED")
	_, err = e.eks().DeleteCluster(ctx, &eks.DeleteClusterInput{Name: aws.String("demo")})
	wantError(t, err, "ResourceInUseException", "nodegroups attached")
	must(e.eks().DeleteNodegroup(ctx, &eks.DeleteNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: aws.String("workers")}))(t)
	e.wait(5 * time.Second)
	list := must(e.eks().ListNodegroups(ctx, &eks.ListNodegroupsInput{ClusterName: aws.String("demo")}))(t)
	if len(list.Nodegroups) != 0 {
		t.Errorf("nodegroups = %v", list.Nodegroups)
	}
}

func TestNodegroupWithoutItsGroupIsDegraded(t *testing.T) {
	e := start(t, awsemu.Options{})
	e.createNodegroup(e.nodegroupInput("workers"))
	ng := e.untilNodegroup("workers", ekstypes.NodegroupStatusActive)
	must(e.autoscaling().DeleteAutoScalingGroup(ctx, &autoscaling.DeleteAutoScalingGroupInput{AutoScalingGroupName: ng.Resources.AutoScalingGroups[0].Name, ForceDelete: aws.Bool(true)}))(t)
	e.wait(3 * time.Second)
	ng = e.nodegroup("workers")
	if ng.Status != ekstypes.NodegroupStatusDegraded || len(ng.Health.Issues) != 1 || ng.Health.Issues[0].Code != ekstypes.NodegroupIssueCodeAutoScalingGroupNotFound {
		t.Errorf("nodegroup = %s %+v", ng.Status, ng.Health.Issues)
	}
}

// EKS asks with the caller's permissions which policies a node's role has, and takes
// none without its own.
func TestANodeRoleNeedsItsPolicies(t *testing.T) {
	e := start(t, awsemu.Options{})
	name := aws.String(nodeRole[strings.LastIndex(nodeRole, "/")+1:])
	attached := func() (names []string) {
		for _, p := range must(e.iam().ListAttachedRolePolicies(ctx, &iam.ListAttachedRolePoliciesInput{RoleName: name}))(t).AttachedPolicies {
			names = append(names, aws.ToString(p.PolicyArn))
		}
		return names
	}
	all := attached()
	if d := cmp.Diff([]string{"arn:aws:iam::aws:policy/AmazonEC2ContainerRegistryReadOnly", "arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy", "arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy"}, all); d != "" {
		t.Errorf("as clusterawsadm makes it (-want +got):\n%s", d)
	}
	for _, arn := range all {
		must(e.iam().DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: name, PolicyArn: aws.String(arn)}))(t)
	}
	_, err := e.eks().CreateNodegroup(ctx, e.nodegroupInput("workers"))
	wantError(t, err, "InvalidParameterException", "The provided role doesn't have the Amazon EKS Managed Policies associated with it. Please ensure the following policies [arn:aws:iam::aws:policy/AmazonEKSWorkerNodePolicy, ")
	for _, policy := range []string{"AmazonEKSWorkerNodePolicy", "AmazonEC2ContainerRegistryPullOnly", "AmazonEKSWorkerNodePolicy"} {
		must(e.iam().AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: name, PolicyArn: aws.String("arn:aws:iam::aws:policy/" + policy)}))(t)
	}
	if got := attached(); len(got) != 2 {
		t.Errorf("attached %v", got)
	}
	e.createNodegroup(e.nodegroupInput("workers"))
	_, err = e.iam().DetachRolePolicy(ctx, &iam.DetachRolePolicyInput{RoleName: name, PolicyArn: aws.String("arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy")})
	wantCode(t, err, "NoSuchEntity")
	_, err = e.iam().AttachRolePolicy(ctx, &iam.AttachRolePolicyInput{RoleName: aws.String("none"), PolicyArn: aws.String("arn:aws:iam::aws:policy/AmazonEKS_CNI_Policy")})
	wantCode(t, err, "NoSuchEntity")
}
