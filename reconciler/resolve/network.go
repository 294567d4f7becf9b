package resolve

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// Tags that say what a subnet or security group is for. Those of Cluster API
// Provider AWS are its own; kubernetes.io/role/* are read by the load balancer
// controllers of Kubernetes.
const (
	tagCAPACluster     = "sigs.k8s.io/cluster-api-provider-aws/cluster/"
	tagKubernetes      = "kubernetes.io/cluster/"
	tagCAPARole        = "sigs.k8s.io/cluster-api-provider-aws/role"
	tagCAPAAssociation = "sigs.k8s.io/cluster-api-provider-aws/association"
	tagPublic          = "kubernetes.io/role/elb"
	tagPrivate         = "kubernetes.io/role/internal-elb"
)

// candidates holds a network's subnets, from which a pool takes its own.
type candidates struct {
	subnets []Subnet
	// source says where they come from, for errors.
	source string
	// all makes the pool take every one where it names no zone: a person chose them for
	// exactly this.
	all     bool
	warning string
	// lapsed is the problem that the default VPC is not the region's only one.
	lapsed string
	// public holds ids that the manifests call public.
	public map[string]bool
}

// subnets answers where a pool's machines go: the subnets that the pool names,
// else those of its cluster's network in the zones that it names.
func (q *question) subnets() observed.Answer {
	ids := intent.SplitList(q.Lookup.IDs)
	if len(ids) > 0 || q.Lookup.Filters != "" {
		return q.namedSubnets(ids)
	}
	c, a, ok := q.network()
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
	// Zones that the pool names, and subnets that the configuration lists, are a
	// person's choice; the rest happen to exist.
	out := observed.Answer{Subnets: subnetIDs(chosen), VPCs: vpcsOf(chosen), Discovered: !c.all && len(c.public) == 0 && q.Lookup.Zones == ""}
	if c.lapsed != "" {
		out.Problem, out.Code, out.Lapsed = c.lapsed, "network-unknown", subnetIDs(c.subnets)
	}
	if c.warning != "" {
		out.Warning, out.Code = c.warning, "default-network"
	}
	return out
}

// vpcsOf are the VPCs that subnets are in.
func vpcsOf(subnets []Subnet) []string {
	var out []string
	for _, s := range subnets {
		out = append(out, s.VPCID)
	}
	return distinct(out)
}

// namedSubnets are those of the pool's own ids and filters.
func (q *question) namedSubnets(ids []string) observed.Answer {
	found, a, ok := q.subnetsByID(ids, "the pool names it")
	if !ok {
		return a
	}
	if q.Lookup.Filters != "" {
		matched, a, ok := know(q, q.facts.subnetsWith.get(q.Lookup.Filters), problem("subnets-not-found", "no subnet matches the pool's filters ("+q.Lookup.Filters+")"))
		if !ok {
			return a
		}
		found = append(found, matched...)
	}
	return observed.Answer{Subnets: subnetIDs(found), VPCs: vpcsOf(found)}
}

// subnetsByID reads subnets by id. All of them must exist.
func (q *question) subnetsByID(ids []string, why string) (found []Subnet, a observed.Answer, ok bool) {
	ok = true
	for _, id := range ids {
		s, answer, known := know(q, q.facts.subnets.get(id), problem("subnets-not-found", "there is no subnet "+id+" in this account and region ("+why+")"))
		if !known {
			// The call reads the remaining ones too, so that one call reads them all.
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

// network finds the subnets of the pool's network: the first that answers of the
// target's configuration, the cluster's manifests, EKS, tags, the default VPC.
func (q *question) network() (candidates, observed.Answer, bool) {
	for _, try := range []func() (candidates, observed.Answer, step){q.fromTarget, q.fromManifests, q.fromEKS, q.fromTags, q.fromDefaultVPC} {
		c, a, s := try()
		switch {
		case q.waits:
			return candidates{}, observed.Answer{}, false
		case s == stops:
			return candidates{}, a, false
		case s == answers:
			return c, observed.Answer{}, true
		}
	}
	return candidates{}, problem("network-unknown", q.unknownNetwork()), false
}

func (q *question) unknownNetwork() string {
	return "weir cannot find out in which subnets the pool's machines go; tried: " + strings.Join(q.tried, "; ") +
		". Name subnets in the pool, or set network.subnetIDs in the target's configuration"
}

// step is the result of one link of a chain.
type step int

const (
	// passes: it has nothing to say.
	passes step = iota
	answers
	// stops: it should have answered and cannot.
	stops
)

func (q *question) pass(why string) step {
	q.tried = append(q.tried, why)
	return passes
}

func (q *question) fromTarget() (candidates, observed.Answer, step) {
	if len(q.Network.SubnetIDs) > 0 {
		found, a, ok := q.subnetsByID(q.Network.SubnetIDs, "the target's configuration names it")
		if !ok {
			return candidates{}, a, stops
		}
		return candidates{subnets: found, all: true, source: "the target's configuration"}, a, answers
	}
	if q.Network.VPCID == "" {
		return candidates{}, observed.Answer{}, q.pass("the target's configuration names no network")
	}
	return q.fromVPC(q.Network.VPCID, "the VPC "+q.Network.VPCID+" of the target's configuration")
}

func (q *question) fromVPC(id, source string) (candidates, observed.Answer, step) {
	found, a, ok := know(q, q.facts.subnetsIn.get(id), problem("subnets-not-found", source+" has no subnet"))
	if !ok {
		return candidates{}, a, stops
	}
	return candidates{subnets: found, source: source}, a, answers
}

// fromManifests reads spec.network of the cluster's objects. Cluster API makes a subnet without an
// id of AWS's: its id is not in the manifests.
func (q *question) fromManifests() (candidates, observed.Answer, step) {
	n := q.Cluster.Network
	c := candidates{source: "the cluster's manifests", public: map[string]bool{}}
	var ids []string
	for _, s := range n.Subnets {
		if strings.HasPrefix(s.ID, "subnet-") {
			ids = append(ids, s.ID)
			c.public[s.ID] = s.Public
		}
	}
	if len(ids) > 0 {
		found, a, ok := q.subnetsByID(ids, "the cluster's manifests name it")
		if !ok {
			return candidates{}, a, stops
		}
		c.subnets = found
		return c, a, answers
	}
	if n.VPCID == "" {
		return candidates{}, observed.Answer{}, q.pass("the cluster's manifests name no subnet by id and no VPC")
	}
	return q.fromVPC(n.VPCID, "the VPC "+n.VPCID+" of the cluster's manifests")
}

// eks looks up the pool's EKS cluster. found is false where the pool's cluster
// is no EKS cluster or does not exist.
func (q *question) eks() (c observed.EKSCluster, found bool, a observed.Answer, s step) {
	name := q.Cluster.EKSName
	if name == "" {
		return c, false, a, q.pass("the cluster is no EKS cluster")
	}
	f := q.facts.clusters.get(name)
	if f.state == absent {
		return c, false, a, q.pass("there is no EKS cluster " + name)
	}
	c, a, ok := know(q, f, observed.Answer{})
	if !ok {
		return c, false, a, stops
	}
	return c, true, a, answers
}

func (q *question) fromEKS() (candidates, observed.Answer, step) {
	c, found, a, s := q.eks()
	if !found {
		return candidates{}, a, s
	}
	if len(c.SubnetIDs) == 0 {
		return candidates{}, a, q.pass("the EKS cluster " + c.Name + " has no subnets")
	}
	subnets, a, ok := q.subnetsByID(c.SubnetIDs, "the EKS cluster "+c.Name+" uses it")
	if !ok {
		return candidates{}, a, stops
	}
	return candidates{subnets: subnets, source: "the EKS cluster " + c.Name}, a, answers
}

func (q *question) fromTags() (candidates, observed.Answer, step) {
	name := q.Cluster.TagName
	if name == "" {
		return candidates{}, observed.Answer{}, q.pass("the cluster has no name to look for in tags")
	}
	f := q.facts.subnetsOf.get(name)
	if f.state == absent {
		return candidates{}, observed.Answer{}, q.pass("no subnet is tagged " + tagCAPACluster + name + " or " + tagKubernetes + name)
	}
	found, a, ok := know(q, f, observed.Answer{})
	if !ok {
		return candidates{}, a, stops
	}
	return candidates{subnets: found, source: "the subnets tagged for the cluster " + name}, a, answers
}

// defaultVPC returns the region's default VPC. If it has no other, there is no designed
// network here that a guess could miss; only says so. Nodes of an EKS cluster that is
// not there have no network that would do.
func (q *question) defaultVPC() (id string, only bool, a observed.Answer, s step) {
	if name := q.Cluster.EKSName; name != "" && q.facts.clusters.get(name).state == absent {
		return "", false, noCluster(name), stops
	}
	vpcs, a, ok := know(q, q.facts.vpcs.get(""), observed.Answer{})
	if !ok && a.Problem != "" {
		return "", false, a, stops
	}
	i := slices.IndexFunc(vpcs, func(v VPC) bool { return v.Default })
	if i < 0 || len(vpcs) > 1 {
		q.tried = append(q.tried, "the default VPC is not the region's only one")
	}
	if i < 0 {
		return "", false, a, passes
	}
	return vpcs[i].ID, len(vpcs) == 1, a, answers
}

func (q *question) fromDefaultVPC() (candidates, observed.Answer, step) {
	vpc, only, a, s := q.defaultVPC()
	if s != answers {
		return candidates{}, a, s
	}
	c, a, s := q.fromVPC(vpc, "the default VPC "+vpc)
	switch {
	case only:
		c.warning = "no network is named for the pool's cluster, so the subnets of the default VPC " + vpc +
			" are used, which is the region's only VPC; name subnets in the pool or in the target's configuration"
	case s == answers:
		c.lapsed = q.unknownNetwork()
	case !q.waits: // what it lacks is not what has to be mended
		s = passes
	}
	return c, a, s
}

// choose takes a pool's subnets out of its network's. Subnets that hold
// addresses of pods only (association: secondary) never count, nor do edge zones.
func (q *question) choose(c candidates) (chosen []Subnet, problem string) {
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
		// Private ones if there are any. The subnets of a default VPC are all
		// public, and so are those of many a small cluster.
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

// isPublic decides without reading route tables: by what the manifests say, by
// the load balancer tags, else by whether launches get a public address.
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

// regularZone tells availability zones (eu-west-1a) from local and wavelength
// zones (us-east-1-bos-1a, us-east-1-wl1-bos-wlz-1): their names end after the
// region's number and one letter.
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

// distinct are the values that are not empty, sorted, each once.
func distinct(in []string) []string {
	out := slices.DeleteFunc(slices.Clone(in), func(s string) bool { return s == "" })
	slices.Sort(out)
	return slices.Compact(out)
}
