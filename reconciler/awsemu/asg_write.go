package awsemu

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

type createGroupSettings struct {
	groupInput
	instanceID    string
	loadBalancers []string
	targetGroups  []string
	sources       []trafficSource
	hooks         []*hook
	tags          []groupTag
}

func parseCreateGroup(p *params) createGroupSettings {
	in := createGroupSettings{
		groupInput: parseGroupInput(p), instanceID: p.text("InstanceId"),
		loadBalancers: p.strings("LoadBalancerNames"), targetGroups: p.strings("TargetGroupARNs"),
	}
	for _, arn := range in.targetGroups {
		checkTargetGroup(p, arn)
	}
	for _, s := range p.list("TrafficSources") {
		in.sources = append(in.sources, parseTrafficSource(s))
	}
	for _, name := range in.loadBalancers {
		in.sources = append(in.sources, classic(p, name))
	}
	for _, h := range p.list("LifecycleHookSpecificationList") {
		in.hooks = append(in.hooks, parseHook(h))
	}
	for _, t := range p.list("Tags") {
		if id := t.text("ResourceId"); id != "" && id != in.name {
			p.reject(fail("ValidationError", "The resource id of a tag must be the name of the group: %s", id))
		}
		in.tags = append(in.tags, parseGroupTag(t).groupTag)
	}
	if strings.Contains(in.name, ":") {
		p.bad("AutoScalingGroupName", in.name, "Member must satisfy regular expression pattern: [^:]+")
	}
	return in
}

// checkTargetGroup accepts any well-formed ARN: the emulator has no load balancers
// to ask.
func checkTargetGroup(p *params, arn string) {
	if parts := strings.Split(arn, ":"); len(parts) != 6 || parts[2] != "elasticloadbalancing" || !strings.HasPrefix(parts[5], "targetgroup/") {
		p.reject(fail("ValidationError", "Provided Target Groups may not be valid. Please ensure they exist and try again."))
	}
}

func parseTrafficSource(p *params) trafficSource {
	s := trafficSource{Identifier: p.text("Identifier"), Type: p.oneOf("Type", "elb", "elbv2", "vpc-lattice")}
	switch {
	case strings.Contains(s.Identifier, ":targetgroup/") && strings.Contains(s.Identifier, ":vpc-lattice:"):
		s.Type = "vpc-lattice"
	case strings.Contains(s.Identifier, ":targetgroup/"):
		s.Type = "elbv2"
	case s.Type != "elb":
		p.reject(fail("ValidationError", "Type is required where the identifier is the name of a Classic Load Balancer"))
	default:
		return classic(p, s.Identifier)
	}
	return s
}

// classic is a Classic Load Balancer by any name that one may have: the emulator
// has none to ask.
func classic(p *params, name string) trafficSource {
	if !loadBalancerName.MatchString(name) {
		p.reject(fail("ValidationError", "Provided Load Balancers may not be valid. Please ensure they exist and try again."))
	}
	return trafficSource{Identifier: name, Type: "elb"}
}

var loadBalancerName = regexp.MustCompile(`^[a-zA-Z0-9-]{1,32}$`)

func createAutoScalingGroup(rq *request, in createGroupSettings) error {
	r := rq.region
	groups := &r.AutoScaling.Groups
	switch {
	case groups.has(in.name):
		return fail("AlreadyExists", "AutoScalingGroup by this name already exists - A group with the name %s already exists", in.name)
	case in.instanceID != "":
		return fail("ValidationError", "InstanceId is not supported: create the group from a launch template")
	case groups.len() >= r.quota("auto-scaling-groups"):
		return fail("LimitExceeded", "You've reached the limit on the number of Auto Scaling groups you can create: %d", r.quota("auto-scaling-groups"))
	}
	g, err := in.changed(r, nil)
	if err != nil {
		return err
	}
	if err := r.checkConfig(g.Config, true, g.Subnets); err != nil {
		return err
	}
	if err := in.attach(r, g); err != nil {
		return err
	}
	r.addGroup(g, in.name)
	g.Cause = fmt.Sprintf("a user request created an AutoScalingGroup changing the desired capacity from 0 to %d.", g.Desired)
	r.touch(g)
	return nil
}

// attach adds what is sent beside the settings.
func (in *createGroupSettings) attach(r *region, g *asgGroup) *apiError {
	for _, t := range in.tags {
		if _, twice := g.tagIndex(t.Key); twice {
			return fail("ValidationError", "Duplicate tag key: %s", t.Key)
		}
		g.setTag(t)
	}
	if len(g.Tags) > r.quota("tags") {
		return fail("LimitExceeded", "The maximum number of tags for a resource has been reached: %d", r.quota("tags"))
	}
	for _, h := range in.hooks {
		if g.Hooks.has(h.Name) {
			return fail("ValidationError", "Duplicate lifecycle hook name: %s", h.Name)
		}
		if h.Transition == "" {
			return fail("ValidationError", "LifecycleTransition is required")
		}
		g.Hooks.put(h.Name, h)
	}
	if g.Hooks.len() > r.quota("lifecycle-hooks") {
		return fail("LimitExceeded", "You've reached the limit on the number of lifecycle hooks: %d", r.quota("lifecycle-hooks"))
	}
	if err := g.attachSources(r, in.sources); err != nil {
		return err
	}
	return g.attachTargets(r, in.targetGroups)
}

// addGroup stores a new group.
func (r *region) addGroup(g *asgGroup, name string) {
	g.Name, g.UUID, g.Created = name, r.newUUID("asg"), r.now()
	g.ARN = r.arn("autoscaling", "autoScalingGroup:"+g.UUID+":autoScalingGroupName/"+name)
	r.AutoScaling.Groups.put(name, g)
}

func parseUpdateGroup(p *params) groupInput { return parseGroupInput(p) }

func updateAutoScalingGroup(rq *request, in groupInput) error {
	r := rq.region
	g, err := r.changeableGroup(in.name)
	if err != nil {
		return err
	}
	if f := g.activeRefresh(); f != nil && f.Desired != nil && (in.template != nil || in.mixed != nil) {
		return fail("ValidationError", "An active instance refresh with a desired configuration exists. All configuration options derived from the desired configuration are not available for update while the instance refresh is active.")
	}
	n, failed := in.changed(r, g)
	if failed != nil {
		return failed
	}
	if in.template != nil || in.mixed != nil {
		if failed := r.checkConfig(n.Config, true, n.Subnets); failed != nil {
			return failed
		}
	}
	if n.Min != g.Min || n.Max != g.Max || n.Desired != g.Desired {
		n.Cause = fmt.Sprintf("a user request update of AutoScalingGroup constraints to min: %d, max: %d, desired: %d changing the desired capacity from %d to %d.", n.Min, n.Max, n.Desired, g.Desired, n.Desired)
	}
	*g = *n
	r.retryNow(g)
	return nil
}

// retryNow forgets that launches failed: something was changed that may help.
func (r *region) retryNow(g *asgGroup) {
	g.Failures, g.RetryAt = 0, time.Time{}
	r.touch(g)
}

type deleteGroupInput struct {
	name  string
	force bool
}

func parseDeleteGroup(p *params) deleteGroupInput {
	return deleteGroupInput{name: nameOf(p), force: p.boolean("ForceDelete")}
}

func deleteAutoScalingGroup(rq *request, in deleteGroupInput) error {
	r := rq.region
	g, err := r.changeableGroup(in.name)
	if err != nil {
		return err
	}
	switch {
	case g.DeletionProtection == "prevent-all-deletion":
		return fail("ValidationError", "The Auto Scaling group %s cannot be deleted because its deletion protection is prevent-all-deletion.", g.Name)
	case g.DeletionProtection == "prevent-force-deletion" && in.force:
		return fail("ValidationError", "The Auto Scaling group %s cannot be force deleted because its deletion protection is prevent-force-deletion.", g.Name)
	case in.force && g.keepsAbandoned():
		return fail("ValidationError", "You can't force delete this Auto Scaling group because the TerminateHookAbandon retention trigger is set to retain. Change the retention trigger to terminate and try again.")
	case !in.force && (g.capacity() > 0 || len(keep(g.Members, func(m *member) bool { return m.Lifecycle == memberRetained })) > 0):
		return fail("ResourceInUse", "You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s) still in the group.")
	case !in.force && (len(g.Members) > 0 || g.Scheduled && g.Desired > 0):
		return fail("ScalingActivityInProgress", "You cannot delete an AutoScalingGroup while there are scaling activities in progress for that group.")
	case !in.force && g.Warm != nil:
		return fail("ResourceInUse", "You cannot delete an AutoScalingGroup while it has a warm pool.")
	}
	r.deleteGroup(g)
	return nil
}

// deleteGroup ends a group's instances and then the group.
func (r *region) deleteGroup(g *asgGroup) {
	g.Deleting = true
	g.Min, g.Max, g.Desired, g.Surge, g.Warm = 0, 0, 0, 0, nil
	r.endAllWarm(g)
	if f := g.activeRefresh(); f != nil {
		r.endRefresh(f, refreshCancelled, "The Auto Scaling group was deleted.")
	}
	for _, m := range append([]*member(nil), g.Members...) {
		if m.Lifecycle != memberTerminating {
			r.endMember(g, m, "a user request force deleted AutoScalingGroup, taking the instance out of service.")
		}
	}
	r.removeEmptyGroup(g)
}

// removeEmptyGroup removes a group that is being deleted once its members are gone.
func (r *region) removeEmptyGroup(g *asgGroup) {
	if !g.Deleting || len(g.Members)+len(g.WarmMembers) > 0 {
		return
	}
	st := &r.AutoScaling
	for _, a := range g.Activities {
		a.GroupGone = true
	}
	st.Gone = append(st.Gone, g.Activities...)
	if n := len(st.Gone); n > maxGone {
		st.Gone = append([]*activity(nil), st.Gone[n-maxGone:]...)
	}
	st.Groups.remove(g.Name)
}

type setDesiredInput struct {
	name    string
	desired int64
	honor   bool
}

func parseSetDesired(p *params) setDesiredInput {
	in := setDesiredInput{name: nameOf(p), honor: p.boolean("HonorCooldown")}
	if n := sizeOf(p, "DesiredCapacity"); n != nil {
		in.desired = *n
	}
	return in
}

func setDesiredCapacity(rq *request, in setDesiredInput) error {
	r := rq.region
	g, err := r.changeableGroup(in.name)
	if err != nil {
		return err
	}
	switch {
	case in.desired > g.Max:
		return fail("ValidationError", "New SetDesiredCapacity value %d is above max value %d for the AutoScalingGroup.", in.desired, g.Max)
	case in.desired < g.Min:
		return fail("ValidationError", "New SetDesiredCapacity value %d is below min value %d for the AutoScalingGroup.", in.desired, g.Min)
	case in.honor && !g.LastScaled.IsZero() && r.now().Before(g.LastScaled.Add(time.Duration(g.Cooldown)*time.Second)):
		return fail("ScalingActivityInProgress", "Scaling activity in progress and cooldown period has not elapsed for AutoScalingGroup %s", g.Name)
	}
	if in.desired != g.Desired {
		g.Cause = fmt.Sprintf("a user request explicitly set group desired capacity changing the desired capacity from %d to %d.", g.Desired, in.desired)
	}
	g.Desired = in.desired
	r.touch(g)
	return nil
}

func describeAccountLimits(rq *request, _ struct{}) error {
	w := &rq.xml
	w.integer("MaxNumberOfAutoScalingGroups", int64(rq.region.quota("auto-scaling-groups")))
	w.integer("MaxNumberOfLaunchConfigurations", 200)
	w.integer("NumberOfAutoScalingGroups", int64(rq.region.AutoScaling.Groups.len()))
	w.integer("NumberOfLaunchConfigurations", 0)
	return nil
}
