package plan

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan/model"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// TestAnApprovalLetsRunWhatFollows of it for the same pool, and nothing more.
func TestAnApprovalLetsRunWhatFollows(t *testing.T) {
	const pool = "x/web"
	body := func(name string) string { return "weir:v1:" + name + "123456789abcdef:0123456789abcdef abcdef0" }
	made := observed.TemplateRef{ID: "lt-1", Name: "web"}
	makes := func(name string) step.Step {
		return step.Step{Verb: step.Update, Resource: step.LaunchTemplate, Pool: pool, Name: "web", Do: step.CreateLaunchTemplateVersion{Template: made, Description: body(name)}}
	}
	group := func(verb step.Verb, toward string, do step.Action, fields ...string) step.Step {
		s := step.Step{Verb: verb, Resource: step.AutoScalingGroup, Pool: pool, Name: "web", Toward: toward, Do: do}
		for _, f := range fields {
			s.Changes = append(s.Changes, step.Change{Field: f})
		}
		return s
	}
	update := func(fields ...string) step.Step {
		return group(step.Update, "", step.UpdateGroup{Name: "web"}, fields...)
	}
	ending := func(fields ...string) step.Step {
		s := update(fields...)
		s.Disruptive = true
		return s
	}
	rolls := func(toward string) step.Step {
		return group(step.Rollout, toward, step.StartRefresh{Group: "web"}, "launchTemplate.version")
	}
	cancels := func(toward string) step.Step { return group(step.Rollout, toward, step.CancelRefresh{Group: "web"}) }
	writes := func(toward string, fields ...string) step.Step {
		return group(step.Update, toward, step.UpdateGroup{Name: "web", Template: &made}, append(fields, "launchTemplate.version", "mixedInstancesPolicy.overrides[0].instanceType")...)
	}
	moves := step.Step{Verb: step.Update, Resource: step.LaunchTemplate, Pool: pool, Name: "web", Do: step.SetDefaultVersion{Template: made}, Changes: []step.Change{{Field: "defaultVersion"}}}
	prunes := step.Step{Verb: step.PruneVersion, Resource: step.LaunchTemplate, Pool: pool, Name: "web", Do: step.DeleteLaunchTemplateVersions{Template: made}}
	tags := step.Step{Verb: step.Update, Resource: step.LaunchTemplate, Pool: pool, Name: "web", Do: step.TagLaunchTemplate{Template: made}, Changes: []step.Change{{Field: "tags.a"}}}
	deletes := group(step.Delete, "", step.DeleteGroup{Name: "web"})
	discards := step.Step{Verb: step.Delete, Resource: step.LaunchTemplate, Pool: pool, Name: "web", Do: step.DeleteLaunchTemplate{Template: made}}
	creates := group(step.Create, "", step.CreateGroup{}, "minSize")
	named := func(s step.Step, name string) step.Step { s.Name = name; return s }
	of := func(s step.Step, pool string) step.Step { s.Pool = pool; return s }
	shared := func(s step.Step) step.Step {
		s.LaunchConfig, s.Pools, s.Pool = "x/config", []string{"x/api", pool}, ""
		return s
	}
	hook := func(do step.Action, field string) step.Step {
		return group(step.Update, "", do, "lifecycleHooks."+field)
	}
	marks := group(step.Update, "", step.TagGroup{Group: "web", Remove: []string{observed.TagAdopted}}, "tags."+observed.TagAdopted)
	replaces := func(name string) step.Step {
		return step.Step{Verb: step.Replace, Resource: step.ManagedNodegroup, Pool: pool, Name: name, Do: step.CreateNodegroup{Nodegroup: observed.Nodegroup{NodegroupName: observed.NodegroupName{Cluster: "c", Name: name}}}}
	}
	leaves := func(name string) step.Step {
		return step.Step{Verb: step.Replace, Resource: step.ManagedNodegroup, Pool: pool, Name: name, Disruptive: true, Do: step.DeleteNodegroup{NodegroupName: observed.NodegroupName{Cluster: "c", Name: name}}}
	}
	awaits := step.Step{Verb: step.Create, Resource: step.AutoScalingGroup, Pool: pool, Name: "web"}
	cases := map[string]struct {
		approved []step.Step
		step     step.Step
		runs     bool
	}{
		"the same":                             {[]step.Step{update("minSize", "maxSize")}, update("minSize", "maxSize"), true},
		"what is left of a step":               {[]step.Step{update("minSize", "maxSize")}, update("maxSize"), true},
		"another field":                        {[]step.Step{update("minSize")}, update("minSize", "maxSize"), false},
		"another pool":                         {[]step.Step{update("minSize")}, of(update("minSize"), "x/api"), false},
		"another group of the pool":            {[]step.Step{update("minSize")}, named(update("minSize"), "other"), false},
		"machines end by it":                   {[]step.Step{update("replicas")}, ending("replicas"), false},
		"machines end by it, as approved":      {[]step.Step{ending("replicas")}, ending("replicas"), true},
		"a size, and a rollout":                {[]step.Step{update("minSize")}, rolls("t"), false},
		"a size, and a version":                {[]step.Step{update("minSize")}, makes("a"), false},
		"a size, and the default":              {[]step.Step{update("minSize")}, moves, true},
		"the default of another pool":          {[]step.Step{update("minSize")}, of(moves, "x/api"), false},
		"a unit of capacity after its policy":  {[]step.Step{rolls("t")}, update("autoScalingGroup.desiredCapacityType"), true},
		"a unit of capacity":                   {[]step.Step{update("minSize")}, update("autoScalingGroup.desiredCapacityType"), false},
		"a size, and a deletion":               {[]step.Step{update("minSize")}, deletes, false},
		"a size, and the group set to another": {[]step.Step{update("minSize")}, writes("t", "minSize"), false},
		"the same rollout":                     {[]step.Step{makes("a"), rolls("t")}, rolls("t"), true},
		"the same version":                     {[]step.Step{makes("a"), rolls("t")}, makes("a"), true},
		"another version":                      {[]step.Step{makes("a"), rolls("t")}, makes("b"), false},
		"a rollout to it":                      {[]step.Step{makes("a"), rolls("t")}, rolls("u"), false},
		"a refresh that is in the way":         {[]step.Step{makes("a"), rolls("t")}, cancels("t"), true},
		"a refresh, in favour of another":      {[]step.Step{makes("a"), rolls("t")}, cancels("u"), false},
		"a rollout after another has ended":    {[]step.Step{makes("a"), cancels("t")}, rolls("t"), true},
		"another after another has ended":      {[]step.Step{makes("a"), cancels("t")}, rolls("u"), false},
		"a rollout that replaces nothing":      {[]step.Step{makes("a"), rolls("t")}, writes("t"), true},
		"the default after a rollout":          {[]step.Step{rolls("t")}, moves, true},
		"the default after a write":            {[]step.Step{writes("t")}, moves, true},
		"the default of a shared template":     {[]step.Step{rolls("t")}, shared(moves), true},
		"its deletion":                         {[]step.Step{rolls("t")}, shared(discards), false},
		"a write that has to roll":             {[]step.Step{writes("t")}, rolls("t"), false},
		"a pin":                                {[]step.Step{rolls("t")}, writes(""), true},
		"versions that go for a new one":       {[]step.Step{makes("a"), rolls("t")}, prunes, true},
		"versions that go for nothing":         {[]step.Step{rolls("t")}, prunes, false},
		"tags, and others":                     {[]step.Step{rolls("t")}, tags, false},
		"a template after its group":           {[]step.Step{deletes}, discards, true},
		"another group":                        {[]step.Step{deletes}, named(deletes, "other"), false},
		"a group after its template":           {[]step.Step{discards}, deletes, false},
		"a setting of a new group":             {[]step.Step{creates}, update("metrics"), true},
		"a new group that loses machines":      {[]step.Step{creates}, ending("replicas"), false},
		"a new group that rolls":               {[]step.Step{creates}, rolls("t"), false},
		"a new group again":                    {[]step.Step{creates}, creates, true},
		"a group that is gone":                 {[]step.Step{update("minSize"), rolls("t")}, creates, false},
		"a hook made anew":                     {[]step.Step{hook(step.DeleteHook{}, "h"), hook(step.PutHook{}, "h.roleARN")}, hook(step.PutHook{}, "h"), true},
		"another hook":                         {[]step.Step{hook(step.PutHook{}, "h")}, hook(step.DeleteHook{}, "g"), false},
		"the mark of an adoption":              {[]step.Step{update("minSize")}, marks, true},
		"that of another pool":                 {[]step.Step{update("minSize")}, of(marks, "x/api"), false},
		"a replacement":                        {[]step.Step{replaces("web-1"), leaves("web")}, replaces("web-1"), true},
		"another replacement":                  {[]step.Step{replaces("web-1"), leaves("web")}, replaces("web-2"), false},
		"the replaced one":                     {[]step.Step{replaces("web-1"), leaves("web")}, leaves("web"), true},
		"the replacement itself":               {[]step.Step{replaces("web-1"), leaves("web")}, leaves("web-1"), false},
		"the group behind a replacement":       {[]step.Step{replaces("web-1"), leaves("web")}, named(update("tags.a"), "eks-web-1"), true},
		"a cluster that is there":              {[]step.Step{awaits}, creates, true},
		"machines that were there":             {[]step.Step{awaits}, rolls("t"), false},
		"nothing":                              {nil, marks, false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			g := GrantOf(&Plan{Steps: tc.approved})
			for _, s := range tc.approved {
				g.Exact = false
				if !allows(&g, s) {
					t.Errorf("%s %s %s was approved", s.Verb, s.Resource, s.Name)
				}
			}
			if g.Exact = false; allows(&g, tc.step) != tc.runs {
				t.Errorf("runs: %t, want %t", !tc.runs, tc.runs)
			}
			if g.Exact = true; !allows(&g, tc.step) {
				t.Error("it is a step of the approved plan itself")
			}
		})
	}
	rows := follows
	defer func() { follows = rows }()
	for i, row := range rows {
		follows = slices.Delete(slices.Clone(rows), i, i+1)
		needed := false
		for _, tc := range cases {
			g := GrantOf(&Plan{Steps: tc.approved})
			g.Exact = false
			needed = needed || tc.runs && !allows(&g, tc.step)
		}
		if !needed {
			t.Errorf("nothing here runs because %s", row.why)
		}
	}
}

// TestOneApprovalIsEnough for whatever Git wants, however often the process ends in between.
func TestOneApprovalIsEnough(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, pools := newModel(), map[string]intent.Pool{}
		for range rapid.IntRange(1, 4).Draw(t, "commits") {
			for range rapid.IntRange(1, 3).Draw(t, "edits") {
				name := rapid.SampledFrom([]string{"p0", "p1", "p2", "n0", "n1"}).Draw(t, "pool")
				// Not to none: a version that only those machines ran is then no longer known, and is made
				// anew, which is approved by itself.
				replicas := rapid.Int32Range(1, 6).Draw(t, "replicas")
				switch p := groupPool(name, rapid.SampledFrom([]string{"m5.large", "m5.xlarge"}).Draw(t, "type"), replicas); {
				case rapid.IntRange(0, 5).Draw(t, "drop") == 0:
					delete(pools, name)
				case name[0] == 'n':
					p = nodegroupPool(name, replicas)
					p.AllowReplace = true
					p.Nodegroup.CapacityType = rapid.SampledFrom([]string{"ON_DEMAND", "SPOT"}).Draw(t, "capacity")
					p.Nodegroup.Labels = map[string]string{"a": fmt.Sprint(replicas)}
					pools[name] = p
				default:
					p.Group.Refresh.Disable = rapid.Bool().Draw(t, "disable")
					p.KeepVersions = rapid.Int32Range(1, 3).Draw(t, "keep")
					if rapid.Bool().Draw(t, "hook") {
						p.Group.LifecycleHooks = []intent.LifecycleHook{{Name: "h", LifecycleTransition: "autoscaling:EC2_INSTANCE_TERMINATING", NotificationMetadata: rapid.SampledFrom([]string{"", "a"}).Draw(t, "metadata")}}
					}
					p.Group.SuspendedProcesses = []intent.Process{{Name: "AZRebalance", Suspended: rapid.Bool().Draw(t, "suspend")}}
					pools[name] = p
				}
			}
			var list []intent.Pool
			for _, n := range slices.Sorted(maps.Keys(pools)) {
				list = append(list, pools[n])
			}
			in := testInput(list...)
			in.Policy.Gates = model.Gates{AsReviewed: true}
			first, _ := m.pass(t, in)
			grant := GrantOf(first)
			grant.Exact = false
			in.Policy.Gates.Grant = &grant
			for n := 0; ; n++ {
				p, _ := m.pass(t, in)
				for _, s := range p.Steps {
					if s.Held == step.HeldApproval {
						t.Fatalf("held: %s %s %s: %s\napproved: %v", s.Verb, s.Resource, s.Name, s.Reason, first.Steps)
					}
				}
				if p.Runnable() == 0 {
					break
				}
				if n == 40 {
					t.Fatalf("no end: %v", verbs(p))
				}
				if ends := rapid.IntRange(0, len(p.Steps)).Draw(t, "ends after"); n < 20 {
					p.Steps = p.Steps[:ends]
				}
				m.apply(p)
			}
		}
	})
}
