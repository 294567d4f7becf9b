package resolve

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// Tags for the purpose of a subnet or security group. Cluster API Provider AWS sets the first
// group of tags. The load balancer controllers of Kubernetes read kubernetes.io/role/*.
const (
	tagCAPACluster     = "sigs.k8s.io/cluster-api-provider-aws/cluster/"
	tagKubernetes      = "kubernetes.io/cluster/"
	tagCAPARole        = "sigs.k8s.io/cluster-api-provider-aws/role"
	tagCAPAAssociation = "sigs.k8s.io/cluster-api-provider-aws/association"
	tagPublic          = "kubernetes.io/role/elb"
	tagPrivate         = "kubernetes.io/role/internal-elb"
)

// subnetLookup answers lookups of the subnets of a pool's machines.
type subnetLookup struct{ *question }

// answer returns the subnets that the pool names, or subnets of its cluster's network in the zones
// that the pool names.
func (q subnetLookup) answer() observed.Answer {
	ids := intent.SplitList(q.Lookup.IDs)
	if len(ids) > 0 || q.Lookup.Filters != "" {
		return q.named(ids)
	}
	search := subnetSearch{clusterSearch{question: q.question}}
	c, a, ok := search.find()
	if !ok {
		return a
	}
	chosen, p := q.choose(c)
	switch {
	case p != "" && c.lapsed != "":
		return problem("network-unknown", c.lapsed)
	case p != "":
		return problem("subnets-not-found", p)
	}
	// A person chooses the zones of a pool and the subnets of a configuration. All other subnets
	// are discovered.
	out := observed.Answer{Subnets: subnetIDs(chosen), VPCs: vpcsOf(chosen), Discovered: !c.all && len(c.public) == 0 && q.Lookup.Zones == ""}
	if c.lapsed != "" {
		out.Problem, out.Code, out.Lapsed = c.lapsed, "network-unknown", subnetIDs(c.subnets)
	}
	if c.warning != "" {
		out.Warning, out.Code = c.warning, "default-network"
	}
	return out
}

// vpcsOf returns the VPCs of subnets.
func vpcsOf(subnets []Subnet) []string {
	var out []string
	for _, s := range subnets {
		out = append(out, s.VPCID)
	}
	return distinct(out)
}

// named returns the subnets of the pool's own ids and filters.
func (q subnetLookup) named(ids []string) observed.Answer {
	found, a, ok := subnetsByID(q.question, ids, "the pool names it")
	if !ok {
		return a
	}
	if q.Lookup.Filters != "" {
		matched, a, ok := know(q.question, q.facts.subnetsWith.get(q.Lookup.Filters), problem("subnets-not-found", "no subnet matches the pool's filters ("+q.Lookup.Filters+")"))
		if !ok {
			return a
		}
		found = append(found, matched...)
	}
	return observed.Answer{Subnets: subnetIDs(found), VPCs: vpcsOf(found)}
}

// subnetsByID reads subnets by id. All of them must exist.
func subnetsByID(q *question, ids []string, why string) (found []Subnet, a observed.Answer, ok bool) {
	ok = true
	for _, id := range ids {
		s, answer, known := know(q, q.facts.subnets.get(id), problem("subnets-not-found", "there is no subnet "+id+" in this account and region ("+why+")"))
		if !known {
			// Continue, so that one call reads all of them.
			if ok || a.Problem == "" {
				a = answer
			}
			ok = false
			continue
		}
		found = append(found, s)
	}
	return found, a, ok
}

// choose selects the pool's subnets from the subnets of its network. It never uses subnets with addresses
// for pods only (association: secondary), nor edge zones.
func (q subnetLookup) choose(c candidates) (chosen []Subnet, problem string) {
	usable := slices.DeleteFunc(slices.Clone(c.subnets), func(s Subnet) bool {
		return s.Tags[tagCAPAAssociation] == "secondary" || !regularZone(s.Zone)
	})
	kind := q.Lookup.SubnetType
	if zones := intent.SplitList(q.Lookup.Zones); len(zones) > 0 {
		for _, z := range zones {
			in := ofType(usable, c.public, kind)
			in = slices.DeleteFunc(in, func(s Subnet) bool { return s.Zone != z })
			if len(in) == 0 {
				return nil, "there is no " + typeWord(kind) + "subnet in the zone " + z + " in " + c.source
			}
			chosen = append(chosen, in...)
		}
		return chosen, ""
	}
	if kind == "" && !c.all {
		// Prefer private subnets. All subnets of a default VPC are public, and often all subnets of
		// a small cluster.
		if private := ofType(usable, c.public, "private"); len(private) > 0 {
			return private, ""
		}
	}
	if chosen = ofType(usable, c.public, kind); len(chosen) == 0 {
		return nil, "there is no " + typeWord(kind) + "subnet that machines could use in " + c.source
	}
	return chosen, ""
}

func typeWord(kind string) string {
	if kind == "" || kind == "all" {
		return ""
	}
	return kind + " "
}

// ofType keeps the public or the private subnets; any other type keeps all.
func ofType(in []Subnet, public map[string]bool, kind string) []Subnet {
	return slices.DeleteFunc(slices.Clone(in), func(s Subnet) bool {
		switch kind {
		case "public":
			return !isPublic(s, public)
		case "private":
			return isPublic(s, public)
		}
		return false
	})
}

// isPublic decides without reading route tables. It uses the manifests, then the load balancer tags,
// and finally whether launches get a public address.
func isPublic(s Subnet, public map[string]bool) bool {
	if said, ok := public[s.ID]; ok && said {
		return true
	}
	if _, ok := s.Tags[tagPrivate]; ok {
		return false
	}
	if _, ok := s.Tags[tagPublic]; ok {
		return true
	}
	return s.MapPublicIP
}

// regularZone reports whether a zone is an availability zone (eu-west-1a), and not a local or
// wavelength zone (us-east-1-bos-1a, us-east-1-wl1-bos-wlz-1). The name of an availability zone ends
// after the region's number and one letter.
func regularZone(zone string) bool {
	if zone == "" {
		return true
	}
	parts := strings.Split(zone, "-")
	for _, p := range parts[:len(parts)-1] {
		if strings.ContainsAny(p, "0123456789") {
			return false
		}
	}
	last := strings.TrimLeft(parts[len(parts)-1], "0123456789")
	return len(last) == 1 && last[0] >= 'a' && last[0] <= 'z'
}

func subnetIDs(in []Subnet) []string {
	out := make([]string, 0, len(in))
	for _, s := range in {
		out = append(out, s.ID)
	}
	return distinct(out)
}

// distinct returns the values that are not empty, sorted and without duplicates.
func distinct(in []string) []string {
	out := slices.DeleteFunc(slices.Clone(in), func(s string) bool { return s == "" })
	slices.Sort(out)
	return slices.Compact(out)
}
