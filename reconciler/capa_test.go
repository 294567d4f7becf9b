package reconciler_test

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	astypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"

	"github.com/weir-gitops/weir/reconciler"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render"
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/tree"
)

// The manifests of what Cluster API Provider AWS is shown to have made here.
const (
	kubeadmBootstrap = `configRef: {apiVersion: bootstrap.cluster.x-k8s.io/v1beta1, kind: KubeadmConfig, name: web}`
	secretBootstrap  = `dataSecretName: web-data`
	capaSecret       = "#cloud-config\nruncmd: [join]\n"

	capaGroupManifests = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: demo}
spec:
  controlPlaneEndpoint: {host: api.example.org, port: 6443}
  infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSCluster, name: demo}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSCluster
metadata: {name: demo}
spec:
  region: eu-west-1
  additionalTags: {team: platform}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: web}
spec:
  clusterName: demo
  replicas: 2
  template:
    spec:
      clusterName: demo
      version: v1.33.0
      bootstrap: {%s}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSMachinePool, name: web}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSMachinePool
metadata: {name: web, annotations: {%s}}
spec:
  minSize: 1
  maxSize: 5
  awsLaunchTemplate:
    instanceType: %s
    iamInstanceProfile: nodes.cluster-api-provider-aws.sigs.k8s.io
    ami: {eksLookupType: AmazonLinux2023}
    rootVolume: {size: 40, type: gp3}
    instanceMetadataOptions: {httpTokens: required}
---
apiVersion: bootstrap.cluster.x-k8s.io/v1beta1
kind: KubeadmConfig
metadata: {name: web}
spec:
  joinConfiguration:
    discovery:
      bootstrapToken: {apiServerEndpoint: "api.example.org:6443", token: abcdef.0123456789abcdef, unsafeSkipCAVerification: true}
---
apiVersion: v1
kind: Secret
metadata: {name: web-data}
stringData: {value: "#cloud-config\nruncmd: [join]\n"}
`
	capaNodegroupManifests = `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: demo}
spec:
  controlPlaneRef: {apiVersion: controlplane.cluster.x-k8s.io/v1beta2, kind: AWSManagedControlPlane, name: cp}
---
apiVersion: controlplane.cluster.x-k8s.io/v1beta2
kind: AWSManagedControlPlane
metadata: {name: cp}
spec: {eksClusterName: demo, region: eu-west-1}
---
apiVersion: cluster.x-k8s.io/v1beta1
kind: MachinePool
metadata: {name: ng}
spec:
  clusterName: demo
  replicas: 2
  template:
    spec:
      clusterName: demo
      bootstrap: {dataSecretName: ng-data}
      infrastructureRef: {apiVersion: infrastructure.cluster.x-k8s.io/v1beta2, kind: AWSManagedMachinePool, name: ng}
---
apiVersion: infrastructure.cluster.x-k8s.io/v1beta2
kind: AWSManagedMachinePool
metadata: {name: ng}
spec:
  eksNodegroupName: ng
  amiType: AL2023_x86_64_STANDARD
  scaling: {minSize: 1, maxSize: 4}
  awsLaunchTemplate:
    instanceType: m5.large
---
apiVersion: v1
kind: Secret
metadata: {name: ng-data}
stringData: {value: "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n\n--//--\n"}
`
)

// fromManifests is a target of manifests as somebody writes them.
func fromManifests(t testing.TB, text string) reconciler.Desired {
	t.Helper()
	r, err := render.Render(context.Background(), tree.Map{"all.yaml": text}, "all.yaml", render.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if r.Diags.HasErrors() || len(r.Set.Pools) != 1 || len(r.Set.Pools[0].Blocked) > 0 {
		t.Fatalf("the manifests give %d pools: %v", len(r.Set.Pools), r.Diags)
	}
	d := target("blue", r.Set.Pools[0])
	d.Set, d.Origins = &r.Set, r.Origins
	return d
}

func capaGroupTarget(t testing.TB, bootstrap, annotations, instanceType string) reconciler.Desired {
	return fromManifests(t, fmt.Sprintf(capaGroupManifests, bootstrap, annotations, instanceType))
}

// adopting is d in a pass for adopting.
func adopting(d reconciler.Desired, from string) reconciler.Desired {
	d.Policy.Adoption = model.Adoption{Asked: true, From: from}
	return d
}

// owned is d as another instance wants it.
func owned(d reconciler.Desired, instance string) reconciler.Desired {
	d.Policy.Instance = instance
	return d
}

var capaTags = map[string]string{
	"Name": "web", "team": "platform", "kubernetes.io/cluster/demo": "owned",
	"sigs.k8s.io/cluster-api-provider-aws/cluster/demo": "owned", "sigs.k8s.io/cluster-api-provider-aws/role": "node",
}

func ec2Tags(tags map[string]string) (out []types.Tag) {
	for k, v := range tags {
		out = append(out, types.Tag{Key: aws.String(k), Value: aws.String(v)})
	}
	return out
}

// resolved is what both weir and Cluster API Provider AWS look up for a target
// whose resources are yet to be made.
func (w *world) resolved(d reconciler.Desired) (data intent.TemplateData, subnets []string) {
	w.t.Helper()
	r := w.must(reconciler.PlanOnly, d)[0]
	for _, s := range r.Plan.Steps {
		switch a := s.Do.(type) {
		case step.CreateLaunchTemplate:
			data = a.Data
		case step.CreateGroup:
			subnets = a.Group.SubnetIDs
		case step.CreateNodegroup:
			subnets = a.Nodegroup.SubnetIDs
		}
	}
	if len(subnets) == 0 {
		w.t.Fatalf("nothing would be made: %v", r.Diagnostics)
	}
	return data, subnets
}

// capaData is the body of a version as Cluster API Provider AWS sends it for the
// manifests above.
func capaData(d intent.TemplateData, userData string) *types.RequestLaunchTemplateData {
	hash := fmt.Sprintf("%x", sha256.Sum256([]byte(userData)))
	machine := ec2Tags(capaTags)
	machine = append(machine, types.Tag{Key: aws.String("sigs.k8s.io/cluster-api-provider-aws/bootstrap-data-secret"), Value: aws.String("default/web-data")},
		types.Tag{Key: aws.String("sigs.k8s.io/cluster-api-provider-aws/bootstrap-data-hash"), Value: aws.String(hash)})
	return &types.RequestLaunchTemplateData{
		ImageId: aws.String(d.ImageID), InstanceType: "m5.large", SecurityGroupIds: d.SecurityGroupIDs,
		IamInstanceProfile: &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("nodes.cluster-api-provider-aws.sigs.k8s.io")},
		BlockDeviceMappings: []types.LaunchTemplateBlockDeviceMappingRequest{{DeviceName: aws.String(d.BlockDeviceMappings[0].DeviceName),
			Ebs: &types.LaunchTemplateEbsBlockDeviceRequest{VolumeSize: aws.Int32(40), VolumeType: "gp3", DeleteOnTermination: aws.Bool(true)}}},
		MetadataOptions: &types.LaunchTemplateInstanceMetadataOptionsRequest{HttpEndpoint: "enabled", HttpTokens: "required",
			HttpPutResponseHopLimit: aws.Int32(1), InstanceMetadataTags: "disabled"},
		TagSpecifications: []types.LaunchTemplateTagSpecificationRequest{
			{ResourceType: types.ResourceTypeInstance, Tags: machine}, {ResourceType: types.ResourceTypeVolume, Tags: ec2Tags(capaTags)}},
		UserData: aws.String(base64.StdEncoding.EncodeToString([]byte(userData))),
	}
}

// capaGroup makes what Cluster API Provider AWS makes for an AWSMachinePool: the
// template, a version for each text of user data, the group on $Latest whose
// machines start with the first, and the pruning of the version between.
func (w *world) capaGroup(d reconciler.Desired, userData ...string) {
	w.t.Helper()
	ctx := context.Background()
	data, subnets := w.resolved(d)
	_, err := w.ec2().CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("web"), LaunchTemplateData: capaData(data, userData[0]),
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate, Tags: ec2Tags(capaTags)}}})
	w.check(nil, err)
	var tags []astypes.Tag
	for k, v := range capaTags {
		tags = append(tags, astypes.Tag{Key: aws.String(k), Value: aws.String(v), PropagateAtLaunch: aws.Bool(false),
			ResourceId: aws.String("web"), ResourceType: aws.String("auto-scaling-group")})
	}
	for i, text := range userData {
		if i > 0 {
			_, err = w.ec2().CreateLaunchTemplateVersion(ctx, &ec2.CreateLaunchTemplateVersionInput{LaunchTemplateName: aws.String("web"), LaunchTemplateData: capaData(data, text)})
			w.check(nil, err)
		}
		if i == min(1, len(userData)-1) {
			w.check(w.groups().CreateAutoScalingGroup(ctx, &autoscaling.CreateAutoScalingGroupInput{AutoScalingGroupName: aws.String("web"),
				MinSize: aws.Int32(1), MaxSize: aws.Int32(5), DesiredCapacity: aws.Int32(2), DefaultCooldown: aws.Int32(300), DefaultInstanceWarmup: aws.Int32(300),
				CapacityRebalance: aws.Bool(false), VPCZoneIdentifier: aws.String(strings.Join(subnets, ", ")), Tags: tags,
				LaunchTemplate: &astypes.LaunchTemplateSpecification{LaunchTemplateName: aws.String("web"), Version: aws.String("$Latest")}}))
			w.clock.Advance(time.Minute)
		}
	}
	if len(userData) > 2 {
		w.check(w.ec2().DeleteLaunchTemplateVersions(ctx, &ec2.DeleteLaunchTemplateVersionsInput{LaunchTemplateName: aws.String("web"), Versions: []string{"2"}}))
	}
	w.clock.Advance(time.Minute)
}

// eks is a client of EKS that is not weir's.
func (w *world) eks() *eks.Client {
	return eks.NewFromConfig(w.sdk)
}

// capaNodegroup makes what Cluster API Provider AWS makes for an
// AWSManagedMachinePool, pinned to the second of two equal versions.
func (w *world) capaNodegroup(d reconciler.Desired) (behind string) {
	w.t.Helper()
	return w.capaNodegroupOf(d, "cp-ng", "ng")
}

// capaNodegroupOf is capaNodegroup with a name and that of the launch template.
func (w *world) capaNodegroupOf(d reconciler.Desired, template, name string) (behind string) {
	w.t.Helper()
	ctx := context.Background()
	data, subnets := w.resolved(d)
	tags := map[string]string{"Name": template, "kubernetes.io/cluster/demo": "owned",
		"sigs.k8s.io/cluster-api-provider-aws/cluster/demo": "owned", "sigs.k8s.io/cluster-api-provider-aws/role": "node"}
	body := &types.RequestLaunchTemplateData{InstanceType: "m5.large", SecurityGroupIds: data.SecurityGroupIDs,
		UserData: aws.String(base64.StdEncoding.EncodeToString([]byte("MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\nContent-Type: text/x-shellscript\n\n#!/bin/sh\n\n--//--\n"))),
		TagSpecifications: []types.LaunchTemplateTagSpecificationRequest{
			{ResourceType: types.ResourceTypeInstance, Tags: append(ec2Tags(tags), types.Tag{Key: aws.String("sigs.k8s.io/cluster-api-provider-aws/bootstrap-data-secret"), Value: aws.String("default/ng-data")})},
			{ResourceType: types.ResourceTypeVolume, Tags: ec2Tags(tags)}}}
	w.check(w.ec2().CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String(template), LaunchTemplateData: body,
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate, Tags: ec2Tags(tags)}}}))
	w.check(w.ec2().CreateLaunchTemplateVersion(ctx, &ec2.CreateLaunchTemplateVersionInput{LaunchTemplateName: aws.String(template), LaunchTemplateData: body}))
	w.check(w.eks().CreateNodegroup(ctx, &eks.CreateNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: aws.String(name), Subnets: subnets,
		NodeRole:      aws.String("arn:aws:iam::000000000000:role/eks-nodegroup.cluster-api-provider-aws.sigs.k8s.io"),
		ScalingConfig: &ekstypes.NodegroupScalingConfig{MinSize: aws.Int32(1), MaxSize: aws.Int32(4), DesiredSize: aws.Int32(2)},
		AmiType:       "AL2023_x86_64_STANDARD", CapacityType: "ON_DEMAND", UpdateConfig: &ekstypes.NodegroupUpdateConfig{MaxUnavailable: aws.Int32(1)},
		LaunchTemplate: &ekstypes.LaunchTemplateSpecification{Name: aws.String(template), Version: aws.String("2")}, Tags: map[string]string{"kubernetes.io/cluster/demo": "owned"}}))
	w.clock.Advance(10 * time.Minute)
	out, err := w.eks().DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: aws.String("demo"), NodegroupName: aws.String(name)})
	w.check(nil, err)
	behind = aws.ToString(out.Nodegroup.Resources.AutoScalingGroups[0].Name)
	var groupTags []astypes.Tag
	for k, v := range map[string]string{"kubernetes.io/cluster/demo": "owned"} {
		groupTags = append(groupTags, astypes.Tag{Key: aws.String(k), Value: aws.String(v), PropagateAtLaunch: aws.Bool(true), ResourceId: aws.String(behind), ResourceType: aws.String("auto-scaling-group")})
	}
	w.check(w.groups().CreateOrUpdateTags(ctx, &autoscaling.CreateOrUpdateTagsInput{Tags: groupTags}))
	w.clock.Advance(time.Minute)
	return behind
}

// instances are the machines of a group with their versions, sorted.
func (w *world) instances(group string) (out []string) {
	for _, i := range w.group(group).Instances {
		out = append(out, aws.ToString(i.InstanceId)+" version "+aws.ToString(i.LaunchTemplate.Version))
	}
	slices.Sort(out)
	return out
}

// wrote lists the operations that changed AWS since the last reset, sorted.
func (w *world) wrote() (out []string) {
	for _, c := range w.srv.Calls() {
		if c.Write {
			out = append(out, c.Operation)
		}
	}
	slices.Sort(out)
	return out
}
