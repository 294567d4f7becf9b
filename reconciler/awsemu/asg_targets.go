package awsemu

import "slices"

type targetGroupsInput struct {
	name string
	arns []string
}

func parseTargetGroups(p *params) targetGroupsInput {
	in := targetGroupsInput{name: nameOf(p), arns: p.strings("TargetGroupARNs")}
	if len(in.arns) > 10 {
		p.reject(fail("ValidationError", "At most 10 target groups can be given in one call."))
	}
	for _, arn := range in.arns {
		checkTargetGroup(p, arn)
	}
	return in
}

// attachTargets adds target groups to a group; those it has stay.
func (g *asgGroup) attachTargets(r *region, arns []string) *apiError {
	all := append([]string(nil), g.TargetGroups...)
	for _, arn := range arns {
		if !contains(all, arn) {
			all = append(all, arn)
		}
	}
	if n := r.quota("target-groups"); len(all) > n {
		return fail("LimitExceeded", "You've reached the limit on the number of target groups: %d", n)
	}
	g.TargetGroups = all
	return nil
}

func attachTargetGroups(rq *request, in targetGroupsInput) error {
	g, err := rq.region.changeableGroup(in.name)
	if err != nil {
		return err
	}
	if failed := g.attachTargets(rq.region, in.arns); failed != nil {
		return failed
	}
	return nil
}

func detachTargetGroups(rq *request, in targetGroupsInput) error {
	g, err := rq.region.changeableGroup(in.name)
	if err != nil {
		return err
	}
	var left []string
	for _, arn := range g.TargetGroups {
		if !contains(in.arns, arn) {
			left = append(left, arn)
		}
	}
	if len(left)+len(in.arns) > len(g.TargetGroups) {
		return fail("ValidationError", "Trying to remove Target Groups that are not part of the group")
	}
	g.TargetGroups = left
	return nil
}

type trafficSourcesInput struct {
	name    string
	sources []trafficSource
}

func parseTrafficSources(p *params) trafficSourcesInput {
	in := trafficSourcesInput{name: nameOf(p)}
	p.boolean("SkipZonalShiftValidation") // zonal shift is never under way here
	for _, s := range p.list("TrafficSources") {
		in.sources = append(in.sources, parseTrafficSource(s))
	}
	if len(in.sources) > 10 {
		p.reject(fail("ValidationError", "At most 10 traffic sources can be given in one call."))
	}
	return in
}

// attachSources adds traffic sources of any type; those that are there stay.
func (g *asgGroup) attachSources(r *region, sources []trafficSource) *apiError {
	var arns []string
	for _, s := range sources {
		switch {
		case s.Type == "elbv2":
			arns = append(arns, s.Identifier)
		case !slices.Contains(g.OtherSources, s):
			g.OtherSources = append(g.OtherSources[:len(g.OtherSources):len(g.OtherSources)], s)
		}
	}
	if n := r.quota("target-groups"); len(g.OtherSources) > n {
		return fail("LimitExceeded", "You've reached the limit on the number of traffic sources: %d", n)
	}
	return g.attachTargets(r, arns)
}

func attachTrafficSources(rq *request, in trafficSourcesInput) error {
	g, err := rq.region.changeableGroup(in.name)
	if err != nil {
		return err
	}
	if failed := g.attachSources(rq.region, in.sources); failed != nil {
		return failed
	}
	return nil
}

func detachTrafficSources(rq *request, in trafficSourcesInput) error {
	g, err := rq.region.changeableGroup(in.name)
	if err != nil {
		return err
	}
	all := g.sources()
	var targets []string
	var others []trafficSource
	for _, s := range in.sources {
		if !slices.Contains(all, s) {
			return fail("ValidationError", "Trying to remove Traffic Sources that are not part of the group")
		}
	}
	for _, s := range all {
		switch {
		case slices.Contains(in.sources, s):
		case s.Type == "elbv2":
			targets = append(targets, s.Identifier)
		default:
			others = append(others, s)
		}
	}
	g.TargetGroups, g.OtherSources = targets, others
	return nil
}

// sources are all traffic sources of a group.
func (g *asgGroup) sources() []trafficSource {
	var out []trafficSource
	for _, arn := range g.TargetGroups {
		out = append(out, trafficSource{Identifier: arn, Type: "elbv2"})
	}
	return append(out, g.OtherSources...)
}

// loadBalancers are the names of the Classic Load Balancers.
func (g *asgGroup) loadBalancers() []string {
	var out []string
	for _, s := range g.OtherSources {
		if s.Type == "elb" {
			out = append(out, s.Identifier)
		}
	}
	return out
}

type describeSourcesInput struct {
	group, token, kind string
	limit              int
}

func parseDescribeSources(p *params) describeSourcesInput {
	return describeSourcesInput{group: nameOf(p), token: p.text("NextToken"), kind: p.oneOf("TrafficSourceType", "elb", "elbv2", "vpc-lattice"), limit: pageLimit(p, 50, 50)}
}

// describeTrafficSources: what is attached is in service at once.
func describeTrafficSources(rq *request, in describeSourcesInput) error {
	g, err := rq.region.findGroup(in.group)
	if err != nil {
		return err
	}
	kinds := map[string]string{}
	for _, s := range g.sources() {
		if in.kind == "" || s.Type == in.kind {
			kinds[s.Identifier] = s.Type
		}
	}
	w := &rq.xml
	w.open("TrafficSources")
	next, err := rq.page(sortedKeys(kinds), in.token, in.limit, func(id string) bool {
		w.open("member")
		w.text("TrafficSource", id)
		w.text("Identifier", id)
		w.text("Type", kinds[id])
		w.text("State", "InService")
		w.close("member")
		return true
	})
	if err != nil {
		return err
	}
	w.close("TrafficSources")
	w.optional("NextToken", next)
	return nil
}
