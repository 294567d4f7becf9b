package asg

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/asg/policy"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

func describeAdjustmentTypes(rq *request, _ struct{}) error {
	writeEach(&rq.XML, "AdjustmentTypes", "AdjustmentType", policy.AdjustmentTypes())
	return nil
}

type putPolicyInput struct {
	groupName
	policy.Input
}

func putScalingPolicy(rq *request, in putPolicyInput) error {
	r := rq.Region
	g, err := r.changeableGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	p, failed := in.Policy()
	if failed != nil {
		return failed
	}
	before := g.Scaling.Get(p.Name)
	if before == nil && g.Scaling.Len() >= policy.MaxPolicies {
		return wire.Fail("LimitExceeded", "You've reached the limit on the number of scaling policies: %d", policy.MaxPolicies)
	}
	if before != nil {
		p.ARN = before.ARN
	} else {
		p.ARN = r.ARN("autoscaling", "scalingPolicy:"+r.NewUUID("policy")+":autoScalingGroupName/"+g.Name+":policyName/"+p.Name)
	}
	for i, name := range p.AlarmNames() {
		if before != nil && i < len(before.Alarms) {
			p.Alarms = append(p.Alarms, before.Alarms[i])
			continue
		}
		name = "TargetTracking-" + g.Name + "-" + name + "-" + r.NewUUID("alarm")
		p.Alarms = append(p.Alarms, policy.Alarm{Name: name, ARN: r.ARN("cloudwatch", "alarm:"+name)})
	}
	g.Scaling.Put(p.Name, p)
	rq.XML.Text("PolicyARN", p.ARN)
	p.WriteAlarms(&rq.XML)
	return nil
}

type namePolicyInput struct {
	groupName
	PolicyName string // or its ARN
}

// find finds a policy by its name in a group, or by its ARN.
func (in *namePolicyInput) find(r *Region) (*Group, *policy.Policy, error) {
	byARN := strings.HasPrefix(in.PolicyName, "arn:")
	if in.AutoScalingGroupName == "" && !byARN {
		return nil, nil, invalid("AutoScalingGroupName is required where the policy is named by its name")
	}
	groups, err := r.groupsNamed(in.AutoScalingGroupName)
	if err != nil {
		return nil, nil, err
	}
	for _, g := range groups {
		for _, name := range g.Scaling.Sorted() {
			if p := g.Scaling.Get(name); name == in.PolicyName || byARN && p.ARN == in.PolicyName {
				return g, p, nil
			}
		}
	}
	return nil, nil, invalid("PolicyName: %s not found", in.PolicyName)
}

func deletePolicy(rq *request, in namePolicyInput) error {
	g, p, err := in.find(rq.Region)
	if err != nil {
		return err
	}
	g.Scaling.Remove(p.Name)
	return nil
}

type executePolicyInput struct {
	namePolicyInput
	policy.Execution
	HonorCooldown *bool
}

// executePolicy moves the desired capacity, within the bounds of the group.
func executePolicy(rq *request, in executePolicyInput) error {
	r := rq.Region
	g, p, err := in.find(r)
	if err != nil {
		return err
	}
	if g, err = r.changeableGroup(g.Name); err != nil {
		return err
	}
	wanted, failed := p.Capacity(g.Desired, in.Execution)
	cooldown := g.Cooldown
	Set(&cooldown, p.Cooldown)
	honors := in.HonorCooldown != nil && *in.HonorCooldown
	switch {
	case failed != nil:
		return failed
	case !p.Enabled:
		return invalid("The scaling policy %s is disabled", p.Name)
	case honors && p.Type != policy.Simple:
		return invalid("HonorCooldown is not supported for policies of type %s", p.Type)
	case honors && g.cools(r.Now(), cooldown):
		return wire.Fail("ScalingActivityInProgress", "Scaling activity in progress and cooldown period has not elapsed for AutoScalingGroup %s", g.Name)
	}
	if wanted = min(max(wanted, g.Min), g.Max); wanted != g.Desired {
		g.Cause = fmt.Sprintf("a user request executed policy %s changing the desired capacity from %d to %d.", p.Name, g.Desired, wanted)
		g.Desired = wanted
	}
	r.Touch(g)
	return nil
}

// cools reports whether a cooldown, in seconds, since the group's last scaling is still running.
func (g *Group) cools(now time.Time, cooldown int64) bool {
	return !g.LastScaled.IsZero() && now.Before(g.LastScaled.Add(time.Duration(cooldown)*time.Second))
}

type describePoliciesInput struct {
	paging
	groupName
	PolicyNames, PolicyTypes []string
}

func (in *describePoliciesInput) Check() error {
	if len(in.PolicyNames) > 50 {
		return invalid("The number of policy names (%d) must not exceed 50", len(in.PolicyNames))
	}
	for _, kind := range in.PolicyTypes {
		if !slices.Contains(policy.Types(), kind) {
			return invalid("Invalid value for parameter PolicyTypes: %s", kind)
		}
	}
	return in.bound(50, 100)
}

func describePolicies(rq *request, in describePoliciesInput) error {
	groups, err := rq.Region.groupsNamed(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	var keys []string
	rows := map[string]*policy.Policy{}
	for _, g := range groups {
		for _, name := range g.Scaling.Sorted() {
			p := g.Scaling.Get(name)
			if (len(in.PolicyNames) == 0 || slices.Contains(in.PolicyNames, name) || slices.Contains(in.PolicyNames, p.ARN)) &&
				(len(in.PolicyTypes) == 0 || slices.Contains(in.PolicyTypes, p.Type)) {
				key := g.Name + "\x00" + name
				keys, rows[key] = append(keys, key), p
			}
		}
	}
	return writePage(rq, "ScalingPolicies", keys, in.paging, func(key string) {
		group, _, _ := strings.Cut(key, "\x00")
		rows[key].Write(&rq.XML, group)
	})
}
