package derive

import (
	"fmt"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
)

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
