package resolve

import (
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/lazyregexp"
)

// releasePaths holds the middle of the path of the parameter with a nodegroup's newest release, by
// EKS's amiType. See "Retrieve recommended Amazon Linux AMI IDs" in the EKS user guide.
var releasePaths = map[string]string{
	"AL2023_x86_64_STANDARD": "/amazon-linux-2023/x86_64/standard",
	"AL2023_ARM_64_STANDARD": "/amazon-linux-2023/arm64/standard",
	"AL2023_x86_64_NVIDIA":   "/amazon-linux-2023/x86_64/nvidia",
	"AL2023_ARM_64_NVIDIA":   "/amazon-linux-2023/arm64/nvidia",
	"AL2023_x86_64_NEURON":   "/amazon-linux-2023/x86_64/neuron",
	"AL2_x86_64":             "/amazon-linux-2",
	"AL2_x86_64_GPU":         "/amazon-linux-2-gpu",
	"AL2_ARM_64":             "/amazon-linux-2-arm64",
}

// releaseName matches a release of Amazon Linux.
var releaseName = lazyregexp.New(`^\d+\.\d+\.\d+-\d{8}$`)

// release returns the newest release that EKS publishes for an amiType.
func release(q *question) observed.Answer {
	path := releasePaths[q.Lookup.Name]
	if path == "" {
		return problem("image-lookup-unknown", "weir does not know the SSM parameter with the newest release of "+q.Lookup.Name)
	}
	version, ok := minorVersion(q.Lookup.Version)
	if !ok {
		return problem("version-unknown", "the Kubernetes version "+strconv.Quote(q.Lookup.Version)+" is not of the form 1.31 or v1.31.2")
	}
	name := "/aws/service/eks/optimized-ami/" + version + path + "/recommended/release_version"
	value, a, ok := know(q, q.facts.parameters.since(name, q.Since), problem("parameter-not-found", "there is no SSM parameter "+name+" in this region"))
	switch {
	case !ok:
		return a
	case !releaseName.MatchString(value):
		return problem("parameter-no-image", "the SSM parameter "+name+" does not contain a release")
	}
	return observed.Answer{Release: value}
}

// minorVersion returns "1.31" of "1.31", "v1.31" or "v1.31.2".
func minorVersion(v string) (string, bool) {
	parts := strings.Split(strings.TrimPrefix(v, "v"), ".")
	if len(parts) < 2 {
		return "", false
	}
	for _, p := range parts[:2] {
		if _, err := strconv.ParseUint(p, 10, 16); err != nil {
			return "", false
		}
	}
	return parts[0] + "." + parts[1], true
}
