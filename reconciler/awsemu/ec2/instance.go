package ec2

import (
	"cmp"
	"strings"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// The timer kinds of instances; the key is the instance's id.
const (
	TimerInstanceRunning    = "ec2.instance-running"
	timerInstanceTerminated = "ec2.instance-terminated"
	timerInstanceForget     = "ec2.instance-forget"
)

// The states of an instance.
const (
	InstancePending      = "pending"
	InstanceRunning      = "running"
	InstanceStopped      = "stopped"
	InstanceShuttingDown = "shutting-down"
	InstanceTerminated   = "terminated"
)

// Instance is an EC2 instance.
type Instance struct {
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

	Tags  world.Tags
	Owner string // who launched it, in the launcher's words
}

// Alive says whether the instance exists and no call has ended it.
func (in *Instance) Alive() bool {
	return in.State == InstancePending || in.State == InstanceRunning || in.State == InstanceStopped
}

// LaunchSpec says what to launch.
type LaunchSpec struct {
	Template     *LaunchTemplate // nil: Data is of no template
	Version      int64
	Data         wire.Data // the version's body
	InstanceType string    // wins over Data's
	ImageID      string    // wins over Data's
	SubnetID     string    // wins over Data's; "": a default subnet of Zone
	Zone         string
	Spot         bool
	Profile      string // instance profile ARN; wins over Data's
	Groups       []string
	Tags         world.Tags // win over those that Data gives instances
	Owner        string
}

// LaunchInstance starts one instance: pending now, running after the timings'
// InstancePending. The fault is one of EC2's, such as
// InsufficientInstanceCapacity or InvalidAMIID.NotFound.
func (r *Region) LaunchInstance(spec LaunchSpec) (*Instance, *wire.Error) {
	in := &Instance{
		Type:    cmp.Or(spec.InstanceType, spec.Data.Text("InstanceType"), "m1.small"),
		ImageID: cmp.Or(spec.ImageID, spec.Data.Text("ImageId")), KeyName: spec.Data.Text("KeyName"),
		Groups: spec.Groups, LaunchTime: r.Now(), State: InstancePending, Owner: spec.Owner,
		TemplateVersion: spec.Version, Tags: world.Tags{},
	}
	if spec.Template != nil {
		in.TemplateID, in.TemplateName = spec.Template.ID, spec.Template.Name
		in.Tags.Set("aws:ec2launchtemplate:id", in.TemplateID)
		in.Tags.Set("aws:ec2launchtemplate:version", wire.Decimal(spec.Version))
	}
	if spec.Spot || spec.Data.Sub("InstanceMarketOptions").Text("MarketType") == "spot" {
		in.Lifecycle = "spot"
	}
	if err := r.placeInstance(in, spec); err != nil {
		return nil, err
	}
	if err := r.EquipInstance(in, spec); err != nil {
		r.Subnets.Get(in.SubnetID).release(in.PrivateIP)
		return nil, err
	}
	if err := r.CheckMetadataTags(spec.Data, in.Tags); err != nil {
		r.Subnets.Get(in.SubnetID).release(in.PrivateIP)
		return nil, err
	}
	in.ID = r.NewID("i")
	r.Instances.Put(in.ID, in)
	r.After(r.Timings().InstancePending, TimerInstanceRunning, in.ID)
	r.InstanceChanged(in, "")
	return in, nil
}

// placeInstance finds a subnet and an address.
func (r *Region) placeInstance(in *Instance, spec LaunchSpec) *wire.Error {
	id := cmp.Or(spec.SubnetID, firstInterface(spec.Data).Text("SubnetId"))
	zone := cmp.Or(spec.Zone, spec.Data.Sub("Placement").Text("AvailabilityZone"))
	if id == "" {
		for _, key := range r.Subnets.Sorted() {
			if s := r.Subnets.Get(key); s.Default && (zone == "" || s.Zone == zone) {
				id = key
				break
			}
		}
	}
	s := r.Subnets.Get(id)
	if s == nil {
		if id == "" {
			return wire.Fail("MissingInput", "No subnets found for the default VPC. Please specify a subnet.")
		}
		return wire.Fail("InvalidSubnetID.NotFound", "The subnet ID '%s' does not exist", id)
	}
	if f := r.launchFault(in.Type, s.Zone, in.ImageID); f != nil {
		switch {
		case f.Stuck:
			in.Stuck = true
		case strings.HasPrefix(f.Code, "Client.") || strings.HasPrefix(f.Code, "Server."):
			in.Dies = f.Code + ": " + cmp.Or(f.Message, "Client error on launch")
		case f.Code != "":
			return &wire.Error{Code: f.Code, Message: cmp.Or(f.Message, "We currently do not have sufficient "+in.Type+" capacity in the Availability Zone you requested ("+s.Zone+").")}
		default:
			in.Unhealthy = true
		}
	}
	ip, ok := s.take()
	if !ok {
		return wire.Fail("InsufficientFreeAddressesInSubnet", "There are not enough free addresses in subnet '%s' to satisfy the requested number of instances.", id)
	}
	in.SubnetID, in.VpcID, in.Zone, in.PrivateIP = s.ID, s.VpcID, s.Zone, ip
	return nil
}

// EquipInstance checks image, type, profile and groups, and sets the tags.
func (r *Region) EquipInstance(in *Instance, spec LaunchSpec) *wire.Error {
	imageID, err := r.ResolveImage(in.ImageID)
	if err != nil {
		return err
	}
	image := r.Images.Get(imageID)
	if image == nil {
		return wire.Fail("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", imageID)
	}
	in.ImageID, in.Architecture = imageID, image.Architecture
	kind, known := InstanceTypes()[in.Type]
	if !known {
		return wire.Fail("InvalidParameterValue", "Invalid value '%s' for InstanceType.", in.Type)
	}
	if kind.Arch != image.Architecture {
		return wire.Fail("InvalidParameterValue", "The architecture '%s' of the specified instance type does not match the architecture '%s' of the specified AMI. Specify an instance type and an AMI that have matching architectures, and try again.", kind.Arch, image.Architecture)
	}
	given := cmp.Or(spec.Profile, spec.Data.Sub("IamInstanceProfile").Text("Arn"), spec.Data.Sub("IamInstanceProfile").Text("Name"))
	if given != "" {
		p := r.iam.Entities.Profile(given)
		if p == nil {
			member, what := "name", "name"
			if strings.HasPrefix(given, "arn:") {
				member, what = "arn", "ARN"
			}
			return wire.Fail("InvalidParameterValue", "Value (%s) for parameter iamInstanceProfile.%s is invalid. Invalid IAM Instance Profile %s", given, member, what)
		}
		in.Profile = p.ARN
	}
	if in.KeyName != "" && r.KeyByName(in.KeyName) == nil {
		return keyNotFound(in.KeyName)
	}
	if len(in.Groups) == 0 {
		if in.Groups, err = r.templateGroups(spec.Data, in.VpcID, in.SubnetID); err != nil {
			return err
		}
	}
	for _, t := range TagsFor(spec.Data, "instance") {
		in.Tags.Set(t.Key, t.Value)
	}
	for _, t := range spec.Tags {
		in.Tags.Set(t.Key, t.Value)
	}
	return nil
}

// templateGroups are the ids of the security groups that a version's body names, all
// of the subnet's VPC; that VPC's default group where it names none.
func (r *Region) templateGroups(data wire.Data, vpcID, subnetID string) ([]string, *wire.Error) {
	ids := data.Texts("SecurityGroupIds")
	if len(ids) == 0 {
		ids = firstInterface(data).Texts("Groups")
	}
	names := data.Texts("SecurityGroups")
	if len(ids)+len(names) == 0 {
		names = []string{"default"}
	}
	for _, id := range ids {
		switch g := r.SecurityGroups.Get(id); {
		case g == nil:
			return nil, wire.Fail("InvalidGroup.NotFound", "The security group '%s' does not exist", id)
		case g.VpcID != vpcID:
			return nil, wire.Fail("InvalidParameter", "Security group %s and subnet %s belong to different networks.", id, subnetID)
		}
	}
	for _, name := range names {
		g := r.groupByName(name, vpcID)
		if g == nil {
			return nil, wire.Fail("InvalidGroup.NotFound", "The security group '%s' does not exist in VPC '%s'", name, vpcID)
		}
		ids = append(ids, g.ID)
	}
	return ids, nil
}

// TerminateInstance ends an instance: shutting-down now, terminated after the
// timings' InstanceShutdown, forgotten after InstanceForget. Ending an ended
// instance changes nothing.
func (r *Region) TerminateInstance(id, reason string) {
	in := r.Instances.Get(id)
	if in == nil || !in.Alive() {
		return
	}
	from := in.State
	in.State, in.Reason = InstanceShuttingDown, reason
	r.After(r.Timings().InstanceShutdown, timerInstanceTerminated, id)
	r.InstanceChanged(in, from)
}

// InstanceChanged informs the launchers of instances that a state changed.
func (r *Region) InstanceChanged(in *Instance, from string) {
	if r.changed != nil {
		r.changed(in, from)
	}
}

// Timers are what happens in EC2, by kind.
func Timers() map[string]func(*Region, string) {
	return map[string]func(*Region, string){
		TimerInstanceRunning: func(r *Region, id string) {
			if in := r.Instances.Get(id); in != nil && in.State == InstancePending && !in.Stuck {
				if in.Dies != "" {
					r.TerminateInstance(id, in.Dies)
					return
				}
				in.State = InstanceRunning
				r.InstanceChanged(in, InstancePending)
			}
		},
		timerInstanceTerminated: func(r *Region, id string) {
			if in := r.Instances.Get(id); in != nil && in.State == InstanceShuttingDown {
				in.State = InstanceTerminated
				if s := r.Subnets.Get(in.SubnetID); s != nil {
					s.release(in.PrivateIP)
				}
				r.After(r.Timings().InstanceForget, timerInstanceForget, id)
				r.InstanceChanged(in, InstanceShuttingDown)
			}
		},
		timerInstanceForget: func(r *Region, id string) { r.Instances.Remove(id) },
	}
}
