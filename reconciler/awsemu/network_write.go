package awsemu

import (
	"net/netip"
)

type createVpcInput struct {
	cidr string
	tags tags
}

func parseCIDR(p *params, low, high int) string {
	text := p.required("CidrBlock")
	if text == "" {
		return ""
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil || !prefix.Addr().Is4() || prefix.Masked() != prefix {
		p.bad("cidrBlock", text, "This is not a valid CIDR block.")
		return ""
	}
	if prefix.Bits() < low || prefix.Bits() > high {
		p.reject(fail("InvalidVpc.Range", "The CIDR '%s' is invalid.", text))
	}
	return text
}

func parseCreateVpc(p *params) createVpcInput {
	p.oneOf("InstanceTenancy", "default") // the emulator has no dedicated machines
	return createVpcInput{cidr: parseCIDR(p, 16, 28), tags: parseTagSpecifications(p, "vpc")}
}

func createVpc(rq *request, in createVpcInput) error {
	r := rq.region
	if r.EC2.Vpcs.len() >= r.quota("vpcs") {
		return fail("VpcLimitExceeded", "The maximum number of VPCs has been reached.")
	}
	v := &vpc{ID: r.newID("vpc"), CIDR: in.cidr, Tags: in.tags}
	r.EC2.Vpcs.put(v.ID, v)
	r.addSecurityGroup("default", "default VPC security group", v.ID)
	rq.xml.open("vpc")
	rq.xml.writeVpc(r, v)
	rq.xml.close("vpc")
	return nil
}

type createSubnetInput struct {
	vpcID, cidr, zone, zoneID string
	tags                      tags
}

func parseCreateSubnet(p *params) createSubnetInput {
	return createSubnetInput{
		vpcID: p.text("VpcId"), cidr: parseCIDR(p, 16, 28), zone: p.text("AvailabilityZone"),
		zoneID: p.text("AvailabilityZoneId"), tags: parseTagSpecifications(p, "subnet"),
	}
}

func createSubnet(rq *request, in createSubnetInput) error {
	r := rq.region
	v := r.EC2.Vpcs.get(in.vpcID)
	if v == nil {
		return vpcNotFound(in.vpcID)
	}
	zone := -1
	for i, name := range r.zones() {
		if in.zone == "" && in.zoneID == "" || name == in.zone || in.zone == "" && r.zoneID(i) == in.zoneID {
			zone = i
			break
		}
	}
	if zone < 0 {
		return fail("InvalidParameterValue", "Value (%s) for parameter availabilityZone is invalid. Subnets can currently only be created in the following availability zones: %s", first(in.zone, in.zoneID), joinComma(r.zones()))
	}
	if err := r.checkSubnetRange(v, in.cidr); err != nil {
		return err
	}
	if len(r.subnetsOf(v.ID)) >= r.quota("subnets-per-vpc") {
		return fail("SubnetLimitExceeded", "The maximum number of subnets has been reached.")
	}
	s := &subnet{ID: r.newID("subnet"), VpcID: v.ID, Zone: r.zones()[zone], ZoneID: r.zoneID(zone), CIDR: in.cidr, Tags: in.tags}
	r.EC2.Subnets.put(s.ID, s)
	rq.xml.open("subnet")
	rq.xml.writeSubnet(r, s)
	rq.xml.close("subnet")
	return nil
}

// checkSubnetRange refuses a range outside of the VPC or one that is taken.
func (r *region) checkSubnetRange(v *vpc, cidr string) error {
	want, err := netip.ParsePrefix(cidr)
	if err != nil {
		return fail("InvalidParameterValue", "Value (%s) for parameter cidrBlock is invalid. This is not a valid CIDR block.", cidr)
	}
	if whole, err := netip.ParsePrefix(v.CIDR); err != nil || !whole.Contains(want.Addr()) || want.Bits() < whole.Bits() {
		return fail("InvalidSubnet.Range", "The CIDR '%s' is invalid.", cidr)
	}
	for _, id := range r.subnetsOf(v.ID) {
		if have, err := netip.ParsePrefix(r.EC2.Subnets.get(id).CIDR); err == nil && have.Overlaps(want) {
			return fail("InvalidSubnet.Conflict", "The CIDR '%s' conflicts with another subnet", cidr)
		}
	}
	return nil
}

type createGroupInput struct {
	name, description, vpcID string
	tags                     tags
}

func parseCreateSecurityGroup(p *params) createGroupInput {
	return createGroupInput{
		name: p.text("GroupName"), description: p.text("GroupDescription"), vpcID: p.text("VpcId"),
		tags: parseTagSpecifications(p, "security-group"),
	}
}

func createSecurityGroup(rq *request, in createGroupInput) error {
	r := rq.region
	if in.vpcID == "" {
		v := r.defaultVPC()
		if v == nil {
			return fail("VPCIdNotSpecified", "No default VPC for this user")
		}
		in.vpcID = v.ID
	}
	switch {
	case !r.EC2.Vpcs.has(in.vpcID):
		return vpcNotFound(in.vpcID)
	case len(in.name) > 255 || len(in.name) >= 3 && in.name[:3] == "sg-":
		return fail("InvalidParameterValue", "Value (%s) for parameter GroupName is invalid.", in.name)
	case r.groupByName(in.name, in.vpcID) != nil:
		return fail("InvalidGroup.Duplicate", "The security group '%s' already exists for VPC '%s'", in.name, in.vpcID)
	case r.EC2.SecurityGroups.len() >= r.quota("security-groups"):
		return fail("SecurityGroupLimitExceeded", "The maximum number of security groups has been reached.")
	}
	g := r.addSecurityGroup(in.name, in.description, in.vpcID)
	g.Tags = in.tags
	rq.xml.boolean("return", true)
	rq.xml.text("groupId", g.ID)
	rq.xml.text("securityGroupArn", r.arn("ec2", "security-group/"+g.ID))
	rq.xml.writeTags(g.Tags)
	return nil
}

// addSecurityGroup makes a security group.
func (r *region) addSecurityGroup(name, description, vpcID string) *securityGroup {
	g := &securityGroup{ID: r.newID("sg"), Name: name, Description: description, VpcID: vpcID}
	r.EC2.SecurityGroups.put(g.ID, g)
	return g
}

func joinComma(list []string) string {
	out := ""
	for i, s := range list {
		if i > 0 {
			out += ", "
		}
		out += s
	}
	return out
}
