package awsemu

import (
	"net/netip"
	"sort"
	"strconv"
	"strings"
)

// vpc is a virtual network.
type vpc struct {
	ID      string
	CIDR    string
	Default bool
	Tags    tags
}

// subnet is a part of a VPC in one zone.
type subnet struct {
	ID       string
	VpcID    string
	Zone     string
	ZoneID   string
	CIDR     string
	Default  bool
	PublicIP bool // MapPublicIpOnLaunch
	Tags     tags

	Next  int      // the host number that is given out next
	Used  int      // addresses in use
	Freed []string // addresses that came back
}

// securityGroup is a security group; its rules play no part here.
type securityGroup struct {
	ID          string
	Name        string
	Description string
	VpcID       string
	Tags        tags
}

// reserved is the number of addresses that AWS keeps of each subnet.
const reserved = 5

// capacity is the number of addresses that a subnet has for instances.
func (s *subnet) capacity() int {
	p, err := netip.ParsePrefix(s.CIDR)
	if err != nil {
		return 0
	}
	return 1<<(32-p.Bits()) - reserved
}

// available is the number of free addresses.
func (s *subnet) available() int { return s.capacity() - s.Used }

// take gives out a free address.
func (s *subnet) take() (string, bool) {
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
	n += uint32(s.Next) + 4 // the first four are AWS's
	s.Next++
	return netip.AddrFrom4([4]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}).String(), true
}

// release takes an address back.
func (s *subnet) release(ip string) {
	s.Used--
	s.Freed = append(s.Freed, ip)
}

// groupByName finds a security group of a VPC by its name, nil where there is none.
func (r *region) groupByName(name, vpcID string) *securityGroup {
	for _, id := range r.EC2.SecurityGroups.sorted() {
		if g := r.EC2.SecurityGroups.get(id); g.Name == name && g.VpcID == vpcID {
			return g
		}
	}
	return nil
}

// defaultVPC returns the region's default VPC, nil where it has none.
func (r *region) defaultVPC() *vpc {
	for _, id := range r.EC2.Vpcs.sorted() {
		if v := r.EC2.Vpcs.get(id); v.Default {
			return v
		}
	}
	return nil
}

// subnetsOf returns the ids of a VPC's subnets, by zone.
func (r *region) subnetsOf(vpcID string) []string {
	var ids []string
	for _, id := range r.EC2.Subnets.sorted() {
		if r.EC2.Subnets.get(id).VpcID == vpcID {
			ids = append(ids, id)
		}
	}
	sort.SliceStable(ids, func(i, j int) bool {
		return r.EC2.Subnets.get(ids[i]).Zone < r.EC2.Subnets.get(ids[j]).Zone
	})
	return ids
}

// zones are the region's availability zones.
func (r *region) zones() []string {
	return []string{r.Name + "a", r.Name + "b", r.Name + "c"}
}

// zoneID is the zone id of the i-th zone, such as euw1-az1.
func (r *region) zoneID(i int) string {
	parts := strings.Split(r.Name, "-")
	short := parts[0]
	for _, part := range parts[1 : len(parts)-1] {
		short += directions(part)
	}
	return short + parts[len(parts)-1] + "-az" + strconv.Itoa(i+1)
}

// idOfZone is the zone id of a zone of the region.
func (r *region) idOfZone(zone string) string {
	if r.zoneIDs == nil {
		r.zoneIDs = map[string]string{}
		for i, name := range r.zones() {
			r.zoneIDs[name] = r.zoneID(i)
		}
	}
	return r.zoneIDs[zone]
}

// directions abbreviates a region's direction as zone ids do: northeast is ne.
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
