package plan

import (
	"testing"

	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/rollout"
	"github.com/weir-gitops/weir/render/intent"
)

// What a pool ran before can be pinned where a lookup's answer alone has changed.
func TestWhatCanBePinned(t *testing.T) {
	governed := func(in model.Input) model.Input {
		in.Policy.Gates.Rollouts = map[string]rollout.Permit{"default/web": {ID: rollout.ID{Target: "blue", Pool: "default/web"}, Rollouts: []string{"fleet/waves"}}}
		return in
	}
	follows := func(instanceType string) intent.Pool {
		pool := groupPool("web", instanceType, 3)
		pool.FollowImages = true
		return pool
	}
	for name, tt := range map[string]struct {
		before, after model.Input
		want          string
	}{
		"a newer image":                   {testInput(follows("m5.large")), newerImage(testInput(follows("m5.large"))), "ami-1"},
		"a commit":                        {testInput(follows("m5.large")), testInput(follows("m5.xlarge")), ""},
		"a commit and a newer image":      {testInput(follows("m5.large")), newerImage(testInput(follows("m5.xlarge"))), ""},
		"a newer version of its template": {answering(testInput(brings(groupPool("web", "", 3), intent.LatestVersion)), golden(3)), answering(testInput(brings(groupPool("web", "", 3), intent.LatestVersion)), golden(4)), "3"},
		"a version that Git names":        {answering(testInput(brings(groupPool("web", "", 3), "3")), golden(3)), answering(testInput(brings(groupPool("web", "", 3), "4")), golden(4)), ""},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel()
			converge(t, m, tt.before)
			p, _ := m.pass(t, governed(tt.after))
			list := p.Governed()
			if len(list) != 1 || !list[0].Pending || list[0].Earlier == nil || list[0].Earlier.Pin != tt.want {
				t.Fatalf("%+v", list)
			}
		})
	}
}
