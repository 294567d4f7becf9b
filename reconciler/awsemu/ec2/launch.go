package ec2

import (
	"cmp"
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// LaunchSpec describes a launch.
type LaunchSpec struct {
	Template     *LaunchTemplate // nil: Data does not come from a template
	Version      int64
	Data         wire.Data // the version's body
	InstanceType string    // wins over Data's
	ImageID      string    // wins over Data's
	SubnetID     string    // wins over Data's; "": a default subnet of Zone
	Zone         string
	Spot         bool
	Profile      string // instance profile ARN; wins over Data's
	Groups       []string
	Placement    string     // a placement group's name; wins over Data's
	Reserved     wire.Data  // a group's CapacityReservationSpecification; wins over Data's
	Tags         world.Tags // win over the instance tags in Data
	Owner        string
}

// launcher checks and places a new instance.
type launcher struct{ *Region }

// LaunchInstance launches one instance: it is pending now, and running after the timings' InstancePending.
// It returns EC2's errors, such as InsufficientInstanceCapacity or InvalidAMIID.NotFound.
func (r *Region) LaunchInstance(spec LaunchSpec) (*Instance, *wire.Error) {
	l := launcher{r}
	in := newInstance(spec)
	in.LaunchTime = r.Now()
	if err := l.locate(in, spec); err != nil {
		return nil, err
	}
	if err := l.strike(in); err != nil {
		return nil, err
	}
	if err := l.room(in, 1); err != nil {
		return nil, err
	}
	if err := l.configure(in, spec); err != nil {
		return nil, err
	}
	if !r.Trusting {
		if err := l.reserve(in, spec); err != nil {
			return nil, err
		}
		if err := l.checkVcpus(in, 1); err != nil {
			return nil, err
		}
	}
	in.PrivateIP, _ = r.Subnets.Get(in.SubnetID).allocate() // an address is free
	in.ID = r.NewID("i")
	r.Instances.Put(in.ID, in)
	r.After(r.Timings().InstancePending, TimerInstanceRunning, in.ID)
	r.InstanceChanged(in, "")
	return in, nil
}

// Rehearse returns the error with which EC2 would refuse the configuration of a launch, without launching.
// It ignores limits on the number of machines.
func (r *Region) Rehearse(spec LaunchSpec) (*Instance, *wire.Error) {
	l := launcher{r}
	in := newInstance(spec)
	if err := l.locate(in, spec); err != nil {
		return nil, err
	}
	if err := l.configure(in, spec); err != nil {
		return nil, err
	}
	return in, nil
}

func newInstance(spec LaunchSpec) *Instance {
	in := &Instance{
		Type:    cmp.Or(spec.InstanceType, spec.Data.Text("InstanceType"), "m1.small"),
		ImageID: cmp.Or(spec.ImageID, spec.Data.Text("ImageId")), KeyName: spec.Data.Text("KeyName"),
		Groups: spec.Groups, State: InstancePending, Owner: spec.Owner,
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
	return in
}

// locate sets the subnet.
func (r launcher) locate(in *Instance, spec LaunchSpec) *wire.Error {
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
	in.SubnetID, in.VpcID, in.Zone = s.ID, s.VpcID, s.Zone
	return nil
}

// strike applies an armed fault.
func (r launcher) strike(in *Instance) *wire.Error {
	f := r.launchFault(in.Type, in.Zone, in.ImageID)
	switch {
	case f == nil:
	case f.Stuck:
		in.Stuck = true
	case strings.HasPrefix(f.Code, "Client.") || strings.HasPrefix(f.Code, "Server."):
		in.Dies = f.Code + ": " + cmp.Or(f.Message, "Client error on launch")
	case f.Code != "":
		return &wire.Error{Code: f.Code, Message: cmp.Or(f.Message, "We currently do not have sufficient "+in.Type+" capacity in the Availability Zone you requested ("+in.Zone+").")}
	default:
		in.Unhealthy = true
	}
	return nil
}

// room fails if the subnet has fewer than n free addresses.
func (r launcher) room(in *Instance, n int) *wire.Error {
	if r.Subnets.Get(in.SubnetID).available() < n {
		return wire.Fail("InsufficientFreeAddressesInSubnet", "There are not enough free addresses in subnet '%s' to satisfy the requested number of instances.", in.SubnetID)
	}
	return nil
}

// configure checks the settings of an instance and their constraints on its place.
func (r launcher) configure(in *Instance, spec LaunchSpec) *wire.Error {
	if err := r.EquipInstance(in, spec); err != nil || r.Trusting {
		return err
	}
	if err := r.checkOffered(in); err != nil {
		return err
	}
	if err := r.CheckVolumeSizes(in.ImageID, spec.Data); err != nil {
		return err
	}
	r.checkKeys(in, spec.Data)
	placement := spec.Data.Sub("Placement")
	if spec.Placement != "" {
		placement = wire.Data{"GroupName": spec.Placement}
	}
	if err := r.join(in, placement); err != nil {
		return err
	}
	return r.CheckMetadataTags(spec.Data, in.Tags)
}

// EquipInstance checks image, type, profile and groups, and sets the tags.
func (r *Region) EquipInstance(in *Instance, spec LaunchSpec) *wire.Error {
	l := launcher{r}
	if r.Trusting {
		l.trust(in, spec)
		return nil
	}
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
		if in.Groups, err = l.templateGroups(spec.Data, in.VpcID, in.SubnetID); err != nil {
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

// templateGroups returns the ids of the security groups in a version's data, which must all be in the
// subnet's VPC. If it names none, the VPC's default group is used.
func (r launcher) templateGroups(data wire.Data, vpcID, subnetID string) ([]string, *wire.Error) {
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

// LaunchFault makes launches fail, as with missing capacity or a broken image. The zero value of a selector
// matches every launch.
type LaunchFault struct {
	InstanceType     string `json:"instanceType"`
	AvailabilityZone string `json:"availabilityZone"`
	ImageID          string `json:"imageId"`

	// Code is an error code such as InsufficientInstanceCapacity. If it is the code of a state reason, such
	// as Client.InternalError, EC2 starts the instance and terminates it. Without a code the instance
	// launches but stays unhealthy.
	Code    string `json:"code"`
	Message string `json:"message"`
	// Stuck makes the instance stay pending.
	Stuck bool `json:"stuck"`
}

// launchFault returns the fault that affects a launch, or nil.
func (r launcher) launchFault(instanceType, zone, image string) *LaunchFault {
	for _, l := range r.launches.List() {
		if (l.InstanceType == "" || l.InstanceType == instanceType) &&
			(l.AvailabilityZone == "" || l.AvailabilityZone == zone) &&
			(l.ImageID == "" || l.ImageID == image) {
			return l
		}
	}
	return nil
}
