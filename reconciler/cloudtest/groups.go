package cloudtest

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

func groupContracts() []contract {
	return []contract{
		{"a group comes back with its template and tags", nil, groupComesBack},
		{"instances say what they run", []Capability{InstanceDetails}, instanceDetails},
		{"a launch that EC2 refuses says why", []Capability{LaunchChecks}, refusedLaunch},
		{"all settings of a group come back", []Capability{GroupSettings}, groupSettings},
		{"names that are not there are left out", nil, missingGroups},
		{"groups are found by tag, tag key and tag value", nil, groupFilters},
		{"groups come in pages", nil, groupPages},
		{"page sizes and tokens are checked", []Capability{GroupPageLimits}, groupPageLimits},
		{"a name is taken once", []Capability{GroupChecks}, takenGroupName},
		{"what contradicts itself is refused", []Capability{GroupChecks}, contradictoryGroup},
		{"hooks are made with the group", []Capability{InlineHooks}, inlineHooks},
		{"a mixed instances policy comes back", nil, mixedPolicyComesBack},
	}
}

type createGroup = autoscaling.CreateAutoScalingGroupInput

func groupComesBack(e *env) {
	t := e.template("lt")
	n := e.version(t, "m5.xlarge")
	name := e.group("a", func(in *createGroup) {
		in.LaunchTemplate, in.DesiredCapacity, in.MinSize = spec(t, n), aws.Int32(2), aws.Int32(1)
	})
	g := e.inService(name, 2)
	e.equal("sizes", []int32{1, 4, 2}, []int32{*g.MinSize, *g.MaxSize, *g.DesiredCapacity})
	e.equal("template", []string{*t.LaunchTemplateId, *t.LaunchTemplateName, "2"}, []string{*g.LaunchTemplate.LaunchTemplateId, *g.LaunchTemplate.LaunchTemplateName, *g.LaunchTemplate.Version})
	zones := strings.Split(*g.VPCZoneIdentifier, ",")
	slices.Sort(zones)
	e.equal("subnets", e.subnets(), zones)
	if len(g.Tags) != 1 || *g.Tags[0].Key != tagMark || *g.Tags[0].Value != e.mark || *g.Tags[0].PropagateAtLaunch {
		e.Errorf("tags %+v", g.Tags)
	}
	if aws.ToString(g.AutoScalingGroupARN) == "" || g.CreatedTime == nil || g.Status != nil {
		e.Errorf("ARN %v, created %v, status %v", g.AutoScalingGroupARN, g.CreatedTime, g.Status)
	}
}

func instanceDetails(e *env) {
	t := e.template("lt")
	n := e.version(t, "m5.xlarge")
	name := e.group("a", func(in *createGroup) { in.LaunchTemplate, in.DesiredCapacity = spec(t, n), aws.Int32(2) })
	for _, in := range e.inService(name, 2).Instances {
		if *in.LaunchTemplate.LaunchTemplateId != *t.LaunchTemplateId || *in.LaunchTemplate.Version != "2" || aws.ToString(in.InstanceType) != "m5.xlarge" ||
			aws.ToString(in.AvailabilityZone) == "" || !strings.EqualFold(aws.ToString(in.HealthStatus), "Healthy") {
			e.Errorf("instance %+v", in)
		}
	}
}

// refusedLaunch checks that EC2 refuses tags that instance metadata cannot show when it launches an
// instance, not when the template is created.
func refusedLaunch(e *env) {
	data := e.data("m5.large")
	data.MetadataOptions = &ec2types.LaunchTemplateInstanceMetadataOptionsRequest{InstanceMetadataTags: ec2types.LaunchTemplateInstanceMetadataTagsStateEnabled}
	data.TagSpecifications = []ec2types.LaunchTemplateTagSpecificationRequest{{ResourceType: ec2types.ResourceTypeInstance, Tags: e.tags("kubernetes.io/cluster/c", "owned")}}
	t := e.templateWith("lt", data)
	name, err := e.tryGroup("a", func(in *createGroup) { in.LaunchTemplate, in.DesiredCapacity = spec(t, 1), aws.Int32(1) })
	if err != nil { // earlier than the emulator
		e.refused(err, "ValidationError")
		return
	}
	var why string
	e.eventually("a launch to fail", func() bool {
		out, err := e.asg.DescribeScalingActivities(e.ctx, &autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: aws.String(name)})
		e.must(err)
		for _, a := range out.Activities {
			if a.StatusCode == types.ScalingActivityStatusCodeFailed {
				why = aws.ToString(a.StatusMessage)
			}
		}
		return why != ""
	})
	if !strings.Contains(why, "'kubernetes.io/cluster/c' is not a valid tag key") {
		e.Errorf("it says %q", why)
	}
	e.equal("instances", 0, len(e.describe(name).Instances))
}

func groupSettings(e *env) {
	name := e.group("a", func(in *createGroup) {
		in.DefaultCooldown, in.DefaultInstanceWarmup, in.CapacityRebalance = aws.Int32(17), aws.Int32(0), aws.Bool(true)
	})
	g := e.describe(name)
	e.equal("settings", []any{int32(17), int32(0), true}, []any{*g.DefaultCooldown, *g.DefaultInstanceWarmup, *g.CapacityRebalance})
	plain := e.describe(e.group("b"))
	e.equal("the default cooldown", int32(300), aws.ToInt32(plain.DefaultCooldown))
	if plain.DefaultInstanceWarmup != nil {
		e.Errorf("a warmup that was never set is %d", *plain.DefaultInstanceWarmup)
	}
	_, err := e.asg.UpdateAutoScalingGroup(e.ctx, &autoscaling.UpdateAutoScalingGroupInput{AutoScalingGroupName: aws.String(name), DefaultInstanceWarmup: aws.Int32(-1), DefaultCooldown: aws.Int32(5)})
	e.must(err)
	g = e.describe(name)
	if g.DefaultInstanceWarmup != nil || *g.DefaultCooldown != 5 || !*g.CapacityRebalance {
		e.Errorf("after unsetting: %v, %d, %v", g.DefaultInstanceWarmup, *g.DefaultCooldown, *g.CapacityRebalance)
	}
}

func groupNames(in []types.AutoScalingGroup) []string {
	var out []string
	for _, g := range in {
		out = append(out, aws.ToString(g.AutoScalingGroupName))
	}
	slices.Sort(out)
	return out
}

func missingGroups(e *env) {
	name := e.group("a")
	out, err := e.asg.DescribeAutoScalingGroups(e.ctx, &autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{e.name("none"), name}})
	e.must(err)
	e.equal("groups", []string{name}, groupNames(out.AutoScalingGroups))
}

func groupFilters(e *env) {
	tagged := func(pairs ...string) func(*createGroup) {
		return func(in *createGroup) { in.Tags = e.groupTags(*in.AutoScalingGroupName, pairs...) }
	}
	a, b, c := e.group("a", tagged("k"+e.mark, "1")), e.group("b", tagged("k"+e.mark, "2")), e.group("c", tagged("other", "v"+e.mark))
	find := func(pairs ...string) []string {
		in := &autoscaling.DescribeAutoScalingGroupsInput{MaxRecords: aws.Int32(100)}
		for i := 0; i < len(pairs); i += 2 {
			in.Filters = append(in.Filters, types.Filter{Name: aws.String(pairs[i]), Values: strings.Split(pairs[i+1], "|")})
		}
		out, err := e.asg.DescribeAutoScalingGroups(e.ctx, in)
		e.must(err)
		return groupNames(out.AutoScalingGroups)
	}
	e.equal("by tag", []string{a}, find("tag:k"+e.mark, "1"))
	e.equal("by tag, two values", []string{a, b}, find("tag:k"+e.mark, "1|2"))
	e.equal("by tag key", []string{a, b}, find("tag-key", "k"+e.mark))
	e.equal("by tag value", []string{c}, find("tag-value", "v"+e.mark))
	e.equal("by two filters", []string{b}, find("tag:"+tagMark, e.mark, "tag:k"+e.mark, "2"))
	if n := find("tag:"+tagMark, "none"); len(n) != 0 {
		e.Errorf("a filter without a match found %v", n)
	}
}

func groupPages(e *env) {
	t := e.template("lt")
	want := []string{e.name("a"), e.name("b"), e.name("c")}
	for _, s := range []string{"a", "b", "c"} {
		e.group(s, func(in *createGroup) { in.LaunchTemplate = spec(t, 1) })
	}
	in := &autoscaling.DescribeAutoScalingGroupsInput{Filters: []types.Filter{{Name: aws.String("tag:" + tagMark), Values: []string{e.mark}}}, MaxRecords: aws.Int32(1)}
	var got []string
	for pages := 0; ; pages++ {
		out, err := e.asg.DescribeAutoScalingGroups(e.ctx, in)
		e.must(err)
		if len(out.AutoScalingGroups) > 1 {
			e.Errorf("a page of one holds %d", len(out.AutoScalingGroups))
		}
		got = append(got, groupNames(out.AutoScalingGroups)...)
		// An empty page may be followed by further pages.
		if in.NextToken = out.NextToken; aws.ToString(in.NextToken) == "" || pages > 1000 {
			break
		}
	}
	slices.Sort(got)
	e.equal("all pages", want, got)
}

func groupPageLimits(e *env) {
	_, err := e.asg.DescribeAutoScalingGroups(e.ctx, &autoscaling.DescribeAutoScalingGroupsInput{MaxRecords: aws.Int32(101)})
	e.refused(err, "ValidationError")
	_, err = e.asg.DescribeAutoScalingGroups(e.ctx, &autoscaling.DescribeAutoScalingGroupsInput{NextToken: aws.String("nonsense")})
	e.refused(err, "InvalidNextToken")
}

func takenGroupName(e *env) {
	e.group("a")
	_, err := e.tryGroup("a", func(in *createGroup) { in.LaunchTemplate = spec(e.template("other"), 1) })
	e.refused(err, "AlreadyExists")
}

func contradictoryGroup(e *env) {
	t := e.template("lt")
	for name, change := range map[string]func(*createGroup){
		"minimum above maximum":         func(in *createGroup) { in.MinSize, in.MaxSize = aws.Int32(3), aws.Int32(2) },
		"desired above maximum":         func(in *createGroup) { in.DesiredCapacity = aws.Int32(9) },
		"desired below minimum":         func(in *createGroup) { in.MinSize = aws.Int32(1) },
		"no such version":               func(in *createGroup) { in.LaunchTemplate = spec(t, 9) },
		"neither subnets nor zones":     func(in *createGroup) { in.VPCZoneIdentifier = nil },
		"id and name of the template":   func(in *createGroup) { in.LaunchTemplate.LaunchTemplateName = t.LaunchTemplateName },
		"a subnet that does not exist":  func(in *createGroup) { in.VPCZoneIdentifier = aws.String("subnet-00000000000000000") },
		"a template and a mixed policy": func(in *createGroup) { in.MixedInstancesPolicy = policy(spec(t, 1), "m5.large") },
	} {
		_, err := e.tryGroup("a", func(in *createGroup) { in.LaunchTemplate = spec(t, 1) }, change)
		if code(err) != "ValidationError" {
			e.Errorf("%s: got %q (%v), want ValidationError", name, code(err), err)
		}
	}
}

func inlineHooks(e *env) {
	name := e.group("a", func(in *createGroup) {
		in.LifecycleHookSpecificationList = []types.LifecycleHookSpecification{{
			LifecycleHookName: aws.String("drain"), LifecycleTransition: aws.String("autoscaling:EC2_INSTANCE_TERMINATING"), HeartbeatTimeout: aws.Int32(60), DefaultResult: aws.String("CONTINUE"),
		}}
	})
	out, err := e.asg.DescribeLifecycleHooks(e.ctx, &autoscaling.DescribeLifecycleHooksInput{AutoScalingGroupName: aws.String(name)})
	e.must(err)
	if len(out.LifecycleHooks) != 1 || *out.LifecycleHooks[0].LifecycleHookName != "drain" || *out.LifecycleHooks[0].HeartbeatTimeout != 60 || *out.LifecycleHooks[0].DefaultResult != "CONTINUE" {
		e.Errorf("hooks %+v", out.LifecycleHooks)
	}
}

func policy(s *types.LaunchTemplateSpecification, instanceTypes ...string) *types.MixedInstancesPolicy {
	p := &types.MixedInstancesPolicy{
		LaunchTemplate: &types.LaunchTemplate{LaunchTemplateSpecification: s},
		InstancesDistribution: &types.InstancesDistribution{
			OnDemandBaseCapacity: aws.Int32(1), OnDemandPercentageAboveBaseCapacity: aws.Int32(25), SpotAllocationStrategy: aws.String("capacity-optimized"),
		},
	}
	for _, t := range instanceTypes {
		p.LaunchTemplate.Overrides = append(p.LaunchTemplate.Overrides, types.LaunchTemplateOverrides{InstanceType: aws.String(t)})
	}
	return p
}

func mixedPolicyComesBack(e *env) {
	t := e.template("lt")
	name := e.group("a", func(in *createGroup) { in.MixedInstancesPolicy = policy(spec(t, 1), "m5.xlarge", "m5.large") })
	g := e.describe(name)
	if g.MixedInstancesPolicy == nil || g.LaunchTemplate != nil {
		e.Fatalf("policy %v, template %v", g.MixedInstancesPolicy, g.LaunchTemplate)
	}
	var order []string
	for _, o := range g.MixedInstancesPolicy.LaunchTemplate.Overrides {
		order = append(order, aws.ToString(o.InstanceType))
	}
	e.equal("overrides in order", []string{"m5.xlarge", "m5.large"}, order)
	d := g.MixedInstancesPolicy.InstancesDistribution
	e.equal("distribution", []any{int32(1), int32(25), "capacity-optimized"}, []any{*d.OnDemandBaseCapacity, *d.OnDemandPercentageAboveBaseCapacity, *d.SpotAllocationStrategy})
	e.equal("template", "1", aws.ToString(g.MixedInstancesPolicy.LaunchTemplate.LaunchTemplateSpecification.Version))
}
