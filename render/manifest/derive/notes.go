package derive

import (
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// noteGroup reports fields of a group that others of its fields leave without
// effect.
func (d *Derived) noteGroup(s *kinds.AWSMachinePoolSpec) {
	lt, at := &s.AWSLaunchTemplate, path("spec", "awsLaunchTemplate")
	if lt.AMI.ID != nil {
		for _, f := range []struct {
			at      intent.Path
			written bool
		}{
			{at.Join("ami", "eksLookupType"), lt.AMI.EKSLookupType != nil}, {at.Join("imageLookupFormat"), lt.ImageLookupFormat != ""},
			{at.Join("imageLookupOrg"), lt.ImageLookupOrg != ""}, {at.Join("imageLookupBaseOS"), lt.ImageLookupBaseOS != ""},
		} {
			if f.written {
				d.AtPool.Info(f.at, "not-carried", f.at.String()+" has no effect beside spec.awsLaunchTemplate.ami.id", "")
			}
		}
	}
	if s.Ignition != nil && d.LaunchTemplate.UserData.Format != "ignition" {
		d.AtPool.Info(path("spec", "ignition"), "not-carried", "spec.ignition has no effect: the pool's user data is no Ignition document", "")
	}
	d.noteSubnetType(s.AvailabilityZoneSubnetType, d.Group.Subnets)
}

// noteSubnetType reports a type of subnet that no zones narrow.
func (d *Derived) noteSubnetType(kind string, asked intent.Lookup) {
	if kind != "" && asked.SubnetType == "" {
		d.AtPool.Info(path("spec", "availabilityZoneSubnetType"), "not-carried", "spec.availabilityZoneSubnetType has no effect: the subnets are not chosen by zone",
			"write spec.availabilityZones, or the failureDomains of the MachinePool, and no subnets")
	}
}
