package preflight

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// TestReservedCapacity: machines that run in reserved capacity alone need room there; others do not.
func TestReservedCapacity(t *testing.T) {
	const group, options, written = "AWSMachinePool default/web", "PoolOptions default/web", "MachinePool default/web spec.replicas"
	target := func(id string) func(*intent.Pool) {
		return func(p *intent.Pool) {
			p.LaunchTemplate.Data.CapacityReservationSpecification = &intent.CapacityReservation{TargetID: id}
		}
	}
	ofGroup := func(preference string, ids ...string) func(*intent.Pool) {
		return func(p *intent.Pool) {
			g := &intent.GroupReservation{CapacityReservationPreference: preference}
			if len(ids) > 0 {
				g.CapacityReservationTarget = &intent.GroupReservationTarget{CapacityReservationIDs: ids}
			}
			p.Group.Options.CapacityReservationSpecification = g
		}
	}
	both := func(fs ...func(*intent.Pool)) func(*intent.Pool) {
		return func(p *intent.Pool) {
			for _, f := range fs {
				f(p)
			}
		}
	}
	here := Reservation{ID: "cr-1", Type: "m5.large", Zone: "eu-west-1a", Free: 2}
	for name, tt := range map[string]struct {
		pool    func(*intent.Pool)
		subnets []string
		have    []Reservation
		want    []string
	}{
		"room":         {target("cr-1"), nil, []Reservation{{ID: "cr-1", Type: "m5.large", Zone: "eu-west-1a", Free: 3}}, nil},
		"too little":   {target("cr-1"), nil, []Reservation{here}, []string{"warning capacity-short " + written + ": the pool's machines run in reserved capacity alone (cr-1), which has room for 2, and the plan wants 3 more: AWS launches only some"}},
		"none of it":   {target("cr-2"), nil, []Reservation{here}, []string{"warning unknown-name " + group + " spec.awsLaunchTemplate.capacityReservationId: AWS has no active capacity reservation cr-2"}},
		"another type": {target("cr-1"), nil, []Reservation{{ID: "cr-1", Type: "c5.large", Zone: "eu-west-1a", Free: 9}}, []string{"warning capacity-short " + group + " spec.awsLaunchTemplate.capacityReservationId: machines of the pool run in reserved capacity alone, and no such reservation is for m5.large in eu-west-1a: cr-1 is for c5.large in eu-west-1a: AWS launches none"}},
		"another zone": {target("cr-1"), []string{"subnet-a"}, []Reservation{{ID: "cr-1", Type: "m5.large", Zone: "eu-west-1b", Free: 9}}, []string{"warning capacity-short " + group + " spec.awsLaunchTemplate.capacityReservationId: machines of the pool run in reserved capacity alone, and no such reservation is for m5.large in eu-west-1a: cr-1 is for m5.large in eu-west-1b: AWS launches none"}},
		"a zone without": {target("cr-1"), []string{"subnet-a", "subnet-b"}, []Reservation{{ID: "cr-1", Type: "m5.large", Zone: "eu-west-1b", Free: 9}},
			[]string{"warning capacity-short " + group + " spec.subnets: machines of the pool run in reserved capacity alone, and none that fits is in eu-west-1a, so no machine starts in the subnets there"}},
		"open ones alone": {func(p *intent.Pool) {
			p.LaunchTemplate.Data.CapacityReservationSpecification = &intent.CapacityReservation{Preference: "capacity-reservations-only"}
		}, nil, []Reservation{here}, []string{"warning capacity-short " + group + " spec.awsLaunchTemplate.capacityReservationPreference: machines of the pool run in reserved capacity alone, and no such reservation is for m5.large in eu-west-1a: AWS launches none"}},
		"open ones": {func(p *intent.Pool) {
			p.LaunchTemplate.Data.CapacityReservationSpecification = &intent.CapacityReservation{Preference: "capacity-reservations-only"}
		}, nil, []Reservation{here, {ID: "cr-2", Type: "m5.large", Zone: "eu-west-1a", Free: 5, Open: true}}, nil},
		"the group's": {ofGroup("capacity-reservations-only", "cr-1", "cr-2"), nil, []Reservation{here, {ID: "cr-2", Type: "m5.large", Zone: "eu-west-1a"}},
			[]string{"warning capacity-short " + written + ": the pool's machines run in reserved capacity alone (cr-1, cr-2), which has room for 2, and the plan wants 3 more: AWS launches only some"}},
		"the group's is gone": {ofGroup("capacity-reservations-only", "cr-1", "cr-3"), nil, []Reservation{{ID: "cr-1", Type: "m5.large", Zone: "eu-west-1a", Free: 9}},
			[]string{"warning unknown-name " + options + " spec.autoScalingGroup.capacityReservationSpecification.capacityReservationTarget.capacityReservationIds[1]: AWS has no active capacity reservation cr-3"}},
		"the group's preference, the template's target": {both(target("cr-1"), ofGroup("capacity-reservations-only")), nil, []Reservation{{ID: "cr-1", Type: "m5.large", Zone: "eu-west-1a", Free: 3}}, nil},
		"the group asks for reservations first":         {both(target("cr-1"), ofGroup("capacity-reservations-first")), nil, nil, nil},
		"the group asks for none":                       {both(target("cr-1"), ofGroup("none")), nil, nil, nil},
		"the group leaves it to the template":           {both(target("cr-2"), ofGroup("default")), nil, []Reservation{here}, []string{"warning unknown-name " + group + " spec.awsLaunchTemplate.capacityReservationId: AWS has no active capacity reservation cr-2"}},
		"a resource group, which weir does not ask": {func(p *intent.Pool) {
			p.LaunchTemplate.Data.CapacityReservationSpecification = &intent.CapacityReservation{TargetGroupARN: "arn:aws:resource-groups:eu-west-1:123456789012:group/x"}
		}, nil, nil, nil},
		"a resource group of the group": {both(target("cr-1"), func(p *intent.Pool) {
			p.Group.Options.CapacityReservationSpecification = &intent.GroupReservation{CapacityReservationPreference: "capacity-reservations-only", CapacityReservationTarget: &intent.GroupReservationTarget{CapacityReservationResourceGroupARNs: []string{"arn:aws:resource-groups:eu-west-1:123456789012:group/x"}}}
		}), nil, nil, nil},
		"a preference for open ones, which have no room": {func(p *intent.Pool) {
			p.LaunchTemplate.Data.CapacityReservationSpecification = &intent.CapacityReservation{Preference: "open"}
		}, nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			pool, f := webPool(), newFake()
			tt.pool(&pool)
			f.reserved = tt.have
			if tt.subnets == nil {
				tt.subnets = []string{"subnet-a"}
			}
			if d := cmp.Diff(tt.want, ask(f, creation(tt.subnets, pool))); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// TestASurgeBesideAReservation: what a rollout launches first has to fit, also where the
// group alone knows of the reservation; pools that share one are added up.
func TestASurgeBesideAReservation(t *testing.T) {
	roll := func(g observed.Group, preferences intent.Refresh, pools ...intent.Pool) Request {
		p := creation([]string{"subnet-a"}, pools...)
		p.Input.State.Groups = map[string]observed.Group{g.Name: g}
		p.Steps = nil
		for i := range pools {
			p.Steps = append(p.Steps, step.Step{Verb: step.Rollout, Pool: pools[i].Key.String(), Do: step.StartRefresh{Group: g.Name, Preferences: preferences}})
		}
		return p
	}
	group := observed.Group{Name: "web", DesiredCapacity: 3}
	group.Options.CapacityReservationSpecification = &intent.GroupReservation{CapacityReservationPreference: "capacity-reservations-only", CapacityReservationTarget: &intent.GroupReservationTarget{CapacityReservationIDs: []string{"cr-1"}}}
	full := []Reservation{{ID: "cr-1", Type: "m5.large", Zone: "eu-west-1a"}}
	twice, first := intent.Refresh{MinHealthyPercentage: percent(100), MaxHealthyPercentage: percent(200)}, intent.Refresh{MinHealthyPercentage: percent(66), MaxHealthyPercentage: percent(100)}
	const short = "warning capacity-short AWSMachinePool default/web spec.refreshPreferences: the pool's machines run in reserved capacity alone (cr-1), which has room for 0, and the plan wants 3 more: " + cannotBegin
	f := newFake()
	f.reserved = full
	if d := cmp.Diff([]string{short}, ask(f, roll(group, twice, webPool()))); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if n := f.counts()["ec2:DescribeCapacityReservations"]; n != 1 {
		t.Errorf("%d calls", n)
	}
	if got := ask(f, roll(group, first, webPool())); len(got) > 0 {
		t.Errorf("machines that end first: %v", got)
	}
	second := webPool()
	second.Key.Name, second.MachinePool.Name, second.Infrastructure.Name = "web2", "web2", "web2"
	f.reserved[0].Free = 4
	if d := cmp.Diff([]string{"warning capacity-short MachinePool default/web2 spec.replicas: the pool's machines run in reserved capacity alone (cr-1), which has room for 4, and the plan wants 6 more, with the 3 of pools before it: AWS launches only some"},
		ask(f, roll(group, twice, webPool(), second))); d != "" {
		t.Errorf("two pools (-want +got):\n%s", d)
	}
	f.fails["ec2:DescribeCapacityReservations"] = &observed.Error{Kind: observed.Denied, Service: "ec2", Operation: "DescribeCapacityReservations"}
	if d := cmp.Diff([]string{"info preflight-unasked  : weir does not know for everything that the manifests name whether AWS accepts it: the role may not call ec2:DescribeCapacityReservations"}, ask(f, roll(group, twice, webPool()))); d != "" {
		t.Errorf("denied (-want +got):\n%s", d)
	}
}

// TestARolloutOfANodegroupAsksForItsZones: as that of a group does.
func TestARolloutOfANodegroupAsksForItsZones(t *testing.T) {
	pool, f := webPool(), newFake()
	asNodegroup(&pool)
	pool.LaunchTemplate.Data.InstanceType, pool.Nodegroup.UpdateConfig.UpdateStrategy = "p5.48xlarge", "MINIMAL"
	p := creation([]string{"subnet-a", "subnet-b"}, pool)
	p.Steps = []step.Step{{Verb: step.Rollout, Pool: "default/web", Do: step.UpdateNodegroupVersion{}}}
	p.Followed = false
	if d := cmp.Diff([]string{"warning not-offered AWSManagedMachinePool default/web spec.subnetIDs: in eu-west-1a AWS offers none of the pool's instance types, so no machine starts in the subnets there"}, ask(f, p)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}
