package awsemu_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

// postGroup sends a form to an Auto Scaling action without an SDK and returns the
// answer.
func postGroup(tb testing.TB, s http.Handler, action string, form url.Values) string {
	tb.Helper()
	form.Set("Action", action)
	form.Set("Version", "2011-01-01")
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKIA/20260301/eu-west-1/autoscaling/aws4_request, SignedHeaders=host, Signature=00")
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if w.Code != http.StatusOK {
		tb.Fatalf("%s: status %d: %s", action, w.Code, w.Body)
	}
	return w.Body.String()
}

// manyGroups makes n groups of three members in a wide subnet, every tenth of
// owner weir.
func manyGroups(tb testing.TB, n int) *env {
	tb.Helper()
	e := start(tb, awsemu.Options{Quotas: map[string]int{"auto-scaling-groups": n}})
	id := e.template("web", e.machine())
	vpc := must(e.ec2().CreateVpc(ctx, &ec2.CreateVpcInput{CidrBlock: aws.String("10.0.0.0/16")}))(tb)
	subnet := must(e.ec2().CreateSubnet(ctx, &ec2.CreateSubnetInput{VpcId: vpc.Vpc.VpcId, CidrBlock: aws.String("10.0.0.0/16"), AvailabilityZone: aws.String("eu-west-1a")}))(tb)
	group := must(e.ec2().CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{GroupName: aws.String("wide"), Description: aws.String("wide"), VpcId: vpc.Vpc.VpcId}))(tb)
	data := e.machine()
	data.SecurityGroupIds = []string{*group.GroupId}
	e.version(id, data)
	for i := range n {
		owner := "other"
		if i%10 == 0 {
			owner = "weir"
		}
		postGroup(tb, e.srv, "CreateAutoScalingGroup", url.Values{
			"AutoScalingGroupName": {fmt.Sprintf("pool-%05d", i)}, "MinSize": {"3"}, "MaxSize": {"6"},
			"LaunchTemplate.LaunchTemplateId": {id}, "LaunchTemplate.Version": {"2"}, "VPCZoneIdentifier": {*subnet.Subnet.SubnetId},
			"Tags.member.1.Key": {"weir:owner"}, "Tags.member.1.Value": {owner}, "Tags.member.1.PropagateAtLaunch": {"true"},
			"Tags.member.2.Key": {"weir:pool"}, "Tags.member.2.Value": {fmt.Sprintf("default/pool-%05d", i)}, "Tags.member.2.PropagateAtLaunch": {"false"},
		})
	}
	e.wait(2 * time.Second)
	return e
}

func BenchmarkDescribeGroups(b *testing.B) {
	e := manyGroups(b, 10000)
	page := func(change func(url.Values)) url.Values {
		form := url.Values{"MaxRecords": {"100"}, "Filters.member.1.Name": {"tag:weir:owner"}, "Filters.member.1.Values.member.1": {"weir"}}
		change(form)
		return form
	}
	for name, form := range map[string]url.Values{
		"instances": page(func(url.Values) {}),
		"plain":     page(func(f url.Values) { f.Set("IncludeInstances", "false") }),
		"no match":  page(func(f url.Values) { f.Set("Filters.member.1.Values.member.1", "nobody") }),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				postGroup(b, e.srv, "DescribeAutoScalingGroups", form)
			}
		})
	}
}

func BenchmarkCreateGroups(b *testing.B) {
	for b.Loop() {
		manyGroups(b, 10000)
	}
}
