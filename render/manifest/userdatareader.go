package manifest

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
)

// checkReader notes user data in a format that the pool's image does not read,
// as far as an amiType or the name by which an image is looked up tells. They
// are warnings: an image of one's own may do what its family does not.
func (d *draft) checkReader(data intent.UserData) {
	if data.Text == "" {
		return
	}
	warn := func(reads, advice string) {
		d.mp.warn(bootstrapPath, "bootstrap-image-mismatch", fmt.Sprintf("the image of %s reads %s, and the user data of %s is %s",
			d.Infrastructure, reads, d.Bootstrap, formatNames[data.Format]), advice)
	}
	var family imageFamily
	name := ""
	if d.Nodegroup != nil {
		family = amiType(d.Nodegroup.AMIType).family()
	}
	if d.LaunchTemplate.Image.Kind == intent.ImageByName {
		name = strings.ToLower(d.LaunchTemplate.Image.Name)
	}
	const inSecret = "write it in a Secret, and name that in bootstrap.dataSecretName"
	switch {
	case (family == familyWindows || strings.Contains(name, "windows")) && (data.Format == "mime" || data.Format == "shell" || data.Format == "ignition" || d.Bootstrap.Kind == "EKSConfig"):
		warn("PowerShell between <powershell> tags", inSecret)
	case strings.Contains(name, "bottlerocket") && d.Bootstrap.Kind != "Secret":
		warn("TOML", inSecret)
	case strings.Contains(name, "flatcar") && data.Format == "cloud-config" && d.Bootstrap.Kind == "KubeadmConfig":
		warn("Ignition", "write spec.format: ignition in "+d.Bootstrap.String())
	case strings.Contains(name, "flatcar") && data.Format == "mime":
		warn("Ignition", "Flatcar has no nodeadm; use a KubeadmConfig of format ignition, or another image")
	case data.Format == "ignition" && (family == familyAL2023 || family == familyAL2 || strings.Contains(name, "ubuntu") || strings.Contains(name, "amazon")):
		warn("what cloud-init takes", "write spec.format: cloud-config, or use an image of Flatcar Container Linux")
	}
}

var formatNames = map[string]string{
	"cloud-config": "cloud-config", "ignition": "Ignition", "mime": "a MIME document", "shell": "a script", "powershell": "PowerShell", "toml": "TOML",
}

// warnInactive notes the one member of a user that cloud-init does not take.
func warnInactive(r reporter, users []User) {
	for i, u := range users {
		if u.Inactive != nil && *u.Inactive {
			at := path("spec", "users", intent.Index(i), "inactive")
			r.warn(at, "not-carried", at.String()+" has no effect: cloud-init takes a number of days there and ignores true", "write lockPassword: true, or a shell of /sbin/nologin")
		}
	}
}
