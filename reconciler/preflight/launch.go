package preflight

import (
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// launch contains the changes of a plan to one pool.
type launch struct {
	pool *intent.Pool
	// data is the content of the machines' launch template. If the plan makes a version, it includes AWS's
	// answers. image is its image, or nil if unknown.
	data  intent.TemplateData
	image *observed.Image
	// configures says that machines with another configuration start. made says that the plan makes their
	// template version.
	configures, made bool
	// places says that the types or the zones of the machines change.
	places bool
	// reservation is the group's setting for reserved capacity, or nil. reserves says that the plan changes
	// it.
	reservation *intent.GroupReservation
	reserves    bool
	// attaches lists the load balancers that the plan attaches.
	attaches []intent.TrafficSource
	// before and after are the group's sizes before and after the plan.
	before, after size
	// more is the minimum number of additional machines that will run at the same time. onDemand and spot
	// are the minimum numbers of On-Demand and Spot machines among them. addresses is the number of
	// additional addresses, including those of stopped machines in a warm pool.
	more, onDemand, spot, addresses int64
	// surging is the number of additional machines that a rollout launches before it terminates old ones.
	surging int64

	types   []place
	subnets []string
	vpc     string
}

// size is the capacity of a group, in its own units.
type size struct {
	desired, most int32
	warm          *intent.WarmPool
}

// prepared returns the capacity including a full warm pool, see "Warm pools for applications with long boot
// times" in the Auto Scaling user guide.
func (s size) prepared() int64 {
	if s.warm == nil {
		return int64(s.desired)
	}
	most := s.warm.MaxGroupPreparedCapacity
	if most < 0 {
		most = s.most
	}
	return max(int64(most), int64(s.desired)+int64(s.warm.MinSize))
}

// place is a value and the field that names it.
type place struct {
	value  string
	object intent.ObjectRef
	path   intent.Path
}

// launchesOf returns the launches of a plan, in the order of the pools. Steps that correct drift without
// replacing machines, or that remove something, ask nothing new of AWS and are left out.
func launchesOf(p *plan.Plan, in model.Input) []*launch {
	var out []*launch
	for i := range in.Set.Pools {
		pool := &in.Set.Pools[i]
		if l := newLaunch(pool, in); l.collect(p, in) {
			l.divide()
			out = append(out, l)
		}
	}
	return out
}

// newLaunch returns how the machines of a pool start: the template's content, the image and the subnets, as
// far as they are known.
func newLaunch(pool *intent.Pool, in model.Input) *launch {
	l := &launch{pool: pool}
	switch {
	case pool.ForeignTemplate != nil:
		if t := in.Answers[pool.ForeignTemplate.Lookup].Template; t != nil {
			l.data, l.image = t.Data, t.Image
		}
	case pool.LaunchTemplate != nil:
		l.data = pool.LaunchTemplate.Data
	}
	a := in.Answers[model.SubnetsOf(pool)]
	if l.subnets = a.Subnets; len(a.VPCs) == 1 {
		l.vpc = a.VPCs[0]
	}
	return l
}

// collect reads the plan's steps for the pool. It returns false if no step asks anything new of AWS.
func (l *launch) collect(p *plan.Plan, in model.Input) bool {
	key := l.pool.Key.String()
	if l.pool.Group != nil {
		have := in.State.Groups[l.pool.Group.Name]
		l.before = size{have.DesiredCapacity, have.MaxSize, have.Options.WarmPool}
		l.after = l.before
		if l.reservation = l.pool.Group.Options.CapacityReservationSpecification; l.reservation == nil {
			l.reservation = have.Options.CapacityReservationSpecification
		}
	}
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Pool != key && !slices.Contains(s.Pools, key) || s.Do == nil || s.Mends() || s.Held.Stays() {
			continue
		}
		l.step(s, in)
	}
	l.growGroup()
	if l.made && l.image == nil && l.pool.LaunchTemplate != nil {
		if im := in.Answers[l.pool.LaunchTemplate.Image].Image; im != nil && im.ID == l.data.ImageID {
			l.image = im
		}
	}
	l.types = typesOf(l.pool, l.data)
	return l.configures || l.places || l.reserves || len(l.attaches) > 0 || l.more > 0 || l.addresses > 0
}

// step reads one step.
func (l *launch) step(s *step.Step, in model.Input) {
	switch do := s.Do.(type) {
	case step.CreateLaunchTemplate:
		l.version(do.Data)
	case step.CreateLaunchTemplateVersion:
		l.version(do.Data)
	case step.CreateGroup:
		l.configures, l.places, l.attaches = true, true, do.Group.Options.Sources()
		l.after.desired, l.after.most = max(do.Group.DesiredCapacity, do.Group.MinSize), do.Group.MaxSize
	case step.UpdateGroup:
		l.configures = l.configures || do.Template != nil
		l.places = l.places || do.SubnetIDs != nil || do.Template != nil
		l.reserves = l.reserves || do.Options.CapacityReservationSpecification != nil
		l.after.desired = max(intent.Value(do.MinSize), l.after.desired)
		if do.DesiredCapacity != nil {
			l.after.desired = *do.DesiredCapacity
		}
		if do.MaxSize != nil {
			l.after.most = *do.MaxSize
		}
	case step.PutWarmPool:
		l.after.warm = &do.WarmPool
	case step.DeleteWarmPool:
		l.after.warm = nil
	case step.StartRefresh:
		l.configures, l.places = true, true
		l.surges(l.refreshSurge(do.Preferences, int64(l.before.desired)))
	case step.SetTrafficSources:
		l.attaches = append(l.attaches, do.Attach...)
	case step.CreateNodegroup:
		l.configures, l.places = true, true
		l.grow(int64(max(do.Nodegroup.DesiredSize, do.Nodegroup.MinSize)))
	case step.UpdateNodegroupConfig:
		l.grow(int64(intent.Value(do.DesiredSize)) - int64(in.State.Nodegroups[do.NodegroupName].DesiredSize))
	case step.UpdateNodegroupVersion:
		l.configures, l.places = true, true
		l.surges(int64(l.surge()))
	}
}

func (l *launch) version(data intent.TemplateData) {
	l.configures, l.made, l.places = true, true, true
	l.data = data
}

// surge returns the minimum number of machines that EKS adds before it removes old ones: as many as may be
// unavailable, or up to two for each zone.
func (l *launch) surge() int32 {
	u := l.pool.Nodegroup.UpdateConfig
	if u.UpdateStrategy == "MINIMAL" {
		return 0
	}
	return max(u.MaxUnavailable, 1)
}

// growGroup adds the machines by which the group grows. Machines of a warm pool already have addresses, and
// they run only if the warm pool's state is Running.
func (l *launch) growGroup() {
	prepares := l.after.prepared() - l.before.prepared()
	runs := int64(l.after.desired) - int64(l.before.desired)
	if w := l.after.warm; w != nil && w.PoolState == "Running" {
		runs = prepares
	}
	l.more += l.machines(runs)
	l.addresses += l.machines(prepares)
}

// grow adds machines beyond the group's final size.
func (l *launch) grow(units int64) {
	l.more += l.machines(units)
	l.addresses += l.machines(units)
}

// machines returns the minimum number of machines for a capacity. For a weighted capacity, it assumes the
// heaviest type. For other units it returns 0.
func (l *launch) machines(units int64) int64 {
	g := l.pool.Group
	if units <= 0 || g != nil && g.Options.DesiredCapacityType != "" && g.Options.DesiredCapacityType != "units" {
		return 0
	}
	heaviest := int64(1)
	if g != nil && g.MixedInstancesPolicy != nil {
		for _, o := range g.MixedInstancesPolicy.Overrides {
			if n, err := strconv.ParseInt(o.WeightedCapacity, 10, 32); err == nil {
				heaviest = max(heaviest, n)
			}
		}
	}
	return (units + heaviest - 1) / heaviest
}

// divide sets the minimum numbers of On-Demand and Spot machines among the additional ones. If a policy
// mixes both, the numbers depend on whether the running machines already cover the On-Demand base.
func (l *launch) divide() {
	switch g, n := l.pool.Group, l.pool.Nodegroup; {
	case n != nil && n.CapacityType == "SPOT", l.data.InstanceMarketOptions != nil && l.data.InstanceMarketOptions.MarketType == "spot":
		l.spot = l.more
	case g != nil && g.MixedInstancesPolicy != nil:
		m := g.MixedInstancesPolicy
		onDemand := int64(m.OnDemandPercentageAboveBaseCapacity)
		l.onDemand = l.more * onDemand / 100
		l.spot = max(0, l.more-int64(m.OnDemandBaseCapacity)) * (100 - onDemand) / 100
	default:
		l.onDemand = l.more
	}
}

// typesOf returns the possible instance types of a pool's machines, each with the field that names it.
func typesOf(pool *intent.Pool, data intent.TemplateData) (out []place) {
	if g := pool.Group; g != nil && g.MixedInstancesPolicy != nil && len(g.MixedInstancesPolicy.Overrides) > 0 {
		object, section := pool.Infrastructure, intent.Path{"spec"}
		if g.TypesOfOptions {
			object, section = pool.Options, section.Join("autoScalingGroup")
		}
		for i, o := range g.MixedInstancesPolicy.Overrides {
			if o.InstanceType != "" {
				out = append(out, place{o.InstanceType, object, section.Join("mixedInstancesPolicy", "overrides", intent.Index(i), "instanceType")})
			}
		}
		return out
	}
	if n := pool.Nodegroup; n != nil && data.InstanceType == "" {
		if n.InstanceType != "" {
			return []place{{n.InstanceType, pool.Infrastructure, intent.Path{"spec", "instanceType"}}}
		}
		for i, t := range n.InstanceTypes {
			out = append(out, place{t, pool.Options, intent.Path{"spec", "nodegroup", "instanceTypes", intent.Index(i)}})
		}
		return out
	}
	if data.InstanceType != "" {
		object, path := fieldOf(pool, "InstanceType")
		out = append(out, place{data.InstanceType, object, path})
	}
	return out
}
