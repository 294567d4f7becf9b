package template

import (
	"strings"

	"github.com/weir-gitops/weir/reconciler/plan/basis"
	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// fetches fills where a pool's machines fetch their join token into its user data.
func (c Planner) fetches(pool *intent.Pool, text string) (string, bool) {
	if c.In.Policy.JoinTokens.Prefix == "" {
		c.Blockf(pool, nil, "join-token-not-kept", "the nodes of pool "+pool.Key.String()+" cannot join: "+pool.Bootstrap.String()+" has no join token, and weir keeps none for the target",
			c.In.Policy.JoinTokens.HowTo()+"; or write bootstrapToken.token or file under spec.joinConfiguration.discovery, or name a Secret in bootstrap.dataSecretName")
		return "", false
	}
	for i := range c.In.Set.Pools {
		other := &c.In.Set.Pools[i]
		if other.ClusterKey != pool.ClusterKey && other.LaunchTemplate != nil && other.LaunchTemplate.UserData.FetchesToken {
			c.Blockf(pool, nil, "join-token-clusters", "weir keeps no join token for pool "+pool.Key.String()+": the target has pools without tokens in cluster "+pool.ClusterKey.String()+" and in cluster "+other.ClusterKey.String()+", and its kubeconfig is of one",
				"give each cluster a target of its own")
			return "", false
		}
	}
	name := c.In.Policy.JoinParameter(basis.JoinKey(pool))
	c.profileNote(pool, name)
	if c.In.Policy.JoinTokens.Once {
		c.Note(diag.Warning, pool, nil, "join-token-once", "no daemon renews the join token of pool "+pool.Key.String()+": machines that start more than 12 hours after an apply may not be able to join",
			"apply at least every 12 hours, with --kubeconfig; or let weir run keep the tokens")
	}
	return strings.NewReplacer(intent.PlaceholderJoinParameter, name, intent.PlaceholderRegion, c.In.Policy.Region).Replace(text), true
}

// profileNote says what the machines of a pool need to fetch their token: before
// there are any, or as long as nothing can allow it.
func (c Planner) profileNote(pool *intent.Pool, parameter string) {
	at := intent.Path{"spec", "awsLaunchTemplate", "iamInstanceProfile"}
	resource := "ssm:GetParameter on parameter " + parameter
	if pool.LaunchTemplate.Data.IamInstanceProfile == nil && pool.Nodegroup == nil {
		c.Note(diag.Warning, pool, at, "join-token-profile", "the machines of pool "+pool.Key.String()+" have no instance profile and cannot fetch their join token", "name one in iamInstanceProfile whose role allows "+resource)
		return
	}
	if _, stands := c.In.State.Templates[pool.LaunchTemplate.Name]; !stands {
		c.Note(diag.Info, pool, at, "join-token-profile", "the machines of pool "+pool.Key.String()+" fetch their join token: the role of their instance profile must allow "+resource, "")
	}
}
