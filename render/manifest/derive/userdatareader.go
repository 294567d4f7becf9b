package derive

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

// checkReader notes user data in a format that the pool's image does not read,
// as far as an amiType or the name by which an image is looked up tells. They
// are warnings: an image of one's own may do what its family does not.
func (d *Derived) checkReader(data intent.UserData) {
	if data.Text == "" {
		return
	}
	warn := func(reads, advice string) {
		d.AtMachinePool.Warn(kinds.BootstrapPath, "bootstrap-image-mismatch", fmt.Sprintf("the image of %s reads %s, and the user data of %s is %s",
			d.Infrastructure, reads, d.Bootstrap, formatNames[data.Format]), advice)
	}
	var family kinds.ImageFamily
	name := ""
	if d.Nodegroup != nil {
		family = kinds.AMIType(d.Nodegroup.AMIType).Family()
	}
	if d.LaunchTemplate.Image.Kind == intent.ImageByName {
		name = strings.ToLower(d.LaunchTemplate.Image.Name)
	}
	const inSecret = "write it in a Secret, and name that in bootstrap.dataSecretName"
	switch {
	case (family == kinds.FamilyWindows || strings.Contains(name, "windows")) && (data.Format == "mime" || data.Format == "shell" || data.Format == "ignition" || d.Bootstrap.Kind == "EKSConfig"):
		warn("PowerShell between <powershell> tags", inSecret)
	case strings.Contains(name, "bottlerocket") && d.Bootstrap.Kind != "Secret":
		warn("TOML", inSecret)
	case strings.Contains(name, "flatcar") && data.Format == "cloud-config" && d.Bootstrap.Kind == "KubeadmConfig":
		warn("Ignition", "write spec.format: ignition in "+d.Bootstrap.String())
	case strings.Contains(name, "flatcar") && data.Format == "mime":
		warn("Ignition", "Flatcar has no nodeadm; use a KubeadmConfig of format ignition, or another image")
	case data.Format == "ignition" && (family == kinds.FamilyAL2023 || family == kinds.FamilyAL2 || strings.Contains(name, "ubuntu") || strings.Contains(name, "amazon")):
		warn("what cloud-init takes", "write spec.format: cloud-config, or use an image of Flatcar Container Linux")
	}
}

var formatNames = map[string]string{
	"cloud-config": "cloud-config", "ignition": "Ignition", "mime": "a MIME document", "shell": "a script", "powershell": "PowerShell", "toml": "TOML",
}
