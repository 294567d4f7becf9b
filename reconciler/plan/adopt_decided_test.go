package plan

import (
	"testing"

	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/intent"
)

// A commit that changes a pool's machines decides about the rollout that an adoption left; one that changes their number does not.
func TestWhatDecidesAboutAnAdoptedPool(t *testing.T) {
	fresh := func() intent.Pool { return groupPool("web", "m5.large", 2) }
	pool := fresh()
	of := model.AdoptedFor(&pool)
	for name, c := range map[string]struct {
		change  func(*intent.Pool)
		decides bool
	}{
		"nothing":      {func(*intent.Pool) {}, false},
		"replicas":     {func(p *intent.Pool) { p.Replicas.Value = 5 }, false},
		"the bounds":   {func(p *intent.Pool) { p.Group.MinSize, p.Group.MaxSize = 1, 20 }, false},
		"the instance": {func(p *intent.Pool) { p.LaunchTemplate.Data.InstanceType = "m5.xlarge" }, true},
		"the image":    {func(p *intent.Pool) { p.LaunchTemplate.Image.Name = "other-*" }, true},
		"user data":    {func(p *intent.Pool) { p.LaunchTemplate.UserData.Text = "#!/bin/sh" }, true},
		"security groups": {func(p *intent.Pool) {
			p.LaunchTemplate.SecurityGroups = []intent.Lookup{{Kind: intent.SecurityGroupsByFilter, Filters: "x"}}
		}, true},
		"subnets": {func(p *intent.Pool) { p.Group.Subnets.IDs = "subnet-a" }, true},
	} {
		pool := fresh()
		c.change(&pool)
		if got := model.AdoptedFor(&pool) != of; got != c.decides {
			t.Errorf("%s decides: %t", name, got)
		}
	}
	nodegroup := nodegroupPool("web", 2)
	of = model.AdoptedFor(&nodegroup)
	nodegroup.Nodegroup.MaxSize.Value = 9
	if model.AdoptedFor(&nodegroup) != of {
		t.Error("the bounds of a nodegroup decide")
	}
}
