package awsemu

import "strconv"

func parseDescribeVpcs(p *params) describe    { return parseDescribe(p, "VpcId", 5, 1000, 1000) }
func parseDescribeSubnets(p *params) describe { return parseDescribe(p, "SubnetId", 5, 1000, 1000) }

func describeVpcs(rq *request, in describe) error {
	r := rq.region
	match, err := matcher(in.filters, attributes[*vpc]{
		"vpc-id":                            one(func(v *vpc) string { return v.ID }),
		"cidr":                              one(func(v *vpc) string { return v.CIDR }),
		"is-default":                        one(func(v *vpc) string { return strconv.FormatBool(v.Default) }),
		"isDefault":                         one(func(v *vpc) string { return strconv.FormatBool(v.Default) }),
		"owner-id":                          one(func(*vpc) string { return r.Account }),
		"state":                             one(func(*vpc) string { return "available" }),
		"cidr-block-association.cidr-block": one(func(v *vpc) string { return v.CIDR }),
	}, func(v *vpc) tags { return v.Tags })
	if err != nil {
		return err
	}
	return runDescribe(rq, in, &r.EC2.Vpcs, match, vpcNotFound, "vpcSet", func(v *vpc) { rq.xml.writeVpc(r, v) })
}

func vpcNotFound(id string) *apiError {
	if !validID(id, "vpc-") {
		return fail("InvalidVpcID.Malformed", "Invalid id: \"%s\"", id)
	}
	return fail("InvalidVpcID.NotFound", "The vpc ID '%s' does not exist", id)
}

func (w *xmlWriter) writeVpc(r *region, v *vpc) {
	w.text("vpcId", v.ID)
	w.text("ownerId", r.Account)
	w.text("state", "available")
	w.text("cidrBlock", v.CIDR)
	w.open("cidrBlockAssociationSet")
	w.open("item")
	w.text("associationId", "vpc-cidr-assoc-"+hashHex(v.ID, 17))
	w.text("cidrBlock", v.CIDR)
	w.open("cidrBlockState")
	w.text("state", "associated")
	w.close("cidrBlockState")
	w.close("item")
	w.close("cidrBlockAssociationSet")
	w.text("dhcpOptionsId", "dopt-"+hashHex(v.ID, 17))
	w.text("instanceTenancy", "default")
	w.boolean("isDefault", v.Default)
	w.writeTags(v.Tags)
}

func describeSubnets(rq *request, in describe) error {
	r := rq.region
	boolean := func(get func(s *subnet) bool) func(*subnet) []string {
		return one(func(s *subnet) string { return strconv.FormatBool(get(s)) })
	}
	isDefault := boolean(func(s *subnet) bool { return s.Default })
	zone := one(func(s *subnet) string { return s.Zone })
	cidr := one(func(s *subnet) string { return s.CIDR })
	match, err := matcher(in.filters, attributes[*subnet]{
		"subnet-id":                  one(func(s *subnet) string { return s.ID }),
		"subnet-arn":                 one(func(s *subnet) string { return r.arn("ec2", "subnet/"+s.ID) }),
		"vpc-id":                     one(func(s *subnet) string { return s.VpcID }),
		"availability-zone":          zone,
		"availabilityZone":           zone,
		"availability-zone-id":       one(func(s *subnet) string { return s.ZoneID }),
		"available-ip-address-count": one(func(s *subnet) string { return strconv.Itoa(s.available()) }),
		"cidr-block":                 cidr,
		"cidr":                       cidr,
		"default-for-az":             isDefault,
		"defaultForAz":               isDefault,
		"map-public-ip-on-launch":    boolean(func(s *subnet) bool { return s.PublicIP }),
		"owner-id":                   one(func(*subnet) string { return r.Account }),
		"state":                      one(func(*subnet) string { return "available" }),
	}, func(s *subnet) tags { return s.Tags })
	if err != nil {
		return err
	}
	return runDescribe(rq, in, &r.EC2.Subnets, match, subnetNotFound, "subnetSet", func(s *subnet) { rq.xml.writeSubnet(r, s) })
}

func subnetNotFound(id string) *apiError {
	if !validID(id, "subnet-") {
		return fail("InvalidSubnetID.Malformed", "Invalid id: \"%s\"", id)
	}
	return fail("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
}

func (w *xmlWriter) writeSubnet(r *region, s *subnet) {
	w.text("subnetId", s.ID)
	w.text("subnetArn", r.arn("ec2", "subnet/"+s.ID))
	w.text("state", "available")
	w.text("ownerId", r.Account)
	w.text("vpcId", s.VpcID)
	w.text("cidrBlock", s.CIDR)
	w.integer("availableIpAddressCount", int64(s.available()))
	w.text("availabilityZone", s.Zone)
	w.text("availabilityZoneId", s.ZoneID)
	w.boolean("defaultForAz", s.Default)
	w.boolean("mapPublicIpOnLaunch", s.PublicIP)
	w.boolean("assignIpv6AddressOnCreation", false)
	w.writeTags(s.Tags)
}

type describeGroupsInput struct {
	describe
	names []string
}

func parseDescribeSecurityGroups(p *params) describeGroupsInput {
	return describeGroupsInput{describe: parseDescribe(p, "GroupId", 5, 1000, 0), names: p.strings("GroupName")}
}

func describeSecurityGroups(rq *request, in describeGroupsInput) error {
	r := rq.region
	for _, name := range in.names {
		var g *securityGroup
		if v := r.defaultVPC(); v != nil {
			g = r.groupByName(name, v.ID)
		}
		if g == nil {
			return fail("InvalidGroup.NotFound", "The security group '%s' does not exist in default VPC", name)
		}
		in.ids = append(in.ids, g.ID)
	}
	match, err := matcher(in.filters, attributes[*securityGroup]{
		"group-id":    one(func(g *securityGroup) string { return g.ID }),
		"group-name":  one(func(g *securityGroup) string { return g.Name }),
		"description": one(func(g *securityGroup) string { return g.Description }),
		"owner-id":    one(func(*securityGroup) string { return r.Account }),
		"vpc-id":      one(func(g *securityGroup) string { return g.VpcID }),
	}, func(g *securityGroup) tags { return g.Tags })
	if err != nil {
		return err
	}
	missing := func(id string) *apiError {
		if !validID(id, "sg-") {
			return fail("InvalidGroupId.Malformed", "Invalid id: \"%s\" (expecting \"sg-...\")", id)
		}
		return fail("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
	}
	return runDescribe(rq, in.describe, &r.EC2.SecurityGroups, match, missing, "securityGroupInfo", func(g *securityGroup) { rq.xml.writeGroup(r, g) })
}

func (w *xmlWriter) writeGroup(r *region, g *securityGroup) {
	w.text("ownerId", r.Account)
	w.text("groupId", g.ID)
	w.text("securityGroupArn", r.arn("ec2", "security-group/"+g.ID))
	w.text("groupName", g.Name)
	w.text("groupDescription", g.Description)
	w.text("vpcId", g.VpcID)
	w.writeTags(g.Tags)
}

type describeZonesInput struct {
	names, ids []string
	filters    []filter
}

func parseDescribeZones(p *params) describeZonesInput {
	p.boolean("AllAvailabilityZones") // all zones of the emulator are opted in
	return describeZonesInput{names: p.strings("ZoneName"), ids: p.strings("ZoneId"), filters: parseFilters(p)}
}

// zoneRow is one availability zone.
type zoneRow struct{ name, id string }

func describeAvailabilityZones(rq *request, in describeZonesInput) error {
	r := rq.region
	match, err := matcher(in.filters, attributes[zoneRow]{
		"zone-name":     one(func(z zoneRow) string { return z.name }),
		"zone-id":       one(func(z zoneRow) string { return z.id }),
		"region-name":   one(func(zoneRow) string { return r.Name }),
		"state":         one(func(zoneRow) string { return "available" }),
		"zone-type":     one(func(zoneRow) string { return "availability-zone" }),
		"opt-in-status": one(func(zoneRow) string { return "opt-in-not-required" }),
		"group-name":    one(func(zoneRow) string { return r.Name + "-zg-1" }),
	}, func(zoneRow) tags { return nil })
	if err != nil {
		return err
	}
	var rows []zoneRow
	names, ids := r.zones(), []string{}
	for i, name := range names {
		rows = append(rows, zoneRow{name, r.zoneID(i)})
		ids = append(ids, r.zoneID(i))
	}
	for _, name := range in.names {
		if !contains(names, name) {
			return fail("InvalidParameterValue", "Invalid availability zone: [%s]", name)
		}
	}
	for _, id := range in.ids {
		if !contains(ids, id) {
			return fail("InvalidParameterValue", "Invalid availability zone-id: [%s]", id)
		}
	}
	w := &rq.xml
	w.open("availabilityZoneInfo")
	for _, z := range rows {
		if len(in.names) > 0 && !contains(in.names, z.name) || len(in.ids) > 0 && !contains(in.ids, z.id) || !match(z) {
			continue
		}
		w.open("item")
		w.text("zoneName", z.name)
		w.text("zoneId", z.id)
		w.text("zoneState", "available")
		w.text("regionName", r.Name)
		w.text("groupName", r.Name+"-zg-1")
		w.text("networkBorderGroup", r.Name)
		w.text("optInStatus", "opt-in-not-required")
		w.text("zoneType", "availability-zone")
		w.close("item")
	}
	w.close("availabilityZoneInfo")
	return nil
}
