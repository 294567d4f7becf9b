package manifest

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
)

// imageFamily is a family of EKS images. Each is bootstrapped in its own way.
type imageFamily string

const (
	familyAL2          imageFamily = "Amazon Linux 2"
	familyAL2023       imageFamily = "Amazon Linux 2023"
	familyBottlerocket imageFamily = "Bottlerocket"
	familyWindows      imageFamily = "Windows"
)

// eksFamily is the family of the images that are looked up among EKS's, or "".
func eksFamily(image intent.Lookup) imageFamily {
	switch {
	case image.Kind != intent.ImageForEKS:
		return ""
	case strings.HasPrefix(image.Name, "AmazonLinux2023"):
		return familyAL2023
	}
	return familyAL2
}

// family is that of the images of an amiType, or "" for CUSTOM.
func (t amiType) family() imageFamily {
	for prefix, f := range map[string]imageFamily{"AL2_": familyAL2, "AL2023_": familyAL2023, "BOTTLEROCKET_": familyBottlerocket, "WINDOWS_": familyWindows} {
		if strings.HasPrefix(string(t), prefix) {
			return f
		}
	}
	return ""
}

// checkBootstrapFitsImage reports a bootstrap configuration that the image does
// not understand: "Customize managed nodes with launch templates" in the user
// guide of EKS. An EKSConfig runs /etc/eks/bootstrap.sh, which Amazon Linux 2
// alone has; a NodeadmConfig is read by nodeadm, which Amazon Linux 2023 alone
// has; Bottlerocket reads TOML. A warning, for a command of one's own or an image
// in disguise may make up for it, except where EKS refuses the user data.
func (d *draft) checkBootstrapFitsImage(family imageFamily) {
	kind := d.Bootstrap.Kind
	if family == "" || kind == "" {
		return
	}
	at := bootstrapPath.Join("configRef", "kind")
	switch {
	case family == familyBottlerocket && kind == "NodeadmConfig" && d.Kind == intent.NodegroupPool:
		d.mp.error(at, "user-data-not-toml", "Bottlerocket reads TOML, and "+d.Bootstrap.String()+" gives a MIME document", "give the TOML in a Secret that bootstrap.dataSecretName names")
	case kind == "NodeadmConfig" && family != familyAL2023:
		d.mp.warn(at, "bootstrap-image-mismatch", fmt.Sprintf("a NodeadmConfig is for Amazon Linux 2023, and the image of %s is %s", d.Infrastructure, family), imageAdvice(d.Kind, familyAL2023))
	case kind == "EKSConfig" && family == familyAL2023:
		d.mp.warn(at, "bootstrap-image-mismatch", fmt.Sprintf("an EKSConfig is for Amazon Linux 2, and the image of %s is %s", d.Infrastructure, family), "use a NodeadmConfig")
	}
}

func imageAdvice(kind intent.PoolKind, family imageFamily) string {
	if kind == intent.NodegroupPool {
		return "write an amiType for " + string(family) + ", such as AL2023_x86_64_STANDARD"
	}
	return "write spec.awsLaunchTemplate.ami.eksLookupType: AmazonLinux2023"
}
