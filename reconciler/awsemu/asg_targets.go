package awsemu

type targetGroupsInput struct {
	name string
	arns []string
}

func parseTargetGroups(p *params) targetGroupsInput {
	in := targetGroupsInput{name: nameOf(p), arns: p.strings("TargetGroupARNs")}
	if len(in.arns) == 0 {
		p.reject(p.top.dialect.missingParam("TargetGroupARNs"))
	}
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
