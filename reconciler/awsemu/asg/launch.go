package asg

import (
	"fmt"
	"slices"
	"sort"

	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// launchConfig returns the current launch source of the group. During a refresh with a desired
// configuration, it is that configuration.
func (g *Group) launchConfig(r *Region) GroupConfig {
	if f := g.activeRefresh(); f != nil && f.Desired != nil && f.Status != refreshCancelling && f.Status != refreshRollingBack {
		return *f.Desired
	}
	return g.Config
}

// location is a subnet, or a zone of the default VPC, to launch in.
type location struct {
	subnet, zone string
	load         int // active members in the zone
	own          int // active members in the subnet
}

// locations returns the places in which the group may launch, the emptiest zone first.
func (g *Group) locations(r *Region) []location {
	inZone, inSubnet := map[string]int{}, map[string]int{}
	for _, m := range g.Members {
		if m.Active() {
			inZone[m.Zone]++
			inSubnet[m.SubnetID]++
		}
	}
	var out []location
	for _, id := range g.Subnets {
		if s := r.ec2.Subnets.Get(id); s != nil {
			out = append(out, location{subnet: id, zone: s.Zone, load: inZone[s.Zone], own: inSubnet[id]})
		}
	}
	if len(g.Subnets) == 0 {
		for _, zone := range g.Zones {
			out = append(out, location{zone: zone, load: inZone[zone]})
		}
	}
	sort.SliceStable(out, func(i, j int) bool {
		if out[i].load != out[j].load {
			return out[i].load < out[j].load
		}
		return out[i].own < out[j].own
	})
	return out
}

// launchMember launches one member. It tries other places and choices if EC2 has no capacity, and reports
// success.
func (r *Region) launchMember(g *Group) bool {
	cfg := g.launchConfig(r)
	spot := cfg.Mixed != nil && nextIsSpot(g.Members, cfg.Mixed.Distribution)
	choices, err := r.choices(cfg)
	if err == nil {
		choices = rotate(g.Members, cfg, choices, spot)
		err = r.launchSomewhere(g, choices, spot, func(ch *Choice, in *ec2.Instance) { r.join(g, ch, in) })
	}
	return r.launched(g, err)
}

// launched reports whether a launch succeeded. It stores the error in the group.
func (r *Region) launched(g *Group, err *wire.Error) bool {
	if err == nil {
		return true
	}
	g.LastFailure = err.Message
	r.recordFailedLaunch(g, err.Message)
	r.launchFailed(g)
	return false
}

// launchSomewhere launches an instance at the first place and with the first choice that work, and passes it
// to join. On failure it returns the error of the first attempt.
func (r *Region) launchSomewhere(g *Group, choices []Choice, spot bool, join func(*Choice, *ec2.Instance)) *wire.Error {
	var firstErr *wire.Error
	for _, at := range g.locations(r) {
		elsewhere := false
		for i := range choices {
			ch := &choices[i]
			in, err := r.ec2.LaunchInstance(ec2.LaunchSpec{
				Template: ch.template, Version: ch.version.Number, Data: ch.version.Data,
				InstanceType: ch.instanceType, ImageID: ch.imageID, SubnetID: at.subnet, Zone: at.zone, Spot: spot,
				Placement: g.PlacementGroup, Reserved: g.Reservation, Tags: g.memberTags(), Owner: g.owner(),
			})
			if err == nil {
				join(ch, in)
				return nil
			}
			if firstErr == nil {
				firstErr = err
			}
			elsewhere = elsewhere || isShortage(err.Code)
		}
		if !elsewhere {
			break
		}
	}
	if firstErr == nil {
		return invalid("The group has no subnet to launch in.")
	}
	return firstErr
}

// isShortage reports whether another zone or type may succeed.
func isShortage(code string) bool {
	return slices.Contains([]string{"InsufficientInstanceCapacity", "ReservationCapacityExceeded", "InsufficientFreeAddressesInSubnet", "Unsupported",
		"MaxSpotInstanceCountExceeded", "SpotMaxPriceTooLow", "InvalidSubnetID.NotFound"}, code)
}

// join makes a launched instance a member of the group.
func (r *Region) join(g *Group, ch *Choice, in *ec2.Instance) {
	m := g.newMember(ch, in)
	n := g.capacity()
	g.Members = append(g.Members, m)
	r.beginActivity(g, m, "Launching a new EC2 instance: "+m.ID,
		fmt.Sprintf("an instance was started in response to a difference between desired and actual capacity, increasing the capacity from %d to %d.", n, n+m.Units))
}

// newMember returns the group's record of a launched instance.
func (g *Group) newMember(ch *Choice, in *ec2.Instance) *Member {
	g.Launched++
	return &Member{
		ID: in.ID, Type: in.Type, Zone: in.Zone, SubnetID: in.SubnetID, ImageID: in.ImageID, OwnImage: ch.imageID != "",
		Lifecycle: memberPending, Health: healthy, Template: ch.spec, Override: ch.override, Weight: ch.weight,
		Units: ch.units(g.CapacityType), Spot: in.Lifecycle == "spot", LaunchConfig: ch.launchConfig, Protected: g.Protect, Seq: g.Launched,
	}
}

// launchFailed counts a failure. Each further failure makes the group wait longer.
func (r *Region) launchFailed(g *Group) {
	g.FailuresTotal++
	wait := r.Timings().InstancePending << min(g.Failures, 6)
	g.Failures++
	g.RetryAt = r.Now().Add(wait)
	r.After(wait, timerRetry, g.key())
}

// nextIsSpot reports whether the next member is a Spot instance.
func nextIsSpot(members []*Member, d Distribution) bool {
	total, onDemand := int64(0), int64(0)
	for _, m := range members {
		if m.Active() {
			total += m.Units
			if !m.Spot {
				onDemand += m.Units
			}
		}
	}
	above := max(total+1-d.OnDemandBase, 0)
	wanted := min(d.OnDemandBase, total+1) + (above*d.OnDemandPercent+99)/100
	return onDemand >= wanted
}

// rotate orders choices by the allocation strategy. The emulator has no prices, so the order of the policy
// replaces them. Spot with lowest-price is spread over its pools.
func rotate(members []*Member, cfg GroupConfig, choices []Choice, spot bool) []Choice {
	if !spot || cfg.Mixed.Distribution.SpotPools == nil {
		return choices
	}
	pools := min(int(*cfg.Mixed.Distribution.SpotPools), len(choices))
	if pools < 2 {
		return choices
	}
	spots := 0
	for _, m := range members {
		if m.Active() && m.Spot {
			spots++
		}
	}
	i := spots % pools
	out := append([]Choice{choices[i]}, choices[:i]...)
	return append(out, choices[i+1:]...)
}

// MatcherOf returns a function that recognizes members of a configuration: same template and version, and
// one of its types and images.
func MatcherOf(r *ec2.Region, cfg GroupConfig) func(*Member) bool {
	if cfg.LaunchConfig != "" {
		return func(m *Member) bool { return m.LaunchConfig == cfg.LaunchConfig }
	}
	choices, err := Choices(r, cfg)
	return func(m *Member) bool {
		if err != nil {
			return false
		}
		for i := range choices {
			ch := &choices[i]
			if ch.spec == m.Template && (ch.instanceType == "" || ch.instanceType == m.Type) && ch.hasImage(r, m) {
				return true
			}
		}
		return false
	}
}

// hasImage reports whether a member has the image of a choice. A member with its template's image has the
// image of the version, because it matches the version.
func (ch *Choice) hasImage(r *ec2.Region, m *Member) bool {
	switch {
	case ch.imageID != "":
		return ch.imageID == m.ImageID
	case !m.OwnImage:
		return true
	}
	image, err := r.ResolveImage(ch.version.Data.Text("ImageId"))
	return err == nil && image == m.ImageID
}
