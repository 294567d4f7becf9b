package manifest

import (
	"fmt"
	"strings"

	"github.com/weir-gitops/weir/render/intent"
	"github.com/weir-gitops/weir/render/userdata"
)

// fetchToken has the nodes of a pool fetch the join token that weir keeps, and
// with it what else the manifests leave open about the API server. Whether weir
// keeps one is up to the target's configuration, so planning decides.
func (d *draft) fetchToken(join *userdata.Join, at intent.Path, r reporter) {
	join.Fetched = &userdata.FetchedToken{
		Parameter: intent.PlaceholderJoinParameter, Region: intent.PlaceholderRegion,
		Endpoint: join.APIServerEndpoint == "", CA: len(join.CACertHashes) == 0 && !join.UnsafeSkipCA,
	}
	r.info(at, "join-token-fetched", fmt.Sprintf("the nodes of %s fetch a join token at boot: %s has none", d.MachinePool, r.ref),
		"weir keeps one where the target's configuration has kubeconfigFile; the image needs the AWS CLI, and the instance profile the action ssm:GetParameter. "+
			"Else write bootstrapToken.token or file under "+at.String()+", or name a Secret in bootstrap.dataSecretName")
}

// withoutCLI reports whether the name by which the image is looked up is that of
// a distribution without the AWS CLI.
func (d *draft) withoutCLI() bool {
	if d.LaunchTemplate == nil || d.LaunchTemplate.Image.Kind != intent.ImageByName {
		return false
	}
	name := strings.ToLower(d.LaunchTemplate.Image.Name)
	return strings.Contains(name, "flatcar") || strings.Contains(name, "bottlerocket")
}
