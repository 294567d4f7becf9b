package rules

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// CheckBootstrapArgs notes kubelet arguments that do not reach the kubelet unchanged. The script of the image
// writes them to a line of a systemd unit, which is split at white space.
func CheckBootstrapArgs(r kinds.Reporter, s *kinds.EKSConfigSpec) {
	for _, name := range slices.Sorted(maps.Keys(s.KubeletExtraArgs)) {
		if at := path("spec", "kubeletExtraArgs", name); strings.ContainsAny(name+s.KubeletExtraArgs[name], " \t\r\n'\"\\") {
			r.Warn(at, "kubelet-argument", at.String()+" holds white space, a quote or a backslash, which /etc/eks/bootstrap.sh does not keep", "write the setting in a file of the kubelet, or run a command of your own in preBootstrapCommands")
		}
	}
}

// WarnInactive notes the only member of a user that cloud-init does not support.
func WarnInactive(r kinds.Reporter, users []kinds.User) {
	for i, u := range users {
		if u.Inactive != nil && *u.Inactive {
			at := path("spec", "users", intent.Index(i), "inactive")
			r.Warn(at, "not-carried", at.String()+" has no effect: cloud-init takes a number of days there and ignores true", "write lockPassword: true, or a shell of /sbin/nologin")
		}
	}
}

// checkBootstrapFitsImage reports a bootstrap configuration that does not work on the image: "Customize
// managed nodes with launch templates" in the user guide of EKS. An EKSConfig needs /etc/eks/bootstrap.sh,
// which only Amazon Linux 2 has. A NodeadmConfig needs nodeadm, which only Amazon Linux 2023 has.
// Bottlerocket needs TOML. Because a custom command or a custom image may still work, this is a warning,
// unless EKS refuses the user data.
func (d *Derived) checkBootstrapFitsImage(family kinds.ImageFamily) {
	kind := d.Bootstrap.Kind
	if family == "" || kind == "" {
		return
	}
	at := kinds.BootstrapPath.Join("configRef", "kind")
	switch {
	case family == kinds.FamilyBottlerocket && kind == "NodeadmConfig" && d.Kind == intent.NodegroupPool:
		d.AtMachinePool.Error(at, "user-data-not-toml", "Bottlerocket reads TOML, and "+d.Bootstrap.String()+" gives a MIME document", "give the TOML in a Secret that bootstrap.dataSecretName names")
	case kind == "NodeadmConfig" && family != kinds.FamilyAL2023:
		d.AtMachinePool.Warn(at, "bootstrap-image-mismatch", fmt.Sprintf("a NodeadmConfig is for Amazon Linux 2023, and the image of %s is %s", d.Infrastructure, family), imageAdvice(d.Kind, kinds.FamilyAL2023))
	case kind == "EKSConfig" && family == kinds.FamilyAL2023:
		d.AtMachinePool.Warn(at, "bootstrap-image-mismatch", fmt.Sprintf("an EKSConfig is for Amazon Linux 2, and the image of %s is %s", d.Infrastructure, family), "use a NodeadmConfig")
	}
}

func imageAdvice(kind intent.PoolKind, family kinds.ImageFamily) string {
	if kind == intent.NodegroupPool {
		return "write an amiType for " + string(family) + ", such as AL2023_x86_64_STANDARD"
	}
	return "write spec.awsLaunchTemplate.ami.eksLookupType: AmazonLinux2023"
}

// image is the information in the manifests about the operating system of an image.
type image struct {
	family kinds.ImageFamily // of the amiType
	name   string            // the name in the lookup, in lower case
}

func imageOf(nodegroup *intent.Nodegroup, lt *intent.LaunchTemplate) (i image) {
	if nodegroup != nil {
		i.family = kinds.AMIType(nodegroup.AMIType).Family()
	}
	if lt.Image.Kind == intent.ImageByName {
		i.name = strings.ToLower(lt.Image.Name)
	}
	return i
}

func (i image) named(part string) bool { return strings.Contains(i.name, part) }

func (i image) windows() bool { return i.family == kinds.FamilyWindows || i.named("windows") }

// cloudInit reports whether cloud-init is known to read the user data.
func (i image) cloudInit() bool {
	return i.family == kinds.FamilyAL2023 || i.family == kinds.FamilyAL2 || i.named("ubuntu") || i.named("amazon")
}

// CheckReader warns of user data in a format that the pool's image does not read. It checks the amiType, or
// the name in the image lookup. A custom image may differ from its family, so this is a warning.
func (d *Derived) CheckReader(data intent.UserData) {
	if data.Text == "" {
		return
	}
	warn := func(reads, advice string) {
		d.AtMachinePool.Warn(kinds.BootstrapPath, "bootstrap-image-mismatch", fmt.Sprintf("the image of %s reads %s, and the user data of %s is %s",
			d.Infrastructure, reads, d.Bootstrap, formatNames[data.Format]), advice)
	}
	is := imageOf(d.Nodegroup, d.LaunchTemplate)
	const inSecret = "write it in a Secret, and name that in bootstrap.dataSecretName"
	switch {
	case is.windows() && (data.Format == "mime" || data.Format == "shell" || data.Format == "ignition" || d.Bootstrap.Kind == "EKSConfig"):
		warn("PowerShell between <powershell> tags", inSecret)
	case is.named("bottlerocket") && d.Bootstrap.Kind != "Secret":
		warn("TOML", inSecret)
	case is.named("flatcar") && data.Format == "cloud-config" && d.Bootstrap.Kind == "KubeadmConfig":
		warn("Ignition", "write spec.format: ignition in "+d.Bootstrap.String())
	case is.named("flatcar") && data.Format == "mime":
		warn("Ignition", "Flatcar has no nodeadm; use a KubeadmConfig of format ignition, or another image")
	case data.Format == "ignition" && is.cloudInit():
		warn("what cloud-init takes", "write spec.format: cloud-config, or use an image of Flatcar Container Linux")
	}
}

var formatNames = map[string]string{
	"cloud-config": "cloud-config", "ignition": "Ignition", "mime": "a MIME document", "shell": "a script", "powershell": "PowerShell", "toml": "TOML",
}
