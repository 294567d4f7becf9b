package rules

import (
	"fmt"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// warnUnusedAMIType warns about an amiType that has no effect, because the launch template has an image.
func warnUnusedAMIType(o *kinds.Decoded[kinds.AWSManagedMachinePoolSpec], r kinds.Reporter) {
	s := &o.Spec
	lt := s.AWSLaunchTemplate
	if lt != nil && o.Source.Has("spec", "amiType") && s.AMIType != "CUSTOM" && (lt.AMI.ID != nil || lt.AMI.EKSLookupType != nil || lt.ImageLookupFormat != "" || lt.ImageLookupOrg != "" || lt.ImageLookupBaseOS != "") {
		r.Warn(path("spec", "amiType"), "beside-launch-template", fmt.Sprintf("spec.amiType %s has no effect, as spec.awsLaunchTemplate has an image", s.AMIType), "write CUSTOM, which Cluster API Provider AWS needs with an image, or remove spec.amiType")
	}
}

// suggestLaunchTemplate notes instanceType and diskSize of a managed pool without a launch template, and names
// the field of a launch template that replaces each. A launch template can serve both kinds of pools. The fields
// are no error, because Cluster API Provider AWS accepts them. With a launch template, other rules refuse them.
// amiType and amiVersion are not noted: with them EKS chooses and updates the image.
func suggestLaunchTemplate(o *kinds.Decoded[kinds.AWSManagedMachinePoolSpec], r kinds.Reporter) {
	s := &o.Spec
	if s.AWSLaunchTemplate != nil {
		return
	}
	for _, f := range []struct{ field, instead string }{
		{"instanceType", "spec.awsLaunchTemplate.instanceType"},
		{"diskSize", diskField(s)},
	} {
		if at := path("spec", f.field); o.Source.Has(at...) {
			r.Info(at, "older-field", at.String()+" is the older form of this setting", "a launch template has it for all kinds of pools: write "+f.instead)
		}
	}
}

// diskField returns the field of a launch template that replaces spec.diskSize. EKS applies that size to the
// volume for containers.
func diskField(s *kinds.AWSManagedMachinePoolSpec) string {
	if disks, _ := s.AMIType.Disks(); disks.Data != "" {
		return fmt.Sprintf("spec.awsLaunchTemplate.nonRootVolumes: [{deviceName: %s, size: %d}], the volume that holds containers on Bottlerocket", disks.Data, intent.Value(s.DiskSize))
	}
	return "spec.awsLaunchTemplate.rootVolume.size"
}
