package awsemu_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/servicequotas"

	"github.com/weir-gitops/weir/reconciler/awsemu"
)

const standardVcpus = "L-1216C47A"

// TestServiceQuotas: applied values are those that the services hold callers to, by
// region; AWS's defaults are not changed by them.
func TestServiceQuotas(t *testing.T) {
	e := start(t, awsemu.Options{Quotas: map[string]int{"auto-scaling-groups": 7}})
	e.seed(`{"quotas": {"vcpus-standard": 32}}`)
	get := func(e *env, service, code string) float64 {
		t.Helper()
		q := must(e.quotas().GetServiceQuota(ctx, &servicequotas.GetServiceQuotaInput{ServiceCode: aws.String(service), QuotaCode: aws.String(code)}))(t).Quota
		if !strings.HasSuffix(aws.ToString(q.QuotaArn), ":000000000000:"+service+"/"+code) || q.QuotaAppliedAtLevel != "ACCOUNT" {
			t.Errorf("%+v", q)
		}
		return aws.ToFloat64(q.Value)
	}
	usual := func(service, code string) float64 {
		t.Helper()
		q := must(e.quotas().GetAWSDefaultServiceQuota(ctx, &servicequotas.GetAWSDefaultServiceQuotaInput{ServiceCode: aws.String(service), QuotaCode: aws.String(code)}))(t).Quota
		return aws.ToFloat64(q.Value)
	}
	if here, there := get(e, "ec2", standardVcpus), get(e.in("us-east-1"), "ec2", standardVcpus); here != 32 || there <= here {
		t.Errorf("applied %v here and %v in another region", here, there)
	}
	if n, def := get(e, "autoscaling", "L-CDE20ADC"), usual("autoscaling", "L-CDE20ADC"); n != 7 || def != 500 {
		t.Errorf("groups: applied %v, default %v", n, def)
	}
	if n := usual("ec2", standardVcpus); n != 5 {
		t.Errorf("default of vCPUs: %v", n)
	}
	all := 0
	pages := servicequotas.NewListServiceQuotasPaginator(e.quotas(), &servicequotas.ListServiceQuotasInput{ServiceCode: aws.String("ec2"), MaxResults: aws.Int32(4)})
	for pages.HasMorePages() {
		page := must(pages.NextPage(ctx))(t)
		if all += len(page.Quotas); len(page.Quotas) > 4 {
			t.Fatalf("a page of %d", len(page.Quotas))
		}
	}
	if defaults := must(e.quotas().ListAWSDefaultServiceQuotas(ctx, &servicequotas.ListAWSDefaultServiceQuotasInput{ServiceCode: aws.String("ec2")}))(t).Quotas; len(defaults) != all || all < 10 {
		t.Errorf("%d quotas on pages, %d defaults", all, len(defaults))
	}
	one := must(e.quotas().ListServiceQuotas(ctx, &servicequotas.ListServiceQuotasInput{ServiceCode: aws.String("ec2"), QuotaCode: aws.String(standardVcpus)}))(t).Quotas
	if len(one) != 1 || aws.ToFloat64(one[0].Value) != 32 || one[0].UsageMetric.MetricDimensions["Class"] != "Standard/OnDemand" {
		t.Errorf("one: %+v", one)
	}
	_, err := e.quotas().GetServiceQuota(ctx, &servicequotas.GetServiceQuotaInput{ServiceCode: aws.String("ec2"), QuotaCode: aws.String("L-00000000")})
	wantCode(t, err, "NoSuchResourceException")
	_, err = e.quotas().ListServiceQuotas(ctx, &servicequotas.ListServiceQuotasInput{ServiceCode: aws.String("nothing")})
	wantCode(t, err, "NoSuchResourceException")
	_, err = e.quotas().ListServiceQuotas(ctx, &servicequotas.ListServiceQuotasInput{ServiceCode: aws.String("ec2"), NextToken: aws.String("AAAA")})
	wantCode(t, err, "InvalidPaginationTokenException")

	var saved bytes.Buffer
	if err := e.srv.Save(&saved); err != nil {
		t.Fatal(err)
	}
	again := start(t, awsemu.Options{Clock: e.clock})
	if err := again.srv.Load(&saved); err != nil {
		t.Fatal(err)
	}
	if n := get(again, "ec2", standardVcpus); n != 32 {
		t.Errorf("after a restart %v", n)
	}
	if err := e.srv.Seed(strings.NewReader(`{"regions": {"eu-west-1": {"quotas": {"cows": 3}}}}`)); err == nil {
		t.Error("a quota of an unknown name was taken")
	}
}

func TestTargetGroups(t *testing.T) {
	e := start(t, awsemu.Options{})
	vpc := e.defaultVPC()
	e.seed(`{"targetGroups": [{"name": "web", "vpc": "` + vpc + `"}, {"name": "tcp", "vpc": "` + vpc + `", "protocol": "TCP", "port": 443, "type": "ip"}]}`)
	all := must(e.elb().DescribeTargetGroups(ctx, &elb.DescribeTargetGroupsInput{}))(t).TargetGroups
	if len(all) != 2 || aws.ToString(all[1].VpcId) != vpc || all[1].Protocol != "HTTP" || aws.ToInt32(all[0].Port) != 443 || all[0].TargetType != "ip" {
		t.Fatalf("all: %+v", all)
	}
	one := must(e.elb().DescribeTargetGroups(ctx, &elb.DescribeTargetGroupsInput{TargetGroupArns: []string{aws.ToString(all[1].TargetGroupArn)}}))(t).TargetGroups
	if len(one) != 1 || aws.ToString(one[0].TargetGroupName) != "web" {
		t.Errorf("by ARN: %+v", one)
	}
	first := must(e.elb().DescribeTargetGroups(ctx, &elb.DescribeTargetGroupsInput{PageSize: aws.Int32(1)}))(t)
	rest := must(e.elb().DescribeTargetGroups(ctx, &elb.DescribeTargetGroupsInput{PageSize: aws.Int32(1), Marker: first.NextMarker}))(t)
	if len(first.TargetGroups) != 1 || len(rest.TargetGroups) != 1 || rest.NextMarker != nil {
		t.Errorf("pages: %+v, %+v", first, rest)
	}
	for name, in := range map[string]*elb.DescribeTargetGroupsInput{
		"TargetGroupNotFound":  {Names: []string{"web", "nothing"}},
		"LoadBalancerNotFound": {LoadBalancerArn: aws.String("arn:aws:elasticloadbalancing:eu-west-1:000000000000:loadbalancer/app/a/1")},
		"ValidationError":      {Names: []string{"web"}, TargetGroupArns: []string{"arn:x"}},
	} {
		_, err := e.elb().DescribeTargetGroups(ctx, in)
		wantCode(t, err, name)
	}
	if err := e.srv.Seed(strings.NewReader(`{"regions": {"eu-west-1": {"targetGroups": [{"name": "a", "vpc": "vpc-0123456789abcdef0"}]}}}`)); err == nil {
		t.Error("a target group of an unknown VPC was taken")
	}
}
