package ec2

import (
	"cmp"
	"net/netip"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

type createVpcInput struct {
	CIDRBlock       string
	InstanceTenancy string
	tagSpecifications
}

func (in *createVpcInput) Check() error {
	if in.InstanceTenancy != "" && in.InstanceTenancy != "default" { // the emulator has no dedicated machines
		return badValue("InstanceTenancy", in.InstanceTenancy, "Member must satisfy enum value set: [default]")
	}
	if err := checkCIDR(in.CIDRBlock); err != nil {
		return err
	}
	return in.read("vpc")
}

// checkCIDR checks the address block of a VPC or a subnet.
func checkCIDR(text string) error {
	if text == "" {
		return wire.Fail("MissingParameter", "The request must contain the parameter CidrBlock")
	}
	prefix, err := netip.ParsePrefix(text)
	if err != nil || !prefix.Addr().Is4() || prefix.Masked() != prefix {
		return badValue("cidrBlock", text, "This is not a valid CIDR block.")
	}
	if prefix.Bits() < 16 || prefix.Bits() > 28 {
		return wire.Fail("InvalidVpc.Range", "The CIDR '%s' is invalid.", text)
	}
	return nil
}

func createVpc(rq *request, in createVpcInput) error {
	r := rq.Region
	if r.Vpcs.Len() >= r.Quota("vpcs") {
		return wire.Fail("VpcLimitExceeded", "The maximum number of VPCs has been reached.")
	}
	v := &Vpc{ID: r.NewID("vpc"), CIDR: in.CIDRBlock, Tags: in.tags}
	r.Vpcs.Put(v.ID, v)
	r.AddSecurityGroup("default", "default VPC security group", v.ID)
	rq.XML.Open("vpc")
	writeVpc(&rq.XML, r, v)
	rq.XML.Close("vpc")
	return nil
}

type createSubnetInput struct {
	VpcID, CIDRBlock, AvailabilityZone, AvailabilityZoneID string
	tagSpecifications
}

func (in *createSubnetInput) Check() error {
	if err := checkCIDR(in.CIDRBlock); err != nil {
		return err
	}
	return in.read("subnet")
}

func createSubnet(rq *request, in createSubnetInput) error {
	r := rq.Region
	v := r.Vpcs.Get(in.VpcID)
	if v == nil {
		return vpcNotFound(in.VpcID)
	}
	zone := -1
	for i, name := range r.Zones() {
		if in.AvailabilityZone == "" && in.AvailabilityZoneID == "" || name == in.AvailabilityZone || in.AvailabilityZone == "" && r.ZoneID(i) == in.AvailabilityZoneID {
			zone = i
			break
		}
	}
	if zone < 0 {
		return wire.Fail("InvalidParameterValue", "Value (%s) for parameter availabilityZone is invalid. Subnets can currently only be created in the following availability zones: %s", cmp.Or(in.AvailabilityZone, in.AvailabilityZoneID), strings.Join(r.Zones(), ", "))
	}
	if err := r.checkSubnetRange(v, in.CIDRBlock); err != nil {
		return err
	}
	if len(r.SubnetsOf(v.ID)) >= r.Quota("subnets-per-vpc") {
		return wire.Fail("SubnetLimitExceeded", "The maximum number of subnets has been reached.")
	}
	s := &Subnet{ID: r.NewID("subnet"), VpcID: v.ID, Zone: r.Zones()[zone], ZoneID: r.ZoneID(zone), CIDR: in.CIDRBlock, Tags: in.tags}
	r.Subnets.Put(s.ID, s)
	rq.XML.Open("subnet")
	writeSubnet(&rq.XML, r, s)
	rq.XML.Close("subnet")
	return nil
}

// checkSubnetRange refuses a range outside the VPC and a range in use.
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
	GroupName, Description, VpcID string
	tagSpecifications
}

func (in *createGroupInput) Check() error { return in.read("security-group") }

func createSecurityGroup(rq *request, in createGroupInput) error {
	r := rq.Region
	if in.VpcID == "" {
		v := r.DefaultVPC()
		if v == nil {
			return wire.Fail("VPCIdNotSpecified", "No default VPC for this user")
		}
		in.VpcID = v.ID
	}
	switch {
	case !r.Vpcs.Has(in.VpcID):
		return vpcNotFound(in.VpcID)
	case len(in.GroupName) > 255 || len(in.GroupName) >= 3 && in.GroupName[:3] == "sg-":
		return wire.Fail("InvalidParameterValue", "Value (%s) for parameter GroupName is invalid.", in.GroupName)
	case r.groupByName(in.GroupName, in.VpcID) != nil:
		return wire.Fail("InvalidGroup.Duplicate", "The security group '%s' already exists for VPC '%s'", in.GroupName, in.VpcID)
	case r.SecurityGroups.Len() >= r.Quota("security-groups"):
		return wire.Fail("SecurityGroupLimitExceeded", "The maximum number of security groups has been reached.")
	}
	g := r.AddSecurityGroup(in.GroupName, in.Description, in.VpcID)
	g.Tags = in.tags
	rq.XML.Boolean("return", true)
	rq.XML.Text("groupId", g.ID)
	rq.XML.Text("securityGroupArn", r.ARN("ec2", "security-group/"+g.ID))
	rq.XML.WriteTags(g.Tags)
	return nil
}

// AddSecurityGroup creates a security group.
func (r *Region) AddSecurityGroup(name, description, vpcID string) *SecurityGroup {
	g := &SecurityGroup{ID: r.NewID("sg"), Name: name, Description: description, VpcID: vpcID}
	r.SecurityGroups.Put(g.ID, g)
	return g
}
