package awsemu_test

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	ekstypes "github.com/aws/aws-sdk-go-v2/service/eks/types"
	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/awsemu"
	emuec2 "github.com/weir-gitops/weir/reconciler/awsemu/ec2"
)

// customNodegroup makes a nodegroup from a template with its own image.
func (e *env) customNodegroup(name string) (templateID string) {
	e.t.Helper()
	templateID = e.template(name, e.machine())
	in := e.nodegroupInput(name)
	in.LaunchTemplate = &ekstypes.LaunchTemplateSpecification{Id: aws.String(templateID), Version: aws.String("1")}
	e.createNodegroup(in)
	e.untilNodegroup(name, ekstypes.NodegroupStatusActive)
	return templateID
}

func (e *env) versionUpdate(name, templateID, version string) *ekstypes.Update {
	e.t.Helper()
	return must(e.eks().UpdateNodegroupVersion(ctx, &eks.UpdateNodegroupVersionInput{
		ClusterName: aws.String("demo"), NodegroupName: aws.String(name),
		LaunchTemplate: &ekstypes.LaunchTemplateSpecification{Id: aws.String(templateID), Version: aws.String(version)},
	}))(e.t).Update
}

func TestNodegroupVersionUpdate(t *testing.T) {
	e := start(t, awsemu.Options{})
	id := e.customNodegroup("workers")
	data := e.machine()
	data.UserData = aws.String(base64.StdEncoding.EncodeToString([]byte("#!/bin/sh\n")))
	e.version(id, data)
	u := e.versionUpdate("workers", id, "2")
	group := *e.nodegroup("workers").Resources.AutoScalingGroups[0].Name
	for e.nodegroup("workers").Status == ekstypes.NodegroupStatusUpdating {
		serving := 0
		for _, in := range e.read(group).Instances {
			if in.LifecycleState == "InService" {
				serving++
			}
		}
		if serving < 3 {
			t.Errorf("%d nodes in service, 3 wanted throughout", serving)
		}
		e.advance(500 * time.Millisecond)
	}
	ng := e.nodegroup("workers")
	if aws.ToString(ng.LaunchTemplate.Version) != "2" || ng.AmiType != ekstypes.AMITypesCustom || aws.ToString(ng.ReleaseVersion) != e.image("x86_64") {
		t.Errorf("nodegroup = %s %s %s", *ng.LaunchTemplate.Version, ng.AmiType, *ng.ReleaseVersion)
	}
	e.wait(time.Second)
	wantStates(t, e.read(group), map[string]int{"InService/2": 3})
	if got := e.update("workers", *u.Id).Status; got != ekstypes.UpdateStatusSuccessful {
		t.Errorf("update is %s", got)
	}
}

func TestNodegroupVersionUpdateFails(t *testing.T) {
	for name, tc := range map[string]struct {
		data  func(*env) *ec2types.RequestLaunchTemplateData
		fault *emuec2.LaunchFault
	}{
		"image":     {data: func(*env) *ec2types.RequestLaunchTemplateData { return broken() }},
		"capacity":  {data: (*env).machine, fault: &emuec2.LaunchFault{Code: "InsufficientInstanceCapacity"}},
		"unhealthy": {data: (*env).machine, fault: &emuec2.LaunchFault{}},
	} {
		t.Run(name, func(t *testing.T) {
			e := start(t, awsemu.Options{})
			id := e.customNodegroup("workers")
			data := tc.data(e)
			data.EbsOptimized = aws.Bool(true)
			e.version(id, data)
			if tc.fault != nil {
				e.srv.Faults().Launches.Add(*tc.fault)
			}
			u := e.versionUpdate("workers", id, "2")
			ng := e.untilNodegroup("workers", ekstypes.NodegroupStatusActive)
			if v := aws.ToString(ng.LaunchTemplate.Version); v != "1" {
				t.Errorf("version = %s, want the old one", v)
			}
			got := e.update("workers", *u.Id)
			if got.Status != ekstypes.UpdateStatusFailed || len(got.Errors) != 1 || got.Errors[0].ErrorCode != ekstypes.ErrorCodeNodeCreationFailure {
				t.Errorf("update = %s %+v", got.Status, got.Errors)
			}
			e.srv.Faults().Clear()
			e.wait(time.Minute)
			wantStates(t, e.read(*ng.Resources.AutoScalingGroups[0].Name), map[string]int{"InService/1": 3})
		})
	}
}

func TestNodegroupFollowsTheClustersVersion(t *testing.T) {
	e := start(t, awsemu.Options{})
	demo := must(e.eks().DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String("demo")}))(t).Cluster
	must(e.eks().CreateCluster(ctx, &eks.CreateClusterInput{Name: aws.String("c1"), Version: aws.String("1.31"), RoleArn: demo.RoleArn, ResourcesVpcConfig: &ekstypes.VpcConfigRequest{SubnetIds: demo.ResourcesVpcConfig.SubnetIds}}))(t)
	e.wait(3 * time.Second)
	in := e.nodegroupInput("workers")
	in.ClusterName, in.AmiType, in.ReleaseVersion = aws.String("c1"), "BOTTLEROCKET_x86_64", nil
	e.createNodegroup(in)
	e.wait(3 * time.Second)
	update := func(change func(*eks.UpdateNodegroupVersionInput)) (*ekstypes.Update, error) {
		in := &eks.UpdateNodegroupVersionInput{ClusterName: aws.String("c1"), NodegroupName: aws.String("workers")}
		change(in)
		out, err := e.eks().UpdateNodegroupVersion(ctx, in)
		if err != nil {
			return nil, err
		}
		return out.Update, nil
	}
	to := func(version string) func(*eks.UpdateNodegroupVersionInput) {
		return func(in *eks.UpdateNodegroupVersionInput) { in.Version = aws.String(version) }
	}
	_, err := update(to("1.32"))
	wantError(t, err, "InvalidParameterException", "cannot be newer than the cluster's")
	_, err = update(to("1.30"))
	wantError(t, err, "InvalidParameterException", "cannot be downgraded")
	_, err = update(func(in *eks.UpdateNodegroupVersionInput) {
		in.LaunchTemplate = &ekstypes.LaunchTemplateSpecification{Name: aws.String("x")}
	})
	wantError(t, err, "InvalidParameterException", "created without one")
	for _, v := range []string{"1.32", "1.33"} {
		must(e.eks().UpdateClusterVersion(ctx, &eks.UpdateClusterVersionInput{Name: aws.String("c1"), Version: aws.String(v)}))(t)
		e.wait(3 * time.Second)
	}
	_, err = update(to("1.33"))
	wantError(t, err, "InvalidParameterException", "one minor version at a time")
	u := must(update(to("1.32")))(t)
	if diff := cmp.Diff([]string{"ReleaseVersion", "Version=1.32"}, []string{string(u.Params[0].Type), string(u.Params[1].Type) + "=" + *u.Params[1].Value}); diff != "" {
		t.Errorf("params (-want +got):\n%s", diff)
	}
	e.wait(30 * time.Second)
	ng := must(e.eks().DescribeNodegroup(ctx, &eks.DescribeNodegroupInput{ClusterName: aws.String("c1"), NodegroupName: aws.String("workers")}))(t).Nodegroup
	if ng.Status != ekstypes.NodegroupStatusActive || aws.ToString(ng.Version) != "1.32" || !strings.HasPrefix(aws.ToString(ng.ReleaseVersion), "1.50.0-") {
		t.Errorf("nodegroup = %s %s %s", ng.Status, *ng.Version, *ng.ReleaseVersion)
	}
	wantStates(t, e.read(*ng.Resources.AutoScalingGroups[0].Name), map[string]int{"InService/2": 3})
}
