package awsemu

import (
	"strconv"
	"strings"
)

// stateCode is EC2's number of an instance state.
func stateCode(state string) int64 {
	switch state {
	case instanceRunning:
		return 16
	case instanceStopped:
		return 80
	case instanceShuttingDown:
		return 32
	case instanceTerminated:
		return 48
	}
	return 0
}

func parseDescribeInstances(p *params) describe {
	p.boolean("IncludeManagedResources")
	d := parseDescribe(p, "InstanceId", 5, 1000, 1000)
	if p.has("MaxResults") && len(d.ids) > 0 {
		p.reject(fail("InvalidParameterCombination", "The parameter instancesSet cannot be used with the parameter maxResults"))
	}
	return d
}

func instanceAttributes(r *region) attributes[*instance] {
	return attributes[*instance]{
		"instance-id":         one(func(in *instance) string { return in.ID }),
		"instance-type":       one(func(in *instance) string { return in.Type }),
		"instance-state-name": one(func(in *instance) string { return in.State }),
		"instance-state-code": one(func(in *instance) string { return decimal(stateCode(in.State)) }),
		"instance-lifecycle":  one(func(in *instance) string { return in.Lifecycle }),
		"instance.group-id":   func(in *instance) []string { return in.Groups },
		"instance.group-name": func(in *instance) []string {
			var names []string
			for _, id := range in.Groups {
				if g := r.EC2.SecurityGroups.get(id); g != nil {
					names = append(names, g.Name)
				}
			}
			return names
		},
		"image-id":                 one(func(in *instance) string { return in.ImageID }),
		"architecture":             one(func(in *instance) string { return in.Architecture }),
		"availability-zone":        one(func(in *instance) string { return in.Zone }),
		"subnet-id":                one(func(in *instance) string { return in.SubnetID }),
		"vpc-id":                   one(func(in *instance) string { return in.VpcID }),
		"private-ip-address":       one(func(in *instance) string { return in.PrivateIP }),
		"private-dns-name":         one(func(in *instance) string { return r.privateName(in) }),
		"key-name":                 one(func(in *instance) string { return in.KeyName }),
		"iam-instance-profile.arn": one(func(in *instance) string { return in.Profile }),
		"launch-time":              one(func(in *instance) string { return in.LaunchTime.Format(xmlTime) }),
		"owner-id":                 one(func(*instance) string { return r.Account }),
		"reservation-id":           one(reservationID),
		"tenancy":                  one(func(*instance) string { return "default" }),
		"root-device-type":         one(func(*instance) string { return "ebs" }),
		"virtualization-type":      one(func(*instance) string { return "hvm" }),
	}
}

func reservationID(in *instance) string { return "r-" + hashHex("reservation|"+in.ID, 17) }

// privateName is an instance's private DNS name.
func (r *region) privateName(in *instance) string {
	domain := r.Name + ".compute.internal"
	if r.Name == "us-east-1" {
		domain = "ec2.internal"
	}
	return "ip-" + strings.ReplaceAll(in.PrivateIP, ".", "-") + "." + domain
}

func describeInstances(rq *request, in describe) error {
	r := rq.region
	match, err := matcher(in.filters, instanceAttributes(r), func(in *instance) tags { return in.Tags })
	if err != nil {
		return err
	}
	return runDescribe(rq, in, &r.EC2.Instances, match, instanceNotFound, "reservationSet", func(one *instance) {
		w := &rq.xml
		w.text("reservationId", reservationID(one))
		w.text("ownerId", r.Account)
		w.open("instancesSet")
		w.open("item")
		w.writeInstance(r, one)
		w.close("item")
		w.close("instancesSet")
	})
}

func instanceNotFound(id string) *apiError {
	if !validID(id, "i-") {
		return fail("InvalidInstanceID.Malformed", "Invalid id: \"%s\"", id)
	}
	return fail("InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
}

func (w *xmlWriter) writeInstance(r *region, in *instance) {
	w.text("instanceId", in.ID)
	w.text("imageId", in.ImageID)
	w.writeState("instanceState", in.State)
	w.text("privateDnsName", r.privateName(in))
	w.optional("reason", in.Reason)
	w.optional("keyName", in.KeyName)
	w.integer("amiLaunchIndex", 0)
	w.text("instanceType", in.Type)
	w.time("launchTime", in.LaunchTime)
	w.open("placement")
	w.text("availabilityZone", in.Zone)
	w.text("tenancy", "default")
	w.close("placement")
	w.open("monitoring")
	w.text("state", "disabled")
	w.close("monitoring")
	if in.State != instanceTerminated {
		w.text("subnetId", in.SubnetID)
		w.text("vpcId", in.VpcID)
		w.text("privateIpAddress", in.PrivateIP)
	}
	w.open("groupSet")
	for _, id := range in.Groups {
		w.open("item")
		w.text("groupId", id)
		if g := r.EC2.SecurityGroups.get(id); g != nil {
			w.text("groupName", g.Name)
		}
		w.close("item")
	}
	w.close("groupSet")
	w.text("architecture", in.Architecture)
	w.text("rootDeviceType", "ebs")
	if im := r.EC2.Images.get(in.ImageID); im != nil {
		w.text("rootDeviceName", im.RootDevice)
	}
	w.text("virtualizationType", "hvm")
	w.text("hypervisor", "xen")
	w.optional("instanceLifecycle", in.Lifecycle)
	if in.Profile != "" {
		w.open("iamInstanceProfile")
		w.text("arn", in.Profile)
		if p := r.account().profile(in.Profile); p != nil {
			w.text("id", p.ID)
		}
		w.close("iamInstanceProfile")
	}
	w.writeTags(in.Tags)
}

func (w *xmlWriter) writeState(element, state string) {
	w.open(element)
	w.integer("code", stateCode(state))
	w.text("name", state)
	w.close(element)
}

func parseTerminateInstances(p *params) []string {
	ids := p.strings("InstanceId")
	// Nothing runs in an instance that could be asked to stop first.
	p.boolean("Force")
	p.boolean("SkipOsShutdown")
	if len(ids) > 1000 {
		p.bad("InstanceId", strconv.Itoa(len(ids)), "At most 1000 instances can be terminated in one request.")
	}
	return ids
}

func terminateInstances(rq *request, ids []string) error {
	r := rq.region
	for _, id := range ids {
		if !r.EC2.Instances.has(id) {
			return instanceNotFound(id)
		}
	}
	w := &rq.xml
	w.open("instancesSet")
	for _, id := range ids {
		in := r.EC2.Instances.get(id)
		before := in.State
		r.terminateInstance(id, "User initiated ("+rq.region.now().Format("2006-01-02 15:04:05")+" GMT)")
		w.open("item")
		w.text("instanceId", id)
		w.writeState("currentState", in.State)
		w.writeState("previousState", before)
		w.close("item")
	}
	w.close("instancesSet")
	return nil
}
