package plan

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

// A pool's status does not depend on AWS's order of instances.
func TestStatusTellsBoundsInstancesAndVersions(t *testing.T) {
	pool := groupPool("web", "m5.large", 3)
	in := testInput(pool)
	in.State = observedNothing(in)
	made := func(id, zone, version, state string) observed.Instance {
		return observed.Instance{ID: id, Zone: zone, Type: "m5.large", LifecycleState: state, Health: "Healthy", Template: observed.TemplateRef{Version: version}}
	}
	instances := []observed.Instance{
		made("i-1", "us-east-1b", "4", "InService"), made("i-2", "us-east-1a", "4", "InService"),
		made("i-3", "us-east-1a", "4", "InService"), made("i-4", "us-east-1a", "5", "Pending"), made("i-5", "us-east-1a", "$Latest", "InService"),
	}
	name := pool.LaunchTemplate.Name
	in.State.Templates[name] = observed.Template{ID: "lt-1", Name: name, DefaultVersion: 4, LatestVersion: 5, Versions: map[int64]observed.TemplateVersion{
		3: {Number: 3, Description: "made by hand"},
		4: {Number: 4, Description: "weir:v1:0123456789abcdef:0123456789abcdef 9c1f0d2 bigger disks"},
		5: {Number: 5, Description: "weir:v1:0123456789abcdef:0123456789abcdef 4be91a7"},
	}}
	want := []InstanceCount{
		{Zone: "us-east-1a", Type: "m5.large", State: "InService", Health: "Healthy", Count: 1},
		{Zone: "us-east-1a", Type: "m5.large", TemplateVersion: "4", State: "InService", Health: "Healthy", Count: 2},
		{Zone: "us-east-1a", Type: "m5.large", TemplateVersion: "5", State: "Pending", Health: "Healthy", Count: 1},
		{Zone: "us-east-1b", Type: "m5.large", TemplateVersion: "4", State: "InService", Health: "Healthy", Count: 1},
	}
	for range 2 {
		in.State.Groups["web"] = observed.Group{Name: "web", MinSize: 1, MaxSize: 9, DesiredCapacity: 5, Instances: instances}
		got := Statuses(in, &Plan{})[0]
		if got.MinReplicas != 1 || got.MaxReplicas != 9 {
			t.Errorf("bounds are %d and %d", got.MinReplicas, got.MaxReplicas)
		}
		if diff := cmp.Diff(want, CountInstances(got.Instances)); diff != "" {
			t.Errorf("instances (-want +got):\n%s", diff)
		}
		versions := []VersionNote{{Number: 5, Revision: "4be91a7"}, {Number: 4, Revision: "9c1f0d2", Subject: "bigger disks", Default: true}, {Number: 3}}
		if diff := cmp.Diff(versions, got.TemplateVersions); diff != "" {
			t.Errorf("versions (-want +got):\n%s", diff)
		}
		slices.Reverse(instances)
	}
	// A group that counts in vCPUs has no bounds in instances.
	in.State.Groups["web"] = observed.Group{Name: "web", MinSize: 8, MaxSize: 64, DesiredCapacity: 16, Instances: instances}
	weighted := in.State.Groups["web"]
	weighted.Options.DesiredCapacityType = "vcpu"
	in.State.Groups["web"] = weighted
	if got := Statuses(in, &Plan{})[0]; got.MaxReplicas != 0 {
		t.Errorf("the bound of a group that counts in vCPUs is told as %d instances", got.MaxReplicas)
	}
}

// The list has every instance of the pool once, with the reasons that keep it.
func TestStatusListsInstances(t *testing.T) {
	pool := groupPool("web", "m5.large", 3)
	name := pool.LaunchTemplate.Name
	current := observed.TemplateRef{ID: "lt-1", Name: name, Version: "5"}
	of := func(version, state string) observed.Instance {
		return observed.Instance{ID: "i-1", Zone: "us-east-1a", LifecycleState: state, Template: observed.TemplateRef{ID: "lt-1", Name: name, Version: version}}
	}
	arm := &intent.MixedInstances{Overrides: []intent.Override{
		{InstanceType: "m5.large"}, {InstanceType: "m7g.large", LaunchTemplate: &intent.LaunchTemplateSpecification{ID: "lt-arm", Version: "$Latest"}},
	}}
	with := func(i observed.Instance, edit func(*observed.Instance)) observed.Instance { edit(&i); return i }
	for _, c := range []struct {
		name     string
		instance observed.Instance
		group    observed.TemplateRef
		refresh  observed.Refresh
		want     Instance
	}{
		{"current", of("5", "InService"), current, observed.Refresh{}, Instance{TemplateVersion: "5", ImageID: "ami-5"}},
		{"old", of("3", "InService"), current, observed.Refresh{}, Instance{TemplateVersion: "3", Why: "runs template version 3, but the pool uses 5"}},
		{"old and protected", with(of("4", "InService"), func(i *observed.Instance) { i.Protected = true }), current, observed.Refresh{},
			Instance{TemplateVersion: "4", ImageID: "ami-4", Protected: true, Why: "runs template version 4, but the pool uses 5; protected from scale-in"}},
		{"refresh in progress", of("4", "InService"), observed.TemplateRef{ID: "lt-1", Name: name, Version: "4"}, observed.Refresh{ID: "r", Status: "InProgress", Template: current},
			Instance{TemplateVersion: "4", ImageID: "ami-4", Why: "runs template version 4, but the rollout uses 5"}},
		{"rollback", of("5", "InService"), observed.TemplateRef{ID: "lt-1", Name: name, Version: "4"}, observed.Refresh{ID: "r", Status: "RollbackInProgress", Template: current},
			Instance{TemplateVersion: "5", ImageID: "ami-5", Why: "runs template version 5, but the pool uses 4"}},
		{"other template", with(of("5", "InService"), func(i *observed.Instance) { i.Template = observed.TemplateRef{ID: "lt-2", Name: "old", Version: "5"} }), current, observed.Refresh{},
			Instance{TemplateVersion: "5", LaunchTemplateID: "lt-2", Why: "runs launch template lt-2, but the pool uses lt-1"}},
		{"template of an override", with(of("2", "InService"), func(i *observed.Instance) {
			i.Type, i.Template = "m7g.large", observed.TemplateRef{ID: "lt-arm", Name: "arm", Version: "2"}
		}), current, observed.Refresh{}, Instance{TemplateVersion: "2", LaunchTemplateID: "lt-arm", Type: "m7g.large"}},
		{"launch configuration", with(of("", "InService"), func(i *observed.Instance) { i.Template, i.LaunchConfiguration = observed.TemplateRef{}, "web-1" }), current, observed.Refresh{},
			Instance{LaunchConfiguration: "web-1", Why: "runs launch configuration web-1, but the pool uses a launch template"}},
		{"alias", of("5", "InService"), observed.TemplateRef{ID: "lt-1", Name: name, Version: "$Latest"}, observed.Refresh{}, Instance{TemplateVersion: "5", ImageID: "ami-5"}},
		{"image of an override", with(of("5", "InService"), func(i *observed.Instance) { i.ImageID = "ami-arm" }), current, observed.Refresh{}, Instance{TemplateVersion: "5", ImageID: "ami-arm"}},
		{"launch hook", of("5", "Pending:Wait"), current, observed.Refresh{}, Instance{TemplateVersion: "5", ImageID: "ami-5", Why: "waits for its launch lifecycle hook"}},
		{"termination hook", of("5", "Terminating:Wait"), current, observed.Refresh{}, Instance{TemplateVersion: "5", ImageID: "ami-5", Why: "waits for its termination lifecycle hook"}},
		{"standby", of("5", "Standby"), current, observed.Refresh{}, Instance{TemplateVersion: "5", ImageID: "ami-5", Why: "in standby"}},
		{"warm pool", of("5", "Warmed:Stopped"), current, observed.Refresh{}, Instance{TemplateVersion: "5", ImageID: "ami-5", Why: "in the warm pool"}},
		{"retained", of("5", "Terminating:Retained"), current, observed.Refresh{},
			Instance{TemplateVersion: "5", ImageID: "ami-5", Why: "its termination hook ended with ABANDON, so the group keeps it until somebody terminates it"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := testInput(pool)
			in.State = observedNothing(in)
			in.State.Templates[name] = observed.Template{ID: "lt-1", Name: name, DefaultVersion: 5, LatestVersion: 5, Versions: map[int64]observed.TemplateVersion{
				4: {Number: 4, Data: intent.TemplateData{ImageID: "ami-4"}}, 5: {Number: 5, Data: intent.TemplateData{ImageID: "ami-5"}},
			}}
			in.State.Groups["web"] = observed.Group{Name: "web", MaxSize: 9, DesiredCapacity: 1, Template: c.group, Instances: []observed.Instance{c.instance}, MixedInstancesPolicy: arm}
			in.State.Refreshes = map[string]observed.Refresh{"web": c.refresh}
			c.want.ID, c.want.Zone, c.want.State = "i-1", "us-east-1a", c.instance.LifecycleState
			if diff := cmp.Diff([]Instance{c.want}, Statuses(in, &Plan{})[0].Instances); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A machine that a held rollout would replace says what holds it.
func TestInstancesAwaitAHeldRollout(t *testing.T) {
	pool := groupPool("web", "m5.large", 2)
	name := pool.LaunchTemplate.Name
	of := func(id, version, state string) observed.Instance {
		return observed.Instance{ID: id, LifecycleState: state, Template: observed.TemplateRef{ID: "lt-1", Name: name, Version: version}}
	}
	const text = "the rollout that would replace it is held: the window opens at 20:00"
	for version, want := range map[string]map[string]string{
		"5": {"i-1": text, "i-2": "in standby; " + text, "i-3": "", "i-4": "waits for its termination lifecycle hook"},
		"":  {"i-1": text, "i-2": "in standby; " + text, "i-3": text, "i-4": "waits for its termination lifecycle hook"},
	} {
		in := testInput(pool)
		in.State = observedNothing(in)
		in.State.Templates[name] = observed.Template{ID: "lt-1", Name: name, LatestVersion: 5}
		in.State.Groups["web"] = observed.Group{Name: "web", MaxSize: 9, DesiredCapacity: 2, Template: observed.TemplateRef{ID: "lt-1", Name: name, Version: "4"}, Instances: []observed.Instance{
			of("i-1", "4", "InService"), of("i-2", "4", "Standby"), of("i-3", "5", "InService"), of("i-4", "4", "Terminating:Wait"),
		}}
		p := &Plan{Steps: []step.Step{{
			Verb: step.Rollout, Resource: step.AutoScalingGroup, Pool: pool.Key.String(), Held: step.HeldWindow, HeldReason: "the window opens at 20:00",
			Do: step.StartRefresh{Group: "web", Template: observed.TemplateRef{ID: "lt-1", Version: version}},
		}}}
		got := map[string]string{}
		for _, i := range Statuses(in, p)[0].Instances {
			got[i.ID] = i.Why
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("version %q:\n%s", version, d)
		}
	}
}

func TestNoteOfInstance(t *testing.T) {
	s := PoolStatus{TemplateVersions: []VersionNote{{Number: 5, Revision: "4be91a7"}}}
	if n := s.NoteOf(&Instance{TemplateVersion: "5"}); n == nil || n.Revision != "4be91a7" {
		t.Errorf("note is %v", n)
	}
	for _, i := range []Instance{{TemplateVersion: "4"}, {}, {TemplateVersion: "5", LaunchTemplateID: "lt-2"}} {
		if n := s.NoteOf(&i); n != nil {
			t.Errorf("%v has the note %v", i, n)
		}
	}
}

// A refresh that leaves protected machines and machines in standby alone is not said to replace them.
func TestARefreshLeavesSomeMachines(t *testing.T) {
	to := observed.TemplateRef{ID: "lt-1", Version: "5"}
	for name, c := range map[string]struct {
		prefs    intent.Refresh
		instance Instance
		replaces bool
	}{
		"old":                 {intent.Refresh{}, Instance{TemplateVersion: "4"}, true},
		"current":             {intent.Refresh{}, Instance{TemplateVersion: "5"}, false},
		"other template":      {intent.Refresh{}, Instance{TemplateVersion: "4", LaunchTemplateID: "lt-2"}, false},
		"leaving":             {intent.Refresh{}, Instance{TemplateVersion: "4", State: "Terminating"}, false},
		"protected":           {intent.Refresh{}, Instance{TemplateVersion: "4", Protected: true}, true},
		"protected, ignored":  {intent.Refresh{ScaleInProtectedInstances: "Ignore"}, Instance{TemplateVersion: "4", Protected: true}, false},
		"in standby":          {intent.Refresh{}, Instance{TemplateVersion: "4", State: "Standby"}, true},
		"in standby, ignored": {intent.Refresh{StandbyInstances: "Ignore"}, Instance{TemplateVersion: "4", State: "Standby"}, false},
	} {
		if got := refreshReplaces(step.StartRefresh{Template: to, Preferences: c.prefs}, &c.instance); got != c.replaces {
			t.Errorf("%s: %t", name, got)
		}
	}
}
