package manifest

import "fmt"

// noteOlderFields says of fields of a managed pool that are written and that a
// launch template has too what to write instead: one declaration then serves both
// kinds of pools. Cluster API Provider AWS takes them, so it is no error; beside a
// launch template that names an image, amiType says the same thing twice.
func noteOlderFields(o *object[AWSManagedMachinePoolSpec], r reporter) {
	s := &o.Spec
	lt := s.AWSLaunchTemplate
	names := lt != nil && (lt.AMI.ID != nil || lt.AMI.EKSLookupType != nil || lt.ImageLookupFormat != "" || lt.ImageLookupOrg != "" || lt.ImageLookupBaseOS != "")
	for _, f := range []struct{ field, instead string }{
		{"amiType", "spec.awsLaunchTemplate.ami, which takes an image's id or, as eksLookupType, the kind of EKS's image"},
		{"amiVersion", "spec.awsLaunchTemplate.ami.id, the image of that release"},
		{"instanceType", "spec.awsLaunchTemplate.instanceType"},
		{"diskSize", "spec.awsLaunchTemplate.rootVolume.size"},
	} {
		at := path("spec", f.field)
		switch {
		case !o.source.has(at...):
		case names && f.field == "amiType":
			r.warn(at, "beside-launch-template", fmt.Sprintf("spec.amiType %s is written beside an image in spec.awsLaunchTemplate, which decides", s.AMIType), "remove spec.amiType")
		case lt != nil && f.field != "amiType" && f.field != "amiVersion":
			// refused beside a launch template
		case f.field == "amiVersion" && managedImage(s), f.field == "amiType" && s.AMIType == "CUSTOM" && lt == nil:
			// refused beside an image, and without a launch template
		default:
			r.info(at, "older-field", at.String()+" is the older way to say it", "a launch template says it for all kinds of pools: write "+f.instead)
		}
	}
}
