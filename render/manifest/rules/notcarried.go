package rules

import (
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// notCarried returns the fields of pools that Cluster API and CAPA accept, but that have no equivalent in
// AWS. If one is written, a finding says so.
func notCarried(kind string) []uncarried {
	const machines = "Auto Scaling and EKS replace the nodes of a pool, by their own timeouts and lifecycle hooks"
	const versions = "weir makes the versions of the launch template and pins the newest"
	spec := path("spec", "template", "spec")
	switch kind {
	case "MachinePool":
		return []uncarried{
			{spec.Join("deletion"), machines}, {spec.Join("nodeDrainTimeout"), machines},
			{spec.Join("nodeVolumeDetachTimeout"), machines}, {spec.Join("nodeDeletionTimeout"), machines},
			{spec.Join("readinessGates"), "a node is ready by its own Ready condition, or by its instance being in service"},
			{spec.Join("failureDomain"), "write spec.failureDomains, which are the pool's zones"},
		}
	case "AWSMachinePool", "AWSManagedMachinePool":
		return []uncarried{{path("spec", "awsLaunchTemplate", "versionNumber"), versions}}
	case "AWSLaunchConfig":
		return []uncarried{{path("spec", "versionNumber"), versions}}
	case "AWSLaunchConfigTemplate":
		return []uncarried{{path("spec", "template", "spec", "versionNumber"), versions}}
	}
	return nil
}

// uncarried is a field without effect, and the reason or the replacement.
type uncarried struct {
	path   intent.Path
	detail string
}

// noteUncarried reports the fields of an object that have no effect.
func noteUncarried(o kinds.Object, r kinds.Reporter) {
	for _, f := range notCarried(o.Ref.Kind) {
		if o.Has(f.path...) {
			r.Info(f.path, "not-carried", f.path.String()+" has no effect", f.detail)
		}
	}
}

// NoteDelete notes that weir.dev/delete has no effect on a managed pool. EKS always drains the nodes itself.
func (d *Derived) NoteDelete() {
	if d.Drain {
		d.AtPool.Info(kinds.AnnotationPath(kinds.AnnotationDelete), "not-carried", "annotation "+kinds.AnnotationDelete+" has no effect on a managed pool", "EKS drains the nodes of a nodegroup before it deletes them")
		d.Drain = false
	}
}

// NoteGroup reports fields of a group that have no effect because of its other fields.
func (d *Derived) NoteGroup(s *kinds.AWSMachinePoolSpec) {
	lt, at := &s.AWSLaunchTemplate, path("spec", "awsLaunchTemplate")
	if lt.AMI.ID != nil && d.Remembered == "" {
		for _, f := range []struct {
			at      intent.Path
			written bool
		}{
			{at.Join("ami", "eksLookupType"), lt.AMI.EKSLookupType != nil}, {at.Join("imageLookupFormat"), lt.ImageLookupFormat != ""},
			{at.Join("imageLookupOrg"), lt.ImageLookupOrg != ""}, {at.Join("imageLookupBaseOS"), lt.ImageLookupBaseOS != ""},
		} {
			if f.written {
				d.AtPool.Info(f.at, "not-carried", f.at.String()+" has no effect with spec.awsLaunchTemplate.ami.id", "")
			}
		}
	}
	if s.Ignition != nil && d.LaunchTemplate.UserData.Format != "ignition" {
		d.AtPool.Info(path("spec", "ignition"), "not-carried", "spec.ignition has no effect: the pool's user data is not an Ignition document", "")
	}
	d.NoteSubnetType(s.AvailabilityZoneSubnetType, d.Group.Subnets)
}

// NoteSubnetType reports a subnet type without effect, because no zones select the subnets.
func (d *Derived) NoteSubnetType(kind string, asked intent.Lookup) {
	if kind != "" && asked.SubnetType == "" {
		d.AtPool.Info(path("spec", "availabilityZoneSubnetType"), "not-carried", "spec.availabilityZoneSubnetType has no effect: the subnets are not chosen by zone",
			"write spec.availabilityZones, or the failureDomains of the MachinePool, and no subnets")
	}
}
