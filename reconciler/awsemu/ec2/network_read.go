package ec2

import (
	"slices"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

type describeVpcsInput struct {
	describe
	VpcIDs []string
}

func (in *describeVpcsInput) Check() error { return in.bound(5, 1000, 1000) }

type describeSubnetsInput struct {
	describe
	SubnetIDs []string
}

func (in *describeSubnetsInput) Check() error { return in.bound(5, 1000, 1000) }

func describeVpcs(rq *request, in describeVpcsInput) error {
	r := rq.Region
	match, err := matcher(in.Filters, attributes[*Vpc]{
		"vpc-id":                            one(func(v *Vpc) string { return v.ID }),
		"cidr":                              one(func(v *Vpc) string { return v.CIDR }),
		"is-default":                        one(func(v *Vpc) string { return strconv.FormatBool(v.Default) }),
		"isDefault":                         one(func(v *Vpc) string { return strconv.FormatBool(v.Default) }),
		"owner-id":                          one(func(*Vpc) string { return r.Account }),
		"state":                             one(func(*Vpc) string { return "available" }),
		"cidr-block-association.cidr-block": one(func(v *Vpc) string { return v.CIDR }),
	}, func(v *Vpc) world.Tags { return v.Tags })
	if err != nil {
		return err
	}
	return runDescribe(rq, in.describe, in.VpcIDs, &r.Vpcs, match, vpcNotFound, "vpcSet", func(v *Vpc) { writeVpc(&rq.XML, r, v) })
}

// notFound returns the error for an id without a resource, or for an invalid id.
func notFound(prefix, code, noun string) func(id string) *wire.Error {
	return func(id string) *wire.Error {
		if !validID(id, prefix) {
			return wire.Fail(code+".Malformed", "Invalid id: \"%s\"", id)
		}
		return wire.Fail(code+".NotFound", "The "+noun+" ID '%s' does not exist", id)
	}
}

var vpcNotFound = notFound("vpc-", "InvalidVpcID", "vpc")

func writeVpc(w *wire.XML, r *Region, v *Vpc) {
	w.Text("vpcId", v.ID)
	w.Text("ownerId", r.Account)
	w.Text("state", "available")
	w.Text("cidrBlock", v.CIDR)
	w.Open("cidrBlockAssociationSet")
	w.Open("item")
	w.Text("associationId", "vpc-cidr-assoc-"+world.Hash(v.ID, 17))
	w.Text("cidrBlock", v.CIDR)
	w.Open("cidrBlockState")
	w.Text("state", "associated")
	w.Close("cidrBlockState")
	w.Close("item")
	w.Close("cidrBlockAssociationSet")
	w.Text("dhcpOptionsId", "dopt-"+world.Hash(v.ID, 17))
	w.Text("instanceTenancy", "default")
	w.Boolean("isDefault", v.Default)
	w.WriteTags(v.Tags)
}

func describeSubnets(rq *request, in describeSubnetsInput) error {
	r := rq.Region
	boolean := func(get func(s *Subnet) bool) func(*Subnet) []string {
		return one(func(s *Subnet) string { return strconv.FormatBool(get(s)) })
	}
	isDefault := boolean(func(s *Subnet) bool { return s.Default })
	zone := one(func(s *Subnet) string { return s.Zone })
	cidr := one(func(s *Subnet) string { return s.CIDR })
	match, err := matcher(in.Filters, attributes[*Subnet]{
		"subnet-id":                  one(func(s *Subnet) string { return s.ID }),
		"subnet-arn":                 one(func(s *Subnet) string { return r.ARN("ec2", "subnet/"+s.ID) }),
		"vpc-id":                     one(func(s *Subnet) string { return s.VpcID }),
		"availability-zone":          zone,
		"availabilityZone":           zone,
		"availability-zone-id":       one(func(s *Subnet) string { return s.ZoneID }),
		"available-ip-address-count": one(func(s *Subnet) string { return strconv.Itoa(s.available()) }),
		"cidr-block":                 cidr,
		"cidr":                       cidr,
		"default-for-az":             isDefault,
		"defaultForAz":               isDefault,
		"map-public-ip-on-launch":    boolean(func(s *Subnet) bool { return s.PublicIP }),
		"owner-id":                   one(func(*Subnet) string { return r.Account }),
		"state":                      one(func(*Subnet) string { return "available" }),
	}, func(s *Subnet) world.Tags { return s.Tags })
	if err != nil {
		return err
	}
	return runDescribe(rq, in.describe, in.SubnetIDs, &r.Subnets, match, subnetNotFound, "subnetSet", func(s *Subnet) { writeSubnet(&rq.XML, r, s) })
}

var subnetNotFound = notFound("subnet-", "InvalidSubnetID", "subnet")

func writeSubnet(w *wire.XML, r *Region, s *Subnet) {
	w.Text("subnetId", s.ID)
	w.Text("subnetArn", r.ARN("ec2", "subnet/"+s.ID))
	w.Text("state", "available")
	w.Text("ownerId", r.Account)
	w.Text("vpcId", s.VpcID)
	w.Text("cidrBlock", s.CIDR)
	w.Integer("availableIpAddressCount", int64(s.available()))
	w.Text("availabilityZone", s.Zone)
	w.Text("availabilityZoneId", s.ZoneID)
	w.Boolean("defaultForAz", s.Default)
	w.Boolean("mapPublicIpOnLaunch", s.PublicIP)
	w.Boolean("assignIpv6AddressOnCreation", false)
	w.WriteTags(s.Tags)
}

type describeGroupsInput struct {
	describe
	GroupIDs, GroupNames []string
}

func (in *describeGroupsInput) Check() error { return in.bound(5, 1000, 0) }

func describeSecurityGroups(rq *request, in describeGroupsInput) error {
	r := rq.Region
	for _, name := range in.GroupNames {
		var g *SecurityGroup
		if v := r.DefaultVPC(); v != nil {
			g = r.groupByName(name, v.ID)
		}
		if g == nil {
			return wire.Fail("InvalidGroup.NotFound", "The security group '%s' does not exist in default VPC", name)
		}
		in.GroupIDs = append(in.GroupIDs, g.ID)
	}
	match, err := matcher(in.Filters, attributes[*SecurityGroup]{
		"group-id":    one(func(g *SecurityGroup) string { return g.ID }),
		"group-name":  one(func(g *SecurityGroup) string { return g.Name }),
		"description": one(func(g *SecurityGroup) string { return g.Description }),
		"owner-id":    one(func(*SecurityGroup) string { return r.Account }),
		"vpc-id":      one(func(g *SecurityGroup) string { return g.VpcID }),
	}, func(g *SecurityGroup) world.Tags { return g.Tags })
	if err != nil {
		return err
	}
	missing := func(id string) *wire.Error {
		if !validID(id, "sg-") {
			return wire.Fail("InvalidGroupId.Malformed", "Invalid id: \"%s\" (expecting \"sg-...\")", id)
		}
		return wire.Fail("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
	}
	return runDescribe(rq, in.describe, in.GroupIDs, &r.SecurityGroups, match, missing, "securityGroupInfo", func(g *SecurityGroup) { writeGroup(&rq.XML, r, g) })
}

func writeGroup(w *wire.XML, r *Region, g *SecurityGroup) {
	w.Text("ownerId", r.Account)
	w.Text("groupId", g.ID)
	w.Text("securityGroupArn", r.ARN("ec2", "security-group/"+g.ID))
	w.Text("groupName", g.Name)
	w.Text("groupDescription", g.Description)
	w.Text("vpcId", g.VpcID)
	w.WriteTags(g.Tags)
}

type describeZonesInput struct {
	ZoneNames, ZoneIDs   []string
	Filters              []filter
	AllAvailabilityZones bool // all zones of the emulator are opted in
}

func (in *describeZonesInput) Check() error { return checkFilters(in.Filters) }

// zoneRow is one availability zone.
type zoneRow struct{ name, id string }

func describeAvailabilityZones(rq *request, in describeZonesInput) error {
	r := rq.Region
	match, err := matcher(in.Filters, attributes[zoneRow]{
		"zone-name":     one(func(z zoneRow) string { return z.name }),
		"zone-id":       one(func(z zoneRow) string { return z.id }),
		"region-name":   one(func(zoneRow) string { return r.Name }),
		"state":         one(func(zoneRow) string { return "available" }),
		"zone-type":     one(func(zoneRow) string { return "availability-zone" }),
		"opt-in-status": one(func(zoneRow) string { return "opt-in-not-required" }),
		"group-name":    one(func(zoneRow) string { return r.Name + "-zg-1" }),
	}, func(zoneRow) world.Tags { return nil })
	if err != nil {
		return err
	}
	var rows []zoneRow
	names, ids := r.Zones(), []string{}
	for i, name := range names {
		rows = append(rows, zoneRow{name, r.ZoneID(i)})
		ids = append(ids, r.ZoneID(i))
	}
	for _, name := range in.ZoneNames {
		if !slices.Contains(names, name) {
			return wire.Fail("InvalidParameterValue", "Invalid availability zone: [%s]", name)
		}
	}
	for _, id := range in.ZoneIDs {
		if !slices.Contains(ids, id) {
			return wire.Fail("InvalidParameterValue", "Invalid availability zone-id: [%s]", id)
		}
	}
	w := &rq.XML
	w.Open("availabilityZoneInfo")
	for _, z := range rows {
		if len(in.ZoneNames) > 0 && !slices.Contains(in.ZoneNames, z.name) || len(in.ZoneIDs) > 0 && !slices.Contains(in.ZoneIDs, z.id) || !match(z) {
			continue
		}
		w.Open("item")
		w.Text("zoneName", z.name)
		w.Text("zoneId", z.id)
		w.Text("zoneState", "available")
		w.Text("regionName", r.Name)
		w.Text("groupName", r.Name+"-zg-1")
		w.Text("networkBorderGroup", r.Name)
		w.Text("optInStatus", "opt-in-not-required")
		w.Text("zoneType", "availability-zone")
		w.Close("item")
	}
	w.Close("availabilityZoneInfo")
	return nil
}
