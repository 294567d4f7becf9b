package asg

import (
	"cmp"
	"maps"
	"slices"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

type targetGroupsInput struct {
	groupName
	TargetGroupARNs []string
}

func (in *targetGroupsInput) Check() error {
	if len(in.TargetGroupARNs) > 10 {
		return invalid("At most 10 target groups can be given in one call.")
	}
	return checkTargetGroups(in.TargetGroupARNs)
}

// attachTargets adds target groups to a group. Existing ones stay.
func (g *Group) attachTargets(r *Region, arns []string) *wire.Error {
	all := append([]string(nil), g.TargetGroups...)
	for _, arn := range arns {
		if !slices.Contains(all, arn) {
			all = append(all, arn)
		}
	}
	if n := r.Quota("target-groups"); len(all) > n {
		return wire.Fail("LimitExceeded", "You've reached the limit on the number of target groups: %d", n)
	}
	g.TargetGroups = all
	return nil
}

func attachTargetGroups(rq *request, in targetGroupsInput) error {
	g, err := rq.Region.changeableGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	if failed := g.attachTargets(rq.Region, in.TargetGroupARNs); failed != nil {
		return failed
	}
	return nil
}

func detachTargetGroups(rq *request, in targetGroupsInput) error {
	g, err := rq.Region.changeableGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	var left []string
	for _, arn := range g.TargetGroups {
		if !slices.Contains(in.TargetGroupARNs, arn) {
			left = append(left, arn)
		}
	}
	if len(left)+len(in.TargetGroupARNs) > len(g.TargetGroups) {
		return invalid("Trying to remove Target Groups that are not part of the group")
	}
	g.TargetGroups = left
	return nil
}

type trafficSourcesInput struct {
	groupName
	TrafficSources []trafficSource
}

type attachTrafficSourcesInput struct {
	trafficSourcesInput
	SkipZonalShiftValidation bool // the emulator has no zonal shifts
}

func (in *trafficSourcesInput) Check() error {
	if len(in.TrafficSources) > 10 {
		return invalid("At most 10 traffic sources can be given in one call.")
	}
	return settleSources(in.TrafficSources)
}

// attachSources adds traffic sources of any type. Existing ones stay.
func (g *Group) attachSources(r *Region, sources []trafficSource) *wire.Error {
	var arns []string
	for _, s := range sources {
		switch {
		case s.Type == "elbv2":
			arns = append(arns, s.Identifier)
		case !slices.Contains(g.OtherSources, s):
			g.OtherSources = append(g.OtherSources[:len(g.OtherSources):len(g.OtherSources)], s)
		}
	}
	if n := r.Quota("target-groups"); len(g.OtherSources) > n {
		return wire.Fail("LimitExceeded", "You've reached the limit on the number of traffic sources: %d", n)
	}
	return g.attachTargets(r, arns)
}

func attachTrafficSources(rq *request, in attachTrafficSourcesInput) error {
	g, err := rq.Region.changeableGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	if failed := g.attachSources(rq.Region, in.TrafficSources); failed != nil {
		return failed
	}
	return nil
}

func detachTrafficSources(rq *request, in trafficSourcesInput) error {
	return in.detach(rq.Region, "Traffic Sources")
}

func (in *trafficSourcesInput) detach(r *Region, called string) error {
	g, err := r.changeableGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	all := g.sources()
	var targets []string
	var others []trafficSource
	for _, s := range in.TrafficSources {
		if !slices.Contains(all, s) {
			return invalid("Trying to remove %s that are not part of the group", called)
		}
	}
	for _, s := range all {
		switch {
		case slices.Contains(in.TrafficSources, s):
		case s.Type == "elbv2":
			targets = append(targets, s.Identifier)
		default:
			others = append(others, s)
		}
	}
	g.TargetGroups, g.OtherSources = targets, others
	return nil
}

// sources returns all traffic sources of a group.
func (g *Group) sources() []trafficSource {
	var out []trafficSource
	for _, arn := range g.TargetGroups {
		out = append(out, trafficSource{Identifier: arn, Type: "elbv2"})
	}
	return append(out, g.OtherSources...)
}

// loadBalancers returns the names of the Classic Load Balancers.
func (g *Group) loadBalancers() []string {
	var out []string
	for _, s := range g.OtherSources {
		if s.Type == "elb" {
			out = append(out, s.Identifier)
		}
	}
	return out
}

type describeSourcesInput struct {
	paging
	groupName
	TrafficSourceType string
}

func (in *describeSourcesInput) Check() error {
	return cmp.Or(checkSourceType("TrafficSourceType", in.TrafficSourceType), in.bound(50, 50))
}

// describeTrafficSources writes traffic sources. An attached target group is in service at once.
func describeTrafficSources(rq *request, in describeSourcesInput) error {
	g, err := rq.Region.findGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	kinds := map[string]string{}
	for _, s := range g.sources() {
		if in.TrafficSourceType == "" || s.Type == in.TrafficSourceType {
			kinds[s.Identifier] = s.Type
		}
	}
	return writePage(rq, "TrafficSources", slices.Sorted(maps.Keys(kinds)), in.paging, func(id string) {
		w := &rq.XML
		w.Text("TrafficSource", id)
		w.Text("Identifier", id)
		w.Text("Type", kinds[id])
		w.Text("State", "InService")
	})
}

// writePage writes one page of a list. write writes each element.
func writePage(rq *request, list string, keys []string, p paging, write func(key string)) error {
	w := &rq.XML
	w.Open(list)
	next, err := rq.Page(keys, p.NextToken, p.limit, func(key string) bool {
		w.Open("member")
		write(key)
		w.Close("member")
		return true
	})
	if err != nil {
		return err
	}
	w.Close(list)
	w.Optional("NextToken", next)
	return nil
}

type describeTargetsInput struct {
	paging
	groupName
}

func (in *describeTargetsInput) Check() error { return in.bound(100, 100) }

// describeTargetGroups writes target groups. Every member is registered at once.
func describeTargetGroups(rq *request, in describeTargetsInput) error {
	g, err := rq.Region.findGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	return writePage(rq, "LoadBalancerTargetGroups", slices.Sorted(slices.Values(g.TargetGroups)), in.paging, func(arn string) {
		rq.XML.Text("LoadBalancerTargetGroupARN", arn)
		rq.XML.Text("State", registration(g.Members))
	})
}

// registration returns the state of the registration of a group's members.
func registration(members []*Member) string {
	if len(Keep(members, func(m *Member) bool { return m.Lifecycle == memberInService })) > 0 {
		return "InService"
	}
	return "Added"
}

// balancersInput names Classic Load Balancers, which are traffic sources too.
type balancersInput struct {
	groupName
	LoadBalancerNames []string
}

func (in *balancersInput) Check() error {
	if len(in.LoadBalancerNames) > 10 {
		return invalid("At most 10 load balancers can be given in one call.")
	}
	for _, name := range in.LoadBalancerNames {
		if err := checkLoadBalancer(name); err != nil {
			return err
		}
	}
	return nil
}

func (in *balancersInput) sources() trafficSourcesInput {
	out := trafficSourcesInput{groupName: in.groupName}
	for _, name := range in.LoadBalancerNames {
		out.TrafficSources = append(out.TrafficSources, trafficSource{Identifier: name, Type: "elb"})
	}
	return out
}

func attachLoadBalancers(rq *request, in balancersInput) error {
	return attachTrafficSources(rq, attachTrafficSourcesInput{trafficSourcesInput: in.sources()})
}

func detachLoadBalancers(rq *request, in balancersInput) error {
	sources := in.sources()
	return sources.detach(rq.Region, "Load Balancers")
}

func describeLoadBalancers(rq *request, in describeTargetsInput) error {
	g, err := rq.Region.findGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	return writePage(rq, "LoadBalancers", slices.Sorted(slices.Values(g.loadBalancers())), in.paging, func(name string) {
		rq.XML.Text("LoadBalancerName", name)
		rq.XML.Text("State", registration(g.Members))
	})
}
