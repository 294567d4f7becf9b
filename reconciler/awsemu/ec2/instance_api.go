package ec2

import (
	"cmp"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// stateCode returns EC2's number for an instance state.
func stateCode(state string) int64 {
	switch state {
	case InstanceRunning:
		return 16
	case InstanceStopped:
		return 80
	case InstanceShuttingDown:
		return 32
	case InstanceTerminated:
		return 48
	}
	return 0
}

type describeInstancesInput struct {
	describe
	InstanceIDs             []string
	IncludeManagedResources bool
}

func (in *describeInstancesInput) Check() error {
	if in.MaxResults != nil && len(in.InstanceIDs) > 0 {
		return wire.Fail("InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults")
	}
	return in.bound(5, 1000, 1000)
}

func instanceAttributes(r *Region) attributes[*Instance] {
	return attributes[*Instance]{
		"instance-id":         one(func(in *Instance) string { return in.ID }),
		"instance-type":       one(func(in *Instance) string { return in.Type }),
		"instance-state-name": one(func(in *Instance) string { return in.State }),
		"instance-state-code": one(func(in *Instance) string { return wire.Decimal(stateCode(in.State)) }),
		"instance-lifecycle":  one(func(in *Instance) string { return in.Lifecycle }),
		"instance.group-id":   func(in *Instance) []string { return in.Groups },
		"instance.group-name": func(in *Instance) []string {
			var names []string
			for _, id := range in.Groups {
				if g := r.SecurityGroups.Get(id); g != nil {
					names = append(names, g.Name)
				}
			}
			return names
		},
		"image-id":                 one(func(in *Instance) string { return in.ImageID }),
		"architecture":             one(func(in *Instance) string { return in.Architecture }),
		"availability-zone":        one(func(in *Instance) string { return in.Zone }),
		"subnet-id":                one(func(in *Instance) string { return in.SubnetID }),
		"vpc-id":                   one(func(in *Instance) string { return in.VpcID }),
		"private-ip-address":       one(func(in *Instance) string { return in.PrivateIP }),
		"private-dns-name":         one(func(in *Instance) string { return r.privateName(in) }),
		"key-name":                 one(func(in *Instance) string { return in.KeyName }),
		"iam-instance-profile.arn": one(func(in *Instance) string { return in.Profile }),
		"launch-time":              one(func(in *Instance) string { return in.LaunchTime.Format(wire.Time) }),
		"owner-id":                 one(func(*Instance) string { return r.Account }),
		"reservation-id":           one(reservationID),
		"placement-group-name":     one(func(in *Instance) string { return in.PlacementGroup }),
		"tenancy":                  one(func(*Instance) string { return "default" }),
		"root-device-type":         one(func(*Instance) string { return "ebs" }),
		"virtualization-type":      one(func(*Instance) string { return "hvm" }),
	}
}

func reservationID(in *Instance) string {
	return cmp.Or(in.Reservation, "r-"+world.Hash("reservation|"+in.ID, 17))
}

// privateName returns an instance's private DNS name.
func (r *Region) privateName(in *Instance) string {
	domain := r.Name + ".compute.internal"
	if r.Name == "us-east-1" {
		domain = "ec2.internal"
	}
	return "ip-" + strings.ReplaceAll(in.PrivateIP, ".", "-") + "." + domain
}

func describeInstances(rq *request, in describeInstancesInput) error {
	r := rq.Region
	match, err := matcher(in.Filters, instanceAttributes(r), func(in *Instance) world.Tags { return in.Tags })
	if err != nil {
		return err
	}
	return runDescribe(rq, in.describe, in.InstanceIDs, &r.Instances, match, instanceNotFound, "reservationSet", func(one *Instance) {
		w := &rq.XML
		w.Text("reservationId", reservationID(one))
		w.Text("ownerId", r.Account)
		w.Open("instancesSet")
		w.Open("item")
		writeInstance(w, r, one)
		w.Close("item")
		w.Close("instancesSet")
	})
}

var instanceNotFound = notFound("i-", "InvalidInstanceID", "instance")

func writeInstance(w *wire.XML, r *Region, in *Instance) {
	w.Text("instanceId", in.ID)
	w.Text("imageId", in.ImageID)
	writeState(w, "instanceState", in.State)
	w.Text("privateDnsName", r.privateName(in))
	w.Optional("reason", in.Reason)
	w.Optional("keyName", in.KeyName)
	w.Integer("amiLaunchIndex", in.Index)
	w.Text("instanceType", in.Type)
	w.Time("launchTime", in.LaunchTime)
	w.Open("placement")
	w.Text("availabilityZone", in.Zone)
	w.Optional("groupName", in.PlacementGroup)
	w.Text("tenancy", "default")
	w.Close("placement")
	w.Open("monitoring")
	w.Text("state", "disabled")
	w.Close("monitoring")
	if in.State != InstanceTerminated {
		w.Text("subnetId", in.SubnetID)
		w.Text("vpcId", in.VpcID)
		w.Text("privateIpAddress", in.PrivateIP)
	}
	r.writeGroupSet(w, in.Groups)
	w.Text("architecture", in.Architecture)
	w.Text("rootDeviceType", "ebs")
	if im := r.Images.Get(in.ImageID); im != nil {
		w.Text("rootDeviceName", im.RootDevice)
	}
	r.writeDevices(w, in)
	w.Text("virtualizationType", "hvm")
	w.Text("hypervisor", "xen")
	w.Optional("instanceLifecycle", in.Lifecycle)
	w.Optional("capacityReservationId", in.Reserved)
	if in.Profile != "" {
		w.Open("iamInstanceProfile")
		w.Text("arn", in.Profile)
		if p := r.iam.Entities.Profile(in.Profile); p != nil {
			w.Text("id", p.ID)
		}
		w.Close("iamInstanceProfile")
	}
	w.WriteTags(in.Tags)
}

func (r *Region) writeGroupSet(w *wire.XML, ids []string) {
	wire.List(w, "groupSet", "item", ids, func(id string) {
		w.Text("groupId", id)
		if g := r.SecurityGroups.Get(id); g != nil {
			w.Text("groupName", g.Name)
		}
	})
}

func writeState(w *wire.XML, element, state string) {
	w.Open(element)
	w.Integer("code", stateCode(state))
	w.Text("name", state)
	w.Close(element)
}

type terminateInstancesInput struct {
	InstanceIDs []string
	// These have no effect, because nothing runs in an instance.
	Force, SkipOSShutdown bool
}

func (in *terminateInstancesInput) Check() error {
	if len(in.InstanceIDs) > 1000 {
		return badValue("InstanceId", strconv.Itoa(len(in.InstanceIDs)), "At most 1000 instances can be terminated in one request.")
	}
	return nil
}

func terminateInstances(rq *request, in terminateInstancesInput) error {
	r := rq.Region
	for _, id := range in.InstanceIDs {
		if !r.Instances.Has(id) {
			return instanceNotFound(id)
		}
	}
	for _, id := range in.InstanceIDs {
		if machine := r.Instances.Get(id); machine.Alive() && r.launchData(machine).Text("DisableApiTermination") == "true" {
			return wire.Fail("OperationNotPermitted", "The instance '%s' may not be terminated. Modify its 'disableApiTermination' instance attribute and try again.", id)
		}
	}
	w := &rq.XML
	w.Open("instancesSet")
	for _, id := range in.InstanceIDs {
		machine := r.Instances.Get(id)
		before := machine.State
		r.TerminateInstance(id, "User initiated ("+rq.Region.Now().Format("2006-01-02 15:04:05")+" GMT)")
		w.Open("item")
		w.Text("instanceId", id)
		writeState(w, "currentState", machine.State)
		writeState(w, "previousState", before)
		w.Close("item")
	}
	w.Close("instancesSet")
	return nil
}
