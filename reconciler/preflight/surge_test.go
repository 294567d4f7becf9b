package preflight

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

func percent(n int32) *int32 { return &n }

// TestWhatARefreshLaunchesFirst: only a maximum makes Auto Scaling launch before it ends, the
// refresh's own or the maintenance policy's.
func TestWhatARefreshLaunchesFirst(t *testing.T) {
	for name, tt := range map[string]struct {
		least, most *int32
		policy      *intent.HealthyPercentages
		n, want     int64
	}{
		"AWS's own":                      {n: 10},
		"a minimum alone":                {least: percent(100), n: 10},
		"half more":                      {percent(100), percent(150), nil, 10, 5},
		"a part of one, and none may go": {percent(100), percent(110), nil, 3, 1},
		"a part of one, and one may go":  {percent(50), percent(110), nil, 3, 0},
		"no more than there are":         {percent(90), percent(100), nil, 10, 0},
		"none more, and none may go":     {percent(100), percent(100), nil, 10, 1},
		"the group's policy":             {nil, nil, &intent.HealthyPercentages{MinHealthyPercentage: percent(100), MaxHealthyPercentage: percent(120)}, 10, 2},
		"a minimum over the policy":      {percent(90), nil, &intent.HealthyPercentages{MinHealthyPercentage: percent(100), MaxHealthyPercentage: percent(120)}, 10, 0},
		"the refresh over the policy":    {percent(90), percent(100), &intent.HealthyPercentages{MinHealthyPercentage: percent(100), MaxHealthyPercentage: percent(120)}, 10, 0},
		"a policy that is taken away":    {nil, nil, &intent.HealthyPercentages{MinHealthyPercentage: percent(-1), MaxHealthyPercentage: percent(-1)}, 10, 0},
		"no machines":                    {percent(100), percent(200), nil, 0, 0},
	} {
		pool := webPool()
		pool.Group.Options.InstanceMaintenancePolicy = tt.policy
		l := launch{pool: &pool}
		if got := l.refreshSurge(intent.Refresh{MinHealthyPercentage: tt.least, MaxHealthyPercentage: tt.most}, tt.n); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// TestASurgeWithoutRoom: where no machine fits beside those that run, the finding names the
// field by which AWS ends machines first; where some fit, or the pool grows, it does not.
func TestASurgeWithoutRoom(t *testing.T) {
	twice := intent.Refresh{MinHealthyPercentage: percent(100), MaxHealthyPercentage: percent(200)}
	full := func(f *fake) { f.running = []Instance{{Type: "m5.large", VCPUs: 100}} }
	const first = "or let AWS terminate machines before it launches others: spec.refreshPreferences {minHealthyPercentage: 66, maxHealthyPercentage: 100} in the pool's AWSMachinePool"
	const quota = "request a higher quota: aws service-quotas request-service-quota-increase --service-code ec2 --quota-code L-1216C47A --desired-value N"
	for name, tt := range map[string]struct {
		steps []step.Action
		pool  func(*intent.Pool)
		fake  func(*fake)
		want  [3]string // object and field, what follows, advice
	}{
		"no quota left": {[]step.Action{step.StartRefresh{Group: "web", Preferences: twice}}, nil, full,
			[3]string{"AWSMachinePool default/web spec.refreshPreferences", cannotBegin, quota + ", " + first}},
		"some quota left": {[]step.Action{step.StartRefresh{Group: "web", Preferences: twice}}, nil, func(f *fake) { f.running = []Instance{{Type: "m5.large", VCPUs: 98}} },
			[3]string{"MachinePool default/web spec.replicas", "AWS launches only some", quota}},
		"a pool that also grows": {[]step.Action{step.UpdateGroup{Name: "web", DesiredCapacity: percent(5)}, step.StartRefresh{Group: "web", Preferences: twice}}, nil, full,
			[3]string{"MachinePool default/web spec.replicas", "AWS launches only some", quota}},
		"no address left": {[]step.Action{step.StartRefresh{Group: "web", Preferences: twice}}, nil, func(f *fake) { f.subnets["subnet-a"] = Subnet{Zone: "eu-west-1a"} },
			[3]string{"AWSMachinePool default/web spec.refreshPreferences", cannotBegin, "name further subnets, free addresses, " + first}},
		"an end before a launch needs no room": {[]step.Action{step.StartRefresh{Group: "web", Preferences: intent.Refresh{MinHealthyPercentage: percent(66), MaxHealthyPercentage: percent(100)}}}, nil, full, [3]string{}},
		"a nodegroup": {[]step.Action{step.UpdateNodegroupVersion{}}, asNodegroup, full,
			[3]string{"PoolOptions default/web spec.nodegroup.updateConfig.updateStrategy", cannotBegin, quota + ", or let EKS terminate machines before it launches others: spec.nodegroup.updateConfig.updateStrategy: MINIMAL in the pool's PoolOptions"}},
		"a nodegroup that ends first": {[]step.Action{step.UpdateNodegroupVersion{}}, func(p *intent.Pool) { asNodegroup(p); p.Nodegroup.UpdateConfig.UpdateStrategy = "MINIMAL" }, full, [3]string{}},
	} {
		t.Run(name, func(t *testing.T) {
			pool, f := webPool(), newFake()
			if tt.pool != nil {
				tt.pool(&pool)
			}
			tt.fake(f)
			p := creation([]string{"subnet-a"}, pool)
			p.Input.State.Groups = map[string]observed.Group{"web": {Name: "web", DesiredCapacity: 3}}
			p.Steps = nil
			for _, do := range tt.steps {
				p.Steps = append(p.Steps, step.Step{Verb: step.Rollout, Pool: "default/web", Do: do})
			}
			var got [3]string
			found := New(f, nil, func() time.Time { return time.Unix(0, 0) }).Findings(context.Background(), []Request{p})[0]
			if len(found) > 1 {
				t.Fatalf("got %v", found)
			}
			for _, d := range found {
				got = [3]string{d.Object + " " + d.Field, d.Summary[strings.LastIndex(d.Summary, ": ")+2:], d.Detail}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestRootVolumesNeedNoRoom: where AWS can replace root volumes the finding proposes it, and a
// rollout that does so has none.
func TestRootVolumesNeedNoRoom(t *testing.T) {
	for strategy, want := range map[string]bool{"Rolling": true, "ReplaceRootVolume": false} {
		pool, f := webPool(), newFake()
		pool.Group.Refresh.Strategy = strategy
		pool.Group.MixedInstancesPolicy = &intent.MixedInstances{OnDemandPercentageAboveBaseCapacity: 100, Overrides: []intent.Override{{InstanceType: "m5.large"}}}
		f.running = []Instance{{Type: "m5.large", VCPUs: 100}}
		p := creation([]string{"subnet-a"}, pool)
		p.Input.State.Groups = map[string]observed.Group{"web": {Name: "web", DesiredCapacity: 3}}
		p.Steps = []step.Step{{Verb: step.Rollout, Pool: "default/web", Do: step.StartRefresh{Group: "web", Preferences: intent.Refresh{Strategy: strategy, MinHealthyPercentage: percent(100), MaxHealthyPercentage: percent(200)}}}}
		found := New(f, nil, func() time.Time { return time.Unix(0, 0) }).Findings(context.Background(), []Request{p})[0]
		if got := len(found) == 1 && strings.Contains(found[0].Detail, "refreshPreferences.strategy: ReplaceRootVolume in the pool's PoolOptions"); got != want || len(found) > 1 {
			t.Errorf("%s: %v", strategy, found)
		}
	}
}
