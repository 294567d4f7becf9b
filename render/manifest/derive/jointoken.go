package derive

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/userdata"
)

// fetchToken makes the nodes of a pool fetch the join token that weir keeps, and with
// it what else the manifests leave open about the API server. Whether weir keeps one
// is up to the target's configuration, so planning decides.
func (d *draft) fetchToken(join *userdata.Join, at intent.Path, by string, r kinds.Reporter) {
	join.Fetched = &userdata.FetchedToken{
		Parameter: intent.PlaceholderJoinParameter, Region: intent.PlaceholderRegion,
		Endpoint: join.APIServerEndpoint == "", CA: len(join.CACertHashes) == 0 && !join.UnsafeSkipCA,
	}
	r.Info(at, "join-token-fetched", fmt.Sprintf("the nodes of %s fetch a join token at boot: %s has none", d.MachinePool, r.Ref),
		"weir keeps one where the target's configuration has kubeconfigFile, or the command --kubeconfig; the image needs "+by+", and the instance profile the action ssm:GetParameter. "+
			"Else write bootstrapToken.token or file under "+at.String()+", or name a Secret in bootstrap.dataSecretName")
}

// fetchesBy returns the program with which the nodes of a pool fetch their token. It is curl for
// nodes that read Ignition, because such images have no AWS CLI. It is empty if the looked-up image
// name belongs to a distribution without it that reads cloud-init.
func (d *draft) fetchesBy(format string) string {
	if format == "ignition" {
		return "curl 7.75 or newer"
	}
	if t := d.LaunchTemplate; t != nil && t.Image.Kind == intent.ImageByName {
		if name := strings.ToLower(t.Image.Name); strings.Contains(name, "flatcar") || strings.Contains(name, "bottlerocket") {
			return ""
		}
	}
	return "the AWS CLI"
}
