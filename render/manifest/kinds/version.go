package kinds

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/weir-gitops/weir/render/lazyregexp"
)

// kubeVersion is Cluster API's pattern for a Kubernetes version, without the v.
var kubeVersion = lazyregexp.New(`^(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)([-0-9a-zA-Z_.+]*)$`)

// eksVersion is the pattern of AWSManagedControlPlane.spec.version. The patch version is optional.
var eksVersion = lazyregexp.New(`^v?(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(\.(0|[1-9][0-9]*))?$`)

// Kubernetes is a Kubernetes version. Text has the form v1.31.2. The zero value means "not written".
type Kubernetes struct {
	Text         string
	Major, Minor int
}

func ParseKubernetes(s string) (Kubernetes, bool) {
	m := kubeVersion.FindStringSubmatch(strings.TrimPrefix(s, "v"))
	if m == nil {
		return Kubernetes{}, false
	}
	major, err1 := strconv.Atoi(m[1])
	minor, err2 := strconv.Atoi(m[2])
	if err1 != nil || err2 != nil {
		return Kubernetes{}, false
	}
	return Kubernetes{Text: "v" + strings.TrimPrefix(s, "v"), Major: major, Minor: minor}, true
}

// ParseEKS parses a control plane's version.
func ParseEKS(s string) (Kubernetes, bool) {
	m := eksVersion.FindStringSubmatch(s)
	if m == nil {
		return Kubernetes{}, false
	}
	major, err1 := strconv.Atoi(m[1])
	minor, err2 := strconv.Atoi(m[2])
	return Kubernetes{Text: s, Major: major, Minor: minor}, err1 == nil && err2 == nil
}

func (k Kubernetes) Known() bool { return k.Text != "" }

// Short returns major.minor, as EKS writes versions.
func (k Kubernetes) Short() string {
	if !k.Known() {
		return ""
	}
	return fmt.Sprintf("%d.%d", k.Major, k.Minor)
}

// DropsAL2 reports whether EKS has no Amazon Linux 2 image for the version.
func (k Kubernetes) DropsAL2() bool { return k.Known() && (k.Major > 1 || k.Minor >= 33) }
