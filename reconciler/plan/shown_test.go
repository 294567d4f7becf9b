package plan

import (
	"testing"

	"github.com/weir-gitops/weir/render/intent"
)

// Whatever a step sends is in its changes, and so in the digest: who approves a plan
// approves all of it, and a pool that AWS refused is tried again once Git has changed
// what it refused.
func TestTheDigestCoversWhatIsSent(t *testing.T) {
	group := func(change func(*intent.Group)) func(*intent.Pool, *intent.Pool) {
		return func(g, _ *intent.Pool) { change(g.Group) }
	}
	nodegroup := func(change func(*intent.Nodegroup)) func(*intent.Pool, *intent.Pool) {
		return func(_, n *intent.Pool) { change(n.Nodegroup) }
	}
	on, ten := true, int32(10)
	made := map[string]func(g, n *intent.Pool){
		"cooldown":           group(func(g *intent.Group) { g.DefaultCooldown = 17 }),
		"warmup":             group(func(g *intent.Group) { g.DefaultInstanceWarmup = 17 }),
		"capacity rebalance": group(func(g *intent.Group) { g.CapacityRebalance = true }),
		"a lifecycle hook": group(func(g *intent.Group) {
			g.LifecycleHooks = []intent.LifecycleHook{{Name: "h", LifecycleTransition: "autoscaling:EC2_INSTANCE_TERMINATING", RoleARN: "arn:aws:iam::1:role/r"}}
		}),
		"labels":          nodegroup(func(n *intent.Nodegroup) { n.Labels = map[string]string{"a": "b"} }),
		"taints":          nodegroup(func(n *intent.Nodegroup) { n.Taints = []intent.Taint{{Key: "a", Effect: "NO_EXECUTE"}} }),
		"update config":   nodegroup(func(n *intent.Nodegroup) { n.UpdateConfig.MaxUnavailable = 3 }),
		"update strategy": nodegroup(func(n *intent.Nodegroup) { n.UpdateConfig.UpdateStrategy = "MINIMAL" }),
		"node repair":     nodegroup(func(n *intent.Nodegroup) { n.NodeRepair = &on }),
		"repair options":  nodegroup(func(n *intent.Nodegroup) { n.RepairOptions = &intent.RepairOptions{MaxParallelNodesRepairedCount: 2} }),
		"warm pool":       nodegroup(func(n *intent.Nodegroup) { n.WarmPool = &intent.NodegroupWarmPool{Enabled: &on} }),
		"disk":            nodegroup(func(n *intent.Nodegroup) { n.DiskSize = 99 }),
		"remote access":   nodegroup(func(n *intent.Nodegroup) { n.RemoteAccess = &intent.RemoteAccess{EC2SSHKey: "k"} }),
		"release":         nodegroup(func(n *intent.Nodegroup) { n.ReleaseVersion = "1.33.0-20260101" }),
	}
	for name, change := range made {
		t.Run("a new pool: "+name, func(t *testing.T) {
			digest := func(change func(g, n *intent.Pool)) string {
				g, n := groupPool("web", "m5.large", 1), nodegroupPool("ng", 1)
				change(&g, &n)
				p, _ := newModel().pass(t, testInput(g, n))
				return p.Digest()
			}
			if digest(change) == digest(func(_, _ *intent.Pool) {}) {
				t.Error("the plan has the same digest without it")
			}
		})
	}
	rolled := map[string]func(g, n *intent.Pool){
		"healthy machines": group(func(g *intent.Group) { g.Refresh.MinHealthyPercentage = &ten }),
		"standby machines": group(func(g *intent.Group) { g.Refresh.StandbyInstances = "Terminate" }),
		"a forced update":  nodegroup(func(n *intent.Nodegroup) { n.Force = true }),
	}
	for name, change := range rolled {
		t.Run("a rollout: "+name, func(t *testing.T) {
			m := newModel()
			converge(t, m, testInput(groupPool("web", "m5.large", 1), nodegroupPool("ng", 1)))
			digest := func(change func(g, n *intent.Pool)) string {
				g, n := groupPool("web", "m5.xlarge", 1), nodegroupPool("ng", 1)
				n.Nodegroup.ReleaseVersion = "1.33.0-20260101"
				change(&g, &n)
				p, _ := m.pass(t, testInput(g, n))
				return p.Digest()
			}
			if digest(change) == digest(func(_, _ *intent.Pool) {}) {
				t.Error("the plan has the same digest without it")
			}
		})
	}
}
