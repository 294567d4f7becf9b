package accept

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/plan"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

var infra = intent.ObjectRef{Kind: "AWSMachinePool", Name: "web"}

func update(drift bool, changes ...step.Change) step.Step {
	s := step.Step{Verb: step.Update, Resource: step.AutoScalingGroup, Pool: "default/web", Name: "web", Changes: changes}
	if drift {
		s.Drift = &step.Drift{}
	}
	return s
}

func size(field string, from int) step.Change {
	return step.Change{Field: field, From: from, To: 1, Object: infra, Path: intent.Path{"spec", field}}
}

// TestFind: what is chosen is found, of what the plan changes, and no more.
func TestFind(t *testing.T) {
	set := &intent.Set{Pools: []intent.Pool{{Key: intent.Key{Namespace: "default", Name: "web"}, Infrastructure: infra, Group: &intent.Group{Name: "web", MinSize: 1, MaxSize: 1}}}}
	seen := &observed.State{Groups: map[string]observed.Group{"web": {Name: "web", MinSize: 2, MaxSize: 7}}}
	p := &plan.Plan{Target: "prod", Steps: []step.Step{
		update(true, size("maxSize", 7)), update(false, size("minSize", 2)),
		{Verb: step.Delete, Resource: step.AutoScalingGroup, Pool: "default/web", Name: "web", Changes: []step.Change{size("other", 1)}},
	}}
	for name, c := range map[string]struct {
		Choice
		want string
	}{
		"all":                  {Choice{}, "maxSize minSize"},
		"a pool by its name":   {Choice{Pools: []string{"web"}}, "maxSize minSize"},
		"another pool":         {Choice{Pools: []string{"other/web"}}, ""},
		"a field":              {Choice{Fields: []string{"spec.minSize"}}, "minSize"},
		"a field's beginning":  {Choice{Fields: []string{"min"}}, ""},
		"what has drifted":     {Choice{Drifted: Drifted(p)}, "maxSize"},
		"nothing, none did so": {Choice{Drifted: map[string]bool{}}, ""},
	} {
		var got []string
		for _, f := range Find("prod", set, p, seen, c.Choice) {
			got = append(got, f.Field)
		}
		if diff := cmp.Diff(c.want, strings.Join(slices.Sorted(slices.Values(got)), " ")); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestChanges: pools that share an object write it once, and one that wants another value says so.
func TestChanges(t *testing.T) {
	field := func(pool string, value any) Field {
		f := Field{Target: "prod", Pool: pool, Field: "instanceType", Value: value}
		f.change.Place, f.change.Object, f.change.Field, f.change.Value = "prod", infra, intent.Path{"spec", "instanceType"}, value
		return f
	}
	fields := []Field{field("a", "m5.large"), field("b", "m5.large"), field("c", "m6i.large")}
	if got := Changes(fields); len(got) != 1 || got[0].Value != "m5.large" {
		t.Errorf("%+v", got)
	}
	if fields[1].Left != "" || !strings.Contains(fields[2].Left, "it shares AWSMachinePool") || !strings.Contains(fields[2].Left, "with a, which has a different value") {
		t.Errorf("%+v", fields)
	}
}

// TestProve tells what comes with an edit, and what it did not reach.
func TestProve(t *testing.T) {
	fields := []Field{{Target: "prod", Pool: "default/web", Field: "maxSize", Value: 7}, {Target: "prod", Pool: "default/web", Field: "minSize", Value: 2}}
	for i := range fields {
		fields[i].change.Object, fields[i].change.Field = infra, intent.Path{"spec", fields[i].Field}
	}
	before := &plan.Plan{Target: "prod", Steps: []step.Step{update(true, size("maxSize", 7), size("minSize", 2), size("other", 1))}}
	after := &plan.Plan{Target: "prod", Steps: []step.Step{
		update(true, size("minSize", 2), size("other", 1)),
		update(false, step.Change{Field: `tags["weir.dev/adopted"]`, From: "x"}),
		{Verb: step.Update, Resource: step.LaunchTemplate, Pool: "default/web", Name: "web", Changes: []step.Change{{Field: "additionalTags.team", From: "red", To: "blue"}}},
		{Verb: step.Rollout, Resource: step.AutoScalingGroup, Pool: "default/web", Name: "web", Reason: "2 of 2 instances do not run version 2"},
	}}
	want := []string{"update launch-template web: additionalTags.team: red → blue", "rollout auto-scaling-group web: 2 of 2 instances do not run version 2"}
	if diff := cmp.Diff(want, Prove(fields, before, after)); diff != "" {
		t.Error(diff)
	}
	if fields[0].Left != "" || !strings.Contains(fields[1].Left, "weir would still change minSize: 2 → 1") {
		t.Errorf("%+v", fields)
	}
}
