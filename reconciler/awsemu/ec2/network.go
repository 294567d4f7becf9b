package ec2

import (
	"net/netip"
	"sort"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// Vpc is a virtual network.
type Vpc struct {
	ID      string
	CIDR    string
	Default bool
	Tags    world.Tags
}

// Subnet is a part of a VPC in one zone.
type Subnet struct {
	ID       string
	VpcID    string
	Zone     string
	ZoneID   string
	CIDR     string
	Default  bool
	PublicIP bool // MapPublicIpOnLaunch
	Tags     world.Tags

	Next  int      // the next new host number
	Used  int      // addresses in use
	Freed []string // released addresses
}

// SecurityGroup is a security group. The emulator ignores its rules.
type SecurityGroup struct {
	ID          string
	Name        string
	Description string
	VpcID       string
	Tags        world.Tags
}

// reserved is the number of addresses that AWS reserves in each subnet.
const reserved = 5

// capacity returns the number of addresses that a subnet has for instances.
func (s *Subnet) capacity() int {
	p, err := netip.ParsePrefix(s.CIDR)
	if err != nil {
		return 0
	}
	return 1<<(32-p.Bits()) - reserved
}

// available returns the number of free addresses.
func (s *Subnet) available() int { return s.capacity() - s.Used }

// allocate takes a free address.
func (s *Subnet) allocate() (string, bool) {
	if s.available() <= 0 {
		return "", false
	}
	s.Used++
	if n := len(s.Freed); n > 0 && s.Next >= s.capacity() {
		ip := s.Freed[0]
		s.Freed = s.Freed[1:]
		return ip, true
	}
	p, err := netip.ParsePrefix(s.CIDR)
	if err != nil {
		return "", false
	}
	a := p.Masked().Addr().As4()
	n := uint32(a[0])<<24 | uint32(a[1])<<16 | uint32(a[2])<<8 | uint32(a[3])
	n += uint32(s.Next) + 4 // AWS reserves the first four
	s.Next++
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}).String(), true
}

// release frees an address.
func (s *Subnet) release(ip string) {
	s.Used--
	s.Freed = append(s.Freed, ip)
}

// groupByName finds a security group of a VPC by its name. It returns nil if none exists.
func (r *Region) groupByName(name, vpcID string) *SecurityGroup {
	for _, id := range r.SecurityGroups.Sorted() {
		if g := r.SecurityGroups.Get(id); g.Name == name && g.VpcID == vpcID {
			return g
		}
	}
	return nil
}

// DefaultVPC returns the region's default VPC, or nil if it has none.
func (r *Region) DefaultVPC() *Vpc {
	for _, id := range r.Vpcs.Sorted() {
		if v := r.Vpcs.Get(id); v.Default {
			return v
		}
	}
	return nil
}

// SubnetsOf returns the ids of a VPC's subnets, sorted by zone.
func (r *Region) SubnetsOf(vpcID string) []string {
	var ids []string
	for _, id := range r.Subnets.Sorted() {
		if r.Subnets.Get(id).VpcID == vpcID {
			ids = append(ids, id)
		}
	}
	sort.SliceStable(ids, func(i, j int) bool {
		return r.Subnets.Get(ids[i]).Zone < r.Subnets.Get(ids[j]).Zone
	})
	return ids
}

// Zones returns the region's availability zones.
func (r *Region) Zones() []string {
	return []string{r.Name + "a", r.Name + "b", r.Name + "c"}
}

// ZoneID returns the zone id of the i-th zone, such as euw1-az1.
func (r *Region) ZoneID(i int) string {
	parts := strings.Split(r.Name, "-")
	short := parts[0]
	for _, part := range parts[1 : len(parts)-1] {
		short += directions(part)
	}
	return short + parts[len(parts)-1] + "-az" + strconv.Itoa(i+1)
}

// ZoneIDOf returns the zone id of a zone of the region.
func (r *Region) ZoneIDOf(zone string) string {
	if r.zoneIDs == nil {
		r.zoneIDs = map[string]string{}
		for i, name := range r.Zones() {
			r.zoneIDs[name] = r.ZoneID(i)
		}
	}
	return r.zoneIDs[zone]
}

// directions abbreviates a region's direction like zone ids: northeast becomes ne.
func directions(word string) string {
	out := ""
	for word != "" {
		for _, d := range []string{"north", "south", "east", "west", "central", "gov", ""} {
			if d == "" {
				return out + word[:1]
			}
			if rest, ok := strings.CutPrefix(word, d); ok {
				out, word = out+d[:1], rest
				break
			}
		}
	}
	return out
}

// seedNetwork creates the default VPC with a subnet in each zone, and the default security group.
func seedNetwork(r *Region) {
	v := &Vpc{ID: r.SeedID("vpc", "default"), CIDR: "172.31.0.0/16", Default: true}
	r.Vpcs.Put(v.ID, v)
	for i, zone := range r.Zones() {
		s := &Subnet{
			ID: r.SeedID("subnet", zone), VpcID: v.ID, Zone: zone, ZoneID: r.ZoneID(i),
			CIDR: []string{"172.31.0.0/20", "172.31.16.0/20", "172.31.32.0/20"}[i], Default: true, PublicIP: true,
		}
		r.Subnets.Put(s.ID, s)
	}
	g := &SecurityGroup{ID: r.SeedID("sg", "default"), Name: "default", Description: "default VPC security group", VpcID: v.ID}
	r.SecurityGroups.Put(g.ID, g)
}
