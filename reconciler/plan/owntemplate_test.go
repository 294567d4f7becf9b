package plan

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// brings makes a pool bring the launch template golden along.
func brings(pool intent.Pool, version string) intent.Pool {
	annotations := intent.Path{"metadata", "annotations"}
	pool.LaunchTemplate = nil
	pool.ForeignTemplate = &intent.ForeignTemplate{
		Lookup:    intent.Lookup{Kind: intent.TemplateByName, Name: "golden", Version: version},
		NameField: annotations.Join("node.k8s.aws/launch-template-name"), VersionField: annotations.Join("node.k8s.aws/launch-template-version"),
	}
	return pool
}

// golden is a version of the launch template that pools bring along.
func golden(version int64) *observed.ForeignTemplate {
	return &observed.ForeignTemplate{ID: "lt-golden", Name: "golden", Version: version, Latest: version, Default: 1,
		Data: intent.TemplateData{ImageID: "ami-1", InstanceType: "m5.large"}, Image: &observed.Image{ID: "ami-1", Architecture: "x86_64"}}
}

func answering(in model.Input, t *observed.ForeignTemplate) model.Input {
	in.Answers[in.Set.Pools[0].ForeignTemplate.Lookup] = observed.Answer{Template: t}
	return in
}

func TestAPoolThatBringsItsTemplate(t *testing.T) {
	m, pool := newModel(), brings(groupPool("web", "", 3), intent.LatestVersion)
	m.state.Templates["golden"] = observed.Template{ID: "lt-golden", Name: "golden", DefaultVersion: 1, LatestVersion: 4, Tags: map[string]string{observed.TagOwner: "prod", observed.TagTarget: "blue", observed.TagSource: "0123456789ab"}}
	in := answering(testInput(pool), golden(3))
	// Tags that say that it is ours change nothing.
	if n := converge(t, m, in); n != 1 || m.state.Groups["web"].Template != (observed.TemplateRef{ID: "lt-golden", Name: "golden", Version: "3"}) {
		t.Fatalf("%d passes, group %+v", n, m.state.Groups["web"].Template)
	}
	p, full := m.pass(t, in)
	s := Statuses(full, p)[0]
	if !p.Empty() || !s.Converged || s.LaunchTemplateID != "lt-golden" || s.LaunchTemplateVersion != "3" {
		t.Fatalf("steps %v, status %+v", verbs(p), s)
	}

	// Somebody makes a version: one rollout, with the field that asks for it.
	moved := answering(testInput(pool), golden(4))
	p, _ = m.pass(t, moved)
	if d := cmp.Diff([]string{"rollout auto-scaling-group web"}, verbs(p)); d != "" {
		t.Fatalf("steps (-want +got):\n%s", d)
	}
	want := []step.Change{{Field: "launchTemplate.version", From: "3", To: "4", Object: pool.Infrastructure, Path: pool.ForeignTemplate.VersionField}}
	if d := cmp.Diff(want, p.Steps[0].Changes); d != "" {
		t.Errorf("changes (-want +got):\n%s", d)
	}
	if !slices.Contains(codes(p), "template-moved") {
		t.Errorf("diagnostics %v, want template-moved", codes(p))
	}
	m.apply(p)
	if p, _ = m.pass(t, moved); !p.Empty() || slices.Contains(codes(p), "template-moved") {
		t.Errorf("after the rollout: %v, %v", verbs(p), codes(p))
	}
	for _, w := range m.writes {
		if strings.Contains(w, "LaunchTemplate") || strings.Contains(w, "DefaultVersion") {
			t.Errorf("the template was written to: %s", w)
		}
	}
}

// A moved template is drift: nothing in Git asked for it. Its cause is known
// without a look at the scaling activities.
func TestAMovedTemplateIsDrift(t *testing.T) {
	m, pool := newModel(), brings(groupPool("web", "", 3), intent.LatestVersion)
	in := answering(testInput(pool), golden(3))
	converge(t, m, in)
	p, full := m.pass(t, in)
	settled := map[string]model.LastConverged{}
	RememberConverged(settled, nil, full, p, Statuses(full, p))
	moved := answering(testInput(pool), golden(4))
	moved.Memory.Converged = settled
	p, _ = m.pass(t, moved)
	if len(p.Steps) != 1 || p.Steps[0].Drift == nil || p.Steps[0].Drift.Cause != "$Latest of the launch template golden is version 4 now" {
		t.Fatalf("steps %+v", p.Steps)
	}
	if !slices.Contains(codes(p), "drift") {
		t.Errorf("diagnostics %v", codes(p))
	}
	// A change of Git is none.
	pool.Group.DefaultCooldown = new(int32(1))
	changed := answering(testInput(pool), golden(4))
	changed.Memory.Converged = map[string]model.LastConverged{model.ConvergedKey("blue", "default/web"): {Pool: &intent.Pool{}, Answers: in.Answers}}
	if p, _ = m.pass(t, changed); slices.Contains(codes(p), "drift") {
		t.Errorf("with a change in Git: %v", codes(p))
	}
}

// Held rollouts of a foreign template are held like any other.
func TestAMovedTemplateOfAPausedPoolIsShownAndHeld(t *testing.T) {
	m, pool := newModel(), brings(groupPool("web", "", 3), intent.LatestVersion)
	converge(t, m, answering(testInput(pool), golden(3)))
	pool.Paused = true
	p, _ := m.pass(t, answering(testInput(pool), golden(4)))
	if d := cmp.Diff([]string{"rollout auto-scaling-group web held:paused"}, verbs(p)); d != "" {
		t.Errorf("steps (-want +got):\n%s", d)
	}
}

func TestAFailedRolloutOfAForeignTemplateIsParked(t *testing.T) {
	m, pool := newModel(), brings(groupPool("web", "", 3), intent.LatestVersion)
	converge(t, m, answering(testInput(pool), golden(3)))
	m.state.Refreshes["web"] = observed.Refresh{ID: "r", Status: "Failed", Reason: "no", Template: observed.TemplateRef{ID: "lt-golden", Name: "golden", Version: "4"}}
	p, _ := m.pass(t, answering(testInput(pool), golden(4)))
	if !p.Empty() || !slices.Contains(codes(p), "rollout-failed") {
		t.Errorf("steps %v, diagnostics %v", verbs(p), codes(p))
	}
	if p, _ = m.pass(t, answering(testInput(pool), golden(5))); len(p.Steps) != 1 {
		t.Errorf("after the next version: %v, want one rollout", verbs(p))
	}
}

// A pool that goes over to somebody's template rolls once; its own becomes an
// orphan, as any resource does that Git no longer wants.
func TestFromItsOwnTemplateToAForeignOneAndBack(t *testing.T) {
	m, own := newModel(), groupPool("web", "m5.large", 2)
	converge(t, m, testInput(own))
	in := answering(testInput(brings(groupPool("web", "", 2), "3")), golden(3))
	in.Policy.Prune = model.Prune{}
	p, _ := m.pass(t, in)
	if d := cmp.Diff([]string{"rollout auto-scaling-group web"}, verbs(p)); d != "" {
		t.Fatalf("steps (-want +got):\n%s", d)
	}
	if got := p.Steps[0].Changes[0]; got.Field != "launchTemplate.name" || got.From != "web" || got.To != "golden" {
		t.Errorf("change %+v", got)
	}
	converge(t, m, in)
	p, _ = m.pass(t, in)
	if !slices.Contains(codes(p), "orphan") {
		t.Errorf("diagnostics %v, want orphan", codes(p))
	}
	if n := converge(t, m, testInput(own)); n != 1 || m.state.Groups["web"].Template.Name != "web" {
		t.Errorf("back: %d passes, template %+v", n, m.state.Groups["web"].Template)
	}
}

func TestANodegroupWithAForeignTemplate(t *testing.T) {
	pool := brings(nodegroupPool("web", 2), intent.DefaultVersion)
	pool.Nodegroup.AMIType = ""
	m, in := newModel(), answering(testInput(pool), golden(1))
	converge(t, m, in)
	got := m.state.Nodegroups[observed.NodegroupName{Cluster: "c", Name: "web"}]
	if got.Template != (observed.TemplateRef{ID: "lt-golden", Name: "golden", Version: "1"}) || got.AMIType != "" || got.Version != "" {
		t.Fatalf("nodegroup %+v", got)
	}
	p, _ := m.pass(t, answering(testInput(pool), golden(2)))
	if d := cmp.Diff([]string{"rollout nodegroup web"}, verbs(p)); d != "" {
		t.Fatalf("steps (-want +got):\n%s", d)
	}
	if got := p.Steps[0].Changes; len(got) != 1 || got[0].From != "1" || got[0].To != "2" || got[0].Path.String() != `metadata.annotations["node.k8s.aws/launch-template-version"]` {
		t.Errorf("changes %+v", got)
	}
	other := golden(2)
	other.ID, other.Name = "lt-other", "other"
	p, _ = m.pass(t, answering(testInput(pool), other))
	if !p.Empty() || !slices.Contains(codes(p), "nodegroup-immutable") {
		t.Errorf("another template: %v, %v", verbs(p), codes(p))
	}
}

// The template's content must fit the pool; else weir holds the whole pool.
func TestForeignTemplatesThatCannotBeUsed(t *testing.T) {
	yes := true
	group := func(change func(*intent.Group)) intent.Pool {
		p := groupPool("web", "", 1)
		change(p.Group)
		return p
	}
	nodegroup := func(change func(*intent.Nodegroup)) intent.Pool {
		p := nodegroupPool("web", 1)
		p.Nodegroup.AMIType = ""
		change(p.Nodegroup)
		return p
	}
	as := func(*intent.Group) {}
	like := func(*intent.Nodegroup) {}
	image := func(v *observed.ForeignTemplate) { v.Image, v.Data.ImageID = nil, "" }
	shows := func(state string) func(v *observed.ForeignTemplate) {
		return func(v *observed.ForeignTemplate) {
			v.Data.MetadataOptions = &intent.MetadataOptions{InstanceMetadataTags: state}
			v.Data.TagSpecifications = []intent.TemplateTagSpecification{{ResourceType: "instance", Tags: []intent.Tag{{Key: "Name"}, {Key: "kubernetes.io/cluster/c"}}}}
		}
	}
	tests := map[string]struct {
		pool   intent.Pool
		change func(*observed.ForeignTemplate)
		want   string // a part of the message, "" for usable
		field  string // "" for the key that names the template
	}{
		"as it is":            {pool: group(as)},
		"no image":            {pool: group(as), change: image, want: "names no image"},
		"no instance type":    {pool: group(as), change: func(v *observed.ForeignTemplate) { v.Data.InstanceType = "" }, want: "names no instance type"},
		"types by attributes": {pool: group(as), change: func(v *observed.ForeignTemplate) { v.Data.InstanceType, v.Requirements = "", true }},
		"types in overrides": {pool: group(func(g *intent.Group) {
			g.MixedInstancesPolicy = &intent.MixedInstances{Overrides: []intent.Override{{InstanceType: "m5.large"}}}
		}), change: func(v *observed.ForeignTemplate) { v.Data.InstanceType = "" }},
		"spot": {pool: group(as), change: func(v *observed.ForeignTemplate) {
			v.Data.InstanceMarketOptions = &intent.MarketOptions{MarketType: "spot"}
		}},
		"spot beside a policy": {pool: group(func(g *intent.Group) { g.MixedInstancesPolicy = &intent.MixedInstances{} }), change: func(v *observed.ForeignTemplate) {
			v.Data.InstanceMarketOptions = &intent.MarketOptions{MarketType: "spot"}
		}, want: "spot instances"},
		"a rollback to a parameter":           {pool: group(func(g *intent.Group) { g.Refresh.AutoRollback = &yes }), change: func(v *observed.ForeignTemplate) { v.Data.ImageID = "resolve:ssm:/x" }, want: "an SSM parameter"},
		"a rollback to an image":              {pool: group(func(g *intent.Group) { g.Refresh.AutoRollback = &yes })},
		"tags that metadata cannot show":      {pool: group(as), change: shows("enabled"), want: "kubernetes.io/cluster/c"},
		"tags that it does not show":          {pool: group(as), change: shows("disabled")},
		"a nodegroup and such tags":           {pool: nodegroup(like), change: shows("enabled"), want: "kubernetes.io/cluster/c"},
		"a nodegroup":                         {pool: nodegroup(like)},
		"a nodegroup with an image of EKS":    {pool: nodegroup(like), change: image},
		"a nodegroup and an instance profile": {pool: nodegroup(like), change: func(v *observed.ForeignTemplate) { v.Data.IamInstanceProfile = &intent.InstanceProfile{Name: "p"} }, want: "an instance profile"},
		"a nodegroup and spot": {pool: nodegroup(like), change: func(v *observed.ForeignTemplate) {
			v.Data.InstanceMarketOptions = &intent.MarketOptions{MarketType: "spot"}
		}, want: "capacity type decides"},
		"a nodegroup and hibernation": {pool: nodegroup(like), change: func(v *observed.ForeignTemplate) {
			v.Data.HibernationOptions = &intent.HibernationOptions{Configured: &yes}
		}, want: "hibernation"},
		"a nodegroup and a shutdown behavior": {pool: nodegroup(like), change: func(v *observed.ForeignTemplate) { v.Data.InstanceInitiatedShutdownBehavior = "stop" }, want: "shutdown"},
		"a nodegroup and a subnet": {pool: nodegroup(like), change: func(v *observed.ForeignTemplate) {
			v.Data.NetworkInterfaces = []intent.NetworkInterface{{SubnetID: "subnet-1"}}
		}, want: "a subnet"},
		"two instance types":                {pool: nodegroup(func(n *intent.Nodegroup) { n.InstanceType = "m5.large" }), want: "instance type m5.large", field: "spec.instanceType"},
		"one instance type, the pool's":     {pool: nodegroup(func(n *intent.Nodegroup) { n.InstanceType = "m5.large" }), change: func(v *observed.ForeignTemplate) { v.Data.InstanceType = "" }},
		"amiType beside an image":           {pool: nodegroup(func(n *intent.Nodegroup) { n.AMIType = "AL2023_x86_64_STANDARD" }), want: "no amiType with an image", field: "spec.amiType"},
		"amiType without one":               {pool: nodegroup(func(n *intent.Nodegroup) { n.AMIType = "AL2023_x86_64_STANDARD" }), change: image},
		"a release version beside an image": {pool: nodegroup(func(n *intent.Nodegroup) { n.ReleaseVersion = "1.33.0-1" }), want: "no release version", field: "spec.amiVersion"},
		"a custom image that is not there":  {pool: nodegroup(func(n *intent.Nodegroup) { n.AMIType = "CUSTOM" }), change: image, want: "spec.amiType is CUSTOM", field: "spec.amiType"},
		"a custom image":                    {pool: nodegroup(func(n *intent.Nodegroup) { n.AMIType = "CUSTOM" })},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			v := golden(3)
			if tt.change != nil {
				tt.change(v)
			}
			m := newModel()
			p, _ := m.pass(t, answering(testInput(brings(tt.pool, "3")), v))
			i := slices.Index(codes(p), "template-not-usable")
			if tt.want == "" {
				if i >= 0 || p.Empty() {
					t.Errorf("steps %v, diagnostics %v", verbs(p), p.Diagnostics)
				}
				return
			}
			if i < 0 || !p.Empty() {
				t.Fatalf("steps %v, diagnostics %v", verbs(p), p.Diagnostics)
			}
			field := tt.field
			if field == "" {
				field = `metadata.annotations["node.k8s.aws/launch-template-name"]`
			}
			if d := p.Diagnostics[i]; !strings.Contains(d.Summary, tt.want) || d.Field != field {
				t.Errorf("%q at %s, want %q at %s", d.Summary, d.Field, tt.want, field)
			}
		})
	}
}

func TestAnUnansweredForeignTemplateBlocksItsPool(t *testing.T) {
	m, pool := newModel(), brings(groupPool("web", "", 3), "3")
	in := testInput(pool)
	if p, _ := m.pass(t, in); !p.Empty() || !slices.Contains(codes(p), "lookup-unanswered") {
		t.Errorf("not answered: %v, %v", verbs(p), codes(p))
	}
	in.Answers[pool.ForeignTemplate.Lookup] = observed.Answer{Code: "architecture-mismatch", Problem: "no"}
	p, _ := m.pass(t, in)
	if !p.Empty() || p.Diagnostics[0].Code != "architecture-mismatch" || p.Diagnostics[0].Field != `metadata.annotations["node.k8s.aws/launch-template-name"]` {
		t.Errorf("refused: %v, %v", verbs(p), p.Diagnostics)
	}
}

// perArchitecture is a pool with a launch template for each architecture, and
// what there is of the two.
func perArchitecture(armVersion int64) (intent.Pool, model.Input) {
	pool := brings(groupPool("web", "", 2), intent.LatestVersion)
	pool.ForeignTemplate.Lookup.InstanceType = "m5.large"
	pool.Group.MixedInstancesPolicy = &intent.MixedInstances{Overrides: []intent.Override{{InstanceType: "m5.large"}, {InstanceType: "m6g.large"}}}
	arm := *pool.ForeignTemplate
	arm.Lookup.Name, arm.Lookup.InstanceType = "golden-arm", "m6g.large"
	arm.NameField = intent.Path{"metadata", "annotations", "node.k8s.aws/launch-template-name.arm64"}
	pool.ForeignOverrides = []intent.ForeignTemplate{arm}
	in := answering(testInput(pool), golden(3))
	in.Answers[arm.Lookup] = observed.Answer{Template: &observed.ForeignTemplate{ID: "lt-arm", Name: "golden-arm", Version: armVersion, Latest: armVersion,
		Data: intent.TemplateData{ImageID: "ami-2"}, Image: &observed.Image{ID: "ami-2", Architecture: "arm64"}}}
	return pool, in
}

func TestATemplateForEachArchitecture(t *testing.T) {
	m := newModel()
	_, in := perArchitecture(5)
	converge(t, m, in)
	g := m.state.Groups["web"]
	want := []intent.Override{{InstanceType: "m5.large"}, {InstanceType: "m6g.large", LaunchTemplate: &intent.LaunchTemplateSpecification{ID: "lt-arm", Name: "golden-arm", Version: "5"}}}
	if d := cmp.Diff(want, g.MixedInstancesPolicy.Overrides); d != "" {
		t.Errorf("overrides (-want +got):\n%s", d)
	}
	if g.Template.ID != "lt-golden" {
		t.Errorf("the group's template is %+v", g.Template)
	}
	// An instance of each: both run what they should.
	g.Instances[0].Type, g.Instances[1].Type = "m5.large", "m6g.large"
	g.Instances[1].Template = observed.TemplateRef{ID: "lt-arm", Name: "golden-arm", Version: "5"}
	m.state.Groups["web"] = g
	if p, _ := m.pass(t, in); !p.Empty() {
		t.Errorf("steps %v, want none", verbs(p))
	}
	// The template of one architecture moves: one rollout, of the instances of it.
	_, moved := perArchitecture(6)
	p, _ := m.pass(t, moved)
	if d := cmp.Diff([]string{"rollout auto-scaling-group web"}, verbs(p)); d != "" {
		t.Fatalf("steps (-want +got):\n%s", d)
	}
	if p.Steps[0].Instances != 1 || !slices.Contains(codes(p), "template-moved") {
		t.Errorf("%d instances, want 1; diagnostics %v", p.Steps[0].Instances, codes(p))
	}
}

func TestATemplateOfOneArchitectureThatCannotBeUsedBlocksThePool(t *testing.T) {
	m := newModel()
	pool, in := perArchitecture(5)
	in.Answers[pool.ForeignOverrides[0].Lookup].Template.Image = nil
	p, _ := m.pass(t, in)
	if !p.Empty() || p.Diagnostics[0].Code != "template-not-usable" || !strings.Contains(p.Diagnostics[0].Field, "launch-template-name.arm64") {
		t.Errorf("steps %v, diagnostics %v", verbs(p), p.Diagnostics)
	}
	in.Answers[pool.ForeignOverrides[0].Lookup] = observed.Answer{Code: "architecture-mismatch", Problem: "no"}
	p, _ = m.pass(t, in)
	if !p.Empty() || p.Diagnostics[0].Code != "architecture-mismatch" || !strings.Contains(p.Diagnostics[0].Field, "launch-template-name.arm64") {
		t.Errorf("steps %v, diagnostics %v", verbs(p), p.Diagnostics)
	}
}
