package ec2

import (
	"fmt"
	"time"

	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
	"github.com/weir-gitops/weir/reconciler/awsemu/world"
)

// SubnetGraft is a subnet of another AWS.
type SubnetGraft struct{ ID, Zone string }

// TemplateGraft contains the facts about a launch template in another AWS, for a template that calls have
// made.
type TemplateGraft struct {
	Name, ID string
	Created  time.Time
	// Numbers lists the numbers of all its versions, in order.
	Numbers []int64
	// Default is the default version, and Latest the highest number ever used.
	Default, Latest int64
}

// InstanceGraft is an instance of another AWS.
type InstanceGraft struct {
	ID, Type, Zone string
	Template       string // id
	Version        int64
	Launched       time.Time
	State          string // pending, running or shutting-down
	Subnets        []string
	Owner          string
	Tags           world.Tags
}

// GraftSubnets adds subnets to the default VPC, each large enough for any fleet. An existing subnet is moved
// into it.
func (r *Region) GraftSubnets(subnets []SubnetGraft) error {
	vpc := r.DefaultVPC()
	if vpc == nil {
		return fmt.Errorf("the region has no default VPC")
	}
	for _, g := range subnets {
		if !validID(g.ID, "subnet-") {
			return fmt.Errorf("subnet %q: id is malformed", g.ID)
		}
		s := r.Subnets.Get(g.ID)
		if s == nil {
			s = &Subnet{ID: g.ID, CIDR: "10.0.0.0/8", Tags: world.Tags{}}
			r.Subnets.Put(g.ID, s)
		}
		s.VpcID, s.Zone, s.ZoneID, s.CIDR = vpc.ID, g.Zone, r.ZoneIDOf(g.Zone), "10.0.0.0/8"
	}
	return nil
}

// GraftTemplate sets the id of a launch template and the numbers of its versions.
func (r *Region) GraftTemplate(g TemplateGraft) error {
	t := r.template("", g.Name)
	switch {
	case t == nil || len(t.Versions) != len(g.Numbers):
		return fmt.Errorf("launch template %q with %d versions not found", g.Name, len(g.Numbers))
	case !validTemplateID(g.ID):
		return fmt.Errorf("launch template %q: id %q is malformed", g.Name, g.ID)
	}
	r.LaunchTemplates.Remove(t.ID)
	t.ID, t.Created, t.Default, t.Next = g.ID, g.Created, g.Default, g.Latest+1
	for i, v := range t.Versions {
		if i > 0 && g.Numbers[i] <= g.Numbers[i-1] || g.Numbers[i] > g.Latest {
			return fmt.Errorf("launch template %q: the numbers %v do not ascend to %d", g.Name, g.Numbers, g.Latest)
		}
		v.Number = g.Numbers[i]
	}
	if t.Version(t.Default) == nil {
		return fmt.Errorf("launch template %q: the default version %d is none of %v", g.Name, g.Default, g.Numbers)
	}
	r.LaunchTemplates.Put(t.ID, t)
	r.TemplateNames[t.Name] = t.ID
	return nil
}

// GraftInstance adds an instance to a subnet in its zone, or else to the first subnet.
func (r *Region) GraftInstance(g InstanceGraft) (*Instance, error) {
	spec := LaunchSpec{InstanceType: g.Type, Owner: g.Owner, Tags: g.Tags, Version: g.Version, Template: r.LaunchTemplates.Get(g.Template)}
	if spec.Template != nil {
		if v := spec.Template.Version(g.Version); v != nil {
			spec.Data = v.Data
		}
	}
	for _, id := range g.Subnets {
		if s := r.Subnets.Get(id); s != nil && (spec.SubnetID == "" || s.Zone == g.Zone) {
			spec.SubnetID = id
			if s.Zone == g.Zone {
				break
			}
		}
	}
	in := newInstance(spec)
	l := launcher{r}
	if err := l.locate(in, spec); err != nil {
		return nil, fmt.Errorf("instance %s: %w", g.ID, err)
	}
	l.trust(in, spec)
	in.ID, in.LaunchTime, in.State = g.ID, g.Launched, g.State
	in.PrivateIP, _ = r.Subnets.Get(in.SubnetID).allocate()
	r.Instances.Put(in.ID, in)
	switch g.State {
	case InstancePending:
		r.After(r.Timings().InstancePending, TimerInstanceRunning, in.ID)
	case InstanceShuttingDown:
		r.After(r.Timings().InstanceShutdown, timerInstanceTerminated, in.ID)
	}
	return in, nil
}

// trust configures an instance without any checks.
func (r launcher) trust(in *Instance, spec LaunchSpec) {
	if id, err := r.ResolveImage(in.ImageID); err == nil {
		in.ImageID = id
	}
	if kind, known := InstanceTypes()[in.Type]; known {
		in.Architecture = kind.Arch
	} else {
		in.Architecture = "x86_64"
	}
	in.Groups = spec.Data.Texts("SecurityGroupIds")
	for _, ts := range []world.Tags{TagsFor(spec.Data, "instance"), spec.Tags} {
		for _, t := range ts {
			in.Tags.Set(t.Key, t.Value)
		}
	}
}

// TrustedImage returns the id of an image that is assumed to exist.
func (r *Region) TrustedImage(name string) string { return r.SeedID("ami", "trusted|"+name) }

// GraftImage sets the image of a template version, to simulate an earlier image.
func (r *Region) GraftImage(template string, version int64, image string) {
	if t := r.LaunchTemplates.Get(template); t != nil {
		if v := t.Version(version); v != nil {
			data := wire.Data{}
			for k, member := range v.Data {
				data[k] = member
			}
			data["ImageId"] = image
			v.Data = data
		}
	}
}
