package rules

import (
	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// notCarried are the fields of pools that Cluster API and CAPA take, and that
// nothing in AWS corresponds to. A finding says so where one is written.
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

// uncarried is a field without effect, and why or what to write.
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
