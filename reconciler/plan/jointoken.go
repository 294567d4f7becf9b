package plan

import (
	"strings"

	"github.com/weir-gitops/weir/render/diag"
	"github.com/weir-gitops/weir/render/intent"
)

// JoinTokens says whether weir keeps join tokens for the pools of a target, and
// where their machines fetch them.
type JoinTokens struct {
	// Prefix begins the names of the parameters, such as /weir, without a slash
	// at its end. Empty: no tokens are kept.
	Prefix string
}

// JoinParameter names the parameter of AWS Systems Manager from which the
// machines of a pool fetch their join token. The machines' launch template holds
// it, so it changes with instance, target and pool alone.
func (p Policy) JoinParameter(pool intent.Key) string {
	return strings.Join([]string{p.JoinTokens.Prefix, p.Instance, p.Target, pool.Namespace, pool.Name}, "/")
}

// fetches fills where a pool's machines fetch their join token into its user data.
func (c *computation) fetches(pool *intent.Pool, text string) (string, bool) {
	if c.in.Policy.JoinTokens.Prefix == "" {
		c.blockf(pool, nil, "join-token-not-kept", "the nodes of pool "+pool.Key.String()+" cannot join: "+pool.Bootstrap.String()+" has no join token, and weir keeps none for the target",
			"give the target a kubeconfigFile, by which weir keeps tokens; or write bootstrapToken.token or file under spec.joinConfiguration.discovery, or name a Secret in bootstrap.dataSecretName")
		return "", false
	}
	for i := range c.in.Set.Pools {
		other := &c.in.Set.Pools[i]
		if other.ClusterKey != pool.ClusterKey && other.LaunchTemplate != nil && other.LaunchTemplate.UserData.FetchesToken {
			c.blockf(pool, nil, "join-token-clusters", "weir keeps no join token for pool "+pool.Key.String()+": the target has pools without tokens in cluster "+pool.ClusterKey.String()+" and in cluster "+other.ClusterKey.String()+", and its kubeconfigFile is of one",
				"give each cluster a target of its own")
			return "", false
		}
	}
	name := c.in.Policy.JoinParameter(pool.Key)
	c.profileNote(pool, name)
	return strings.NewReplacer(intent.PlaceholderJoinParameter, name, intent.PlaceholderRegion, c.in.Policy.Region).Replace(text), true
}

// profileNote says what the machines of a pool need to fetch their token: before
// there are any, or as long as nothing can allow it.
func (c *computation) profileNote(pool *intent.Pool, parameter string) {
	at := intent.Path{"spec", "awsLaunchTemplate", "iamInstanceProfile"}
	resource := "ssm:GetParameter on parameter " + parameter
	if pool.LaunchTemplate.Data.IamInstanceProfile == nil && pool.Nodegroup == nil {
		c.note(diag.Warning, pool, at, "join-token-profile", "the machines of pool "+pool.Key.String()+" have no instance profile and cannot fetch their join token", "name one in iamInstanceProfile whose role allows "+resource)
		return
	}
	if _, stands := c.in.State.Templates[pool.LaunchTemplate.Name]; !stands {
		c.note(diag.Info, pool, at, "join-token-profile", "the machines of pool "+pool.Key.String()+" fetch their join token: the role of their instance profile must allow "+resource, "")
	}
}
