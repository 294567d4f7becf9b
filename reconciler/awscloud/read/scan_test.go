package read

import (
	"context"
	"fmt"
	"github.com/weir-gitops/weir/reconciler/awscloud/sdk"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/google/go-cmp/cmp"
	"github.com/weir-gitops/weir/reconciler/observed"
)

// groupsPageOf wraps groups into an answer of DescribeAutoScalingGroups.
func groupsPageOf(groups string) string {
	return `<?xml version="1.0"?><DescribeAutoScalingGroupsResponse xmlns="http://autoscaling.amazonaws.com/doc/2011-01-01/"><DescribeAutoScalingGroupsResult><AutoScalingGroups>` +
		groups + `</AutoScalingGroups><NextToken>a&amp;b</NextToken></DescribeAutoScalingGroupsResult><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></DescribeAutoScalingGroupsResponse>`
}

const wholeGroup = `<member><AutoScalingGroupName>web</AutoScalingGroupName><AutoScalingGroupARN>arn</AutoScalingGroupARN>
	<LaunchTemplate><LaunchTemplateId>lt-1</LaunchTemplateId><LaunchTemplateName>web</LaunchTemplateName><Version>3</Version></LaunchTemplate>
	<MinSize>1</MinSize><MaxSize>9</MaxSize><DesiredCapacity>2</DesiredCapacity><DefaultCooldown>7</DefaultCooldown><DefaultInstanceWarmup>0</DefaultInstanceWarmup>
	<AvailabilityZones><member>eu-west-1a</member></AvailabilityZones><LoadBalancerNames/><TargetGroupARNs></TargetGroupARNs><HealthCheckType>EC2</HealthCheckType>
	<Instances><member><InstanceId>i-2</InstanceId><InstanceType>m5.large</InstanceType><AvailabilityZone>eu-west-1a</AvailabilityZone><LifecycleState>InService</LifecycleState>
	<HealthStatus>Healthy</HealthStatus><LaunchTemplate><LaunchTemplateId>lt-1</LaunchTemplateId><Version>2</Version></LaunchTemplate><ProtectedFromScaleIn>true</ProtectedFromScaleIn></member>
	<member><InstanceId>i-1</InstanceId></member></Instances><CreatedTime>2026-01-02T03:04:05.678Z</CreatedTime><Status>Delete in progress</Status>
	<SuspendedProcesses><member><ProcessName>Launch</ProcessName><SuspensionReason>r &lt;x&gt;</SuspensionReason></member><member><ProcessName>AZRebalance</ProcessName></member></SuspendedProcesses>
	<VPCZoneIdentifier>subnet-b, subnet-a</VPCZoneIdentifier><EnabledMetrics/><CapacityRebalance>true</CapacityRebalance>
	<Tags><member><Key>k&#x20;1</Key><Value>v &amp; w</Value><PropagateAtLaunch>true</PropagateAtLaunch><ResourceId>web</ResourceId></member><member><Key>empty</Key><Value></Value></member></Tags>
	<TerminationPolicies><member>Default</member></TerminationPolicies></member>`

const allOptions = `<HealthCheckType>EC2,ELB</HealthCheckType><HealthCheckGracePeriod>30</HealthCheckGracePeriod><TargetGroupARNs><member>arn:b</member></TargetGroupARNs>
	<LoadBalancerNames><member>old</member></LoadBalancerNames><TrafficSources><member><Identifier>arn:b</Identifier><Type>elbv2</Type></member><member><Identifier>arn:a</Identifier><Type>vpc-lattice</Type></member></TrafficSources>
	<TerminationPolicies><member>OldestInstance</member><member>Default</member></TerminationPolicies><NewInstancesProtectedFromScaleIn>true</NewInstancesProtectedFromScaleIn>
	<PlacementGroup>close</PlacementGroup><ServiceLinkedRoleARN>arn:role</ServiceLinkedRoleARN><MaxInstanceLifetime>86400</MaxInstanceLifetime><DesiredCapacityType>vcpu</DesiredCapacityType>
	<EnabledMetrics><member><Metric>GroupMinSize</Metric><Granularity>1Minute</Granularity></member><member><Metric>GroupMaxSize</Metric></member></EnabledMetrics>
	<WarmPoolConfiguration><MaxGroupPreparedCapacity>5</MaxGroupPreparedCapacity><MinSize>1</MinSize><PoolState>Running</PoolState><Status>PendingDelete</Status>
	<InstanceReusePolicy><ReuseOnScaleIn>true</ReuseOnScaleIn></InstanceReusePolicy></WarmPoolConfiguration><WarmPoolSize>1</WarmPoolSize><DeletionProtection>none</DeletionProtection>
	<InstanceMaintenancePolicy><MinHealthyPercentage>90</MinHealthyPercentage><MaxHealthyPercentage>120</MaxHealthyPercentage></InstanceMaintenancePolicy>
	<AvailabilityZoneDistribution><CapacityDistributionStrategy>balanced-only</CapacityDistributionStrategy></AvailabilityZoneDistribution>
	<AvailabilityZoneImpairmentPolicy><ZonalShiftEnabled>false</ZonalShiftEnabled><ImpairedZoneHealthCheckBehavior>IgnoreUnhealthy</ImpairedZoneHealthCheckBehavior></AvailabilityZoneImpairmentPolicy>
	<CapacityReservationSpecification><CapacityReservationPreference>default</CapacityReservationPreference><CapacityReservationTarget><CapacityReservationIds><member>cr-1</member></CapacityReservationIds>
	</CapacityReservationTarget></CapacityReservationSpecification><InstanceLifecyclePolicy><RetentionTriggers><TerminateHookAbandon>retain</TerminateHookAbandon></RetentionTriggers></InstanceLifecyclePolicy>`

func policyGroup(policy string) string {
	return `<member><AutoScalingGroupName>mixed</AutoScalingGroupName><MixedInstancesPolicy>` + policy + `</MixedInstancesPolicy></member>`
}

const policyTemplate = `<LaunchTemplateSpecification><LaunchTemplateId>lt-1</LaunchTemplateId><Version>3</Version></LaunchTemplateSpecification>`

func groupsFixtures() map[string]string {
	overrides := func(more string) string {
		return policyGroup(`<LaunchTemplate>` + policyTemplate + `<Overrides><member><InstanceType>m5.large</InstanceType>` + more + `</member><member><InstanceType>m5.xlarge</InstanceType></member></Overrides></LaunchTemplate>`)
	}
	distribution := func(d string) string {
		return policyGroup(`<LaunchTemplate>` + policyTemplate + `</LaunchTemplate><InstancesDistribution>` + d + `</InstancesDistribution>`)
	}
	return map[string]string{
		"none": "", "whole": wholeGroup, "bare": `<member><AutoScalingGroupName>bare</AutoScalingGroupName></member>`,
		"several": wholeGroup + `<member><AutoScalingGroupName>bare</AutoScalingGroupName></member>`,
		"policy":  overrides(""), "weight": overrides(`<WeightedCapacity>2</WeightedCapacity>`),
		"template by type": overrides(`<LaunchTemplateSpecification><LaunchTemplateId>lt-2</LaunchTemplateId></LaunchTemplateSpecification>`),
		"requirements": policyGroup(`<LaunchTemplate>` + policyTemplate + `<Overrides><member><InstanceRequirements><VCpuCount><Min>2</Min><Max>8</Max></VCpuCount><MemoryMiB><Min>0</Min></MemoryMiB>
			<CpuManufacturers><member>intel</member><member>amd</member></CpuManufacturers><AllowedInstanceTypes/><MemoryGiBPerVCpu><Min>0.5</Min></MemoryGiBPerVCpu><RequireHibernateSupport>false</RequireHibernateSupport>
			<BaselinePerformanceFactors><Cpu><Reference><item><InstanceFamily>m6i</InstanceFamily></item></Reference></Cpu></BaselinePerformanceFactors></InstanceRequirements>
			<LaunchTemplateSpecification><LaunchTemplateId>lt-2</LaunchTemplateId><LaunchTemplateName>arm</LaunchTemplateName><Version>$Latest</Version></LaunchTemplateSpecification></member></Overrides></LaunchTemplate>`),
		"no requirements": overrides(`<InstanceRequirements/><ImageId>ami-1</ImageId>`),
		"empty weight":    overrides(`<WeightedCapacity/>`),
		"distribution": distribution(`<OnDemandAllocationStrategy>prioritized</OnDemandAllocationStrategy><OnDemandBaseCapacity>1</OnDemandBaseCapacity>
			<OnDemandPercentageAboveBaseCapacity>25</OnDemandPercentageAboveBaseCapacity><SpotAllocationStrategy>capacity-optimized</SpotAllocationStrategy>`),
		"lowest price": distribution(`<SpotAllocationStrategy>lowest-price</SpotAllocationStrategy><SpotInstancePools>2</SpotInstancePools><SpotMaxPrice></SpotMaxPrice>`),
		"more pools":   distribution(`<SpotAllocationStrategy>lowest-price</SpotAllocationStrategy><SpotInstancePools>5</SpotInstancePools>`),
		"price":        distribution(`<SpotMaxPrice>0.1</SpotMaxPrice>`),
		"empty policy": policyGroup(""),
		"options":      `<member><AutoScalingGroupName>web</AutoScalingGroupName>` + allOptions + `</member>`,
		"no options": `<member><AutoScalingGroupName>web</AutoScalingGroupName><TargetGroupARNs/><LoadBalancerNames/><TrafficSources/><EnabledMetrics/><TerminationPolicies/>
			<WarmPoolConfiguration/><InstanceMaintenancePolicy/><CapacityReservationSpecification><CapacityReservationTarget/></CapacityReservationSpecification></member>`,
		"empty distribution": policyGroup(`<InstancesDistribution/>`),
	}
}

// answering is a client of a server that gives one answer, and the SDK's own way
// of reading it.
func answering(t *testing.T, status int, body string) aws.Config {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/xml")
		w.WriteHeader(status)
		_, _ = fmt.Fprint(w, body)
	}))
	transport := &http.Transport{}
	t.Cleanup(func() { transport.CloseIdleConnections(); server.Close() })
	return aws.Config{
		Region: "eu-west-1", BaseEndpoint: aws.String(server.URL), Credentials: credentials.NewStaticCredentialsProvider("k", "s", ""),
		HTTPClient: &http.Client{Transport: transport}, RetryMaxAttempts: 1,
	}
}

func TestScannedGroupsAreThoseOfTheSDK(t *testing.T) {
	for name, groups := range groupsFixtures() {
		t.Run(name, func(t *testing.T) {
			body := groupsPageOf(groups)
			out, err := autoscaling.NewFromConfig(answering(t, 200, body)).DescribeAutoScalingGroups(t.Context(), &autoscaling.DescribeAutoScalingGroupsInput{})
			if err != nil {
				t.Fatal(err)
			}
			var want []*observed.Group
			for _, g := range out.AutoScalingGroups {
				want = append(want, new(group(g)))
			}
			got, next, err := scanGroups([]byte(body), nil)
			if err != nil || next != aws.ToString(out.NextToken) {
				t.Fatalf("token %q, %v", next, err)
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("groups (-want +got):\n%s", d)
			}
		})
	}
}

const templatesBody = `<DescribeLaunchTemplatesResponse xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r</requestId><launchTemplates>
	<item><launchTemplateId>lt-1</launchTemplateId><launchTemplateName>web</launchTemplateName><createTime>2026-01-02T03:04:05.000Z</createTime><createdBy>x</createdBy>
	<defaultVersionNumber>1</defaultVersionNumber><latestVersionNumber>12</latestVersionNumber><tagSet><item><key>a</key><value>1 &amp; 2</value></item><item><key>b</key><value/></item></tagSet>
	<operator><managed>false</managed></operator></item><item><launchTemplateName>bare</launchTemplateName></item></launchTemplates><nextToken>n</nextToken></DescribeLaunchTemplatesResponse>`

func TestScannedTemplatesAreThoseOfTheSDK(t *testing.T) {
	out, err := ec2.NewFromConfig(answering(t, 200, templatesBody)).DescribeLaunchTemplates(t.Context(), &ec2.DescribeLaunchTemplatesInput{})
	if err != nil {
		t.Fatal(err)
	}
	var want []*observed.Template
	for _, o := range out.LaunchTemplates {
		want = append(want, new(template(o)))
	}
	got, next, err := scanTemplates([]byte(templatesBody), nil)
	if err != nil || next != "n" || len(got) != 2 {
		t.Fatalf("%d templates, token %q, %v", len(got), next, err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("templates (-want +got):\n%s", d)
	}
}

// TestPagesThatTheScannerRefuses: what it does not understand ends the pass, and is never
// taken for a page without groups; errors are the SDK's to read.
func TestPagesThatTheScannerRefuses(t *testing.T) {
	last := func(body string) string { return strings.Replace(body, "<NextToken>a&amp;b</NextToken>", "", 1) }
	tests := map[string]struct {
		status int
		body   string
		groups int
		kind   observed.ErrorKind
	}{
		"by the scanner": {200, last(groupsPageOf(wholeGroup)), 1, ""},
		"CDATA":          {200, last(groupsPageOf(`<member><AutoScalingGroupName><![CDATA[web]]></AutoScalingGroupName></member>`)), 0, observed.Unknown},
		"an error":       {400, `<ErrorResponse><Error><Code>Throttling</Code><Message>Rate exceeded</Message></Error></ErrorResponse>`, 0, observed.Throttled},
		"no number":      {200, last(groupsPageOf(`<member><MinSize>many</MinSize></member>`)), 0, observed.Unknown},
		"HTML":           {502, `<html><body><hr></body></html>`, 0, observed.Transient},
		"half a page":    {200, groupsPageOf(wholeGroup)[:400], 0, observed.Unknown},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			r := &Reader{Now: time.Now, AutoScaling: OfAutoScaling(autoscaling.NewFromConfig(answering(t, tt.status, tt.body)))}
			got, err := r.OwnedGroups(context.Background(), "prod")
			if tt.kind == "" && err != nil || tt.kind != "" && (err == nil || sdk.Classify("", "", err).Kind != tt.kind) {
				t.Errorf("got the error %v, want %q", err, tt.kind)
			}
			if len(got) != tt.groups {
				t.Errorf("%d groups, want %d", len(got), tt.groups)
			}
		})
	}
}

// FuzzPages: no answer, however broken, panics or is read without end.
func FuzzPages(f *testing.F) {
	for _, g := range groupsFixtures() {
		f.Add([]byte(groupsPageOf(g)))
	}
	f.Add([]byte(templatesBody))
	f.Fuzz(func(t *testing.T, body []byte) {
		groups, next, err := scanGroups(body, nil)
		if err == nil && len(groups) > len(body) {
			t.Errorf("%d groups out of %d bytes", len(groups), len(body))
		}
		var k known[observed.Group]
		for range 2 { // once anew, and once as they are known
			l := k.startList(time.Time{})
			again, token, errAgain := scanGroups(body, l)
			if (err == nil) != (errAgain == nil) || err == nil && (token != next || !cmp.Equal(groups, again)) {
				t.Fatalf("%+v, %q, %v; with what is known %+v, %q, %v", groups, next, err, again, token, errAgain)
			}
			if errAgain == nil {
				l.complete()
			}
		}
		if templates, _, err := scanTemplates(body, nil); err == nil && len(templates) > len(body) {
			t.Errorf("%d templates out of %d bytes", len(templates), len(body))
		}
	})
}

func BenchmarkScanGroups(b *testing.B) {
	body := []byte(groupsPageOf(strings.Repeat(wholeGroup, 100)))
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := scanGroups(body, nil); err != nil {
			b.Fatal(err)
		}
	}
}
