package awsemu

import (
	"time"
)

// seedTime is when everything seeded was made.
func seedTime() time.Time { return time.Date(2025, 1, 15, 12, 0, 0, 0, time.UTC) }

// seedRegion fills a new region.
func (s *Server) seedRegion(r *region) {
	for _, sv := range s.order {
		if sv.seed != nil {
			sv.seed(r)
		}
	}
}

// seedAccount fills a new account with the roles and instance profiles that
// clusterawsadm makes by default.
func (s *Server) seedAccount(a *account) {
	a.Roles, a.InstanceProfiles = map[string]*role{}, map[string]*instanceProfile{}
	const suffix = ".cluster-api-provider-aws.sigs.k8s.io"
	for _, name := range []string{"nodes", "control-plane", "controllers"} {
		a.addRole(name+suffix, "ec2.amazonaws.com", seedTime())
		a.addInstanceProfile(name+suffix, name+suffix, seedTime())
	}
	a.addRole("eks-nodegroup"+suffix, "ec2.amazonaws.com", seedTime())
	a.addRole("eks-controlplane"+suffix, "eks.amazonaws.com", seedTime())
}

// seedNetwork makes the default VPC with a subnet in each zone and the default
// security group.
func seedNetwork(r *region) {
	v := &vpc{ID: r.seedID("vpc", "default"), CIDR: "172.31.0.0/16", Default: true}
	r.EC2.Vpcs.put(v.ID, v)
	for i, zone := range r.zones() {
		s := &subnet{
			ID: r.seedID("subnet", zone), VpcID: v.ID, Zone: zone, ZoneID: r.zoneID(i),
			CIDR: []string{"172.31.0.0/20", "172.31.16.0/20", "172.31.32.0/20"}[i], Default: true, PublicIP: true,
		}
		r.EC2.Subnets.put(s.ID, s)
	}
	g := &securityGroup{ID: r.seedID("sg", "default"), Name: "default", Description: "default VPC security group", VpcID: v.ID}
	r.EC2.SecurityGroups.put(g.ID, g)
}
