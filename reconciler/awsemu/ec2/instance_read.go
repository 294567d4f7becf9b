package ec2

import (
	"cmp"
	"encoding/base64"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// launchData returns the data with which an instance was launched, if it still exists. If the launch
// template version was deleted, it returns nothing.
func (r *Region) launchData(in *Instance) wire.Data {
	if in.Data != nil {
		return in.Data
	}
	if t := r.LaunchTemplates.Get(in.TemplateID); t != nil {
		if v := t.Version(in.TemplateVersion); v != nil {
			return v.Data
		}
	}
	return nil
}

type describeStatusInput struct {
	describe
	InstanceIDs             []string
	IncludeAllInstances     bool
	IncludeManagedResources bool
}

func (in *describeStatusInput) Check() error {
	if in.MaxResults != nil && len(in.InstanceIDs) > 0 {
		return wire.Fail("InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults")
	}
	return in.bound(5, 1000, 100)
}

// checks returns the results of an instance's status checks.
func (in *Instance) checks() (status, reachability string) {
	switch {
	case in.State != InstanceRunning:
		return "not-applicable", ""
	case in.Unhealthy:
		return "impaired", "failed"
	}
	return "ok", "passed"
}

func describeInstanceStatus(rq *request, in describeStatusInput) error {
	r := rq.Region
	status := one(func(in *Instance) string { s, _ := in.checks(); return s })
	reachability := one(func(in *Instance) string { _, s := in.checks(); return s })
	match, err := matcher(in.Filters, attributes[*Instance]{
		"availability-zone":            one(func(in *Instance) string { return in.Zone }),
		"instance-state-name":          one(func(in *Instance) string { return in.State }),
		"instance-state-code":          one(func(in *Instance) string { return wire.Decimal(stateCode(in.State)) }),
		"instance-status.status":       status,
		"instance-status.reachability": reachability,
		"system-status.status":         status,
		"system-status.reachability":   reachability,
	}, func(in *Instance) world.Tags { return in.Tags })
	if err != nil {
		return err
	}
	shown := func(one *Instance) bool {
		return (in.IncludeAllInstances || one.State == InstanceRunning) && match(one)
	}
	return runDescribe(rq, in.describe, in.InstanceIDs, &r.Instances, shown, instanceNotFound, "instanceStatusSet", func(one *Instance) {
		w := &rq.XML
		w.Text("instanceId", one.ID)
		w.Text("availabilityZone", one.Zone)
		w.Text("availabilityZoneId", r.ZoneIDOf(one.Zone))
		writeState(w, "instanceState", one.State)
		status, reachability := one.checks()
		for _, name := range []string{"systemStatus", "instanceStatus"} {
			w.Open(name)
			w.Text("status", status)
			if reachability != "" {
				w.Open("details")
				w.Open("item")
				w.Text("name", "reachability")
				w.Text("status", reachability)
				w.Close("item")
				w.Close("details")
			}
			w.Close(name)
		}
	})
}

// describeInstanceAttribute answers with the one requested attribute.
func describeInstanceAttribute(rq *request, in struct{ InstanceID, Attribute string }) error {
	r := rq.Region
	machine := r.Instances.Get(in.InstanceID)
	if machine == nil {
		return instanceNotFound(in.InstanceID)
	}
	data, image := r.launchData(machine), r.Images.Get(machine.ImageID)
	w := &rq.XML
	w.Text("instanceId", machine.ID)
	value := func(text string) {
		w.Open(in.Attribute)
		w.Optional("value", text)
		w.Close(in.Attribute)
	}
	switch in.Attribute {
	case "instanceType":
		value(machine.Type)
	case "userData":
		value(data.Text("UserData"))
	case "disableApiTermination":
		value(strconv.FormatBool(data.Text("DisableApiTermination") == "true"))
	case "disableApiStop":
		value(strconv.FormatBool(data.Text("DisableApiStop") == "true"))
	case "ebsOptimized":
		value(strconv.FormatBool(data.Text("EbsOptimized") == "true"))
	case "sourceDestCheck", "enaSupport":
		value("true")
	case "instanceInitiatedShutdownBehavior":
		value(cmp.Or(data.Text("InstanceInitiatedShutdownBehavior"), "stop"))
	case "rootDeviceName":
		if image != nil {
			value(image.RootDevice)
		}
	case "kernel", "ramdisk", "sriovNetSupport":
		value("")
	case "groupSet":
		r.writeGroupSet(w, machine.Groups)
	case "blockDeviceMapping":
		r.writeDevices(w, machine)
	case "enclaveOptions":
		w.Open("enclaveOptions")
		w.Boolean("enabled", data.Sub("EnclaveOptions").Text("Enabled") == "true")
		w.Close("enclaveOptions")
	case "productCodes":
		w.Texts("productCodes", "item", nil)
	}
	return nil
}

// getConsoleOutput shows the output of a machine's console. It is empty before the machine has started.
// Latest needs a Nitro instance type.
func getConsoleOutput(rq *request, in struct {
	InstanceID string
	Latest     bool
}) error {
	machine := rq.Region.Instances.Get(in.InstanceID)
	switch {
	case machine == nil:
		return instanceNotFound(in.InstanceID)
	case in.Latest && hypervisor(machine.Type) != "nitro":
		return wire.Fail("UnsupportedOperation", "This instance type does not support retrieving the latest console logs.")
	}
	w := &rq.XML
	w.Text("instanceId", machine.ID)
	w.Time("timestamp", rq.Region.Now())
	if machine.State == InstancePending {
		return nil
	}
	output := "Booting " + machine.ImageID + " on " + machine.Type + "\r\n" + rq.Region.privateName(machine) + " login: "
	w.Text("output", base64.StdEncoding.EncodeToString([]byte(output)))
	return nil
}

// getLaunchTemplateData returns template data with which a similar instance could be launched.
func getLaunchTemplateData(rq *request, in struct{ InstanceID string }) error {
	r := rq.Region
	machine := r.Instances.Get(in.InstanceID)
	if machine == nil {
		return instanceNotFound(in.InstanceID)
	}
	data := r.launchData(machine).MergedWith(wire.Data{
		"ImageId": machine.ImageID, "InstanceType": machine.Type,
		"Monitoring": map[string]any{"Enabled": strconv.FormatBool(r.launchData(machine).Sub("Monitoring").Text("Enabled") == "true")},
		"Placement":  map[string]any{"AvailabilityZone": machine.Zone, "GroupName": machine.PlacementGroup, "Tenancy": "default"},
		"NetworkInterfaces": []any{map[string]any{"DeviceIndex": "0", "SubnetId": machine.SubnetID, "Groups": texts(machine.Groups),
			"DeleteOnTermination": "true", "PrivateIpAddresses": []any{map[string]any{"Primary": "true", "PrivateIpAddress": machine.PrivateIP}}}},
	})
	for _, member := range []string{"SecurityGroupIds", "SecurityGroups", "SubnetId", "InstanceRequirements", "TagSpecifications"} {
		delete(data, member)
	}
	if machine.KeyName != "" {
		data["KeyName"] = machine.KeyName
	}
	if machine.Profile != "" {
		data["IamInstanceProfile"] = map[string]any{"Arn": machine.Profile}
	}
	var devices, tags []any
	for _, v := range r.volumesOf(machine) {
		devices = append(devices, map[string]any{"DeviceName": v.Device, "Ebs": map[string]any{
			"DeleteOnTermination": strconv.FormatBool(v.Ends), "Encrypted": strconv.FormatBool(v.Encrypted), "SnapshotId": v.Snapshot,
			"VolumeSize": wire.Decimal(v.GiB), "VolumeType": v.Type,
		}})
	}
	data["BlockDeviceMappings"] = devices
	for _, t := range machine.Tags {
		if world.TagFault(t.Key, t.Value) == "" {
			tags = append(tags, map[string]any{"Key": t.Key, "Value": t.Value})
		}
	}
	if len(tags) > 0 {
		data["TagSpecifications"] = []any{map[string]any{"ResourceType": "instance", "Tags": tags}}
	}
	if text := data.Text("UserData"); text != "" {
		if raw, err := base64.StdEncoding.DecodeString(text); err == nil {
			data["UserData"] = base64.StdEncoding.EncodeToString(raw)
		}
	}
	rq.XML.Open("launchTemplateData")
	rq.XML.WriteShape(data, rq.Service.Shapes["ResponseLaunchTemplateData"])
	rq.XML.Close("launchTemplateData")
	return nil
}

func texts(list []string) []any {
	out := make([]any, 0, len(list))
	for _, s := range list {
		out = append(out, s)
	}
	return out
}
