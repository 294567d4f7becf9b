package preflight

import (
	"fmt"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/intent"
)

// subnetsField returns the field that names the subnets of a pool, or the closest existing field.
func subnetsField(pool *intent.Pool) (intent.ObjectRef, intent.Path) {
	l := model.SubnetsOf(pool)
	switch {
	case l.Zones != "" && pool.FailureDomains:
		return pool.MachinePool, intent.Path{"spec", "failureDomains"}
	case l.Zones != "":
		return pool.Infrastructure, intent.Path{"spec", "availabilityZones"}
	case pool.Nodegroup != nil:
		return pool.Infrastructure, intent.Path{"spec", "subnetIDs"}
	}
	return pool.Infrastructure, intent.Path{"spec", "subnets"}
}

// offerings checks whether the zones of the subnets offer the instance types.
func (v *verdict) offerings(l *launch) {
	zones := v.zones(l)
	v.edges(l, zones)
	v.unknownTypes(l)
	if len(zones) == 0 {
		return
	}
	bare := slices.Clone(zones) // zones that offer none of the types
	known := len(l.types) > 0
	for _, t := range l.types {
		offered, ok, absent := know(v, v.facts.offerings, t.value)
		if !ok && !absent {
			known = false
			continue
		}
		bare = slices.DeleteFunc(bare, func(z string) bool { return slices.Contains(offered, z) })
		if len(offered) > 0 && !slices.ContainsFunc(zones, func(z string) bool { return slices.Contains(offered, z) }) {
			v.findings.warn(codeOffered, t.object, t.path, "AWS offers no "+t.value+" in "+strings.Join(zones, ", ")+", where the pool's subnets are: it is offered in "+strings.Join(offered, ", "), "")
		}
	}
	if known && len(bare) > 0 && len(bare) < len(zones) {
		object, path := subnetsField(l.pool)
		v.findings.warn(codeOffered, object, path, "in "+strings.Join(bare, ", ")+" AWS offers none of the pool's instance types, so no machine starts in the subnets there", "remove the subnets of the zone, or name another type")
	}
}

// unknownTypes reports instance types that no zone of the region offers. AWS refuses a group or a nodegroup
// that names one. If all types of a pool are unknown, it gets no machine.
func (v *verdict) unknownTypes(l *launch) {
	unknown := 0
	for _, t := range l.types {
		if offered, ok, absent := know(v, v.facts.offerings, t.value); absent || ok && len(offered) == 0 {
			unknown++
			v.findings.fail(codeNoType, t.object, t.path, noType(t.value), "")
		}
	}
	if unknown > 0 && unknown == len(l.types) {
		v.noMachine(l, noType(l.types[0].value))
	}
}

func noType(name string) string { return "EC2 offers no instance type " + name + " in this region" }

// edges looks for features that local and wavelength zones do not have.
// Assumed of AWS: wavelength-nodegroups.
func (v *verdict) edges(l *launch, zones []string) {
	wavelength := slices.DeleteFunc(slices.Clone(zones), func(z string) bool { return !strings.Contains(z, "-wlz-") })
	if l.pool.Nodegroup != nil && len(wavelength) > 0 {
		object, path := subnetsField(l.pool)
		v.findings.warn(codeOffered, object, path, "EKS makes no managed nodegroup in a wavelength zone: "+strings.Join(wavelength, ", "), "name subnets of other zones, or use an AWSMachinePool")
	}
	for i, n := range l.data.NetworkInterfaces {
		if intent.Value(n.AssociateCarrierIPAddress) && len(wavelength) < len(zones) {
			v.refused(l, fmt.Sprintf("NetworkInterfaces[%d].AssociateCarrierIpAddress", i), "carrier addresses are for machines in wavelength zones, and subnets of the pool are in other zones", "remove it, or name only subnets of wavelength zones")
		}
	}
}

// targetGroups checks the target groups that a plan attaches.
func (v *verdict) targetGroups(l *launch) {
	for _, s := range l.attaches {
		if s.Type != "elbv2" {
			continue
		}
		object, path := attached(l.pool, s.Identifier)
		g, ok, absent := know(v, v.facts.targets, s.Identifier)
		_, name, _ := strings.Cut(s.Identifier, "targetgroup/")
		switch {
		case absent:
			v.findings.warn(codeRefused, object, path, "AWS has no target group "+name, "correct the ARN, or create the target group")
		case ok && g.Type != "" && g.Type != "instance":
			v.facts.targets.doubt(s.Identifier)
			v.findings.warn(codeRefused, object, path, "the target group "+name+" takes targets of the type "+g.Type+", and machines of a group are of the type instance", "name one of the type instance")
		case ok && g.VPC != "" && l.vpc != "" && g.VPC != l.vpc:
			v.facts.targets.doubt(s.Identifier)
			v.findings.warn(codeRefused, object, path, "the target group "+name+" is in "+g.VPC+", and the pool's subnets are in "+l.vpc, "name a target group of that VPC")
		}
	}
}

// attached returns the field of PoolOptions that names a load balancer.
func attached(pool *intent.Pool, identifier string) (intent.ObjectRef, intent.Path) {
	if pool.Group == nil {
		return pool.Infrastructure, nil
	}
	o := &pool.Group.Options
	at := intent.Path{"spec", "autoScalingGroup"}
	if i := slices.Index(o.TargetGroupARNs, identifier); i >= 0 {
		return pool.Options, at.Join("targetGroupARNs", intent.Index(i))
	}
	if i := slices.IndexFunc(o.TrafficSources, func(s intent.TrafficSource) bool { return s.Identifier == identifier }); i >= 0 {
		return pool.Options, at.Join("trafficSources", intent.Index(i), "identifier")
	}
	return pool.Options, at
}

// addresses checks whether subnets have addresses for the additional machines of a plan. Each machine takes
// at least one. It takes more if the cluster's network gives pods addresses of the subnet. Pools that share
// some subnets are added up for each set of subnets of a pool: the set counts all pools whose subnets are
// all in it.
func (v *verdict) addresses(launches []*launch) {
	sets := map[string]*room{}
	in := map[string][]*room{} // by subnet
	launches = slices.DeleteFunc(slices.Clone(launches), func(l *launch) bool { return l.addresses == 0 || len(l.subnets) == 0 })
	for _, l := range launches {
		if key := strings.Join(slices.Sorted(slices.Values(l.subnets)), " "); sets[key] == nil {
			r := v.room(l.subnets)
			sets[key] = r
			for id := range r.ids {
				in[id] = append(in[id], r)
			}
		}
	}
	if v.lacks {
		return // count when all facts are known
	}
	for _, l := range launches {
		for _, r := range in[l.subnets[0]] {
			if slices.ContainsFunc(l.subnets, func(id string) bool { return !r.ids[id] }) {
				continue
			}
			before := r.wanted
			r.wanted += l.addresses
			if !r.sure || before > r.free || r.wanted <= r.free || r.short {
				continue
			}
			r.short = true
			for id := range r.ids {
				v.facts.subnets.doubt(id)
			}
			object, path := subnetsField(l.pool)
			which := "the pool's subnets have"
			if len(r.ids) > len(l.subnets) {
				which = "the pool's subnets, together with further subnets of another pool, have"
			}
			follows, advice := "AWS launches only some", "name further subnets, free addresses, or make the pool smaller"
			if l.onlySurges() && r.free-before < 1 {
				var first string
				object, path, first = l.endsFirst()
				follows, advice = cannotBegin, "name further subnets, free addresses, "+first
			}
			v.findings.warn(codeShort, object, path, fmt.Sprintf("%s %d free addresses, and the plan puts %d more machines in them%s: %s", which, r.free, r.wanted, withOthers(before), follows), advice)
		}
	}
}

// room is a set of subnets, and the number of additional machines for them.
type room struct {
	ids map[string]bool
	// free is the number of free addresses. sure says that each machine takes one of them.
	free   int64
	sure   bool
	wanted int64
	short  bool // and already reported
}

func (v *verdict) room(subnets []string) *room {
	r := &room{ids: map[string]bool{}, sure: true}
	for _, id := range subnets {
		s, ok, _ := know(v, v.facts.subnets, id)
		r.sure = r.sure && ok && !s.NoIPv4
		if !r.ids[id] {
			r.ids[id], r.free = true, r.free+int64(s.Free)
		}
	}
	return r
}

func withOthers(before int64) string {
	if before == 0 {
		return ""
	}
	return fmt.Sprintf(", with the %d of pools before it", before)
}
