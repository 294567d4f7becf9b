package derive

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/manifest/kinds"
	"github.com/weir-gitops/weir/render/userdata"
)

// fetchToken makes the nodes of a pool fetch the join token that weir maintains, and the values about the API
// server that the manifests do not set. The target's configuration decides if weir maintains a token, so the
// planner checks that.
func (d *draft) fetchToken(join *userdata.Join, at intent.Path, by string, r kinds.Reporter) {
	join.Fetched = &userdata.FetchedToken{
		Parameter: intent.PlaceholderJoinParameter, Region: intent.PlaceholderRegion,
		Endpoint: join.APIServerEndpoint == "", CA: len(join.CACertHashes) == 0 && !join.UnsafeSkipCA,
	}
	r.Info(at, "join-token-fetched", fmt.Sprintf("the nodes of %s fetch a join token at boot: %s has none", d.MachinePool, r.Ref),
		"weir maintains one if the target's configuration has kubeconfigFile, or the command has --kubeconfig; the image needs "+by+", and the instance profile the action ssm:GetParameter. "+
			"Otherwise write bootstrapToken.token or file under "+at.String()+", or name a Secret in bootstrap.dataSecretName")
}

// fetchesBy returns the program that the nodes use to fetch their token. It is curl for nodes with Ignition,
// because their images have no AWS CLI. It is empty if the name of the looked-up image is one
// of Flatcar or Bottlerocket, which do not have it either.
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
