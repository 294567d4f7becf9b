package importer

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/weir-gitops/weir/reconciler/observed"
	"github.com/weir-gitops/weir/reconciler/step"
	"github.com/weir-gitops/weir/render/intent"
)

var (
	infra   = intent.ObjectRef{Kind: "AWSMachinePool", Name: "web"}
	managed = intent.ObjectRef{Kind: "AWSManagedMachinePool", Name: "web"}
	options = intent.ObjectRef{Kind: "PoolOptions", Name: "web"}
	machine = intent.ObjectRef{Kind: "MachinePool", Name: "web"}
)

// changed is a change of a field below spec of an object.
func changed(object intent.ObjectRef, name string, from any) step.Change {
	path, _ := intent.ParsePath("spec." + name)
	return step.Change{Field: name, From: from, Object: object, Path: path}
}

func told(list []Difference) string {
	var b strings.Builder
	for _, d := range list {
		if d.Why != "" {
			fmt.Fprintf(&b, "%s: %s\n", d.Name(), d.Why)
			continue
		}
		fmt.Fprintf(&b, "%s %s = %v\n", d.Object.Kind, d.Name(), d.Value)
	}
	return b.String()
}

// TestDifferences: what AWS has otherwise is said in the words of manifests, only what the
// plan changes counts, and what cannot be said is named.
func TestDifferences(t *testing.T) {
	yes, no := true, false
	number := func(n int32) *int32 { return &n }
	root := []intent.BlockDeviceMapping{{Ebs: intent.Ebs{VolumeSize: 20}}}
	had := []intent.BlockDeviceMapping{{DeviceName: "/dev/xvda", Ebs: intent.Ebs{VolumeSize: 50, DeleteOnTermination: &yes}}}
	outlives := []intent.BlockDeviceMapping{{DeviceName: "/dev/xvda", Ebs: intent.Ebs{VolumeSize: 50, DeleteOnTermination: &no}}}
	types := func(names ...string) *intent.MixedInstances {
		m := &intent.MixedInstances{OnDemandAllocationStrategy: "prioritized", SpotAllocationStrategy: "lowest-price"}
		for _, n := range names {
			m.Overrides = append(m.Overrides, intent.Override{InstanceType: n})
		}
		return m
	}
	hook := func(name string, timeout int32) intent.LifecycleHook {
		return intent.LifecycleHook{Name: name, LifecycleTransition: intent.Terminating, HeartbeatTimeout: timeout}
	}
	template := func(d intent.TemplateData) map[string]observed.Template {
		return map[string]observed.Template{"web": {Name: "web", ID: "lt-1", Versions: map[int64]observed.TemplateVersion{3: {Number: 3, Data: d}}}}
	}
	launches := []step.Change{{Field: "launchTemplate.version", From: "3", To: "2"}}
	third := observed.TemplateRef{ID: "lt-1", Name: "web", Version: "3"}
	for name, c := range map[string]struct {
		want    intent.Group
		have    observed.Group
		lt      *intent.LaunchTemplate
		has     map[string]observed.Template
		hooks   []intent.LifecycleHook
		changes []step.Change
		bare    bool // no PoolOptions
		said    string
	}{
		"sizes, and a field that the plan leaves alone": {
			want: intent.Group{MinSize: 1, MaxSize: 5}, have: observed.Group{MinSize: 2, MaxSize: 7, DesiredCapacity: 4},
			changes: []step.Change{changed(infra, "minSize", 2), changed(machine, "replicas", 4)},
			said:    "AWSMachinePool minSize = 2\nMachinePool replicas = 4\n",
		},
		"settings of the pool and of its options": {
			want:    intent.Group{GroupSettings: intent.GroupSettings{DefaultCooldown: number(300), Options: intent.GroupOptions{HealthCheckGracePeriod: new(int32), TerminationPolicies: []string{"OldestInstance"}}}},
			have:    observed.Group{GroupSettings: intent.GroupSettings{DefaultCooldown: number(60), Options: intent.GroupOptions{HealthCheckGracePeriod: new(int32), PlacementGroup: "x", TerminationPolicies: []string{"Default", "NewestInstance"}}}},
			changes: []step.Change{changed(infra, "defaultCoolDown", 60), changed(options, "autoScalingGroup.terminationPolicies", nil)},
			said:    "AWSMachinePool defaultCoolDown = 60s\nPoolOptions autoScalingGroup.terminationPolicies = [Default NewestInstance]\n",
		},
		"what only options can say": {
			want: intent.Group{MixedInstancesPolicy: types("a")}, have: observed.Group{MixedInstancesPolicy: func() *intent.MixedInstances {
				m := types("a")
				m.SpotMaxPrice, m.Overrides[0].WeightedCapacity = "1", "2"
				return m
			}()},
			changes: []step.Change{changed(infra, "mixedInstancesPolicy.instancesDistribution.spotMaxPrice", "1"), changed(infra, "mixedInstancesPolicy.overrides[0]", "2")}, bare: true,
			said: "mixedInstancesPolicy.instancesDistribution.spotMaxPrice: weir does not write it: change it in the manifests by hand\nmixedInstancesPolicy.overrides[0]: weir does not write it: change it in the manifests by hand\n",
		},
		"weights, where there are options": {
			want: intent.Group{MixedInstancesPolicy: types("a")}, have: observed.Group{MixedInstancesPolicy: func() *intent.MixedInstances { m := types("a"); m.Overrides[0].WeightedCapacity = "2"; return m }()},
			changes: []step.Change{changed(infra, "mixedInstancesPolicy.overrides[0]", "2")},
			said:    "AWSMachinePool mixedInstancesPolicy.overrides = <nil>\nPoolOptions autoScalingGroup.mixedInstancesPolicy = map[overrides:[map[instanceType:a weightedCapacity:2]]]\n",
		},
		"a list that has grown": {
			want: intent.Group{MixedInstancesPolicy: types("a", "b")}, have: observed.Group{MixedInstancesPolicy: types("a", "b", "c")},
			changes: []step.Change{changed(infra, "mixedInstancesPolicy.overrides[2]", "c")},
			said:    "AWSMachinePool mixedInstancesPolicy.overrides = [map[instanceType:a] map[instanceType:b] map[instanceType:c]]\n",
		},
		"an item of a list": {
			want: intent.Group{MixedInstancesPolicy: types("a", "b")}, have: observed.Group{MixedInstancesPolicy: types("a", "c")},
			changes: []step.Change{changed(infra, "mixedInstancesPolicy.overrides[1]", "b")},
			said:    "AWSMachinePool mixedInstancesPolicy.overrides[1].instanceType = c\n",
		},
		"a policy that is gone": {
			want: intent.Group{MixedInstancesPolicy: types("a")}, changes: []step.Change{changed(infra, "mixedInstancesPolicy", nil)},
			said: "AWSMachinePool mixedInstancesPolicy = <nil>\n",
		},
		"tags: another value, one that is gone, one of nobody's, and weir's own": {
			want: intent.Group{Tags: map[string]string{"team": "red", "cost": "1"}},
			have: observed.Group{Tags: map[string]observed.GroupTag{"team": {Value: "blue"}, "other": {Value: "x"}}},
			changes: []step.Change{
				{Field: "tags.team", From: "blue", To: "red", Object: infra, Path: intent.Path{"spec", "additionalTags", "team"}},
				{Field: "tags.cost", To: "1", Object: infra, Path: intent.Path{"spec", "additionalTags", "cost"}},
				{Field: `tags["weir.dev/target"]`, To: "prod", Object: infra, Path: intent.Path{"spec", "additionalTags", "weir.dev/target"}},
			},
			said: "AWSMachinePool additionalTags.cost = <nil>\nAWSMachinePool additionalTags.team = blue\n",
		},
		"a hook of several, and one of somebody else": {
			want: intent.Group{LifecycleHooks: []intent.LifecycleHook{hook("a", 60), hook("b", 60)}}, hooks: []intent.LifecycleHook{hook("a", 60), hook("b", 90), hook("else", 1)},
			changes: []step.Change{{Field: "lifecycleHooks.b.heartbeatTimeout", Object: infra, Path: intent.Path{"spec", "lifecycleHooks"}}},
			said:    "AWSMachinePool lifecycleHooks[name=b].heartbeatTimeout = 90s\n",
		},
		"a hook that is gone": {
			want: intent.Group{LifecycleHooks: []intent.LifecycleHook{hook("a", 60), hook("b", 60)}}, hooks: []intent.LifecycleHook{hook("b", 60)},
			changes: []step.Change{{Field: "lifecycleHooks.a", Object: infra, Path: intent.Path{"spec", "lifecycleHooks"}}},
			said:    "AWSMachinePool lifecycleHooks = [map[defaultResult:ABANDON heartbeatTimeout:60s lifecycleTransition:autoscaling:EC2_INSTANCE_TERMINATING name:b]]\n",
		},
		"a process": {
			want: intent.Group{SuspendedProcesses: []intent.Process{{Name: "AZRebalance", Suspended: true}, {Name: "Launch"}}}, have: observed.Group{SuspendedProcesses: []string{"Terminate"}},
			changes: []step.Change{{Field: "suspendProcesses.AZRebalance", Object: infra, Path: intent.Path{"spec", "suspendProcesses"}}},
			said:    "AWSMachinePool suspendProcesses.processes.azRebalance = false\n",
		},
		"a version of the template, with the image that the lookup gives": {
			have: observed.Group{Template: third}, has: template(intent.TemplateData{ImageID: "ami-1", InstanceType: "m5.xlarge", BlockDeviceMappings: had}),
			lt:      &intent.LaunchTemplate{Name: "web", Image: intent.Lookup{Kind: "x"}, RootDevice: true, Data: intent.TemplateData{InstanceType: "m5.large", BlockDeviceMappings: root}},
			changes: launches, said: "AWSMachinePool awsLaunchTemplate.instanceType = m5.xlarge\nAWSMachinePool awsLaunchTemplate.rootVolume.size = 50\n",
		},
		"another image": {
			have: observed.Group{Template: third}, has: template(intent.TemplateData{ImageID: "ami-2"}),
			lt:      &intent.LaunchTemplate{Name: "web", Image: intent.Lookup{Kind: "x"}},
			changes: launches, said: "AWSMachinePool awsLaunchTemplate.ami.id = ami-2\n",
		},
		"a version that manifests cannot say": {
			have: observed.Group{Template: third}, has: template(intent.TemplateData{ImageID: "ami-1", BlockDeviceMappings: outlives}),
			lt:      &intent.LaunchTemplate{Name: "web", Image: intent.Lookup{Kind: "x"}},
			changes: launches, said: "launchTemplate: version 3 cannot be written: the volume /dev/xvda outlives its machine, and manifests cannot say that\n",
		},
		"a version that differs by user data alone": {
			have: observed.Group{Template: third}, has: template(intent.TemplateData{ImageID: "ami-1"}), lt: &intent.LaunchTemplate{Name: "web", Image: intent.Lookup{Kind: "x"}},
			changes: launches, said: "launchTemplate.version: AWS launches machines there that no version of the pool's launch template describes\n",
		},
		"another template": {
			have: observed.Group{Template: observed.TemplateRef{Name: "own", Version: "1"}}, lt: &intent.LaunchTemplate{Name: "web"},
			changes: launches, said: "launchTemplate.version: AWS launches machines there that no version of the pool's launch template describes\n",
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.want.Name, c.have.Name = "web", "web"
			pool := &intent.Pool{Infrastructure: infra, MachinePool: machine, Options: options, Group: &c.want, LaunchTemplate: c.lt}
			if c.bare {
				pool.Options = intent.ObjectRef{}
			}
			s := &observed.State{Groups: map[string]observed.Group{"web": c.have}, Templates: c.has, Hooks: map[string]observed.GroupHooks{"web": {Hooks: c.hooks}}}
			if diff := cmp.Diff(c.said, told(Differences(pool, c.changes, s, "ami-1"))); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// TestDifferencesOfNodegroups is that for a nodegroup.
func TestDifferencesOfNodegroups(t *testing.T) {
	size := func(n int32) intent.Number { return intent.Number{Value: n, Written: true} }
	want := &intent.Nodegroup{Name: "web", ClusterName: "c", MinSize: size(1), MaxSize: size(3), NodegroupSettings: intent.NodegroupSettings{
		Labels: map[string]string{"a": "1"}, Taints: []intent.Taint{{Key: "gpu", Effect: "NO_SCHEDULE"}}, UpdateConfig: intent.UpdateConfig{MaxUnavailable: 1},
	}}
	name := observed.NodegroupName{Cluster: "c", Name: "web"}
	s := &observed.State{Nodegroups: map[observed.NodegroupName]observed.Nodegroup{name: {NodegroupName: name, MinSize: 1, MaxSize: 9, DesiredSize: 5, NodegroupSettings: intent.NodegroupSettings{
		Version: "1.34", Labels: map[string]string{"b": "2"}, UpdateConfig: intent.UpdateConfig{MaxUnavailablePercentage: 20},
		Taints: []intent.Taint{{Key: "gpu", Effect: "NO_SCHEDULE"}, {Key: "x", Value: "y", Effect: "NO_EXECUTE"}},
	}}}}
	changes := []step.Change{
		changed(managed, "scaling.maxSize", 9), changed(managed, "labels.a", nil), changed(managed, "labels.b", "2"), changed(managed, "taints", nil), changed(managed, "updateConfig", "20%"),
		{Field: "version", From: "1.34", Object: machine, Path: intent.Path{"spec", "template", "spec", "version"}},
	}
	pool := &intent.Pool{Infrastructure: managed, MachinePool: machine, Nodegroup: want}
	said := `AWSManagedMachinePool labels.a = <nil>
AWSManagedMachinePool updateConfig.maxUnavailable = <nil>
AWSManagedMachinePool labels.b = 2
AWSManagedMachinePool scaling.maxSize = 9
AWSManagedMachinePool taints = [map[effect:no-schedule key:gpu value:] map[effect:no-execute key:x value:y]]
AWSManagedMachinePool updateConfig.maxUnavailablePercentage = 20
MachinePool template.spec.version = v1.34.0
`
	if diff := cmp.Diff(said, told(Differences(pool, changes, s, ""))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
