package asg

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

type createGroupInput struct {
	GroupInput
	InstanceID                     string
	LoadBalancerNames              []string
	TargetGroupARNs                []string
	TrafficSources                 []trafficSource
	LifecycleHookSpecificationList []hookInput
	Tags                           []sentTag
}

func (in *createGroupInput) Check() error {
	if err := cmp.Or(in.GroupInput.Check(), checkTargetGroups(in.TargetGroupARNs), settleSources(in.TrafficSources)); err != nil {
		return err
	}
	for _, name := range in.LoadBalancerNames {
		if err := checkLoadBalancer(name); err != nil {
			return err
		}
		in.TrafficSources = append(in.TrafficSources, trafficSource{Identifier: name, Type: "elb"})
	}
	for _, h := range in.LifecycleHookSpecificationList {
		if err := h.Check(); err != nil {
			return err
		}
	}
	for _, t := range in.Tags {
		if t.ResourceID != "" && t.ResourceID != in.AutoScalingGroupName {
			return invalid("The resource id of a tag must be the name of the group: %s", t.ResourceID)
		}
		if err := t.check(); err != nil {
			return err
		}
	}
	if strings.ContainsFunc(in.AutoScalingGroupName, func(c rune) bool { return c < '!' || c > '~' || c == ':' }) {
		return badValue("AutoScalingGroupName", in.AutoScalingGroupName, "Member must satisfy regular expression pattern: [!-9;-~]+")
	}
	return nil
}

// checkTargetGroups accepts any well-formed ARN, because the emulator has no load balancers.
func checkTargetGroups(arns []string) error {
	for _, arn := range arns {
		if parts := strings.Split(arn, ":"); len(parts) != 6 || parts[2] != "elasticloadbalancing" || !strings.HasPrefix(parts[5], "targetgroup/") {
			return invalid("Provided Target Groups may not be valid. Please ensure they exist and try again.")
		}
	}
	return nil
}

// settleSources checks traffic sources, and derives their types from their identifiers.
func settleSources(sources []trafficSource) error {
	for i := range sources {
		s := &sources[i]
		if err := checkSourceType("Type", s.Type); err != nil {
			return err
		}
		switch {
		case strings.Contains(s.Identifier, ":targetgroup/") && strings.Contains(s.Identifier, ":vpc-lattice:"):
			s.Type = "vpc-lattice"
		case strings.Contains(s.Identifier, ":targetgroup/"):
			s.Type = "elbv2"
		case s.Type != "elb":
			return invalid("Type is required where the identifier is the name of a Classic Load Balancer")
		default:
			if err := checkLoadBalancer(s.Identifier); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkSourceType(name, kind string) error {
	if kind != "" && kind != "elb" && kind != "elbv2" && kind != "vpc-lattice" {
		return badValue(name, kind, "Member must satisfy enum value set: [elb, elbv2, vpc-lattice]")
	}
	return nil
}

// checkLoadBalancer accepts any valid name of a Classic Load Balancer, because the emulator has none.
func checkLoadBalancer(name string) error {
	if !loadBalancerName.MatchString(name) {
		return invalid("Provided Load Balancers may not be valid. Please ensure they exist and try again.")
	}
	return nil
}

var loadBalancerName = lazyregexp.New(`^[a-zA-Z0-9-]{1,32}$`)

func createAutoScalingGroup(rq *request, in createGroupInput) error {
	r := rq.Region
	groups := &r.Groups
	switch {
	case groups.Has(in.AutoScalingGroupName):
		return wire.Fail("AlreadyExists", "AutoScalingGroup by this name already exists - A group with the name %s already exists", in.AutoScalingGroupName)
	case groups.Len() >= r.Quota("auto-scaling-groups"):
		return wire.Fail("LimitExceeded", "You've reached the limit on the number of Auto Scaling groups you can create: %d", r.Quota("auto-scaling-groups"))
	}
	if in.InstanceID != "" { // a launch configuration made from the instance gets the group's name
		if in.LaunchConfigurationName != "" || in.LaunchTemplate != nil || in.MixedInstancesPolicy != nil {
			return oneSource()
		}
		if err := r.addLaunchConfig(in.AutoScalingGroupName, in.InstanceID, wire.Data{}); err != nil {
			return err
		}
		in.LaunchConfigurationName = in.AutoScalingGroupName
	}
	g, err := in.Changed(r, nil)
	if err != nil {
		return err
	}
	if err := r.checkConfig(g.Config, true, g.Subnets); err != nil {
		return err
	}
	if err := in.attach(r, g); err != nil {
		return err
	}
	r.AddGroup(g, in.AutoScalingGroupName)
	g.Cause = fmt.Sprintf("a user request created an AutoScalingGroup changing the desired capacity from 0 to %d.", g.Desired)
	r.Touch(g)
	return nil
}

// attach adds the targets that are sent with the settings.
func (in *createGroupInput) attach(r *Region, g *Group) *wire.Error {
	for _, t := range in.Tags {
		if _, twice := g.tagIndex(t.Key); twice {
			return invalid("Duplicate tag key: %s", t.Key)
		}
		g.SetTag(t.tag())
	}
	if len(g.Tags) > r.Quota("tags") {
		return wire.Fail("LimitExceeded", "The maximum number of tags for a resource has been reached: %d", r.Quota("tags"))
	}
	for _, sent := range in.LifecycleHookSpecificationList {
		h := newHook()
		sent.apply(h)
		if g.Hooks.Has(h.Name) {
			return invalid("Duplicate lifecycle hook name: %s", h.Name)
		}
		if h.Transition == "" {
			return invalid("LifecycleTransition is required")
		}
		g.Hooks.Put(h.Name, h)
	}
	if g.Hooks.Len() > r.Quota("lifecycle-hooks") {
		return wire.Fail("LimitExceeded", "You've reached the limit on the number of lifecycle hooks: %d", r.Quota("lifecycle-hooks"))
	}
	if err := g.attachSources(r, in.TrafficSources); err != nil {
		return err
	}
	return g.attachTargets(r, in.TargetGroupARNs)
}

// AddGroup stores a new group.
func (r *Region) AddGroup(g *Group, name string) {
	g.Name, g.UUID, g.Created = name, r.NewUUID("asg"), r.Now()
	g.ARN = r.ARN("autoscaling", "autoScalingGroup:"+g.UUID+":autoScalingGroupName/"+name)
	r.Groups.Put(name, g)
}

func updateAutoScalingGroup(rq *request, in GroupInput) error {
	r := rq.Region
	g, err := r.changeableGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	if f := g.activeRefresh(); f != nil && f.Desired != nil && (in.LaunchTemplate != nil || in.MixedInstancesPolicy != nil) {
		return invalid("An active instance refresh with a desired configuration exists. All configuration options derived from the desired configuration are not available for update while the instance refresh is active.")
	}
	n, failed := in.Changed(r, g)
	if failed != nil {
		return failed
	}
	if in.LaunchConfigurationName != "" || in.LaunchTemplate != nil || in.MixedInstancesPolicy != nil {
		if failed := r.checkConfig(n.Config, true, n.Subnets); failed != nil {
			return failed
		}
	}
	if n.Min != g.Min || n.Max != g.Max || n.Desired != g.Desired {
		n.Cause = fmt.Sprintf("a user request update of AutoScalingGroup constraints to min: %d, max: %d, desired: %d changing the desired capacity from %d to %d.", n.Min, n.Max, n.Desired, g.Desired, n.Desired)
	}
	*g = *n
	r.RetryNow(g)
	return nil
}

// RetryNow resets the failures of launches, because a change may help.
func (r *Region) RetryNow(g *Group) {
	g.Failures, g.RetryAt = 0, time.Time{}
	r.Touch(g)
}

type deleteGroupInput struct {
	groupName
	ForceDelete bool
}

func deleteAutoScalingGroup(rq *request, in deleteGroupInput) error {
	r := rq.Region
	g, err := r.changeableGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	switch {
	case g.DeletionProtection == "prevent-all-deletion":
		return invalid("The Auto Scaling group %s cannot be deleted because its deletion protection is prevent-all-deletion.", g.Name)
	case g.DeletionProtection == "prevent-force-deletion" && in.ForceDelete:
		return invalid("The Auto Scaling group %s cannot be force deleted because its deletion protection is prevent-force-deletion.", g.Name)
	case in.ForceDelete && g.keepsAbandoned():
		return invalid("You can't force delete this Auto Scaling group because the TerminateHookAbandon retention trigger is set to retain. Change the retention trigger to terminate and try again.")
	case !in.ForceDelete && len(Keep(g.Members, func(m *Member) bool { return !m.ends() })) > 0:
		return wire.Fail("ResourceInUse", "You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s) still in the group.")
	case !in.ForceDelete && (len(g.Members) > 0 || g.Scheduled && g.Desired > 0):
		return wire.Fail("ScalingActivityInProgress", "You cannot delete an AutoScalingGroup while there are scaling activities in progress for that group.")
	case !in.ForceDelete && g.Warm != nil:
		return wire.Fail("ResourceInUse", "You cannot delete an AutoScalingGroup while it has a warm pool.")
	}
	r.DeleteGroup(g)
	return nil
}

// DeleteGroup terminates a group's instances and then deletes the group.
func (r *Region) DeleteGroup(g *Group) {
	g.Deleting = true
	g.Min, g.Max, g.Desired, g.Surge, g.Warm = 0, 0, 0, 0, nil
	Warm(r, g).endAll()
	if f := g.activeRefresh(); f != nil {
		(&replacement{r, g, f}).end(refreshCancelled, "The Auto Scaling group was deleted.")
	}
	for _, m := range append([]*Member(nil), g.Members...) {
		switch {
		case m.Lifecycle == memberEndWaiting:
			(&hooked{r, g, m}).endProceeds(false)
		case !m.ends():
			r.EndMember(g, m, "a user request force deleted AutoScalingGroup, taking the instance out of service.")
		}
	}
	r.removeEmptyGroup(g)
}

// removeEmptyGroup removes a group that is being deleted after its members are gone.
func (r *Region) removeEmptyGroup(g *Group) {
	if !g.Deleting || len(g.Members)+len(g.WarmMembers) > 0 {
		return
	}
	st := r
	for _, a := range g.Activities {
		a.GroupGone = true
	}
	st.Gone = append(st.Gone, g.Activities...)
	if n := len(st.Gone); n > maxGone {
		st.Gone = append([]*activity(nil), st.Gone[n-maxGone:]...)
	}
	st.Groups.Remove(g.Name)
}

type setDesiredInput struct {
	groupName
	DesiredCapacity int64
	HonorCooldown   bool
}

func (in *setDesiredInput) Check() error { return checkSize("DesiredCapacity", &in.DesiredCapacity) }

func setDesiredCapacity(rq *request, in setDesiredInput) error {
	r := rq.Region
	g, err := r.changeableGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	switch {
	case in.DesiredCapacity > g.Max:
		return invalid("New SetDesiredCapacity value %d is above max value %d for the AutoScalingGroup.", in.DesiredCapacity, g.Max)
	case in.DesiredCapacity < g.Min:
		return invalid("New SetDesiredCapacity value %d is below min value %d for the AutoScalingGroup.", in.DesiredCapacity, g.Min)
	case in.HonorCooldown && g.cools(r.Now(), g.Cooldown):
		return wire.Fail("ScalingActivityInProgress", "Scaling activity in progress and cooldown period has not elapsed for AutoScalingGroup %s", g.Name)
	}
	if in.DesiredCapacity != g.Desired {
		g.Cause = fmt.Sprintf("a user request explicitly set group desired capacity changing the desired capacity from %d to %d.", g.Desired, in.DesiredCapacity)
	}
	g.Desired = in.DesiredCapacity
	r.Touch(g)
	return nil
}

func describeAccountLimits(rq *request, _ struct{}) error {
	w := &rq.XML
	w.Integer("MaxNumberOfAutoScalingGroups", int64(rq.Region.Quota("auto-scaling-groups")))
	w.Integer("MaxNumberOfLaunchConfigurations", int64(rq.Region.Quota("launch-configurations")))
	w.Integer("NumberOfAutoScalingGroups", int64(rq.Region.Groups.Len()))
	w.Integer("NumberOfLaunchConfigurations", int64(rq.Region.LaunchConfigs.Len()))
	return nil
}
