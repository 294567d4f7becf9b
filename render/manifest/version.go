package manifest

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// kubeVersion is Cluster API's pattern for a Kubernetes version, without the v.
var kubeVersion = regexp.MustCompile(`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)([-0-9a-zA-Z_.+]*)$`)

// eksVersion is the pattern of AWSManagedControlPlane.spec.version: the patch
// may be missing.
var eksVersion = regexp.MustCompile(`^v?(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*))?$`)

// kubernetes is a Kubernetes version. Text has the form v1.31.2; the zero value
// is "not written".
type kubernetes struct {
	text         string
	major, minor int
}

func parseKubernetes(s string) (kubernetes, bool) {
	m := kubeVersion.FindStringSubmatch(strings.TrimPrefix(s, "v"))
	if m == nil {
		return kubernetes{}, false
	}
	major, err1 := strconv.Atoi(m[1])
	minor, err2 := strconv.Atoi(m[2])
	if err1 != nil || err2 != nil {
		return kubernetes{}, false
	}
	return kubernetes{text: "v" + strings.TrimPrefix(s, "v"), major: major, minor: minor}, true
}

// parseEKS reads a control plane's version.
func parseEKS(s string) (kubernetes, bool) {
	m := eksVersion.FindStringSubmatch(s)
	if m == nil {
		return kubernetes{}, false
	}
	major, err1 := strconv.Atoi(m[1])
	minor, err2 := strconv.Atoi(m[2])
	return kubernetes{text: s, major: major, minor: minor}, err1 == nil && err2 == nil
}

func (k kubernetes) known() bool { return k.text != "" }

// short returns major.minor, as EKS writes versions.
func (k kubernetes) short() string {
	if !k.known() {
		return ""
	}
	return fmt.Sprintf("%d.%d", k.major, k.minor)
}

// lacksAL2 says that EKS has no Amazon Linux 2 image for the version.
func (k kubernetes) lacksAL2() bool { return k.known() && (k.major > 1 || k.minor >= 33) }
