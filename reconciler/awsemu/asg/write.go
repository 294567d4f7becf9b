package asg

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

type createGroupSettings struct {
	GroupInput
	instanceID    string
	loadBalancers []string
	targetGroups  []string
	sources       []trafficSource
	hooks         []*Hook
	tags          []GroupTag
}

func parseCreateGroup(p *wire.Params) createGroupSettings {
	in := createGroupSettings{
		GroupInput: parseGroupInput(p), instanceID: p.Text("InstanceId"),
		loadBalancers: p.Strings("LoadBalancerNames"), targetGroups: p.Strings("TargetGroupARNs"),
	}
	for _, arn := range in.targetGroups {
		checkTargetGroup(p, arn)
	}
	for _, s := range p.List("TrafficSources") {
		in.sources = append(in.sources, parseTrafficSource(s))
	}
	for _, name := range in.loadBalancers {
		in.sources = append(in.sources, classic(p, name))
	}
	for _, h := range p.List("LifecycleHookSpecificationList") {
		in.hooks = append(in.hooks, parseHook(h))
	}
	for _, t := range p.List("Tags") {
		if id := t.Text("ResourceId"); id != "" && id != in.name {
			p.Reject(wire.Fail("ValidationError", "The resource id of a tag must be the name of the group: %s", id))
		}
		in.tags = append(in.tags, parseGroupTag(t).GroupTag)
	}
	if strings.Contains(in.name, ":") {
		p.Bad("AutoScalingGroupName", in.name, "Member must satisfy regular expression pattern: [^:]+")
	}
	return in
}

// checkTargetGroup accepts any well-formed ARN: the emulator has no load balancers
// to ask.
func checkTargetGroup(p *wire.Params, arn string) {
	if parts := strings.Split(arn, ":"); len(parts) != 6 || parts[2] != "elasticloadbalancing" || !strings.HasPrefix(parts[5], "targetgroup/") {
		p.Reject(wire.Fail("ValidationError", "Provided Target Groups may not be valid. Please ensure they exist and try again."))
	}
}

func parseTrafficSource(p *wire.Params) trafficSource {
	s := trafficSource{Identifier: p.Text("Identifier"), Type: p.OneOf("Type", "elb", "elbv2", "vpc-lattice")}
	switch {
	case strings.Contains(s.Identifier, ":targetgroup/") && strings.Contains(s.Identifier, ":vpc-lattice:"):
		s.Type = "vpc-lattice"
	case strings.Contains(s.Identifier, ":targetgroup/"):
		s.Type = "elbv2"
	case s.Type != "elb":
		p.Reject(wire.Fail("ValidationError", "Type is required where the identifier is the name of a Classic Load Balancer"))
	default:
		return classic(p, s.Identifier)
	}
	return s
}

// classic is a Classic Load Balancer by any name that one may have: the emulator
// has none to ask.
func classic(p *wire.Params, name string) trafficSource {
	if !loadBalancerName.MatchString(name) {
		p.Reject(wire.Fail("ValidationError", "Provided Load Balancers may not be valid. Please ensure they exist and try again."))
	}
	return trafficSource{Identifier: name, Type: "elb"}
}

var loadBalancerName = regexp.MustCompile(`^[a-zA-Z0-9-]{1,32}$`)

func createAutoScalingGroup(rq *request, in createGroupSettings) error {
	r := rq.Region
	groups := &r.Groups
	switch {
	case groups.Has(in.name):
		return wire.Fail("AlreadyExists", "AutoScalingGroup by this name already exists - A group with the name %s already exists", in.name)
	case in.instanceID != "":
		return wire.Fail("ValidationError", "InstanceId is not supported: create the group from a launch template")
	case groups.Len() >= r.Quota("auto-scaling-groups"):
		return wire.Fail("LimitExceeded", "You've reached the limit on the number of Auto Scaling groups you can create: %d", r.Quota("auto-scaling-groups"))
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
	r.AddGroup(g, in.name)
	g.Cause = fmt.Sprintf("a user request created an AutoScalingGroup changing the desired capacity from 0 to %d.", g.Desired)
	r.Touch(g)
	return nil
}

// attach adds what is sent beside the settings.
func (in *createGroupSettings) attach(r *Region, g *Group) *wire.Error {
	for _, t := range in.tags {
		if _, twice := g.tagIndex(t.Key); twice {
			return wire.Fail("ValidationError", "Duplicate tag key: %s", t.Key)
		}
		g.SetTag(t)
	}
	if len(g.Tags) > r.Quota("tags") {
		return wire.Fail("LimitExceeded", "The maximum number of tags for a resource has been reached: %d", r.Quota("tags"))
	}
	for _, h := range in.hooks {
		if g.Hooks.Has(h.Name) {
			return wire.Fail("ValidationError", "Duplicate lifecycle hook name: %s", h.Name)
		}
		if h.Transition == "" {
			return wire.Fail("ValidationError", "LifecycleTransition is required")
		}
		g.Hooks.Put(h.Name, h)
	}
	if g.Hooks.Len() > r.Quota("lifecycle-hooks") {
		return wire.Fail("LimitExceeded", "You've reached the limit on the number of lifecycle hooks: %d", r.Quota("lifecycle-hooks"))
	}
	if err := g.attachSources(r, in.sources); err != nil {
		return err
	}
	return g.attachTargets(r, in.targetGroups)
}

// AddGroup stores a new group.
func (r *Region) AddGroup(g *Group, name string) {
	g.Name, g.UUID, g.Created = name, r.NewUUID("asg"), r.Now()
	g.ARN = r.ARN("autoscaling", "autoScalingGroup:"+g.UUID+":autoScalingGroupName/"+name)
	r.Groups.Put(name, g)
}

func parseUpdateGroup(p *wire.Params) GroupInput { return parseGroupInput(p) }

func updateAutoScalingGroup(rq *request, in GroupInput) error {
	r := rq.Region
	g, err := r.changeableGroup(in.name)
	if err != nil {
		return err
	}
	if f := g.activeRefresh(); f != nil && f.Desired != nil && (in.template != nil || in.Mixed != nil) {
		return wire.Fail("ValidationError", "An active instance refresh with a desired configuration exists. All configuration options derived from the desired configuration are not available for update while the instance refresh is active.")
	}
	n, failed := in.Changed(r, g)
	if failed != nil {
		return failed
	}
	if in.template != nil || in.Mixed != nil {
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

// RetryNow forgets that launches failed: something was changed that may help.
func (r *Region) RetryNow(g *Group) {
	g.Failures, g.RetryAt = 0, time.Time{}
	r.Touch(g)
}

type deleteGroupInput struct {
	name  string
	force bool
}

func parseDeleteGroup(p *wire.Params) deleteGroupInput {
	return deleteGroupInput{name: nameOf(p), force: p.Boolean("ForceDelete")}
}

func deleteAutoScalingGroup(rq *request, in deleteGroupInput) error {
	r := rq.Region
	g, err := r.changeableGroup(in.name)
	if err != nil {
		return err
	}
	switch {
	case g.DeletionProtection == "prevent-all-deletion":
		return wire.Fail("ValidationError", "The Auto Scaling group %s cannot be deleted because its deletion protection is prevent-all-deletion.", g.Name)
	case g.DeletionProtection == "prevent-force-deletion" && in.force:
		return wire.Fail("ValidationError", "The Auto Scaling group %s cannot be force deleted because its deletion protection is prevent-force-deletion.", g.Name)
	case in.force && g.keepsAbandoned():
		return wire.Fail("ValidationError", "You can't force delete this Auto Scaling group because the TerminateHookAbandon retention trigger is set to retain. Change the retention trigger to terminate and try again.")
	case !in.force && (g.capacity() > 0 || len(Keep(g.Members, func(m *Member) bool { return m.Lifecycle == memberRetained })) > 0):
		return wire.Fail("ResourceInUse", "You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s) still in the group.")
	case !in.force && (len(g.Members) > 0 || g.Scheduled && g.Desired > 0):
		return wire.Fail("ScalingActivityInProgress", "You cannot delete an AutoScalingGroup while there are scaling activities in progress for that group.")
	case !in.force && g.Warm != nil:
		return wire.Fail("ResourceInUse", "You cannot delete an AutoScalingGroup while it has a warm pool.")
	}
	r.DeleteGroup(g)
	return nil
}

// DeleteGroup ends a group's instances and then the group.
func (r *Region) DeleteGroup(g *Group) {
	g.Deleting = true
	g.Min, g.Max, g.Desired, g.Surge, g.Warm = 0, 0, 0, 0, nil
	r.endAllWarm(g)
	if f := g.activeRefresh(); f != nil {
		r.endRefresh(f, refreshCancelled, "The Auto Scaling group was deleted.")
	}
	for _, m := range append([]*Member(nil), g.Members...) {
		if m.Lifecycle != memberTerminating {
			r.EndMember(g, m, "a user request force deleted AutoScalingGroup, taking the instance out of service.")
		}
	}
	r.removeEmptyGroup(g)
}

// removeEmptyGroup removes a group that is being deleted once its members are gone.
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
	name    string
	desired int64
	honor   bool
}

func parseSetDesired(p *wire.Params) setDesiredInput {
	in := setDesiredInput{name: nameOf(p), honor: p.Boolean("HonorCooldown")}
	if n := sizeOf(p, "DesiredCapacity"); n != nil {
		in.desired = *n
	}
	return in
}

func setDesiredCapacity(rq *request, in setDesiredInput) error {
	r := rq.Region
	g, err := r.changeableGroup(in.name)
	if err != nil {
		return err
	}
	switch {
	case in.desired > g.Max:
		return wire.Fail("ValidationError", "New SetDesiredCapacity value %d is above max value %d for the AutoScalingGroup.", in.desired, g.Max)
	case in.desired < g.Min:
		return wire.Fail("ValidationError", "New SetDesiredCapacity value %d is below min value %d for the AutoScalingGroup.", in.desired, g.Min)
	case in.honor && !g.LastScaled.IsZero() && r.Now().Before(g.LastScaled.Add(time.Duration(g.Cooldown)*time.Second)):
		return wire.Fail("ScalingActivityInProgress", "Scaling activity in progress and cooldown period has not elapsed for AutoScalingGroup %s", g.Name)
	}
	if in.desired != g.Desired {
		g.Cause = fmt.Sprintf("a user request explicitly set group desired capacity changing the desired capacity from %d to %d.", g.Desired, in.desired)
	}
	g.Desired = in.desired
	r.Touch(g)
	return nil
}

func describeAccountLimits(rq *request, _ struct{}) error {
	w := &rq.XML
	w.Integer("MaxNumberOfAutoScalingGroups", int64(rq.Region.Quota("auto-scaling-groups")))
	w.Integer("MaxNumberOfLaunchConfigurations", 200)
	w.Integer("NumberOfAutoScalingGroups", int64(rq.Region.Groups.Len()))
	w.Integer("NumberOfLaunchConfigurations", 0)
	return nil
}
