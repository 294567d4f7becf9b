package ec2

import (
	"slices"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// runInstances launches instances for a caller, from the request's own parameters, a launch template or
// both. A dry run checks only the configuration, not quotas, addresses and capacity.
func runInstances(rq *request, in wire.Data) error {
	r := launcher{rq.Region}
	least, most := in.Integer("MinCount"), in.Integer("MaxCount")
	switch {
	case least < 1:
		return badValue("minCount", in.Text("MinCount"), "Minimum value must be 1.")
	case most < least:
		return badValue("maxCount", in.Text("MaxCount"), "The maximum must not be less than the minimum.")
	}
	spec, err := r.runSpec(in)
	if err != nil {
		return err
	}
	first, err := r.Rehearse(spec)
	if err != nil {
		return err
	}
	if in.Text("DryRun") == "true" {
		return wire.DryRun()
	}
	return rq.Idempotent(in.Text("ClientToken"), r.Instances.Has, func() (string, error) {
		if err := r.room(first, int(least)); err != nil {
			return "", err
		}
		if err := r.checkVcpus(first, int(least)); err != nil {
			return "", err
		}
		made, err := r.launchMany(spec, least, min(most, int64(r.Subnets.Get(first.SubnetID).available())))
		if err != nil {
			return "", err
		}
		w := &rq.XML
		w.Text("reservationId", made[0].Reservation)
		w.Text("ownerId", r.Account)
		w.Open("groupSet")
		w.Close("groupSet")
		wire.List(w, "instancesSet", "item", made, func(one *Instance) {
			writeInstance(w, r.Region, one)
		})
		return made[0].ID, nil
	})
}

// launchMany launches as many instances as possible, or none if it cannot launch the minimum.
func (r launcher) launchMany(spec LaunchSpec, least, most int64) ([]*Instance, error) {
	var made []*Instance
	reservation := r.NewID("r")
	for i := range most {
		one, err := r.LaunchInstance(spec)
		if err != nil && i < least {
			for _, in := range made {
				r.Subnets.Get(in.SubnetID).release(in.PrivateIP)
				r.Instances.Remove(in.ID)
			}
			return nil, err
		}
		if err != nil {
			break
		}
		one.Reservation, one.Index, one.Data = reservation, i, spec.Data
		made = append(made, one)
	}
	return made, nil
}

// runSpec returns the launch settings of a request: the contents of its launch template, overridden by its
// own parameters.
func (r launcher) runSpec(in wire.Data) (LaunchSpec, *wire.Error) {
	data := in.MergedWith(nil)
	for _, control := range []string{"MinCount", "MaxCount", "DryRun", "ClientToken", "LaunchTemplate"} {
		delete(data, control)
	}
	for _, name := range []string{"AdditionalInfo", "ElasticGpuSpecification", "ElasticInferenceAccelerators", "EnablePrimaryIpv6", "Ipv6AddressCount", "Ipv6Addresses", "Operator", "PrivateIpAddress"} {
		if data.Has(name) { // AWS supports it, the emulator does not
			return LaunchSpec{}, wire.Fail("UnknownParameter", "The parameter %s is not recognized", name)
		}
	}
	spec := LaunchSpec{}
	if named := in.Sub("LaunchTemplate"); in.Has("LaunchTemplate") {
		id, name := named.Text("LaunchTemplateId"), named.Text("LaunchTemplateName")
		switch {
		case id != "" && name != "":
			return LaunchSpec{}, wire.Fail("InvalidParameterCombination", "You must specify either a launch template ID or name, not both.")
		case id == "" && name == "":
			return LaunchSpec{}, wire.Fail("MissingParameter", "Either a launch template ID or a launch template name must be specified in the request.")
		}
		t, v, err := r.Resolve(id, name, named.Text("Version"))
		if err != nil {
			return LaunchSpec{}, err
		}
		spec.Template, spec.Version, data = t, v.Number, overridden(v.Data, data)
	}
	spec.Data, spec.SubnetID = data, data.Text("SubnetId")
	return spec, r.checkRun(data, spec.SubnetID)
}

// checkRun applies the rules about combinations of members.
func (r launcher) checkRun(data wire.Data, subnet string) *wire.Error {
	if err := checkTemplateData(data); err != nil {
		return err
	}
	switch {
	case data.Has("InstanceRequirements"):
		return wire.Fail("InvalidParameterCombination", "A launch template that specifies InstanceRequirements can't be used to run instances")
	case subnet != "" && data.Has("NetworkInterfaces"):
		return wire.Fail("InvalidParameterCombination", "Network interfaces and an instance-level subnet ID may not be specified on the same request")
	case subnet != "" && data.Has("SecurityGroups"):
		return wire.Fail("InvalidParameterCombination", "The parameter groupName cannot be used with the parameter subnet")
	case subnet != "" && !validID(subnet, "subnet-"):
		return malformedID("InvalidSubnetID.Malformed", subnet, "subnet-")
	}
	if zone := data.Sub("Placement").Text("AvailabilityZone"); zone != "" && !slices.Contains(r.Zones(), zone) {
		return wire.Fail("InvalidParameterValue", "Invalid availability zone: [%s]", zone)
	}
	return nil
}

// overridden returns a template's body overridden by a request. A member of the request replaces the
// template's member, except devices and tags, which replace only those with the same name.
func overridden(template, request wire.Data) wire.Data {
	out := template.MergedWith(request)
	byName := func(member string, key func(wire.Data) string) {
		if !template.Has(member) || !request.Has(member) {
			return
		}
		given := map[string]bool{}
		for _, item := range request.List(member) {
			given[key(item)] = true
		}
		items, _ := request[member].([]any)
		items = slices.Clone(items)
		for _, item := range template.List(member) {
			if !given[key(item)] {
				items = append(items, map[string]any(item))
			}
		}
		out[member] = items
	}
	byName("BlockDeviceMappings", func(d wire.Data) string { return d.Text("DeviceName") })
	byName("TagSpecifications", func(d wire.Data) string { return strings.ToLower(d.Text("ResourceType")) })
	return out
}
