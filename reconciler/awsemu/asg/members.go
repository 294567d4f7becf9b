package asg

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// membersInput names members of a group.
type membersInput struct {
	groupName
	InstanceIDs []string
}

// bound checks the number of named instances.
func (in *membersInput) bound(most int) error {
	switch n := len(in.InstanceIDs); {
	case n == 0:
		return invalid("At least one instance ID must be specified.")
	case n > most:
		return invalid("The number of instance IDs (%d) must not exceed %d.", n, most)
	}
	for i, id := range in.InstanceIDs {
		if slices.Contains(in.InstanceIDs[:i], id) {
			return invalid("The instance ID %s is specified more than once.", id)
		}
	}
	return nil
}

// find finds the group and the members. It fails if a member is in none of the states.
func (in *membersInput) find(r *Region, states ...string) (*Group, []*Member, error) {
	g, err := r.changeableGroup(in.AutoScalingGroupName)
	if err != nil {
		return nil, nil, err
	}
	var found []*Member
	for _, id := range in.InstanceIDs {
		m := g.Member(id)
		if m == nil {
			return nil, nil, invalid("The instance %s is not part of Auto Scaling group %s.", id, g.Name)
		}
		if !slices.Contains(states, m.Lifecycle) {
			return nil, nil, invalid("The instance %s is not in %s.", id, strings.Join(states, " or "))
		}
		found = append(found, m)
	}
	return g, found, nil
}

type describeMembersInput struct {
	paging
	InstanceIDs []string
}

func (in *describeMembersInput) Check() error {
	if len(in.InstanceIDs) > 50 {
		return invalid("The number of instance IDs (%d) must not exceed 50.", len(in.InstanceIDs))
	}
	return in.bound(50, 50)
}

// describeAutoScalingInstances writes members of all groups and their warm pools. It ignores instances
// outside groups.
func describeAutoScalingInstances(rq *request, in describeMembersInput) error {
	r := rq.Region
	rows, groups := map[string]*Member{}, map[string]string{}
	for _, name := range r.Groups.Sorted() {
		g := r.Groups.Get(name)
		for _, m := range slices.Concat(g.Members, g.WarmMembers) {
			if len(in.InstanceIDs) == 0 || slices.Contains(in.InstanceIDs, m.ID) {
				rows[m.ID], groups[m.ID] = m, name
			}
		}
	}
	return writePage(rq, "AutoScalingInstances", slices.Sorted(maps.Keys(rows)), in.paging, func(id string) {
		rq.XML.Text("AutoScalingGroupName", groups[id])
		shown := *rows[id]
		shown.Health = strings.ToUpper(shown.Health) // only this operation uses upper case
		writeMember(&rq.XML, r, &shown)
	})
}

type protectInput struct {
	membersInput
	ProtectedFromScaleIn bool
}

func (in *protectInput) Check() error { return in.bound(50) }

func setInstanceProtection(rq *request, in protectInput) error {
	g, members, err := in.find(rq.Region, memberInService, "EnteringStandby", memberStandby)
	if err != nil {
		return err
	}
	for _, m := range members {
		m.Protected = in.ProtectedFromScaleIn
	}
	rq.Region.Touch(g) // members that were protected may be surplus
	return nil
}

type healthInput struct {
	InstanceID, HealthStatus string
	ShouldRespectGracePeriod *bool
}

func (in *healthInput) Check() error {
	if in.HealthStatus != healthy && in.HealthStatus != unhealthy {
		return invalid("Valid instance health states are: [Healthy, Unhealthy].")
	}
	return nil
}

// memberOf finds an instance among the members of all groups.
func (r *Region) memberOf(id string) (*Group, *Member, error) {
	if in := r.ec2.Instances.Get(id); in != nil {
		if g := r.Groups.Get(strings.TrimPrefix(in.Owner, ownerPrefix)); g != nil {
			if m := g.Member(id); m != nil {
				return g, m, nil
			}
		}
	}
	return nil, nil, invalid("Instance Id not found - No managed instance found for instance ID %s", id)
}

// setInstanceHealth sets an instance's health. An unhealthy instance is replaced, after its grace period
// unless the call overrides that.
func setInstanceHealth(rq *request, in healthInput) error {
	r := rq.Region
	g, m, err := r.memberOf(in.InstanceID)
	if err != nil {
		return err
	}
	m.Health, m.Told, m.Spared = in.HealthStatus, true, time.Time{}
	if respect := in.ShouldRespectGracePeriod == nil || *in.ShouldRespectGracePeriod; respect && in.HealthStatus == unhealthy {
		from := m.Served
		if from.IsZero() {
			from = r.Now()
		}
		if m.Spared = from.Add(time.Duration(g.Grace) * time.Second); m.Spared.After(r.Now()) {
			r.After(m.Spared.Sub(r.Now()), timerRetry, g.key())
		}
	}
	r.Touch(g)
	return nil
}

// sizesInTheWay returns the error for a change that the bounds of a group do not allow.
func (g *Group) sizesInTheWay(what string, n int, more string) error {
	instances := "instance"
	if n > 1 {
		instances = "instances"
	}
	return invalid("AutoScalingGroup %s has min-size=%d, max-size=%d, and desired-size=%d. To %s %d%s %s, please update the AutoScalingGroup sizes appropriately.",
		g.Name, g.Min, g.Max, g.Desired, what, n, more, instances)
}

// units returns the sum of some members' units.
func units(members []*Member) int64 {
	n := int64(0)
	for _, m := range members {
		n += m.Units
	}
	return n
}

type leaveInput struct {
	membersInput
	ShouldDecrementDesiredCapacity bool
}

func (in *leaveInput) Check() error { return in.bound(20) }

// leave removes members from the capacity. If the call requests it, the desired capacity decreases too;
// otherwise the group launches replacements.
func (in *leaveInput) leave(rq *request, g *Group, leaving []*Member, what, description, verb string, out func(*Member)) error {
	r := rq.Region
	counted := Keep(leaving, (*Member).Active)
	if in.ShouldDecrementDesiredCapacity && g.Desired-units(counted) < g.Min {
		return g.sizesInTheWay(what, len(leaving), "")
	}
	w := &rq.XML
	w.Open("Activities")
	for _, m := range leaving {
		cause := "instance " + m.ID + " was " + verb + " in response to a user request."
		if in.ShouldDecrementDesiredCapacity && m.Active() {
			cause = strings.TrimSuffix(cause, ".") + ", shrinking the capacity from " + wire.Decimal(g.Desired) + " to " + wire.Decimal(g.Desired-m.Units) + "."
			g.Desired -= m.Units
		}
		out(m)
		r.moved(rq, g, m, description, cause, "InProgress")
	}
	w.Close("Activities")
	r.Touch(g)
	return nil
}

// moved records and writes an activity of a member that moved immediately.
func (r *Region) moved(rq *request, g *Group, m *Member, description, cause, status string) {
	a := r.beginActivity(g, m, description+": "+m.ID, cause)
	a.Status, a.Progress = status, 50
	rq.XML.Open("member")
	writeActivity(&rq.XML, a)
	rq.XML.Close("member")
	if status == "InProgress" {
		a.Status, a.Progress, a.End = "Successful", 100, r.Now()
	}
}

func enterStandby(rq *request, in leaveInput) error {
	g, members, err := in.find(rq.Region, memberInService)
	if err != nil {
		return err
	}
	return in.leave(rq, g, members, "place into standby", "Moving EC2 instance to Standby", "moved to standby", func(m *Member) { m.Lifecycle = memberStandby })
}

type standbyInput struct{ membersInput }

func (in *standbyInput) Check() error { return in.bound(20) }

// exitStandby puts members back into service like new ones, including hooks. The desired capacity increases
// by them.
func exitStandby(rq *request, in standbyInput) error {
	r := rq.Region
	g, members, err := in.find(r, memberStandby)
	switch {
	case err != nil:
		return err
	case g.Desired+units(members) > g.Max:
		return g.sizesInTheWay("take out of standby", len(members), "")
	}
	rq.XML.Open("Activities")
	for _, m := range members {
		m.Lifecycle = memberPending
		r.moved(rq, g, m, "Moving EC2 instance out of Standby", "instance "+m.ID+" was moved out of standby in response to a user request, increasing the capacity from "+
			wire.Decimal(g.Desired)+" to "+wire.Decimal(g.Desired+m.Units)+".", "PreInService")
		g.Desired += m.Units
		if i := r.ec2.Instances.Get(m.ID); i != nil && i.Alive() {
			r.memberRuns(g, m, i)
		}
	}
	rq.XML.Close("Activities")
	r.Touch(g)
	return nil
}

// detachInstances removes members from the group and leaves the instances running.
func detachInstances(rq *request, in leaveInput) error {
	r := rq.Region
	g, members, err := in.find(r, memberInService, memberStandby)
	if err != nil {
		return err
	}
	return in.leave(rq, g, members, "detach", "Detaching EC2 instance", "detached", func(m *Member) {
		g.removeMember(m.ID)
		if i := r.ec2.Instances.Get(m.ID); i != nil {
			i.Owner = ""
			i.Tags.Remove(tagGroupName)
		}
	})
}

type attachInput struct{ membersInput }

func (in *attachInput) Check() error { return in.bound(20) }

// attachInstances makes running instances members of a group.
func attachInstances(rq *request, in attachInput) error {
	r := rq.Region
	g, err := r.changeableGroup(in.AutoScalingGroupName)
	if err != nil {
		return err
	}
	for _, id := range in.InstanceIDs {
		if err := r.attachable(g, id); err != nil {
			return err
		}
	}
	if n := len(in.InstanceIDs); g.Desired+int64(n) > g.Max {
		return g.sizesInTheWay("attach", n, " more")
	}
	for _, id := range in.InstanceIDs {
		i := r.ec2.Instances.Get(id)
		i.Owner = g.owner()
		i.Tags.Set(tagGroupName, g.Name)
		g.Launched++
		m := &Member{ID: id, Type: i.Type, Zone: i.Zone, SubnetID: i.SubnetID, ImageID: i.ImageID, Lifecycle: memberPending, Health: healthy,
			Units: (&Choice{instanceType: i.Type}).units(g.CapacityType), Spot: i.Lifecycle == "spot", Seq: g.Launched, Attached: true}
		g.Members = append(g.Members, m)
		g.Desired += m.Units
		r.beginActivity(g, m, "Attaching an existing EC2 instance: "+id, "an instance was added in response to user request, increasing the capacity to "+wire.Decimal(g.Desired)+".")
		r.memberRuns(g, m, i)
	}
	r.Touch(g)
	return nil
}

// attachable returns why an instance cannot become a member.
func (r *Region) attachable(g *Group, id string) error {
	i := r.ec2.Instances.Get(id)
	switch {
	case i == nil:
		return invalid("Invalid Instance ID(s): [%s] specified.", id)
	case strings.HasPrefix(i.Owner, ownerPrefix):
		return invalid("Instance %s is already part of AutoScalingGroup:%s", id, strings.TrimPrefix(i.Owner, ownerPrefix))
	case i.State != "running":
		return invalid("Instance %s is not in the running state.", id)
	case !slices.Contains(g.Zones, i.Zone):
		return invalid("The availability zone %s of instance %s is not one of the group's: %s", i.Zone, id, strings.Join(g.Zones, ", "))
	case len(g.Subnets) > 0 && r.ec2.Subnets.Get(g.Subnets[0]).VpcID != i.VpcID:
		return invalid("Instance %s is not in the VPC of the group's subnets.", id)
	}
	return nil
}
