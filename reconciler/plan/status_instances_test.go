package plan

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
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
		if diff := cmp.Diff(want, got.Instances); diff != "" {
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
