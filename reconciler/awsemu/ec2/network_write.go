package ec2

import (
	"cmp"
	"net/netip"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

type createVpcInput struct {
	cidr string
	tags world.Tags
}

func parseCIDR(p *wire.Params, low, high int) string {
	text := p.Required("CidrBlock")
	if text == "" {
		return ""
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil || !prefix.Addr().Is4() || prefix.Masked() != prefix {
		p.Bad("cidrBlock", text, "This is not a valid CIDR block.")
		return ""
	}
	if prefix.Bits() < low || prefix.Bits() > high {
		p.Reject(wire.Fail("InvalidVpc.Range", "The CIDR '%s' is invalid.", text))
	}
	return text
}

func parseCreateVpc(p *wire.Params) createVpcInput {
	p.OneOf("InstanceTenancy", "default") // the emulator has no dedicated machines
	return createVpcInput{cidr: parseCIDR(p, 16, 28), tags: parseTagSpecifications(p, "vpc")}
}

func createVpc(rq *request, in createVpcInput) error {
	r := rq.Region
	if r.Vpcs.Len() >= r.Quota("vpcs") {
		return wire.Fail("VpcLimitExceeded", "The maximum number of VPCs has been reached.")
	}
	v := &Vpc{ID: r.NewID("vpc"), CIDR: in.cidr, Tags: in.tags}
	r.Vpcs.Put(v.ID, v)
	r.AddSecurityGroup("default", "default VPC security group", v.ID)
	rq.XML.Open("vpc")
	writeVpc(&rq.XML, r, v)
	rq.XML.Close("vpc")
	return nil
}

type createSubnetInput struct {
	vpcID, cidr, zone, zoneID string
	tags                      world.Tags
}

func parseCreateSubnet(p *wire.Params) createSubnetInput {
	return createSubnetInput{
		vpcID: p.Text("VpcId"), cidr: parseCIDR(p, 16, 28), zone: p.Text("AvailabilityZone"),
		zoneID: p.Text("AvailabilityZoneId"), tags: parseTagSpecifications(p, "subnet"),
	}
}

func createSubnet(rq *request, in createSubnetInput) error {
	r := rq.Region
	v := r.Vpcs.Get(in.vpcID)
	if v == nil {
		return vpcNotFound(in.vpcID)
	}
	zone := -1
	for i, name := range r.Zones() {
		if in.zone == "" && in.zoneID == "" || name == in.zone || in.zone == "" && r.ZoneID(i) == in.zoneID {
			zone = i
			break
		}
	}
	if zone < 0 {
		return wire.Fail("InvalidParameterValue", "Value (%s) for parameter availabilityZone is invalid. Subnets can currently only be created in the following availability zones: %s", cmp.Or(in.zone, in.zoneID), strings.Join(r.Zones(), ", "))
	}
	if err := r.checkSubnetRange(v, in.cidr); err != nil {
		return err
	}
	if len(r.SubnetsOf(v.ID)) >= r.Quota("subnets-per-vpc") {
		return wire.Fail("SubnetLimitExceeded", "The maximum number of subnets has been reached.")
	}
	s := &Subnet{ID: r.NewID("subnet"), VpcID: v.ID, Zone: r.Zones()[zone], ZoneID: r.ZoneID(zone), CIDR: in.cidr, Tags: in.tags}
	r.Subnets.Put(s.ID, s)
	rq.XML.Open("subnet")
	writeSubnet(&rq.XML, r, s)
	rq.XML.Close("subnet")
	return nil
}

// checkSubnetRange refuses a range outside of the VPC or one that is taken.
func (r *Region) checkSubnetRange(v *Vpc, cidr string) error {
	want, err := netip.ParsePrefix(cidr)
	if err != nil {
		return wire.Fail("InvalidParameterValue", "Value (%s) for parameter cidrBlock is invalid. This is not a valid CIDR block.", cidr)
	}
	if whole, err := netip.ParsePrefix(v.CIDR); err != nil || !whole.Contains(want.Addr()) || want.Bits() < whole.Bits() {
		return wire.Fail("InvalidSubnet.Range", "The CIDR '%s' is invalid.", cidr)
	}
	for _, id := range r.SubnetsOf(v.ID) {
		if have, err := netip.ParsePrefix(r.Subnets.Get(id).CIDR); err == nil && have.Overlaps(want) {
			return wire.Fail("InvalidSubnet.Conflict", "The CIDR '%s' conflicts with another subnet", cidr)
		}
	}
	return nil
}

type createGroupInput struct {
	name, description, vpcID string
	tags                     world.Tags
}

func parseCreateSecurityGroup(p *wire.Params) createGroupInput {
	return createGroupInput{
		name: p.Text("GroupName"), description: p.Text("GroupDescription"), vpcID: p.Text("VpcId"),
		tags: parseTagSpecifications(p, "security-group"),
	}
}

func createSecurityGroup(rq *request, in createGroupInput) error {
	r := rq.Region
	if in.vpcID == "" {
		v := r.DefaultVPC()
		if v == nil {
			return wire.Fail("VPCIdNotSpecified", "No default VPC for this user")
		}
		in.vpcID = v.ID
	}
	switch {
	case !r.Vpcs.Has(in.vpcID):
		return vpcNotFound(in.vpcID)
	case len(in.name) > 255 || len(in.name) >= 3 && in.name[:3] == "sg-":
		return wire.Fail("InvalidParameterValue", "Value (%s) for parameter GroupName is invalid.", in.name)
	case r.groupByName(in.name, in.vpcID) != nil:
		return wire.Fail("InvalidGroup.Duplicate", "The security group '%s' already exists for VPC '%s'", in.name, in.vpcID)
	case r.SecurityGroups.Len() >= r.Quota("security-groups"):
		return wire.Fail("SecurityGroupLimitExceeded", "The maximum number of security groups has been reached.")
	}
	g := r.AddSecurityGroup(in.name, in.description, in.vpcID)
	g.Tags = in.tags
	rq.XML.Boolean("return", true)
	rq.XML.Text("groupId", g.ID)
	rq.XML.Text("securityGroupArn", r.ARN("ec2", "security-group/"+g.ID))
	rq.XML.WriteTags(g.Tags)
	return nil
}

// AddSecurityGroup makes a security group.
func (r *Region) AddSecurityGroup(name, description, vpcID string) *SecurityGroup {
	g := &SecurityGroup{ID: r.NewID("sg"), Name: name, Description: description, VpcID: vpcID}
	r.SecurityGroups.Put(g.ID, g)
	return g
}
