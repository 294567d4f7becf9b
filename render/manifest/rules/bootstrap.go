package rules

import (
	"fmt"
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

// checkBootstrapFitsImage reports a bootstrap configuration that the image does
// not understand: "Customize managed nodes with launch templates" in the user
// guide of EKS. An EKSConfig runs /etc/eks/bootstrap.sh, which Amazon Linux 2
// alone has; a NodeadmConfig is read by nodeadm, which Amazon Linux 2023 alone
// has; Bottlerocket reads TOML. A warning, for a command of one's own or an image
// in disguise may make up for it, except where EKS refuses the user data.
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

// image holds what manifests tell about the operating system of an image.
type image struct {
	family kinds.ImageFamily // of the amiType
	name   string            // by which it is looked up, in lower case
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

// cloudInit reports whether cloud-init reads the user data, as far as is known.
func (i image) cloudInit() bool {
	return i.family == kinds.FamilyAL2023 || i.family == kinds.FamilyAL2 || i.named("ubuntu") || i.named("amazon")
}

// CheckReader warns of user data in a format that the pool's image does not read, based on an
// amiType or the name by which an image is looked up. They are warnings: a custom image may do what
// its family does not.
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
