package preflight

import (
	"strings"

	"github.com/weir-gitops/weir/render/intent"
)

// release checks whether the release to which a nodegroup is pinned exists.
func (v *verdict) release(l *launch) {
	n := l.pool.Nodegroup
	if n == nil || n.ReleaseVersion == "" {
		return
	}
	name, ok := releaseImage(n.AMIType, n.Version, n.ReleaseVersion)
	if !ok {
		return
	}
	if _, _, absent := know(v, v.facts.images, name); absent {
		v.findings.fail(codeRelease, l.pool.Infrastructure, intent.Path{"spec", "amiVersion"}, "AWS has no release "+n.ReleaseVersion+" of "+n.AMIType+" in the region: no image is named "+name, "")
	}
}

// releaseImage returns the name of the public image for a release of an amiType. ok is false if the naming
// scheme is unknown. Sources: "Retrieve recommended Amazon Linux AMI IDs" in the EKS user guide, and the
// release information for Bottlerocket and Windows there.
func releaseImage(amiType, kubernetes, release string) (name string, ok bool) {
	arch := "x86_64"
	if strings.Contains(amiType, "ARM_64") {
		arch = "arm64"
	}
	version, rest, _ := strings.Cut(release, "-")
	minor := kubernetes
	if major, patch, found := strings.Cut(version, "."); found && !strings.HasPrefix(amiType, "BOTTLEROCKET_") {
		second, _, _ := strings.Cut(patch, ".")
		minor = major + "." + second
	}
	if minor == "" {
		return "", false
	}
	switch amiType {
	case "AL2_x86_64", "AL2_ARM_64", "AL2_x86_64_GPU":
		kind := map[string]string{"AL2_x86_64": "", "AL2_ARM_64": "arm64-", "AL2_x86_64_GPU": "gpu-"}[amiType]
		return "amazon-eks-" + kind + "node-" + minor + "-v" + rest, true
	case "AL2023_x86_64_STANDARD", "AL2023_ARM_64_STANDARD", "AL2023_x86_64_NEURON", "AL2023_x86_64_NVIDIA", "AL2023_ARM_64_NVIDIA":
		variant := strings.ToLower(amiType[strings.LastIndex(amiType, "_")+1:])
		return "amazon-eks-node-al2023-" + arch + "-" + variant + "-" + minor + "-v" + rest, true
	case "BOTTLEROCKET_x86_64", "BOTTLEROCKET_ARM_64":
		return "bottlerocket-aws-k8s-" + minor + "-" + arch + "-v" + release, true
	case "BOTTLEROCKET_x86_64_NVIDIA", "BOTTLEROCKET_ARM_64_NVIDIA":
		return "bottlerocket-aws-k8s-" + minor + "-nvidia-" + arch + "-v" + release, true
	}
	return "", false
}
