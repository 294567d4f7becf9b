package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/lazyregexp"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/nearest"
)

var (
	terminationPolicies = []string{"Default", "AllocationStrategy", "ClosestToNextInstanceHour", "NewestInstance", "OldestInstance", "OldestLaunchConfiguration", "OldestLaunchTemplate"}
	healthChecks        = []string{"EC2", "EBS", "ELB", "VPC_LATTICE"}

	lambdaARN      = lazyregexp.New(`^arn:[^:]+:lambda:.+`)
	versionOrAlias = lazyregexp.New(`^([1-9][0-9]*|\$Latest|\$Default)$`)
)

// longestGroupName is Auto Scaling's limit for the name of a group, in characters.
const longestGroupName = 255

// checkGroupName applies the rules of AutoScalingGroupName in the API reference of
// CreateAutoScalingGroup: ASCII characters from 33 to 126, and no colon.
func checkGroupName(r kinds.Reporter, at intent.Path, name string) {
	if len(name) > longestGroupName {
		r.Error(at, "out-of-range", fmt.Sprintf("%s has %d characters; Auto Scaling accepts %d", at, len(name), longestGroupName), "")
		return
	}
	for _, c := range name {
		if c < '!' || c > '~' || c == ':' {
			r.Error(at, "bad-value", fmt.Sprintf("%s contains %q, which Auto Scaling does not accept in the name of a group", at, c),
				"write printable ASCII characters, without spaces and colons")
			return
		}
	}
}

// checkGroupOptions applies the rules of Auto Scaling that concern only the options: CreateAutoScalingGroup,
// PutWarmPool and their types in its API reference.
func checkGroupOptions(r kinds.Reporter, g *kinds.GroupOptions) {
	if g == nil {
		return
	}
	at := kinds.OptionsGroup
	checkGroupName(r, at.Join("name"), g.Name)
	if g.HealthCheckType != "" {
		for _, kind := range strings.Split(g.HealthCheckType, ",") {
			if !slices.Contains(healthChecks, kind) {
				r.Error(at.Join("healthCheckType"), "bad-enum", fmt.Sprintf("%s cannot be %q", at.Join("healthCheckType"), g.HealthCheckType), "it must be "+kinds.OneOf(healthChecks)+", or several of them separated by commas, without spaces")
				break
			}
		}
	}
	checkTermination(r, at.Join("terminationPolicies"), g.TerminationPolicies)
	if n := g.MaxInstanceLifetime; n != nil && *n != 0 && *n < 86400 {
		r.Error(at.Join("maxInstanceLifetime"), "out-of-range", fmt.Sprintf("%s is %d; it is 0, or a day (86400 seconds) at least", at.Join("maxInstanceLifetime"), *n), "")
	}
	if m := g.InstanceMaintenancePolicy; m != nil && m.MinHealthyPercentage != nil && m.MaxHealthyPercentage != nil {
		checkPercentages(r, at.Join("instanceMaintenancePolicy"), *m.MinHealthyPercentage, *m.MaxHealthyPercentage)
	}
	kinds.CheckARN(r, at.Join("serviceLinkedRoleARN"), g.ServiceLinkedRoleARN)
	checkTraffic(r, g)
	checkReservation(r, at.Join("capacityReservationSpecification"), g.CapacityReservationSpecification)
	checkWarmPoolOptions(r, g)
	if m := g.MetricsCollection; m != nil {
		each(r, at.Join("metricsCollection", "metrics"), m.Metrics, func(v string) string {
			if slices.Contains(kinds.GroupMetrics(), v) {
				return ""
			}
			if near := nearest.Word(v, kinds.GroupMetrics()); near != "" {
				return fmt.Sprintf("did you mean %q?", near)
			}
			return "see EnableMetricsCollection in the API reference of Auto Scaling"
		})
	}
	checkRefreshOptions(r, at.Join("refreshPreferences"), g.RefreshPreferences)
	checkMixedOptions(r, at.Join("mixedInstancesPolicy"), g.MixedInstancesPolicy)
}

func checkTermination(r kinds.Reporter, p intent.Path, policies []string) {
	if policies == nil {
		return
	}
	if len(policies) == 0 {
		r.Error(p, "out-of-range", p.String()+" is empty", `write "Default" for that of AWS`)
	}
	each(r, p, policies, func(v string) string {
		if slices.Contains(terminationPolicies, v) || lambdaARN.MatchString(v) {
			return ""
		}
		return "it must be " + kinds.OneOf(terminationPolicies) + ", or the ARN of a Lambda function"
	})
}

// checkWarmPoolOptions applies the rules that concern only the options of a warm pool.
func checkWarmPoolOptions(r kinds.Reporter, g *kinds.GroupOptions) {
	at := kinds.OptionsGroup
	if g.WarmPool != nil && g.DeleteWarmPool {
		r.Error(at.Join("deleteWarmPool"), "exclusive", at.Join("deleteWarmPool").String()+" excludes warmPool", "one removes what the other creates")
	}
	if w := g.WarmPool; w != nil && w.MaxGroupPreparedCapacity >= 0 && w.MinSize > w.MaxGroupPreparedCapacity {
		p := at.Join("warmPool", "minSize")
		r.Error(p, "out-of-range", fmt.Sprintf("%s is %d, above maxGroupPreparedCapacity %d", p, w.MinSize, w.MaxGroupPreparedCapacity), "")
	}
}

// each checks the items of a list. It reports duplicates. wrong returns the fault of an item, or "".
func each(r kinds.Reporter, p intent.Path, list []string, wrong func(string) string) {
	for i, v := range list {
		at := p.Join(intent.Index(i))
		if slices.Contains(list[:i], v) {
			r.Error(at, "duplicate", fmt.Sprintf("%s is %q, which is in the list already", at, v), "")
		} else if why := wrong(v); why != "" {
			r.Error(at, "bad-value", fmt.Sprintf("%s cannot be %q", at, v), why)
		}
	}
}

func checkPercentages(r kinds.Reporter, p intent.Path, low, high int32) {
	switch {
	case low == -1 && high == -1:
	case low == -1 || high == -1:
		r.Error(p, "out-of-range", p.String()+" has -1 in one of its members", "-1 in both removes the policy")
	case high < 100:
		r.Error(p.Join("maxHealthyPercentage"), "out-of-range", fmt.Sprintf("%s is %d, must be at least 100", p.Join("maxHealthyPercentage"), high), "")
	case high-low > 100:
		r.Error(p, "out-of-range", fmt.Sprintf("%s: maxHealthyPercentage %d is more than 100 above minHealthyPercentage %d", p, high, low), "")
	}
}

// checkTraffic checks the load balancers and target groups of a group: their form, duplicates, and that
// trafficSources and the older lists exclude each other.
func checkTraffic(r kinds.Reporter, g *kinds.GroupOptions) {
	at := kinds.OptionsGroup
	for field, list := range map[string][]string{"targetGroupARNs": g.TargetGroupARNs, "loadBalancerNames": g.LoadBalancerNames} {
		if list != nil && g.TrafficSources != nil {
			r.Error(at.Join(field), "exclusive", at.Join(field).String()+" excludes trafficSources", "trafficSources holds all load balancers and target groups of the group")
		}
	}
	each(r, at.Join("targetGroupARNs"), g.TargetGroupARNs, func(v string) string {
		if kinds.SourceType(v) == "elbv2" {
			return ""
		}
		return "the ARN of a target group is arn:aws:elasticloadbalancing:REGION:ACCOUNT:targetgroup/NAME/ID"
	})
	each(r, at.Join("loadBalancerNames"), g.LoadBalancerNames, func(v string) string {
		if v == "" || strings.HasPrefix(v, "arn:") {
			return "write the name of a Classic Load Balancer; others are attached by targetGroupARNs"
		}
		return ""
	})
	seen := map[string]bool{}
	for i, s := range g.TrafficSources {
		p := at.Join("trafficSources", intent.Index(i))
		if seen[s.Identifier] && s.Identifier != "" {
			r.Error(p, "duplicate", fmt.Sprintf("%s is %q, which is in the list already", p.Join("identifier"), s.Identifier), "")
		}
		seen[s.Identifier] = true
		if kind := kinds.SourceType(s.Identifier); kind != s.Type && (s.Type != "" || kind == "elb") && s.Identifier != "" {
			r.Error(p.Join("type"), "mismatch", fmt.Sprintf("%s does not fit the identifier, which is of type %s", p.Join("type"), kind),
				"a Classic Load Balancer is named with type elb, a target group by its ARN")
		}
	}
}

// checkReservation checks the targeted capacity reservations of a group at path p. c may be nil.
func checkReservation(r kinds.Reporter, p intent.Path, c *intent.GroupReservation) {
	if c == nil {
		return
	}
	t := c.CapacityReservationTarget
	if t == nil {
		return
	}
	at := p.Join("capacityReservationTarget")
	if c.CapacityReservationPreference == "none" {
		r.Error(at, "exclusive", at.String()+" excludes capacityReservationPreference none", "none keeps instances out of all reservations")
	}
	if len(t.CapacityReservationIDs)+len(t.CapacityReservationResourceGroupARNs) == 0 {
		r.Error(at, "incomplete", at.String()+" names no reservation", "write capacityReservationIds or capacityReservationResourceGroupArns")
	}
	for i, arn := range t.CapacityReservationResourceGroupARNs {
		kinds.CheckARN(r, at.Join("capacityReservationResourceGroupArns", intent.Index(i)), arn)
	}
}

// checkRefreshOptions checks the alarms and checkpoints of an instance refresh at path p. o may be nil.
func checkRefreshOptions(r kinds.Reporter, p intent.Path, o *kinds.RefreshOptions) {
	if o == nil {
		return
	}
	if a := o.AlarmSpecification; a != nil {
		at := p.Join("alarmSpecification", "alarms")
		if len(a.Alarms) > 10 {
			r.Error(at, "out-of-range", fmt.Sprintf("%s names %d alarms; a refresh allows 10", at, len(a.Alarms)), "")
		}
		each(r, at, a.Alarms, func(v string) string {
			if v == "" || len(v) > 255 {
				return "the name of a CloudWatch alarm has 1 to 255 characters"
			}
			return ""
		})
	}
	at := p.Join("checkpointPercentages")
	for i, n := range o.CheckpointPercentages {
		if n < 1 || n > 100 || i > 0 && n <= o.CheckpointPercentages[i-1] {
			r.Error(at.Join(intent.Index(i)), "out-of-range", fmt.Sprintf("%s is %d: checkpoints are from 1 to 100, each above the one before", at.Join(intent.Index(i)), n), "")
		}
	}
	if n := len(o.CheckpointPercentages); n > 0 && o.CheckpointPercentages[n-1] != 100 {
		r.Warn(at, "incomplete", fmt.Sprintf("%s ends at %d: a refresh then replaces no more machines", at, o.CheckpointPercentages[n-1]), "let the last checkpoint be 100, or instances of two versions stay")
	}
	if o.CheckpointDelay != nil && len(o.CheckpointPercentages) == 0 {
		r.Error(p.Join("checkpointDelay"), "incomplete", p.Join("checkpointDelay").String()+" needs checkpointPercentages", "it is the wait after each of them")
	}
}

// CheckRetention reports a retention policy without a termination hook that can be abandoned. Auto Scaling
// retains instances only when such a hook is abandoned ("Configure instance retention" in its user guide).
func (d *Derived) CheckRetention() {
	p := d.Group.Options.InstanceLifecyclePolicy
	if p == nil || p.RetentionTriggers == nil || p.RetentionTriggers.TerminateHookAbandon != "retain" {
		return
	}
	const terminating = "autoscaling:EC2_INSTANCE_TERMINATING"
	if !slices.ContainsFunc(d.Group.LifecycleHooks, func(h intent.LifecycleHook) bool { return h.LifecycleTransition == terminating }) {
		at := kinds.OptionsGroup.Join("instanceLifecyclePolicy", "retentionTriggers", "terminateHookAbandon")
		d.AtOptions.Warn(at, "retains-nothing", at.String()+" is retain, and the pool has no lifecycle hook for terminations that could be abandoned",
			"add one to spec.lifecycleHooks of the pool, with lifecycleTransition "+terminating)
	}
}

// CheckWarmPool checks a warm pool against the pool: "Warm pools" in the user guide of Auto Scaling.
func (d *Derived) CheckWarmPool(pool *kinds.Decoded[kinds.AWSMachinePoolSpec], g *kinds.GroupOptions) {
	w, at := g.WarmPool, kinds.OptionsGroup.Join("warmPool")
	if w == nil {
		return
	}
	lt, template := &pool.Spec.AWSLaunchTemplate, path("spec", "awsLaunchTemplate")
	const spot = "a warm pool has only on-demand instances"
	switch m := d.Group.MixedInstancesPolicy; {
	case lt.SpotMarketOptions != nil:
		d.OptionsExclude(at, template.Join("spotMarketOptions"), spot)
	case lt.MarketType == "Spot":
		d.OptionsExclude(at, template.Join("marketType"), spot)
	case m != nil && m.OnDemandPercentageAboveBaseCapacity < 100:
		d.OptionsExclude(at, path("spec", "mixedInstancesPolicy", "instancesDistribution", "onDemandPercentageAboveBaseCapacity"), spot)
	}
	if t := d.LaunchTemplate; w.PoolState == "Hibernated" && t != nil && (t.Data.HibernationOptions == nil || !intent.Value(t.Data.HibernationOptions.Configured)) {
		p := at.Join("poolState")
		d.AtOptions.Warn(p, "incomplete", p.String()+" Hibernated needs instances that can hibernate", "write spec.launchTemplate.hibernationOptions.configured: true")
	}
}

// CheckCapacityType checks DesiredCapacityType (API reference of Auto Scaling).
func (d *Derived) CheckCapacityType(g *kinds.GroupOptions) {
	m := d.Group.MixedInstancesPolicy
	byAttributes := m != nil && slices.ContainsFunc(m.Overrides, func(o intent.Override) bool { return o.InstanceRequirements != nil })
	if at := kinds.OptionsGroup.Join("desiredCapacityType"); g.DesiredCapacityType != "" && g.DesiredCapacityType != "units" && !byAttributes {
		d.AtOptions.Error(at, "incomplete", fmt.Sprintf("%s %s needs instanceRequirements in mixedInstancesPolicy.overrides", at, g.DesiredCapacityType), "other groups count instances")
	}
}

// CheckRollback checks AutoRollback of RefreshPreferences (API reference of Auto Scaling).
func (d *Derived) CheckRollback() {
	if d.Group.MixedInstancesPolicy == nil {
		return
	}
	for _, o := range d.Group.MixedInstancesPolicy.Overrides {
		if t := o.LaunchTemplate; t != nil && strings.HasPrefix(t.Version, "$") {
			at := kinds.OptionsGroup.Join("refreshPreferences", "autoRollback")
			d.AtOptions.Error(at, "exclusive", fmt.Sprintf("%s excludes a launch template by %s", at, t.Version), "a refresh is rolled back only where each version is a number")
			return
		}
	}
}
