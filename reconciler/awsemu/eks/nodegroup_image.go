package eks

import (
	"strings"

	"github.com/weir-gitops/weir/reconciler/awsemu/ec2"
	"github.com/weir-gitops/weir/reconciler/awsemu/wire"
)

// amiKind describes an AMI type.
type amiKind struct {
	arch    string
	family  string // AL2, AL2023 or BOTTLEROCKET
	variant string // name in the paths of SSM's parameters
}

// amiKinds returns the AMI types for which the emulator has images.
func amiKinds() map[string]amiKind {
	return map[string]amiKind{
		"AL2_x86_64":                 {"x86_64", "AL2", "amazon-linux-2"},
		"AL2_x86_64_GPU":             {"x86_64", "AL2", "amazon-linux-2-gpu"},
		"AL2_ARM_64":                 {"arm64", "AL2", "amazon-linux-2-arm64"},
		"AL2023_x86_64_STANDARD":     {"x86_64", "AL2023", "amazon-linux-2023/x86_64/standard"},
		"AL2023_x86_64_NVIDIA":       {"x86_64", "AL2023", "amazon-linux-2023/x86_64/nvidia"},
		"AL2023_x86_64_NEURON":       {"x86_64", "AL2023", "amazon-linux-2023/x86_64/neuron"},
		"AL2023_ARM_64_STANDARD":     {"arm64", "AL2023", "amazon-linux-2023/arm64/standard"},
		"AL2023_ARM_64_NVIDIA":       {"arm64", "AL2023", "amazon-linux-2023/arm64/nvidia"},
		"BOTTLEROCKET_x86_64":        {"x86_64", "BOTTLEROCKET", ""},
		"BOTTLEROCKET_ARM_64":        {"arm64", "BOTTLEROCKET", ""},
		"BOTTLEROCKET_x86_64_NVIDIA": {"x86_64", "BOTTLEROCKET", "-nvidia"},
		"BOTTLEROCKET_ARM_64_NVIDIA": {"arm64", "BOTTLEROCKET", "-nvidia"},
	}
}

// defaultAMIType returns EKS's default type: Amazon Linux 2023 since Kubernetes 1.30.
func defaultAMIType(version string) string {
	if minorOf(version) >= 30 {
		return "AL2023_x86_64_STANDARD"
	}
	return "AL2_x86_64"
}

// amiRelease finds the image of an AMI type for a Kubernetes version and a release. "" means the newest
// release. It also returns the release.
func (r *Region) amiRelease(amiType, version, release string) (imageID, found string, fault *wire.Error) {
	kind, known := amiKinds()[amiType]
	if r.Trusting {
		return r.trustedRelease(kind, amiType, version, release)
	}
	if !known {
		return "", "", invalid("The emulator has no images of the AMI type %s", amiType)
	}
	path := "/aws/service/eks/optimized-ami/" + version + "/" + kind.variant + "/recommended"
	id, newest := path+"/image_id", path+"/release_version"
	if kind.family == "BOTTLEROCKET" {
		path = "/aws/service/bottlerocket/aws-k8s-" + version + kind.variant + "/" + kind.arch + "/latest"
		id, newest = path+"/image_id", path+"/image_version"
	}
	idParam, newestParam := r.ssm.Find(id), r.ssm.Find(newest)
	if idParam == nil || newestParam == nil {
		return "", "", invalid("Requested AMI for this version is not supported: %s for Kubernetes %s", amiType, version)
	}
	if release == "" || release == newestParam.Value {
		return idParam.Value, newestParam.Value, nil
	}
	if old := olderImage(r.ec2, idParam.Value, newestParam.Value, release); old != "" {
		return old, release, nil
	}
	return "", "", invalid("Requested release version %s is not valid for kubernetes version %s.", release, version)
}

// olderImage finds the image of a release by the name of the newest image. The names differ only in the
// release's date or number.
func olderImage(machines *ec2.Region, newestID, newest, release string) string {
	im := machines.Images.Get(newestID)
	before, tail, dated := strings.Cut(release, "-")
	newestBefore, newestTail, _ := strings.Cut(newest, "-")
	if im == nil || !dated {
		return ""
	}
	name := strings.TrimSuffix(im.Name, newestTail) + tail
	switch {
	case strings.HasSuffix(im.Name, "-v"+newest): // Bottlerocket: number and build
		name = strings.TrimSuffix(im.Name, newest) + release
	case before != newestBefore: // Amazon Linux: Kubernetes version and date
		return ""
	}
	for _, id := range machines.Images.Sorted() {
		if other := machines.Images.Get(id); other.Name == name && other.Owner == im.Owner {
			return id
		}
	}
	return ""
}
