package awsemu

import (
	"strings"
	"time"
)

// The timer kinds of instances; the key is the instance's id.
const (
	timerInstanceRunning    = "ec2.instance-running"
	timerInstanceTerminated = "ec2.instance-terminated"
	timerInstanceForget     = "ec2.instance-forget"
)

// The states of an instance.
const (
	instancePending      = "pending"
	instanceRunning      = "running"
	instanceStopped      = "stopped"
	instanceShuttingDown = "shutting-down"
	instanceTerminated   = "terminated"
)

// instance is an EC2 instance.
type instance struct {
	ID           string
	Type         string
	ImageID      string
	Architecture string
	SubnetID     string
	VpcID        string
	Zone         string
	PrivateIP    string
	KeyName      string
	Profile      string // instance profile ARN, "" for none
	Lifecycle    string // "spot" or ""
	Groups       []string
	LaunchTime   time.Time
	State        string
	Reason       string // why it was terminated

	// The launch template version that it was launched from.
	TemplateID      string
	TemplateName    string
	TemplateVersion int64

	// A LaunchFault struck: Unhealthy instances run but never become healthy, Dies is
	// why EC2 ends one that it has started, and a Stuck one stays pending.
	Unhealthy bool   `json:",omitempty"`
	Dies      string `json:",omitempty"`
	Stuck     bool   `json:",omitempty"`

	Tags  tags
	Owner string // who launched it, in the launcher's words
}

// alive says whether the instance is there and nobody has ended it.
func (in *instance) alive() bool {
	return in.State == instancePending || in.State == instanceRunning || in.State == instanceStopped
}

// launchSpec says what to launch.
type launchSpec struct {
	Template     *launchTemplate // nil: Data is of no template
	Version      int64
	Data         ltData // the version's body
	InstanceType string // wins over Data's
	ImageID      string // wins over Data's
	SubnetID     string // wins over Data's; "": a default subnet of Zone
	Zone         string
	Spot         bool
	Profile      string // instance profile ARN; wins over Data's
	Groups       []string
	Tags         tags // win over those that Data gives instances
	Owner        string
}

// launchInstance starts one instance: pending now, running after the timings'
// InstancePending. The fault is one of EC2's, such as
// InsufficientInstanceCapacity or InvalidAMIID.NotFound.
func (r *region) launchInstance(spec launchSpec) (*instance, *apiError) {
	in := &instance{
		Type:    first(spec.InstanceType, spec.Data.text("InstanceType"), "m1.small"),
		ImageID: first(spec.ImageID, spec.Data.text("ImageId")), KeyName: spec.Data.text("KeyName"),
		Groups: spec.Groups, LaunchTime: r.now(), State: instancePending, Owner: spec.Owner,
		TemplateVersion: spec.Version, Tags: tags{},
	}
	if spec.Template != nil {
		in.TemplateID, in.TemplateName = spec.Template.ID, spec.Template.Name
		in.Tags.set("aws:ec2launchtemplate:id", in.TemplateID)
		in.Tags.set("aws:ec2launchtemplate:version", decimal(spec.Version))
	}
	if spec.Spot || spec.Data.sub("InstanceMarketOptions").text("MarketType") == "spot" {
		in.Lifecycle = "spot"
	}
	if err := r.placeInstance(in, spec); err != nil {
		return nil, err
	}
	if err := r.equipInstance(in, spec); err != nil {
		r.EC2.Subnets.get(in.SubnetID).release(in.PrivateIP)
		return nil, err
	}
	if err := r.checkMetadataTags(spec.Data, in.Tags); err != nil {
		r.EC2.Subnets.get(in.SubnetID).release(in.PrivateIP)
		return nil, err
	}
	in.ID = r.newID("i")
	r.EC2.Instances.put(in.ID, in)
	r.after(r.timings().InstancePending, timerInstanceRunning, in.ID)
	r.instanceChanged(in, "")
	return in, nil
}

// placeInstance finds a subnet and an address.
func (r *region) placeInstance(in *instance, spec launchSpec) *apiError {
	id := first(spec.SubnetID, spec.Data.firstInterface().text("SubnetId"))
	zone := first(spec.Zone, spec.Data.sub("Placement").text("AvailabilityZone"))
	if id == "" {
		for _, key := range r.EC2.Subnets.sorted() {
			if s := r.EC2.Subnets.get(key); s.Default && (zone == "" || s.Zone == zone) {
				id = key
				break
			}
		}
	}
	s := r.EC2.Subnets.get(id)
	if s == nil {
		if id == "" {
			return fail("MissingInput", "No subnets found for the default VPC. Please specify a subnet.")
		}
		return fail("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
	}
	if f := r.srv.faults.launchFault(in.Type, s.Zone, in.ImageID); f != nil {
		switch {
		case f.Stuck:
			in.Stuck = true
		case strings.HasPrefix(f.Code, "Client.") || strings.HasPrefix(f.Code, "Server."):
			in.Dies = f.Code + ": " + first(f.Message, "Client error on launch")
		case f.Code != "":
			return &apiError{Code: f.Code, Message: first(f.Message, "We currently do not have sufficient "+in.Type+" capacity in the Availability Zone you requested ("+s.Zone+").")}
		default:
			in.Unhealthy = true
		}
	}
	ip, ok := s.take()
	if !ok {
		return fail("InsufficientFreeAddressesInSubnet", "There are not enough free addresses in subnet '%s' to satisfy the requested number of instances.", id)
	}
	in.SubnetID, in.VpcID, in.Zone, in.PrivateIP = s.ID, s.VpcID, s.Zone, ip
	return nil
}

// equipInstance checks image, type, profile and groups, and sets the tags.
func (r *region) equipInstance(in *instance, spec launchSpec) *apiError {
	imageID, err := r.resolveImage(in.ImageID)
	if err != nil {
		return err
	}
	image := r.EC2.Images.get(imageID)
	if image == nil {
		return fail("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", imageID)
	}
	in.ImageID, in.Architecture = imageID, image.Architecture
	kind, known := instanceTypes()[in.Type]
	if !known {
		return fail("InvalidParameterValue", "Invalid value '%s' for InstanceType.", in.Type)
	}
	if kind.arch != image.Architecture {
		return fail("InvalidParameterValue", "The architecture '%s' of the specified instance type does not match the architecture '%s' of the specified AMI. Specify an instance type and an AMI that have matching architectures, and try again.", kind.arch, image.Architecture)
	}
	given := first(spec.Profile, spec.Data.sub("IamInstanceProfile").text("Arn"), spec.Data.sub("IamInstanceProfile").text("Name"))
	if given != "" {
		p := r.account().profile(given)
		if p == nil {
			member, what := "name", "name"
			if strings.HasPrefix(given, "arn:") {
				member, what = "arn", "ARN"
			}
			return fail("InvalidParameterValue", "Value (%s) for parameter iamInstanceProfile.%s is invalid. Invalid IAM Instance Profile %s", given, member, what)
		}
		in.Profile = p.ARN
	}
	if in.KeyName != "" && r.keyByName(in.KeyName) == nil {
		return keyNotFound(in.KeyName)
	}
	if len(in.Groups) == 0 {
		if in.Groups, err = r.templateGroups(spec.Data, in.VpcID, in.SubnetID); err != nil {
			return err
		}
	}
	for _, t := range spec.Data.tagsFor("instance") {
		in.Tags.set(t.Key, t.Value)
	}
	for _, t := range spec.Tags {
		in.Tags.set(t.Key, t.Value)
	}
	return nil
}

// templateGroups are the ids of the security groups that a version's body names, all
// of the subnet's VPC; that VPC's default group where it names none.
func (r *region) templateGroups(data ltData, vpcID, subnetID string) ([]string, *apiError) {
	ids := data.texts("SecurityGroupIds")
	if len(ids) == 0 {
		ids = data.firstInterface().texts("Groups")
	}
	names := data.texts("SecurityGroups")
	if len(ids)+len(names) == 0 {
		names = []string{"default"}
	}
	for _, id := range ids {
		switch g := r.EC2.SecurityGroups.get(id); {
		case g == nil:
			return nil, fail("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
		case g.VpcID != vpcID:
			return nil, fail("InvalidParameter", "Security group %s and subnet %s belong to different networks.", id, subnetID)
		}
	}
	for _, name := range names {
		g := r.groupByName(name, vpcID)
		if g == nil {
			return nil, fail("InvalidGroup.NotFound", "The security group '%s' does not exist in VPC '%s'", name, vpcID)
		}
		ids = append(ids, g.ID)
	}
	return ids, nil
}

// terminateInstance ends an instance: shutting-down now, terminated after the
// timings' InstanceShutdown, forgotten after InstanceForget. Ending an ended
// instance changes nothing.
func (r *region) terminateInstance(id, reason string) {
	in := r.EC2.Instances.get(id)
	if in == nil || !in.alive() {
		return
	}
	from := in.State
	in.State, in.Reason = instanceShuttingDown, reason
	r.after(r.timings().InstanceShutdown, timerInstanceTerminated, id)
	r.instanceChanged(in, from)
}

// instanceChanged tells the services that an instance's state changed.
func (r *region) instanceChanged(in *instance, from string) {
	for _, sv := range r.srv.order {
		if sv.instanceChanged != nil {
			sv.instanceChanged(r, in, from)
		}
	}
}

func instanceTimers() map[string]timerFunc {
	return map[string]timerFunc{
		timerInstanceRunning: func(r *region, id string) {
			if in := r.EC2.Instances.get(id); in != nil && in.State == instancePending && !in.Stuck {
				if in.Dies != "" {
					r.terminateInstance(id, in.Dies)
					return
				}
				in.State = instanceRunning
				r.instanceChanged(in, instancePending)
			}
		},
		timerInstanceTerminated: func(r *region, id string) {
			if in := r.EC2.Instances.get(id); in != nil && in.State == instanceShuttingDown {
				in.State = instanceTerminated
				if s := r.EC2.Subnets.get(in.SubnetID); s != nil {
					s.release(in.PrivateIP)
				}
				r.after(r.timings().InstanceForget, timerInstanceForget, id)
				r.instanceChanged(in, instanceShuttingDown)
			}
		},
		timerInstanceForget: func(r *region, id string) { r.EC2.Instances.remove(id) },
	}
}

// first returns the first text that is not "".
func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
