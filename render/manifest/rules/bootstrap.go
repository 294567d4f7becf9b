package rules

import (
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// CheckBootstrapArgs notes arguments of the kubelet that do not arrive as they
// are written: the script of the image puts them into a line of a systemd unit,
// which is cut at white space.
func CheckBootstrapArgs(r kinds.Reporter, s *kinds.EKSConfigSpec) {
	for _, name := range slices.Sorted(maps.Keys(s.KubeletExtraArgs)) {
		if at := path("spec", "kubeletExtraArgs", name); strings.ContainsAny(name+s.KubeletExtraArgs[name], " \t\r\n'\"\\") {
			r.Warn(at, "kubelet-argument", at.String()+" holds white space, a quote or a backslash, which /etc/eks/bootstrap.sh does not keep", "write the setting in a file of the kubelet, or run a command of your own in preBootstrapCommands")
		}
	}
}

// WarnInactive notes the one member of a user that cloud-init does not take.
func WarnInactive(r kinds.Reporter, users []kinds.User) {
	for i, u := range users {
		if u.Inactive != nil && *u.Inactive {
			at := path("spec", "users", intent.Index(i), "inactive")
			r.Warn(at, "not-carried", at.String()+" has no effect: cloud-init takes a number of days there and ignores true", "write lockPassword: true, or a shell of /sbin/nologin")
		}
	}
}
