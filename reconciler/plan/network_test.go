package plan

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/render/intent"
)

// TestASecondVPCKeepsPoolsThatRun: they stay where they are, and are changed as ever;
// one that is new has to say where it goes.
func TestASecondVPCKeepsPoolsThatRun(t *testing.T) {
	web := func(instanceType string) intent.Pool { return inCoreGroups(groupPool("web", instanceType, 2)) }
	of := func(pools ...intent.Pool) model.Input {
		in := testInput(pools...)
		in.Answers[coreGroups] = observed.Answer{SecurityGroups: []string{"sg-default"}}
		return in
	}
	m, in := newModel(), of(web("m5.large"))
	converge(t, m, in)
	lapse := func(in model.Input) model.Input {
		pool := &in.Set.Pools[0]
		for _, l := range []intent.Lookup{pool.Group.Subnets, coreGroups} {
			a := in.Answers[l]
			a.Code, a.Problem, a.Lapsed = "network-unknown", "it cannot be said", slices.Concat(m.state.Groups["web"].SubnetIDs, []string{"subnet-z"})
			in.Answers[l] = a
		}
		return in
	}
	p, full := m.pass(t, lapse(of(web("m5.large"))))
	if !p.Empty() || p.Diagnostics.HasErrors() || !slices.Contains(codes(p), "default-network") || !Statuses(full, p)[0].Converged {
		t.Errorf("at rest: %v, %v", verbs(p), p.Diagnostics)
	}
	p, _ = m.pass(t, lapse(of(web("m5.xlarge"))))
	if d := cmp.Diff([]string{"update launch-template web", "rollout auto-scaling-group web"}, verbs(p)); d != "" {
		t.Errorf("a change (-want +got):\n%s", d)
	}
	p, _ = m.pass(t, lapse(of(web("m5.large"), groupPool("xyz", "m5.large", 1))))
	if !p.Empty() || p.Summary != (Summary{Unchanged: 1}) || !p.Diagnostics.HasErrors() {
		t.Errorf("a new pool: %v, %v", verbs(p), p.Diagnostics)
	}
	g := m.state.Groups["web"]
	g.SubnetIDs = []string{"subnet-elsewhere"}
	m.state.Groups["web"] = g
	in = lapse(of(web("m5.large")))
	for l, a := range in.Answers {
		if a.Lapsed != nil {
			a.Lapsed = []string{"subnet-z"}
			in.Answers[l] = a
		}
	}
	if p, _ = m.pass(t, in); !p.Empty() || !p.Diagnostics.HasErrors() {
		t.Errorf("a pool of another VPC: %v, %v", verbs(p), p.Diagnostics)
	}
}

var coreGroups = intent.Lookup{Kind: intent.CoreSecurityGroups}

// inCoreGroups gives a pool's machines the security groups of their cluster.
func inCoreGroups(pool intent.Pool) intent.Pool {
	pool.LaunchTemplate.SecurityGroups = []intent.Lookup{coreGroups}
	return pool
}

func withTemplate(pool intent.Pool) intent.Pool {
	pool.LaunchTemplate = &intent.LaunchTemplate{Name: pool.Key.Name, Data: intent.TemplateData{InstanceType: "m5.large"}}
	return pool
}

// TestAGroupGivenByIDIsBlamedWhereItStands, and what is not known of one blames nobody.
func TestAGroupGivenByIDIsBlamedWhereItStands(t *testing.T) {
	for name, tt := range map[string]struct {
		vpc   []string
		data  intent.TemplateData
		field string
	}{
		"elsewhere": {[]string{"vpc-b"}, intent.TemplateData{SecurityGroupIDs: []string{"sg-a", "sg-x"}}, "spec.awsLaunchTemplate.additionalSecurityGroups[1].id"},
		"interface": {[]string{"vpc-b"}, intent.TemplateData{NetworkInterfaces: []intent.NetworkInterface{{Groups: []string{"sg-x"}}}}, ""},
		"here":      {[]string{"vpc-a"}, intent.TemplateData{SecurityGroupIDs: []string{"sg-x"}}, "none"},
		"unknown":   {nil, intent.TemplateData{SecurityGroupIDs: []string{"sg-x"}}, "none"},
	} {
		for _, pool := range []intent.Pool{groupPool("web", "m5.large", 2), withTemplate(nodegroupPool("ng", 1))} {
			tt.data.InstanceType = "m5.large"
			pool.LaunchTemplate.Data = tt.data
			in := testInput(pool)
			in.Answers[intent.Lookup{Kind: intent.SecurityGroupByID, Name: "sg-x"}] = observed.Answer{SecurityGroups: []string{"sg-x"}, VPCs: tt.vpc}
			a := in.Answers[model.SubnetsOf(&pool)]
			a.VPCs = []string{"vpc-a"}
			in.Answers[model.SubnetsOf(&pool)] = a
			p, _ := newModel().pass(t, in)
			if tt.field == "none" {
				if slices.Contains(codes(p), "network-mismatch") {
					t.Errorf("%s: %v", name, p.Diagnostics)
				}
				continue
			}
			if len(p.Diagnostics) != 1 || p.Diagnostics[0].Code != "network-mismatch" || p.Diagnostics[0].Field != tt.field || !p.Empty() ||
				p.Diagnostics[0].Summary != "the pool's subnets are in vpc-a, and its security group sg-x is in vpc-b" {
				t.Errorf("%s: %v %+v", name, verbs(p), p.Diagnostics)
			}
		}
	}
}

func TestSubnetsAndSecurityGroupsAreOfOneVPC(t *testing.T) {
	for name, tt := range map[string]struct {
		subnets, groups []string
		want            bool
	}{
		"one":                {[]string{"vpc-a"}, []string{"vpc-a"}, false},
		"not known":          {[]string{"vpc-a"}, nil, false},
		"two":                {[]string{"vpc-a"}, []string{"vpc-b"}, true},
		"some are of others": {[]string{"vpc-a"}, []string{"vpc-a", "vpc-b"}, true},
		"subnets of several": {[]string{"vpc-a", "vpc-b"}, []string{"vpc-a"}, true},
	} {
		for _, pool := range []intent.Pool{groupPool("web", "m5.large", 2), withTemplate(nodegroupPool("ng", 1))} {
			pool = inCoreGroups(pool)
			in := testInput(pool)
			in.Answers[coreGroups] = observed.Answer{SecurityGroups: []string{"sg-default"}}
			for l, vpcs := range map[intent.Lookup][]string{model.SubnetsOf(&pool): tt.subnets, coreGroups: tt.groups} {
				a := in.Answers[l]
				a.VPCs = vpcs
				in.Answers[l] = a
			}
			p, _ := newModel().pass(t, in)
			if got := slices.Equal(codes(p), []string{"network-mismatch"}) && p.Empty(); got != tt.want {
				t.Errorf("%s, %s: got %v, %v", name, pool.Key, codes(p), verbs(p))
			}
		}
	}
}
