package model

import (
	"strings"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/render/intent"
)

// JoinTokens configures whether weir stores join tokens for the pools of a target, and where their
// machines fetch them.
type JoinTokens struct {
	// Prefix is the start of the parameters' names, such as /weir, without a slash at its end. If
	// it is empty, weir stores no tokens.
	Prefix string
	// Once is set for a command on a PATH: no daemon renews its tokens.
	Once bool
}

// HowTo describes how to make weir store tokens.
func (j JoinTokens) HowTo() string {
	if j.Once {
		return "add --kubeconfig FILE, the kubeconfig of the cluster that they join, so that weir can create tokens"
	}
	return "give the target a kubeconfigFile, so that weir can keep tokens"
}

// JoinParameter returns the name of the parameter of AWS Systems Manager from which machines fetch
// their join token. The machines' launch template contains it, so it changes only with instance,
// target and pool.
func (p Policy) JoinParameter(key string) string {
	return strings.Join([]string{p.JoinTokens.Prefix, p.Instance, p.Target, key}, "/")
}

// JoinKey returns the key of the join token that a pool's machines fetch: the pool's own, or the
// key of the AWSLaunchConfig whose template it shares.
func JoinKey(pool *intent.Pool) string {
	if pool.LaunchConfig != nil {
		return "launch-config/" + pool.LaunchConfig.Key.String()
	}
	return pool.Key.String()
}

// JoinNeeds lists the join tokens that a target needs. JoinKey returns the keys.
type JoinNeeds struct {
	// Wanted maps keys to the parameters that the wanted launch templates name.
	Wanted map[string]string
	// Standing reports whether machines may start from a launch template that names another
	// parameter of the same key.
	Standing map[string]bool
	// Left is the set of keys of pools that are held: weir writes nothing for them.
	Left map[string]bool
}

// JoinNeedsOf returns the join tokens that a target needs. converged is the set of pools
// ("namespace/name") whose machines all match Git.
func JoinNeedsOf(in Input, converged map[string]bool) JoinNeeds {
	n := JoinNeeds{Wanted: map[string]string{}, Standing: map[string]bool{}, Left: map[string]bool{}}
	settled := map[string]bool{}
	clusters := map[intent.Key]bool{}
	for i := range in.Set.Pools {
		pool := &in.Set.Pools[i]
		key := JoinKey(pool)
		settled[pool.Key.String()] = converged[pool.Key.String()]
		if in.HoldOf(pool) != "" {
			n.Left[key], n.Left[pool.Key.String()] = true, true
			continue
		}
		if pool.LaunchTemplate != nil && pool.LaunchTemplate.UserData.FetchesToken && len(pool.Blocked) == 0 {
			n.Wanted[key] = in.Policy.JoinParameter(key)
			clusters[pool.ClusterKey] = true
		}
	}
	if len(clusters) > 1 { // the kubeconfig belongs to one of them, and it is unknown to which
		n.Wanted = map[string]string{}
	}
	stands := func(tags map[string]string) {
		if tags[observed.TagOwner] != in.Policy.Instance || tags[observed.TagTarget] != in.Policy.Target {
			return
		}
		if config := tags[observed.TagLaunchConfig]; config != "" {
			n.Standing["launch-config/"+config] = true
		}
		if pool := tags[observed.TagPool]; pool != "" && !settled[pool] {
			n.Standing[pool] = true
		}
	}
	for _, g := range in.State.Groups {
		stands(observed.GroupTagValues(g.Tags))
	}
	for _, g := range in.State.Nodegroups {
		stands(g.Tags)
	}
	for _, t := range in.State.Templates {
		if t.Tags[observed.TagLaunchConfig] != "" {
			stands(t.Tags)
		}
	}
	return n
}
