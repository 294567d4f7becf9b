package asg

import (
	"cmp"
	"strconv"

	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// Choice is one way to launch a member: a template version and an instance type.
type Choice struct {
	spec         TemplateSpec // with the version as a number
	template     *ec2.LaunchTemplate
	version      *ec2.Version
	instanceType string
	imageID      string // "": the template's
	weight       string
	override     bool
	launchConfig string // "" without a launch configuration
}

// choices returns the possible launches of a configuration of any kind.
func (r *Region) choices(c GroupConfig) ([]Choice, *wire.Error) {
	if c.LaunchConfig == "" {
		return Choices(r.ec2, c)
	}
	lc, err := r.launchConfigNamed(c.LaunchConfig)
	if err != nil {
		return nil, err
	}
	body := lc.body()
	return []Choice{{version: &ec2.Version{Data: body}, instanceType: body.Text("InstanceType"), launchConfig: lc.Name}}, nil
}

// Choices returns the possible launches of a configuration, in its order of preference. It returns at least
// one choice or an error.
func Choices(r *ec2.Region, c GroupConfig) ([]Choice, *wire.Error) {
	if c.Mixed == nil {
		base, err := baseChoice(r, *c.Template)
		if err != nil {
			return nil, err
		}
		return expand(r, base, base.version.Data.Sub("InstanceRequirements"))
	}
	overrides := c.Mixed.Overrides
	if len(overrides) == 0 {
		overrides = []Override{{}}
	}
	var all []Choice
	for _, o := range overrides {
		spec := c.Mixed.Base
		if o.Template != nil {
			spec = *o.Template
		}
		ch, err := baseChoice(r, spec)
		if err != nil {
			return nil, err
		}
		ch.imageID, ch.weight = o.ImageID, o.Weight
		if o.InstanceType != "" {
			ch.instanceType, ch.override = o.InstanceType, true
			all = append(all, ch)
			continue
		}
		requirements := o.Requirements
		if requirements == nil {
			requirements = ch.version.Data.Sub("InstanceRequirements")
		}
		expanded, err := expand(r, ch, requirements)
		if err != nil {
			return nil, err
		}
		all = append(all, expanded...)
	}
	return all, nil
}

func baseChoice(r *ec2.Region, spec TemplateSpec) (Choice, *wire.Error) {
	t, v, err := r.Resolve(spec.ID, spec.Name, spec.Version)
	if err != nil {
		return Choice{}, malformedTemplate(err)
	}
	return Choice{
		spec:     TemplateSpec{ID: t.ID, Name: t.Name, Version: wire.Decimal(v.Number)},
		template: t, version: v, instanceType: v.Data.Text("InstanceType"),
	}, nil
}

// expand returns a choice for each instance type that meets the requirements. Without requirements it
// returns the choice unchanged.
func expand(r *ec2.Region, ch Choice, requirements wire.Data) ([]Choice, *wire.Error) {
	if len(requirements) == 0 {
		return []Choice{ch}, nil
	}
	arch := ""
	if id, err := r.ResolveImage(cmp.Or(ch.imageID, ch.version.Data.Text("ImageId"))); err == nil {
		if im := r.Images.Get(id); im != nil {
			arch = im.Architecture
		}
	}
	var out []Choice
	for _, name := range ec2.TypesMeeting(requirements, arch) {
		one := ch
		one.instanceType, one.override = name, true
		out = append(out, one)
	}
	if len(out) == 0 {
		return nil, invalid("No instance types satisfy the requirements in InstanceRequirements.")
	}
	return out, nil
}

// units returns the number of units that a member of the choice adds to the capacity: its weight,
// or its size in the group's capacity type.
func (ch *Choice) units(capacityType string) int64 {
	t := ec2.InstanceTypes()[ch.instanceType]
	switch capacityType {
	case "vcpu":
		return max(t.Vcpus, 1)
	case "memory-mib":
		return max(t.Memory, 1)
	}
	if n, err := strconv.ParseInt(ch.weight, 10, 64); err == nil {
		return n
	}
	return 1
}

// TryLaunch returns the error with which EC2 would refuse a launch, without launching.
func TryLaunch(r *ec2.Region, ch Choice, subnets []string) *wire.Error {
	in := &ec2.Instance{
		Type:    cmp.Or(ch.instanceType, "m1.small"),
		ImageID: cmp.Or(ch.imageID, ch.version.Data.Text("ImageId")), KeyName: ch.version.Data.Text("KeyName"), Tags: world.Tags{},
	}
	if len(subnets) > 0 {
		in.VpcID = r.Subnets.Get(subnets[0]).VpcID
	} else if v := r.DefaultVPC(); v != nil {
		in.VpcID = v.ID
	}
	if err := r.EquipInstance(in, ec2.LaunchSpec{Data: ch.version.Data}); err != nil {
		return malformedTemplate(err)
	}
	return nil
}
